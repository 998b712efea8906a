"""The live part of a field under some items and one Python (or any), made consistent by propagation."""

from __future__ import annotations

from collections.abc import Iterator

from accel_env.solve.field import Field


def bits(mask: int) -> Iterator[int]:
    """Indices of the set bits, lowest (best) first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


class Domain:
    """Live candidates per slot. `python` None: any of the tried Pythons will do, a relaxation that bounds the answer."""

    def __init__(self, field: Field, live: dict[str, int], required: frozenset[str], python: int | None) -> None:
        self.field = field
        self.live = live
        self.required = set(required)
        self.python = python
        self.empty = ""

    @classmethod
    def of(cls, field: Field, active: int, python: int | None, rank: int, hashed: bool) -> Domain:
        """The domain under the items of `active`: candidates up to a rank, with known hashes only if `hashed`."""
        tried = tried_pythons(field, active) if python is None else 1 << python
        live = {}
        for module, slot in field.slots.items():
            live[module] = 0
            for mask, entry in slot.alike:
                fits = entry.pythons & (entry.hashed if hashed else -1) & tried
                if fits and entry.rank <= rank and not (entry.charges and entry.out(active)):
                    live[module] |= mask
        order = {id(ask): n for n, ask in enumerate(field.problem.asks)}
        on = {item.index for item in field.items if item.kind == "ask" and item.bit & active}
        required = frozenset(module for ask, module in field.asked if order[id(ask)] in on)
        return cls(field, live, required, python)

    def restrict(self, module: str, mask: int) -> Domain:
        """A copy in which a slot keeps only `mask`."""
        live = dict(self.live)
        live[module] &= mask
        return Domain(self.field, live, frozenset(self.required), self.python)

    def propagate(self) -> bool:
        """Drop what no partner supports until nothing changes; False when a required slot runs empty."""
        settled: dict[str, tuple[int, ...]] = {}
        changed = True
        while changed:
            changed = False
            for module in sorted(self.required):
                if not self.live[module]:
                    self.empty = module
                    return False
                state = self._around(module)
                if settled.get(module) != state:
                    changed = self._step(module) or changed
                    settled[module] = self._around(module)
        return True

    def _around(self, module: str) -> tuple[int, ...]:
        """What a step over a slot depends on: the live sets of all slots, and which of them are required."""
        return (len(self.required), *self.live.values()) if self.live[module] else ()

    def _step(self, module: str) -> bool:
        """One pass over a slot's candidates: prune them by their partners and the partners by them."""
        field, live = self.field, self.live
        union: dict[str, int] = {}
        count: dict[str, int] = {}
        must: dict[str, int] = {}
        kept = total = 0
        for group in field.groups(module, self.python or 0, live[module]):
            if any(not live[t] & mask and (always or t in self.required) for t, mask, always, _ in group.links):
                continue
            kept |= group.mask & live[module]
            total += 1
            for target, mask, always in group.joined:
                union[target] = union.get(target, 0) | mask
                count[target] = count.get(target, 0) + 1
                must[target] = must.get(target, 0) + always
        changed = kept != live[module]
        live[module] = kept
        for target, mask in union.items():
            if count[target] == total and live[target] & ~mask:
                live[target] &= mask
                changed = True
            if must[target] == total and target not in self.required:
                self.required.add(target)
                changed = True
        return changed


def tried_pythons(field: Field, active: int) -> int:
    """The Pythons in play: those that bind while the Python is an item in force, else all."""
    fixed = next((item.bit for item in field.items if item.key == "python"), 0)
    if fixed and not fixed & active:
        return (1 << len(field.pythons)) - 1
    return (1 << field.bound) - 1
