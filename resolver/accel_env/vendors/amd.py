"""AMD: the KFD topology tells the gfx target; PCI ids where KFD is missing; rocminfo last, because an override makes it lie."""
from __future__ import annotations

import re
from dataclasses import dataclass

from accel_env.model import Device, Need
from accel_env.system.types import System
from accel_env.vendors.base import (
    Found,
    PciDevice,
    Row,
    Sighting,
    Stack,
    Table,
    arch_of,
    changed,
    complaints,
    exact,
    gave,
    is_accelerator,
    pci_devices,
    vendor_devices,
)

VENDOR = "amd"
_NODES = "/sys/class/kfd/kfd/topology/nodes"
_OVERRIDE = "HSA_OVERRIDE_GFX_VERSION"
_INBOX = "inbox"


@dataclass(frozen=True, slots=True)
class _Node:
    """A GPU node of the KFD topology. `arch` is empty on kernels without gfx_target_version."""

    number: str
    device_id: str
    arch: str
    address: str
    is_apu: bool
    memory_mib: int | None


class Amd:
    """See accel_env.vendors.base.Vendor."""

    def probe(self, system: System, table: Table, bus: tuple[PciDevice, ...] | None = None) -> Found:
        """AMD's GPUs: the KFD nodes, else the GPUs on the PCI bus, else (WSL2) what rocminfo says."""
        bus = pci_devices(system) if bus is None else bus
        on_bus = [item for item in vendor_devices(bus, table, VENDOR) if is_accelerator(item)]
        nodes = _nodes(system, table.vendors().get(VENDOR, ""))
        wsl = system.access("/dev/dxg") != "absent"
        if not on_bus and not nodes and not wsl:
            return Found()
        driver, source = _driver(system)
        notes = _access(system) if (on_bus or nodes) and system.machine().os == "linux" else ()
        listed = {node.address for node in nodes}
        sightings = [_from_node(node, on_bus, table, driver, source) for node in nodes]
        unlisted = [item for item in on_bus if item.address not in listed]
        if nodes:
            notes += tuple(f"{_title(item, table)} at {item.address} is on the PCI bus but not in the KFD topology"
                           f" (kernel driver: {item.driver or 'none'}); left out" for item in unlisted)
        else:
            sightings += [_from_bus(item, table, driver, source) for item in unlisted]
        if any(not item.device.arch for item in sightings) or (wsl and not sightings):
            sightings, more = _ask_rocminfo(system, sightings, table)
            notes += more
        return Found(tuple(sightings), notes + _override_note(system, bool(sightings)))

    def runs(self, need: Need, arch: str, stack: Stack, release: str) -> str:
        """Machine code for that very gfx target; feature suffixes (`:xnack-`) do not count."""
        values, jit, lacks = (tuple(map(strip_features, names)) for names in (need.values, need.jit, need.lacks))
        return exact(changed(need, values=values, jit=jit, lacks=lacks), strip_features(arch), stack)

    def normalise_driver(self, text: str, stack: Stack) -> str:
        """The packaged release behind a module version; `inbox 6.8.0` for the kernel's own amdgpu; else the text itself."""
        text = text.strip()
        if text.startswith(_INBOX):
            kernel = re.search(r"\d+(?:\.\d+)*", text)
            return f"{_INBOX} {kernel.group()}" if kernel else _INBOX
        # The package behind module 6.16.6 is 6.16.6.30200100-2255209: 30.20.1, two digits a part.
        packed = re.match(r"\d+\.\d+\.\d+\.(\d{5,8})(?:\D|$)", text)
        if packed:
            parts = re.findall(r"\d\d", packed[1].zfill(len(packed[1]) + len(packed[1]) % 2))
            return ".".join(str(int(part)) for part in parts[:3])
        fits = [name for name in stack.driver_names if re.match(re.escape(name.match) + r"(?:[.-]|$)", text)]
        if fits:
            return max(fits, key=lambda name: len(name.match)).release
        return re.split(r"[-+~]", text)[0]


def strip_features(arch: str) -> str:
    """`gfx90a:sramecc+:xnack-` is gfx90a."""
    return arch.split(":")[0]


def gfx_name(version: int) -> str:
    """The name of a `gfx_target_version`: 90402 is gfx942, 90010 is gfx90a; empty for 0."""
    major, minor, stepping = version // 10000, version // 100 % 100, version % 100
    return f"gfx{major}{minor:x}{stepping:x}" if major else ""


def _nodes(system: System, vendor: str) -> list[_Node]:
    """The GPU nodes; CPU nodes have no SIMDs, and other vendors' open drivers may register nodes too."""
    nodes = []
    for path in sorted(system.glob(f"{_NODES}/*/properties"), key=lambda path: int(path.split("/")[-2])):
        keys = {key: int(value) for key, value in re.findall(r"(?m)^(\w+)\s+(\d+)\s*$", system.read_text(path) or "")}
        if not keys.get("simd_count") or f"{keys.get('vendor_id', 0):04x}" != vendor:
            continue
        place = keys.get("location_id", 0)
        address = f"{keys.get('domain', 0):04x}:{place >> 8 & 255:02x}:{place >> 3 & 31:02x}.{place & 7}"
        number = path.split("/")[-2]
        nodes.append(_Node(number, f"{keys.get('device_id', 0):04x}", gfx_name(keys.get("gfx_target_version", 0)), address,
                           keys.get("cpu_cores_count", 0) > 0, _memory(system, number)))
    return nodes


