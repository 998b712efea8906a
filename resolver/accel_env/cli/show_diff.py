"""The differences of two states of the matrix, as text and as markdown for a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from accel_env.cli.text import Json, items, mapping, string, wrap

SHOWN = 12  # names in one row of text; --json has all


def diff_lines(answer: Json, columns: int) -> list[str]:
    """Plans first, then what the states hold."""
    lines = [f"{_state(answer, 'a')} -> {_state(answer, 'b')}"]
    if string(answer, "same") == "True":
        return [*lines, "no difference"]
    for title, rows in _sections(answer):
        lines += ["", title]
        for row in rows:
            lines += wrap(row, columns, "  ", "    ")
    return lines


def markdown_lines(answer: Json, columns: int) -> list[str]:
    """The same with headings and lists; nothing is wrapped."""
    del columns
    lines = [f"`{_state(answer, 'a')}` -> `{_state(answer, 'b')}`"]
    if string(answer, "same") == "True":
        return [*lines, "", "No difference."]
    for title, rows in _sections(answer):
        lines += ["", f"### {title[0].upper()}{title[1:]}", "", *(f"- {_escaped(row)}" for row in rows)]
    return lines


def _state(answer: Json, side: str) -> str:
    return f"{string(answer, side, 'state')} ({string(answer, side, 'version')}, {string(answer, side, 'digest')[7:19]})"


def _escaped(text: str) -> str:
    """Text out of data as markdown shows it, without making links, mentions or markup of it."""
    for char in "\\`*_[]<>|#@":
        text = text.replace(char, f"\\{char}" if char != "@" else "@\u200b")
    return text


def _sections(answer: Json) -> Iterator[tuple[str, list[str]]]:
    plans = mapping(answer, "plans")
    if plans:
        moved = items(plans, "moved")
        yield f"plans: {len(moved)} of {string(plans, 'compared')} move", list(_moves(moved))
    for kind, rows in mapping(answer, "data").items():
        if isinstance(rows, Mapping):
            yield kind, list(_files(rows) if kind == "files" else _packages(rows) if kind == "packages" else _kind(rows))


def _moves(moved: Sequence[object]) -> Iterator[str]:
    """One row per change, with the machines and asks that it happens to."""
    found: dict[str, dict[str, list[str]]] = {}
    for row in moved:
        by_ask = found.setdefault("; ".join(map(str, items(row, "changes"))), {})
        by_ask.setdefault(string(row, "asks"), []).append(string(row, "profile"))
    for change, by_ask in sorted(found.items(), key=lambda one: -sum(map(len, one[1].values()))):
        places = "; ".join(f"{ask} on {_some(profiles)}" for ask, profiles in by_ask.items())
        yield f"{change}: {places}"


def _some(names: Sequence[object]) -> str:
    more = len(names) - SHOWN
    return ", ".join(map(str, names[:SHOWN])) + (f" and {more} more" if more > 0 else "")


def _packages(rows: Json) -> Iterator[str]:
    words = {
        "releases_added": "new releases",
        "releases_gone": "releases gone",
        "builds_added": "new builds",
        "builds_gone": "builds gone",
    }
    for name in rows:
        row = mapping(rows, name)
        parts = [string(row, "is")] if string(row, "is") else []
        parts += [f"{word}: {_some(items(row, key))}" for key, word in words.items() if items(row, key)]
        changed = mapping(row, "builds_changed")
        if changed:
            parts.append("changed: " + _some([f"{label} ({', '.join(map(str, items(changed, label)))})" for label in changed]))
        yield f"{name}: {'; '.join(parts)}"


def _kind(rows: Json) -> Iterator[str]:
    for key in ("added", "gone"):
        if items(rows, key):
            yield f"{key}: {_some(items(rows, key))}"
    changed = mapping(rows, "changed")
    if changed:
        yield "changed: " + _some([f"{name} ({', '.join(map(str, items(changed, name)))})" for name in changed])
    if string(rows, "rechecked"):
        yield f"checked again: {string(rows, 'rechecked')}"


def _files(rows: Json) -> Iterator[str]:
    for index in rows:
        row = mapping(rows, index)
        counts = [f"{string(row, key)} {word}" for key, word in (("added", "new"), ("gone", "gone"), ("hashed", "now hashed"))
                  if string(row, key)]  # fmt: skip
        other = items(row, "changed")
        yield f"{index}: {', '.join([*counts, *([f'other hash: {_some(other)}'] if other else [])])}"
