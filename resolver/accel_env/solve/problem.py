"""`state`: a host, asks and a policy become a problem with one set of devices; `items_of` lists what could be changed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from accel_env.errors import UsageError
from accel_env.model import Ask, Device, Host, Nogood, Policy, Problem
from accel_env.solve.images import image_pythons
from accel_env.solve.stacks import active_stack, comes_in_images
from accel_env.solve.verdict import Item
from accel_env.solve.versions import allows, split_stack

if TYPE_CHECKING:
    from accel_env.matrix.load import Matrix

_NAME = re.compile(r"[-_.]+")
LINUX_ARCHS = {"arm64": "aarch64", "amd64": "x86_64"}
_BARE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")


def normalise(name: str) -> str:
    """The normalised form of a distribution name."""
    return _NAME.sub("-", name).lower()


def parse_ask(text: str, origin: str) -> Ask:
    """A PEP 508 requirement as an ask; raises UsageError (argument) with the text and what is expected."""
    if _BARE.fullmatch(text):  # most asks are a name alone: no parser to load for that
        return Ask(normalise(text), "", (), text, origin)
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        problem = str(error).splitlines()[0]
        raise UsageError(
            "bad-requirement",
            f"{origin}: {text!r} is no requirement: {problem}",
            hint="write a name and a version range, for example 'torch>=2.9,<2.12'",
        ) from None
    if requirement.url:
        raise UsageError(
            "bad-requirement",
            f"{origin}: {text!r} names a URL; the matrix picks files itself",
            hint=f"write {requirement.name!r}, or add the file in an overlay",
        )
    marker = str(requirement.marker or "")
    extras = tuple(sorted(requirement.extras))
    return Ask(normalise(requirement.name), str(requirement.specifier), extras, text.strip(), origin, marker)


def merge(asks: Iterable[Ask]) -> tuple[Ask, ...]:
    """The same asks without exact repetitions, in order."""
    seen: dict[tuple[str, str, tuple[str, ...], str], Ask] = {}
    for ask in asks:
        seen.setdefault((ask.name, ask.specifier, ask.extras, ask.marker), ask)
    return tuple(seen.values())


def state(host: Host, asks: Sequence[Ask], policy: Policy, matrix: Matrix, nogoods: tuple[Nogood, ...] = ()) -> Problem:
    """The problem to solve. Of several vendors one set of devices is chosen: discrete before integrated, then the larger set.

    Raises UsageError for a stack name or Python that the matrix has never heard of, and for a driver that is none.
    """
    _check_policy(policy, matrix)
    devices, ignored = choose_devices(host, policy, matrix)
    _check_drivers(devices, matrix)
    problem = Problem(host, devices, merge(asks), policy, ignored, nogoods)
    if any(ask.marker for ask in problem.asks):
        problem = replace(problem, asks=tuple(ask for ask in problem.asks if _counts(ask, problem, matrix)))
        if not problem.asks:
            raise UsageError("nothing-asked", f"no requirement counts on {host.platform}: every marker says otherwise")
    return problem


def inside_container(host: Host) -> Host:
    """The host as a container sees it: Linux, whatever runs the engine; on Windows the engine's machine is WSL2."""
    if host.os == "linux":
        return host
    arch = LINUX_ARCHS.get(host.arch, host.arch)
    return replace(
        host, os="linux", arch=arch, wsl=host.os == "windows", kernel="", libc="", libc_family="", libstdcxx="", python=""
    )


def _counts(ask: Ask, problem: Problem, matrix: Matrix) -> bool:
    """True when an ask's marker holds on the host; where it depends on a Python that is free, on the preferred one."""
    from accel_env.matrix.markers import marker_holds

    return marker_holds(ask.marker, problem.host.platform, pythons_of(problem, matrix)[0])


def _check_policy(policy: Policy, matrix: Matrix) -> None:
    if policy.stack:
        name, version = split_stack(policy.stack)
        stack = matrix.stacks().get(name)
        if stack is None or policy.stack.endswith("-"):
            raise UsageError(
                "unknown-stack",
                f"--stack {policy.stack}: there is no stack {policy.stack!r}",
                hint=f"one of: {', '.join(matrix.stacks())}",
            )
        releases = [r.version for r in stack.releases]
        if version and not any(r == version or r.startswith(version + ".") for r in releases):
            raise UsageError(
                "unknown-stack", f"--stack {policy.stack}: {name} has no release {version}", hint=f"known: {', '.join(releases)}"
            )
    if policy.python and not re.fullmatch(r"\d+\.\d+t?", policy.python):
        raise UsageError("bad-python", f"--python {policy.python!r} is no Python version", hint="write X.Y, for example 3.12")


def _check_drivers(devices: Sequence[Device], matrix: Matrix) -> None:
    for device in devices if any(d.driver for d in devices) else ():
        for stack in matrix.stacks().values():
            for row in stack.no_drivers if stack.vendor == device.vendor else ():
                if row.kind == device.kind and device.driver[:1].isdigit() and allows(row.allows, device.driver):
                    raise UsageError("bad-driver", f"driver {device.driver} of {device.name or device.arch} {row.text}",
                                     hint=matrix.fact(row.fact).text)


