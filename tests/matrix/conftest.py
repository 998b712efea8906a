"""A small complete matrix, copied so that a test may spoil it, and a cache of the test's own."""
from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest
from referencing import Registry, Resource

from accel_env.matrix.read import dotted

GOOD = Path(__file__).parent / "good"
SCHEMAS = Path(__file__).parents[2] / "matrix" / "schema"


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


def _validator(kind: str) -> jsonschema.Draft202012Validator:
    resources = [(path.name, Resource.from_contents(json.loads(path.read_text()))) for path in SCHEMAS.glob("*.json")]
    registry: Registry[object] = Registry().with_resources(resources)
    return jsonschema.Draft202012Validator(json.loads((SCHEMAS / f"{kind}.schema.json").read_text()), registry=registry)


def _where(error: jsonschema.ValidationError) -> Iterator[str]:
    path = ""
    for part in error.absolute_path:
        path = dotted(path, part)
    yield path
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        for key in error.instance:
            yield dotted(path, key)
    if "propertyNames" in error.schema_path:
        yield dotted(path, str(error.instance))


@pytest.fixture(scope="session")
def schema_paths() -> Callable[[str, object], set[str]]:
    """schema_paths(kind, value): the dotted paths that the JSON Schema of the kind complains of."""

    def paths(kind: str, value: object) -> set[str]:
        return {path for error in _validator(kind).iter_errors(value) for path in _where(error)}

    return paths
