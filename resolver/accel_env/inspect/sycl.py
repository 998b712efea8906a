"""SYCL device images in a library: SPIR-V for any device, and code that was compiled ahead for named ones.

DPC++ keeps each image in a section named after the offload bundle's target; images for Intel GPUs that were compiled ahead are
`ar` archives of ocloc, and the compiler's options (`-device bmg,pvc`) stand beside them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

_SECTION = re.compile(r"(?:__CLANG_OFFLOAD_BUNDLE__|\.?tgtimg.*)sycl-(spir64\w*)")
_SPIRV = (b"\x03\x02\x23\x07", b"\x07\x23\x02\x03")
_WORD = re.compile(rb"\0(spir64(?:_gen|_x86_64)?)\0")
_DEVICES = re.compile(rb"-device[ =]\"?([\w.,:-]{2,200})")
_CHUNK, _KEEP = 4 << 20, 256


@dataclass(slots=True)
class Images:
    """Targets of images (`spir64`, `spir64_gen`) and the devices that options name; whether SPIR-V was seen."""

    targets: set[str]
    devices: set[str]
    spirv: bool = False


def is_image_section(name: str) -> str:
    """The target that a section's name tells; empty for other sections."""
    found = _SECTION.match(name)
    return found[1] if found else ""


def scan(stream: IO[bytes], start: int, size: int, found: Images) -> None:
    """Notes the targets and devices that the data of a section names."""
    for data in _windows(stream, start, size):
        found.targets.update(word.decode() for word in _WORD.findall(data))
        for names in _DEVICES.findall(data):
            found.devices.update(part for part in names.decode("ascii", "replace").split(",") if part)
        found.spirv = found.spirv or any(magic in data for magic in _SPIRV)


def _windows(stream: IO[bytes], start: int, size: int) -> Iterator[bytes]:
    place, end = start, start + size
    while place < end:
        stream.seek(place)
        data = stream.read(min(_CHUNK, end - place))
        if not data:
            return
        yield data
        place += len(data) if place + len(data) >= end else max(len(data) - _KEEP, 1)
