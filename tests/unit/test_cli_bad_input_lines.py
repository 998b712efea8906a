"""Requirement words and lines that are none: what is said about each, and what is read besides files."""
from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import pytest

from accel_env.asks import read_asks
from accel_env.errors import AccelEnvError, InputError, UsageError
from accel_env.system import RealSystem

WHEEL = "https://example.org/wheels/torch-3.1.0%2Bcu126-cp312-cp312-manylinux_2_28_x86_64.whl"

# text -> what message and hint must say
LINES = {
    "git+https://example.org/owner/kernelc.git@v1.2": ("version control", "kernelc==VERSION"),
    "kernelc @ git+https://example.org/owner/kernelc": ("version control", "kernelc==VERSION"),
    WHEEL: ("URL", "'torch==3.1.0'"),
    f"torch @ {WHEEL}": ("URL", "'torch==3.1.0'"),
    "https://example.org/kernelc.zip": ("URL", "overlay"),
    "kernelc @ file:///srv/kernelc.zip": ("URL", "kernelc==VERSION"),
    ".": ("path", "overlay"),
    "./kernelc": ("path", "overlay"),
    "../kernelc[extra]": ("path", "overlay"),
    "/srv/kernelc-1.2-py3-none-any.whl": ("path", "'kernelc==1.2'"),
    "kernelc-1.2.tar.gz": ("path", "'kernelc==1.2'"),
    "torch=3.1": ("no requirement", "'torch==3.1'"),
    "torch 3.1": ("no requirement", "'torch==3.1'"),
    "torch >> 1": ("no requirement", "'torch>="),
}


@pytest.mark.parametrize("text", LINES)
def test_a_word_that_is_no_requirement_gets_its_hint(text: str) -> None:
    said, hint = LINES[text]
    with pytest.raises(UsageError) as caught:
        read_asks((text,), (), RealSystem())
    assert caught.value.reference == "bad-requirement"
    assert said in caught.value.message and "argument 1" in caught.value.message and hint in caught.value.hint


@pytest.mark.parametrize("text", [line for line in LINES if line != "."])
def test_a_line_of_a_file_gets_the_same(text: str, tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(f"torch\n{text}\n")
    said, hint = LINES[text]
    with pytest.raises(InputError) as caught:
        read_asks((), (str(path),), RealSystem())
    assert said in caught.value.message and f"{path}:2" in caught.value.message and hint in caught.value.hint


@pytest.mark.parametrize(
    "text", ["torch", "torch>=3,<4", "kernelc[extra]==1.2", "a.b", "torch==3.1.0+cu126", "torch; python_version>'3'"]
)
def test_requirements_stay_requirements(text: str) -> None:
    assert read_asks((text,), (), RealSystem())[0][0].text == text


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("pyproject.toml", "export"), ("uv.lock", "export"), ("Pipfile", "export"), ("environment.yml", "pip section"),
        ("setup.py", "export"), ("host.json", "--host"), ("kernelc.whl", "overlay"),
    ],
)
def test_files_of_another_kind_are_refused(name: str, hint: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text("torch\n")
    with pytest.raises(InputError) as caught:
        read_asks((), (str(path),), RealSystem())
    assert caught.value.reference == "not-requirements" and str(path) in caught.value.message and hint in caught.value.hint


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "more.txt").write_text("kernelc\n")
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"\xef\xbb\xbftorch>=3  # why\n-r more.txt\n")))
    asks, notes = read_asks(("arrays",), ("-",), RealSystem())
    assert [ask.name for ask in asks] == ["arrays", "torch", "kernelc"]
    assert (asks[1].origin, notes) == ("standard input:1", ())


def test_a_bad_line_of_standard_input_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"torch\nkernelc ==\n")))
    with pytest.raises(InputError, match="standard input:2"):
        read_asks((), ("-",), RealSystem())


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("-e .", "a project of your own"),
        ("--editable=./x", "a project of your own"),
        ("-c limits.txt", "constraints"),
        ("--extra-index-url https://example.org", "the matrix names the index"),
        ("--pre", "the matrix names"),
    ],
)
def test_lines_that_are_left_out_say_why(line: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(f"torch\n{line}\n")
    _, notes = read_asks((), (str(path),), RealSystem())
    assert len(notes) == 1 and notes[0].startswith(f"{path}:2: ") and said in notes[0]


def test_nothing_in_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"")))
    with pytest.raises(AccelEnvError, match="standard input"):
        read_asks((), ("-",), RealSystem())


def test_a_last_line_that_promises_another_counts(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text("kernelc \\\n  # the end\ntorch \\")
    assert [ask.name for ask in read_asks((), (str(path),), RealSystem())[0]] == ["kernelc", "torch"]


def test_names_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    from accel_env.cli.output import answer_text

    answer_text(["for x\x1b[31m\x07 (sm_80)"])
    assert capsys.readouterr().out == "for x?[31m? (sm_80)\n"


def test_a_name_that_no_file_system_takes(capsys: pytest.CaptureFixture[str]) -> None:
    from accel_env.__main__ import main

    assert main(["lock", "torch", "--device", "cpu", "-o", "a" * 300]) == 2
    assert "File name too long" in capsys.readouterr().err
