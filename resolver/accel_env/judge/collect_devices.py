"""The devices of several tools' lists -> one list: the best witness per vendor, completed by the others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from accel_env.judge.machine import devices_of
from accel_env.judge.parse_base import DeviceList, Facts
from accel_env.model import Device

if TYPE_CHECKING:
    from accel_env.matrix.load import Matrix

_CUT = "..."  # how tables end a name that does not fit
# Names that stand for any product of the vendor.
_ANYTHING = frozenset({"nvidia graphics device", "graphics device", "amd radeon graphics", "ascend910"})
_OVERRIDE = "HSA_OVERRIDE_GFX_VERSION"


def devices(facts: Facts, values: Mapping[str, str], matrix: Matrix, told: list[str]) -> tuple[Device, ...]:
    """The devices, each with its vendor's driver. Where two lists name different products, `told` gets a sentence."""
    honest = _OVERRIDE not in dict(facts.variables)
    seen: dict[tuple[str, str, str], Device] = {}
    groups: dict[str, list[DeviceList]] = {}
    for row in facts.devices:
        rows = replace(row, devices=tuple(_resolved(one, row.vendor, honest, matrix, seen) for one in row.devices))
        # A list without a vendor joins the vendor that its names tell; what names no product at all may be anything.
        vendor = next((one.vendor for one in rows.devices if one.vendor), "")
        if vendor:
            groups.setdefault(vendor, []).append(rows)
    found: list[Device] = []
    for vendor, lists in groups.items():
        driver = values.get(f"driver:{vendor}", "")
        found += [replace(one, driver=one.driver or driver) for one in _merged(lists, told)]
    return tuple(found)


def _merged(lists: Iterable[DeviceList], told: list[str]) -> tuple[Device, ...]:
    """The list that names most, with what only others know of the device at the same place."""
    ordered = sorted(lists, key=_worth, reverse=True)
    if not ordered:
        return ()
    best, *others = ordered
    merged = list(best.devices)
    for other in others:
        for place, one in enumerate(other.devices[: len(merged)]):
            merged[place] = _completed(merged[place], one)
        archs = {one.arch for one in other.devices if one.arch}
        ours = {one.arch for one in merged if one.arch}
        if archs and ours and not archs & ours:
            told.append(f"devices: {_named(merged)} ({best.by}) against {_named(other.devices)} ({other.by})")
    return tuple(merged)


def _worth(row: DeviceList) -> tuple[int, int, int]:
    """How much a list says: whole names and architectures, then how many devices, then the witness."""
    full = all(one.name and not one.name.endswith(_CUT) for one in row.devices) + all(bool(one.arch) for one in row.devices)
    return full, len(row.devices), row.rank


def _completed(one: Device, other: Device) -> Device:
    """A device with what another list says about it; nothing is taken from a device of another architecture."""
    if one.arch and other.arch and one.arch != other.arch:
        return one
    cut = not one.name or one.name == one.arch or one.name.endswith(_CUT)
    return replace(
        one,
        name=other.name if cut and other.name else one.name,
        arch=one.arch or other.arch,
        pci_id=one.pci_id or other.pci_id,
        memory_mib=one.memory_mib or other.memory_mib,
    )


def _resolved(one: Device, vendor: str, honest: bool, matrix: Matrix, seen: dict[tuple[str, str, str], Device]) -> Device:
    """The device with what the table of products knows. `honest`: no variable makes the runtime name another architecture."""
    name = one.name.removesuffix(_CUT).strip()
    # `Intel(R) Graphics [0x56a1]`: a driver that is older than the product
    ident = re.search(r"\[0x([0-9a-fA-F]{4})\]", name)
    one = replace(one, pci_id=one.pci_id or (ident[1].lower() if ident else ""))
    said = {"name": "" if name.casefold() in _ANYTHING else name, "pci_id": one.pci_id}
    if honest or not one.pci_id:
        said["arch"] = one.arch
    key = (said["name"], one.pci_id, said.get("arch", ""))
    if key not in seen:
        rows = devices_of([said], matrix) if any(said.values()) else ()
        seen[key] = rows[0] if rows else Device("", "", "")
    found = seen[key]
    return replace(
        found,
        vendor=found.vendor or one.vendor or vendor or _vendor_by_words(one.name),
        name=one.name or found.name,
        arch=found.arch or (one.arch if honest else ""),
        memory_mib=one.memory_mib or found.memory_mib,
    )


def _vendor_by_words(name: str) -> str:
    """The vendor in the name of a product that the table does not hold."""
    words = {"nvidia": "nvidia", "geforce": "nvidia", "tesla": "nvidia", "quadro": "nvidia", "amd": "amd", "radeon": "amd"}
    words["intel(r)"] = words["intel"] = "intel"
    first = name.casefold().partition(" ")[0]
    return words.get(first, "")


def _named(rows: Iterable[Device]) -> str:
    return ", ".join(dict.fromkeys(one.name or one.arch for one in rows))
