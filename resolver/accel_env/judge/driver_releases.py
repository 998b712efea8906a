"""Releases of the driver by number: the first known one that meets a bound, and the newest that serves the devices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from accel_env.judge.fixes import unique
from accel_env.judge.types import Finding, Fix
from accel_env.solve.ground import device_driver_needs
from accel_env.solve.versions import allows, parse, valid_specifier

if TYPE_CHECKING:
    from accel_env.judge.scene import Scene
    from accel_env.model import Device, Need

# Rules that a newer driver of the same vendor ends.
BY_DRIVER = frozenset({"driver-too-old-for-cuda-runtime", "forward-compat-unsupported-hw", "container-requirement-unsatisfied"})
VENDORS = ("nvidia", "")


def with_releases(finding: Finding, scene: Scene) -> Finding:
    """The finding; beside every bound on the driver the releases by number that a person can install."""
    finding = _at_least(finding, scene)
    if finding.rule not in BY_DRIVER or scene.vendor not in VENDORS:
        return finding
    newest = newest_release(scene)
    serving = (
        "known to serve the device" if any(d.arch for d in scene.devices) else "known; older devices may need an older branch"
    )
    fixes: list[Fix] = []
    for fix in finding.fixes:
        fixes.append(fix)
        if fix.kind != "driver" or (fix.spec and not valid_specifier(fix.spec)):
            continue
        first = next((v for v in known_releases(scene) if fix.spec.startswith(">=") and allows(fix.spec, v)), "")
        name = fix.name or "nvidia"
        if first:
            fixes.append(Fix("driver", name, spec=f"=={first}", do="the first release that does"))
        if newest and newest != first and allows(fix.spec, newest):
            fixes.append(Fix("driver", name, spec=f"=={newest}", do=f"the newest release that is {serving}"))
    return replace(finding, fixes=unique(fixes))


def unmet_by_device(scene: Scene) -> Iterator[tuple[Device, Need]]:
    """What the devices ask of the driver whatever the build, and the driver here is not: resolve's own rule."""
    for device, need in _device_needs(scene):
        if scene.driver.text and (scene.driver.low[:1].isdigit() or scene.driver.high) and scene.driver.fails(need.allows):
            yield device, need


def device_findings(scene: Scene) -> Iterator[Finding]:
    """A driver of before the device, or of after its support ended: it does not drive it, whatever is installed."""
    for device, need in unmet_by_device(scene):
        if not need.allows.startswith(">="):
            text = f"driver {scene.driver.text} no longer drives {scene.named((device,))}: drivers {need.allows} do"
            fix = Fix("driver", scene.vendor, spec=need.allows, do="install the last branch that drives the device")
            reason = scene.because("driver", text, need.fact)
            yield Finding("gpu-arch-unsupported-by-package", f"{scene.vendor}-driver", "error", text, (reason,), (fix,))
            continue
        rule, component = scene.book.driver_rule(scene.stack_name)
        text = f"driver {scene.driver.text} does not know {scene.named((device,))}: it needs driver {need.allows}"
        fix = Fix("driver", scene.vendor, spec=need.allows, do="install a newer driver")
        yield Finding(rule, component, "error", text, (scene.because("driver", text, need.fact),), (fix,))


def _device_needs(scene: Scene) -> Iterator[tuple[Device, Need]]:
    stack = scene.matrix.stacks().get(scene.stack_name)
    for device in scene.devices if stack else ():
        for need in device_driver_needs(stack, device) if stack else ():
            yield device, need


def _at_least(finding: Finding, scene: Scene) -> Finding:
    """No driver is offered that is older than the first one that knows the devices."""
    floors = [need.allows[2:] for _, need in _device_needs(scene) if need.allows.startswith(">=")]
    least = max(floors, key=parse, default="")
    if not least or not any(fix.kind == "driver" for fix in finding.fixes):
        return finding
    fixes = [
        replace(fix, spec=f">={least}")
        if fix.kind == "driver" and fix.spec.startswith(">=") and valid_specifier(fix.spec) and parse(fix.spec[2:]) < parse(least)
        else fix
        for fix in finding.fixes
        if not (fix.kind == "driver" and fix.spec.startswith("==") and parse(fix.spec[2:]) < parse(least))
    ]
    return replace(finding, fixes=unique(fixes))


def known_releases(scene: Scene) -> list[str]:
    """Every whole driver number that the matrix names for this system, the oldest first."""
    system = "windows" if scene.host.wsl else scene.host.os
    stack = scene.matrix.stacks().get("cuda")
    floors = [floor for release in (stack.releases if stack else ()) if (floor := release.driver_floors.get(system))]
    words = [word for floor in floors for word in (floor.minor, floor.full)]
    words += [toolkit.drivers.get(system, "") for toolkit in scene.book.toolkits]
    return sorted({word for word in words if "." in word}, key=parse)


def newest_release(scene: Scene) -> str:
    """The driver of the newest toolkit that still knows every device here: it runs all older ones."""
    return next(_served(scene), "")


def _served(scene: Scene) -> Iterator[str]:
    system = "windows" if scene.host.wsl else scene.host.os
    stack = scene.matrix.stacks().get("cuda")
    archs = {device.arch for device in scene.devices if device.arch}
    releases = sorted(stack.releases if stack else (), key=lambda release: parse(release.version), reverse=True)
    for release in releases:
        floor = release.driver_floors.get(system)
        if floor and "." in floor.full and archs <= set(release.targets):
            yield floor.full
