"""CUDA device code in fat binaries: which architectures have machine code and which PTX. Nothing is decompressed.

A fat binary is a header (magic, version, length) and entries; each entry's own header tells its kind, architecture and flags.
Bare cubins are ELF files of NVIDIA's machine. Sections hold many fat binaries one after the other.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO

MAGIC = b"\x50\xed\x55\xba\x01\x00\x10\x00"  # with version 1 and the header's length
CUBIN = b"\x7fELF\x02\x01\x01"
_HEADER, _ENTRY = 16, 64
_PTX, _ELF = 1, 2
_MACHINE = 190
_OWN, _FAMILY = 0x100000, 0x200000  # flags: this very architecture alone (`a`), its family (`f`)
_CHUNK = 1 << 20


@dataclass(slots=True)
class DeviceCode:
    """How many fat binaries (or bare cubins) hold machine code (`code`) and PTX (`ptx`) for each architecture."""

    containers: int = 0
    code: Counter[str] = field(default_factory=Counter)
    ptx: Counter[str] = field(default_factory=Counter)

    def add(self, code: set[str], ptx: set[str]) -> None:
        """Counts one fat binary."""
        if code or ptx:
            self.containers += 1
            self.code.update(code)
            self.ptx.update(ptx)


def read_section(stream: IO[bytes], start: int, size: int, found: DeviceCode) -> None:
    """Counts every fat binary of a section that holds nothing else but padding. ValueError where one is cut off or broken."""
    place, end = start, start + size
    while place < end:
        stream.seek(place)
        head = stream.read(min(_CHUNK, end - place))
        if not head:
            raise ValueError(f"fat binaries end at {place}, the section at {end}")
        if head.startswith(MAGIC):
            place = _read_one(stream, place, end, head, found)
            continue
        step = head.find(MAGIC)
        if step < 0 and head[:4] == MAGIC[:4]:
            raise ValueError(f"fat binary at {place}: an unknown version of the format")
        place += step if step > 0 else max(len(head) - len(MAGIC) + 1, len(MAGIC))


def find_loose(stream: IO[bytes], start: int, size: int, found: DeviceCode) -> None:
    """Counts fat binaries and cubins that lie among other data; what only looks like one is passed over."""
    for place in _places(stream, start, size):
        stream.seek(place)
        head = stream.read(_ENTRY)
        try:
            if head.startswith(MAGIC):
                _read_one(stream, place, start + size, head, found)
            elif arch := cubin_arch(head):
                found.add({arch}, set())
        except ValueError:
            continue


def _places(stream: IO[bytes], start: int, size: int) -> Iterator[int]:
    place, end, keep = start, start + size, len(MAGIC) - 1
    while place < end:
        stream.seek(place)
        data = stream.read(min(_CHUNK * 4, end - place))
        if not data:
            return
        for needle in (MAGIC, CUBIN):
            at = data.find(needle)
            while at >= 0:
                yield place + at
                at = data.find(needle, at + 1)
        place += max(len(data) - keep, 1) if place + len(data) < end else len(data)


def cubin_arch(head: bytes) -> str:
    """The architecture of a bare cubin by its first 64 bytes; empty where it is none."""
    if len(head) < _ENTRY or not head.startswith(CUBIN) or struct.unpack_from("<H", head, 18)[0] != _MACHINE:
        return ""
    flags = struct.unpack_from("<I", head, 48)[0]
    number = flags >> 8 & 0xFF if head[8] >= 8 else flags & 0xFF
    return f"sm_{number}" if 10 <= number <= 250 else ""


def _read_one(stream: IO[bytes], place: int, end: int, head: bytes, found: DeviceCode) -> int:
    """Counts the fat binary at `place`; gives where it ends."""
    if len(head) < _HEADER:
        raise ValueError(f"fat binary at {place}: cut off")
    length: int = struct.unpack_from("<Q", head, 8)[0]
    inner, last = place + _HEADER, place + _HEADER + length
    if last > end:
        raise ValueError(f"fat binary at {place}: it ends at {last}, behind its section")
    code: set[str] = set()
    ptx: set[str] = set()
    while inner < last:
        offset = inner - place
        if offset + _ENTRY <= len(head):
            entry = head[offset : offset + _ENTRY]
        else:
            stream.seek(inner)
            entry = stream.read(_ENTRY)
        if len(entry) < _ENTRY:
            raise ValueError(f"fat binary at {place}: an entry is cut off")
        inner += _read_entry(entry, inner, code, ptx)
    if inner != last:
        raise ValueError(f"fat binary at {place}: its last entry is longer than it is")
    found.add(code, ptx)
    return last


def _read_entry(entry: bytes, place: int, code: set[str], ptx: set[str]) -> int:
    """Notes the architecture of one entry; gives the entry's length in bytes."""
    kind, _, header, size, _, _, _, _, arch, _, _, flags = struct.unpack_from("<HHIQIIHHIIIQ", entry)
    if not _ENTRY <= header <= 4096 or size > 1 << 40:
        raise ValueError(f"fat binary entry at {place}: lengths make no sense")
    if kind in (_PTX, _ELF) and not 10 <= arch <= 250:
        raise ValueError(f"fat binary entry at {place}: {arch} is no architecture")
    suffix = "a" if flags & _OWN else "f" if flags & _FAMILY else ""
    if kind == _ELF:
        code.add(f"sm_{arch}{suffix}")
    elif kind == _PTX:
        ptx.add(f"compute_{arch}{suffix}")
    return int(header + size)
