"""Findings about images and how containers of them start: tags, driver demands, devices, another vendor's torch."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from accel_env.judge.types import Finding, Fix
from accel_env.model import Device
from accel_env.solve.versions import parse, split_stack

if TYPE_CHECKING:
    from accel_env.judge.files.images import Known
    from accel_env.judge.files.scope import Scope
    from accel_env.judge.files.tables import Access
    from accel_env.matrix.types import StackRelease

_TERM = re.compile(r"(cuda|driver|brand|arch)(>=|<=|!=|=|<|>)([\w.]+)")


def image_findings(scope: Scope) -> Iterator[Finding]:
    """Everything about the base image of a scene."""
    image = scope.image
    if image is None:
        return
    yield from _mutable(scope, image)
    yield from _foreign_base(scope, image)
    yield from _foreign_torch(scope, image)
    if scope.devices and scope.scene.final:
        yield from _demand(scope, image)
        yield from _access(scope)


def _mutable(scope: Scope, image: Known) -> Iterator[Finding]:
    base = image.base
    if base.digest or not base.repository or base.repository == "scratch":
        return
    moving = not base.tag or any(re.fullmatch(pattern, base.tag) for pattern in scope.tables.mutable)
    # a family that names its release in the path moves within that release only
    settled = image.release and image.stack_name == "gaudi"
    said = f"the tag {base.tag}" if base.tag else "no tag, so latest,"
    reasons = (scope.because("image", f"{base.ref} has no digest", scope.tables.note("mutable")),)
    fixes = (Fix("image", base.repository, do="write a tag that names a release, and its digest: NAME:TAG@sha256:..."),)
    rule = "mutable-tag" if moving and not settled else "tag-without-digest"
    when = "tomorrow" if rule == "mutable-tag" else "after a rebuild"
    text = f"{base.ref} is named by {said} and no digest: it can be another image {when}"
    yield scope.finding(rule, base.repository, "warning" if rule == "mutable-tag" else "note", text, base.where, reasons, fixes)


def _foreign_base(scope: Scope, image: Known) -> Iterator[Finding]:
    """An image of another vendor's stack than the devices'."""
    mine, theirs = scope.stack_name, image.stack_name
    served = {name for name, stack in scope.matrix.stacks().items() if stack.vendor != "none"}
    if not mine or not theirs or mine == theirs or theirs not in served:
        return
    names = " and ".join(dict.fromkeys(d.name or d.arch for d in scope.devices))
    reasons = (scope.because("image", f"{image.base.ref} is an image for {theirs}", image.fact),)
    fixes = (Fix("image", do=f"an image for {mine}, or a plain Python image with torch's {mine} wheels"),)
    text = f"{image.base.ref} is made for {theirs}, the devices here ({names}) are served by {mine}"
    severity = "error" if image.vendor else "warning"
    yield scope.finding(
        "wrong-index" if image.vendor else "foreign-base", image.base.repository, severity, text, image.base.where, reasons, fixes
    )


def _foreign_torch(scope: Scope, image: Known) -> Iterator[Finding]:
    """A torch for another stack than that of the image: a CUDA wheel in a ROCm base."""
    torch, stack = scope.torch, split_stack(scope.torch_stack())[0]
    if torch is None or not torch.candidates or not image.stack_name or stack in ("", image.stack_name):
        return
    if any(r.after.name == "torch" and r.before.vendor for r in scope.state.replaced):
        return  # said as what it is: the vendor's build was overwritten
    served = {split_stack(c.stack)[0] for c in scope.matrix.candidates("torch", scope.host.platform) if c.index != "image"}
    if stack == "cpu" and scope.stack_name in ("", "cpu"):
        return
    rule = "cpu-only-build" if stack == "cpu" else "wrong-index"
    severity = "error" if rule == "wrong-index" and not torch.shaky else "warning"
    reasons = (
        scope.because("image", f"{image.base.ref} is an image for {image.stack_name}", image.fact),
        scope.because("build", f"{torch.label} is built for {stack}", torch.candidates[0].fact),
    )
    fixes = list(_right_index(scope, image)) if image.stack_name in served else []
    text = f"{torch.label} is built for {stack}, the image {image.base.ref} for {image.stack_name}"
    yield scope.finding(rule, "torch", severity, text, torch.where, reasons, fixes)


def _right_index(scope: Scope, image: Known) -> Iterator[Fix]:
    """The builds of the same torch for the image's stack."""
    torch = scope.torch
    rows = [c for c in scope.matrix.candidates("torch", scope.host.platform) if split_stack(c.stack)[0] == image.stack_name]
    same = [c for c in rows if torch is not None and c.version == torch.version and scope.index_url(c.index)]
    for one in (same or [c for c in rows if scope.index_url(c.index)])[:2]:
        command = f"pip install torch=={one.version} --index-url {scope.index_url(one.index)}"
        yield Fix("index", one.build, do=f"take torch {one.version}+{one.build} from its own index", command=command)


# --- what a container asks of the driver ------------------------------------------------------------------------------


