"""`prune`: every candidate that could matter, judged once; the ledger of what is out and why."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from accel_env.model import Ask, Candidate, Need, Problem, Subject
from accel_env.solve.field import Entry, Field, Slot
from accel_env.solve.ground import Ground
from accel_env.solve.problem import distinct, items_of, pythons_of
from accel_env.solve.verdict import ALWAYS, Failure, Verdict
from accel_env.solve.versions import allows, best_tag, parse, split_stack, tag_fits

if TYPE_CHECKING:
    from accel_env.matrix.load import Matrix


def prune(problem: Problem, matrix: Matrix) -> Field:
    """All slots that the asks can reach on this host's platform, each candidate judged."""
    items = items_of(problem)
    ground = Ground(matrix, problem.host, distinct(problem.devices), problem.policy, items)
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
            rows.append(
                Entry(
                    candidate, verdict, verdict.charges, runs, hashed, candidate.rank + bool(verdict.soft and candidate.rank < 3)
                )
            )
    rows.sort(key=lambda e: _preference(result, e))
    return Slot(module, tuple(rows))


def _preference(result: Field, entry: Entry) -> tuple[object, ...]:
    """Best first: newest version, then (for torch) the best stack, then the surest build."""
    candidate = entry.candidate
    return (
        _Down(parse(candidate.version)),
        *stack_preference(result.ground, candidate),
        entry.rank,
        candidate.index != "pypi",
        candidate.build,
        candidate.variant,
    )


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
    runs, hashed = _python_bits(
        need.values if need else candidate.tags, need.allows if need else "", candidate.hashed, result.pythons
    )
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
    need = next(
        (n for n in candidate.needs if n.subject is Subject.PYTHON), Need(Subject.PYTHON, candidate.fact, values=candidate.tags)
    )
    if fixed:
        return [Failure(need, f"this plan is for Python {result.pythons[0]}", (fixed,))]
    return [Failure(need, f"the Pythons on offer are {', '.join(result.pythons[: result.bound])}", (ALWAYS,))]
