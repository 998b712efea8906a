"""The dynamic part of 64-bit ELF files: what a library needs, offers and lacks. Nothing is executed."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from typing import NamedTuple

_DYNAMIC, _DYNSYM, _VERDEF, _VERNEED = 6, 11, 0x6FFFFFFD, 0x6FFFFFFE  # types of sections
_NEEDED, _SONAME, _RPATH, _RUNPATH = 1, 14, 15, 29  # tags of the dynamic section
_GLOBAL, _WEAK = 1, 2


class Section(NamedTuple):
    """A section: where it lies and the section of its strings."""

    kind: int
    offset: int
    size: int
    link: int
    entries: int


class Library(NamedTuple):
    """What a shared library says of itself. `versions`: (library, version) that its symbols need."""

    path: str
    soname: str
    needed: tuple[str, ...]
    rpath: tuple[str, ...]
    runpath: tuple[str, ...]
    module: bool
    versions: tuple[tuple[str, str], ...]


class Elf:
    """An open ELF file. ValueError for anything that is no 64-bit little-endian ELF file with sections."""

    def __init__(self, path: str) -> None:
        with open(path, "rb") as stream:
            try:
                self.data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
            except ValueError:
                raise ValueError("empty") from None
        try:
            self.sections = self._sections()
        except (struct.error, IndexError):
            raise ValueError("cut off") from None

    def _sections(self) -> list[Section]:
        if self.data[:6] != b"\x7fELF\x02\x01":
            raise ValueError("no 64-bit little-endian ELF file")
        start = struct.unpack_from("<Q", self.data, 40)[0]
        size, count = struct.unpack_from("<HH", self.data, 58)
        found = []
        for number in range(count):
            _, kind, _, _, offset, length, link, info, _, _ = struct.unpack_from("<IIQQQQIIQQ", self.data, start + number * size)
            found.append(Section(kind, offset, length, link, info))
        return found

    def text(self, section: Section, place: int) -> str:
        """The string at `place` of the string table that a section uses."""
        start = self.sections[section.link].offset + place
        return self.data[start : self.data.find(b"\0", start)].decode("utf-8", "replace")

    def _of(self, kind: int) -> Section | None:
        return next((section for section in self.sections if section.kind == kind), None)

    def dynamic(self) -> dict[int, list[str]]:
        """The texts of the dynamic section by tag."""
        section = self._of(_DYNAMIC)
        found: dict[int, list[str]] = {}
        if section is not None:
            content = self.data[section.offset : section.offset + section.size]
            for tag, value in struct.iter_unpack("<QQ", content[: len(content) // 16 * 16]):
                if tag in (_NEEDED, _SONAME, _RPATH, _RUNPATH):
                    found.setdefault(tag, []).append(self.text(section, value))
        return found

    def symbols(self) -> Iterator[tuple[str, bool, bool]]:
        """(name, defined here, weak) of every dynamic symbol that others can see."""
        section = self._of(_DYNSYM)
        if section is None:
            return
        names = self.sections[section.link]
        strings = self.data[names.offset : names.offset + names.size]
        content = self.data[section.offset : section.offset + section.size]
        for name, info, _, index, _, _ in struct.iter_unpack("<IBBHQQ", content[: len(content) // 24 * 24]):
            if name and info >> 4 in (_GLOBAL, _WEAK, 10):  # 10: unique, which C++ uses
                yield strings[name : strings.find(b"\0", name)].decode("utf-8", "replace"), index != 0, info >> 4 == _WEAK

    def defines(self, start: str) -> bool:
        """Whether a symbol that begins with `start` is defined here."""
        section = self._of(_DYNSYM)
        names = self.sections[section.link] if section else None
        if names is None or self.data.find(b"\0" + start.encode(), names.offset, names.offset + names.size) < 0:
            return False
        return any(defined and name.startswith(start) for name, defined, _ in self.symbols())

    def offered(self) -> set[str]:
        """The versions that the library defines."""
        section, found = self._of(_VERDEF), set()
        if section is not None:
            place = section.offset
            for _ in range(section.entries):
                entry, following = struct.unpack_from("<II", self.data, place + 12)
                found.add(self.text(section, struct.unpack_from("<I", self.data, place + entry)[0]))
                place += following
        return found

    def demanded(self) -> Iterator[tuple[str, str]]:
        """(library, version) that the symbols of this one need."""
        section = self._of(_VERNEED)
        if section is None:
            return
        place = section.offset
        for _ in range(section.entries):
            _, count, file, entry, following = struct.unpack_from("<HHIII", self.data, place)
            inner = place + entry
            for _ in range(count):
                name, step = struct.unpack_from("<II", self.data, inner + 8)
                yield self.text(section, file), self.text(section, name)
                inner += step
            place += following


def read_library(path: str) -> Library | None:
    """What a file says of itself; None where it is no ELF library."""
    try:
        elf = Elf(path)
        tags = elf.dynamic()
        module = path.endswith(".so") and elf.defines("PyInit_")
        split = [tuple(part for text in tags.get(tag, []) for part in text.split(":") if part) for tag in (_RPATH, _RUNPATH)]
        soname = tags.get(_SONAME, [""])[0]
        return Library(path, soname, tuple(tags.get(_NEEDED, [])), split[0], split[1], module, tuple(elf.demanded()))
    except (OSError, ValueError, struct.error, IndexError):
        return None
