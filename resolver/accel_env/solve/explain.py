"""Words for needs: why a pick fits, why a candidate is out, what stands in for a package that does not exist here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from accel_env.model import Because, Candidate, Device, Need, Subject
from accel_env.solve.images import INDEX
from accel_env.solve.stacks import leads
from accel_env.solve.verdict import SOURCE_RANK
from accel_env.solve.versions import best_tag

if TYPE_CHECKING:
    from accel_env.matrix.load import Matrix
    from accel_env.solve.field import Field
    from accel_env.solve.ground import Ground
    from accel_env.solve.verdict import Failure

TRIVIAL = (Subject.OS, Subject.CPU, Subject.STACK)


def because(matrix: Matrix, need: str, text: str, fact_id: str) -> Because:
    """A reason with its fact; a missing fact id is the text's own ground (asks)."""
    if not fact_id:
        return Because(need, text, "", "", "")
    fact = matrix.fact(fact_id)
    return Because(need, text, fact.id, fact.source, fact.grade, fact.doubt)


def failure_text(failure: Failure, candidate: Candidate) -> str:
    """A failure in one clause: what is needed, and what it met."""
    if failure.need.subject is Subject.DRIVER and failure.need.name:
        return f"{failure.met}, which takes a driver {failure.need.allows}"
    text = need_text(failure.need, candidate)
    kept_out = failure.need.unknown and failure.need.subject is Subject.PACKAGE
    return f"{text}{': ' if kept_out else '; '}{failure.met}" if failure.met else text


def need_text(need: Need, candidate: Candidate) -> str:
    """What a candidate asks, in one clause: `needs glibc >= 2.28`."""
    label = candidate.label
    subject = need.subject
    if need.unknown and subject is not Subject.PACKAGE:
        what = {Subject.ARCH: "the architectures it holds code for are", Subject.TORCH: "the torch it was built for is"}
        return f"{label}: {what.get(subject, 'whether it was published is')} unknown"
    if subject is Subject.ARCH:
        if need.lacks:
            return f"{label} lacks library kernels for {', '.join(need.lacks)}"
        code = ", ".join(need.values) or "nothing"
        return f"{label} has code for {code}" + (f" and compiles at run time for {', '.join(need.jit)}" if need.jit else "")
    if subject is Subject.PYTHON:
        tags = f"wheels for {', '.join(need.values)}" if need.values else ""
        return f"{label} has {tags}" if tags else f"{label} needs Python {need.allows}"
    if subject is Subject.TORCH:
        parts = [f"torch {need.allows}".strip(), *(f"build {b}" for b in need.values[:4]), *(f"{k} {v}" for k, v in need.abi)]
        beside = " if it is there" if need.when == "present" else ""
        return f"{label} needs {' with '.join(parts[:2])}{''.join(', ' + p for p in parts[2:])}{beside}"
    if subject is Subject.PACKAGE:
        return _package_text(need, candidate)
    if subject is Subject.STACK:
        return f"{label} is for {', '.join(need.values)}"
    if subject in (Subject.OS, Subject.CPU):
        return f"{label} is for {', '.join(need.values)}"
    wanted = " or ".join(need.values) if need.values else need.allows
    names = {Subject.DRIVER: "driver", Subject.LIBC: "glibc", Subject.LIBSTDCXX: "GLIBCXX", Subject.KERNEL: "kernel"}
    return f"{label} needs {names.get(subject, subject.value)} {wanted}"


def _package_text(need: Need, candidate: Candidate) -> str:
    label = candidate.label
    if need.unknown and need.name == candidate.name:
        return f"{label} is kept out"
    if not need.allows and need.name == candidate.name:
        if candidate.index == INDEX:
            return f"{label} comes in the vendor's image alone"
        return f"{label} is a source build" if candidate.rank >= SOURCE_RANK else f"{label} is a wheel, in no vendor's image"
    if need.when == "absent":
        return f"{label} cannot be beside {need.name} {need.allows}".rstrip()
    return f"{label} needs {need.name} {need.allows}".rstrip() + (" if it is there" if need.when == "present" else "")


def pick_reasons(field: Field, candidate: Candidate, python: str, jit: bool) -> tuple[Because, ...]:
    """Why a pick works here: one line per need that says something about this host or the other picks."""
    matrix, ground = field.matrix, field.ground
    rows = []
    for need in candidate.needs:
        if need.subject in TRIVIAL or need.unknown or need.soft or need.when != "always":
            continue
        text = _met_text(need, candidate, ground, python, jit)
        if text:
            rows.append(because(matrix, need.subject.value, text, need.fact))
    driver = ground.driver_need(candidate.stack, full=jit) if leads(candidate) and ground.devices else None
    if driver:
        rows.append(because(matrix, "driver", driver_text(ground, candidate.stack, jit), driver.fact))
    rows.append(because(matrix, "build", f"{candidate.label} is published on {candidate.index}", candidate.fact))
    return tuple(rows)


