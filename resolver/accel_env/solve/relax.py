"""Ways out of a conflict: single edits of the core's asks and host facts, cheapest first, each one solved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from accel_env.model import Ask, Change, Problem, Relaxation
from accel_env.solve.core import minimal_core
from accel_env.solve.field import Field
from accel_env.solve.ground import device_driver_needs
from accel_env.solve.images import VENDOR
from accel_env.solve.problem import choose_devices, distinct
from accel_env.solve.prune import prune
from accel_env.solve.search import Found, feasible, search
from accel_env.solve.verdict import SOURCE_RANK, Item
from accel_env.solve.versions import allows, narrowed, parse, split_stack

PAIRS = 4
CPU_STACK = "cpu"
COST = {
    "package": 1, "python": 2, "base": 3, "stack": 3, "drop": 4, "source": 4, "libc": 5, "target": 5, "device": 6, "driver": 7,
}  # fmt: skip
GIVES_UP = 9


def cost(relaxation: Relaxation) -> int:
    """How much a way out asks of the user; to give up the accelerator comes last."""
    return sum(GIVES_UP if c.kind == "stack" and c.name == CPU_STACK else COST.get(c.kind, GIVES_UP) for c in relaxation.change)


def relaxations(field: Field, core: tuple[Item, ...]) -> Iterator[Relaxation]:
    """Every single edit that helps, with what the solver then picks; where none does, pairs of edits."""
    found = [r for item in core for r in _ways_out(field, field.everything, item)]
    if found:
        yield from found
        return
    # no single change helps: one change of an ask on top of another item given up
    edits = [edit for item in core for edit in _edits(field, field.everything, item)]
    for change, inner, active in edits[:PAIRS]:
        for other in minimal_core(inner, active):
            for way in _ways_out(inner, active, other):
                yield Relaxation((change, *way.change), way.gives)


def _ways_out(field: Field, within: int, item: Item) -> Iterator[Relaxation]:
    for change, inner, active in _edits(field, within, item):
        answer = search(inner, active)
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
    if change.kind == "driver":
        return Change("driver", change.name, _driver_spec(change, field, answer))
    if change.kind == "stack" and change.name not in ("", CPU_STACK) and "torch" in answer.chosen:
        stack = field.slots["torch"].entries[answer.chosen["torch"]].candidate.stack
        return Change("stack", change.name, stack)
    return change


def _driver_spec(change: Change, field: Field, answer: Found) -> str:
    """What the stack of the choice and the devices ask of the driver, which is what somebody has to install."""
    if "torch" not in answer.chosen:
        return change.spec
    torch = field.slots["torch"].entries[answer.chosen["torch"]]
    need = field.ground.driver_need(torch.candidate.stack, full=torch.verdict.jit)
    if need is None or need.unknown or change.spec.startswith("<"):
        return change.spec
    # what knows the device binds beside the stack's own floor
    known = [own.allows for d in field.ground.devices if field.ground.stack for own in device_driver_needs(field.ground.stack, d)]
    return " or ".join(narrowed((spec, *known)) for spec in need.values or (need.allows,))


def gives(field: Field, answer: Found) -> dict[str, str]:
    """What a choice picks: name -> `version+build`."""
    rows = {}
    for module, index in answer.chosen.items():
        candidate = field.slots[module].entries[index].candidate
        rows[candidate.name] = candidate.version + ("" if candidate.build in ("", "any") else f"+{candidate.build}")
    rows["python"] = field.pythons[answer.python]
    return dict(sorted(rows.items()))


def _edits(field: Field, within: int, item: Item) -> Iterator[tuple[Change, Field, int]]:
    """The edits that give up one item, cheapest first: (change, field, items in force after it)."""
    if item.kind == "ask":
        yield from _ask_edits(field, within, item)
        return
    makers = {
        "python": _python_edits,
        "stack": _stack_edits,
        "base": _base_edits,
        "libc": _libc_edits,
        "target": _target_edits,
        "device": _device_edits,
        "driver": _driver_edits,
    }
    maker = makers.get(item.key.split(":")[0])
    for change, problem in maker(field, item) if maker else ():
        inner = prune(problem, field.matrix)
        yield change, inner, inner.everything


def _ask_edits(field: Field, within: int, item: Item) -> Iterator[tuple[Change, Field, int]]:
    ask = field.problem.asks[item.index]
    if ask.specifier:
        yield Change("package", ask.name, ""), field, within & ~field.ranges[item.index]
    if within & field.source and _has_source(field, ask):
        yield Change("source", ask.name, "--source-builds"), field, within & ~field.source
    if any(other.kind == "ask" and other is not item and other.bit & within for other in field.items):
        yield Change("drop", ask.name, ""), field, within & ~item.bit


def _has_source(field: Field, ask: Ask) -> bool:
    slot = field.slots.get(field.matrix.modules().get(ask.name, ""))
    return slot is not None and any(e.candidate.name == ask.name and e.candidate.rank >= SOURCE_RANK for e in slot.entries)


def _python_edits(field: Field, _: Item) -> Iterator[tuple[Change, Problem]]:
    problem = field.problem
    for python in field.pythons[field.bound :]:
        yield Change("python", "python", f"=={python}.*"), replace(problem, policy=replace(problem.policy, python=python))


def _stack_edits(field: Field, _: Item) -> Iterator[tuple[Change, Problem]]:
    problem = field.problem
    name, version = split_stack(problem.policy.stack)
    if version:
        yield Change("stack", name, ""), replace(problem, policy=replace(problem.policy, stack=name))
    yield Change("stack", "", ""), _other_stack(field, "")


def _base_edits(field: Field, _: Item) -> Iterator[tuple[Change, Problem]]:
    problem = field.problem
    if problem.policy.base != VENDOR:
        yield Change("base", VENDOR, ""), replace(problem, policy=replace(problem.policy, base=VENDOR))
    yield Change("base", "", ""), replace(problem, policy=replace(problem.policy, base=""))


def _other_stack(field: Field, stack: str) -> Problem:
    """The problem under another stack, with that stack's devices chosen anew."""
    problem = field.problem
    policy = replace(problem.policy, stack=stack)
    devices, ignored = choose_devices(problem.host, policy, field.matrix)
    return replace(problem, policy=policy, devices=devices, ignored=ignored)


