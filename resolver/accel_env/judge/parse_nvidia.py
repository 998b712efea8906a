"""What NVIDIA's tools and kernel module print: nvidia-smi (table, -L, -q, csv), /proc/driver/nvidia/version, nvcc."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from accel_env.judge.parse_base import RUNNING, Facts, Notes, cells, dotted, key_value, known, mib
from accel_env.model import Device

BY = "nvidia-smi"
VENDOR = "nvidia"

# Since R610 the header says KMD (kernel-mode driver) and CUDA UMD (user-mode driver) where it said Driver and CUDA.
_HEADER = re.compile(r".{0,8}NVIDIA-SMI\s{1,20}(\d[\d.]{1,20})")
_DRIVER = re.compile(r"(?:Driver|KMD) Version:\s{0,20}(\d[\d.]{1,20})")
_CUDA = re.compile(r"CUDA (?:UMD )?Version:\s{0,20}(\d{1,3}\.\d{1,3})")
_ROW = re.compile(r"(\d{1,3})\s{1,8}(\S.{0,60}?)\s{1,40}(?:On|Off|N/A|WDDM|TCC|MCDM|ERR!)$")
_BUS = re.compile(r"(?:[0-9A-Fa-f]{4}){1,2}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]")
_LISTED = re.compile(r"GPU (\d{1,3}): (\S.{0,100}?) \(UUID: ")
_KERNEL = re.compile(r"NVRM version: .{0,80}?Kernel Module(?: for \S{1,20})?\s{1,20}(\d{3,4}\.[\d.]{1,12})")
_NVCC = re.compile(r".{0,12}Cuda compilation tools, release (\d{1,3}\.\d{1,3}), V(\d[\d.]{1,20})")
_PLAIN_DRIVER = re.compile(r"\d{3}\.\d{2,3}(?:\.\d{1,2})?$")
_PLAIN_CAPABILITY = re.compile(r"\d{1,2}\.\d$")
_PRODUCT = re.compile(r"(?:NVIDIA|Tesla|Quadro|GeForce|TITAN|GRID)\b|HL-\d{3}")
_COLUMNS = {"name", "gpu_name", "driver_version", "compute_cap", "memory.total", "index", "uuid", "pci.bus_id", "cuda_version"}


def parse(lines: Sequence[str]) -> Facts:
    """Driver, CUDA of the driver, toolkit and the GPUs of each tool's list."""
    notes = Notes(BY)
    for line in lines:
        if found := _KERNEL.match(line):
            notes.say("driver:nvidia", found[1], RUNNING, "the kernel module")
        elif found := _NVCC.match(line):
            notes.say("cuda_toolkit", found[2], by="nvcc")
        elif _HEADER.match(line):
            _header(line, notes)
    notes.list(_table(lines), VENDOR)
    notes.list(_listing(lines), VENDOR, by="nvidia-smi -L")
    _query(lines, notes)
    _csv(lines, notes)
    return notes.facts()


def _header(line: str, notes: Notes) -> None:
    """The driver is the kernel's number; the number after NVIDIA-SMI is that of the tool and its library."""
    for field, pattern in (("driver:nvidia", _DRIVER), ("cuda_driver", _CUDA)):
        found = pattern.search(line)
        if found:
            notes.say(field, found[1].rstrip("."), RUNNING)


def _table(lines: Sequence[str]) -> Iterator[Device]:
    for number, line in enumerate(lines):
        parts = cells(line)
        row = _ROW.match(parts[0]) if len(parts) > 2 else None
        if row and _BUS.match(parts[1]):
            below = cells(lines[number + 1]) if number + 1 < len(lines) else []
            size = re.search(r"/\s{0,8}(\d{1,9}MiB)", below[1]) if len(below) > 1 else None
            yield Device(VENDOR, row[2], "", memory_mib=mib(size[1]) if size else None)


def _listing(lines: Sequence[str]) -> Iterator[Device]:
    for line in lines:
        found = _LISTED.match(line)
        if found:
            yield Device(VENDOR, found[2], "")


def _query(lines: Sequence[str], notes: Notes) -> None:
    """`nvidia-smi -q`: keys in blocks, the driver before the first GPU."""
    inside = False
    found: list[Device] = []
    for line in lines:
        if "NVSMI LOG" in line:
            inside = True
        if not inside:
            continue
        key, value = key_value(line)
        if key in ("driver version", "kmd version"):
            notes.say("driver:nvidia", dotted(value), RUNNING, "nvidia-smi -q")
        elif key in ("cuda version", "cuda umd version"):
            notes.say("cuda_driver", dotted(value), RUNNING, "nvidia-smi -q")
        elif key == "product name" and known(value):
            found.append(Device(VENDOR, value, ""))
    notes.list(found, VENDOR, by="nvidia-smi -q")


def _csv(lines: Sequence[str], notes: Notes) -> None:
    """`nvidia-smi --query-gpu=... --format=csv`, with its line of column names or without."""
    columns: list[str] = []
    found: list[Device] = []
    for line in lines:
        parts = [part.strip() for part in line.split(",")]
        if not 2 <= len(parts) <= 24:
            columns = []
            continue
        names = [part.partition(" ")[0] for part in parts]
        if len(_COLUMNS.intersection(names)) > 1:
            columns = names
        elif columns and len(parts) == len(columns):
            found += _csv_row(dict(zip(columns, parts, strict=True)), notes)
        elif not columns:
            found += _csv_row(_guessed(parts), notes)
    gpus = [one for one in found if not one.name.startswith("HL-")]
    notes.list(gpus, VENDOR, by="nvidia-smi csv")
    notes.list((one for one in found if one not in gpus), "habana", by="hl-smi csv")


def _csv_row(row: dict[str, str], notes: Notes) -> list[Device]:
    name, driver = row.get("name") or row.get("gpu_name", ""), row.get("driver_version", "")
    if not known(name):
        return []
    if name.startswith("HL-"):
        notes.say("driver:habana", driver, by="hl-smi csv")
        return [Device("habana", name, "")]
    notes.say("driver:nvidia", dotted(driver), RUNNING, "nvidia-smi csv")
    notes.say("cuda_driver", dotted(row.get("cuda_version", "")), RUNNING, "nvidia-smi csv")
    return [Device(VENDOR, name, capability(row.get("compute_cap", "")), "", mib(row.get("memory.total", "")))]


def _guessed(parts: list[str]) -> dict[str, str]:
    """The columns of a row without their names: one that names a product, a driver, a capability or a size beside it."""
    row = {"name": next((part for part in parts[:2] if _PRODUCT.match(part)), "")}
    for part in parts if row["name"] else ():
        if _PLAIN_DRIVER.match(part):
            row["driver_version"] = part
        elif _PLAIN_CAPABILITY.match(part):
            row["compute_cap"] = part
        elif mib(part):
            row["memory.total"] = part
    return row if len(row) > 1 or row["name"].startswith("HL-") else {}


def capability(text: str) -> str:
    """`sm_86` of `8.6` or `(8, 6)`; empty for another text."""
    found = re.match(r"\(?(\d{1,2})(?:\.|, ?)(\d)\)?$", text.strip())
    return f"sm_{found[1]}{found[2]}" if found else ""
