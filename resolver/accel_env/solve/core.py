"""A refusal that teaches: the minimal core of asks and host facts, the facts behind it, and the cheapest ways out, each solved."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from accel_env.model import Because, Change, Conflict, CoreItem, Problem, Relaxation
from accel_env.solve.explain import because, need_text, stack_answer, stand_ins
from accel_env.solve.ground import ALWAYS, Item
from accel_env.solve.prune import Entry, Field, prune
from accel_env.solve.search import Found, feasible, search
from accel_env.solve.versions import allows, parse

if TYPE_CHECKING:
    pass

REASONS = 8
RELAXATIONS = 6
COST = {"package": 1, "python": 2, "stack": 3, "drop": 4, "libc": 5, "device": 6, "driver": 7}


def conflict(field: Field) -> Conflict:
    """The conflict of a field without a solution."""
    core = minimal_core(field)
    asks = [field.problem.asks[i.index] for i in core if i.kind == "ask"]
    reasons = list(_reasons(field, core))
    reasons += stack_answer(field)
    for ask in asks:
        reasons += stand_ins(field, ask.name)
    relaxations = sorted(_relaxations(field, core), key=lambda r: sum(COST.get(c.kind, 9) for c in r.change))
    return Conflict(field.problem, tuple(CoreItem(i.kind, i.text) for i in core), tuple(dict.fromkeys(reasons)), tuple(relaxations[:RELAXATIONS]))


def minimal_core(field: Field) -> tuple[Item, ...]:
    """QuickXplain over asks and host facts: without any one member there is a solution."""
    items = list(field.items)
    seen: dict[int, bool] = {}

    def broken(chosen: list[Item]) -> bool:
        active = ALWAYS
        for item in chosen:
            active |= item.bit
        if active not in seen:
            seen[active] = feasible(field, active)
        return not seen[active]

    if broken([i for i in items if i.kind == "ask"]):
        items = [i for i in items if i.kind == "ask"]
    return tuple(_quickxplain([], False, items, broken))


def _quickxplain(base: list[Item], changed: bool, items: list[Item], broken: Callable[[list[Item]], bool]) -> list[Item]:
    if changed and broken(base):
        return []
    if len(items) <= 1:
        return items
    half = len(items) // 2
    left, right = items[:half], items[half:]
    from_right = _quickxplain(base + left, bool(left), right, broken)
    from_left = _quickxplain(base + from_right, bool(from_right), left, broken)
    return from_left + from_right


def _reasons(field: Field, core: tuple[Item, ...]) -> Iterator[Because]:
    """The facts that make the core: what the asked packages' candidates need and what they met, newest candidates first."""
    active = ALWAYS
    for item in core:
        active |= item.bit
    asked = {module for ask, module in field.asked if any(i.kind == "ask" and field.problem.asks[i.index] is ask for i in core)}
    count = 0
    for module in sorted(asked):
        for entry, text in _static_reasons(field, module, active):
            yield entry
            count += 1
            if count >= REASONS:
                break
    yield from _dynamic_reasons(field, sorted(asked), active)
    if not count:
        for module in sorted(set(field.slots) - asked):
            yield from (reason for reason, _ in list(_static_reasons(field, module, active))[:3])


def _static_reasons(field: Field, module: str, active: int) -> Iterator[tuple[Because, str]]:
    """One reason per distinct (need, what it met) of a slot, newest first, builds of the active stack before others."""
    seen: set[tuple[object, str]] = set()
    own, foreign = [], []
    for entry in field.slots[module].entries:
        if _asked_out(entry, field, active):
            continue
        for failure in entry.verdict.failures:
            if failure.holds(active):
                (foreign if failure.need.subject.value == "stack" else own).append((entry, failure))
                break
    for entry, failure in [*own, *foreign[:1]]:
        key = (failure.need.subject, failure.need.values, failure.need.allows, failure.met)
        if key in seen:
            continue
        seen.add(key)
        text = f"{need_text(failure.need, entry.candidate)}; {failure.met}"
        yield because(field.matrix, failure.need.subject.value, text, failure.need.fact), text


def _asked_out(entry: Entry, field: Field, active: int) -> bool:
    """True when an ask's own range already excludes the candidate: nobody wants to read why it would not run."""
    asks = {item.bit for item in field.items if item.kind == "ask" and item.bit & active}
    return any(charge in asks for charge in entry.charges)


def _dynamic_reasons(field: Field, asked: list[str], active: int) -> Iterator[Because]:
    """What live candidates of the core's packages demand of each other and of torch."""
    for module in asked:
        shown = 0
        for index, entry in enumerate(field.slots[module].entries):
            if entry.out(active):
                continue
            for target, mask, _, need in field.links_of(module, index, 0):
                rest = [e for i, e in enumerate(field.slots[target].entries) if mask >> i & 1 and not e.out(active)]
                if not rest or target in asked or (len(asked) > 1 and target == "torch"):
                    yield because(field.matrix, need.subject.value, need_text(need, entry.candidate), need.fact)
                    shown += 1
            if shown >= 3:
                break


