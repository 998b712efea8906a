"""The field of a problem: its slots of judged candidates, the ledger, and what candidates demand of each other.

Candidates of one import name share a *slot*. Sets of candidates are bit masks over a slot's list, so that the question
"which torch builds satisfy this need" is one integer, worked out once for each distinct need.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from accel_env.matrix.markers import marker_holds
from accel_env.model import Ask, Candidate, Need, Problem, Rejection, Subject
from accel_env.solve.ground import Ground
from accel_env.solve.verdict import ALWAYS, Item, Verdict
from accel_env.solve.versions import allows

if TYPE_CHECKING:
    from accel_env.matrix.load import Matrix


@dataclass(frozen=True, slots=True)
class Entry:
    """A candidate with its verdict. `charges`: what keeps it out; `pythons`, `hashed`: masks over `Field.pythons`."""

    candidate: Candidate
    verdict: Verdict
    charges: tuple[int, ...]
    pythons: int
    hashed: int
    rank: int

    def out(self, active: int) -> bool:
        """True when the items of `active` rule the candidate out."""
        return any(charge & active == charge for charge in self.charges)


@dataclass(frozen=True, slots=True)
class Slot:
    """All candidates of one import name, best first."""

    module: str
    entries: tuple[Entry, ...]

    @property
    def everything(self) -> int:
        """The mask of all candidates."""
        return (1 << len(self.entries)) - 1


class Lookup:
    """Masks of one slot's candidates by what needs ask about, so that a need is a few unions instead of a pass over the slot."""

    def __init__(self, slot: Slot) -> None:
        self.everything = slot.everything
        self.versions: dict[tuple[str, str, str], int] = {}
        self.builds: dict[str, int] = {}
        self.provided: dict[str, dict[str, int]] = {}
        for index, entry in enumerate(slot.entries):
            candidate, bit = entry.candidate, 1 << index
            key = (candidate.name, candidate.version, candidate.build)
            self.versions[key] = self.versions.get(key, 0) | bit
            self.builds[candidate.build] = self.builds.get(candidate.build, 0) | bit
            for name, value in candidate.provides:
                values = self.provided.setdefault(name, {})
                values[value] = values.get(value, 0) | bit

    def mask(self, need: Need) -> int:
        """The candidates that meet a need on torch or on a package; the same answer as `satisfies`, for a whole slot."""
        name = "torch" if need.subject is Subject.TORCH else need.name
        named = fitting = 0
        for (owner, version, build), bits in self.versions.items():
            if owner == name:
                named |= bits
                fitting |= bits if allows(need.allows, labelled(need.allows, version, build)) else 0
        if need.subject is Subject.TORCH and need.values:
            fitting &= _union(self.builds.get(build, 0) for build in need.values)
        for key, wanted in need.abi:
            fitting &= _union(bits for value, bits in self.provided.get(key, {}).items() if _abi(value, wanted))
        return self._by_presence(need.when, named, fitting)

    def _by_presence(self, when: str, named: int, fitting: int) -> int:
        if when == "absent":
            return self.everything & ~fitting
        return fitting if when == "always" else fitting | self.everything & ~named


def _union(masks: Iterable[int]) -> int:
    total = 0
    for mask in masks:
        total |= mask
    return total


Link = tuple[str, int, bool, Need]


class Groups:
    """Candidates of one slot that demand the same: `rows` is links' identities -> (mask, links); `known`: all masks together."""

    def __init__(self) -> None:
        self.known = 0
        self.rows: dict[tuple[int, ...], tuple[int, tuple[Link, ...]]] = {}

    def add(self, bit: int, links: tuple[Link, ...]) -> None:
        """Put a candidate with its kin."""
        same = tuple([id(link) for link in links])
        self.known |= bit
        self.rows[same] = (self.rows[same][0] | bit if same in self.rows else bit, links)


@dataclass(frozen=True, slots=True)
class Field:
    """What may be searched.

    `ranges`: one more bit for each ask, its version range alone; `source`: the bit that keeps source builds out. `pythons`:
    those to try, best first; those beyond `bound` only if the Python is given up. `outside`: asks that the matrix does not
    model. `conflicted`: packages with known conflicts. The dictionaries are filled as questions come up.
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
    lookups: dict[str, Lookup] = field(default_factory=dict)
    masks: dict[tuple[int, str], int] = field(default_factory=dict)
    links: dict[tuple[int, int], Link | None] = field(default_factory=dict)
    grouped: dict[tuple[str, int], Groups] = field(default_factory=dict)
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

    def groups(self, module: str, python: int, live: int) -> Iterable[tuple[int, tuple[Link, ...]]]:
        """At least the candidates of `live`, by what they demand of other slots: (mask of the candidates, their links)."""
        key = (module, python)
        if key not in self.grouped:
            self.grouped[key] = Groups()
        groups = self.grouped[key]
        missing = live & ~groups.known
        while missing:
            low = missing & -missing
            groups.add(low, self.links_of(module, low.bit_length() - 1, python))
            missing ^= low
        return groups.rows.values()

    def links_of(self, module: str, index: int, python: int) -> tuple[Link, ...]:
        """What candidate `index` demands of other slots under one Python: (slot, allowed mask, must be there, need)."""
        candidate = self.slots[module].entries[index].candidate
        needs = candidate.needs
        if candidate.name in self.conflicted:
            needs += self._banned_beside(candidate)
        found = []
        for need in needs:
            key = (id(need), python)
            if key not in self.links:
                self.links[key] = self._link(need, self.pythons[python])
            link = self.links[key]
            if link is not None and link[0] != module:
                found.append(link)
        return tuple(found)

    def _link(self, need: Need, python: str) -> Link | None:
        if need.unknown or need.soft:
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
        """What known conflicts say must not be beside a release."""
        key = (candidate.name, candidate.version)
        if key not in self.bans:
            self.bans[key] = tuple(
                Need(Subject.PACKAGE, conflict.fact, allows=other[1], name=other[0], when="absent")
                for conflict in self.matrix.conflicts()
                for mine, other in ((conflict.a, conflict.b), (conflict.b, conflict.a))
                if candidate.name == mine[0] and allows(mine[1], candidate.version)
            )
        return self.bans[key]


def satisfies(candidate: Candidate, need: Need) -> bool:
    """True when having `candidate` meets a need on torch or on a package."""
    if need.subject is Subject.TORCH:
        if not allows(need.allows, candidate.version) or (need.values and candidate.build not in need.values):
            return False
        provided = dict(candidate.provides)
        return all(_abi(provided.get(key, ""), wanted) for key, wanted in need.abi)
    named = candidate.name == need.name
    version = labelled(need.allows, candidate.version, candidate.build)
    if need.when == "absent":
        return not (named and allows(need.allows, version))
    if not named:
        return need.when == "present"
    return allows(need.allows, version)


def labelled(spec: str, version: str, build: str) -> str:
    """The version to hold against a specifier: with its label where the specifier names one."""
    return f"{version}+{build}" if "+" in spec and build not in ("", "any") else version


def _abi(have: str, wanted: str) -> bool:
    if not have:
        return False
    return allows(wanted, have) if wanted[:1] in "<>=!~" else have == wanted
