"""The loader and the JSON Schemas refuse the same files, at the same place."""
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml

from accel_env.errors import InputError
from accel_env.matrix.compile import read_model

SchemaPaths = Callable[[str, object], set[str]]
HERE = Path(__file__).parent
SCHEMAS = HERE.parents[1] / "matrix" / "schema"
BAD = sorted((HERE / "bad").iterdir())
GOOD = sorted(path for path in (HERE / "good").rglob("*.*") if path.name != "closure.yaml")
PLACES = {
    "package": "packages/bad.yaml", "stack": "stacks/bad.yaml", "devices": "devices/bad.yaml", "artifacts": "artifacts/bad.json",
    "overlay": "bad.yaml",
}


def loader_paths(kind: str, content: str, tmp_path: Path) -> tuple[set[str], str]:
    """The dotted paths that the loader complains of, and the whole message."""
    root = tmp_path / "matrix"
    name = PLACES.get(kind, f"{kind}.yaml")
    target = (tmp_path if kind == "overlay" else root) / name
    for folder in (root, target.parent):
        folder.mkdir(parents=True, exist_ok=True)
    target.write_text(content)
    shown = f"overlay/{name}" if kind == "overlay" else name
    with pytest.raises(InputError) as caught:
        read_model(str(root), (str(target),) if kind == "overlay" else ())
    assert caught.value.exit_code == 3
    found = set()
    for line in caught.value.context:
        assert line.startswith(shown), line
        rest = line.removeprefix(shown).partition(": ")[2]
        found.add(rest.partition(": ")[0])
    return found, str(caught.value)


def expectation(path: Path) -> tuple[str, str, str, str]:
    """(kind, dotted path, who refuses, content)."""
    text = path.read_text()
    if path.suffix == ".json":
        whole = json.loads(text)
        expect = whole["expect"]
        return expect["kind"], expect["path"], expect["who"], json.dumps(whole["file"])
    kind, place, who = text.splitlines()[0].removeprefix("# ").split(" | ")
    return kind, place.strip(), who, text


def test_schemas_are_schemas() -> None:
    for path in SCHEMAS.glob("*.json"):
        jsonschema.Draft202012Validator.check_schema(json.loads(path.read_text()))


def test_the_good_files_are_of_every_kind() -> None:
    kinds = {yaml.safe_load(path.read_text())["schema"].split("/")[1] for path in GOOD}
    assert kinds | {"overlay", "common"} == {path.name.partition(".")[0] for path in SCHEMAS.glob("*.json")}


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.relative_to(HERE).as_posix())
def test_good_files_pass_both(path: Path, schema_paths: SchemaPaths) -> None:
    value = yaml.safe_load(path.read_text())
    kind = value["schema"].split("/")[1]
    assert schema_paths(kind, value) == set()


def test_the_good_files_load() -> None:
    assert read_model(str(HERE / "good")).names() == ("ext", "numpy", "torch", "triton")


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_bad_files_fail_both(path: Path, tmp_path: Path, schema_paths: SchemaPaths) -> None:
    kind, place, who, content = expectation(path)
    found, message = loader_paths(kind, content, tmp_path)
    if place:
        assert place in found, message
    assert "hint: " in message
    if who == "loader":
        return
    value = yaml.safe_load(content)
    refused = schema_paths(kind, value)
    assert refused
    if who == "both":
        assert place in refused


def test_bad_yaml_names_the_line(tmp_path: Path) -> None:
    _, _, _, content = expectation(HERE / "bad" / "version-unquoted.yaml")
    _, message = loader_paths("package", content, tmp_path)
    line = next(number for number, text in enumerate(content.splitlines(), 1) if "3.10" in text)
    assert f"packages/bad.yaml:{line}: releases[0].version: YAML reads 3.10 as float, not as text: write \"3.10\"" in message