def _libc_edits(field: Field, _: Item) -> Iterator[tuple[Change, Problem]]:
    problem = field.problem
    floor = _least_libc(field)
    yield Change("libc", "glibc", f">={floor}"), replace(problem, host=replace(problem.host, libc=floor, libc_family="glibc"))
    policy = replace(problem.policy, target="container", python=field.pythons[0])
    yield Change("target", "container", ""), replace(problem, policy=policy)


def _target_edits(field: Field, _: Item) -> Iterator[tuple[Change, Problem]]:
    problem = field.problem
    yield Change("target", "container", ""), replace(problem, policy=replace(problem.policy, target="container"))


def _device_edits(field: Field, item: Item) -> Iterator[tuple[Change, Problem]]:
    problem = field.problem
    gone = distinct(problem.devices)[item.index]
    rest = tuple(d for d in problem.devices if (d.name, d.arch) != (gone.name, gone.arch))
    if rest:
        yield Change("device", gone.name or gone.arch, "leave out"), replace(problem, devices=rest)
    if not problem.policy.stack:
        others = {d.vendor for d, _ in problem.ignored if not d.integrated} - {gone.vendor}
        for name, stack in field.matrix.stacks().items():
            if stack.vendor in others or name == CPU_STACK:
                yield Change("stack", name, ""), _other_stack(field, name)


def _driver_edits(field: Field, _: Item) -> Iterator[tuple[Change, Problem]]:
    """Other drivers: the smallest step up first, then the smallest step down."""
    problem = field.problem
    vendor = problem.devices[0].vendor
    wanted: dict[str, str] = {}
    for slot in field.slots.values():
        for entry in slot.entries:
            for failure in entry.verdict.failures:
                if failure.need.subject.value == "driver":
                    for spec in failure.need.values or (failure.need.allows,):
                        wanted.setdefault(_satisfying(spec), spec)
    have = parse(field.ground.driver(problem.devices[0]) or "0")
    newer = sorted((v for v in wanted if parse(v) >= have), key=parse)
    older = sorted((v for v in wanted if parse(v) < have), key=parse, reverse=True)
    for driver in [*newer, *older]:
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
    floors = {
        f.need.allows.lstrip(">=")
        for s in field.slots.values()
        for e in s.entries
        for f in e.verdict.failures
        if f.need.subject.value == "libc"
    }
    for floor in sorted(floors, key=parse):
        problem = replace(field.problem, host=replace(field.problem.host, libc=floor, libc_family="glibc"))
        inner = prune(problem, field.matrix)
        if feasible(inner, inner.everything):
            return floor
    return max(floors, key=parse, default=field.problem.host.libc)
