"""What every vendor module shares: the shapes it takes and gives, the PCI bus, driver texts.

The shapes are protocols, so that a vendor needs no import of the matrix: `accel_env.matrix.types` fits them.
"""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from accel_env.model import Device, Need
from accel_env.system.types import Completed, System

TYPE_CHECKING = False  # `typing` is not loaded at start-up
if TYPE_CHECKING:
    from typing import Any, Protocol, TypeVar

    T = TypeVar("T")
else:
    Protocol = object


class Row(Protocol):
    """A product of the device table."""

    @property
    def vendor(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def arch(self) -> str: ...
    @property
    def integrated(self) -> bool: ...
    @property
    def kind(self) -> str: ...
    @property
    def memory_mib(self) -> int | None: ...


class Table(Protocol):
    """The device table of the matrix."""

    def by_pci(self, pci_vendor: str, pci_id: str) -> Row | None:
        """The product with this PCI id (four lower-case hex digits each)."""

    def by_name(self, vendor: str | None, text: str) -> Row | None:
        """The product that this text names."""

    def nearest(self, text: str, n: int = 5) -> tuple[str, ...]:
        """The names most like this text."""

    def vendors(self) -> Mapping[str, str]:
        """Vendor -> PCI vendor id, empty where it has none."""


class Alias(Protocol):
    """`b` is what `a` is called now."""

    @property
    def a(self) -> str: ...
    @property
    def b(self) -> str: ...


class Rule(Protocol):
    """An exception to the vendor's plain rule for machine code."""

    @property
    def device(self) -> str: ...
    @property
    def not_from(self) -> tuple[str, ...]: ...
    @property
    def before(self) -> str: ...


class Name(Protocol):
    """A driver whose version as found matches `match` is the packaged `release`."""

    @property
    def match(self) -> str: ...
    @property
    def release(self) -> str: ...


class Stack(Protocol):
    """The part of a stack that the vendors read."""

    @property
    def code_rules(self) -> Sequence[Rule]: ...
    @property
    def aliases(self) -> Sequence[Alias]: ...
    @property
    def driver_names(self) -> Sequence[Name]: ...


@dataclass(frozen=True, slots=True)
class Sighting:
    """A device and which probe gave which of its fields."""

    device: Device
    gave: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """What a vendor's probe saw. `notes` are sentences about what was broken, left out or doubtful."""

    sightings: tuple[Sighting, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices alone."""
        return tuple(sighting.device for sighting in self.sightings)


@dataclass(frozen=True, slots=True)
class PciDevice:
    """A function on the PCI bus; ids are four hex digits, `klass` six, `driver` the bound kernel module or empty."""

    address: str
    vendor: str
    id: str
    klass: str
    driver: str


class Vendor(Protocol):
    """A vendor module."""

    def probe(self, system: System, table: Table, bus: tuple[PciDevice, ...] | None = None) -> Found:
        """The vendor's devices in this machine; empty where there is none. Never raises for a broken machine.

        `bus` is `pci_devices(system)` where the caller has read it already.
        """

    def runs(self, need: Need, arch: str, stack: Stack, release: str) -> str:
        """`native` when the machine code of a build runs on `arch`, `jit` when it must be compiled first, else empty."""

    def normalise_driver(self, text: str, stack: Stack) -> str:
        """The packaged driver release behind a version as found; comparable, empty for empty."""


def pci_devices(system: System) -> tuple[PciDevice, ...]:
    """The PCI bus as the kernel (Linux) or the display class (Windows) shows it; neither needs a driver or a tool."""
    if system.machine().os == "windows":
        return _windows_displays(system)
    found = []
    for folder in system.glob("/sys/bus/pci/devices/*"):
        vendor, ident, klass = (_hex(system.read_text(f"{folder}/{name}")) for name in ("vendor", "device", "class"))
        if not vendor or not ident:
            continue
        driver = (system.readlink(f"{folder}/driver") or "").rsplit("/", 1)[-1] if klass[:2] in _ACCELERATOR_CLASSES else ""
        found.append(PciDevice(folder.rsplit("/", 1)[-1].lower(), vendor, ident, klass, driver))
    return tuple(found)


# Display controllers, processing accelerators, and what TPU and Neuron boards call themselves (system peripheral, unassigned).
_ACCELERATOR_CLASSES = ("03", "12", "08", "ff", "00")


def vendor_devices(bus: Sequence[PciDevice], table: Table, vendor: str) -> tuple[PciDevice, ...]:
    """The functions of one vendor: by its PCI ids, so that a product newer than the table is seen too."""
    return tuple(item for item in bus if item.vendor == table.vendors().get(vendor))


def is_display(device: PciDevice) -> bool:
    """True for a display or 3D controller."""
    return device.klass.startswith("03")


def is_accelerator(device: PciDevice) -> bool:
    """True for a display controller or a processing accelerator: a network card of the same vendor is neither."""
    return device.klass.startswith(("03", "12"))


def _hex(text: str | None) -> str:
    return (text or "").strip().lower().removeprefix("0x")


def _windows_displays(system: System) -> tuple[PciDevice, ...]:
    """Windows names its display adapters `PCI\\VEN_10DE&DEV_2684&SUBSYS_...`."""
    done = system.run(("powershell", "-NoProfile", "-Command", "(Get-CimInstance Win32_VideoController).PNPDeviceID"))
    ids = re.findall(r"ven_([0-9a-f]{4})&dev_([0-9a-f]{4})", done.stdout.lower())
    return tuple(PciDevice(f"display-{n}", vendor, ident, "030000", "windows") for n, (vendor, ident) in enumerate(ids))


def bus_address(text: str) -> str:
    """A PCI address as sysfs writes it: `00000000:3B:00.0` of a tool becomes `0000:3b:00.0`; empty for `N/A`."""
    found = re.fullmatch(r"(?:0000)?([0-9a-fA-F]{4}):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})\.([0-7])", text.strip())
    return f"{found[1]}:{found[2]}:{found[3]}.{found[4]}".lower() if found else ""


def renamed(arch: str, stack: Stack) -> tuple[str, ...]:
    """What an architecture is called now: each `b` of the stack's aliases whose `a` it is, else itself."""
    return tuple(alias.b for alias in stack.aliases if alias.a == arch) or (arch,)


def exact(need: Need, arch: str, stack: Stack) -> str:
    """The rule of vendors without one: the very name, or an alias of it, is in the list."""
    if not arch or need.unknown or arch in need.lacks:
        return ""
    if need.lacks and not need.values and not need.jit:
        return "native"  # a need about library kernels alone
    wanted = set(renamed(arch, stack))
    if any(wanted & set(renamed(code, stack)) for code in need.values):
        return "native"
    return "jit" if any(wanted & set(renamed(code, stack)) for code in need.jit) else ""


def numbers(text: str) -> tuple[int, ...]:
    """The leading dotted numbers of a version, for comparing: `12.10` is (12, 10)."""
    found = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(int(part) for part in found.group().split(".")) if found else ()


_DRIVER_TEXT = r"inbox(?: \d+(?:\.\d+)*\S*)?|[rRvV]?\d+(?:\.\d+)*(?:\.?(?:rc|RC)\d+)?(?:[-+~][0-9A-Za-z.+~_-]+)?"


def valid_driver(text: str) -> bool:
    """Whether a text can be a driver version at all: `580.95.05`, `R580`, `6.12.12`, `1.22.1-97ec1a4`, `inbox 6.8.0`."""
    return re.fullmatch(_DRIVER_TEXT, text.strip()) is not None


def complaints(done: Completed) -> tuple[str, ...]:
    """A tool's problem for the notes; none where it went well or is not installed."""
    return (done.problem,) if done.problem and not done.missing else ()


def arch_of(row: Row | None) -> str:
    """The architecture of a row; empty without one, and where the table says that nobody has published it."""
    return "" if row is None or row.arch == "unknown" else row.arch


def changed(value: T, **fields: Any) -> T:
    """A copy of a frozen value with other fields (`dataclasses.replace` without its price at start-up)."""
    kept: dict[str, Any] = {name: getattr(value, name) for name in type(value).__slots__}  # type: ignore[attr-defined]
    return type(value)(**{**kept, **fields})


def gave(**probes: str) -> tuple[tuple[str, str], ...]:
    """The pairs of field and probe, without the fields that nothing gave."""
    return tuple((field, probe) for field, probe in probes.items() if probe)
