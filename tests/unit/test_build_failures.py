"""The words for a failed build."""

from __future__ import annotations

import pytest

from accel_env.build.failures import build_error, shortened, title
from accel_env.build.progress import Failure

STEP = "[build 3/4] RUN --mount=type=cache,target=/root/.cache/pip --mount=type=secret,id=ca,target=/x python3 -m venv"
EXIT = 'process "/bin/sh -c a && b" did not complete successfully: exit code: 1'


def test_a_step_of_the_users() -> None:
    error = build_error(Failure(STEP, EXIT, tuple(f"line {n}" for n in range(20))), ["Dockerfile:10", "ERROR: x"], "docker 1")
    assert error.exit_code == 6 and error.reference == "step-failed"
    assert error.message == "the step `[build 3/4] RUN python3 -m venv` failed: exit code: 1"
    assert error.context == tuple(f"line {n}" for n in range(5, 20)) and error.hint


@pytest.mark.parametrize(
    ("lines", "error", "reference"),
    [
        (("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.",), EXIT, "wrong-hash"),
        (
            ("SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed",),
            EXIT,
            "no-certificate",
        ),
        (("OSError: [Errno 28] No space left on device",), EXIT, "disk-full"),
        (
            ("ERROR: Could not find a version that satisfies the requirement six==9 (from versions: none)",),
            EXIT,
            "index-unreachable",
        ),
        (("exec /bin/sh: exec format error",), EXIT, "other-architecture"),
        (("c++: fatal error: Killed signal terminated program cc1plus",), EXIT.replace("1", "137"), "no-memory"),
        ((), "network bridge not found", "no-build-network"),
        ((), "rpc error: code = Unavailable desc = error reading from server: EOF", "engine-gone"),
    ],
)
def test_kinds(lines: tuple[str, ...], error: str, reference: str) -> None:
    found = build_error(Failure(STEP, error, lines), [], "docker 1")
    assert found.reference == reference and "[build 3/4]" in found.message and found.hint
    assert found.context[: len(lines)] == lines


@pytest.mark.parametrize(
    ("talk", "reference"),
    [
        ("ERROR: failed to solve: python:x@sha256:d: failed to resolve source metadata for docker.io/library/python: "
         'failed to do request: Head "https://r/v2/": dial tcp: lookup r on 10.0.0.1:53: no such host', "registry-unreachable"),
        ("ERROR: failed to solve: python:x@sha256:d: docker.io/library/python:x@sha256:d: not found: manifest unknown",
         "base-not-found"),
        ("ERROR: Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?", "engine-gone"),
        ("ERROR: no builder \"x\" found", "step-failed"),
    ],
)  # fmt: skip
def test_builders_that_fail_before_a_step(talk: str, reference: str) -> None:
    found = build_error(Failure("", "", (talk,)), [talk], "docker 26")
    assert found.reference == reference and talk in found.context
    if reference == "step-failed":
        assert found.message == 'docker 26 could not build: ERROR: no builder "x" found'


def test_nothing_was_said() -> None:
    assert build_error(Failure("", "", ()), [], "docker 26").message == "docker 26 could not build: "


def test_long_texts_lose_their_middle() -> None:
    assert shortened("a  b\nc", 10) == "a b c"
    short = shortened("x" * 100 + "END", 50)
    assert len(short) <= 50 and short.startswith("xxx") and short.endswith("END") and " ... " in short
    assert title(STEP, 100) == "[build 3/4] RUN python3 -m venv"
