"""One wheel -> what it says of itself and what its libraries hold. Members are read one at a time, large ones through a file."""

from __future__ import annotations

import re
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import IO, cast

from accel_env.errors import ClosureError
from accel_env.inspect import bundle, fatbin, sycl
from accel_env.inspect.elf import MAGIC, Elf, dynamic_symbols, read_elf
from accel_env.inspect.fatbin import DeviceCode
from accel_env.inspect.symbols import TorchUse, is_torch, torch_use

_LIBRARY = re.compile(r"(?:^|/)[^/]+\.so(?:\.[0-9]+)*$")
_CODE_FILE = re.compile(r"\.(?:cubin|fatbin)$")
_KERNELS = re.compile(r"(?:^|/)[^/]*?(gfx[0-9a-f]{3,4})(?![0-9a-f])[^/]*\.(?:hsaco|co|dat|kdb)$")
_MEMORY = 32 << 20  # a member up to this size is held in memory
_LARGEST = 16 << 30
_CHUNK = 1 << 20
_LOOSE = frozenset([".rodata", ".lrodata", ".data", ".data.rel.ro", ".ldata"])
_RAW = frozenset([".nv_fatbin", "__nv_relfatbin"])
Known = Callable[[str, int, int], "Library | None"]


@dataclass(slots=True)
class Library:
    """What one member holds. `gfx` counts HIP bundles by target; `wanted` and `defined` are symbols of torch alone."""

    name: str
    size: int
    crc: int
    machine: str = ""
    soname: str = ""
    needed: tuple[str, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    cuda: DeviceCode = field(default_factory=DeviceCode)
    gfx: Counter[str] = field(default_factory=Counter)
    bundles: int = 0
    sycl: sycl.Images = field(default_factory=lambda: sycl.Images(set(), set()))
    wanted: frozenset[bytes] = frozenset()
    defined: frozenset[bytes] = frozenset()


@dataclass(frozen=True, slots=True)
class Wheel:
    """What a wheel says (`metadata`, `tags`) and holds. `kernels`: gfx targets of library kernels, with the number of files."""

    filename: str
    size: int
    metadata: tuple[tuple[str, str], ...]
    tags: tuple[str, ...]
    members: int
    libraries: tuple[Library, ...]
    kernels: tuple[tuple[str, int], ...]
    torch: TorchUse | None


def inspect_wheel(
    stream: IO[bytes],
    filename: str,
    *,
    known: Known = lambda *_: None,
) -> Wheel:
    """Reads the wheel in a seekable file. `known(name, size, crc32)` may give a library that was read before (the same member of
    another file). ClosureError where the wheel is broken."""
    try:
        with zipfile.ZipFile(stream) as archive:
            entries = sorted(archive.infolist(), key=lambda entry: entry.header_offset)
            metadata, tags = _said(archive, entries, filename)
            libraries = tuple(_libraries(archive, entries, filename, known))
            size = stream.seek(0, 2)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, zlib.error, UnicodeDecodeError) as problem:
        raise broken(filename, f"it is no complete zip file ({problem})") from None
    except (ValueError, OverflowError, RuntimeError) as problem:  # zipfile's own words for offsets that lead nowhere, passwords
        raise broken(filename, str(problem)) from None
    kernels = Counter(arch for entry in entries if (arch := kernel_arch(entry.filename)))
    return make_wheel(filename, size, metadata, tags, len(entries), libraries, tuple(sorted(kernels.items())))


def make_wheel(
    filename: str,
    size: int,
    metadata: tuple[tuple[str, str], ...],
    tags: tuple[str, ...],
    members: int,
    libraries: tuple[Library, ...],
    kernels: tuple[tuple[str, int], ...],
) -> Wheel:
    """The wheel, with what all its libraries together ask of torch."""
    defined = (name for library in libraries for name in library.defined)
    wanted = (name for library in libraries for name in library.wanted if is_torch(name))
    return Wheel(filename, size, metadata, tags, members, libraries, kernels, torch_use(wanted, defined))


def broken(filename: str, why: str) -> ClosureError:
    """The error for a wheel that cannot be read."""
    message = f"{filename}: {why}"
    return ClosureError("wheel-broken", message, hint="fetch it again; if it stays so, the index holds a damaged file")


def kernel_arch(name: str) -> str:
    """The gfx target of a file of library kernels (rocBLAS, hipBLASLt, MIOpen), by its name; empty for other files."""
    found = _KERNELS.search(name)
    return found[1] if found else ""


