"""A choice becomes a solution: picks with reasons, image, run line, warnings."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from accel_env.model import Ask, Candidate, Conflict, Image, Pick, Solution, Subject, Warned
from accel_env.solve.conflict import conflict, nameless
from accel_env.solve.explain import driver_text, failure_text, pick_reasons
from accel_env.solve.extras import idle_extras
from accel_env.solve.field import Field
from accel_env.solve.images import INDEX, REF, VENDOR, bridge_warnings, idle_base, image_for, other_digest
from accel_env.solve.plan import index_text
from accel_env.solve.prune import prune
from accel_env.solve.search import Found, search
from accel_env.solve.slot import Entry
from accel_env.solve.stacks import OWN, leads
from accel_env.solve.verdict import SOURCE_RANK
from accel_env.solve.versions import best_tag, split_stack

ALIKE = 0.85  # of 1: `tourch` is meant to be torch, `torchmetrics` is not


def answer(field: Field) -> Solution | Conflict:
    """The best solution of a field, or the conflict that explains why there is none."""
    if field.problem.missing:
        return nameless(field)
    found = search(field) if field.asked else Found({}, 0, 0, False, ())
    if found is None and (other := in_images(field)):
        field, found = other
    return conflict(field) if found is None else solution(field, found)


def in_images(field: Field) -> tuple[Field, Found] | None:
    """An answer on a vendor's image, where torch, or something that was asked for, is on no index for these devices, and an image
    brings it; None where that is not so, or an image is no answer either."""
    problem = field.problem
    if problem.policy.base or problem.policy.target == "venv" or not problem.devices:
        return None
    names = ["torch", *(ask.name for ask, _ in field.asked)]
    nowhere = [name for name in dict.fromkeys(names) if _nowhere(field, name)]
    if not nowhere:
        return None
    devices = ", ".join(dict.fromkeys(d.name or d.arch for d in problem.devices))
    told = _why_image(field, nowhere[0], devices)
    policy = replace(problem.policy, base=VENDOR)
    other = prune(replace(problem, policy=policy, remarks=(*problem.remarks, told)), field.matrix)
    found = search(other)
    return (other, found) if found else None


def _why_image(field: Field, name: str, devices: str) -> Warned:
    """That a plan builds on an image: no index has a build for these devices, or what it has is of unknown make."""
    slot = field.slots[field.matrix.modules()[name]]
    for entry in slot.entries:
        failures = entry.verdict.failures
        if entry.candidate.name == name and entry.rank < SOURCE_RANK and failures and all(one.need.unknown for one in failures):
            text = f"no {name} of any index can be combined: {failure_text(failures[0], entry.candidate)}"
            where = index_text(entry.candidate.index, entry.candidate.tag, field.matrix)
            return Warned("vendor-image", f"{text} ({where}); this plan builds on a vendor's image", failures[0].need.fact)
    return Warned("vendor-image", f"no {name} of any index is for {devices}: this plan builds on a vendor's image")


def _nowhere(field: Field, name: str) -> bool:
    """True where every build of a package is for something else than these devices or of unknown make, and an image brings it."""
    slot = field.slots.get(field.matrix.modules().get(name, ""))
    foreign = (Subject.ARCH, Subject.STACK, Subject.CPU, Subject.OS)
    brought = (field.ground.judge(one).failures for one in field.matrix.brought(name, field.problem.host.platform))
    if slot is None or all(any(one.need.subject in foreign for one in failures) for failures in brought):
        return False
    own = [entry.verdict.failures for entry in slot.entries if entry.candidate.name == name and entry.rank < SOURCE_RANK]
    return all(any(one.need.unknown or one.need.subject in foreign for one in failures) for failures in own)


def solution(field: Field, found: Found) -> Solution:
    """The solution of a choice. Picks come in the order of the asks, then by name."""
    python = field.pythons[found.python]
    order = {m: n for n, (_, m) in reversed(list(enumerate(field.asked)))}
    entries = [(m, field.slots[m].entries[i]) for m, i in found.chosen.items()]
    entries.sort(key=lambda row: (row[0] != "torch", order.get(row[0], len(order)), row[1].candidate.name))
    picks = tuple(_pick(field, entry, python) for _, entry in entries)
    torch = next((p.candidate for p in picks if p.candidate.module == "torch"), None)
    lead = _lead(field, [entry for _, entry in entries])
    stack = lead.candidate.stack if lead else field.ground.stack_name
    image = image_of(field, stack, python, torch)
    env, run_args = _run(field, picks)
    lockable = all(e.hashed >> found.python & 1 or e.candidate.index == "image" for _, e in entries)
    warnings = tuple(dict.fromkeys(_warnings(field, [e for _, e in entries], stack, python, image, lockable)))
    return Solution(field.problem, stack, python, picks, field.outside, image, env, run_args, warnings, lockable)


def _lead(field: Field, entries: list[Entry]) -> Entry | None:
    """The pick whose stack is the plan's: torch, else the first that says which release of the stack it is for."""
    lower = field.ground.beneath
    rows = [e for e in entries if leads(e.candidate) and (not lower or split_stack(e.candidate.stack)[0] != lower)]
    return next((entry for entry in rows if entry.candidate.module == "torch"), next(iter(rows), None))


