"""What AMD's tools print: rocminfo, rocm-smi, amd-smi."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from accel_env.judge.parse_base import RUNNING, Facts, Notes, cells, dotted, key_value, known
from accel_env.model import Device

VENDOR = "amd"

_MODULE = re.compile(r"ROCk module version (\d[\w.+-]{0,40}) is loaded")
_AGENT = re.compile(r"\s*Agent \d{1,3}\s*$")
_LAST = "Agent 0"  # ends the last agent
_CHIP = re.compile(r"\d{1,9}\(0x([0-9a-f]{4})\)")
_GFX = re.compile(r"gfx[0-9a-f]{3,5}")
_SMI = re.compile(r"GPU\[(\d{1,3})\]\s{0,8}:\s{0,8}(.*)$")
_CONCISE = re.compile(r"(\d{1,3})\s{1,12}\d{1,3}\s{1,12}0x([0-9a-f]{4}),")
_AMD_SMI = re.compile(r"(?:AMD-SMI|AMDSMI Tool)\b")
_STATIC = re.compile(r"GPU: \d{1,3}$")
_BUS = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\s{1,12}(\S.{0,60})$")
_PRINTED = (
    ("driver:amd", re.compile(r"amdgpu version:\s{0,8}(\d[\w.+-]{0,40})", re.IGNORECASE)),
    ("rocm", re.compile(r"ROCm version:\s{0,8}(\d[\d.]{0,20})")),
)


def parse(lines: Sequence[str]) -> Facts:
    """The driver, the ROCm that the tools belong to, and the GPUs of each tool's list."""
    notes = Notes("rocminfo")
    for line in lines:
        if found := _MODULE.match(line):
            notes.say("driver:amd", found[1], RUNNING)
        elif _AMD_SMI.search(line):
            for field, pattern in _PRINTED:
                told = pattern.search(line)
                notes.say(field, told[1] if told else "", by="amd-smi")
    notes.list(_agents(lines), VENDOR)
    notes.list(_static(lines, notes), VENDOR, by="amd-smi static")
    notes.list(_table(lines), VENDOR, by="amd-smi")
    notes.list(_rocm_smi(lines, notes), VENDOR, by="rocm-smi")
    return notes.facts()


def _agents(lines: Sequence[str]) -> Iterator[Device]:
    """The GPU agents. The first Name of an agent is its gfx target, later ones name its ISA.

    Issue forms ask for the lines Name and Marketing Name alone: there a Name begins an agent.
    """
    bare = not any(_AGENT.match(line) for line in lines)
    agent: dict[str, str] = {}
    for line in (*lines, "name: end" if bare else _LAST):
        key, value = key_value(line)
        if _AGENT.match(line) or (bare and key == "name"):
            yield from _agent(agent, bare)
            agent = {"inside": "yes"}
        if agent and key in ("name", "marketing name", "device type", "chip id"):
            agent.setdefault(key, value)


def _agent(agent: dict[str, str], bare: bool) -> Iterator[Device]:
    gfx = _GFX.match(agent.get("name", ""))
    if gfx and (agent.get("device type") == "GPU" or (bare and "marketing name" in agent)):
        chip = _CHIP.match(agent.get("chip id", ""))
        yield Device(VENDOR, agent.get("marketing name", ""), gfx.group(), pci_id=chip[1] if chip else "")


def _static(lines: Sequence[str], notes: Notes) -> list[Device]:
    """`amd-smi static`: blocks of keys in capitals per GPU; VERSION counts below DRIVER alone."""
    found: list[dict[str, str]] = []
    section = ""
    for line in lines:
        key, value = key_value(line)
        if _STATIC.match(line):
            found.append({})
        elif found and key and not value and line.startswith("    "):
            section = key
        elif found and key in ("market_name", "target_graphics_version", "device_id"):
            found[-1].setdefault(key, value)
        elif found and section == "driver" and key in ("version", "driver_version"):
            notes.say("driver:amd", value, RUNNING, "amd-smi static")
    return [_from_keys(row, "market_name", "target_graphics_version", "device_id") for row in found if row]


def _from_keys(row: dict[str, str], name: str, gfx: str, chip: str) -> Device:
    arch = _GFX.match(row.get(gfx, ""))
    ident = re.match(r"0x([0-9a-f]{4})$", row.get(chip, "").casefold())
    title = row.get(name, "")
    return Device(VENDOR, title if known(title) else "", arch.group() if arch else "", pci_id=ident[1] if ident else "")


def _table(lines: Sequence[str]) -> Iterator[Device]:
    """The rows of plain `amd-smi`: `| 0000:05:00.0    AMD Instinct MI350X | ...`."""
    for line in lines:
        parts = cells(line)
        found = _BUS.match(parts[0]) if parts else None
        if found and not found[1].startswith("0x"):
            yield Device(VENDOR, found[1], "")


def _rocm_smi(lines: Sequence[str], notes: Notes) -> list[Device]:
    """`GPU[0] : Card series: ...` of the options of rocm-smi, or the device ids of its short table."""
    rows: dict[str, dict[str, str]] = {}
    short: list[Device] = []
    heading = False
    for line in lines:
        found = _SMI.match(line)
        if found:
            key, value = key_value(found[2])
            rows.setdefault(found[1], {}).setdefault(key, value)
            continue
        key, value = key_value(line)
        if key == "driver version" and rows:
            notes.say("driver:amd", value, by="rocm-smi")
        heading = heading or "ROCm System Management Interface" in line
        told = _CONCISE.match(line) if heading else None
        if told:
            short.append(Device(VENDOR, "", "", pci_id=told[2]))
    return [_from_smi(row) for row in rows.values() if _NAMES.intersection(row)] or short


_NAMES = {"card series", "card model", "gfx version", "device name", "device id", "gpu id"}


def _from_smi(row: dict[str, str]) -> Device:
    """The series is a name, or on releases without the table of names a PCI id; the model is an id as a rule."""
    named = [row.get(key, "") for key in ("card series", "device name", "card model")]
    ids = [dotted_id for key in ("device id", "gpu id", "card model", "card series") if (dotted_id := _ident(row.get(key, "")))]
    name = next((text for text in named if known(text) and not _ident(text)), "")
    gfx = _GFX.match(row.get("gfx version", ""))
    return Device(VENDOR, name, gfx.group() if gfx else "", pci_id=ids[0] if ids and not dotted(name) else "")


def _ident(text: str) -> str:
    found = re.match(r"0x([0-9a-f]{3,4})$", text.casefold())
    return found[1].zfill(4) if found else ""
