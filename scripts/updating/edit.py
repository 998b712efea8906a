"""Drafts in the text of a YAML file: whole blocks are put at their place, everything else stays as it was, byte for byte."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from packaging.version import Version

from accel_env.matrix import store
from accel_env.matrix.read import Faults

WIDTH = 130
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_TOP = re.compile(r"^[A-Za-z_]")
_WORDS = frozenset(["true", "false", "null", "yes", "no", "on", "off", "y", "n"])


def scalar(value: object) -> str:
    """A text, whole number or flag as YAML reads it back; quoted wherever YAML could read something else."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    text = str(value)
    return text if _PLAIN.fullmatch(text) and text.lower() not in _WORDS else json.dumps(text, ensure_ascii=False)


def flow(value: object) -> list[str]:
    """A value in flow style as pieces that belong on one line each, at least."""
    if isinstance(value, Mapping):
        pieces: list[str] = []
        for key, item in value.items():
            inner = flow(item)
            pieces += [f"{key}: {inner[0]}", *inner[1:]]
            pieces[-1] += ","
        return ["{}"] if not pieces else _closed("{", pieces, "}")
    if isinstance(value, (list, tuple)):
        pieces = []
        for item in value:
            pieces += flow(item)
            pieces[-1] += ","
        return ["[]"] if not pieces else _closed("[", pieces, "]")
    return [scalar(value)]


def _closed(opening: str, pieces: list[str], closing: str) -> list[str]:
    last = pieces[-1].removesuffix(",") + closing
    return [opening + last] if len(pieces) == 1 else [opening + pieces[0], *pieces[1:-1], last]


def wrapped(first: str, pieces: list[str], indent: str, glue: str = " ") -> list[str]:
    """`first` and the pieces in lines of at most WIDTH characters, those after the first behind the indent."""
    lines = [first + pieces[0]]
    for piece in pieces[1:]:
        if len(lines[-1]) + len(glue) + len(piece) > WIDTH:
            lines.append(indent + piece)
        else:
            lines[-1] += glue + piece
    return lines


def fact_block(name: str, text: str, source: str, grade: str, checked: str, doubt: str = "") -> list[str]:
    """The lines of one fact."""
    key = name if re.fullmatch(r"[\w.-]+", name) and not re.fullmatch(r"[\d.]+", name) else json.dumps(name)
    lines = [f"  {key}:"]
    for word, value in (("text", text), ("source", source)):
        lines += wrapped(f"    {word}: ", json.dumps(value, ensure_ascii=False).split(" "), "      ")
    lines += [f"    grade: {grade}", f'    checked: "{checked}"']
    return lines + (wrapped("    doubt: ", json.dumps(doubt, ensure_ascii=False).split(" "), "      ") if doubt else [])


def release_block(head: Mapping[str, Any], builds: Sequence[Mapping[str, Any]]) -> list[str]:
    """The lines of one release: `head` without its builds."""
    lines: list[str] = []
    for key, value in head.items():
        lead = "- " if not lines else "  "
        lines += wrapped(f"{lead}{key}: ", flow(value), "   ")
    lines.append("  builds:")
    for build in builds:
        lines += build_lines(build)
    return lines


def build_lines(build: Mapping[str, Any]) -> list[str]:
    """The lines of one build in flow style."""
    return wrapped("  - ", flow(build), "     ")


def parsed(text: str, file: str) -> tuple[dict[str, Any], dict[str, int]]:
    """The mapping in a text and the line of every path. ValueError where it breaks the rules of the matrix's YAML."""
    faults, lines = Faults(), dict[str, int]()
    found = store.parse_yaml(text.encode(), file, faults, lines)
    if faults.items:
        raise ValueError("; ".join(map(str, faults.items[:3])))
    return found, lines


def add_facts(text: str, file: str, facts: list[list[str]]) -> str:
    """The text with facts behind the last one that is there."""
    if not facts:
        return text
    lines = text.split("\n")
    start = next((place for place, line in enumerate(lines) if line.rstrip() == "facts:"), None)
    block = [line for fact in facts for line in fact]
    if start is None:
        head = next(place for place, line in enumerate(lines) if re.match(r"(releases|images|devices|stack|indexes):", line))
        return "\n".join([*lines[:head], "facts:", *block, *lines[head:]])
    end = next((place for place in range(start + 1, len(lines)) if _TOP.match(lines[place])), len(lines))
    while lines[end - 1].startswith("#") or not lines[end - 1].strip():
        end -= 1
    return "\n".join([*lines[:end], *block, *lines[end:]])


def add_release(text: str, file: str, version: str, block: list[str]) -> str:
    """The text with a release before the first one that is older; releases are listed newest first."""
    found, places = parsed(text, file)
    for number, release in enumerate(found["releases"]):
        if Version(release["version"]) < Version(version):
            return _insert(text, _above(text, places[f"releases[{number}]"] - 1), block)
    return _insert(text, _end_of(text, "releases"), block)


def add_build(text: str, file: str, version: str, block: list[str]) -> str:
    """The text with a build at the end of a release's list."""
    found, places = parsed(text, file)
    number = next(place for place, release in enumerate(found["releases"]) if release["version"] == version)
    after = places.get(f"releases[{number + 1}]")
    return _insert(text, _above(text, after - 1) if after else _end_of(text, "releases"), block)


def add_items(text: str, key: str, block: list[str]) -> str:
    """The text with lines at the end of a top-level list."""
    return _insert(text, _end_of(text, key), block)


def _insert(text: str, place: int, block: list[str]) -> str:
    lines = text.split("\n")
    return "\n".join([*lines[:place], *block, *lines[place:]])


def _above(text: str, place: int) -> int:
    """The line before the comments that belong to this one."""
    lines = text.split("\n")
    while lines[place - 1].lstrip().startswith("#"):
        place -= 1
    return place


def _end_of(text: str, key: str) -> int:
    """The line behind the last one of a top-level list."""
    lines = text.split("\n")
    start = next(place for place, line in enumerate(lines) if line.startswith(f"{key}:"))
    end = next((place for place in range(start + 1, len(lines)) if _TOP.match(lines[place])), len(lines))
    while end > start + 1 and (lines[end - 1].startswith("#") or not lines[end - 1].strip()):
        end -= 1
    return end


def only_added(before: Mapping[str, Any], after: Mapping[str, Any], path: str = "") -> str:
    """Where something that was there has changed or is gone; empty where things were only added."""
    for key, old in before.items():
        here = f"{path}.{key}" if path else key
        if key not in after:
            return here
        new = after[key]
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            if wrong := only_added(old, new, here):
                return wrong
        elif isinstance(old, list) and isinstance(new, list):
            if wrong := _kept(old, new, here):
                return wrong
        elif old != new:
            return here
    return ""


def _kept(old: list[Any], new: list[Any], path: str) -> str:
    """Old items in their order among the new ones; one may have gained something itself."""
    rest = iter(new)
    for place, item in enumerate(old):
        for other in rest:
            if item == other:
                break
            if isinstance(item, Mapping) and isinstance(other, Mapping) and _same(item, other) and not only_added(item, other):
                break
        else:
            return f"{path}[{place}]"
    return ""


def _same(item: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return any(key in item and item[key] == other.get(key) for key in ("version", "ref", "id", "name"))
