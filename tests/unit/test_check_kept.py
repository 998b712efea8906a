"""A torch pin over a vendor's image: a constraints file that holds the image's torch cannot go with another pin."""

from __future__ import annotations

from pathlib import Path

import pytest

from accel_env.__main__ import main

BASE = "FROM nvcr.io/nvidia/pytorch:24.05-py3\n"


def told(tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str) -> str:
    file = tmp_path / "Dockerfile"
    file.write_text(f"{BASE}RUN pip install {line}\n")
    main(["check", str(file)])
    return " ".join(capsys.readouterr().out.split())


def test_another_pin_is_left_out_or_the_base_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = told(tmp_path, capsys, "torch==2.5.1")
    assert "leave torch==2.5.1 out" in text and "another base" in text and "-c /tmp/keep.txt" not in text


def test_a_package_that_brings_a_torch_is_held_by_a_constraint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "-c /tmp/keep.txt" in told(tmp_path, capsys, "xformers==0.0.28.post3")
