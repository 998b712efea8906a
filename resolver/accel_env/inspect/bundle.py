"""HIP device code in clang offload bundles: the gfx targets, of plain and of compressed bundles.

Of a compressed bundle only the beginning is decompressed: its table of entries stands first.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections import Counter
from typing import IO

from accel_env.inspect.elf import missing

PLAIN, PACKED = b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB"
_TARGET = re.compile(r"(?:hip|hipv4)-amdgcn-.*?-(gfx[0-9a-f]+(?:-[0-9a-z]+)*)((?::[a-z]+[+-])*)$")
_MOST = 4096  # entries of a bundle, letters of a name
_TABLE = 1 << 20  # bytes that a table of entries may take
_CHUNK = 4 << 20
_ZLIB, _ZSTD = 0, 1
_HEADERS = {1: 20, 2: 24, 3: 32}


def read_section(stream: IO[bytes], start: int, size: int, found: Counter[str]) -> int:
    """Counts, per gfx target, the bundles of a section that hold code for it; gives the number of bundles. ValueError where one
    is cut off or broken."""
    place, end, count = start, start + size, 0
    while place < end:
        stream.seek(place)
        data = stream.read(min(_CHUNK, end - place))
        if not data:
            raise ValueError(f"offload bundles end at {place}, the section at {end}")
        step = _first(data)
        if step < 0:
            place += max(len(data) - len(PLAIN) + 1, 1) if place + len(data) < end else len(data)
            continue
        place += step
        targets, length = _read_one(stream, place, end)
        found.update(targets)
        count += 1
        place += max(length, len(PACKED))
    return count


def _first(data: bytes) -> int:
    """Where the next bundle begins; -1 for nowhere. A compressed one is told by its version, since its magic is short."""
    plain, packed = data.find(PLAIN), data.find(PACKED)
    while packed >= 0 and data[packed + 4 : packed + 6] not in (b"\1\0", b"\2\0", b"\3\0"):
        packed = data.find(PACKED, packed + 1)
    return min((place for place in (plain, packed) if place >= 0), default=-1)


def _read_one(stream: IO[bytes], place: int, end: int) -> tuple[set[str], int]:
    """(gfx targets, length in bytes) of the bundle at `place`; the length is what is sure of it."""
    stream.seek(place)
    head = stream.read(min(_TABLE, end - place))
    if head.startswith(PLAIN):
        ids, length = _entries(head, place)
        return targets_of(ids), length
    version, method = struct.unpack_from("<HH", head, 4) if len(head) >= 8 else (0, 0)
    size = _HEADERS.get(version, 0)
    if not size or len(head) < size:
        raise ValueError(f"compressed offload bundle at {place}: cut off, or of an unknown version")
    total = struct.unpack_from("<Q" if version == 3 else "<I", head, 8)[0] if version > 1 else size
    if total < size or place + total > end:
        raise ValueError(f"compressed offload bundle at {place}: its length makes no sense")
    ids, _ = _entries(_unpack(head[size:], method, place), place)
    return targets_of(ids), total


def _entries(head: bytes, place: int) -> tuple[list[str], int]:
    """(names of the entries, length of the bundle); the length counts no entries that lie behind `head`'s table."""
    try:
        count = struct.unpack_from("<Q", head, len(PLAIN))[0]
        if not head.startswith(PLAIN) or count > _MOST:
            raise ValueError(f"offload bundle at {place}: its table makes no sense")
        names, at, last = [], len(PLAIN) + 8, 0
        for _ in range(count):
            offset, size, length = struct.unpack_from("<QQQ", head, at)
            if length > _MOST or at + 24 + length > len(head):
                raise ValueError(f"offload bundle at {place}: an entry is cut off")
            names.append(head[at + 24 : at + 24 + length].decode("utf-8", "replace"))
            at += 24 + length
            last = max(last, offset + size)
    except struct.error:
        raise ValueError(f"offload bundle at {place}: cut off") from None
    return names, max(at, last)


def targets_of(ids: list[str]) -> set[str]:
    """The gfx targets among the names of entries (`hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-`), without feature flags."""
    return {match[1] for name in ids if (match := _TARGET.match(name))}


def _unpack(data: bytes, method: int, place: int) -> bytes:
    """The first bytes of a compressed bundle."""
    try:
        if method == _ZLIB:
            return zlib.decompressobj().decompress(data, _TABLE)
        if method == _ZSTD:
            return _unzstd(data)
    except zlib.error as problem:
        raise ValueError(f"compressed offload bundle at {place}: {problem}") from None
    raise ValueError(f"compressed offload bundle at {place}: an unknown kind of compression")


def _unzstd(data: bytes) -> bytes:
    try:
        import zstandard
    except ImportError:
        raise missing("zstandard") from None
    try:
        with zstandard.ZstdDecompressor().stream_reader(data) as stream:
            return bytes(stream.read(_TABLE))
    except zstandard.ZstdError as problem:
        raise ValueError(f"compressed offload bundle: {problem}") from None