def _demand(scope: Scope, image: Known) -> Iterator[Finding]:
    tables, variables = scope.tables, {**scope.state.variables}
    service = scope.scene.service
    for variable in service.variables if service else ():
        variables[variable.name] = variable.value
    nvidia = [d for d in scope.devices if d.vendor == "nvidia" and d.driver[:1].isdigit()]
    if not nvidia or variables.get(tables.disable, "").lower() in ("1", "true"):
        return
    own = variables.get(tables.require, "")
    if own:
        failing = [d for d in nvidia if not _holds(scope, own, d)]
        where = _where(scope, tables.require)
        text = f"{tables.require}={own}"
        reasons = [scope.because("driver", "the expression is checked when the container starts", tables.require_fact)]
        asked = max(re.findall(r"cuda>=?(\d+\.\d+)", own), key=parse, default="")
    elif image.family is not None and image.family.requires and image.release:
        failing = [d for d in nvidia if _refused(scope, image.release, d)]
        where, text, asked = image.base.where, f"{image.base.ref} sets {tables.require}=cuda>={image.release}", image.release
        demand = next((row for row in tables.demands if image.release in row.cuda), None)
        reasons = [scope.because("driver", text, demand.fact if demand else tables.require_fact)]
    else:
        return
    if failing:
        yield _unsatisfied(scope, failing[0], text, asked, where, reasons)


def _unsatisfied(scope: Scope, device: Device, text: str, asked: str, where: str, reasons: list) -> Finding:  # type: ignore[type-arg]
    release = scope.matrix.stack_release(f"cuda-{asked}") if asked else None
    floor = _floor(scope, release, full=True)
    fixes = [Fix("driver", "nvidia", spec=f">={floor}", do="install a driver that offers this CUDA")] if floor else []
    offered = _offered(scope, device)
    if offered:
        fixes.append(Fix("image", "nvidia/cuda", spec=f"<={offered}", do=f"an image of CUDA {offered} or older"))
    minor = _floor(scope, release, full=False)
    if minor and parse(device.driver) >= parse(minor):
        do = "switch the check off: machine code runs on this driver by minor-version compatibility"
        fixes.append(Fix("env", set={scope.tables.disable: "1"}, do=do))
    message = f"{text}, and {device.name or device.arch} has driver {device.driver}" + (
        f", which offers CUDA {offered}" if offered else ""
    )
    return scope.finding(
        "container-requirement-unsatisfied",
        "nvidia-driver",
        "error",
        f"{message}: the container does not start",
        where,
        reasons,
        fixes,
    )


def _floor(scope: Scope, release: StackRelease | None, *, full: bool) -> str:
    floor = release.driver_floors.get("windows" if scope.host.wsl else scope.host.os) if release else None
    return (floor.full if full else floor.minor) if floor else ""


def _offered(scope: Scope, device: Device) -> str:
    """The newest CUDA release whose own driver is not newer than the device's."""
    stack = scope.matrix.stacks().get("cuda")
    known = (
        [r.version for r in stack.releases if (f := _floor(scope, r, full=True)) and parse(f) <= parse(device.driver)]
        if stack
        else []
    )
    return max(known, key=parse, default="")


def _refused(scope: Scope, release: str, device: Device) -> bool:
    """Whether an nvidia/cuda image of a CUDA release does not start with this device and driver."""
    offered = _offered(scope, device)
    if not offered or parse(offered) >= parse(release):
        return False
    row = next((row for row in scope.tables.demands if release in row.cuda), None)
    if row is None or not device.kind:
        return False
    if device.kind in row.refused:
        return True
    return bool(row.branches) and device.driver.partition(".")[0] not in row.branches


def _holds(scope: Scope, expression: str, device: Device) -> bool:
    """NVIDIA_REQUIRE_*: blanks mean or, commas and; what cannot be read counts as met."""
    return any(all(_term(scope, term, device) for term in clause.split(",")) for clause in expression.split())


def _term(scope: Scope, term: str, device: Device) -> bool:
    match = _TERM.fullmatch(term)
    if match is None or match[1] == "arch":
        return True
    kind, operator, value = match.groups()
    if kind == "brand":
        brands = scope.tables.brands.get(device.kind)
        return brands is None or (value in brands) == (operator == "=")
    have = _offered(scope, device) if kind == "cuda" else device.driver
    if not have:
        return True
    # the shorter number decides how much of the driver's is compared: 470 is any 470.x
    parts = value.count(".") + 1
    a, b = parse(".".join(have.split(".")[:parts])), parse(value)
    return {">=": a >= b, "<=": a <= b, "<": a < b, ">": a > b, "=": a == b, "!=": a != b}[operator]


def _where(scope: Scope, variable: str) -> str:
    """The line that sets a variable last."""
    from accel_env.judge.files.values import Variable

    rows = [s.where for s in scope.scene.steps if isinstance(s, Variable) and s.name == variable]
    service = scope.scene.service
    rows += [v.where for v in (service.variables if service else ()) if v.name == variable]
    return rows[-1] if rows else scope.scene.file


# --- devices of a service ---------------------------------------------------------------------------------------------


def _access(scope: Scope) -> Iterator[Finding]:
    """A compose service that gets no device."""
    service, image = scope.scene.service, scope.image
    row = next((r for r in scope.tables.access if r.vendor == scope.devices[0].vendor), None)
    if service is None or row is None or service.privileged or not _uses_device(scope, image):
        return
    if (row.gpus and service.gpus) or (row.runtime and service.runtime == row.runtime) or _passed(row, service.devices):
        return
    reasons = (scope.because("container", f"the service {service.name} passes none of them", row.fact),)
    message = (
        f"the service {service.name} is given no device: the container sees no {scope.devices[0].name or scope.devices[0].arch}"
    )
    yield scope.finding(row.rule, service.name, row.severity, message, service.where, reasons, (Fix("container-arg", do=row.do),))


def _passed(row: Access, devices: tuple[str, ...]) -> bool:
    return any(device.split(":")[0].startswith(tuple(row.devices)) or device.startswith(tuple(row.devices)) for device in devices)


def _uses_device(scope: Scope, image: Known | None) -> bool:
    """Whether the image is for the devices at all: a database beside them needs none."""
    stack = split_stack(scope.torch_stack())[0] or (image.stack_name if image is not None else "")
    return stack == scope.stack_name
