"""Stand-in wheels: valid, word for word, the same bytes twice."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from accel_env.errors import ClosureError
from accel_env.lock.closer import StandIn
from accel_env.lock.standin import write_stand_in

TORCH = StandIn(
    "torch",
    "2.14.1+cu126",
    "torch-2.14.1+cu126-cp312-cp312-manylinux_2_28_x86_64.whl",
    ("filelock", 'triton==3.8.0; platform_system == "Linux"', 'optree>=0.13.0 ; extra == "optree"'),
    ("opt-einsum",),
)


def read(path: Path) -> tuple[object, dict[str, str]]:
    """The parsed metadata and every member's text."""
    from packaging.metadata import Metadata

    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        texts = {name: archive.read(name).decode() for name in archive.namelist()}
    body = next(text for name, text in texts.items() if name.endswith("METADATA"))
    return Metadata.from_email(body), texts


def test_is_a_wheel_that_packaging_reads(tmp_path: Path) -> None:
    from packaging.metadata import Metadata
    from packaging.utils import parse_wheel_filename

    path = write_stand_in(tmp_path, TORCH)
    metadata, texts = read(path)
    assert isinstance(metadata, Metadata)
    assert parse_wheel_filename(path.name)[:2] == ("torch", metadata.version)
    assert str(metadata.version) == "2.14.1+cu126"
    assert [str(requirement) for requirement in metadata.requires_dist or []] == [
        "filelock",
        'triton==3.8.0; platform_system == "Linux"',
        'optree>=0.13.0; extra == "optree"',
    ]
    assert metadata.provides_extra == ["opt-einsum", "optree"]
    assert set(texts) == {f"torch-2.14.1+cu126.dist-info/{name}" for name in ("METADATA", "WHEEL", "RECORD")}
    assert "Tag: cp312-cp312-manylinux_2_28_x86_64\n" in texts["torch-2.14.1+cu126.dist-info/WHEEL"]


def test_requirements_stand_word_for_word(tmp_path: Path) -> None:
    _, texts = read(write_stand_in(tmp_path, TORCH))
    assert 'Requires-Dist: optree>=0.13.0 ; extra == "optree"\n' in texts["torch-2.14.1+cu126.dist-info/METADATA"]


def test_same_bytes_twice(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert write_stand_in(tmp_path / "a", TORCH).read_bytes() == write_stand_in(tmp_path / "b", TORCH).read_bytes()


def test_label_with_capitals_keeps_the_file_name(tmp_path: Path) -> None:
    name = "flash_attn-2.8.3+cu12torch2.8cxx11abiTRUE-cp312-cp312-linux_x86_64.whl"
    metadata, _ = read(write_stand_in(tmp_path, StandIn("flash-attn", "2.8.3+cu12torch2.8cxx11abitrue", name, ("einops",))))
    assert str(getattr(metadata, "version", "")) == "2.8.3+cu12torch2.8cxx11abitrue"


def test_requirement_of_two_lines_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ClosureError, match="more than one line"):
        write_stand_in(tmp_path, StandIn("a", "1", "a-1-py3-none-any.whl", ("b\nName: evil",)))
