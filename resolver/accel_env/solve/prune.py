"""`prune`: every candidate that could matter, judged once; the ledger of what is out and why."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from accel_env.model import Ask, Candidate, Need, Problem, Subject
from accel_env.solve.extras import extras_fit
from accel_env.solve.field import Field
from accel_env.solve.free import unknown
from accel_env.solve.ground import Ground
from accel_env.solve.images import off_base, offered
from accel_env.solve.problem import distinct, items_of, pythons_of
from accel_env.solve.slot import Entry, Slot, labelled
from accel_env.solve.stacks import leads
from accel_env.solve.verdict import ALWAYS, SOURCE_RANK, Failure, Verdict
from accel_env.solve.versions import allows, best_tag, parse, split_stack, tag_fits

if TYPE_CHECKING:
    from accel_env.matrix.load import Matrix


def prune(problem: Problem, matrix: Matrix) -> Field:
    """All slots that the asks can reach on this host's platform, each candidate judged."""
    items = items_of(problem)
    ranges = tuple(1 << (len(items) + 1 + n) for n in range(len(problem.asks)))
    source = 1 << (len(items) + len(ranges) + 1)
    wanted = {ask.name for ask in problem.asks}
    ground = Ground(matrix, problem.host, distinct(problem.devices), problem.policy, items, source, wanted)
    tried = pythons_of(problem, matrix)
    fixed = any(item.key == "python" for item in items)
    others = tuple(p.version for p in matrix.pythons() if p.version not in tried and not p.version.endswith("t")) if fixed else ()
    left = unknown(problem.asks, matrix, problem.host.platform, ground.stack_name).union(problem.left)
    names = matrix.package_names() - left
    asked = tuple((a, matrix.modules()[a.name]) for a in problem.asks if a.name in names)
    outside = tuple(a for a in problem.asks if a.name not in names)
    conflicted = frozenset(name for c in matrix.conflicts() for name, _ in (c.a, c.b)).union(matrix.clashing())
    pythons = tried + others
    result = Field(problem, matrix, ground, items, ranges, source, pythons, len(tried), {}, asked, outside, conflicted, left)
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
    seen: set[int] = set()
    for entry in slot.entries:
        if ALWAYS in entry.charges or id(entry.partners) in seen:
            continue
        seen.add(id(entry.partners))
        for need in entry.partners:
            if need.subject is Subject.TORCH and need.when == "always":
                found["torch"] = None
            elif need.when == "always" and need.name in modules and need.name not in result.left:
                found[modules[need.name]] = None
    return list(found)


def _slot(result: Field, module: str, names: list[str]) -> Slot:
    judge = _Judge(result, module)
    problem, parts = result.problem, result.matrix.parts
    rows = [
        judge(candidate, *parts(candidate))
        for name in sorted(names)
        for candidate in offered(result.matrix, name, problem.host.platform, problem.policy)
    ]
    order = sorted({row.candidate.version for row in rows}, key=parse, reverse=True)
    newest = {version: n for n, version in enumerate(order)}
    stacks = {stack: stack_preference(result.ground, stack) for stack in {row.candidate.stack for row in rows}}
    # best first: newest version, then the best stack, then the surest build
    rows.sort(
        key=lambda e: (
            newest[e.candidate.version],
            stacks[e.candidate.stack],
            e.rank,
            e.candidate.index != "pypi",
            e.candidate.build,
            e.candidate.variant,
        )
    )
    return Slot(module, tuple(rows), stacks, result.conflicted)


class _Judge:
    """Judges the candidates of one slot; those that differ in nothing that the host or an ask looks at, once."""

    def __init__(self, result: Field, module: str) -> None:
        problem = result.problem
        places = {id(ask): n for n, ask in enumerate(problem.asks)}
        bits = {item.index: item.bit for item in result.items if item.kind == "ask"}
        self._matrix, self._ground = result.matrix, result.ground
        self._asks = [
            (ask, bits[n] | result.ranges[n]) for ask, owner in result.asked if owner == module for n in [places[id(ask)]]
        ]
        # what only comes along is no reason to pass over a newer torch: there a soft failure is a warning and nothing more
        self._counts = module == "torch" or bool(self._asks)
        self._torch = module == "torch"
        self._policy, self._names = problem.policy, {ask.name for ask in problem.asks}
        self._base = next((item.bit for item in result.items if item.key == "base"), ALWAYS)
        self._pythons = _Pythons(result)
        self._labels = any("+" in ask.specifier or ask.extras for ask, _ in self._asks)
        self._leads: dict[tuple[int, str], bool] = {}
        self._misses: dict[tuple[str, str, str], int] = {}
        self._known: dict[tuple[object, ...], tuple[Verdict, tuple[int, ...], int, int, int]] = {}

    def __call__(self, candidate: Candidate, ground: tuple[Need, ...], partners: tuple[Need, ...]) -> Entry:
        image = candidate.index == "image"
        missed = self._missed(candidate)
        lead = (id(partners), candidate.stack)
        if lead not in self._leads:
            self._leads[lead] = leads(candidate)
        key = (
            id(ground),
            missed,
            self._leads[lead],
            candidate.stack,
            candidate.rank,
            candidate.hashed,
            candidate.fact,
            image and (candidate.version, candidate.tag, candidate.provides),
        )
        if key not in self._known:
            self._known[key] = self._judged(candidate, ground, missed)
        verdict, charges, runs, hashed, rank = self._known[key]
        return Entry(candidate, verdict, charges, runs, hashed, rank, partners)

    def _judged(
        self, candidate: Candidate, ground: tuple[Need, ...], missed: int
    ) -> tuple[Verdict, tuple[int, ...], int, int, int]:
        verdict = self._ground.judge(candidate, ground)
        runs, hashed, failure = self._pythons(candidate)
        other = off_base(self._matrix, candidate, self._policy, self._base, self._names)
        more = [one for one in (failure, other) if one]
        more += [_not_asked(ask, candidate, charge) for n, (ask, charge) in enumerate(self._asks) if missed >> n & 1]
        if more:
            verdict = Verdict((*verdict.failures, *more), verdict.soft, verdict.jit)
        # an asked package with machine code beats one that must compile first; of torch the newest is wanted all the same
        flawed = bool(verdict.soft) or (verdict.jit and not self._torch)
        second = self._counts and flawed and candidate.rank < SOURCE_RANK
        return verdict, verdict.charges, runs, hashed, candidate.rank + second

    def _missed(self, candidate: Candidate) -> int:
        """The asks that the candidate is not, as a mask."""
        if not self._asks:
            return 0
        key = (candidate.name, candidate.version, candidate.build if self._labels else "")
        if key not in self._misses:
            fits = [ask_fits(ask, candidate, self._matrix) for ask, _ in self._asks]
            self._misses[key] = sum(1 << n for n, fit in enumerate(fits) if not fit)
        return self._misses[key]