def _pick(field: Field, entry: Entry, python: str) -> Pick:
    candidate = entry.candidate
    return Pick(
        candidate, best_tag(candidate.tags, python), pick_reasons(field, candidate, python, entry.verdict.jit), candidate.evidence
    )


def image_of(field: Field, stack: str, python: str, torch: Candidate | None) -> Image | None:
    """The image to build on: the vendor's where torch comes in it, else the default base of the Python; None in a venv."""
    if field.problem.policy.target == "venv":
        return None
    images = field.matrix.images()
    if torch is not None and torch.index == INDEX:
        return image_for(images, torch, python, field.problem.policy)
    toolkits = [i for i in images if split_stack(i.stack)[0] == field.ground.stack_name and not i.torch]
    if field.ground.beneath and toolkits:
        archs = {d.arch for d in field.ground.devices}
        fitting = [i for i in toolkits if i.stack == stack and i.python == python]
        return next((i for i in fitting if not i.archs or archs <= set(i.archs)), None)
    return next((i for i in images if i.default and i.python == python), None)


def _run(field: Field, picks: tuple[Pick, ...]) -> tuple[dict[str, str], tuple[str, ...]]:
    stack = field.ground.stack
    env = dict(stack.run_env) if stack else {}
    for pick in picks:
        env |= {k[4:]: v for k, v in pick.candidate.provides if k.startswith("env:")}
    devices = field.problem.devices
    kinds = {d.kind for d in devices}
    own = [row.args for row in stack.run_kinds if kinds == {row.kind}] if stack else []
    args = own[0] if own else tuple(stack.run_args) if stack else ()
    return dict(sorted(env.items())), (*args, *(stack.run_several if stack and len(devices) > 1 else ()))


def _warnings(
    field: Field, entries: list[Entry], stack: str, python: str, image: Image | None, lockable: bool
) -> Iterator[Warned]:
    yield from field.problem.remarks
    yield from idle_base(field.problem, (entry.candidate for entry in entries))
    yield from other_digest(field.matrix, field.problem, image)
    yield from idle_extras((ask for ask, _ in field.asked), field.matrix)
    yield from _device_warnings(field, stack)
    yield from _driver_warnings(field, stack, entries)
    picked = {entry.candidate.name for entry in entries}
    for entry in entries:
        yield from _entry_warnings(field, entry, picked)
    if field.problem.policy.target == "container":
        yield from _container_warnings(field, python, image)
    if field.outside:
        asked = ", ".join(_outside(a, field.matrix.package_names()) for a in field.outside)
        yield Warned("outside-matrix", f"outside the matrix, closed by uv at lock time: {asked}")
    if python.endswith("t"):
        yield Warned("free-threaded", f"`lock` cannot close over free-threaded Pythons yet: {python.rstrip('t')} can be locked")
    if not lockable:
        names = [e.candidate for e in entries if e.candidate.index != "image" and not e.hashed >> field.pythons.index(python) & 1]
        yield Warned(
            "lock-needs-network",
            f"no published hash is known for {', '.join(c.label for c in names)}: `lock` downloads and hashes it once",
        )


def _device_warnings(field: Field, stack: str) -> Iterator[Warned]:
    ground, problem = field.ground, field.problem
    if not problem.devices and ground.stack_name == "cpu" and not problem.policy.stack:
        named = problem.host.provenance.get("devices") == "--device"
        found = "--device cpu" if named else "no accelerator was named and none was found"
        yield Warned("cpu-stack", f"{found}: this plan is for the CPU")
    elif not problem.devices and ground.stack_name != "cpu":
        yield Warned("no-device", f"no device was named for {stack}: whether the builds hold code for yours was not checked")
    for device, why in problem.ignored:
        yield Warned("device-ignored", f"{device.name or device.arch} ({device.vendor}) is left out: {why}")


def _container_warnings(field: Field, python: str, image: Image | None) -> Iterator[Warned]:
    stack = field.ground.stack
    if stack and stack.run_note:
        yield Warned("run-line", stack.run_note, stack.run_fact)
    if field.problem.host.libc and _libc_was_named(field):
        yield Warned(
            "option-without-effect", "--glibc does not bind in a container, whose base image brings its own: see --target venv"
        )
    if image is None:
        yield Warned("no-base-image", f"no base image for Python {python} is known: lock it for a machine with --target venv")
    elif not image.digest_on(field.problem.host.platform):
        yield Warned("image-unpinned", f"no digest of {image.ref} is known: render refuses it unless told otherwise", image.fact)


