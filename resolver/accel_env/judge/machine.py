"""The machine as people write it: products, drivers with remarks, operating systems."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from accel_env.model import Device, Host

if TYPE_CHECKING:
    from accel_env.judge.book import Book
    from accel_env.matrix.load import Matrix
    from accel_env.matrix.types import DeviceRow

_NUMBER = re.compile(r"(?<![\w.])v?(\d+(?:\.\d+)+(?:-\d[\w.]*)?|\d{3})(?![\w])")
_BOUND = re.compile(r"^\s*(>=|<=|<|>)\s*(\d+(?:\.\d+)*)")
_CPUS = {"amd64": "x86_64", "x64": "x86_64", "arm64": "aarch64"}
_PYTHON = re.compile(r"3\.\d+")


@dataclass(frozen=True, slots=True)
class DriverText:
    """A driver as written: `version` empty where no single one is known; `extra`: range, second number, kind of module."""

    version: str = ""
    extra: dict[str, str] = field(default_factory=dict)


def driver_of(text: str, devices: Iterable[Device], os: str = "") -> DriverText:
    """`570.144 (proprietary kernel modules)`, `kernel module 520.56.06, nvidia-smi 525.85.12`, `>=580`, `SynapseAI 1.4.0`."""
    if not text:
        return DriverText()
    extra = {"driver": text}
    bound = _BOUND.match(text)
    if bound:
        return DriverText("", extra | {"driver_spec": f"{bound[1]}{bound[2]}"})
    numbers: list[str] = _NUMBER.findall(text)
    if re.search(r"\bproprietary\b", text, re.IGNORECASE):
        extra["kernel_modules"] = "proprietary"
    elif re.search(r"\bopen\b", text, re.IGNORECASE):
        extra["kernel_modules"] = "open"
    if len({number.split("-")[0] for number in numbers}) > 1 and re.search(r"\bmodule\b", text):
        extra |= {"driver_kernel": numbers[0], "driver_userspace": numbers[1]}
    vendor = next((device.vendor for device in devices), "")
    if vendor == "intel" and ";" in text:
        return DriverText("", extra)
    return DriverText(numbers[0] if numbers else "", extra)


def devices_of(rows: Iterable[str | Mapping[str, Any]], matrix: Matrix) -> tuple[Device, ...]:
    """The devices that names and architectures mean; what the table does not know keeps the words and an empty arch."""
    found: dict[tuple[str, str, str], Device] = {}
    for row in rows:
        said = {"name": row} if isinstance(row, str) else {str(key): str(value) for key, value in row.items() if value}
        device = _device(said, matrix)
        if not (device.vendor or device.name or device.arch):
            continue
        found.setdefault((device.vendor, device.name, device.arch), device)
    return tuple(found.values())


def _device(said: Mapping[str, str], matrix: Matrix) -> Device:
    name = re.sub(r"\s*\(\d+x\)|\s*\bx ?\d+$|\s*\((?:sm_|gfx)\w+\)", "", said.get("name", "")).strip()
    if name.lower().startswith("unknown"):
        name = ""
    arch = said.get("arch", "").strip()
    row = _row(name, said, matrix)
    vendor, target = _target(arch, row, matrix)
    if row is not None and row.vendor != vendor:
        row = None
    same = row is not None and row.arch == target
    integrated, kind = (row.integrated, row.kind) if row is not None and same else (False, row.kind if row else "")
    pci = re.sub(r"^.*:|^0x", "", said.get("pci_id", "")).lower()
    return Device(vendor, name or target, target, said.get("driver", ""), row.memory_mib if row else None, pci, integrated, kind)


def _row(name: str, said: Mapping[str, str], matrix: Matrix) -> DeviceRow | None:
    table = matrix.devices()
    pci = re.sub(r"^.*:|^0x", "", said.get("pci_id", ""))
    if pci:
        rows = [row for ident in table.vendors().values() if ident and (row := table.by_pci(ident, pci))]
        if len(rows) == 1:
            return rows[0]
    if not name or name.lower().startswith("unknown") or " / " in name:
        return None
    return table.by_name(None, name) or table.by_name(
        None, re.sub(r"\([^()]*\)|\bseries\b|\d+ ?gb\b", " ", name, flags=re.IGNORECASE)
    )


def _target(arch: str, row: DeviceRow | None, matrix: Matrix) -> tuple[str, str]:
    """(vendor, architecture): the one said where the table knows it, else the product's, else nothing."""
    if arch and arch.lower() not in ("unknown", "none"):
        vendor = _vendor_of(arch, matrix)
        if vendor:
            return vendor, arch
        family = {(item.vendor, item.arch) for item in matrix.devices() if item.arch.startswith(f"{arch}-")}
        if family and (row is None or (row.vendor, row.arch) not in family):
            return sorted(family)[0]
        first = re.split(r"[/,]", arch)[0]
        if row is None and first != arch:  # several products in one line: no single architecture
            return _vendor_of(first, matrix), ""
    return (row.vendor, "" if row.arch == "unknown" else row.arch) if row is not None else ("", "")


def _vendor_of(arch: str, matrix: Matrix) -> str:
    for item in matrix.devices():
        if item.arch == arch:
            return item.vendor
    shapes = {"nvidia": r"sm_\d{2,3}", "amd": r"gfx[0-9a-f]{3,4}"}
    return next((vendor for vendor, shape in shapes.items() if re.fullmatch(shape, arch)), "")


def host_of(said: Mapping[str, str], devices: tuple[Device, ...], book: Book) -> Host:
    """The host that the texts describe; glibc and libstdc++ of the distribution where nobody said another."""
    text = said.get("os", "")
    lower = text.lower()
    wsl = "wsl" in lower or "wsl" in said.get("kernel", "").lower()
    system = "macos" if re.search(r"mac ?os|darwin|os x", lower) else "windows" if "windows" in lower and not wsl else "linux"
    arch = said.get("arch", "").lower()
    arch = _CPUS.get(arch, arch) or ("aarch64" if devices and all(book.is_arm(device.name) for device in devices) else "x86_64")
    distribution = book.distribution(text) if system == "linux" else None
    glibc = re.match(r"\d+\.\d+", re.sub(r"^\D*", "", said.get("glibc", said.get("libc", ""))))
    family = "musl" if distribution and distribution.family == "musl" else "glibc" if system == "linux" and glibc else ""
    python = _PYTHON.match(said.get("python", ""))
    return Host(
        os=system,
        arch=arch,
        kernel=said.get("kernel", ""),
        libc_family=family or (distribution.family if distribution else ""),
        libc=glibc[0] if glibc else distribution.libc if distribution else "",
        libstdcxx=distribution.libstdcxx if distribution else "",
        python=(python[0] + ("t" if re.search(r"free.?thread|\dt\b", said.get("python", "")) else "")) if python else "",
        devices=devices,
        wsl=wsl,
    )
