"""A small complete matrix, copied so that a test may spoil it, and a cache of the test's own."""
from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

GOOD = Path(__file__).parent / "good"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The compiled form goes into the test's folder, and nobody's ACCEL_ENV_MATRIX counts."""
    place = tmp_path / "cache"
    monkeypatch.setenv("ACCEL_ENV_CACHE", str(place))
    monkeypatch.delenv("ACCEL_ENV_MATRIX", raising=False)
    return place


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A copy of the small matrix."""
    return Path(shutil.copytree(GOOD, tmp_path / "matrix"))


@pytest.fixture
def edit(root: Path) -> Callable[[str, str, str], None]:
    """edit(file, old, new): replaces the one occurrence of a text in the copy."""

    def change(file: str, old: str, new: str) -> None:
        text = (root / file).read_text()
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {file}"
        (root / file).write_text(text.replace(old, new))

    return change
