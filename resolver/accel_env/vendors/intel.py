"""Intel GPUs: by PCI device id, since many are only called `Intel(R) Graphics`; NPUs are no GPUs."""
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
    exact,
    gave,
    is_display,
    pci_devices,
    vendor_devices,
)

VENDOR = "intel"
_INTEGRATED_SLOT = "0000:00:02."  # where the kernel puts the processor's own display controller
# The user-mode driver under the names of Intel's and the distributions' packages.
_PACKAGES = ("libze-intel-gpu1", "intel-level-zero-gpu", "intel-opencl-icd", "intel-compute-runtime")
_FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib")


class Intel:
    """See accel_env.vendors.base.Vendor."""

    def probe(self, system: System, table: Table, bus: tuple[PciDevice, ...] | None = None) -> Found:
        """Intel's GPUs on the PCI bus. `driver` is the compute runtime where one is installed; the kernel driver is a note."""
        on_bus = vendor_devices(pci_devices(system) if bus is None else bus, table, VENDOR)
        gpus = [item for item in on_bus if is_display(item)]
        npus = tuple(f"the Intel NPU at {item.address} is no GPU: left out" for item in on_bus if item.klass.startswith("12"))
        if not gpus:
            return Found(notes=npus)
        driver, source = _compute_runtime(system)
        sightings = tuple(_sighting(item, table, driver, source) for item in gpus)
        notes = [f"{item.device.name}: this PCI id is in no table; its architecture is unknown" for item in sightings
                 if not item.device.arch]
        notes += [f"the Intel GPU at {item.address} needs the kernel driver i915 or xe (bound: {item.driver or 'none'})"
                  for item in gpus if item.driver not in ("i915", "xe", "windows")]
        if system.machine().os == "linux" and system.access("/dev/dri") == "absent":
            notes.append("/dev/dri is missing: the Intel GPU was not passed to this container, or its driver is not loaded")
        return Found(sightings, (*notes, *npus))

    def runs(self, need: Need, arch: str, stack: Stack, release: str) -> str:
        """Code for that ocloc target, else for its family (`dg2` holds `dg2-g10`); the `jit` list is compiled at first use.

        The exact name in either list counts before the family: `jit: [pvc-vg]` beside `code: [pvc]` means JIT.
        """
        by_name = exact(need, arch, stack)
        if by_name or not arch or need.unknown or arch in need.lacks:
            return by_name
        family = arch.split("-")[0]
        if family in need.lacks:
            return ""
        return "native" if family in need.values else "jit" if family in need.jit else ""

    def normalise_driver(self, text: str, stack: Stack) -> str:
        """The compute runtime's number without what a distribution adds: `25.18.33578.15-1146~24.04` is 25.18.33578.15."""
        found = re.search(r"\d+(?:\.\d+)+", text)
        return found.group() if found else text.strip()


def _sighting(item: PciDevice, table: Table, driver: str, source: str) -> Sighting:
    row = table.by_pci(item.vendor, item.id)
    integrated = row.integrated if row else item.address.startswith(_INTEGRATED_SLOT)
    device = Device(VENDOR, row.name if row else f"Intel device {item.vendor}:{item.id}", arch_of(row), driver,
                    row.memory_mib if row else None, item.id, integrated, row.kind if row else "")
    table_name = "device table" if row else ""
    return Sighting(device, gave(name=table_name or "/sys/bus/pci/devices", arch=table_name, driver=source,
                                 pci_id=f"/sys/bus/pci/devices (kernel driver {item.driver or 'none'})"))


def _compute_runtime(system: System) -> tuple[str, str]:
    """The version of the installed compute runtime and what gave it."""
    for query in (("dpkg-query", "-W", "-f", "${db:Status-Status} ${Package} ${Version}\\n", *_PACKAGES),
                  ("rpm", "-q", "--qf", "installed %{NAME} %{VERSION}\\n", *_PACKAGES)):
        done = system.run(query)
        versions = dict(re.findall(r"(?m)^installed (\S+) (\d\S*)$", done.stdout))
        # Debian's and Intel's Level Zero package counts 1.<n>.<build>; the OpenCL one carries the release: prefer that.
        for package in ("intel-opencl-icd", "intel-compute-runtime", "libze-intel-gpu1", "intel-level-zero-gpu"):
            if package in versions:
                return re.sub(r"[-+~].*", "", versions[package].split(":")[-1]), f"{query[0]} {package}"
    for folder in _FOLDERS:
        for path in system.glob(f"{folder}/libze_intel_gpu.so.*.*"):
            if found := re.search(r"\.so\.(\d+(?:\.\d+)+)$", path):
                return found[1], path
    return "", ""
