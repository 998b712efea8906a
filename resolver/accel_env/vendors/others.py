"""Every vendor that has a device file and no module of its own: found by PCI id, compared by name, explained by its stack.

One small hook a vendor refines what the PCI id tells (driver version, exact chip); a vendor without one needs only data.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from accel_env.model import Device, Need
from accel_env.system.types import System
from accel_env.vendors.base import (
    Found,
    PciDevice,
    Sighting,
    Stack,
    Table,
    arch_of,
    complaints,
    exact,
    gave,
    is_accelerator,
    pci_devices,
    vendor_devices,
)


@dataclass(frozen=True, slots=True)
class Refined:
    """What a hook learnt: driver version and its source, chip names in bus order, notes."""

    driver: str = ""
    source: str = ""
    names: tuple[str, ...] = ()
    names_from: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Other:
    """See accel_env.vendors.base.Vendor."""

    vendor: str
    refine: Callable[[System], Refined]

    def probe(self, system: System, table: Table, bus: tuple[PciDevice, ...] | None = None) -> Found:
        """The vendor's accelerators on the PCI bus: known by id, or a display or processing accelerator of the vendor."""
        mine = vendor_devices(pci_devices(system) if bus is None else bus, table, self.vendor)
        cards = [item for item in mine if table.by_pci(item.vendor, item.id) or is_accelerator(item)]
        if not cards:
            return Found()
        more = self.refine(system)
        exact_names = more.names if len(more.names) == len(cards) else more.names[:1] * len(cards)
        names = exact_names or ("",) * len(cards)
        return Found(tuple(self._sighting(item, name, more, table) for item, name in zip(cards, names, strict=True)), more.notes)

    def runs(self, need: Need, arch: str, stack: Stack, release: str) -> str:
        """Exact."""
        return exact(need, arch, stack)

    def normalise_driver(self, text: str, stack: Stack) -> str:
        """The text itself."""
        return text.strip()

    def _sighting(self, item: PciDevice, name: str, more: Refined, table: Table) -> Sighting:
        named = table.by_name(self.vendor, name) if name else None
        row = named or table.by_pci(item.vendor, item.id)
        title = row.name if row else name or f"{self.vendor} device {item.vendor}:{item.id}"
        device = Device(self.vendor, title, arch_of(row), more.driver, row.memory_mib if row else None, item.id,
                        bool(row and row.integrated), row.kind if row else "")
        table_name = "device table" if row else ""
        return Sighting(device, gave(name=more.names_from if named else table_name or "/sys/bus/pci/devices", arch=table_name,
                                     driver=more.source, pci_id="/sys/bus/pci/devices"))


class Apple:
    """Apple silicon is no PCI device: the platform tells."""

    def probe(self, system: System, table: Table, bus: tuple[PciDevice, ...] | None = None) -> Found:
        """The GPU of the chip, on macOS with an Arm processor."""
        machine = system.machine()
        if machine.os != "macos" or machine.cpu != "arm64":
            return Found()
        done = system.run(("sysctl", "-n", "machdep.cpu.brand_string"))
        brand = done.stdout.strip() or "Apple silicon"
        row = table.by_name("apple", brand) or table.by_name("apple", "Apple Silicon")
        device = Device("apple", brand, arch_of(row), "", None, "", True, row.kind if row else "")
        sighting = Sighting(device, gave(name="sysctl machdep.cpu.brand_string", arch="device table" if row else ""))
        return Found((sighting,), complaints(done))

    def runs(self, need: Need, arch: str, stack: Stack, release: str) -> str:
        """Exact."""
        return exact(need, arch, stack)

    def normalise_driver(self, text: str, stack: Stack) -> str:
        """The text itself: Metal comes with the system."""
        return text.strip()


def nothing(system: System) -> Refined:
    """No hook: the PCI id is all."""
    return Refined()


def ascend(system: System) -> Refined:
    """Huawei's driver leaves its version in a file; npu-smi tells 910B3 from 910B1."""
    path = "/usr/local/Ascend/driver/version.info"
    version = re.search(r"(?mi)^(?:package_)?version=(\S+)", system.read_text(path) or "")
    done = system.run(("npu-smi", "info"))
    chips = tuple(f"Ascend {chip}" for chip in re.findall(r"(?m)^\|\s*\d+\s+(?:Ascend)?(\d{3}\w*)\s*\|", done.stdout))
    said = re.search(r"npu-smi\s+(\d\S*)", done.stdout)
    driver, source = (version[1], path) if version else (said[1], "npu-smi info") if said else ("", "")
    return Refined(driver, source, chips, "npu-smi info", complaints(done))


def neuron(system: System) -> Refined:
    """The kernel module carries the version."""
    path = "/sys/module/neuron/version"
    version = (system.read_text(path) or "").strip()
    nodes = system.glob("/dev/neuron[0-9]*")
    notes = () if nodes else ("no /dev/neuron node: the driver is not loaded, or the device was not passed to this container",)
    return Refined(version, path if version else "", notes=notes)


def tpu(system: System) -> Refined:
    """Google's boards have no driver version; user space opens VFIO groups or accel nodes."""
    nodes = system.glob("/dev/vfio/[0-9]*") + system.glob("/dev/accel[0-9]*")
    return Refined(notes=() if nodes else ("no /dev/vfio or /dev/accel node: the TPU was not passed to this container",))


def module(name: str) -> Callable[[System], Refined]:
    """A hook for vendors whose kernel module tells its version."""

    def refine(system: System) -> Refined:
        path = f"/sys/module/{name}/version"
        version = (system.read_text(path) or "").strip()
        return Refined(version, path if version else "")

    return refine


HOOKS: Mapping[str, Callable[[System], Refined]] = {
    "huawei": ascend, "aws": neuron, "google": tpu, "mthreads": module("mtgpu"), "cambricon": module("cambricon_drv"),
}
