"""Findings about conda's builds of torch: the channel, what chooses the CUDA, and that CUDA on this host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from accel_env.judge.files.pick import Present, exact
from accel_env.judge.files.values import Install, Wanted
from accel_env.judge.old import reaches
from accel_env.judge.types import Finding, Fix
from accel_env.solve.versions import parse

if TYPE_CHECKING:
    from accel_env.judge.files.scope import Scope
    from accel_env.matrix.types import StackRelease

_STACK = "cuda"


def conda_findings(scope: Scope) -> Iterator[Finding]:
    """Everything about the conda packages of a scene."""
    for step in scope.scene.steps:
        if isinstance(step, Install) and step.tool == "conda":
            for one in step.wanted:
                yield from _channel(scope, step, one)
                yield from _cpu(scope, one)
    torch = scope.torch
    if torch is not None and torch.conda and torch.local and scope.devices:
        yield from _build(scope, torch)


def _channel(scope: Scope, step: Install, one: Wanted) -> Iterator[Finding]:
    """A release that the channel does not have."""
    channel, name, last, fact = scope.tables.conda_last
    known = scope.tables.conda_names.get(one.name, one.name)
    version = one.spec.lstrip("=").removesuffix(".*")
    channels = {c.rpartition("/")[2] for c in step.channels} - set(scope.tables.conda_beside)
    only = channels == {channel} or one.index == channel
    if known == name and only and exact(one.spec.removesuffix(".*")) and version and parse(version) > parse(last):
        reasons = (scope.because("index", f"the channel {channel} ends with {last}", fact),)
        fixes = (Fix("index", "conda-forge", do="take it from conda-forge, or from PyPI with pip"),)
        text = f"{one.text}: the conda channel {channel} has no such release"
        yield scope.finding("pinned-version-unavailable", known, "error", text, one.where, reasons, fixes)


def _cpu(scope: Scope, one: Wanted) -> Iterator[Finding]:
    """A package that chooses the CPU build on a machine with a device."""
    if one.name not in scope.tables.conda_cpu or scope.stack_name in ("", "cpu"):
        return
    reasons = (scope.because("build", f"{one.name} chooses the CPU build", scope.tables.conda_fact),)
    text = f"{one.name} chooses torch's CPU build: it cannot use {_device(scope)}"
    fix = Fix("package", one.name, do=f"leave {one.name} out, and name the CUDA version instead")
    yield scope.finding("cpu-only-build", "torch", "error", text, one.where, reasons, (fix,))


def _build(scope: Scope, torch: Present) -> Iterator[Finding]:
    """The CUDA of the build against the devices and their driver."""
    stack = scope.matrix.stacks()[_STACK]
    said = f"{torch.text} is conda's build for CUDA {_cuda(torch.local)}"
    because = scope.because("build", said, scope.tables.conda_fact)
    if scope.stack_name != _STACK:
        text = f"{said}: it cannot use {_device(scope)}"
        fix = Fix("index", do=f"take torch's {scope.stack_name} wheels with pip")
        yield scope.finding("wrong-index", "torch", "error", text, torch.where, (because,), (fix,))
        return
    release = next((r for r in stack.releases if r.version == _cuda(torch.local)), None)
    if release is None:
        return
    arch = scope.devices[0].arch
    if arch and release.targets and not any(reaches(target, arch) for target in release.targets):
        text = f"{said}, whose compiler ends before {arch} of {_device(scope)}"
        reasons = (because, scope.because("arch", f"targets of CUDA {release.version}", release.fact))
        fixes = (Fix("package", "torch", do="a build for a newer CUDA, from conda-forge or PyPI"),)
        yield scope.finding("gpu-arch-not-in-wheel", "torch", "warning", text, torch.where, reasons, fixes)
    yield from _driver(scope, torch, release, said)


def _driver(scope: Scope, torch: Present, release: StackRelease, said: str) -> Iterator[Finding]:
    floor = release.driver_floors.get("windows" if scope.host.wsl else scope.host.os)
    driver = scope.devices[0].driver
    if floor is None or not driver[:1].isdigit() or parse(driver) >= parse(floor.minor):
        return
    text = f"{said}, which needs driver >={floor.minor}; the driver here is {driver}"
    reasons = (scope.because("driver", text, release.driver_fact),)
    fixes = (Fix("driver", scope.devices[0].vendor, f">={floor.minor}", do="install a newer driver"),)
    yield scope.finding("driver-too-old-for-cuda-runtime", "nvidia-driver", "error", text, torch.where, reasons, fixes)


def _device(scope: Scope) -> str:
    return scope.devices[0].name or scope.devices[0].arch


def _cuda(label: str) -> str:
    """`12.1` of `cu121`."""
    digits = label.removeprefix("cu")
    return f"{digits[:-1]}.{digits[-1]}"
