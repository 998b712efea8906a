"""`search`: the lexicographic best of a field, or nothing.

resolvelib gives *a* solution; the best one is found by pinning the best value of one term after the other: first choices before
third parties' builds and fallbacks, then the newest torch, the best stack, the asks in their order, the Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from accel_env.solve.domain import Domain, bits, tried_pythons
from accel_env.solve.field import Field
from accel_env.solve.provider import resolve
from accel_env.solve.slot import Slot
from accel_env.solve.verdict import SOURCE_RANK
from accel_env.solve.versions import minor

LOCKABLE_WITHIN = 2
Banned = frozenset[tuple[str, int]]
Grouping = Callable[[Slot, int], Iterator[int]]


@dataclass(frozen=True, slots=True)
class Found:
    """A choice: module -> index in its slot. `key` orders choices, smaller is better. `hashed`: among lockable builds."""

    chosen: dict[str, int]
    python: int
    rank: int
    hashed: bool
    key: tuple[int, ...]


def search(field: Field, active: int | None = None) -> Found | None:
    """The best choice under the items of `active` (all by default), honouring the policy's preference and the nogoods."""
    return _without_nogoods(field, field.everything if active is None else active, frozenset())


def feasible(field: Field, active: int) -> bool:
    """True when some choice exists under the items of `active`."""
    top = _top(field, active)
    for python in bits(tried_pythons(field, active)):
        domain = Domain.of(field, active, python, top, False)
        if domain.propagate() and resolve(domain) is not None:
            return True
    return False


def _without_nogoods(field: Field, active: int, banned: Banned) -> Found | None:
    found = _preferred(field, active, banned)
    if found is None:
        return None
    broken = _broken(field, found)
    if not broken:
        return found
    others = [o for pick in broken if (o := _without_nogoods(field, active, banned | {pick}))]
    return min(others, key=lambda f: f.key, default=None)


def _broken(field: Field, found: Found) -> list[tuple[str, int]]:
    """The picks of a nogood that the choice repeats whole; empty when it repeats none."""
    have = {(e.name, e.version, e.build): (m, i) for m, i in found.chosen.items() for e in [field.slots[m].entries[i].candidate]}
    for nogood in field.problem.nogoods:
        if all(pick in have for pick in nogood.picks):
            return [have[pick] for pick in nogood.picks]
    return []


def _preferred(field: Field, active: int, banned: Banned) -> Found | None:
    """First choices before second ones; among them lockable ones unless a much newer torch is only to be had without hashes."""
    policy = field.problem.policy
    for rank in range(_top(field, active) + 1):
        newest = best(field, active, rank, hashed=False, banned=banned)
        if newest is None:
            continue
        if policy.prefer == "newest" or _lockable(field, newest):
            return newest
        locked = best(field, active, rank, hashed=True, banned=banned)
        if locked and (policy.prefer == "lockable" or _near(field, locked, newest)):
            return locked
        return newest
    return None


def _lockable(field: Field, found: Found) -> bool:
    """True when the hash of every file of the choice is known."""
    return all(field.slots[m].entries[i].hashed >> found.python & 1 for m, i in found.chosen.items())


def _top(field: Field, active: int) -> int:
    """The last rank that counts: source builds are out while their bit is in force."""
    return SOURCE_RANK - bool(active & field.source)


def _near(field: Field, locked: Found, newest: Found) -> bool:
    """True when the lockable torch is at most LOCKABLE_WITHIN minor releases behind the newest one."""
    if "torch" not in newest.chosen or "torch" not in locked.chosen:
        return True
    entries = field.slots["torch"].entries
    minors = sorted({minor(e.candidate.version) for e in entries})
    places = [minors.index(minor(entries[f.chosen["torch"]].candidate.version)) for f in (locked, newest)]
    return places[1] - places[0] <= LOCKABLE_WITHIN


def best(field: Field, active: int, rank: int, *, hashed: bool, banned: Banned = frozenset()) -> Found | None:
    """The lexicographic best up to `rank`. One solve over any Python bounds the answer; usually a Python reaches it."""
    bound = _climb(field, _domain(field, active, None, rank, hashed, banned))
    if bound is None:
        return None
    _, pins = bound
    tried = list(bits(tried_pythons(field, active)))
    for python in tried:
        domain = _domain(field, active, python, rank, hashed, banned)
        for module, mask in pins:
            domain.live[module] &= mask
        chosen = resolve(domain) if domain.propagate() else None
        if chosen is not None:
            return _found(field, chosen, python, rank, hashed)
    rows = []
    for python in tried:
        climbed = _climb(field, _domain(field, active, python, rank, hashed, banned))
        if climbed is not None:
            rows.append(_found(field, climbed[0], python, rank, hashed))
    return min(rows, key=lambda f: f.key, default=None)


def _domain(field: Field, active: int, python: int | None, rank: int, hashed: bool, banned: Banned) -> Domain:
    domain = Domain.of(field, active, python, rank, hashed)
    for module, index in banned:
        domain.live[module] &= ~(1 << index)
    return domain


def _found(field: Field, chosen: dict[str, int], python: int, rank: int, hashed: bool) -> Found:
    key = [rank, chosen.get("torch", 0)]
    for module in dict.fromkeys(m for _, m in field.asked):
        if module in chosen:
            key.append(next(n for n, mask in enumerate(field.slots[module].by_version) if mask >> chosen[module] & 1))
    return Found(chosen, python, rank, hashed, (*key, python))


def _climb(field: Field, domain: Domain) -> tuple[dict[str, int], list[tuple[str, int]]] | None:
    """Pin term by term. Returns the choice and the pins (slot, mask), or None when the domain has no solution."""
    chosen = resolve(domain) if domain.propagate() else None
    if chosen is None:
        return None
    pins: list[tuple[str, int]] = []
    for module, grouping in _terms(field, domain):
        for mask in grouping(field.slots[module], domain.live[module]):
            if chosen.get(module) is not None and mask >> chosen[module] & 1:
                break
            tried = domain.restrict(module, mask)
            other = resolve(tried) if tried.propagate() else None
            if other is not None:
                chosen = other
                break
        else:
            continue
        pins.append((module, mask))
        domain = domain.restrict(module, mask)
        domain.propagate()
    return chosen, pins


def _terms(field: Field, domain: Domain) -> Iterator[tuple[str, Grouping]]:
    modules = [m for m in dict.fromkeys(m for _, m in field.asked) if m in domain.required]
    if "torch" in domain.required:
        yield "torch", _by_version
        yield "torch", _by_stack
    for module in modules:
        if module != "torch":
            yield module, _by_version


def _by_version(slot: Slot, live: int) -> Iterator[int]:
    """Masks of the live candidates of one version each, newest first."""
    return (mask & live for mask in slot.by_version if mask & live)


def _by_stack(slot: Slot, live: int) -> Iterator[int]:
    """Masks of the live candidates of one stack each, best first."""
    return (mask & live for mask in slot.by_stack if mask & live)
