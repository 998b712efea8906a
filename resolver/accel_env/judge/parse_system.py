"""What the operating system says: uname, ldd, os-release, lscpu, symbol versions, variables of the process."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from accel_env.judge.parse_base import DERIVED, RUNNING, TOOL, Facts, Notes, key_value

if TYPE_CHECKING:
    from accel_env.system.types import System

_UNAME = re.compile(r"Linux \S{1,100} (\d\S{1,80}) .{0,200}\b(x86_64|aarch64)\b")
_SIMPLE = (
    (_UNAME, "kernel", RUNNING, "uname"),
    (re.compile(r"ldd \([^)]{1,80}\) (\d{1,3}\.\d{1,3})$"), "glibc", RUNNING, "ldd"),
    (re.compile(r"(?:GNU_LIBC_VERSION:?\s{0,20})?glibc (\d{1,3}\.\d{1,3})$"), "glibc", RUNNING, "getconf"),
    (re.compile(r"Python (3\.\d{1,2}(?:\.\d{1,3})?\S{0,8})$"), "python", TOOL, "python --version"),
    (re.compile(r"PRETTY_NAME=\"?([^\"]{1,100})\"?$"), "os_name", TOOL, "os-release"),
)
_GLIBCXX = re.compile(r"\s{0,8}GLIBCXX_3\.4\.(\d{1,3})$")
_NAME = re.compile(r"NAME=\"([^\"]{1,60})\"$")
_NUMBER = re.compile(r"VERSION=\"([^\"]{1,60})\"$")
_VARIABLE = re.compile(r"(?:export |declare -x |set )?([A-Z_][A-Z0-9_]{1,80})=(.{0,2000})$")
_SECRET = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|_KEY\b|API_?KEY")
_CREDENTIALS = re.compile(r"(://)[^/@\s]{1,200}@")

# Variables that change which library, device or build is used. Others are nobody's business here.
# fmt: off
_WANTED = (
    "CUDA", "NVIDIA", "NCCL", "HIP", "HSA_", "ROC", "GPU_", "PYTORCH", "TORCH", "TRITON", "ZE_", "SYCL", "ONEAPI", "CCL_",
    "UR_", "OCL_", "IGC_", "NEO", "HABANA", "PT_HPU", "GC_KERNEL", "ASCEND", "VLLM", "SGL", "FLASH_ATT", "BNB_", "XFORMERS",
    "PIP_INDEX", "PIP_EXTRA", "PIP_FIND", "PIP_CONSTRAINT", "PIP_PRE", "UV_", "PJRT", "TPU_", "NEURON", "XLA", "MIOPEN",
    "AMD", "WSL_", "CONDA_PREFIX", "VIRTUAL_ENV", "MAX_JOBS", "LD_LIBRARY_PATH", "LD_PRELOAD", "LIBRARY_PATH", "PYTHONPATH",
    "PYTHONHOME", "OMP_", "MKL_", "KMP_",
)
# fmt: on
_WANTED_EXACTLY = frozenset({"CC", "CXX"})
# fmt: off
_ASKED = (
    "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_VERSION",
    "NVIDIA_VISIBLE_DEVICES", "NVIDIA_REQUIRE_CUDA", "NVIDIA_DISABLE_REQUIRE", "NVIDIA_PYTORCH_VERSION", "TORCH_CUDA_ARCH_LIST",
    "PYTORCH_NVML_BASED_CUDA_CHECK", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HSA_OVERRIDE_GFX_VERSION", "ROCM_PATH",
    "ROCM_HOME", "PYTORCH_ROCM_ARCH", "FLASH_ATTENTION_TRITON_AMD_ENABLE", "ONEAPI_DEVICE_SELECTOR", "ZE_AFFINITY_MASK",
    "ONEAPI_ROOT", "SYCL_DEVICE_FILTER", "HABANA_VISIBLE_DEVICES", "ASCEND_HOME_PATH", "BNB_CUDA_VERSION", "BNB_ROCM_VERSION",
    "TRITON_PTXAS_PATH", "VLLM_TARGET_DEVICE", "CC", "CXX", "CONDA_PREFIX", "VIRTUAL_ENV", "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_TORCH_BACKEND",
)
# fmt: on


def parse(lines: Sequence[str]) -> Facts:
    """The system, its C library and the variables that matter to accelerators."""
    notes = Notes("the system")
    levels: list[int] = []
    for number, line in enumerate(lines):
        below = lines[number + 1] if number + 1 < len(lines) else ""
        for pattern, field, rank, by in _SIMPLE:
            if found := pattern.match(line):
                notes.say(field, found[1], rank, by)
        if found := _UNAME.match(line):
            notes.say("arch", found[2], RUNNING, "uname")
            notes.say("os", "linux", RUNNING, "uname")
        elif line.startswith("musl libc (") and below.startswith("Version "):
            notes.say("musl", below.removeprefix("Version "), RUNNING, "ldd")
        elif found := _GLIBCXX.match(line):
            levels.append(int(found[1]))
        elif (found := _NAME.match(line)) and (version := _NUMBER.match(below)):
            notes.say("os_name", f"{found[1]} {version[1]}", DERIVED, "os-release")
        elif key_value(line)[0] == "architecture":
            notes.say("arch", key_value(line)[1], by="lscpu")
    if levels:
        notes.say("libstdcxx", f"3.4.{max(levels)}", by="the symbols of libstdc++")
    return Facts(notes.facts().said, variables=tuple(_variables(lines)))


def _variables(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The variables that matter, secrets left out."""
    for line in lines:
        found = _VARIABLE.match(line)
        if found and not found[2].startswith("=") and wanted_variable(found[1]):
            yield found[1], _CREDENTIALS.sub(r"\1", found[2].strip("\"'"))


def variables_of(system: System) -> dict[str, str]:
    """The variables of this process that matter, as far as they are set."""
    values = {name: system.env(name) for name in _ASKED}
    return {name: _CREDENTIALS.sub(r"\1", value) for name, value in values.items() if value}


def wanted_variable(name: str) -> bool:
    """Whether a variable can change which library, device or build is used; those with secrets are never wanted."""
    return (name in _WANTED_EXACTLY or name.startswith(_WANTED)) and not _SECRET.search(name)
