"""ELF files read by pyelftools, with bounds on every count: a broken file ends in ValueError, never in a long loop."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import IO, TYPE_CHECKING, Any

from accel_env.errors import UsageError

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

MAGIC = b"\x7fELF"
_SECTIONS, _TAGS, _VERSIONS = 4096, 65536, 65536  # more of them is no library
_STRINGS, _SYMBOLS = 512 << 20, 1 << 30  # bytes
_GLOBAL, _WEAK, _UNIQUE = 1, 2, 10
_NOBITS = "SHT_NOBITS"


@dataclass(frozen=True, slots=True)
class Section:
    """A section with bytes in the file."""

    name: str
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Elf:
    """The dynamic part of a file. `versions`: (library, version) that its symbols need; `machine` as pyelftools names it."""

    machine: str
    soname: str
    needed: tuple[str, ...]
    versions: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    symbols: tuple[Section, Section] | None


def missing(package: str) -> UsageError:
    """The error where a package of the extra is not installed."""
    hint = "install accel-env with its extra `inspect`; in a checkout: pip install '.[inspect]'"
    return UsageError("inspect-missing", f"reading wheels needs {package}", hint=hint)


def check_tools() -> None:
    """UsageError where the package that reads libraries is missing: said before anything is downloaded."""
    from importlib.util import find_spec

    if find_spec("elftools") is None:
        raise missing("pyelftools")


def read_elf(stream: IO[bytes], size: int) -> Elf:
    """What an ELF file of `size` bytes says of itself. ValueError where it is none or is broken."""
    try:
        from elftools.common.exceptions import ELFError
        from elftools.construct.core import ConstructError
        from elftools.elf.elffile import ELFFile
    except ImportError:
        raise missing("pyelftools") from None
    try:
        return _read(ELFFile(stream), size)
    except (ELFError, ConstructError, struct.error) as problem:
        raise ValueError(f"broken ELF file: {problem}") from None
    except (ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, OSError, TypeError) as problem:
        # What pyelftools makes of offsets that lead nowhere.
        raise ValueError(f"broken ELF file ({type(problem).__name__})") from None


def _read(file: ELFFile, size: int) -> Elf:
    if not 0 < file["e_shnum"] <= _SECTIONS:
        raise ValueError("broken ELF file: no sections, or too many")
    if file["e_shoff"] + file["e_shnum"] * file["e_shentsize"] > size:
        raise ValueError("broken ELF file: its sections lie behind its end")
    found = []
    tables: dict[str, Any] = {}
    for section in file.iter_sections():
        kind, offset, length = str(section["sh_type"]), int(section["sh_offset"]), int(section["sh_size"])
        if kind == _NOBITS or not length:
            continue
        if offset + length > size:
            raise ValueError(f"broken ELF file: the section {section.name[:40]} is cut off")
        found.append(Section(section.name, offset, length))
        tables.setdefault(kind, section)
    needed, soname = _dynamic(tables.get("SHT_DYNAMIC"))
    symbols = _symbols(file, tables.get("SHT_DYNSYM")) if file.elfclass == 64 and file.little_endian else None
    return Elf(file["e_machine"], soname, needed, tuple(_versions(tables.get("SHT_GNU_verneed"))), tuple(found), symbols)


def _dynamic(section: Any) -> tuple[tuple[str, ...], str]:
    """(needed libraries, own name)."""
    needed, soname = [], ""
    for tag in islice(section.iter_tags(), _TAGS) if section is not None else ():
        if tag.entry.d_tag == "DT_NEEDED":
            needed.append(str(tag.needed))
        elif tag.entry.d_tag == "DT_SONAME":
            soname = str(tag.soname)
    return tuple(needed), soname


def _versions(section: Any) -> Iterator[tuple[str, str]]:
    if section is None:
        return
    for need, versions in islice(section.iter_versions(), _VERSIONS):
        for version in islice(versions, _VERSIONS):
            yield str(need.name), str(version.name)


def _symbols(file: ELFFile, section: Any) -> tuple[Section, Section] | None:
    """The tables of dynamic symbols and of their names."""
    if section is None:
        return None
    strings = file.get_section(section["sh_link"])
    return (
        Section(section.name, section["sh_offset"], section["sh_size"]),
        Section(strings.name, strings["sh_offset"], strings["sh_size"]),
    )


def dynamic_symbols(stream: IO[bytes], elf: Elf) -> Iterator[tuple[bytes, bool, bool]]:
    """(name, defined here, weak) of every dynamic symbol that others can see; unpacked in one go, since torch has 100,000."""
    if elf.symbols is None:
        return
    table, names = elf.symbols
    if names.size > _STRINGS or table.size > _SYMBOLS:
        raise ValueError("broken ELF file: tables of symbols that are too large")
    stream.seek(names.offset)
    strings = stream.read(names.size)
    stream.seek(table.offset)
    content = stream.read(table.size)
    for name, info, _, index, _, _ in struct.iter_unpack("<IBBHQQ", content[: len(content) // 24 * 24]):
        if name and info >> 4 in (_GLOBAL, _WEAK, _UNIQUE):
            yield strings[name : strings.find(b"\0", name)], index != 0, info >> 4 == _WEAK
