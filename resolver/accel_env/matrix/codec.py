"""Frozen values <-> what `marshal` can store: tuples, dicts, text, numbers.

Equal needs and requirement lists of a section are stored once and shared again after reading.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from sys import intern

from accel_env.model import Candidate, Need, Subject

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    Flat = tuple[Any, ...]
    T = TypeVar("T")


def flatten(value: object) -> Flat:
    """The fields of a frozen value, in order; nested values are the caller's business."""
    return tuple(_plain(getattr(value, name)) for name in value.__match_args__)  # type: ignore[attr-defined]


def _plain(value: Any) -> Any:
    if isinstance(value, Subject):
        return value.value
    if isinstance(value, str):
        return intern(value)
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if isinstance(value, Mapping):
        return {intern(key): _plain(item) for key, item in value.items()}
    return flatten(value) if hasattr(value, "__match_args__") else value


def build_all(maker: Callable[..., T], rows: Flat) -> tuple[T, ...]:
    """One value per row."""
    return tuple(maker(*row) for row in rows)


def pack_candidates(candidates: tuple[Candidate, ...]) -> Flat:
    """(needs, requirement lists, rows); a row holds places in the first two."""
    names = Candidate.__match_args__
    needs: dict[Need, int] = {}
    lists: dict[tuple[str, ...], int] = {}
    rows: list[Flat] = []
    for item in candidates:
        parts: dict[str, object] = {name: _plain(getattr(item, name)) for name in names if name not in ("needs", "requires")}
        parts["needs"] = tuple(needs.setdefault(need, len(needs)) for need in item.needs)
        parts["requires"] = lists.setdefault(item.requires, len(lists))
        rows.append(tuple(parts[name] for name in names))
    known: dict[Flat, Flat] = {}
    return _share((tuple(map(flatten, needs)), tuple(map(_plain, lists)), tuple(rows)), known)


def _share(value: Flat, known: dict[Flat, Flat]) -> Flat:
    """The same tuples, equal ones made one object: `marshal` stores and makes them once."""
    shared = tuple(_share(item, known) if isinstance(item, tuple) else item for item in value)
    return known.setdefault(shared, shared)


def unpack_candidates(section: Flat) -> tuple[Candidate, ...]:
    """The candidates that `pack_candidates` stored."""
    flat_needs, lists, rows = section
    subjects = {subject.value: subject for subject in Subject}
    needs = [Need(subjects[subject], *rest) for subject, *rest in flat_needs]
    first, second = Candidate.__match_args__.index("needs"), Candidate.__match_args__.index("requires")
    make: Callable[..., Candidate] = Candidate
    return tuple(
        make(*row[:first], tuple([needs[place] for place in row[first]]), lists[row[second]], *row[second + 1:])
        for row in rows
    )