def _relaxations(field: Field, core: tuple[Item, ...]) -> Iterator[Relaxation]:
    found = [r for item in core for r in _ways_out(field, item)]
    if found:
        yield from found
        return
    # no single change helps: one change of an ask on top of another item given up
    for item in core:
        for change, problem in _edits(field, item):
            inner = prune(problem, field.matrix)
            second = minimal_core(inner)
            for other in second:
                for way in _ways_out(inner, other):
                    yield Relaxation((change, *way.change), way.gives)


def _ways_out(field: Field, item: Item) -> Iterator[Relaxation]:
    for change, problem in _edits(field, item):
        inner = prune(problem, field.matrix)
        answer = search(inner)
        if answer is not None:
            yield Relaxation((_exact(change, inner, answer),), gives(inner, answer))
            if change.kind in ("driver", "python"):
                return


def _exact(change: Change, field: Field, answer: Found) -> Change:
    """A package change names the version that the solver then picks."""
    if change.kind == "package" and not change.spec:
        for module, index in answer.chosen.items():
            candidate = field.slots[module].entries[index].candidate
            if candidate.name == change.name or module == change.name:
                return Change("package", candidate.name, f"=={candidate.version}")
    if change.kind == "stack" and "torch" in answer.chosen:
        stack = field.slots["torch"].entries[answer.chosen["torch"]].candidate.stack
        return Change("stack", change.name, stack)
    return change


def gives(field: Field, answer: Found) -> dict[str, str]:
    """What a choice picks: name -> `version+build`."""
    rows = {}
    for module, index in answer.chosen.items():
        candidate = field.slots[module].entries[index].candidate
        rows[candidate.name] = candidate.version + ("" if candidate.build in ("", "any") else f"+{candidate.build}")
    rows["python"] = field.pythons[answer.python]
    return dict(sorted(rows.items()))


def _edits(field: Field, item: Item) -> Iterator[tuple[Change, Problem]]:
    """The edits of a problem that give up one item, cheapest first."""
    problem = field.problem
    if item.kind == "ask":
        ask = problem.asks[item.index]
        rest = tuple(a for a in problem.asks if a is not ask)
        if ask.specifier:
            free = replace(ask, specifier="", text=ask.name)
            yield Change("package", ask.name, ""), replace(problem, asks=tuple(free if a is ask else a for a in problem.asks))
        if rest:
            yield Change("drop", ask.name, ""), replace(problem, asks=rest)
        return
    key = item.key.split(":")[0]
    if key == "python":
        for python in field.pythons[field.bound:] or tuple(p.version for p in field.matrix.pythons()):
            yield Change("python", "python", f"=={python}.*"), replace(problem, policy=replace(problem.policy, python=python))
    elif key == "stack":
        yield Change("stack", problem.policy.stack.split("-")[0], ""), replace(problem, policy=replace(problem.policy, stack=""))
    elif key == "libc":
        yield (Change("libc", "glibc", f">={_least_libc(field)}"),
               replace(problem, host=replace(problem.host, libc=_least_libc(field), libc_family="glibc")))
        yield Change("target", "container", ""), replace(problem, policy=replace(problem.policy, target="container", python=field.pythons[0]))
    elif key == "device" and len(problem.devices) > 1:
        gone = problem.devices[item.index]
        yield Change("device", gone.name or gone.arch, "leave out"), replace(problem, devices=tuple(d for d in problem.devices if d != gone))
    elif key == "driver":
        yield from _driver_edits(field)


def _driver_edits(field: Field) -> Iterator[tuple[Change, Problem]]:
    """Other drivers, the smallest step up first, then (for stacks that tie driver and software) any other release."""
    problem = field.problem
    vendor = problem.devices[0].vendor
    wanted: dict[str, str] = {}
    for slot in field.slots.values():
        for entry in slot.entries:
            for failure in entry.verdict.failures:
                if failure.need.subject.value == "driver":
                    for spec in failure.need.values or (failure.need.allows,):
                        wanted.setdefault(_satisfying(spec), spec)
    have = field.ground.driver(problem.devices[0])
    order = sorted(wanted, key=lambda v: (parse(v) < parse(have or "0"), parse(v)))
    for driver in order:
        devices = tuple(replace(d, driver=driver) for d in problem.devices)
        yield Change("driver", vendor, wanted[driver]), replace(problem, devices=devices)


def _satisfying(spec: str) -> str:
    """A driver version inside a specifier: its bound, or the next whole number inside."""
    first = spec.split(",")[0].lstrip("<>=~! ")
    version = first.replace(".*", "")
    if allows(spec, version):
        return version
    major = parse(version).major
    return str(major - 1 if spec.startswith("<") else major + 1)


def _least_libc(field: Field) -> str:
    """The lowest glibc that lets something live that the host's does not."""
    floors = {f.need.allows.lstrip(">=") for s in field.slots.values() for e in s.entries for f in e.verdict.failures if f.need.subject.value == "libc"}
    for floor in sorted(floors, key=parse):
        problem = replace(field.problem, host=replace(field.problem.host, libc=floor, libc_family="glibc"))
        inner = prune(problem, field.matrix)
        if feasible(inner, inner.everything):
            return floor
    return max(floors, key=parse, default=field.problem.host.libc)


__all__ = ["conflict", "gives", "minimal_core"]
