"""What packages print about themselves: bitsandbytes, xformers, transformers, SGLang, DeepSpeed, ComfyUI, Unsloth and others."""

from __future__ import annotations

import re
from collections.abc import Sequence

from accel_env.judge.parse_base import RUNNING, Facts, Notes, dotted, key_value, known
from accel_env.judge.parse_nvidia import capability
from accel_env.judge.parse_packages import normal
from accel_env.judge.parse_torch import platform_text
from accel_env.model import Device

_VERSION = re.compile(r"v?(\d[\w.!+-]{0,60})(?: \((?:True|False|NA|cpu|gpu)\))?$")
_NAMED = re.compile(r"(?:- )?`?([A-Za-z][\w.-]{1,60})`?(?: version(?: \([^)]{1,40}\))?)?$")
_GPU_ROW = re.compile(r"GPU (\d{1,3}(?:, ?\d{1,3}){0,15}): (\S.{0,100})$")
_GPU_CAPABILITY = re.compile(r"GPU [\d, ]{1,64} Compute Capability: (\d{1,2}\.\d)$")
_BNB_TITLE = re.compile(r"=+ bitsandbytes v(\d\S{0,40}) =+$")
_BNB_EGG = re.compile(r".{0,300}bitsandbytes-(\d[\w.]{0,20})-py3")
_BNB_CAPABILITY = re.compile(
    r".{0,160}(?:Highest Compute Capability: |highest_compute_capability=|compute capability among GPUs detected: )"
    r"(\d{1,2}\.\d|\(\d{1,2}, \d\))",
    re.IGNORECASE,
)
_BNB_RUNTIME = re.compile(r".{0,160}(?:(ROCM|CUDA)_VERSION=|Detected (CUDA) version |cuda_version_string=')(\d{2,3})\b")
_XFORMERS = re.compile(r"xFormers (\d\S{0,60})$")
_UNSLOTH = re.compile(r".{0,24}Torch: (\d\S{0,40})\. CUDA: ([\d.]{1,6})\. CUDA Toolkit: ([\d.]{1,8})\. Triton: (\d[\w.+]{0,30})")
_COMFY_DEVICE = re.compile(r"Device: (?:cuda|xpu|hip):\d{1,2} (\S.{0,80}?)(?: : \w{1,40})?$")
_DOTTED = re.compile(r"([a-z][\w ]{2,40}?)(?:[ .]\.{3,200}) ?(\S.{0,80})$")
_BUILT_TORCH = "xformers_built_torch"

_FIELDS = {
    "pytorch.version": "torch",
    "pytorch": "torch",
    "torch": "torch",
    "torch version": "torch",
    "cuda driver version": "driver:nvidia",
    "build.torch_version": _BUILT_TORCH,
    "torch cuda version": "torch_cuda",
    "torch hip version": "torch_hip",
}


def parse(lines: Sequence[str], names: frozenset[str]) -> Facts:
    """Versions, devices and builds that packages report. `names`: distribution names whose `name: version` lines count."""
    notes = Notes("the package's own report")
    gpus: list[Device] = []
    for line in lines:
        if _printed(line, notes):
            continue
        if found := _DOTTED.match(line):
            _pair(found[1].strip().casefold(), found[2], notes, names)
            continue
        row = _GPU_ROW.match(line)
        if row:
            gpus += [Device("", re.sub(r" \(UUID: .{0,80}", "", row[2]), "")] * (row[1].count(",") + 1)
        else:
            _pair(*key_value(line), notes, names)
    notes.list(gpus)
    _capabilities(lines, notes)
    _named_device(lines, notes)
    return notes.facts()


def _printed(line: str, notes: Notes) -> bool:
    """Whether the line is one that a single package prints, read now."""
    if found := _BNB_TITLE.match(line) or _BNB_EGG.match(line):
        notes.package("bitsandbytes", found[1], by="bitsandbytes")
    elif found := _XFORMERS.match(line):
        notes.package("xformers", found[1], RUNNING, "xformers.info")
    elif found := _UNSLOTH.match(line):
        notes.package("torch", found[1], RUNNING, "Unsloth")
        notes.package("triton", found[4], RUNNING, "Unsloth")
        notes.say("torch_cuda", found[3], RUNNING, "Unsloth")
    elif found := _COMFY_DEVICE.match(line):
        notes.list([Device("", found[1], "")], by="ComfyUI")
    elif found := _BNB_RUNTIME.match(line):
        digits = found[3]
        field = "torch_hip" if found[1] == "ROCM" else "torch_cuda"
        notes.say(field, f"{digits[:-1]}.{digits[-1]}", RUNNING, "bitsandbytes")
        _capability_in(line, notes)
    else:
        return False
    return True


def _pair(key: str, value: str, notes: Notes, names: frozenset[str]) -> None:
    """`key: value` of a report; versions of packages that the matrix models, and the fields above."""
    version = _VERSION.match(value)
    field = _FIELDS.get(key, "")
    if field == "torch" and version:
        notes.package("torch", version[1], RUNNING)
    elif field and field != "torch":
        notes.say(field, value if field == _BUILT_TORCH else dotted(value), RUNNING)
    elif key in ("platform", "- platform"):
        platform_text(value, notes)
    elif key in ("libc",) and value.startswith("glibc-"):
        notes.say("glibc", dotted(value[6:]), RUNNING)
    elif key in ("python", "- python version") and known(value):
        notes.say("python", dotted(value), RUNNING)
    elif version and (named := _NAMED.match(key)):
        _named(named[1], version[1], notes, names)


def _named(name: str, version: str, notes: Notes, names: frozenset[str]) -> None:
    if name == "pytorch":
        notes.package("torch", version, RUNNING)
    elif normal(name) in names:
        notes.package(name, version)


def _capabilities(lines: Sequence[str], notes: Notes) -> None:
    """Devices of which only the compute capability is known."""
    for line in lines:
        if found := _GPU_CAPABILITY.match(line):
            notes.list([Device("nvidia", "", capability(found[1]))], "nvidia")
        elif not _BNB_RUNTIME.match(line):
            _capability_in(line, notes)


def _capability_in(line: str, notes: Notes) -> None:
    found = _BNB_CAPABILITY.match(line) if "apability" in line or "capability" in line else None
    if found:
        notes.list([Device("nvidia", "", capability(found[1]))], "nvidia", by="bitsandbytes")


def _named_device(lines: Sequence[str], notes: Notes) -> None:
    """xformers.info: `gpu.name` and `gpu.compute_capability`."""
    pairs = dict(key_value(line) for line in lines if line.startswith("gpu."))
    name = pairs.get("gpu.name", "")
    if known(name):
        notes.list([Device("", name, capability(pairs.get("gpu.compute_capability", "")))], by="xformers.info")
