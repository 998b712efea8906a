"""Where two images differ: the first layer, its files, or the configuration."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from accel_env.build.archive import Archive, Entry, Files

SHOWN = 10


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that differs. `where`: a path in the image, or a key of its configuration; `what`: how, first against second."""

    where: str
    what: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """`layer`: the number of the first layer that differs, counted from 1; 0 when all are equal. `differences`: at most SHOWN of
    them, sorted; `more`: how many were left out."""

    layer: int
    differences: tuple[Difference, ...]
    more: int = 0


def first_layer(first: tuple[str, ...], second: tuple[str, ...]) -> int:
    """The number of the first layer that differs, from 1; 0 when the images have the same layers."""
    for number, (one, other) in enumerate(zip(first, second, strict=False), 1):
        if one != other:
            return number
    return 0 if len(first) == len(second) else min(len(first), len(second)) + 1


def compare_layers(first: tuple[str, ...], second: tuple[str, ...], one: Archive, other: Archive) -> Comparison:
    """The differences of two images whose layers (diffIDs) are `first` and `second`."""
    number = first_layer(first, second)
    if number > min(len(first), len(second)):
        longer = "second" if len(second) > len(first) else "first"
        return Comparison(number, (Difference(f"layer {number}", f"only in the {longer} image"),))
    found = list(compare_files(one.layers.get(first[number - 1], {}), other.layers.get(second[number - 1], {})))
    if not found:
        found = [Difference(f"layer {number}", "the same files, written in another order or by another writer of archives")]
    return Comparison(number, tuple(found[:SHOWN]), max(0, len(found) - SHOWN))


def compare_files(first: Files, second: Files) -> Iterator[Difference]:
    """What differs between two trees, by path."""
    for path in sorted(first.keys() | second.keys()):
        one, other = first.get(path), second.get(path)
        if one is None or other is None:
            yield Difference(path, "only in the second" if one is None else "only in the first")
        elif what := ", ".join(_entries(one, other)):
            yield Difference(path, what)


def _entries(one: Entry, other: Entry) -> Iterator[str]:
    if one.kind != other.kind:
        yield f"{one.kind} against {other.kind}"
        return
    if one.digest != other.digest:
        sizes = f"{one.size} against {other.size} bytes" if one.size != other.size else f"both {one.size} bytes"
        yield f"content ({sizes})"
    if one.link != other.link:
        yield f"target {one.link} against {other.link}"
    if one.mode != other.mode:
        yield f"mode {one.mode:o} against {other.mode:o}"
    if one.owner != other.owner:
        yield f"owner {one.owner[0]}:{one.owner[1]} against {other.owner[0]}:{other.owner[1]}"
    if one.mtime != other.mtime:
        yield f"time {_moment(one.mtime)} against {_moment(other.mtime)}"


def _moment(seconds: float) -> str:
    moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ") if moment.microsecond == 0 else moment.isoformat()


def compare_configs(one: bytes, other: bytes) -> Comparison:
    """The differences of two configurations, by key."""
    found = list(_values("", json.loads(one), json.loads(other)))
    if not found and one != other:
        found = [Difference("configuration", "the same values, written differently")]
    return Comparison(0, tuple(found[:SHOWN]), max(0, len(found) - SHOWN))


def _values(where: str, one: Any, other: Any) -> Iterator[Difference]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            yield from _values(f"{where}.{key}".lstrip("."), one.get(key), other.get(key))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for place, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from _values(f"{where}[{place}]", left, right)
    elif one != other:
        yield Difference(where, f"{_short(one)} against {_short(other)}")


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}..."
