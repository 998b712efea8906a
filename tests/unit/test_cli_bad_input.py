"""Bad input through the whole program, on the small matrix of tests/data: exit code, culprit, next step, no traceback."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from accel_env.__main__ import main

TINY = Path(__file__).resolve().parents[1] / "data" / "tiny"


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The small matrix, and an empty folder to be in."""
    monkeypatch.setenv("ACCEL_ENV_MATRIX", str(TINY))
    monkeypatch.delenv("ACCEL_ENV_DEBUG", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


FILES = {
    "broken.json": "{",
    "number.json": '{"os": 3}',
    "list.json": "[]",
    "bad.txt": "torch\nkernelc ==\n",
    "circle.txt": "-r circle.txt\n",
    "unquoted.yaml": "schema: accel-env/overlay/1\npackages:\n- {package: torch, releases: [{version: 3.1}]}\n",
    "pyproject.toml": "",
    "key.yaml": "schema: accel-env/overlay/1\npackagez: []\n",
    "text.yaml": "{",
}

# words -> (exit code, what the message must name)
CASES: dict[str, tuple[int, tuple[str, ...]]] = {
    "resolve torch --device 'Mid 81'": (2, ("Mid 81", "Mid 80")),
    "resolve torch --device 'Mid 80:0'": (2, ("Mid 80:0",)),
    "resolve torch --device 'Mid 80' --driver new": (2, ("--driver", "new")),
    "resolve torch --stack cudda": (2, ("cudda", "cuda")),
    "resolve torch --stack cuda12.6": (2, ("cuda12.6", "--stack cuda-12.6")),
    "resolve torch --stack 'cuda 12.6'": (2, ("cuda 12.6", "--stack cuda-12.6")),
    "resolve torch --stack cu126": (2, ("cu126", "--stack cuda-12.6")),
    "resolve torch --stack rocm7.2": (2, ("rocm7.2", "--stack rocm-7.2")),
    "resolve torch --stack cuda77": (2, ("cuda77", "cuda")),
    "resolve torch --device gpu": (2, ("gpu", "no product", "for example")),
    "resolve torch --device Mid-80:two": (2, ("Mid-80:two", "count")),
    "resolve torch --device 'Mid 80' --driver 13.0": (2, ("--driver 13.0", "CUDA version", "--stack cuda-13.0")),
    "resolve -r pyproject.toml": (3, ("pyproject.toml", "export")),
    "resolve torch --stack cuda-77": (2, ("cuda-77", "12.6")),
    "resolve torch --python 3": (2, ("--python 3", "X.Y")),
    "resolve torch --glibc new": (2, ("--glibc new", "X.Y")),
    "resolve torch --arch riscv": (2, ("--arch", "riscv", "aarch64")),
    "resolve torch --target vm": (2, ("--target", "vm", "venv")),
    "resolve torch --prefer newest --prefer tested": (2, ("--prefer", "newest", "tested")),
    "resolve torch --host nobody": (2, ("nobody",)),
    "resolve torch --host missing.json": (3, ("missing.json",)),
    "resolve torch --host broken.json": (3, ("broken.json", "JSON")),
    "resolve torch --host number.json": (3, ("number.json", "os")),
    "resolve torch --host list.json": (3, ("list.json",)),
    "resolve torch --host .": (3, (".",)),
    "resolve 'torch >> 1'": (2, ("torch >> 1",)),
    "resolve ''": (2, ("argument 1",)),
    "resolve 'torch @ https://example.org/x.whl'": (2, ("URL",)),
    "resolve -r missing.txt": (3, ("missing.txt",)),
    "resolve -r bad.txt": (3, ("bad.txt:2", "kernelc")),
    "resolve -r circle.txt": (3, ("circle.txt",)),
    "resolve torch --overlay missing.yaml": (3, ("missing.yaml",)),
    "resolve torch --overlay unquoted.yaml": (3, ("unquoted.yaml",)),
    "resolve torch --overlay key.yaml": (3, ("key.yaml", "packagez")),
    "resolve torch --overlay text.yaml": (3, ("text.yaml",)),
    "explain --not nothing-like-it": (2, ("nothing-like-it",)),
    "explain --not 'torch=='": (2, ("torch==",)),
    "matrix show nothing-like-it": (3, ("nothing-like-it", "matrix show profiles")),
    "matrix show kernelcc": (3, ("kernelcc", "near it are kernelc")),
    "matrix show 'Mid 81'": (2, ("Mid 81", "Mid 80")),
    "matrix show cuda-77": (3, ("77", "13.0, 12.6")),
    "matrix show gpu": (3, ("gpu",)),
    "matrix show torch==77": (3, ("77", "3.1.0")),
    "matrix show": (2, ("matrix show",)),
    "lock torch": (2, ("-o DIR",)),
    "lock torch -o out --offline --host mid": (5, ("torch==3.1.0", "--offline")),
    "detect -o /dev/null/x/host.json": (2, ("/dev/null/x",)),
    "detect --record /dev/null/x": (2, ("/dev/null/x",)),
}


def split(line: str) -> list[str]:
    import shlex

    return shlex.split(line)


@pytest.mark.parametrize("line", CASES)
def test_bad_input_is_named(line: str, tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in FILES.items():
        (tiny / name).write_text(text)
    code, named = CASES[line]
    assert main(split(line)) == code
    out, err = capsys.readouterr()
    assert out == ""
    while err.startswith("... "):  # progress
        err = err.partition("\n")[2]
    assert err.startswith("error: ") and "bug" not in err.splitlines()[0] and "Traceback" not in err
    assert [part for part in named if part not in err] == []
    assert "\nhint: " in err and err.splitlines()[1].startswith("  ")
    assert {path.name for path in tiny.iterdir()} == set(FILES), "something was written"


def test_matrix_file_with_a_wrong_key(tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import shutil

    shutil.copytree(TINY, tiny / "matrix")
    monkeypatch.setenv("ACCEL_ENV_MATRIX", str(tiny / "matrix"))
    path = tiny / "matrix" / "packages" / "kernelc.yaml"
    path.write_text(path.read_text().replace("summary:", "sumary:"))
    assert main(["resolve", "torch"]) == 3
    err = capsys.readouterr().err
    assert "packages/kernelc.yaml" in err and "sumary" in err


def test_matrix_that_is_not_there(tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("ACCEL_ENV_MATRIX", str(tiny / "nowhere"))
    assert main(["resolve", "torch"]) == 3
    assert str(tiny / "nowhere") in capsys.readouterr().err


def test_accelerator_that_nothing_serves_is_no_silent_cpu_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["resolve", "torch", "--host", "mid", "--stack", "cuda-12.6", "--driver", "1.0"]) == 4
    err = capsys.readouterr().err
    assert "driver" in err and "hint:" in err


def test_words_that_are_no_text(tmp_path: Path) -> None:
    """Arguments in another encoding than the locale's reach the message, not a traceback."""
    script = os.fsencode(Path(sys.executable).with_name("accel-env"))
    done = subprocess.run(
        [os.fsencode(sys.executable), script, b"resolve", b"torch\xff"], capture_output=True, check=False, cwd=tmp_path,
        env={**os.environ, "ACCEL_ENV_MATRIX": str(TINY)},
    )
    assert done.returncode == 2 and done.stderr.startswith(b"error: ") and b"Traceback" not in done.stderr
