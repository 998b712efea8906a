"""Intel Gaudi: by PCI id; /sys/class/accel is shared with NPUs, so the vendor decides and not the node."""
from __future__ import annotations

import re

from accel_env.model import Device, Need
from accel_env.system.types import System
from accel_env.vendors.base import (
    Found,
    PciDevice,
    Sighting,
    Stack,
    Table,
    arch_of,
    bus_address,
    complaints,
    exact,
    gave,
    is_accelerator,
    pci_devices,
    vendor_devices,
)

VENDOR = "habana"
_MODULE = "/sys/module/habanalabs/version"


class Habana:
    """See accel_env.vendors.base.Vendor."""

    def probe(self, system: System, table: Table, bus: tuple[PciDevice, ...] | None = None) -> Found:
        """The Gaudi cards on the PCI bus, refined by the accel class and by hl-smi where installed."""
        on_bus = vendor_devices(pci_devices(system) if bus is None else bus, table, VENDOR)
        cards = [item for item in on_bus if is_accelerator(item)]
        if not cards:
            return Found()
        driver, source = _module_version(system)
        done = system.run(("hl-smi",))
        notes = list(complaints(done))
        said = re.search(r"Driver Version:\s*(\S+)", done.stdout)
        if said and not driver:
            driver, source = said[1], "hl-smi"
        tool = re.search(r"HL-SMI Version:\s*hl-(\d+\.\d+\.\d+)", done.stdout)
        if tool and driver and tool[1] != _release(driver):
            notes.append(f"hl-smi is of {tool[1]}, the kernel driver of {_release(driver)}: they must be of one release")
        boards = {bus_address(address): board for board, address in
                  re.findall(r"(?m)^\|\s*\d+\s+(HL-\w+)\s.*?\|\s*([0-9a-fA-F:]+\.[0-7])\s", done.stdout)}
        for item in cards:
            notes += _states(system, item)
        return Found(tuple(_sighting(item, table, driver, source, boards.get(item.address, "")) for item in cards), tuple(notes))

    def runs(self, need: Need, arch: str, stack: Stack, release: str) -> str:
        """Exact: what is made for a Gaudi generation runs on that generation."""
        return exact(need, arch, stack)

    def normalise_driver(self, text: str, stack: Stack) -> str:
        """The release without the commit: `1.22.1-97ec1a4` is 1.22.1."""
        return _release(text)


def _release(text: str) -> str:
    return re.split(r"[-+~]", text.strip().removeprefix("hl-"))[0]


def _module_version(system: System) -> tuple[str, str]:
    version = (system.read_text(_MODULE) or "").strip()
    return (version, _MODULE) if version else ("", "")


def _sighting(item: PciDevice, table: Table, driver: str, source: str, board: str) -> Sighting:
    row = table.by_pci(item.vendor, item.id) or (table.by_name(VENDOR, board) if board else None)
    name = row.name if row else board or f"Habana device {item.vendor}:{item.id}"
    device = Device(VENDOR, name, arch_of(row), driver, row.memory_mib if row else None, item.id, False,
                    row.kind if row else "")
    return Sighting(device, gave(name="device table" if row else "hl-smi" if board else "/sys/bus/pci/devices",
                                 arch="device table" if row else "", driver=source, pci_id="/sys/bus/pci/devices"))


def _states(system: System, item: PciDevice) -> list[str]:
    """What the kernel driver says of a card that is not operational, or that it does not know."""
    paths = [f"/sys/bus/pci/devices/{item.address}/{kind}" for kind in ("accel", "habanalabs")]
    nodes = [f"{path}/{name}" for path in paths for name in system.listdir(path) if re.fullmatch(r"(accel|hl)\d+", name)]
    if not nodes:
        return [] if item.driver else [f"the Gaudi card at {item.address} has no accel node: the habanalabs driver is not loaded"]
    state = (system.read_text(f"{nodes[0]}/device/status") or "").strip()
    return [f"the Gaudi card at {item.address} is {state}"] if state and state.lower() != "operational" else []