def _libc_was_named(field: Field) -> bool:
    return field.problem.host.provenance.get("libc", "") == "--glibc"


def _driver_warnings(field: Field, stack: str, entries: list[Entry]) -> Iterator[Warned]:
    ground, problem = field.ground, field.problem
    lead = _lead(field, entries)
    if lead is None or not problem.devices:
        return
    if REF in dict(lead.candidate.provides) and (told := list(bridge_warnings(ground, lead.candidate))):
        yield from told
        return
    need = ground.driver_need(stack, full=lead.verdict.jit)
    if need is None:
        return
    drivers = [ground.driver(d) for d in problem.devices]
    wanted = " or ".join(need.values) if need.values else need.allows
    if not all(drivers):
        known = {
            r.allows for d in problem.devices for r in (ground.stack.arch_drivers if ground.stack else ()) if d.arch in r.archs
        }
        limits = f", and this device a driver {' and '.join(sorted(known))}" if known else ""
        yield Warned("driver-unknown", f"no driver was named: {stack} needs driver {wanted}{limits}", need.fact)
    elif not all(d[0].isdigit() for d in drivers):
        yield Warned(
            "driver-in-kernel",
            f"{problem.devices[0].driver}: an in-kernel driver has no packaged release; {stack} is documented for {wanted}",
            need.fact,
        )
    elif not need.values and not ground.fully_supported(stack):
        yield Warned(
            "driver-minor-compat",
            driver_text(ground, stack, lead.verdict.jit) + f". {_from_ptx(entries)}",
            need.fact,
        )


def _from_ptx(entries: list[Entry]) -> str:
    """What the lower floor means for the picks: those that hold machine code for the devices load."""
    own = [e.candidate for e in entries if any(need.subject is Subject.ARCH for need in e.candidate.needs) and not e.verdict.jit]
    names = list(dict.fromkeys(candidate.name for candidate in own))
    lost = "What a program has the driver compile from PTX while it runs does not load"
    return f"{lost}; machine code, which these picks have for the device, does: {', '.join(names)}" if names else lost


def _note(entry: Entry, picked: Collection[str]) -> str:
    """A candidate's note; nothing where all parts of it, released with it in the same version, are picked that the note names."""
    candidate = entry.candidate
    same = f"=={candidate.version}"
    parts = [n.name for n in candidate.needs if n.subject is Subject.PACKAGE and n.when == "present" and n.allows == same]
    named = {name for name in parts if name in candidate.note}
    here, lacking = sorted(named & set(picked)), sorted(named - set(picked))
    if here and not lacking:
        return ""
    return candidate.note + (f"; here {', '.join(here)} is picked, {', '.join(lacking)} is not" if here else "")


def _entry_warnings(field: Field, entry: Entry, picked: Collection[str]) -> Iterator[Warned]:
    candidate, note = entry.candidate, _note(entry, picked)
    for failure in entry.verdict.soft:
        yield Warned(
            f"{candidate.name}-{failure.need.subject.value}",
            f"{failure_text(failure, candidate)}: {_fact_text(field, failure.need.fact)}",
            failure.need.fact,
        )
    if entry.verdict.jit:
        yield Warned(
            "jit-first-run",
            f"{candidate.label} has no ahead-of-time code here: kernels are compiled just in time (JIT): a slow first run",
            candidate.fact,
        )
    if candidate.rank == 1 and not candidate.note:
        yield Warned("third-party-build", f"{candidate.label} is a third party's build ({candidate.index})", candidate.fact)
    if candidate.rank >= SOURCE_RANK:
        yield Warned(
            "source-build",
            f"{candidate.label} is built where it is installed: that takes a compiler and the toolkit there",
            candidate.fact,
        )
    if candidate.rank == 2:
        yield Warned(
            "fallback",
            f"{candidate.label} is a marked fallback, not the exact pair" + (f": {candidate.note}" if candidate.note else ""),
            candidate.fact,
        )
    elif OWN in dict(candidate.provides):
        told = f"{candidate.label} is the vendor's own build: wheels compiled for a release of torch are not known to fit it"
        yield Warned("vendor-torch", told + (f"; {candidate.note}" if candidate.note else ""), candidate.fact)
    elif note:
        archs = ",".join(dict.fromkeys(d.arch for d in field.problem.devices)) or "ARCH"
        yield Warned("note", f"{candidate.label}: {note.replace('{arch}', archs)}", candidate.fact)


def _outside(ask: Ask, names: Collection[str]) -> str:
    """An ask that the matrix does not model, with the name that may be meant where one is all but the same."""
    import difflib

    if ask.name in names:
        return (ask.text or ask.name) + (" (of which the matrix does not hold the release)" if ask.specifier else "")
    near = difflib.get_close_matches(ask.name, names, 1, ALIKE)
    return (ask.text or ask.name) + (f" (did you mean {near[0]}?)" if near else "")


def _fact_text(field: Field, fact: str) -> str:
    return field.matrix.fact(fact).text