def _memory(system: System, number: str) -> int | None:
    """MiB of the frame buffer (heap types 1 and 2) of a node."""
    total = 0
    for path in system.glob(f"{_NODES}/{number}/mem_banks/*/properties"):
        keys = dict(re.findall(r"(?m)^(\w+)\s+(\d+)\s*$", system.read_text(path) or ""))
        total += int(keys.get("size_in_bytes", 0)) if keys.get("heap_type") in ("1", "2") else 0
    return total >> 20 or None


def _driver(system: System) -> tuple[str, str]:
    """The amdgpu version and where it was read. Only AMD's packaged module carries one that is not the kernel's."""
    release = system.machine().release
    path = "/sys/module/amdgpu/version"
    version = (system.read_text(path) or "").strip()
    if version and not (release and release.startswith(version)):
        return version, path
    if system.access("/sys/module/amdgpu") == "absent":
        return "", ""
    return f"{_INBOX} {release}".strip(), "/sys/module/amdgpu without a version of its own"


def _access(system: System) -> tuple[str, ...]:
    state = system.access("/dev/kfd")
    if state == "denied":
        return ("/dev/kfd may not be opened by this user: join the group that owns it, or pass that group to the container",)
    if state == "absent":
        return ("/dev/kfd is missing: amdgpu's compute part is not loaded, or the device was not passed to this container",)
    return ()


def _from_node(node: _Node, bus: list[PciDevice], table: Table, driver: str, source: str) -> Sighting:
    item = next((item for item in bus if item.address == node.address), None)
    row = table.by_pci(table.vendors()[VENDOR], node.device_id)
    arch = node.arch or (arch_of(row))
    device = Device(VENDOR, row.name if row else f"AMD device {node.device_id}", arch, driver,
                    node.memory_mib or (row.memory_mib if row else None), node.device_id,
                    _integrated(row, node.is_apu), row.kind if row else "")
    nodes = f"{_NODES}/{node.number}"
    by_table = "device table" if row else ""
    return Sighting(device, gave(name=by_table or nodes, arch=nodes if node.arch else by_table, driver=source,
                                 memory_mib=nodes if node.memory_mib else "",
                                 pci_id="/sys/bus/pci/devices" if item else nodes))


def _from_bus(item: PciDevice, table: Table, driver: str, source: str) -> Sighting:
    row = table.by_pci(item.vendor, item.id)
    device = Device(VENDOR, _title(item, table), arch_of(row), driver, row.memory_mib if row else None, item.id,
                    _integrated(row, False), row.kind if row else "")
    return Sighting(device, gave(name="device table" if row else "/sys/bus/pci/devices", arch="device table" if row else "",
                                 driver=source, pci_id="/sys/bus/pci/devices"))


def _integrated(row: Row | None, is_apu: bool) -> bool:
    return row.integrated if row else is_apu


def _title(item: PciDevice, table: Table) -> str:
    row = table.by_pci(item.vendor, item.id)
    return row.name if row else f"AMD device {item.vendor}:{item.id}"


def _ask_rocminfo(system: System, sightings: list[Sighting], table: Table) -> tuple[list[Sighting], tuple[str, ...]]:
    """Fill what the kernel and the table leave open; under an override the answer is worth nothing and is not taken."""
    done = system.run(("rocminfo",))
    if done.missing or (done.problem and not sightings):
        return sightings, ()
    if system.env(_OVERRIDE):
        return sightings, (f"rocminfo was not believed: {_OVERRIDE} is set",)
    agents = [agent for agent in re.split(r"(?m)^Agent \d+", done.stdout) if re.search(r"Device Type:\s+GPU", agent)]
    notes = complaints(done)
    found = []
    for agent in agents:
        name = re.search(r"(?m)^\s+Name:\s+(gfx[0-9a-f]+)", agent)
        market = re.search(r"(?m)^\s+Marketing Name:\s+(\S.*?)\s*$", agent)
        chip = re.search(r"(?m)^\s+Chip ID:\s+(\d+)", agent)
        if name:
            found.append((name[1], market[1] if market else name[1], f"{int(chip[1]):04x}" if chip else ""))
    if not sightings:
        return [_from_agent(*agent, table) for agent in found], notes
    ids = {chip: arch for arch, _, chip in found}
    return [_with_arch(item, ids.get(item.device.pci_id, "")) for item in sightings], notes


def _from_agent(arch: str, name: str, chip: str, table: Table) -> Sighting:
    row = table.by_name(VENDOR, name)
    device = Device(VENDOR, name, arch, "", row.memory_mib if row else None, chip, bool(row and row.integrated),
                    row.kind if row else "")
    return Sighting(device, gave(name="rocminfo", arch="rocminfo", pci_id="rocminfo" if chip else ""))


def _with_arch(item: Sighting, arch: str) -> Sighting:
    if item.device.arch or not arch:
        return item
    return Sighting(changed(item.device, arch=arch), (*item.gave, ("arch", "rocminfo")))


def _override_note(system: System, any_device: bool) -> tuple[str, ...]:
    value = system.env(_OVERRIDE)
    if not value or not any_device:
        return ()
    return (f"{_OVERRIDE}={value} is set: ROCm's tools report that target instead of the real one; here the kernel's counts",)
