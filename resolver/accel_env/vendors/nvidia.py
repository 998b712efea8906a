"""NVIDIA: the loaded kernel module, the PCI bus, then nvidia-smi for compute capability; WSL2, MIG and Jetson."""
from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from accel_env.model import Device, Need
from accel_env.system.types import Completed, System
from accel_env.vendors.base import (
    Found,
    PciDevice,
    Row,
    Sighting,
    Stack,
    Table,
    arch_of,
    bus_address,
    complaints,
    gave,
    is_display,
    numbers,
    pci_devices,
    vendor_devices,
)

VENDOR = "nvidia"
_FORMAT = "--format=csv"
# Drivers before R510 do not know compute_cap and refuse the whole query.
_QUERIES = ("--query-gpu=name,compute_cap,driver_version,memory.total,pci.bus_id",
            "--query-gpu=name,driver_version,memory.total,pci.bus_id")
_TOOLS = ("nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi")


@dataclass(frozen=True, slots=True)
class _Smi:
    """A line of nvidia-smi; what it does not know is empty."""

    name: str
    arch: str
    driver: str
    memory_mib: int | None
    address: str


@dataclass(frozen=True, slots=True)
class _Kernel:
    """What the kernel says: the module's version and where it was read, and the model by PCI address."""

    driver: str
    driver_from: str
    models: dict[str, str]


class Nvidia:
    """See accel_env.vendors.base.Vendor."""

    def probe(self, system: System, table: Table, bus: tuple[PciDevice, ...] | None = None) -> Found:
        """NVIDIA's GPUs: as nvidia-smi lists them where it answers, else as the PCI bus or the Jetson board name tells."""
        on_bus = [item for item in vendor_devices(pci_devices(system) if bus is None else bus, table, VENDOR) if is_display(item)]
        kernel = _kernel(system)
        board = _board(system)
        wsl = system.access("/dev/dxg") != "absent"
        if not (on_bus or kernel.driver or board or wsl or system.glob("/dev/nvidia[0-9]*")):
            return Found()
        rows, notes, tool = _ask_smi(system)
        if board and len(rows) < 2 and not on_bus:
            return Found((_jetson(board, rows, kernel, table),), (*notes, *_l4t(system)))
        if rows:
            sightings = [_from_smi(row, tool, kernel, on_bus, table) for row in rows]
            notes += _unlisted(on_bus, rows, table)
            notes += _mig(system, tool)
        else:
            sightings = [_from_bus(item, kernel, table) for item in on_bus]
            notes += _unbound(on_bus, kernel)
        if on_bus and not tool:
            notes += ("nvidia-smi is not installed: the PCI id has to tell the compute capability",)
        if not sightings and kernel.driver:
            notes += ("NVIDIA's kernel module is loaded, yet neither the PCI bus nor nvidia-smi shows a GPU",)
        notes += tuple(f"{item.device.name}: no table and no tool gives its compute capability" for item in sightings
                       if not item.device.arch)
        return Found(tuple(sightings), notes)

    def runs(self, need: Need, arch: str, stack: Stack, release: str) -> str:
        """Machine code within the major version and not newer than the device; PTX of any older version by JIT."""
        names = {alias.a: alias.b for alias in stack.aliases}
        device = _parse(names.get(arch, arch))
        if device is None or need.unknown or arch in need.lacks:
            return ""
        if need.lacks and not need.values and not need.jit:
            return "native"
        barred = [code for rule in stack.code_rules if names.get(rule.device, rule.device) == names.get(arch, arch)
                  and (not rule.before or numbers(release) < numbers(rule.before)) for code in rule.not_from]
        for name in need.values:
            code = _parse(names.get(name, name))
            if code is not None and name.rstrip("af") not in barred and _code_runs(code, device):
                return "native"
        for name in need.jit:
            base = name.replace("compute_", "sm_")
            text = _parse(names.get(base, base))
            if text is not None and _text_runs(text, device):
                return "jit"
        return ""

    def normalise_driver(self, text: str, stack: Stack) -> str:
        """NVIDIA's driver has one number: `R580` and `580.95.05 (open)` lose what is around it."""
        found = re.search(r"\d+(?:\.\d+)*", text)
        return found.group() if found else text.strip()


