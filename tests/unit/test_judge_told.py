"""What the text output says was judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from accel_env.__main__ import main

KNOWN = "/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.32' not found"


def told(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    main(list(words))
    return " ".join(capsys.readouterr().out.split())


def test_a_recognised_error_without_a_machine_is_not_called_unrecognised(capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys, "doctor", "--error", KNOWN)
    assert "nothing in it was recognised" not in text and "glibc-too-old" in text


def test_nothing_recognised_is_said_and_promises_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys, "doctor", "--error", "the moon is full")
    assert "nothing in it was recognised" in text and "what follows" not in text


def test_check_names_the_machine_that_options_describe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text("numpy\n")
    text = told(capsys, "check", str(file), "--device", "A100", "--driver", "550.54.14")
    assert "this machine" not in text and "A100" in text and "550.54.14" in text