def _said(
    archive: zipfile.ZipFile, entries: list[zipfile.ZipInfo], filename: str
) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """(fields of METADATA, tags of WHEEL)."""
    from email.parser import HeaderParser

    stem = "-".join(filename.split("-")[:2])
    folders = {entry.filename.partition("/")[0] for entry in entries if entry.filename.endswith(".dist-info/METADATA")}
    own = [folder for folder in folders if _comparable(folder.removesuffix(".dist-info")) == _comparable(stem)]
    if len(own) != 1:
        raise broken(filename, f"its metadata is of {', '.join(sorted(folders)) or 'nothing'}")
    texts = []
    for name in ("METADATA", "WHEEL"):
        member = next((entry for entry in entries if entry.filename == f"{own[0]}/{name}"), None)
        if member is None or member.file_size > 16 << 20:
            raise broken(filename, f"it has no {name}, or one that is too large")
        texts.append(archive.read(member).decode("utf-8", "replace"))
    headers = HeaderParser().parsestr(texts[0])
    tags = HeaderParser().parsestr(texts[1]).get_all("Tag") or []
    return tuple((key, str(value)) for key, value in headers.items()), tuple(str(tag).strip() for tag in tags)


def _comparable(stem: str) -> str:
    return re.sub(r"[-_.+]+", "-", stem).lower()


def _libraries(
    archive: zipfile.ZipFile, entries: list[zipfile.ZipInfo], filename: str, known: Known
) -> Iterator[Library]:
    for entry in entries:
        name, code = entry.filename, _CODE_FILE.search(entry.filename)
        if entry.is_dir() or not entry.file_size or not (code or _LIBRARY.search(name)):
            continue
        before = known(name, entry.file_size, entry.CRC)
        if before is not None:
            yield before
            continue
        if entry.file_size > _LARGEST:
            raise broken(filename, f"{name} claims {entry.file_size} bytes")
        try:
            with _unpacked(archive, entry) as stream:
                found = _code_file(stream, entry) if code else _library(stream, entry)
        except ValueError as problem:
            raise broken(filename, f"{name}: {problem}") from None
        if found is not None:
            yield found


def _unpacked(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> IO[bytes]:
    target = tempfile.SpooledTemporaryFile(max_size=_MEMORY)  # noqa: SIM115 - the caller closes it
    try:
        with archive.open(entry) as source:
            while chunk := source.read(_CHUNK):
                target.write(chunk)
    except BaseException as problem:
        target.close()
        if isinstance(problem, OSError):
            raise ClosureError(
                "cannot-write",
                f"{entry.filename} cannot be unpacked: {problem.strerror or problem}",
                hint="it needs free space in the folder for temporary files (TMPDIR)",
            ) from None
        raise
    target.seek(0)
    return cast("IO[bytes]", target)  # on Python 3.10 a file in all but name


def _code_file(stream: IO[bytes], entry: zipfile.ZipInfo) -> Library:
    found = Library(entry.filename, entry.file_size, entry.CRC)
    fatbin.find_loose(stream, 0, entry.file_size, found.cuda)
    return found


def _library(stream: IO[bytes], entry: zipfile.ZipInfo) -> Library | None:
    """What a library holds; None where a file only has the name of one (a linker script)."""
    start = stream.read(len(MAGIC))
    if start != MAGIC:
        return None
    elf = read_elf(stream, entry.file_size)
    found = Library(entry.filename, entry.file_size, entry.CRC, elf.machine, elf.soname, elf.needed, elf.versions)
    _device_code(stream, elf, found)
    if elf.symbols is None:
        return found
    wanted, defined = set[bytes](), set[bytes]()
    for name, here, weak in dynamic_symbols(stream, elf):
        if is_torch(name):
            if here:
                defined.add(name)
            elif not weak:
                wanted.add(name)
    found.wanted, found.defined = frozenset(wanted), frozenset(defined)
    return found


def _device_code(stream: IO[bytes], elf: Elf, found: Library) -> None:
    for section in elf.sections:
        if section.name in _RAW:
            fatbin.read_section(stream, section.offset, section.size, found.cuda)
        elif section.name == ".hip_fatbin":
            found.bundles += bundle.read_section(stream, section.offset, section.size, found.gfx)
        elif target := sycl.is_image_section(section.name):
            found.sycl.targets.add(target)
            sycl.scan(stream, section.offset, section.size, found.sycl)
        elif section.name in _LOOSE:
            fatbin.find_loose(stream, section.offset, section.size, found.cuda)
            if any("sycl" in name for name in elf.needed):
                sycl.scan(stream, section.offset, section.size, found.sycl)