def choose_devices(host: Host, policy: Policy, matrix: Matrix) -> tuple[tuple[Device, ...], tuple[tuple[Device, str], ...]]:
    """(devices that the plan must serve, devices left out with the reason)."""
    wanted = ""
    if policy.stack:
        wanted = matrix.stacks()[split_stack(policy.stack)[0]].vendor
    groups: dict[str, list[Device]] = {}
    for device in host.devices:
        groups.setdefault(device.vendor, []).append(device)
    discrete = {v: [d for d in ds if not d.integrated] for v, ds in groups.items()}
    if policy.stack:
        chosen = discrete.get(wanted) or groups.get(wanted, [])
        if not chosen and wanted not in ("", "none"):
            # an accelerator that the stack does not serve is a conflict of the two, not a plan for nobody
            chosen = list(host.devices)
        why = f"not served by --stack {policy.stack}"
    else:
        pool = {v: ds for v, ds in discrete.items() if ds} or groups
        served = {s.vendor for s in matrix.stacks().values() if s.releases}
        # of two equal sets the vendor's name decides: the order of the probes must not
        chosen = max(
            (pool[vendor] for vendor in sorted(pool, reverse=True)),
            key=lambda ds: (ds[0].vendor in served, len(ds), sum(d.memory_mib or 0 for d in ds)),
            default=[],
        )
        why = f"the {chosen[0].vendor} set was chosen; name another with --stack or --device" if chosen else ""
    ignored = []
    for device in host.devices:
        if device not in chosen:
            same = bool(chosen) and device.vendor == chosen[0].vendor
            ignored.append((device, "integrated, beside a discrete one" if device.integrated and (same or chosen) else why))
    return tuple(chosen), tuple(ignored)


def pythons_of(problem: Problem, matrix: Matrix) -> tuple[str, ...]:
    """The Pythons to try, best first: the one that binds, else those with a default base image, else all of the matrix."""
    policy, host = problem.policy, problem.host
    if policy.python:
        return (policy.python,)
    if policy.target == "venv" and host.python:
        return (python_minor(host.python),)
    order = [p.version for p in matrix.pythons()]
    if policy.target == "venv":
        return tuple(p for p in order if not p.endswith("t"))
    name = active_stack(matrix, problem.devices, policy)
    if policy.base or comes_in_images(matrix, host, name):
        brought = image_pythons(matrix, name, policy)
        return tuple(p for p in order if p in brought)
    based = {i.python for i in matrix.images() if i.default}
    return tuple(p for p in order if p in based)


def python_minor(text: str) -> str:
    """`3.12.4` -> `3.12`, `3.14.0t` -> `3.14t`."""
    threaded = text.endswith("t")
    return ".".join(text.rstrip("t").split(".")[:2]) + ("t" if threaded else "")


def distinct(devices: Iterable[Device]) -> tuple[Device, ...]:
    """The devices that differ in anything a need can ask about."""
    seen: dict[tuple[str, str, str, str], Device] = {}
    for device in devices:
        seen.setdefault((device.name, device.arch, device.driver, device.kind), device)
    return tuple(seen.values())


def items_of(problem: Problem) -> tuple[Item, ...]:
    """Asks and host facts as items, one bit each; bit 1 is kept for what nobody can change."""
    policy, host = problem.policy, problem.host
    rows: list[tuple[str, str, str, int]] = [("ask", f"ask:{i}", a.text or a.name, i) for i, a in enumerate(problem.asks)]
    for index, device in enumerate(distinct(problem.devices)):
        rows.append(("host", f"device:{index}", f"device {device.name or device.arch} ({device.arch})", index))
    if not problem.devices:
        rows.append(("host", "none", "no accelerator on this host", 0))
    drivers = list(dict.fromkeys(d.driver for d in problem.devices if d.driver))
    if drivers:
        rows.append(("host", "driver", f"driver {', '.join(drivers)}", 0))
    chosen = (("base", policy.base), ("stack", policy.stack))
    rows += [("host", key, f"{key} {value}", 0) for key, value in chosen if value]
    if policy.python or (policy.target == "venv" and host.python):
        rows.append(("host", "python", f"Python {policy.python or python_minor(host.python)}", 0))
    if policy.target == "venv":
        rows.append(("host", "target", "target venv", 0))
        if host.libc:
            rows.append(("host", "libc", f"{host.libc_family or 'glibc'} {host.libc}", 0))
        if host.libstdcxx:
            rows.append(("host", "libstdcxx", f"libstdc++ GLIBCXX_{host.libstdcxx}", 0))
    if host.kernel:
        rows.append(("host", "kernel", f"kernel {host.kernel}", 0))
    rows += [("host", "os", f"os {host.os}", 0), ("host", "cpu", f"cpu {host.arch}", 0)]
    return tuple(Item(kind, key, text, 1 << (n + 1), index) for n, (kind, key, text, index) in enumerate(rows))