def driver_text(ground: Ground, stack: str, jit: bool) -> str:
    """How the driver meets a stack release's rule."""
    need = ground.driver_need(stack, full=jit)
    assert need is not None
    drivers = list(dict.fromkeys(d.driver for d in ground.devices if d.driver))
    wanted = " or ".join(need.values) if need.values else need.allows
    if not drivers:
        return f"{stack} needs driver {wanted}; no driver was named, so whether yours does is unknown"
    have = ", ".join(drivers)
    if need.values or jit or ground.fully_supported(stack):
        return f"{stack} needs driver {wanted}; this host has {have}"
    full = ground.driver_need(stack, full=True)
    whole = f"; {full.allows} would do everything" if full and full.allows else ""
    return f"{stack} starts with driver {wanted} (minor-version compatibility: machine code alone); this host has {have}{whole}"


def _met_text(need: Need, candidate: Candidate, ground: Ground, python: str, jit: bool) -> str:
    subject = need.subject
    if subject is Subject.ARCH:
        if not ground.devices or (need.lacks and not need.values):
            return ""
        how = "compiled at run time" if jit else "machine code"
        return f"{how} for {_devices(ground.devices)}: built for {', '.join((*need.values, *need.jit))}"
    if subject is Subject.PYTHON:
        tag = best_tag(need.values, python)
        return f"Python {python} takes the {tag} wheel" if tag else f"Python {need.allows}"
    if subject is Subject.LIBC and ground.libc:
        return f"needs glibc {need.allows}; there is {ground.libc}"
    if subject is Subject.LIBSTDCXX and ground.libstdcxx:
        return f"needs GLIBCXX {need.allows}; there is {ground.libstdcxx}"
    if subject in (Subject.TORCH, Subject.PACKAGE):
        return need_text(need, candidate)
    return ""


def _devices(devices: Iterable[Device]) -> str:
    return ", ".join(dict.fromkeys(f"{d.name or d.arch} ({d.arch})" for d in devices))


def stand_ins(field: Field, name: str) -> tuple[Because, ...]:
    """What the matrix says about a package that does not exist on the active stack, for these devices."""
    if name not in field.matrix.package_names():
        return ()
    archs = {d.arch for d in field.ground.devices}
    rows = []
    for absent in field.matrix.package(name).absent:
        narrowed = getattr(absent, "archs", ())
        if absent.stack == field.ground.stack_name and (not narrowed or archs & set(narrowed)):
            rows.append(because(field.matrix, "instead", absent.text, absent.fact))
    return tuple(rows)


def stack_answer(field: Field) -> tuple[Because, ...]:
    """What the matrix says about a stack that it cannot serve, and about kinds of device that plain wheels do not serve."""
    stack = field.ground.stack
    rows = []
    answer = getattr(stack, "answer", None)
    if stack is not None and answer is not None and not field.ground.beneath:
        rows.append(because(field.matrix, "stack", answer.text, answer.fact))
    for rule in getattr(stack, "kind_rules", ()) or ():
        if any(d.kind == rule.kind for d in field.ground.devices):
            rows.append(because(field.matrix, "device", rule.text, rule.fact))
    return tuple(rows)


def forward_compat(field: Field) -> tuple[Because, ...]:
    """Whether the vendor's compat package could bridge an old driver on these devices: a thing to know, never a plan.

    That it could is no reason where it was counted on already, nor under a driver to which the devices are unknown.
    """
    stack, devices = field.ground.stack, field.ground.devices
    compat = stack.forward_compat if stack else None
    if stack is None or compat is None or not devices:
        return ()
    package = f"{stack.vendor}'s forward compatibility package"
    branches = {field.ground.driver(d).split(".")[0] for d in devices}
    outside = [d for d in devices if d.kind not in compat.kinds]
    if outside:
        text = f"{package} does not serve {outside[0].name or outside[0].arch} ({outside[0].kind})"
    elif branches <= set(compat.branches) and not field.problem.policy.base and all(map(field.ground.knows, devices)):
        text = f"{package} bridges driver branch {', '.join(sorted(branches))} on this kind of device: see --base vendor"
    else:
        return ()
    return (because(field.matrix, "driver", text, compat.fact),)
