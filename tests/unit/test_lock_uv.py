"""What is read of uv, with a stand-in program where one is run."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import pytest

from accel_env.errors import ClosureError
from accel_env.lock import uv
from accel_env.lock.closer import Closure, Found, Question, Refusal, StandIn, Target

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


def test_the_answer_without_the_stand_ins() -> None:
    assert uv.read_pylock(ANSWER, {"torch"}) == (
        Found(
            "numpy", "2.3.5", "numpy-2.3.5+x-py3-none-any.whl", "https://files.example/numpy-2.3.5%2Bx-py3-none-any.whl", "55", 7
        ),
        Found("direct", "1", "direct-1-py3-none-any.whl", "https://files.example/direct-1-py3-none-any.whl", "77"),
        Found("bare", "2", "", "", ""),
    )


@pytest.mark.parametrize("text", ["packages = 3", '[[packages]]\nversion = "1"', "not toml", "packages = [1]"])
def test_an_answer_in_another_form(text: str) -> None:
    with pytest.raises(ClosureError) as caught:
        uv.read_pylock(text, set())
    assert caught.value.reference == "uv-output"


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
        "(here / 'env').write_text('\\n'.join(sorted(os.environ)))\n"
        "shutil.copytree('.', here / 'scratch')\n"
        "print((here / 'answer').read_text())\n"
        "print((here / 'talk').read_text().replace('SCRATCH', os.getcwd()), file=sys.stderr)\n"
        f"sys.exit({status})\n"
    )
    path.chmod(0o755)
    return str(path)


def question(offline: bool = False) -> Question:
    stand_in = StandIn("torch", "2.14.1+cu126", "torch-2.14.1+cu126-cp312-cp312-linux_x86_64.whl", ("numpy",), ("optree",))
    return Question(("einops>=0.8",), ("ray<5",), (stand_in,), TARGET, "2026-11-30T00:00:00Z", offline)


def test_what_uv_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_PRERELEASE", "UV_DEFAULT_INDEX", "UV_CACHE_DIR"):
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
    assert pairs["--default-index"] == "http://127.0.0.1/simple" and "--no-build" in words and "--offline" not in words
    asked = (tmp_path / "scratch" / "requirements.in").read_text()
    assert "torch[optree] @ file://" in asked and "torch-2.14.1%2Bcu126-cp312-cp312-linux_x86_64.whl\neinops>=0.8\n" in asked
    assert (tmp_path / "scratch" / "constraints.in").read_text() == "ray<5\n"
    kept = (tmp_path / "env").read_text().split("\n")
    assert "UV_DEFAULT_INDEX" in kept and "UV_CACHE_DIR" in kept
    assert not {"UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_PRERELEASE"} & set(kept)


def test_a_refusal_is_shown_word_for_word_without_the_scratch_folder(tmp_path: Path) -> None:
    talk = "error: No solution found\n  cause: torch @ file://SCRATCH/torch-2.whl and SCRATCH/x.in"
    found = uv.UvCloser(program=program(tmp_path, 1, talk=talk)).close(question())
    assert found == Refusal("error: No solution found\n  cause: torch @ torch-2.whl and x.in")


@pytest.mark.parametrize(
    ("status", "talk", "offline", "reference"),
    [
        (2, "error: bad requirement", False, "uv-failed"),
        (2, "error: Request failed after 3 retries", False, "network-down"),
        (1, "error: not in the cache", True, "network-needed"),
        (-9, "", False, "uv-failed"),
    ],
)
def test_trouble_of_uv(tmp_path: Path, status: int, talk: str, offline: bool, reference: str) -> None:
    with pytest.raises(ClosureError) as caught:
        uv.UvCloser(program=program(tmp_path, status if status >= 0 else 137, talk=talk)).close(question(offline))
    assert caught.value.reference == reference and caught.value.exit_code == 5
    assert not talk or talk in caught.value.context
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
