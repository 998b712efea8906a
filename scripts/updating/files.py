"""artifacts/<index>.json: read, compared with what an index says today, and written as it is written by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Seen:
    """A file as a source shows it today."""

    name: str
    sha256: str
    size: int | None = None
    tag: str = ""


@dataclass(slots=True)
class Compared:
    """The new text of the file and what was met: `changed` and `gone` are reasons to write nothing."""

    rows: dict[str, Row]
    added: list[str] = field(default_factory=list)
    filled: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)


def name_of(index: str) -> str:
    """The path of an index's file in the matrix."""
    return f"artifacts/{index.replace(':', '-')}.json"


def render(index: str, source: str, rows: Mapping[str, Row]) -> str:
    """The text of an artifacts file: one file a line, sorted."""
    head = [
        f'{{"schema": "accel-env/artifacts/1", "index": {json.dumps(index)},',
        f' "source": {json.dumps(source)},',
        ' "files": {',
    ]
    body = [f"  {json.dumps(name)}: {json.dumps(row, sort_keys=True)}" for name, row in sorted(rows.items())]
    return "\n".join(head) + "\n" + ",\n".join(body) + "\n }}\n"


def compare(known: Mapping[str, Row], seen: Iterable[Seen], source: str, grade: str, *, complete: Iterable[str] = ()) -> Compared:
    """`known` with what is new. `complete`: names that the listing must hold, because it has held them or others saw them there.

    A row whose hash nobody had is filled in; one that has it stays as it is, byte for byte.
    """
    result = Compared({name: dict(row) for name, row in known.items()})
    listed: dict[str, Seen] = {}
    for file in seen:
        listed.setdefault(file.name, file)
        old = result.rows.get(file.name)
        if old is None:
            result.rows[file.name] = _row(file, source, grade)
            result.added.append(file.name)
        elif file.tag and old.get("tag") and old["tag"] != file.tag:
            continue  # one name under two release tags: the first one known is meant
        elif old.get("sha256") and file.sha256 and old["sha256"] != file.sha256:
            result.changed.append(f"{file.name}: sha256 {file.sha256}, the matrix has {old['sha256']}")
        elif not old.get("sha256") and file.sha256 and not old.get("conflict"):
            result.rows[file.name] = {**old, **_row(file, source, grade)}
            result.filled.append(file.name)
    result.gone = sorted(name for name in complete if name not in listed)
    return result


def _row(file: Seen, source: str, grade: str) -> Row:
    row: Row = {"grade": grade, "seen": 1, "sha256": file.sha256 or None, "sources": [source]}
    if file.size is not None:
        row["size"] = file.size
    if file.tag:
        row["tag"] = file.tag
    return row
