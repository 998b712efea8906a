"""The field of a problem: its slots of judged candidates, the ledger, and what candidates demand of each other.

Candidates of one import name share a *slot*. Sets of candidates are bit masks over a slot's list, so that the question
"which torch builds satisfy this need" is one integer, worked out once for each distinct need.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

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


@dataclass(frozen=True, slots=True)
class Field:
    """What may be searched. `pythons`: those to try, best first; those beyond `bound` only if the Python is given up."""

    problem: Problem
    matrix: Matrix
    ground: Ground
    items: tuple[Item, ...]
    pythons: tuple[str, ...]
    bound: int
    slots: dict[str, Slot]
    asked: tuple[tuple[Ask, str], ...]
    outside: tuple[Ask, ...]
    masks: dict[tuple[Need, str], int] = field(default_factory=dict)
    links: dict[tuple[str, int, int], tuple[tuple[str, int, bool, Need], ...]] = field(default_factory=dict)

    @property
    def everything(self) -> int:
        """All items in force."""
        total = ALWAYS
        for item in self.items:
            total |= item.bit
        return total

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
        key = (need, module)
        if key not in self.masks:
            self.masks[key] = sum(1 << i for i, e in enumerate(self.slots[module].entries) if satisfies(e.candidate, need))
        return self.masks[key]

    def links_of(self, module: str, index: int, python: int) -> tuple[tuple[str, int, bool, Need], ...]:
        """What candidate `index` demands of other slots under one Python: (slot, allowed mask, must be there, need)."""
        key = (module, index, python)
        if key not in self.links:
            self.links[key] = tuple(self._links(self.slots[module].entries[index].candidate, self.pythons[python]))
        return self.links[key]

    def _links(self, candidate: Candidate, python: str) -> list[tuple[str, int, bool, Need]]:
        modules = self.matrix.modules()
        rows = []
        for need in (*candidate.needs, *_known_conflicts(self.matrix, candidate)):
            if need.unknown or need.soft:
                continue
            if need.subject is Subject.TORCH:
                target = "torch"
            elif need.subject is Subject.PACKAGE and need.name in modules and modules[need.name] != candidate.module:
                target = modules[need.name]
            else:
                continue
            if target not in self.slots or not marker_applies(getattr(need, "marker", ""), python):
                continue
            rows.append((target, self.allowed(need, target), need.when == "always", need))
        return rows


def satisfies(candidate: Candidate, need: Need) -> bool:
    """True when having `candidate` meets a need on torch or on a package."""
    if need.subject is Subject.TORCH:
        if not allows(need.allows, candidate.version) or (need.values and candidate.build not in need.values):
            return False
        provided = dict(candidate.provides)
        return all(_abi(provided.get(key, ""), wanted) for key, wanted in need.abi)
    named = candidate.name == need.name
    if need.when == "absent":
        return not (named and allows(need.allows, candidate.version))
    if not named:
        return need.when == "present"
    return allows(need.allows, candidate.version)


def _abi(have: str, wanted: str) -> bool:
    if not have:
        return False
    return allows(wanted, have) if wanted[:1] in "<>=!~" else have == wanted


@cache
def marker_applies(marker: str, python: str) -> bool:
    """True when an environment marker holds under a Python; markers on the machine were settled when the matrix was read."""
    if not marker:
        return True
    from packaging.markers import Marker

    minor = python.rstrip("t")
    return Marker(marker).evaluate(
        {
            "python_version": minor,
            "python_full_version": f"{minor}.0",
            "implementation_name": "cpython",
            "platform_python_implementation": "CPython",
            "extra": "",
        }
    )


def _known_conflicts(matrix: Matrix, candidate: Candidate) -> list[Need]:
    rows = []
    for conflict in matrix.conflicts():
        for mine, other in ((conflict.a, conflict.b), (conflict.b, conflict.a)):
            if candidate.name == mine[0] and allows(mine[1], candidate.version):
                rows.append(Need(Subject.PACKAGE, conflict.fact, allows=other[1], name=other[0], when="absent"))
    return rows
