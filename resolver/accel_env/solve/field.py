"""The field of a problem: its slots of judged candidates, the ledger, and what candidates demand of each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from accel_env.matrix.markers import marker_holds
from accel_env.model import Ask, Candidate, Need, Problem, Rejection, Subject
from accel_env.solve.ground import Ground
from accel_env.solve.slot import Lookup, Slot
from accel_env.solve.verdict import ALWAYS, Item
from accel_env.solve.versions import allows

if TYPE_CHECKING:
    from accel_env.matrix.load import Matrix


Link = tuple[str, int, bool, Need]


class Group(NamedTuple):
    """Candidates of one slot that demand the same. `joined`: per slot (mask, must be there) of all links on it together."""

    mask: int
    links: tuple[Link, ...]
    joined: tuple[tuple[str, int, bool], ...]


@dataclass(frozen=True, slots=True)
class Field:
    """What may be searched.

    `ranges`: one more bit for each ask, its version range alone; `source`: the bit that keeps source builds out. `pythons`:
    those to try, best first; those beyond `bound` only if the Python is given up. `outside`: asks that the matrix does not
    model, or not in that range; `left`: packages of the matrix that the closer is to choose. `conflicted`: packages with known
    conflicts. The dictionaries are filled as questions come up.
    """

    problem: Problem
    matrix: Matrix
    ground: Ground
    items: tuple[Item, ...]
    ranges: tuple[int, ...]
    source: int
    pythons: tuple[str, ...]
    bound: int
    slots: dict[str, Slot]
    asked: tuple[tuple[Ask, str], ...]
    outside: tuple[Ask, ...]
    conflicted: frozenset[str]
    left: frozenset[str] = frozenset()
    lookups: dict[str, Lookup] = field(default_factory=dict)
    masks: dict[tuple[int, str], int] = field(default_factory=dict)
    links: dict[tuple[int, int], Link | None] = field(default_factory=dict)
    linked: dict[tuple[int, str, str, int], tuple[Link, ...]] = field(default_factory=dict)
    grouped: dict[tuple[str, int], dict[int, Group]] = field(default_factory=dict)
    bans: dict[tuple[str, str], tuple[Need, ...]] = field(default_factory=dict)

    @property
    def everything(self) -> int:
        """All items in force."""
        return self.base | sum(item.bit for item in self.items)

    @property
    def base(self) -> int:
        """What is in force whichever items are: what nobody can change, and the ranges of those asks that are."""
        return ALWAYS | sum(self.ranges) | (0 if self.problem.policy.source_builds else self.source)

    def ledger(self) -> tuple[Rejection, ...]:
        """Every candidate that this host and these asks rule out by themselves, with the first need that fails."""
        rows = []
        for slot in self.slots.values():
            for entry in slot.entries:
                if entry.charges:
                    first = entry.verdict.failures[0]
                    rows.append(Rejection(entry.candidate, first.need, first.met))
        return tuple(rows)

    def live(self) -> tuple[Candidate, ...]:
        """Every candidate that nothing rules out by itself."""
        return tuple(e.candidate for s in self.slots.values() for e in s.entries if not e.charges)

    def allowed(self, need: Need, module: str) -> int:
        """The mask of the slot's candidates that satisfy a need."""
        key = (id(need), module)  # the matrix shares equal needs, and bans are kept in `bans`
        if key not in self.masks:
            if module not in self.lookups:
                self.lookups[module] = Lookup(self.slots[module])
            self.masks[key] = self.lookups[module].mask(need)
        return self.masks[key]

    def groups(self, module: str, python: int, live: int) -> Iterator[Group]:
        """The candidates of a slot by what they demand of other slots; groups without one of `live` are left out."""
        known = self.grouped.setdefault((module, python), {})
        for mask, place in self.slots[module].kin:
            if not mask & live:
                continue
            if place not in known:
                links = self.links_of(module, place, python)
                known[place] = Group(mask, links, _joined(links))
            yield known[place]

    def links_of(self, module: str, index: int, python: int) -> tuple[Link, ...]:
        """What candidate `index` demands of other slots under one Python: (slot, allowed mask, must be there, need)."""
        entry = self.slots[module].entries[index]
        candidate = entry.candidate
        banned = candidate.name in self.conflicted
        same = (id(entry.partners), candidate.name, candidate.version if banned else "", python)
        if same not in self.linked:
            needs = entry.partners + (self._banned_beside(candidate) if banned else ())
            self.linked[same] = tuple([link for link in self._links(needs, python) if link[0] != module])
        return self.linked[same]

    def _links(self, needs: tuple[Need, ...], python: int) -> Iterator[Link]:
        for need in needs:
            key = (id(need), python)
            if key not in self.links:
                self.links[key] = self._link(need, self.pythons[python])
            link = self.links[key]
            if link is not None:
                yield link

    def _link(self, need: Need, python: str) -> Link | None:
        if need.soft:
            return None
        if need.subject is Subject.TORCH:
            target = "torch"
        elif need.subject is Subject.PACKAGE:
            target = self.matrix.modules().get(need.name, "")
        else:
            return None
        if target not in self.slots or not marker_holds(need.marker, self.problem.host.platform, python):
            return None
        return target, self.allowed(need, target), need.when == "always", need

    def _banned_beside(self, candidate: Candidate) -> tuple[Need, ...]:
        """What known conflicts, and requirements of others outside the matrix, say must not be beside a release."""
        key = (candidate.name, candidate.version)
        if key not in self.bans:
            known = tuple(
                Need(Subject.PACKAGE, conflict.fact, allows=other[1], name=other[0], when="absent")
                for conflict in self.matrix.conflicts()
                for mine, other in ((conflict.a, conflict.b), (conflict.b, conflict.a))
                if candidate.name == mine[0] and allows(mine[1], candidate.version)
            )
            modules = self.matrix.modules()
            self.bans[key] = known + tuple(
                Need(Subject.PACKAGE, fact, allows=spec, name=other, when=when)
                for other, spec, when, fact in self.matrix.beside(*key)
                if modules.get(other) in self.slots
            )
        return self.bans[key]


def _joined(links: tuple[Link, ...]) -> tuple[tuple[str, int, bool], ...]:
    merged: dict[str, tuple[int, bool]] = {}
    for target, mask, always, _ in links:
        before = merged.get(target)
        merged[target] = (before[0] & mask, before[1] or always) if before else (mask, always)
    return tuple([(target, mask, always) for target, (mask, always) in merged.items()])