def _kernel(system: System) -> _Kernel:
    path = "/proc/driver/nvidia/version"
    found = re.search(r"Kernel Module(?: for \S+)?\s+(\d+(?:\.\d+)+)", system.read_text(path) or "")
    version = found[1] if found else ""
    if not version:
        path = "/sys/module/nvidia/version"
        version = (system.read_text(path) or "").strip()
    models = {}
    for info in system.glob("/proc/driver/nvidia/gpus/*/information"):
        model = re.search(r"(?m)^Model:\s*(\S.*?)\s*$", system.read_text(info) or "")
        if model and model[1].lower() != "unknown":
            models[bus_address(info.split("/")[-2])] = model[1]
    return _Kernel(version, path if version else "", models)


def _ask_smi(system: System) -> tuple[list[_Smi], tuple[str, ...], str]:
    """The GPUs that nvidia-smi lists, what went wrong, and the tool's path (empty where it is not installed)."""
    for tool in _TOOLS:
        done = system.run((tool, _QUERIES[0], _FORMAT))
        if done.missing:
            continue
        if "compute_cap" in done.stdout + done.stderr and not _smi_rows(done):
            done = system.run((tool, _QUERIES[1], _FORMAT))
        return _smi_rows(done), complaints(done), tool
    return [], (), ""


def _smi_rows(done: Completed) -> list[_Smi]:
    """The lines of a csv query; lines that are no line of the table (warnings, lost GPUs) are skipped."""
    lines = [[cell.strip() for cell in line.split(",")] for line in done.stdout.splitlines()]
    head = next((n for n, cells in enumerate(lines) if cells[0] == "name" and len(cells) > 2), None)
    if head is None:
        return []
    names = [cell.split(" ")[0] for cell in lines[head]]
    rows = []
    for cells in lines[head + 1:]:
        if len(cells) != len(names):
            continue
        row = dict(zip(names, cells, strict=True))
        capability = re.fullmatch(r"(\d+)\.(\d)", row.get("compute_cap", ""))
        memory = re.match(r"\d+", row.get("memory.total", ""))
        driver = row.get("driver_version", "")
        rows.append(_Smi(row["name"], f"sm_{capability[1]}{capability[2]}" if capability else "",
                         driver if re.match(r"\d", driver) else "", int(memory.group()) if memory else None,
                         bus_address(row.get("pci.bus_id", ""))))
    return rows


def _from_smi(smi: _Smi, tool: str, kernel: _Kernel, bus: list[PciDevice], table: Table) -> Sighting:
    item = next((item for item in bus if item.address == smi.address), None)
    row = (table.by_pci(item.vendor, item.id) if item else None) or table.by_name(VENDOR, smi.name)
    arch = smi.arch or (arch_of(row))
    device = Device(VENDOR, smi.name, arch, kernel.driver or smi.driver, smi.memory_mib or (row.memory_mib if row else None),
                    item.id if item else "", bool(row and row.integrated), row.kind if row else "")
    source = tool
    return Sighting(device, gave(name=source, arch=source if smi.arch else "device table" if arch else "",
                                  driver=kernel.driver_from or (source if smi.driver else ""),
                                  memory_mib=source if smi.memory_mib else "",
                                  pci_id="/sys/bus/pci/devices" if item else ""))


def _from_bus(item: PciDevice, kernel: _Kernel, table: Table) -> Sighting:
    model = kernel.models.get(item.address, "")
    row: Row | None = table.by_pci(item.vendor, item.id) or (table.by_name(VENDOR, model) if model else None)
    name = model or (row.name if row else f"NVIDIA device {item.vendor}:{item.id}")
    device = Device(VENDOR, name, arch_of(row), kernel.driver, row.memory_mib if row else None, item.id,
                    bool(row and row.integrated), row.kind if row else "")
    return Sighting(device, gave(name="/proc/driver/nvidia/gpus" if model else "device table" if row else "/sys/bus/pci/devices",
                                  arch="device table" if row else "", driver=kernel.driver_from, pci_id="/sys/bus/pci/devices"))


