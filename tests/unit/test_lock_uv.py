"""What is read of uv, with a stand-in program where one is run."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from accel_env.errors import ClosureError
from accel_env.lock import uv
from accel_env.lock.closer import Closure, Question, Refusal, StandIn, Target
from accel_env.system.real import RealSystem

TARGET = Target("3.12", "linux_x86_64", "glibc", "2.36")
HELP = "x86_64-manylinux2014, x86_64-manylinux_2_17, x86_64-manylinux_2_36, x86_64-manylinux_2_40, aarch64-manylinux_2_28]"
ANSWER = """
lock-version = "1.0"
created-by = "uv"

[[packages]]
name = "numpy"
version = "2.3.5"
wheels = [{ url = "https://files.example/numpy-2.3.5%2Bx-py3-none-any.whl", size = 7, hashes = { sha256 = "55" } }]

[[packages]]
name = "torch"
version = "2.14.1+cu126"
archive = { path = "/tmp/torch.whl", hashes = { sha256 = "66" } }

[[packages]]
name = "direct"
version = "1"
archive = { url = "https://files.example/direct-1-py3-none-any.whl", hashes = { sha256 = "77" } }

[[packages]]
name = "bare"
version = "2"
vcs = { type = "git", url = "https://example.org/bare", commit-id = "0" }
"""


@pytest.mark.parametrize(
    ("machine", "libc", "wanted"),
    [
        ("x86_64", "2.36", "x86_64-manylinux_2_36"),
        ("x86_64", "2.39", "x86_64-manylinux_2_36"),
        ("x86_64", "2.41", "x86_64-manylinux_2_40"),
        ("x86_64", "2.17", "x86_64-manylinux_2_17"),
        ("x86_64", "2.12", ""),
        ("x86_64", "", ""),
        ("aarch64", "2.36", "aarch64-manylinux_2_28"),
        ("riscv64", "2.36", ""),
    ],
)
def test_the_highest_level_that_uv_knows(machine: str, libc: str, wanted: str) -> None:
    assert uv.manylinux(machine, libc, HELP) == wanted


def program(folder: Path, status: int, output: str = "", talk: str = "") -> str:
    """A program that answers like uv; it notes its words, its environment and the requirement files."""
    path = folder / "uv"
    (folder / "answer").write_text(output)
    (folder / "talk").write_text(talk)
    path.write_text(
        f"#!{sys.executable}\n"
        "import os, shutil, sys, pathlib\n"
        "here = pathlib.Path(__file__).parent\n"
        "if '--version' in sys.argv: print('uv 1.2.3 (x)'); sys.exit()\n"
        f"if '--help' in sys.argv: print({HELP!r}); sys.exit()\n"
        "(here / 'words').write_text('\\n'.join(sys.argv[1:]))\n"
        "(here / 'env').write_text('\\n'.join(f'{k}={v}' for k, v in sorted(os.environ.items())))\n"
        "shutil.copytree('.', here / 'scratch')\n"
        "print((here / 'answer').read_text())\n"
        "print((here / 'talk').read_text().replace('SCRATCH', os.getcwd()), file=sys.stderr)\n"
        f"sys.exit({status})\n"
    )
    path.chmod(0o755)
    return str(path)


class Fake(RealSystem):
    """This machine with another environment."""

    def __init__(self, variables: dict[str, str]) -> None:
        super().__init__()
        self._variables = variables

    def env(self, name: str) -> str | None:
        """See System."""
        return self._variables.get(name)


def question(offline: bool = False) -> Question:
    stand_in = StandIn("torch", "2.14.1+cu126", "torch-2.14.1+cu126-cp312-cp312-linux_x86_64.whl", ("numpy",), ("optree",))
    return Question(("einops>=0.8",), ("ray<5",), (stand_in,), TARGET, "2026-11-30T00:00:00Z", offline)


def test_what_uv_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_PRERELEASE", "UV_INDEX_URL", "UV_CACHE_DIR", "UV_SOMETHING_NEW"):
        monkeypatch.setenv(name, "x")
    found = uv.UvCloser(program=program(tmp_path, 0, ANSWER), default_index="http://127.0.0.1/simple").close(question())
    assert (
        isinstance(found, Closure)
        and found.tools == {"uv": "1.2.3"}
        and [file.name for file in found.files] == ["numpy", "direct", "bare"]
    )
    words = (tmp_path / "words").read_text().split("\n")
    pairs = dict(pairwise(words))
    assert pairs["--python-version"] == "3.12" and pairs["--python-platform"] == "x86_64-manylinux_2_36"
    assert pairs["--exclude-newer"] == "2026-11-30T00:00:00Z" and pairs["--index-strategy"] == "first-index"
    assert "--no-build" in words and "--offline" not in words
    # its own settings alone, and an index with a password is no word that everybody can read
    assert pairs["--config-file"] == "uv.toml" and not any("127.0.0.1" in word for word in words)
    assert (tmp_path / "scratch" / "uv.toml").read_text() == ""
    asked = (tmp_path / "scratch" / "requirements.in").read_text()
    assert "torch[optree] @ file://" in asked and "torch-2.14.1%2Bcu126-cp312-cp312-linux_x86_64.whl\neinops>=0.8\n" in asked
    assert (tmp_path / "scratch" / "constraints.in").read_text() == "ray<5\n"
    kept = (tmp_path / "env").read_text().split("\n")
    assert "UV_DEFAULT_INDEX=http://127.0.0.1/simple" in kept and "UV_CACHE_DIR=x" in kept
    assert [name for name in kept if name.startswith("UV_")] == ["UV_CACHE_DIR=x", "UV_DEFAULT_INDEX=http://127.0.0.1/simple"]


def test_the_users_index_is_that_of_his_settings(tmp_path: Path) -> None:
    settings = tmp_path / "home" / ".config" / "uv"
    settings.mkdir(parents=True)
    (settings / "uv.toml").write_text('index-url = "https://mirror.example/simple"\nresolution = "lowest"\n')
    system = Fake({"HOME": str(tmp_path / "home")})
    uv.UvCloser(program=program(tmp_path, 0, ANSWER), system=system).close(question())
    assert (tmp_path / "scratch" / "uv.toml").read_text() == 'index-url = "https://mirror.example/simple"\n'


def test_a_substitute_is_a_constraint_and_never_part_of_the_answer(tmp_path: Path) -> None:
    others = (StandIn("numpy", "9", "numpy-9-py3-none-any.whl"), StandIn("x", "1", "x-1-py3-none-any.whl"))
    asked = replace(question(), substitutes=others)
    found = uv.UvCloser(program=program(tmp_path, 0, ANSWER)).close(asked)
    assert isinstance(found, Closure) and found.substituted == {"numpy"}
    assert [file.name for file in found.files] == ["direct", "bare"]
    lines = (tmp_path / "scratch" / "constraints.in").read_text().splitlines()
    assert lines[0] == "ray<5" and lines[1].startswith("numpy @ file://") and lines[1].endswith("/numpy-9-py3-none-any.whl")


@pytest.mark.parametrize(("floor", "wanted"), [("14.0", ["MACOSX_DEPLOYMENT_TARGET=14.0"]), ("", [])])
def test_the_oldest_macos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, floor: str, wanted: list[str]) -> None:
    monkeypatch.setenv("MACOSX_DEPLOYMENT_TARGET", "11.0")
    target = Target("3.12", "macos_aarch64", os_floor=floor)
    uv.UvCloser(program=program(tmp_path, 0, ANSWER)).close(replace(question(), target=target))
    assert "aarch64-apple-darwin" in (tmp_path / "words").read_text().split("\n")
    assert [line for line in (tmp_path / "env").read_text().split("\n") if line.startswith("MACOSX")] == wanted


def test_an_environment_without_network_is_offline(tmp_path: Path) -> None:
    system = Fake({"UV_OFFLINE": "1"})
    with pytest.raises(ClosureError) as caught:
        uv.UvCloser(program=program(tmp_path, 1, talk="not in the cache"), system=system).close(question())
    assert caught.value.reference == "network-needed" and "--offline" in (tmp_path / "words").read_text().split("\n")


def test_a_refusal_is_shown_word_for_word_without_the_scratch_folder(tmp_path: Path) -> None:
    talk = "error: No solution found\n  cause: torch @ file://SCRATCH/torch-2.whl and SCRATCH/x.in"
    found = uv.UvCloser(program=program(tmp_path, 1, talk=talk)).close(question())
    assert found == Refusal("error: No solution found\n  cause: torch @ torch-2.whl and x.in")


@pytest.mark.parametrize(
    ("status", "talk", "offline", "reference"),
    [
        (2, "error: bad requirement", False, "uv-failed"),
        (2, "error: Failed to initialize cache at `/home/x/.cache/uv`\n  cause: Read-only file system", False, "uv-cache"),
        (2, "error: failed to open file `/home/x/.cache/uv/a`: Permission denied (os error 13)", False, "uv-cache"),
        (2, "error: Request failed after 3 retries", False, "network-down"),
        (1, "error: not in the cache", True, "network-needed"),
        (-9, "", False, "uv-failed"),
    ],
)
def test_trouble_of_uv(tmp_path: Path, status: int, talk: str, offline: bool, reference: str) -> None:
    with pytest.raises(ClosureError) as caught:
        uv.UvCloser(program=program(tmp_path, status if status >= 0 else 137, talk=talk)).close(question(offline))
    assert caught.value.reference == reference and caught.value.exit_code == 5
    assert not talk or talk.splitlines() == list(caught.value.context)
    assert ("UV_CACHE_DIR" in caught.value.hint) == (reference == "uv-cache")
    assert ("--offline" in (tmp_path / "words").read_text().split("\n")) == offline


def test_uv_that_never_ends(tmp_path: Path) -> None:
    path = tmp_path / "uv"
    path.write_text("#!/bin/sh\nexec sleep 60\n")
    path.chmod(0o755)
    with pytest.raises(ClosureError, match="within"):
        uv.UvCloser(program=str(path), timeout=0.2).close(question())


def test_uv_that_is_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ClosureError) as caught:
        uv.find_uv()
    assert caught.value.reference == "uv-missing" and "pip install uv" in caught.value.hint
    beside = tmp_path / "uv"
    beside.write_text("")
    beside.chmod(0o755)
    assert uv.find_uv() == str(beside)
    with pytest.raises(ClosureError, match="cannot be started"):
        uv.UvCloser(program=str(tmp_path / "gone")).close(question())


def test_free_threaded_python_is_refused(tmp_path: Path) -> None:
    asked = Question((), (), (), Target("3.14t", "linux_x86_64"))
    with pytest.raises(ClosureError, match=r"3\.14t"):
        uv.UvCloser(program=program(tmp_path, 0, ANSWER)).close(asked)


def test_no_place_for_the_stand_ins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tempfile

    path = program(tmp_path, 0, ANSWER)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(ClosureError) as caught:
        uv.UvCloser(program=path).close(question())
    assert caught.value.reference == "cannot-write"
