"""What the native code of installed packages is linked to, and which of those libraries are nowhere to be found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accel_env.system.types import System

_LIBRARY = re.compile(r"lib(?:cudart|cublas|cudnn|nvrtc|amdhip64|sycl|ze_loader|c10|torch)[\w-]{0,24}\.so[\w.]{0,12}$")
_VARIANT = re.compile(r"/lib\w{1,40}?_((?:cuda|rocm|hip|xpu|cpu)\w{0,12})\.")
# Libraries that some package or toolkit must bring under exactly this name; others come in torch's own folder.
_BROUGHT = re.compile(r"lib(?:cudart|cublas|cublasLt|nvrtc|sycl)\.so\.\d{1,2}$")
# fmt: off
_FOLDERS = (
    "/usr/local/cuda*/lib64", "/usr/local/cuda*/targets/*/lib", "/usr/lib", "/usr/lib64", "/usr/lib/*-linux-gnu", "/lib64",
    "/opt/intel/oneapi/compiler/*/lib", "/opt/intel/oneapi/redist/lib",
)
# fmt: on
_FILES = 12  # native libraries looked at per package


@dataclass(frozen=True, slots=True)
class Native:
    """`extra`: `needs:<package>` (the runtime libraries that its code is linked to), `libraries:<package>` (variants by name).
    `missing`: what the loader would print of libraries that are in none of its folders."""

    extra: dict[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()


def native(dists: Iterable[tuple[str, str, Sequence[str]]], path: Sequence[str], prefix: str, system: System) -> Native:
    """The native code of distributions, given as (name, site-packages, native files); `path` are the folders of imports."""
    from accel_env.system.elf import needed

    extra: dict[str, str] = {}
    missing: list[str] = []
    for name, site, files in dists:
        variants = [found[1] for file in files if (found := _VARIANT.search(file))]
        if name == "torch" or variants:
            extra.update({f"libraries:{name}": ", ".join(sorted(dict.fromkeys(variants)))} if variants else {})
            continue
        asked: dict[str, str] = {}
        for file in _chosen(files):
            for library in needed(f"{site}/{file}"):
                asked.setdefault(library, file)
        linked = sorted(library for library in asked if _LIBRARY.match(library))
        if linked:
            extra[f"needs:{name}"] = ", ".join(linked)
        own = {file.rpartition("/")[2] for file in files}
        missing += [
            f"{asked[library]}: {library} => not found"
            for library in linked
            if _BROUGHT.match(library) and library not in own and not _there(library, path, prefix, system)
        ]
    return Native(extra, tuple(missing))


def _chosen(files: Sequence[str]) -> Sequence[str]:
    """The files that are modules by themselves or speak of a device; all where none does."""
    told = [file for file in files if "/" not in file or re.search(r"_C\b|cuda|hip|xpu|ops", file)]
    return (told or files)[:_FILES]


def _there(library: str, path: Sequence[str], prefix: str, system: System) -> bool:
    """Whether a library is in a folder of packages, of the environment, of the loader's variable or of the system."""
    places = [f"{site}/{part}" for site in path for part in ("torch/lib", "nvidia/*/lib")]
    places += [f"{prefix}/lib", *(folder for folder in (system.env("LD_LIBRARY_PATH") or "").split(":") if folder)]
    return any(system.glob(f"{place}/{library}") for place in (*places, *_FOLDERS))