def _unlisted(bus: list[PciDevice], rows: list[_Smi], table: Table) -> tuple[str, ...]:
    """GPUs on the bus that nvidia-smi may not use: given to a virtual machine, or not passed to this container."""
    listed = {row.address for row in rows}
    lost = [item for item in bus if item.address not in listed]
    if not lost or "" in listed:
        return ()
    return tuple(f"{_title(item, table)} at {item.address} is on the PCI bus but nvidia-smi does not list it"
                 f" (kernel driver: {item.driver or 'none'}); left out" for item in lost)


def _unbound(bus: list[PciDevice], kernel: _Kernel) -> tuple[str, ...]:
    if bus and not kernel.driver and not any(item.driver for item in bus):
        return ("NVIDIA's driver is not loaded",)
    return tuple(f"the GPU at {item.address} is bound to {item.driver}, not to NVIDIA's driver" for item in bus
                 if item.driver not in ("nvidia", "windows", ""))


def _title(item: PciDevice, table: Table) -> str:
    row = table.by_pci(item.vendor, item.id)
    return row.name if row else f"NVIDIA device {item.vendor}:{item.id}"


def _mig(system: System, tool: str) -> tuple[str, ...]:
    """A GPU that is split: a process sees one instance and its share of the memory."""
    if not system.glob("/proc/driver/nvidia/capabilities/gpu*/mig/gi*"):
        return ()
    parts: dict[str, list[str]] = {}
    gpu = ""
    for line in system.run((tool, "-L")).stdout.splitlines():
        if top := re.match(r"GPU (\d+): (.*?) \(", line):
            gpu = f"GPU {top[1]} ({top[2]})"
        elif part := re.match(r"\s+MIG (\S+)\s+Device\s+\d+:", line):
            parts.setdefault(gpu, []).append(part[1])
    return tuple(f"{name} is split (MIG) in {len(found)}: {', '.join(dict.fromkeys(found))}" for name, found in parts.items())


def _board(system: System) -> str:
    """The board's name on a Jetson, else empty."""
    model = (system.read_text("/proc/device-tree/model") or "").strip("\0 \n")
    tegra = "tegra" in (system.read_text("/proc/device-tree/compatible") or "")
    return model if tegra or system.read_text("/etc/nv_tegra_release") is not None else ""


def _jetson(board: str, rows: list[_Smi], kernel: _Kernel, table: Table) -> Sighting:
    """A Jetson's GPU is no PCI device; its name is the board's, since nvidia-smi calls it `Orin (nvgpu)` or nothing at all."""
    row = table.by_name(VENDOR, board) or (table.by_name(VENDOR, rows[0].name) if rows else None)
    smi = rows[0] if rows else _Smi("", "", "", None, "")
    device = Device(VENDOR, row.name if row else board, smi.arch or (arch_of(row)), kernel.driver or smi.driver,
                    smi.memory_mib or (row.memory_mib if row else None), "", row.integrated if row else True,
                    row.kind if row else "")
    return Sighting(device, gave(name="/proc/device-tree/model", arch="nvidia-smi" if smi.arch else "device table" if row else "",
                                  driver=kernel.driver_from or ("nvidia-smi" if smi.driver else "")))


def _l4t(system: System) -> tuple[str, ...]:
    found = re.search(r"# R(\d+) \(release\), REVISION: ([\d.]+)", system.read_text("/etc/nv_tegra_release") or "")
    return (f"Jetson Linux (L4T) {found[1]}.{found[2]}",) if found else ()


@dataclass(frozen=True, slots=True)
class _Capability:
    """`sm_90a` is (9, 0, "a")."""

    major: int
    minor: int
    suffix: str


@cache
def _parse(arch: str) -> _Capability | None:
    found = re.fullmatch(r"(?:sm|compute)_(\d+)(\d)([af]?)", arch)
    return _Capability(int(found[1]), int(found[2]), found[3]) if found else None


def _code_runs(code: _Capability, device: _Capability) -> bool:
    """Suffix `a` is for that very capability; none and `f` for it and its successors within the major version."""
    if code.suffix == "a":
        return (code.major, code.minor) == (device.major, device.minor)
    return code.major == device.major and code.minor <= device.minor


def _text_runs(text: _Capability, device: _Capability) -> bool:
    """PTX with a suffix is as bound as machine code; without one any device from that capability on can compile it."""
    return _code_runs(text, device) if text.suffix else (text.major, text.minor) <= (device.major, device.minor)
