"""What is named as a file and is none, and folders that cannot be written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from accel_env.errors import InputError, UsageError
from accel_env.system.files import check_file, check_folder, read_file, read_text_file


def test_a_plain_file_passes(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    check_file(tmp_path / "a")
    assert read_file(tmp_path / "a") == "x"


def test_what_is_missing_is_left_to_the_reader(tmp_path: Path) -> None:
    check_file(tmp_path / "a")
    with pytest.raises(InputError, match="No such file"):
        read_file(tmp_path / "a")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_that_nobody_fills_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="it is a pipe"):
        read_text_file(str(tmp_path / "pipe"))


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no such device here")
def test_a_device_is_refused() -> None:
    with pytest.raises(InputError, match="it is a device"):
        read_file("/dev/zero")


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="it is a directory"):
        check_file(tmp_path)


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="no /dev/fd here")
def test_what_the_shell_puts_in_place_of_a_file_is_read() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"torch\n")
    os.close(writer)
    try:
        assert read_text_file(f"/dev/fd/{reader}") == "torch\n"
    finally:
        os.close(reader)


def test_a_folder_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    with pytest.raises(UsageError, match="is a file"):
        check_folder(tmp_path / "a" / "b")
