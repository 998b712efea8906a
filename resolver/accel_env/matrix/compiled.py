"""The compiled matrix: named sections that load in milliseconds, kept in the user's cache beside the digest of the YAML.

A warm start compares sizes and modification times of the matrix's files and reads the sections it is asked for, no YAML.
The cache is an aid: where it cannot be written, is torn, or belongs to somebody else, the matrix is compiled in memory and
nothing is said. Sections are `marshal` data behind a checksum, read only out of folders and files that are ours alone.
"""
from __future__ import annotations

import marshal
import os
import sys
import zlib
from collections.abc import Callable, Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Stamp = tuple[str, int, int]
_MAGIC = b"accel-env matrix 6\n"
_HEADER = len(_MAGIC) + 8
# Compiled matrices that stay in the cache: branches and overlays take turns.
_KEEP = 8


class Torn(Exception):
    """A cache file is incomplete, damaged or gone."""


def pack(sections: Mapping[str, Any]) -> bytes:
    """One file: magic, length and checksum of the table, the table, the sections."""
    table: dict[str, tuple[int, int, int]] = {}
    bodies: list[bytes] = []
    place = 0
    for name, value in sections.items():
        body = marshal.dumps(value)
        table[name] = (place, len(body), zlib.crc32(body))
        bodies.append(body)
        place += len(body)
    head = marshal.dumps(table)
    return b"".join((_MAGIC, len(head).to_bytes(4, "little"), zlib.crc32(head).to_bytes(4, "little"), head, *bodies))


class Sections:
    """The sections of one compiled matrix, out of a file or out of memory."""

    def __init__(self, path: str = "", blob: bytes = b"") -> None:
        self._path, self._blob = path, blob
        header = self._bytes(0, _HEADER)
        if not header.startswith(_MAGIC):
            raise Torn(path)
        size = int.from_bytes(header[len(_MAGIC):len(_MAGIC) + 4], "little")
        head = self._bytes(_HEADER, size)
        if zlib.crc32(head) != int.from_bytes(header[len(_MAGIC) + 4:], "little"):
            raise Torn(path)
        self._table: dict[str, tuple[int, int, int]] = marshal.loads(head)
        self._start = _HEADER + size

    def names(self) -> tuple[str, ...]:
        """The names of all sections."""
        return tuple(self._table)

    def get(self, name: str) -> Any:
        """The value of a section, None where there is none; `Torn` where the file is damaged."""
        if name not in self._table:
            return None
        place, size, checksum = self._table[name]
        body = self._bytes(self._start + place, size)
        if zlib.crc32(body) != checksum:
            raise Torn(self._path)
        return marshal.loads(body)

    def _bytes(self, place: int, size: int) -> bytes:
        if self._blob:
            found = self._blob[place:place + size]
        else:
            try:
                with open(self._path, "rb", buffering=0) as stream:
                    stream.seek(place)
                    found = stream.read(size)
            except OSError:
                raise Torn(self._path) from None
        if len(found) != size:
            raise Torn(self._path)
        return found


def cache_folder() -> str:
    """Our cache folder, made when missing; empty where there is no safe place."""
    place = os.environ.get("ACCEL_ENV_CACHE", "")
    if not place:
        base = os.environ.get("XDG_CACHE_HOME", "")
        if not os.path.isabs(base):
            base = os.path.join(os.path.expanduser("~"), ".cache")
        place = os.path.join(base, "accel-env")
    if not os.path.isabs(place):
        return ""
    try:
        os.makedirs(place, mode=0o700, exist_ok=True)
    except OSError:
        return ""
    return place if _is_ours(place) else ""


def _is_ours(path: str) -> bool:
    """Whether a file or folder belongs to this user and nobody else may write it (where the system knows owners)."""
    try:
        status = os.stat(path)
    except OSError:
        return False
    owner = getattr(os, "geteuid", None)
    return owner is None or (status.st_uid == owner() and not status.st_mode & 0o022)


def code_stamp() -> tuple[Stamp, ...]:
    """The modules that compile and decode: another version of them makes another file."""
    here = os.path.dirname(os.path.abspath(__file__))
    found: list[Stamp] = []
    for folder in (here, os.path.dirname(here)):
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name.endswith(".py") and (folder == here or entry.name == "model.py"):
                        status = entry.stat()
                        found.append((entry.name, status.st_size, status.st_mtime_ns))
        except OSError:
            continue
    return tuple(sorted(found))


def open_sections(stamp: tuple[Any, ...], make: Callable[[], tuple[str, dict[str, Any]]]) -> Sections:
    """The compiled matrix for files with this stamp. `make` compiles: (digest, sections)."""
    folder = cache_folder()
    key = (stamp, code_stamp(), sys.implementation.cache_tag, marshal.version)
    note = os.path.join(folder, "stamps", _short(stamp[0])) if folder else ""
    if note:
        found = _recall(folder, note, key)
        if found:
            return found
    digest, sections = make()
    blob = pack(sections)
    if note:
        target = os.path.join(folder, digest.rpartition(":")[2], f"{_short(key[1:])}.bin")
        _remember(folder, note, key, target, blob)
    return Sections(blob=blob)


def _short(value: object) -> str:
    return f"{zlib.crc32(repr(value).encode(errors='surrogatepass')):08x}"


def _recall(folder: str, note: str, key: object) -> Sections | None:
    try:
        if not (_is_ours(os.path.dirname(note)) and _is_ours(note)):
            return None
        found = Sections(note).get("note")
        if found[0] != key:
            return None
        path = os.path.join(folder, found[1])
        return Sections(path) if _is_ours(os.path.dirname(path)) and _is_ours(path) else None
    except Torn:
        return None


def _remember(folder: str, note: str, key: object, target: str, blob: bytes) -> None:
    try:
        _write(target, blob)
        _write(note, pack({"note": (key, os.path.relpath(target, folder))}))
        _forget(folder, keep=os.path.dirname(target))
    except OSError:
        return


def _write(path: str, content: bytes) -> None:
    """Writes aside and renames, so that readers see the old file or the whole new one."""
    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    aside = os.path.join(folder, f".{os.path.basename(path)}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(handle, "wb") as stream:
            stream.write(content)
        os.replace(aside, path)
    except BaseException:
        if os.path.exists(aside):
            os.unlink(aside)
        raise


def _forget(folder: str, keep: str) -> None:
    """Removes the oldest compiled matrices beyond the last few."""
    with os.scandir(folder) as entries:
        old = [(entry.stat().st_mtime_ns, entry.path) for entry in entries if entry.is_dir() and len(entry.name) == 64]
    for _, path in sorted(old, reverse=True)[_KEEP:]:
        if path == keep:
            continue
        for name in os.listdir(path):
            os.unlink(os.path.join(path, name))
        os.rmdir(path)
