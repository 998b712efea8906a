"""The libraries that an ELF file asks for, read from its dynamic section; the size of the file does not matter."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO

_LOAD, _DYNAMIC = 1, 2  # p_type of program headers
_END, _NEEDED, _STRINGS, _STRINGS_SIZE = 0, 1, 5, 10  # tags of the dynamic section
_LIMIT = 1 << 20  # bytes of the dynamic section, and of a name


def needed(path: str) -> tuple[str, ...]:
    """The DT_NEEDED names of a 64-bit little-endian ELF file; empty for any other file, a broken or an unreadable one."""
    try:
        with open(path, "rb") as stream:
            return tuple(_needed(stream))
    except (OSError, ValueError, struct.error):
        return ()


def _needed(stream: BinaryIO) -> Iterator[str]:
    head = stream.read(64)
    if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":
        return
    offset, size, count = struct.unpack_from("<Q", head, 32)[0], *struct.unpack_from("<HH", head, 54)
    segments = []
    for number in range(count):
        stream.seek(offset + number * size)
        kind, _, start, address, _, length, _, _ = struct.unpack("<IIQQQQQQ", stream.read(56))
        segments.append((kind, start, address, length))
    dynamic = next((segment for segment in segments if segment[0] == _DYNAMIC), None)
    if dynamic is None:
        return
    stream.seek(dynamic[1])
    tags = list(_tags(stream.read(min(dynamic[3], _LIMIT))))
    values = dict(tags)
    base = _file_offset(values.get(_STRINGS, 0), segments)
    for tag, value in tags:
        if tag == _NEEDED and base and value < values.get(_STRINGS_SIZE, 0):
            stream.seek(base + value)
            name, end, _ = stream.read(256).partition(b"\0")
            if name and end:
                yield name.decode("utf-8", "replace")


def _tags(data: bytes) -> Iterator[tuple[int, int]]:
    for tag, value in struct.iter_unpack("<QQ", data[: len(data) // 16 * 16]):
        if tag == _END:
            return
        yield tag, value


def _file_offset(address: int, segments: list[tuple[int, int, int, int]]) -> int:
    """Where in the file an address of the loaded image lies; 0 for nowhere."""
    for kind, start, base, length in segments:
        if kind == _LOAD and base <= address < base + length:
            return start + address - base
    return 0
