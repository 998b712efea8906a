"""The output of collect_env: PyTorch's in all its versions, vLLM's, and those of projects that copied them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from accel_env.judge.parse_base import DERIVED, RUNNING, Facts, Notes, dotted, key_value, known, mib
from accel_env.model import Device

BY = "collect_env"
ABSENT = "no"  # the value of `torch_cuda` for a build without CUDA

# Key -> the field of the environment that it fills.
_FIELDS = {
    "rocm used to build pytorch": "torch_hip",
    "xpu used to build pytorch": "torch_xpu",
    "cuda runtime version": "cuda_toolkit",
    "hip runtime version": "hip_runtime",
    "miopen runtime version": "miopen",
    "is cuda available": "cuda_available",
    "is xpu available": "xpu_available",
    "gcc version": "gcc",
    "clang version": "clang",
    "neuron sdk version": "neuron_sdk",
    "rocm version": "hip_runtime",
    "oneapi compiler version": "oneapi",
    "level zero driver version": "level_zero_driver",
    "level zero loader version": "level_zero_loader",
    "level zero version": "level_zero_driver",
    "* level_zero": "level_zero_driver",
    "* libze1": "level_zero_loader",
    "* intel_opencl": "intel_driver",
    "* intel-opencl-icd": "intel_driver",
    "dpcpp runtime version": "oneapi",
    "pytorch cxx11 abi": "cxx11abi",
}
_GPU_KEYS = ("gpu models and configuration", "intel gpu models", "intel gpu models onboard", "intel gpu models detected")
_NUMBERED = re.compile(r"\s*(?:GPU (\d{1,4}(?:,\d{1,4}){0,15}):|\*|(?=\[\d{1,3}\] )) ?(.*)$")
_GFX = re.compile(r"\((gfx[0-9a-f]{3,5})")
_BARE_ID = re.compile(r"Device ([0-9a-f]{4})$")
_LISTED = re.compile(r"\s*\[(pip3?|conda|uv)\] ?(\S.*)$")
_CUDNN = re.compile(r"\S*libcudnn\.so\.(\d[\d.]{0,15})$")
_PLATFORM = re.compile(r"(Linux|Windows|macOS|Darwin)-(\S{1,200})$")


def parse(lines: Sequence[str]) -> Facts:
    """Everything that the known keys say."""
    notes = Notes(BY)
    for number, line in enumerate(lines):
        if found := _LISTED.match(line):
            _listed(found[1], found[2], notes)
        elif found := _CUDNN.match(line.strip()):
            notes.say("cudnn", found[1])
        else:
            key, value = key_value(line)
            if key in _FIELDS:
                notes.say(_FIELDS[key], value, RUNNING)
            elif key in _GPU_KEYS:
                _gpus(key, value, lines[number + 1 : number + 65], notes)
            elif key in _READERS:
                _READERS[key](value, notes)
    return notes.facts()


def _torch(value: str, notes: Notes) -> None:
    notes.package("torch", value, RUNNING, "collect_env, the imported torch")


def _vllm(value: str, notes: Notes) -> None:
    notes.package("vllm", value.partition(" ")[0], RUNNING, "collect_env, the imported vllm")


def _torch_cuda(value: str, notes: Notes) -> None:
    """`N/A` stands for ROCm builds and a missing torch; what is printed for a missing `torch.version.cuda` means no CUDA."""
    absent = value.casefold() in ("none", "could not collect", "no cuda")
    notes.say("torch_cuda", ABSENT if absent else value, RUNNING)


def _ipex(value: str, notes: Notes) -> None:
    notes.package("intel-extension-for-pytorch", value, RUNNING, "collect_env, the imported ipex")


def _driver(value: str, notes: Notes) -> None:
    notes.say("driver:nvidia", dotted(value))


def _os(value: str, notes: Notes) -> None:
    """`Ubuntu 22.04.3 LTS (x86_64)`, `Mac OSX 10.15.5 (x86_64)`, `Microsoft Windows 11 Pro (10.0.22631 64-bit)`."""
    if not known(value):
        return
    notes.say("os_name", value.rpartition(" (")[0] or value, RUNNING)
    folded = value.casefold()
    system = "macos" if "mac" in folded else "windows" if "windows" in folded else "linux"
    notes.say("os", system, RUNNING)
    machine = re.search(r"\((x86_64|aarch64|arm64|AMD64|ppc64le)\)", value)
    if machine:
        notes.say("arch", machine[1], RUNNING)


def _libc(value: str, notes: Notes) -> None:
    family, _, version = value.partition("-")
    if family in ("glibc", "musl"):
        notes.say(family, dotted(version), RUNNING)


def _python(value: str, notes: Notes) -> None:
    found = re.match(r"\d+\.\d+(?:\.\d+)?\S{0,8}", value)
    if found:
        notes.say("python", found.group() + ("t" if "free-threading" in value else ""), RUNNING)


def platform_text(value: str, notes: Notes) -> None:
    """`Linux-5.15.0-91-generic-x86_64-with-glibc2.35`: kernel, CPU, libc. The libc is that of the file, often an old one."""
    found = _PLATFORM.match(value)
    if not found:
        return
    system = {"Linux": "linux", "Windows": "windows"}.get(found[1], "macos")
    notes.say("os", system, RUNNING)
    rest, _, libc = found[2].partition("-with-")
    machine = re.search(r"-(x86_64|aarch64|arm64|AMD64|ppc64le)\b", rest)
    if machine:
        notes.say("arch", machine[1], RUNNING)
    if system == "linux":
        notes.say("kernel", rest[: machine.start()] if machine else rest, RUNNING)
        if libc.startswith("glibc"):
            notes.say("glibc", dotted(libc[5:]), DERIVED, "the platform string of Python")


def _listed(tool: str, text: str, notes: Notes) -> None:
    """`[pip3] torch==2.1.0`, `[conda] pytorch 2.1.0 py3.10_cuda11.8_cudnn8.7.0_0 pytorch`."""
    words = text.split()
    by = f"collect_env [{tool}]"
    if tool == "conda" and len(words) >= 3 and words[1][:1].isdigit():
        notes.package(words[0], words[1], by=by, build=words[2], channel=words[3] if len(words) > 3 else "")
    elif "==" in words[0]:
        name, _, version = words[0].partition("==")
        notes.package(name, version, by=by)
    elif len(words) == 2 and words[1][:1].isdigit():
        notes.package(words[0], words[1], by=by)


def _gpus(key: str, value: str, following: Sequence[str], notes: Notes) -> None:
    """The devices on the line itself and on the numbered or starred lines that follow."""
    vendor = "intel" if key.startswith("intel") else ""
    found = [] if not known(value) else [device(_NUMBERED.sub(r"\2", value), vendor)]
    for line in following:
        numbered = _NUMBERED.match(line)
        if numbered:
            found += [device(numbered[2], vendor)] * len((numbered[1] or "0").split(","))
        elif not re.match(r"\s*MIG ", line) and (line.strip() or found):
            break
    notes.list((one for one in found if one.name or one.arch or one.pci_id), vendor)


def device(text: str, vendor: str = "") -> Device:
    """`NVIDIA A100 (UUID: ...)`, `AMD Instinct MI210 (gfx90a:xnack-)`, `Device 66a1`, `_XpuDeviceProperties(name='...'`."""
    text = re.sub(r"^\s*\[\d{1,4}\] ", "", text)
    quoted = re.match(r"_\w{1,40}\(name='([^']{1,120})'", text)
    if quoted:
        size = re.search(r"total_memory=(\d{1,9}MB)", text)
        ident = re.search(r"device_id=0x([0-9A-Fa-f]{4})\b|\[0x([0-9A-Fa-f]{4})\]", text)
        pci = (ident[1] or ident[2]).lower() if ident else ""
        return Device(vendor, quoted[1], "", "", mib(size[1]) if size else None, pci)
    gfx = _GFX.search(text)
    name = re.sub(r"\s*\((?:UUID: |gfx)[^)]{0,80}\)?", "", text).strip()
    bare = _BARE_ID.match(name)
    return Device("amd" if gfx or bare else vendor, name, gfx[1] if gfx else "", pci_id=bare[1] if bare else "")


_READERS = {
    "pytorch version": _torch,
    "cuda used to build pytorch": _torch_cuda,
    "vllm version": _vllm,
    "ipex version": _ipex,
    "nvidia driver version": _driver,
    "os": _os,
    "libc version": _libc,
    "python version": _python,
    "python platform": platform_text,
}
