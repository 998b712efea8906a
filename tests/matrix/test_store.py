"""Files that are hardly files: each is refused in one sentence."""
from __future__ import annotations

from pathlib import Path

import pytest

from accel_env.errors import InputError
from accel_env.matrix.load import open_matrix
from accel_env.matrix.read import Faults
from accel_env.matrix.store import digest_of, list_files, parse_json, parse_yaml


def complaints(content: bytes) -> list[str]:
    faults = Faults()
    parse_yaml(content, "x.yaml", faults)
    return [str(fault) for fault in faults.items]


@pytest.mark.parametrize(("content", "message"), [
    (b"", "x.yaml: must hold a mapping"),
    (b"a: 1\n---\nb: 2\n", "x.yaml:2: is no YAML: but found another document"),
    (b"a: &x [*x]\n", "x.yaml:1: a[0]: is referred to by an alias (`*name`): no file of the matrix has aliases"),
    (b"a: [" + b"[" * 3000 + b"]" * 3000 + b"]\n", "x.yaml"),
    (b"a: \xff\n", "x.yaml"),
    (b"a: \x00\n", "x.yaml"),
    (b"a:\tb\n c: d\n", "x.yaml"),
    (b"<<: {a: b}\n", "x.yaml:1: the key `<<` is not text to YAML: write it in quotes"),
    (b"1: a\n", "x.yaml:1: the key `1` is not text to YAML: write it in quotes"),
    (b"[a]: b\n", "x.yaml:1: a key is not text to YAML: write it in quotes"),
    (b"a: !!python/object:os.system {}\n", ""),
    (b"a: !!python/name:os.system x\n", "x.yaml:1: a: has the tag tag:yaml.org,2002:python/name:os.system"),
    (b"a: 0x10\n", "x.yaml:1: a: YAML reads 0x10 as int, not as text: write \"0x10\""),
    (b"a: 010\n", "x.yaml:1: a: YAML reads 010 as int"),
    (b"a: 1_000\n", "x.yaml:1: a: YAML reads 1_000 as int"),
    (b"a: 12:30:45\n", "x.yaml:1: a: YAML reads 12:30:45 as int"),
    (b"a: off\n", "x.yaml:1: a: YAML reads off as bool, not as text: write \"off\""),
    (b"a: ~\n", "x.yaml:1: a: has no value"),
    (b"a: .inf\n", "x.yaml:1: a: YAML reads .inf as float"),
    (b"a: 1e3\nb: 1.5\n", "x.yaml:2: b: YAML reads 1.5 as float, not as text: write \"1.5\""),
    (b"a: {b: [x, {c: 1, c: 2}]}\n", "x.yaml:1: a.b[1].c: the key `c` stands there twice"),
])
def test_strict_yaml(content: bytes, message: str) -> None:
    found = complaints(content)
    assert any(line.startswith(message) for line in found) if message else found == []


def test_what_passes() -> None:
    faults = Faults()
    value = parse_yaml(b'a: "3.10"\nb: [1, 0, true, false]\nc: {d: x y}\ne: &k [p]\n', "x.yaml", faults)
    assert value == {"a": "3.10", "b": [1, 0, True, False], "c": {"d": "x y"}, "e": ["p"]}
    assert faults.items == []


@pytest.mark.parametrize(("content", "message"), [
    (b"{", "is no JSON"), (b"[1]", "must hold a mapping"), (b'{"a": 1, "a": 2}', "the key `a` stands there twice"),
    (b"\xff", "is no JSON"), (b"[" * 100000, "is no JSON"),
])
def test_strict_json(content: bytes, message: str) -> None:
    faults = Faults()
    parse_json(content, "x.json", faults)
    assert faults.items[0].message.startswith(message)


def test_only_files_of_the_matrix_are_listed(root: Path) -> None:
    for name in (".hidden.yaml", "notes.txt", "torch/9.9.9.yaml.bak", "torch/.9.9.9.yaml.123"):
        (root / name).write_text("no")
    names = [path for path, _, _ in list_files(str(root))]
    assert names == sorted(names) and "torch/9.1.0.yaml" in names and "artifacts/assets.json" in names
    assert not any("9.9.9" in name or "hidden" in name or "notes" in name for name in names)


@pytest.mark.parametrize("name", ["torch/gone.yaml", "devices/gone.yaml"])
def test_a_file_that_cannot_be_read_is_named(root: Path, name: str) -> None:
    (root / name).symlink_to(root / "nowhere")
    with pytest.raises(InputError, match=r"gone\.yaml: No such file"):
        open_matrix(root)


def test_a_folder_in_place_of_a_file_is_named(root: Path) -> None:
    (root / "torch" / "9.9.9.yaml").mkdir()
    with pytest.raises(InputError, match=r"9\.9\.9\.yaml: Is a directory"):
        open_matrix(root)


def test_a_missing_folder_is_an_empty_one(root: Path) -> None:
    for path in (root / "artifacts").iterdir():
        path.unlink()
    (root / "artifacts").rmdir()
    assert open_matrix(root).artifact_indexes() == ()


def test_the_digest_tells_files_apart() -> None:
    assert digest_of({"a": b"bc"}) != digest_of({"ab": b"c"}) != digest_of({"a": b"b", "c": b""})
    assert digest_of({"a": b"1", "b": b"2"}) == digest_of({"b": b"2", "a": b"1"})
