"""What `check` offers where an index lacks a build, and what it says of releases that it does not know."""

from __future__ import annotations

from pathlib import Path

import pytest

from accel_env.__main__ import main


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main(list(words))
    out, err = capsys.readouterr()
    return code, " ".join((out + err).split())


def test_only_indexes_that_the_driver_runs_are_offered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text("--index-url https://download.pytorch.org/whl/cu118\ntorch==2.9.0\n")
    _, text = told(capsys, "check", str(file), "--device", "A100", "--driver", "550.54.14")
    assert "the index cu126" in text and "the index cu130" not in text
    _, text = told(capsys, "check", str(file), "--device", "A100", "--driver", "580.95.05")
    assert "the index cu130" in text


def test_a_release_that_nobody_listed_is_said_to_be_unchecked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text("vllm==0.10.987\ntorch==2.9.0\n")
    _, text = told(capsys, "check", str(file))
    assert "vllm 0.10.987 is a release that accel-env does not know" in text and "torch 2.9.0 is a release" not in text
    dump = tmp_path / "pip.txt"
    dump.write_text("Package Version\n------- -------\ntorch 2.9.0\nvllm 0.10.987\n")
    _, text = told(capsys, "doctor", "--collect-env", str(dump))
    assert "vllm 0.10.987 is a release that accel-env does not know" in text and "torch 2.9.0 is a release" not in text


def test_a_nul_byte_is_an_input_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "requirements.txt"
    file.write_bytes(b"torch==2.9.0\nnumpy\x00\n")
    code, text = told(capsys, "check", str(file))
    assert code == 3 and "requirements.txt:2" in text
