"""The words for a build that failed: which kind it is, the step, its last lines and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from accel_env.build.progress import Failure
from accel_env.errors import BuildError

SHOWN_LINES = 15


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of failure. `pattern` is looked for in what the builder and the step said; the first kind that fits counts."""

    reference: str
    pattern: re.Pattern[str]
    sentence: str
    hint: str


def _kind(reference: str, pattern: str, sentence: str, hint: str) -> _Kind:
    return _Kind(reference, re.compile(pattern, re.IGNORECASE), sentence, hint)


_KINDS = (
    _kind(
        "disk-full", r"no space left on device|disk quota exceeded", "the engine's disk is full",
        "`docker system df` shows what fills it; `docker builder prune` frees the build cache",
    ),
    _kind(
        "engine-gone", r"cannot connect to the docker daemon|error during connect|closing transport|transport is closing"
        r"|error reading from server|unexpected eof|graceful_stop|connection error: desc|closed the connection",
        "the engine went away while it was building",
        "see the engine's own log (`journalctl -u docker`), start it again and repeat: finished steps are in its cache",
    ),
    _kind(
        "wrong-hash", r"do not match the hashes|hash mismatch|expected sha256",
        "a file that was to be installed is not the one in the lock",
        "the index or mirror serves other bytes than were locked: find out why before you lock again",
    ),
    _kind(
        "no-certificate", r"certificate[_ ]verify[_ ]failed|certificate signed by unknown authority|x509:",
        "a certificate was not trusted",
        "give the site's CA bundle to the build: --secret id=ca,src=CA-BUNDLE",
    ),
    _kind(
        "base-not-found", r"manifest unknown|(?:failed to resolve source metadata|load metadata for|pull).*not found"
        r"|not found: manifest|repository does not exist|pull access denied|reading manifest",
        "the base image does not exist under that name and digest",
        "the registry may have dropped an old digest: render again with a newer matrix, or name a mirror that keeps it",
    ),
    _kind(
        "registry-unreachable", r"(?:failed to resolve source metadata|load metadata for|failed to do request|pinging container"
        r" registry|pull).*(?:dial tcp|i/o timeout|connection refused|no such host|temporary failure|eof)",
        "the registry of the base image does not answer",
        "check the network and the engine's registry mirrors",
    ),
    _kind(
        "other-architecture", r"exec format error|no match for platform|does not match the specified platform",
        "this engine cannot run programs of the image's architecture",
        "build there, name a builder of that architecture (--builder NAME), or register emulation (binfmt, qemu-user-static)",
    ),
    _kind(
        "index-unreachable", r"name resolution|connection (?:refused|broken|aborted)|newconnectionerror|max retries exceeded"
        r"|read timed out|network is unreachable|could not find a version that satisfies",
        "a file of the lock could not be fetched",
        "check the network inside builds (--network host), the proxy, and the index: --secret id=pip,src=PIP.CONF",
    ),
    _kind(
        "no-build-network", r"network \S+ not found", "the engine has no network for build steps",
        "let them use the machine's own: --network host",
    ),
    _kind(
        "no-memory", r"exit code: 137|signal: killed|cannot allocate memory|out of memory",
        "the step was killed, most likely for its memory", "give the engine more memory, or compile with fewer jobs",
    ),
)  # fmt: skip
_FLAGS = re.compile(r" --(?:mount|network|chown|chmod)=\S+")
_NOISE = re.compile(r"^(?:error: )?(?:failed to solve|failed to build): ", re.IGNORECASE)
_PROCESS = re.compile(r'process "(?P<command>.*)" did not complete successfully: (?P<end>.*)', re.DOTALL)


def build_error(failure: Failure, talk: Iterable[str], engine: str) -> BuildError:
    """The error to raise. `talk`: lines of the builder itself; `engine`: its name and version, for the reader."""
    said = [line for line in talk if line.strip()]
    kind = next((kind for kind in _KINDS if kind.pattern.search("\n".join((failure.error, *failure.lines, *said)))), None)
    end = _end(failure, said)
    if failure.step:
        step = title(failure.step, 100)
        sentence = f"{kind.sentence}, in the step `{step}`" if kind else f"the step `{step}` failed: {end}"
    else:
        sentence = kind.sentence if kind else f"{engine} could not build: {end}"
    # What a builder says of a step without lines is the Dockerfile's text once more.
    lines = list(failure.lines[-SHOWN_LINES:] if failure.step else said[-SHOWN_LINES:])
    if kind and end and end not in " ".join(lines):
        lines.append(end)
    hint = kind.hint if kind else "the lines above are the step's last ones; --progress plain shows all of them"
    return BuildError(kind.reference if kind else "step-failed", sentence, context=tuple(lines), hint=hint)


def _end(failure: Failure, said: list[str]) -> str:
    """How it ended, in few words."""
    text = failure.error or next((line for line in reversed(said) if "error" in line.lower()), said[-1] if said else "")
    text = _NOISE.sub("", " ".join(text.split()))
    found = _PROCESS.search(text)
    return shortened(found.group("end") if found else text, 300)


def title(step: str, length: int) -> str:
    """A step's name on one short line, without its mounts."""
    return shortened(_FLAGS.sub("", " ".join(step.split())), length)


def shortened(text: str, length: int) -> str:
    """The text on one line, with its middle left out where it is too long."""
    flat = " ".join(text.split())
    if len(flat) <= length:
        return flat
    return f"{flat[: length * 2 // 3]} ... {flat[-(length // 3 - 5) :]}"
