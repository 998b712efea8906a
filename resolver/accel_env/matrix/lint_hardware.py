"""Cross-file rules about stacks, drivers, devices, images and profiles."""
from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from itertools import pairwise

from packaging.version import Version

from accel_env.matrix.compile import Model, pack_vendor
from accel_env.matrix.devices import DeviceTable, key_of
from accel_env.matrix.findings import LintProblem, error, note
from accel_env.matrix.lint_packages import known_stacks
from accel_env.matrix.types import DeviceRow, Stack


def rules() -> tuple[Callable[[Model], Iterator[LintProblem]], ...]:
    """The rules of this module."""
    return (stack_releases_fall, floors_rise, devices_are_one, names_are_one, device_stacks_exist, images_are_pinned,
            pythons_have_images, profiles_name_devices)


def _stack_file(stack: Stack) -> str:
    return f"stacks/{stack.name}.yaml"


def stack_releases_fall(model: Model) -> Iterator[LintProblem]:
    """Releases of a stack are listed newest first, each once."""
    for stack in model.stacks.values():
        versions = [Version(release.version) for release in stack.releases]
        for place, (upper, lower) in enumerate(pairwise(versions)):
            if lower >= upper:
                yield error("release-order", _stack_file(stack), f"releases[{place + 1}]", f"{lower} stands below {upper}",
                            "list releases newest first")


def floors_rise(model: Model) -> Iterator[LintProblem]:
    """No driver floor falls from a release to a newer one of its major, and `minor` is at most `full`."""
    for stack in model.stacks.values():
        floors = {system for release in stack.releases for system in release.driver_floors}
        for system in sorted(floors):
            yield from _floors_rise(stack, system)


def _floors_rise(stack: Stack, system: str) -> Iterator[LintProblem]:
    before: dict[tuple[str, int], Version] = {}
    order = sorted(range(len(stack.releases)), key=lambda place: Version(stack.releases[place].version))
    for place in order:
        release = stack.releases[place]
        floor = release.driver_floors.get(system)
        if floor is None:
            continue
        path = f"releases[{place}].driver.{system}"
        major = Version(release.version).major
        if floor.full and Version(floor.minor) > Version(floor.full):
            yield error("floor-order", _stack_file(stack), path, f"`minor` {floor.minor} is above `full` {floor.full}")
        for name, value in (("minor", floor.minor), ("full", floor.full)):
            known = before.get((name, major))
            if value and known and Version(value) < known:
                yield error("floor-falls", _stack_file(stack), path,
                            f"`{name}` {value} is below the {known} of an older release of the same major")
            if value:
                before[name, major] = max(Version(value), known or Version("0"))


def _kind(row: DeviceRow) -> tuple[str, str, str]:
    return row.arch, row.stack, row.unsupported


def devices_are_one(model: Model) -> Iterator[LintProblem]:
    """A PCI id means one architecture."""
    for vendor in model.vendors.values():
        seen: dict[str, DeviceRow] = {}
        for row in vendor.rows:
            for device in row.pci:
                other = seen.setdefault(device, row)
                if other is not row:
                    same = _kind(other) == _kind(row)
                    yield (note if same else error)("pci-twice", f"devices/{vendor.vendor}.yaml", row.name,
                                      f"PCI id {device} is {other.name}'s too" + ("" if same else f", of {other.arch}"),
                                      "" if same else "one of the two is wrong")


def names_are_one(model: Model) -> Iterator[LintProblem]:
    """A name or alias, as people write it, means one architecture."""
    for vendor in model.vendors.values():
        seen: dict[str, tuple[DeviceRow, str]] = {}
        file = f"devices/{vendor.vendor}.yaml"
        for row in vendor.rows:
            for text in (row.name, *row.aliases):
                key = key_of(text, vendor.strip)
                other, spelled = seen.setdefault(key, (row, text))
                if not key:
                    yield error("name-empty", file, row.name, f"nothing is left of `{text}` without the words of `strip`")
                elif other is not row and _kind(other) != _kind(row):
                    yield error("name-twice", file, row.name,
                                f"`{text}` also means {other.name} ({other.arch}), by `{spelled}`", "leave the name out of one")


def device_stacks_exist(model: Model) -> Iterator[LintProblem]:
    """Devices and images name stacks that stacks/ describes; every vendor's devices have a stack or an answer."""
    known = known_stacks(model)
    for vendor in model.vendors.values():
        for row in vendor.rows:
            if row.stack and row.stack not in known:
                yield error("stack-missing", f"devices/{vendor.vendor}.yaml", row.name, f"no stack file holds `{row.stack}`")
    for image in model.images:
        if image.stack and image.stack not in known:
            yield error("stack-missing", "images.yaml", image.ref, f"no stack file holds `{image.stack}`")
    yield from _over(model, known)
    served = {stack.vendor for stack in model.stacks.values()}
    for name, vendor in model.vendors.items():
        if name not in served and any(not row.unsupported for row in vendor.rows):
            yield error("vendor-unserved", f"devices/{name}.yaml", "vendor", f"no stack serves the devices of `{name}`",
                        "add the stack, or say `unsupported` of each device")


def _over(model: Model, known: Collection[str]) -> Iterator[LintProblem]:
    """A stack over another names one that is there, and packages of the matrix."""
    names = set(model.names())
    for stack in model.stacks.values():
        file = f"stacks/{stack.name}.yaml"
        if stack.over and stack.over.stack not in known:
            yield error("stack-missing", file, "over.stack", f"no stack file holds `{stack.over.stack}`")
        for name in stack.over.beneath if stack.over else ():
            if name not in names:
                yield error("over-package", file, "over.beneath", f"the matrix has no package `{name}`", "correct the name")


def images_are_pinned(model: Model) -> Iterator[LintProblem]:
    """An image that is chosen unasked has a digest; of a Python that nobody maintains it is only noted."""
    current = _maintained(model)
    for image in model.images:
        if image.default and not image.digest and not image.digests:
            say = error if not image.python or image.python in current else note
            yield say("image-unpinned", "images.yaml", image.ref, "a default image has no digest", "add `digest`")


def pythons_have_images(model: Model) -> Iterator[LintProblem]:
    """Every Python that we would choose comes with a default image; the others can be had on a host alone."""
    brought = {image.python for image in model.images if image.default}
    current = _maintained(model)
    for place, python in enumerate(model.pythons):
        if python.version not in brought:
            say = error if python.version in current else note
            yield say("python-image", "python.yaml", f"pythons[{place}]",
                      f"no default image of images.yaml brings Python {python.version}", "add the image, or drop the Python")


def _maintained(model: Model) -> set[str]:
    """The Pythons that are neither at their end of life nor free-threaded (of which nobody publishes slim images)."""
    return {python.version for python in model.pythons if python.status != "end-of-life" and not python.version.endswith("t")}


def profiles_name_devices(model: Model) -> Iterator[LintProblem]:
    """The devices of a profile are in the table."""
    table = DeviceTable({vendor.vendor: pack_vendor(vendor) for vendor in model.vendors.values()})
    for profile in model.profiles.values():
        devices = profile.host.get("devices", ())
        for place, device in enumerate(devices if isinstance(devices, tuple) else ()):
            name, vendor = str(device["name"]), device.get("vendor")
            if table.by_name(str(vendor) if vendor else None, name) is None:
                near = ", ".join(table.nearest(name))
                yield error("profile-device", "profiles.yaml", f"profiles.{profile.name}.host.devices[{place}].name",
                            f"`{name}` names no device, or several", f"near: {near}" if near else "")
