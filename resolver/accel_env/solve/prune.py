"""`prune`: every candidate that could matter, judged once; the ledger of what is out and why.

Candidates of one import name share a *slot*. Sets of candidates are bit masks over a slot's list, so that the question
"which torch builds satisfy this need" is one integer, worked out once for each distinct need.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from accel_env.model import Ask, Candidate, Need, Problem, Rejection, Subject
from accel_env.solve.ground import ALWAYS, Failure, Ground, Item, Verdict
from accel_env.solve.problem import items_of, pythons_of
from accel_env.solve.versions import allows, best_tag, parse, split_stack, tag_fits

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
    return Marker(marker).evaluate({"python_version": minor, "python_full_version": f"{minor}.0", "implementation_name": "cpython",
                                    "platform_python_implementation": "CPython", "extra": ""})


def _known_conflicts(matrix: Matrix, candidate: Candidate) -> list[Need]:
    rows = []
    for conflict in matrix.conflicts():
        for mine, other in ((conflict.a, conflict.b), (conflict.b, conflict.a)):
            if candidate.name == mine[0] and allows(mine[1], candidate.version):
                rows.append(Need(Subject.PACKAGE, conflict.fact, allows=other[1], name=other[0], when="absent"))
    return rows


def prune(problem: Problem, matrix: Matrix) -> Field:
    """All slots that the asks can reach on this host's platform, each candidate judged."""
    items = items_of(problem)
    ground = Ground(matrix, problem.host, problem.devices, problem.policy, items)
    tried = pythons_of(problem, matrix)
    fixed = any(item.key == "python" for item in items)
    others = tuple(p.version for p in matrix.pythons() if p.version not in tried and not p.version.endswith("t")) if fixed else ()
    names = matrix.package_names()
    asked = tuple((a, matrix.modules()[a.name]) for a in problem.asks if a.name in names)
    outside = tuple(a for a in problem.asks if a.name not in names)
    result = Field(problem, matrix, ground, items, tried + others, len(tried), {}, asked, outside)
    _fill(result)
    return result


def _fill(result: Field) -> None:
    by_module: dict[str, list[str]] = {}
    for name, module in result.matrix.modules().items():
        by_module.setdefault(module, []).append(name)
    todo = list(dict.fromkeys(module for _, module in result.asked))
    while todo:
        module = todo.pop()
        if module in result.slots:
            continue
        slot = _slot(result, module, by_module[module])
        result.slots[module] = slot
        for target in _reached(result, slot):
            if target not in result.slots:
                todo.append(target)


def _reached(result: Field, slot: Slot) -> list[str]:
    modules = result.matrix.modules()
    found: dict[str, None] = {}
    for entry in slot.entries:
        if ALWAYS in entry.charges:
            continue
        for need in entry.candidate.needs:
            if need.subject is Subject.TORCH:
                found["torch"] = None
            elif need.subject is Subject.PACKAGE and need.when == "always" and need.name in modules:
                found[modules[need.name]] = None
    return list(found)


def _slot(result: Field, module: str, names: list[str]) -> Slot:
    problem, ground = result.problem, result.ground
    asks = [(a, n) for n, (a, m) in enumerate(result.asked) if m == module]
    bits = {item.index: item.bit for item in result.items if item.kind == "ask"}
    order = {id(a): i for i, a in enumerate(problem.asks)}
    rows: list[Entry] = []
    for name in sorted(names):
        for candidate in result.matrix.candidates(name, problem.host.platform):
            verdict = ground.judge(candidate)
            failures = list(verdict.failures)
            failures += _python_failures(result, candidate)
            for ask, _ in asks:
                if not ask_fits(ask, candidate, result.matrix):
                    need = Need(Subject.PACKAGE, candidate.fact, allows=ask.specifier, name=ask.name)
                    failures.append(Failure(need, f"{ask.text or ask.name} was asked for", (bits[order[id(ask)]],)))
            verdict = Verdict(tuple(failures), verdict.soft, verdict.jit)
            runs, hashed = _python_masks(result, candidate)
            rows.append(Entry(candidate, verdict, verdict.charges, runs, hashed, candidate.rank + bool(verdict.soft and candidate.rank < 3)))
    rows.sort(key=lambda e: _preference(result, e))
    return Slot(module, tuple(rows))


def _preference(result: Field, entry: Entry) -> tuple[object, ...]:
    """Best first: newest version, then (for torch) the best stack, then the surest build."""
    candidate = entry.candidate
    return (_Down(parse(candidate.version)), *stack_preference(result.ground, candidate), entry.rank, candidate.index != "pypi", candidate.build, candidate.variant)


class _Down:
    """Sorts a version descending."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __lt__(self, other: _Down) -> bool:
        return bool(other.value < self.value)  # type: ignore[operator]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Down) and self.value == other.value


def stack_preference(ground: Ground, candidate: Candidate) -> tuple[int, float, float]:
    """Smaller is better: the newest stack that the driver fully supports, else the one nearest to the driver."""
    version = split_stack(candidate.stack)[1]
    if not version:
        return (0, 0.0, 0.0)
    numbers = (*parse(version).release, 0)[:2]
    if ground.fully_supported(candidate.stack):
        return (0, -numbers[0], -numbers[1])
    return (1, numbers[0], numbers[1])


def ask_fits(ask: Ask, candidate: Candidate, matrix: Matrix) -> bool:
    """True when a candidate is what an ask means; the ask for an import name takes any distribution that owns it."""
    if candidate.name != ask.name and matrix.modules().get(ask.name) != ask.name:
        return False
    version = candidate.version
    if "+" in ask.specifier and candidate.build not in ("", "any"):
        version = f"{version}+{candidate.build}"
    return allows(ask.specifier, version)


def _python_masks(result: Field, candidate: Candidate) -> tuple[int, int]:
    need = next((n for n in candidate.needs if n.subject is Subject.PYTHON), None)
    runs, hashed = _python_bits(need.values if need else candidate.tags, need.allows if need else "", candidate.hashed, result.pythons)
    return runs, hashed


@cache
def _python_bits(tags: tuple[str, ...], requires: str, hashed: tuple[str, ...], pythons: tuple[str, ...]) -> tuple[int, int]:
    runs = known = 0
    for index, python in enumerate(pythons):
        if (not tags or any(tag_fits(t, python) for t in tags)) and allows(requires, python.rstrip("t") + ".99"):
            runs |= 1 << index
            if best_tag(tags, python) in hashed or (not tags and hashed):
                known |= 1 << index
    return runs, known


def _python_failures(result: Field, candidate: Candidate) -> list[Failure]:
    runs, _ = _python_masks(result, candidate)
    fixed = {item.key: item.bit for item in result.items}.get("python")
    tried = (1 << result.bound) - 1
    if runs & tried:
        return []
    need = next((n for n in candidate.needs if n.subject is Subject.PYTHON), Need(Subject.PYTHON, candidate.fact, values=candidate.tags))
    if fixed:
        return [Failure(need, f"this plan is for Python {result.pythons[0]}", (fixed,))]
    return [Failure(need, f"the Pythons on offer are {', '.join(result.pythons[:result.bound])}", (ALWAYS,))]
