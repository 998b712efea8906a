"""What the tools of the other vendors print: xpu-smi, clinfo, sycl-ls (Intel), hl-smi (Gaudi), npu-smi (Ascend), neuron-ls."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from accel_env.judge.parse_base import RUNNING, TOOL, Facts, Notes, cells, key_value, known
from accel_env.model import Device

_OPENCL = re.compile(r"[ |]{0,6}[`|+][-]{1,2} Device #\d{1,3}: (\S.{0,100})$")
_SYCL = re.compile(r"\[(?:ext_oneapi_)?(level_zero|opencl):gpu[\]:]\S{0,24} ?(\S.{0,300})$")
_TAIL = re.compile(r"\s{1,8}(?:OpenCL )?\d[\d.]{0,12}(?: NEO\s{0,2})?\s{1,4}\[([^\]]{1,40})\]$")
_HABANA_TOOL = re.compile(r"HL-SMI Version:\s{1,80}(\S{3,40})")
_HABANA_DRIVER = re.compile(r"Driver Version:\s{1,80}(\d[\w.+-]{2,40})")
_HABANA_ROW = re.compile(r"\d{1,3}\s{1,8}(HL-\d{3}\w{0,2})\b")
_NPU_TOOL = re.compile(r"npu-smi (\d\S{0,20})\s{1,60}Version: (\S{1,24})")
_NPU_ROW = re.compile(r"\d{1,3}\s{1,8}((?:Ascend ?)?\d{3}\w{0,6})$")
_NEURON = re.compile(r"instance-type: ([a-z0-9.]{4,20})$")


def parse(lines: Sequence[str]) -> Facts:
    """Drivers and devices of each tool's list."""
    notes = Notes("xpu-smi")
    notes.list(_xpu_smi(lines, notes), "intel")
    notes.list(_clinfo(lines), "intel", by="clinfo")
    notes.list(_sycl(lines, notes), "intel", by="sycl-ls")
    notes.list(_hl_smi(lines, notes), "habana", by="hl-smi")
    notes.list(_npu_smi(lines, notes), "huawei", by="npu-smi")
    for line in lines:
        found = _NEURON.match(line)
        if found:
            notes.say("instance_type", found[1], by="neuron-ls")
    return notes.facts()


def _xpu_smi(lines: Sequence[str], notes: Notes) -> Iterator[Device]:
    """`xpu-smi discovery`: the first cell numbers a device, the second holds `key: value` over several lines."""
    name, ident = "", ""
    for line in (*lines, "| end | Device Name: |"):
        parts = cells(line)
        if len(parts) != 2:
            continue
        if parts[0]:
            if name:
                yield Device("intel", name, "", pci_id=ident)
            name = ident = ""
        key, value = key_value(parts[1])
        if key == "device name" and known(value):
            name = value
        elif key == "pci device id" and re.match(r"0x[0-9a-fA-F]{4}$", value):
            ident = value[2:].lower()
        elif key == "driver version" and name:
            notes.say("intel_driver", value)


def _clinfo(lines: Sequence[str]) -> Iterator[Device]:
    """`clinfo -l` and the head of plain `clinfo`; other OpenCL platforms list CPUs and other vendors' devices."""
    inside = False
    name = ""
    for line in lines:
        platform = re.match(r"(?:Platform #\d{1,3}: |\s{0,4}Platform Name\s{2,60})(.{1,80})$", line)
        found = _OPENCL.match(line)
        plain = re.match(r"\s{0,4}(Device Name|Device Type)\s{2,60}(\S.{0,100})$", line)
        if platform:
            inside = "Graphics" in platform[1] and "Intel" in platform[1]
        elif found and inside:
            yield Device("intel", found[1], "")
        elif plain and inside:
            if plain[1] == "Device Type" and plain[2] == "GPU" and name:
                yield Device("intel", name, "")
            name = plain[2] if plain[1] == "Device Name" else ""


def _sycl(lines: Sequence[str], notes: Notes) -> list[Device]:
    """`[level_zero:gpu][level_zero:0] Intel(R) Level-Zero, Intel(R) Arc(TM) A770 Graphics 1.3 [1.3.26918]`."""
    found: dict[str, list[Device]] = {}
    for line in lines:
        told = _SYCL.match(line)
        if not told:
            continue
        text = told[2].rpartition(", ")[2] if ", " in told[2] else told[2]
        tail = _TAIL.search(text)
        name = text[: tail.start()] if tail else text
        if "Intel" in name:
            found.setdefault(told[1], []).append(Device("intel", name.strip(), ""))
            notes.say("level_zero_driver" if told[1] == "level_zero" else "intel_driver", tail[1] if tail else "", by="sycl-ls")
    return found.get("level_zero") or found.get("opencl") or []


def _hl_smi(lines: Sequence[str], notes: Notes) -> Iterator[Device]:
    inside = False
    for line in lines:
        tool = _HABANA_TOOL.search(line)
        driver = _HABANA_DRIVER.search(line) if inside else None
        if tool:
            inside = True
            notes.say("hl_smi", tool[1], by="hl-smi")
        if driver:
            notes.say("driver:habana", driver[1], RUNNING, "hl-smi")
            inside = False
        parts = cells(line)
        row = _HABANA_ROW.match(parts[0]) if len(parts) > 2 else None
        if row:
            yield Device("habana", row[1], "")


def _npu_smi(lines: Sequence[str], notes: Notes) -> Iterator[Device]:
    inside = False
    for line in lines:
        tool = _NPU_TOOL.search(line)
        if tool:
            inside = True
            notes.say("driver:huawei", tool[2], TOOL, "npu-smi")
        parts = cells(line) if inside else []
        row = _NPU_ROW.match(parts[0]) if len(parts) > 2 and parts[1][:1].isalpha() else None
        if row:
            yield Device("huawei", row[1], "")