def _not_asked(ask: Ask, candidate: Candidate, charge: int) -> Failure:
    need = Need(Subject.PACKAGE, candidate.fact, allows=ask.specifier, name=ask.name)
    return Failure(need, f"{ask.text or ask.name} was asked for", (charge,))


def stack_preference(ground: Ground, stack: str) -> tuple[int, float, float]:
    """Smaller is better: the newest stack that the driver fully supports, else the one nearest to the driver."""
    version = split_stack(stack)[1]
    if not version:
        return (0, 0.0, 0.0)
    numbers = (*parse(version).release, 0)[:2]
    if ground.fully_supported(stack):
        return (0, -numbers[0], -numbers[1])
    return (1, numbers[0], numbers[1])


def ask_fits(ask: Ask, candidate: Candidate, matrix: Matrix) -> bool:
    """True when a candidate is what an ask means; the ask for an import name takes any distribution that owns it.

    An extra that makes a build (`jax[cuda12]`), or the build's own label, asks for that build; any other goes along to the lock.
    """
    if candidate.name != ask.name and matrix.modules().get(ask.name) != ask.name:
        return False
    if ask.extras and not extras_fit(ask, candidate, matrix):
        return False
    return allows(ask.specifier, labelled(ask.specifier, candidate.version, candidate.build))


class _Pythons:
    """Which Pythons run a candidate, and what to say where none of those on offer does."""

    def __init__(self, result: Field) -> None:
        self._pythons, self._bound = result.pythons, result.bound
        self._tried = (1 << result.bound) - 1
        self._fixed = next((item.bit for item in result.items if item.key == "python"), 0)
        self._known: dict[tuple[tuple[str, ...], str, tuple[str, ...]], tuple[int, int, Failure | None]] = {}
        self._brought: dict[tuple[str, str], set[str]] = {}
        for image in result.matrix.images():
            if image.torch and not image.default:
                self._brought.setdefault((image.stack, image.torch), set()).add(image.python)

    def __call__(self, candidate: Candidate) -> tuple[int, int, Failure | None]:
        """(Pythons that run it, Pythons whose file has a known hash, the failure where none of those on offer runs it)."""
        need = next((n for n in candidate.needs if n.subject is Subject.PYTHON), None)
        need = need or Need(Subject.PYTHON, candidate.fact, values=candidate.tags)
        if candidate.index == "image":
            return self._in_image(candidate, need)
        key = (need.values, need.allows, candidate.hashed)
        if key not in self._known:
            runs, hashed = _python_bits(need.values, need.allows, candidate.hashed, self._pythons)
            self._known[key] = (runs, hashed, None if runs & self._tried else self._failure(need))
        return self._known[key]

    def _in_image(self, candidate: Candidate, need: Need) -> tuple[int, int, Failure | None]:
        """What comes in an image runs under the Pythons of the images that bring it."""
        if candidate.tag:  # of one image alone, whose Python is its tag
            runs, pinned = _python_bits(candidate.tags, "", candidate.hashed, self._pythons)
            return runs, pinned, None if runs & self._tried else self._failure(need)
        brought = self._brought.get((candidate.stack, candidate.version), set())
        images = sum(1 << n for n, python in enumerate(self._pythons) if python in brought)
        runs = images & _python_bits(need.values, need.allows, (), self._pythons)[0]
        return runs, runs, None if runs & self._tried else self._failure(need)

    def _failure(self, need: Need) -> Failure:
        if self._fixed:
            return Failure(need, f"this plan is for Python {self._pythons[0]}", (self._fixed,))
        return Failure(need, f"the Pythons on offer are {', '.join(self._pythons[: self._bound])}", (ALWAYS,))


@cache
def _python_bits(tags: tuple[str, ...], requires: str, hashed: tuple[str, ...], pythons: tuple[str, ...]) -> tuple[int, int]:
    runs = known = 0
    for index, python in enumerate(pythons):
        if (not tags or any(tag_fits(t, python) for t in tags)) and allows(requires, python.rstrip("t") + ".99"):
            runs |= 1 << index
            if best_tag(tags, python) in hashed or (not tags and hashed):
                known |= 1 << index
    return runs, known
