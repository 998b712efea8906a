"""Frozen values <-> what `marshal` can store: tuples, dicts, text, numbers.

Equal needs and requirement lists of a section are stored once and shared again after reading.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from sys import intern
from typing import Any, TypeVar

from accel_env.model import Candidate, Need, Subject

Flat = tuple[Any, ...]
T = TypeVar("T")


def flatten(value: object) -> Flat:
    """The fields of a frozen value, in order; nested values are the caller's business."""
    return tuple(_plain(getattr(value, item.name)) for item in fields(value))  # type: ignore[arg-type]


def _plain(value: Any) -> Any:
    if isinstance(value, Subject):
        return value.value
    if isinstance(value, str):
        return intern(value)
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if isinstance(value, Mapping):
        return {intern(key): _plain(item) for key, item in value.items()}
    return flatten(value) if hasattr(value, "__dataclass_fields__") else value


def build_all(maker: Callable[..., T], rows: Flat) -> tuple[T, ...]:
    """One value per row."""
    return tuple(maker(*row) for row in rows)


def pack_candidates(candidates: tuple[Candidate, ...]) -> Flat:
    """(needs, requirement lists, rows); a row holds places in the first two."""
    needs: dict[Need, int] = {}
    lists: dict[tuple[str, ...], int] = {}
    rows: list[Flat] = []
    for item in candidates:
        row = list(flatten(Candidate(**{**_fields(item), "needs": (), "requires": ()})))
        row[_NEEDS] = tuple(needs.setdefault(need, len(needs)) for need in item.needs)
        row[_REQUIRES] = lists.setdefault(item.requires, len(lists))
        rows.append(tuple(row))
    return tuple(map(flatten, needs)), tuple(map(_plain, lists)), tuple(rows)


def unpack_candidates(section: Flat) -> tuple[Candidate, ...]:
    """The candidates that `pack_candidates` stored."""
    flat_needs, lists, rows = section
    subjects = {subject.value: subject for subject in Subject}
    needs = [Need(subjects[subject], *rest) for subject, *rest in flat_needs]
    first, second = _NEEDS, _REQUIRES
    make: Callable[..., Candidate] = Candidate
    return tuple(
        make(*row[:first], tuple([needs[place] for place in row[first]]), lists[row[second]], *row[second + 1:])
        for row in rows
    )


def _fields(item: Candidate) -> dict[str, Any]:
    return {part.name: getattr(item, part.name) for part in fields(item)}


_NAMES = [part.name for part in fields(Candidate)]
_NEEDS = _NAMES.index("needs")
_REQUIRES = _NAMES.index("requires")
