"""Two states of the matrix side by side: what is in one alone, and what they say differently. Plain rows, ready for JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accel_env.matrix.load import Matrix
    from accel_env.model import Candidate

Json = dict[str, Any]
Key = tuple[str, ...]
_KEY = ("version", "build", "variant", "index", "stack", "platform")
_SILENT = ("name", "fact")  # a fact under another id says the same


def compare(a: Matrix, b: Matrix) -> Json:
    """Added, gone and changed by kind; a kind without any is left out."""
    found: Json = {"packages": _packages(a, b), "facts": _facts(a, b)}
    kinds: dict[str, Callable[[Matrix], Mapping[str, object]]] = {
        "stacks": lambda m: {f"{s.name}-{r.version}": r for s in m.stacks().values() for r in s.releases},
        "devices": lambda m: {f"{row.vendor} {row.name}": row for row in m.devices()},
        "images": lambda m: {image.ref: image for image in m.images()},
        "indexes": lambda m: m.indexes(),
        "pythons": lambda m: {row.version: row for row in m.pythons()},
        "conflicts": lambda m: {row.id: row for row in m.conflicts()},
        "profiles": lambda m: m.profiles(),
        "bundles": lambda m: m.bundles(),
    }
    for kind, read in kinds.items():
        found[kind] = _rows(read(a), read(b))
    found["files"] = _files(a, b)
    return {kind: rows for kind, rows in found.items() if rows}


def _rows(a: Mapping[str, object], b: Mapping[str, object]) -> Json:
    """{added, gone, changed: {name: [field]}} of two mappings of frozen values."""
    changed = {name: names for name in a if name in b and (names := _fields(a[name], b[name]))}
    found: Json = {
        "added": [name for name in b if name not in a],
        "gone": [name for name in a if name not in b],
        "changed": changed,
    }
    return {key: rows for key, rows in found.items() if rows}


def _fields(a: Any, b: Any) -> list[str]:
    return [one.name for one in fields(a) if one.name not in _SILENT and getattr(a, one.name) != getattr(b, one.name)]


def _packages(a: Matrix, b: Matrix) -> Json:
    """Per package: releases and builds that came or went, and builds that changed, with the fields that did."""
    found: Json = {}
    for name in sorted(a.package_names() | b.package_names()):
        row = _package(_candidates(a, name), _candidates(b, name))
        if name not in a.package_names() or name not in b.package_names():
            row = {"is": "new" if name in b.package_names() else "gone", **row}
        if row:
            found[name] = row
    return found


def _candidates(matrix: Matrix, name: str) -> dict[Key, Candidate]:
    if name not in matrix.package_names():
        return {}
    return {
        tuple(getattr(one, key) for key in _KEY): one
        for platform in matrix.platforms(name)
        for one in matrix.candidates(name, platform)
    }


def _package(a: Mapping[Key, Candidate], b: Mapping[Key, Candidate]) -> Json:
    versions = [list(dict.fromkeys(key[0] for key in rows)) for rows in (a, b)]
    both = set(versions[0]) & set(versions[1])
    row: Json = {
        "releases_added": [version for version in versions[1] if version not in both],
        "releases_gone": [version for version in versions[0] if version not in both],
        "builds_added": _labels(key for key in b if key not in a and key[0] in both),
        "builds_gone": _labels(key for key in a if key not in b and key[0] in both),
        "builds_changed": _changed(a, b),
    }
    return {key: value for key, value in row.items() if value}


def _labels(keys: Any) -> list[str]:
    """`version+build (index, platforms)`, one per build."""
    found: dict[tuple[str, str], list[str]] = {}
    for version, build, variant, index, _, platform in keys:
        label = version + (f"+{build}" if build not in ("", "any") else "") + (f" {variant}" if variant else "")
        found.setdefault((label, index), []).append(platform)
    return [f"{label} ({index}, {', '.join(dict.fromkeys(platforms))})" for (label, index), platforms in found.items()]


def _changed(a: Mapping[Key, Candidate], b: Mapping[Key, Candidate]) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = {}
    for key, old in a.items():
        new = b.get(key)
        if new is not None and (names := _fields(_plain(old), _plain(new))):
            found.setdefault(_labels([key])[0].partition(" (")[0], {}).update(dict.fromkeys(names))
    return {label: list(names) for label, names in found.items()}


def _plain(candidate: Candidate) -> Candidate:
    return replace(candidate, needs=tuple(replace(need, fact="") for need in candidate.needs))


def _facts(a: Matrix, b: Matrix) -> Json:
    """Added and gone by id, changed by id with the fields; `rechecked`: how many only have another day."""
    old, new = ({fact.id: fact for fact in matrix.facts()} for matrix in (a, b))
    found = _rows(old, new)
    changed = found.get("changed", {})
    kept = {name: names for name, names in changed.items() if names != ["checked"]}
    row = {**found, "changed": kept, "rechecked": len(changed) - len(kept)}
    return {key: value for key, value in row.items() if value}


def _files(a: Matrix, b: Matrix) -> Json:
    """Per index: how many files came, went, got a hash; and by name those whose hash is another one."""
    found: Json = {}
    for index in sorted({*a.artifact_indexes(), *b.artifact_indexes()}):
        old, new = a.artifact_files(index), b.artifact_files(index)
        both = old.keys() & new.keys()
        row: Json = {
            "added": len(new.keys() - old.keys()),
            "gone": len(old.keys() - new.keys()),
            "hashed": sum(not old[name].sha256 and bool(new[name].sha256) for name in both),
            "changed": sorted(name for name in both if old[name].sha256 and old[name].sha256 != new[name].sha256),
        }
        if any(row.values()):
            found[index] = {key: value for key, value in row.items() if value}
    return found
