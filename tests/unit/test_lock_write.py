"""Lock files: read back by their own tools, the same bytes, whole or not at all."""

from __future__ import annotations

import errno
import importlib
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.samples import candidate, lock_of, locked, solution

from accel_env.errors import ClosureError
from accel_env.lock.write import lock_files, pylock_text, requirements_text, write_files
from accel_env.model import Lock, LockedFile

URL = "https://wheels.example/whl/cu126/torch-2.14.1%2Bcu126-cp312-cp312-manylinux_2_28_x86_64.whl"


@pytest.fixture
def lock() -> Lock:
    torch = candidate("torch", "2.14.1", "cu126", "house:cu126")
    return lock_of(
        solution(torch),
        locked("numpy", "2.3.5"),
        locked("torch", "2.14.1+cu126", "house:cu126", URL, "torch-2.14.1+cu126-cp312-cp312-manylinux_2_28_x86_64.whl"),
        notes=("a note\nover two lines",),
    )


def test_requirements_for_pip(lock: Lock) -> None:
    numpy, torch = lock.files
    assert requirements_text(lock) == (
        "# Written by accel-env; do not edit. To install it:\n"
        "#   pip install --require-hashes --no-deps --only-binary :all: -r requirements.lock\n"
        "# stack cuda-12.6, Python 3.12, linux_x86_64, glibc 2.36\n"
        f"# matrix 2026.11.30 {lock.tools['matrix_digest']}\n"
        "# closed by uv 0.1 over files uploaded before 2026-11-30T00:00:00Z\n"
        "# note: a note over two lines\n"
        f"numpy==2.3.5 \\\n    --hash=sha256:{numpy.sha256}\n"
        f"torch @ {URL} \\\n    --hash=sha256:{torch.sha256}\n"
    )


def test_what_made_the_files_stands_in_them(lock: Lock) -> None:
    made = replace(lock, tools={**lock.tools, "made_by": "accel-env lock 'torch>=2' --device 'Mid 80'"})
    assert "# made by: accel-env lock 'torch>=2' --device 'Mid 80'\n" in requirements_text(made)
    assert 'made-by = "accel-env lock \'torch>=2\' --device \'Mid 80\'"\n' in pylock_text(made)
    assert "made by" not in requirements_text(lock)


def test_every_hash_of_a_release_with_several_files() -> None:
    file = LockedFile("a", "1", "a-1-py3-none-any.whl", "1" * 64, "pypi", extra_files=(("a-1-py2-none-any.whl", "2" * 64),))
    assert requirements_text(lock_of(solution(), file)).endswith(
        f"a==1 \\\n    --hash=sha256:{'1' * 64} \\\n    --hash=sha256:{'2' * 64}\n"
    )


def test_pylock_is_read_back(lock: Lock) -> None:
    from packaging.pylock import Pylock

    toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    document = toml.loads(pylock_text(lock))
    pylock = Pylock.from_dict(document)
    assert [(str(package.name), str(package.version)) for package in pylock.packages] == [
        ("numpy", "2.3.5"),
        ("torch", "2.14.1+cu126"),
    ]
    wheels = [wheel for package in pylock.packages for wheel in package.wheels or ()]
    assert [(wheel.filename, wheel.url, wheel.hashes, wheel.size) for wheel in wheels] == [
        (file.filename, file.url, {"sha256": file.sha256}, file.size) for file in lock.files
    ]
    assert str(pylock.requires_python) == "==3.12.*"
    assert [str(marker) for marker in pylock.environments or ()] == ['sys_platform == "linux" and platform_machine == "x86_64"']
    assert document["tool"]["accel-env"]["matrix-digest"] == lock.tools["matrix_digest"]
    assert document["tool"]["accel-env"]["exclude-newer"] == "2026-11-30T00:00:00Z"


def test_same_lock_same_bytes(lock: Lock) -> None:
    assert lock_files(lock) == lock_files(lock)
    assert set(lock_files(lock)) == {"requirements.lock", "pylock.toml"}
    assert set(lock_files(lock, pylock=False)) == {"requirements.lock"}


def test_no_moment_of_writing(lock: Lock) -> None:
    import datetime

    today = datetime.date.today()
    both = requirements_text(lock) + pylock_text(lock)
    assert today.isoformat() not in both.replace(lock.exclude_newer, "") and str(os.getpid()) not in both


def test_writing_makes_the_folder_and_replaces(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    write_files(folder, {"x": b"1", ".devcontainer/devcontainer.json": b"{}"})
    write_files(folder, {"x": b"2"})
    assert (folder / "x").read_bytes() == b"2"
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()) == [
        ".devcontainer/devcontainer.json",
        "x",
    ]


@pytest.mark.parametrize("problem", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_full_disk_or_an_interrupt_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: BaseException
) -> None:
    calls: list[int] = []

    def failing(handle: int) -> None:
        calls.append(handle)
        if len(calls) == 2:
            raise problem

    monkeypatch.setattr(os, "fsync", failing)
    kind = ClosureError if isinstance(problem, OSError) else KeyboardInterrupt
    with pytest.raises(kind) as caught:
        write_files(tmp_path / "new" / "deep", {"a": b"1", "b": b"2"})
    assert list(tmp_path.iterdir()) == []
    if isinstance(caught.value, ClosureError):
        assert caught.value.exit_code == 5 and "No space left on device" in caught.value.message


def test_a_failure_keeps_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ClosureError):
        write_files(tmp_path, {"a": b"new"})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"old"}


def test_a_folder_where_a_file_should_be_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    with pytest.raises(ClosureError, match="b"):
        write_files(tmp_path, {"a": b"1", "b": b"2"})
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"")
    with pytest.raises(ClosureError, match="out"):
        write_files(tmp_path / "out", {"a": b"1"})
