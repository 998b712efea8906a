"""Frozen values <-> what `marshal` can store: tuples, dicts, text, numbers.

Equal needs and requirement lists of a section are stored once and shared again after reading.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from sys import intern

from accel_env.model import Candidate, Need, Subject

Parts = tuple[tuple[Need, ...], tuple[Need, ...]]
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
    """(needs, parts, lists of needs, requirement lists, rows); a row holds places in the third and fourth.

    A list of needs holds its places in the first, and in the second those of what the host decides and of what partners do.
    """
    names = Candidate.__match_args__
    needs: dict[Need, int] = {}
    parts: dict[Flat, int] = {}
    wanted: dict[Flat, int] = {}
    lists: dict[tuple[str, ...], int] = {}
    rows: list[Flat] = []
    for item in candidates:
        fields: dict[str, object] = {name: _plain(getattr(item, name)) for name in names if name not in ("needs", "requires")}
        # hashing a need is what takes the time here: once each
        places = {id(need): needs.setdefault(need, len(needs)) for need in item.needs}
        both = (tuple(places[id(need)] for need in part) for part in split(item.needs))
        ground, partners = (parts.setdefault(part, len(parts)) for part in both)
        whole = (tuple(places.values()), ground, partners)
        fields["needs"] = wanted.setdefault(whole, len(wanted))
        fields["requires"] = lists.setdefault(item.requires, len(lists))
        rows.append(tuple(fields[name] for name in names))
    known: dict[Flat, Flat] = {}
    return _share((tuple(map(flatten, needs)), tuple(parts), tuple(wanted), tuple(map(_plain, lists)), tuple(rows)), known)


def split(needs: tuple[Need, ...]) -> Parts:
    """(what the host decides, what other picks decide); what nobody has published is missing whoever the partner is."""
    partners = tuple(n for n in needs if n.subject in (Subject.TORCH, Subject.PACKAGE) and not n.unknown)
    return tuple(n for n in needs if n.unknown or n.subject not in (Subject.TORCH, Subject.PACKAGE)), partners


def _share(value: Flat, known: dict[Flat, Flat]) -> Flat:
    """The same tuples, equal ones made one object: `marshal` stores and makes them once."""
    shared = tuple(_share(item, known) if isinstance(item, tuple) else item for item in value)
    return known.setdefault(shared, shared)


def unpack_candidates(section: Flat) -> tuple[tuple[Candidate, ...], dict[int, Parts]]:
    """The candidates that `pack_candidates` stored, and by identity of their lists of needs the two parts of each.

    Equal lists and equal parts are one object.
    """
    flat_needs, flat_parts, wanted, lists, rows = section
    subjects = {subject.value: subject for subject in Subject}
    needs = [Need(subjects[subject], *rest) for subject, *rest in flat_needs]
    parts = [tuple([needs[place] for place in part]) for part in flat_parts]
    whole = [tuple([needs[place] for place in places]) for places, _, _ in wanted]
    first, second = Candidate.__match_args__.index("needs"), Candidate.__match_args__.index("requires")
    make: Callable[..., Candidate] = Candidate
    candidates = tuple(make(*row[:first], whole[row[first]], lists[row[second]], *row[second + 1:]) for row in rows)
    both = {id(item): (parts[ground], parts[partners]) for item, (_, ground, partners) in zip(whole, wanted, strict=True)}
    return candidates, both
