"""Rules about what was read out of wheels: it agrees with the matrix, or somebody has seen that it does not."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from accel_env.matrix.amend import Amender, Difference
from accel_env.matrix.compile import Model
from accel_env.matrix.findings import LintProblem, error, note

FILE = "inspected/disagreements.yaml"
_KEYS = ("package", "versions", "subject", "documented", "read", "why")
_OPTIONAL = ("platform", "variant", "build")
Row = Mapping[str, Any]


def rules() -> tuple[Callable[[Model], Iterator[LintProblem]], ...]:
    """The rules of this module."""
    return (readings_agree, readings_are_of_packages)


def readings_agree(model: Model) -> Iterator[LintProblem]:
    """A reading that says otherwise stands in the list of disagreements, with both values; a row of the list is still true."""
    amender = Amender(model.readings, model.artifacts, model.facts, model.documents.get("disagreements", {}))
    for _ in model.candidates(amender):
        pass
    rows = _rows(model)
    yield from _faults(rows)
    used: set[int] = set()
    told: set[tuple[str, ...]] = set()
    for item in amender.differences:
        place = next((place for place, row in enumerate(rows) if _covers(row, item)), None)
        if place is not None:
            used.add(place)
            continue
        key = _key(item)
        if key not in told:
            told.add(key)
            yield error("reading-differs", f"inspected/{item.candidate.name}.json", item.reading.filename, _words(item),
                        f"correct the package's file, or write both values into {FILE}")
    for place in range(len(rows)):
        if place not in used:
            yield error("disagreement-gone", FILE, f"disagreements[{place}]", "no reading differs in this way any more",
                        "remove the row")


def readings_are_of_packages(model: Model) -> Iterator[LintProblem]:
    """A reading is of a package that the matrix models."""
    names = set(model.names())
    for package in sorted({reading.package for reading in model.readings} - names):
        yield note("reading-idle", f"inspected/{package}.json", "", f"the matrix has no package `{package}`")


def _rows(model: Model) -> list[Row]:
    found = model.documents.get("disagreements", {}).get("disagreements")
    return [row for row in found if isinstance(row, Mapping)] if isinstance(found, list) else []


def _faults(rows: list[Row]) -> Iterator[LintProblem]:
    for place, row in enumerate(rows):
        where = f"disagreements[{place}]"
        for key in _KEYS:
            if key not in row:
                yield error("disagreement-key", FILE, where, f"the key `{key}` is missing")
        for key in row:
            if key not in (*_KEYS, *_OPTIONAL):
                yield error("disagreement-key", FILE, where, f"unknown key `{key}`")


def _covers(row: Row, item: Difference) -> bool:
    candidate, check = item.candidate, item.check
    same = row.get("package") == candidate.name and row.get("subject") == check.subject
    same = same and row.get("documented") == check.documented and row.get("read") == check.read
    same = same and candidate.version in row.get("versions", ())
    own = {"platform": candidate.platform, "variant": candidate.variant, "build": candidate.build}
    return same and all(row[key] in (own[key], "any") for key in _OPTIONAL if key in row)


def _key(item: Difference) -> tuple[str, ...]:
    check = item.check
    return item.candidate.label, item.candidate.platform, item.candidate.variant, check.subject, check.documented, check.read


def _words(item: Difference) -> str:
    variant = f" ({item.candidate.variant})" if item.candidate.variant else ""
    return (f"{item.candidate.label}{variant} on {item.candidate.platform}, {item.check.subject}: "
            f"the matrix says {item.check.documented}, the file {item.check.read}")
