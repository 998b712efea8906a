#!/usr/bin/env python3
"""Whether this Python environment works: python3 checks.py --help. Put together by accel-env; do not edit."""

from __future__ import annotations

# --- verdict ---
import math
from collections.abc import Callable
from typing import Any, Dict, NamedTuple, Tuple  # noqa: UP035  the alias below is evaluated, by Python 3.8 too

SCHEMA = "accel-env/smoke/1"
LEVELS = ("static", "import", "device")
PASS, FAIL, SKIP = "pass", "fail", "skip"
# What only the driver of the machine brings: not missing from an image that lacks it.
DRIVER_LIBRARIES = ("libcuda.so", "libnvidia-", "libnvcuvid.so", "libnvoptix.so")

Answer = Tuple[str, Dict[str, Any]]  # noqa: UP006


class FailedError(Exception):
    """The check found something wrong; the text says what."""


class SkippedError(Exception):
    """The check does not apply here; the text says why."""


class Context(NamedTuple):
    """What a check may know. `device`: `cpu`, `cuda` (AMD's too), `xpu`, `hpu`; empty: the first that is there.

    `expect` is what the plan says, any part of it missing: `python`; `versions` {distribution: version}; `devices`
    [architecture]; `libraries` [ending of the path of a library that the plan counts on]; `compiles` (bool).
    """

    expect: dict[str, Any]
    device: str = ""


class Check(NamedTuple):
    """One check: `seconds` is its time limit; `run` gives (detail, facts) or raises."""

    level: str
    name: str
    seconds: float
    run: Callable[[Context], Answer]


class Result(NamedTuple):
    """The end of a check."""

    level: str
    name: str
    verdict: str
    detail: str
    seconds: float
    facts: dict[str, Any] | None = None

    def line(self) -> str:
        """The result for people."""
        return f"{self.verdict:4}  {self.level:6}  {self.name:28} {self.seconds:6.1f} s  {self.detail}"

    def row(self) -> dict[str, Any]:
        """The result as the report holds it."""
        found = {
            "level": self.level, "name": self.name, "verdict": self.verdict, "detail": self.detail,
            "seconds": round(self.seconds, 2),
        }  # fmt: skip
        if self.facts:
            found["facts"] = self.facts
        return found


def near(what: str, error: float, tolerance: float) -> str:
    """A sentence on an error within the tolerance; FailedError beyond it, and for what is no number."""
    if math.isnan(error) or math.isinf(error) or error > tolerance:
        raise FailedError(f"{what}: error {error:.3g}, allowed {tolerance:g}")
    return f"{what}: error {error:.3g} of {tolerance:g}"


def some(texts: Any, most: int = 5) -> str:
    """The texts in one line, the first `most` of them."""
    listed = list(texts)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return "; ".join(listed[:most]) + more


def of_driver(text: str) -> str:
    """The driver's library that a text names, empty when it names none."""
    return next((word.strip(":,'\"()") for word in text.split() if word.strip(":,'\"()").startswith(DRIVER_LIBRARIES)), "")


# --- elf ---
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


# --- installed ---
import os
import re
import sys
from importlib import metadata
from typing import Any

# Top-level names that distributions leave in site-packages by accident.
STRAY = frozenset(
    [
        "tests",
        "test",
        "testing",
        "docs",
        "doc",
        "examples",
        "example",
        "scripts",
        "benchmarks",
        "benchmark",
        "bin",
        "build_backend",
    ]
)


def normal(name: str) -> str:
    """A distribution's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def distributions() -> tuple[Any, ...]:
    """Every distribution that this interpreter sees, sorted by name; the first on the path where there are several."""
    found: dict[str, Any] = {}
    for distribution in metadata.distributions():
        name = distribution.metadata["Name"]
        if name:
            found.setdefault(normal(name), distribution)
    return tuple(found[name] for name in sorted(found))


def name_of(distribution: Any) -> str:
    """The normalised name of a distribution."""
    return normal(distribution.metadata["Name"])


def versions() -> dict[str, str]:
    """Normalised name -> version."""
    return {name_of(distribution): str(distribution.version) for distribution in distributions()}


def files(distribution: Any) -> list[tuple[str, str, str]]:
    """(path relative to its folder, hash as RECORD has it, absolute path) of every file."""
    found = []
    for path in distribution.files or ():
        digest = f"{path.hash.mode}={path.hash.value}" if path.hash else ""
        found.append((str(path).replace(os.sep, "/"), digest, str(path.locate())))
    return found


def import_names(distribution: Any) -> list[str]:
    """The top-level names that a distribution makes importable, private and stray ones left out."""
    names = set()
    for path, _, _ in files(distribution):
        head, slash, rest = path.partition("/")
        if slash and rest == "__init__.py":
            names.add(head)
        elif not slash and head.endswith((".py", ".so")):
            names.add(head.partition(".")[0])
    return sorted(name for name in names if name.isidentifier() and not name.startswith("_") and name not in STRAY)


def native_files(distribution: Any) -> list[str]:
    """The absolute paths of its shared libraries; links and what is gone left out."""
    return [place for path, _, place in files(distribution) if _native(path) and os.path.isfile(place)]


def _native(path: str) -> bool:
    base = path.rpartition("/")[2]
    return base.endswith(".so") or ".so." in base


def shown(path: str) -> str:
    """A path as people recognise it: from site-packages on."""
    for folder in sorted(sys.path, key=len, reverse=True):
        if folder and path.startswith(folder + os.sep):
            return path[len(folder) + 1 :]
    return path


# --- folders ---
import glob
import os
import sysconfig


def system_folders() -> list[str]:
    """Where the loader looks for the libraries of the system."""
    folders = [part for part in os.environ.get("LD_LIBRARY_PATH", "").split(":") if part]
    folders += _configured("/etc/ld.so.conf", set())
    triplet = sysconfig.get_config_var("MULTIARCH")
    for base in ("/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib"):
        folders += [base] + ([os.path.join(base, triplet)] if triplet else [])
    return [*folders, str(sysconfig.get_config_var("LIBDIR") or "")]


def _configured(path: str, seen: set[str]) -> list[str]:
    """The folders that a file for the loader names, included files too."""
    found: list[str] = []
    if path in seen:
        return found
    seen.add(path)
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            lines = [line.partition("#")[0].strip() for line in stream]
    except OSError:
        return found
    for line in lines:
        if line.startswith("include"):
            for pattern in line.split()[1:]:
                for inner in sorted(glob.glob(os.path.join(os.path.dirname(path), pattern))):
                    found += _configured(inner, seen)
        elif line:
            found.append(line)
    return found


# --- static ---
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


_MAJORS = {"CUDA": "libcudart", "HIP": "libamdhip64", "SYCL": "libsycl"}
_ACCELERATORS = (
    "libtorch",
    "libc10",
    "libcu",
    "libnv",
    "libnccl",
    "libamdhip",
    "libhip",
    "libroc",
    "librccl",
    "libsycl",
    "libze_",
)
_TORCH_SYMBOL = re.compile(r"3c10|5torch|2at(?=\d)|aoti_torch_|THP[A-Z]")
_ARCHS = re.compile(rb"(?:(?:sm_|compute_|gfx)[0-9a-f]{2,6}[ ;,]){1,99}(?:sm_|compute_|gfx)[0-9a-f]{2,6}")


class Stock(NamedTuple):
    """Every native library. `names`: the paths behind a name; `owners`: the distribution of a path; `near`: the distributions
    whose libraries those of a distribution find loaded; `loaded`: the paths that some import loads; `counted`: those among them
    that the plan counts on."""

    libraries: dict[str, Library]
    names: dict[str, list[str]]
    owners: dict[str, str]
    near: dict[str, set[str]]
    loaded: set[str]
    counted: set[str]

    def brings(self, path: str, name: str) -> list[str]:
        """The paths by which packages bring the library `name` to the library at `path`."""
        near = self.near[self.owners[path]]
        return [other for other in self.names.get(name, []) if self.owners[other] in near]


def take_stock(expect: dict[str, Any]) -> Stock:
    """Reads every native library of every distribution. SkippedError where there is none."""
    libraries: dict[str, Library] = {}
    owners: dict[str, str] = {}
    names: dict[str, list[str]] = {}
    for distribution in distributions():
        for path in native_files(distribution):
            library = read_library(path)
            if library is not None:
                libraries[path], owners[path] = library, name_of(distribution)
                for name in {os.path.basename(path), library.soname} - {""}:
                    names.setdefault(name, []).append(path)
    if not libraries:
        raise SkippedError("no package with a native library is installed")
    endings = tuple(expect.get("libraries", ()))
    counted = {path for path in libraries if endings and path.endswith(endings)}
    stock = Stock(libraries, names, owners, _near(), set(), counted)
    waiting = [path for path, library in libraries.items() if library.module or path in counted]
    while waiting:
        path = waiting.pop()
        if path not in stock.loaded:
            stock.loaded.add(path)
            waiting += [other for name in libraries[path].needed for other in stock.brings(path, name)]
    return stock


def _near() -> dict[str, set[str]]:
    """Distribution -> itself, what it requires, and torch with all that torch requires: extensions are loaded after those."""
    requires = {
        name_of(distribution): {normal(re.split(r"[^\w.-]", text, maxsplit=1)[0]) for text in distribution.requires or ()}
        for distribution in distributions()
    }
    torch, waiting = set(), ["torch"]
    while waiting:
        name = waiting.pop()
        if name in requires and name not in torch:
            torch.add(name)
            waiting += requires[name]
    return {name: {name, *names, *torch} for name, names in requires.items()}


def _resolved(name: str, library: Library, stock: Stock, folders: Iterable[str]) -> bool:
    """Whether something brings a needed library: the path it names, the system, or a package, whose import loads it before."""
    if stock.brings(library.path, name):
        return True
    origin = os.path.dirname(library.path)
    own = [part.replace("$ORIGIN", origin).replace("${ORIGIN}", origin) for part in (library.runpath or library.rpath)]
    return os.path.isfile(name) or any(os.path.isfile(os.path.join(folder, name)) for folder in (*own, *folders))


def needed(context: Context) -> Answer:
    """Every library that an import loads finds what it needs; of those that are opened on demand, one per folder does."""
    stock, folders = take_stock(context.expect), system_folders()
    lacking: dict[str, list[str]] = {}
    driver: set[str] = set()
    for path, library in stock.libraries.items():
        missing = [name for name in library.needed if not _resolved(name, library, stock, folders)]
        driver.update(name for name in missing if name.startswith(DRIVER_LIBRARIES))
        rest = [name for name in missing if not name.startswith(DRIVER_LIBRARIES)]
        if rest:
            lacking[path] = rest
    broken = _decisive(lacking, stock)
    told = {shown(path): names for path, names in sorted(lacking.items())}
    if broken:
        lines = [f"{shown(path)} needs {', '.join(lacking[path])}" for path in sorted(broken)]
        raise FailedError(f"{len(broken)} libraries cannot be loaded: {some(lines)}")
    facts = {"libraries": len(stock.libraries), "loaded by imports": len(stock.loaded), "left to the driver": sorted(driver)}
    return (
        f"{len(stock.libraries)} native libraries find what they need"
        + (f", {len(lacking)} optional ones do not" if lacking else ""),
        {**facts, "optional and not loadable": told} if told else facts,
    )


def _decisive(lacking: Mapping[str, list[str]], stock: Stock) -> list[str]:
    """The libraries whose lack matters: those that the plan counts on; modules without a library of torch or an accelerator; and
    all of a folder where none is whole. A module that lacks something else is one of those that are tried and done without
    (numba's thread pool), one that differs from a whole one by a number is for another release (FFmpeg 4, 5 ...)."""
    right = [path for path in stock.libraries if path not in lacking]
    folders, families = {os.path.dirname(path) for path in right}, {_family(path) for path in right}

    def matters(path: str) -> bool:
        if path in stock.counted or os.path.dirname(path) not in folders:
            return True
        modules = path in stock.loaded and _family(path) not in families
        return modules and any(name.startswith(_ACCELERATORS) for name in lacking[path])

    return [path for path in lacking if matters(path)]


def _family(path: str) -> str:
    folder, name = os.path.split(path)
    stem, dot, rest = name.partition(".")
    return os.path.join(folder, re.sub(r"\d+", "#", stem) + dot + rest)


def system_versions(context: Context) -> Answer:
    """The C and C++ libraries of the system are new enough for every library that an import loads."""
    stock, folders = take_stock(context.expect), system_folders()
    offers: dict[str, set[str]] = {}
    wrong: dict[str, set[str]] = {}
    highest: dict[str, str] = {}
    for path in sorted(stock.loaded):
        for name, version in stock.libraries[path].versions:
            if name in stock.names or not re.match(r"GLIBC|CXXABI|GCC_", version):
                continue
            if name not in offers:
                offers[name] = _offered(name, folders)
            if offers[name] and version not in offers[name]:
                wrong.setdefault(f"{version} of {name}", set()).add(shown(path))
            family = version.partition("_")[0]
            highest[family] = max(highest.get(family, ""), version, key=_numbers)
    if not any(offers.values()):
        raise SkippedError("no library of the system that tells its versions was found")
    if wrong:
        lines = [f"{version} is needed by {some(sorted(paths), 2)}" for version, paths in sorted(wrong.items())]
        raise FailedError(f"the system's libraries are too old: {some(lines)}")
    return f"the system has {', '.join(sorted(highest.values()))} and all below", {"highest needed": sorted(highest.values())}


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def _offered(name: str, folders: Iterable[str]) -> set[str]:
    """The versions that a library of the system defines; empty when it is not found or tells none."""
    for folder in folders:
        try:
            return Elf(os.path.join(folder, name)).offered()
        except (OSError, ValueError):
            continue
    return set()


def symbols(context: Context) -> Answer:
    """What extensions want of torch is exported by the torch that is installed."""
    stock = take_stock(context.expect)
    own = {path for path, owner in stock.owners.items() if owner == "torch"}
    if not own:
        raise SkippedError("torch is not installed")
    names = {os.path.basename(path) for path in own if os.path.basename(path).startswith(("libtorch", "libc10"))}
    extensions = [path for path in sorted(stock.libraries) if path not in own and names & set(stock.libraries[path].needed)]
    if not extensions:
        raise SkippedError("no extension is linked to torch")
    wanted = {path: _undefined(path) for path in extensions}
    offered = {
        name for path in {*own, *extensions} for name, defined, _ in Elf(path).symbols() if defined and _TORCH_SYMBOL.search(name)
    }
    wrong = {path: sorted(names - offered) for path, names in wanted.items() if names - offered}
    # Files that differ by a number are for several releases of torch: a package that has none for this one does without.
    count_of = Counter(map(_family, extensions))
    broken = [path for path in wrong if path in stock.loaded or count_of[_family(path)] == 1]
    if broken:
        lines = [f"{shown(path)} wants {some(wrong[path], 2)}" for path in sorted(broken)]
        raise FailedError(f"the torch here does not export what extensions were built for: {some(lines)}")
    told = {shown(path): lacks[:5] for path, lacks in sorted(wrong.items())}
    count = sum(len(names) for names in wanted.values())
    facts = {"optional and not loadable": told} if told else {}
    return f"torch exports what {len(extensions)} extensions want ({count} symbols)", facts


def _undefined(path: str) -> set[str]:
    """The symbols of torch that a library wants and cannot do without."""
    return {name for name, defined, weak in Elf(path).symbols() if not defined and not weak and _TORCH_SYMBOL.search(name)}


def majors(context: Context) -> Answer:
    """One major release of CUDA, HIP or SYCL among everything that imports load."""
    stock = take_stock(context.expect)
    found: dict[str, dict[str, set[str]]] = {}
    for path in stock.loaded:
        for name in stock.libraries[path].needed:
            for what, stem in _MAJORS.items():
                match = re.match(re.escape(stem) + r"\.so\.(\d+)", name)
                if match:
                    found.setdefault(what, {}).setdefault(match.group(1), set()).add(stock.owners[path])
    if not found:
        raise SkippedError("nothing here is linked to CUDA, HIP or SYCL")
    for what, owners in sorted(found.items()):
        if len(owners) > 1:
            lines = [f"{what} {major}: {', '.join(sorted(names))}" for major, names in sorted(owners.items())]
            raise FailedError(f"packages are linked to different majors of {what}: {some(lines)}")
    told = {what: next(iter(owners)) for what, owners in sorted(found.items())}
    return ", ".join(f"{what} {major} throughout" for what, major in told.items()), {"majors": told}


def archs(context: Context) -> Answer:
    """The architectures that the torch was built for cover the devices of the plan."""
    devices = [str(arch) for arch in context.expect.get("devices", ())]
    if not devices:
        raise SkippedError("the plan names no device")
    listed = built_for(take_stock(context.expect))
    if not listed:
        raise SkippedError("the torch here does not tell what it was built for")
    lacking = [arch for arch in dict.fromkeys(devices) if not covers(listed, arch)]
    if lacking:
        raise FailedError(f"torch was built for {' '.join(listed)}, not for {', '.join(lacking)}")
    return f"torch was built for {' '.join(listed)}", {"built for": listed}


def built_for(stock: Stock) -> list[str]:
    """The architectures in the longest list inside torch's libraries; empty where there is none."""
    best: list[str] = []
    for path, owner in sorted(stock.owners.items()):
        if owner == "torch" and os.path.basename(path).startswith("libtorch_python."):
            for match in _ARCHS.finditer(Elf(path).data):
                words = re.split("[ ;,]", match.group().decode())
                best = max(best, list(dict.fromkeys(words)), key=len)
    return best


def covers(listed: Iterable[str], arch: str) -> bool:
    """Whether code for `listed` runs on `arch`: the same, or NVIDIA code for the same major and an earlier minor, or older
    PTX."""
    wanted = re.match(r"sm_(\d+)(\d)", arch)
    for one in listed:
        found = re.match(r"(sm|compute)_(\d+)(\d)([af]?)$", one)
        if one == arch:
            return True
        if wanted and found and not found.group(4):
            have, want = (int(found.group(2)), int(found.group(3))), (int(wanted.group(1)), int(wanted.group(2)))
            if have <= want and (found.group(1) == "compute" or have[0] == want[0]):
                return True
    return False


def python(context: Context) -> Answer:
    """The Python is the plan's."""
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    wanted = str(context.expect.get("python", ""))
    if wanted and wanted.rstrip("t") != here:
        raise FailedError(f"this is Python {here}, the plan says {wanted}")
    return f"Python {here}" + ("" if wanted else ", no plan says which"), {}


# --- packages ---
import os
import sys
from typing import Any


# Installers: there by habit, in no lock.
_TOOLS = frozenset(["pip", "setuptools", "wheel", "uv"])


def planned_versions(context: Context) -> Answer:
    """Every package of the lock is installed in its version."""
    wanted = {normal(name): str(version) for name, version in context.expect.get("versions", {}).items()}
    here = versions()
    if not wanted:
        raise SkippedError(f"no plan says what should be installed; {len(here)} packages are")
    wrong = [f"{name} {here.get(name, 'is missing')}, the plan says {version}" for name, version in sorted(wanted.items())
             if not _same(here.get(name, ""), version)]  # fmt: skip
    if wrong:
        raise FailedError(f"{len(wrong)} of {len(wanted)} packages are not as planned: {some(wrong)}")
    others = sorted(set(here) - set(wanted) - _TOOLS)
    text = f"{len(wanted)} packages as planned" + (f", {len(others)} beside them: {some(others)}" if others else "")
    return text, {"not in the plan": others} if others else {}


def _same(here: str, wanted: str) -> bool:
    """Whether an installed version is the wanted one; a local label counts only where the plan has one."""
    public, _, local = here.lower().partition("+")
    wanted_public, _, wanted_local = wanted.lower().partition("+")
    return public == wanted_public and (not wanted_local or local.replace("-", ".") == wanted_local.replace("-", "."))


def owners(context: Context) -> Answer:
    """No file of an import package is claimed by two distributions with different content."""
    claims: dict[str, dict[str, set[str]]] = {}
    for distribution in distributions():
        name = name_of(distribution)
        for path, digest, _ in files(distribution):
            if path.endswith((".py", ".so")) and not path.startswith(".."):
                claims.setdefault(path, {}).setdefault(digest or name, set()).add(name)
    shared: dict[tuple[str, ...], set[str]] = {}
    for path, digests in claims.items():
        if len(digests) > 1:
            names = tuple(sorted({name for group in digests.values() for name in group}))
            shared.setdefault(names, set()).add(path.partition("/")[0])
    # `tests`, `docs` and the like at the top are left by accident and imported by nobody.
    real = {names: modules for names, modules in shared.items() if any(_claimed(module) for module in modules)}
    if real:
        lines = [f"{' and '.join(names)} both own {', '.join(sorted(modules))}" for names, modules in sorted(real.items())]
        raise FailedError(f"packages overwrite each other: {some(lines)}")
    return f"one owner for each of {len(claims)} modules", {}


def _claimed(module: str) -> bool:
    """Whether a top-level folder or file is something that one imports, or a namespace of such."""
    return module.partition(".")[0] not in STRAY


def requirements(context: Context) -> Answer:
    """What each package requires is installed in a version that it allows: what `pip check` says."""
    here, problems, count = versions(), [], 0
    installed = distributions()  # before the parser, which may look elsewhere
    parse = _parser()
    for distribution in installed:
        for text in distribution.requires or ():
            found = parse(text)
            if found.marker is not None and not found.marker.evaluate({"extra": ""}):
                continue
            count += 1
            version = here.get(normal(found.name))
            if version is None:
                problems.append(f"{name_of(distribution)} requires {found.name}, which is not installed")
            elif not found.specifier.contains(version, prereleases=True):
                problems.append(f"{name_of(distribution)} requires {found.name}{found.specifier}, {version} is installed")
    if problems:
        raise FailedError(f"{len(problems)} requirements are not met: {some(problems)}")
    return f"{count} requirements are met", {}


def _parser() -> Any:
    """The class that reads requirements: of `packaging`, or of the copy inside the pip of this or the base Python."""
    base = os.path.join(sys.base_prefix, "lib", f"python{sys.version_info[0]}.{sys.version_info[1]}")
    for extra in ("", os.path.join(base, "site-packages"), os.path.join(base, "dist-packages"),
                  os.path.join(sys.base_prefix, "lib", "python3", "dist-packages")):  # fmt: skip
        if extra:
            sys.path.append(extra)  # this process ends with the check
        for module in ("packaging.requirements", "pip._vendor.packaging.requirements"):
            try:
                return __import__(module, fromlist=["Requirement"]).Requirement
            except ImportError:
                continue
    raise SkippedError("neither `packaging` nor a pip is here to read requirements with")


# --- imports ---
import importlib
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable
from typing import Any


_ALONE = 120.0  # seconds for one package
OTHERS = "import the others"
_REST = 300.0  # seconds for all packages without native code


def import_checks(expect: Any) -> list[Check]:
    """A check per package that has native code or that the plan picks, and one for all others."""
    alone: list[Check] = []
    rest: list[str] = []
    for distribution in distributions():
        name, modules = name_of(distribution), import_names(distribution)
        if modules and (name in expect.get("picks", ()) or native_files(distribution)):
            alone.append(_import_check(name, modules))
        else:
            rest += modules
    return [*alone, Check("import", OTHERS, _REST, _importer(rest))] if rest else alone


def import_check(name: str, expect: Any) -> Check | None:
    """The check of that name alone; None where there is none. Reading one package is quicker than reading all."""
    for distribution in distributions() if name != OTHERS else ():
        if name == f"import {name_of(distribution)}":
            return _import_check(name_of(distribution), import_names(distribution))
    return next((check for check in import_checks(expect) if check.name == name), None)


def _import_check(name: str, modules: list[str]) -> Check:
    return Check("import", f"import {name}", _ALONE, _importer(modules))


def _importer(modules: Iterable[str]) -> Callable[[Context], Answer]:
    names = list(modules)

    def run(context: Context) -> Answer:
        return import_all(names)

    return run


def import_all(names: list[str]) -> Answer:
    """Imports each; FailedError with what cannot be, SkippedError where only the driver's libraries are missing."""
    problems = {}
    driver = set()
    for name in names:
        print(f"importing {name}", flush=True)  # what a crash leaves behind
        problem = _problem(name)
        # Imports change a process for those after them (setuptools and distutils): a fault is one that a fresh process has too.
        if problem and (len(names) == 1 or _fails_alone(name)):
            library = of_driver(problem)
            if library:
                driver.add(library)
            else:
                problems[name] = problem
    if problems:
        lines = [f"{name}: {problem}" for name, problem in problems.items()]
        raise FailedError(f"{len(problems)} of {len(names)} modules cannot be imported: {some(lines, 3)}")
    if driver:
        raise SkippedError(f"needs the driver, which is not here: {', '.join(sorted(driver))}")
    return (names[0] if len(names) == 1 else f"{len(names)} modules") + " imported", {}


def _problem(name: str) -> str:
    """What an import raises, as `Class: text`; empty when it succeeds."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            importlib.import_module(name)
    except BaseException as problem:
        return f"{type(problem).__name__}: {problem}"
    return ""


def _fails_alone(name: str) -> bool:
    line = [sys.executable, "-W", "ignore", "-c", f"import {name}"]
    return subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode != 0


def load_torch() -> Any:
    """The module torch. SkippedError where it is not installed."""
    if "torch" not in versions():
        raise SkippedError("torch is not installed")
    return importlib.import_module("torch")


def relative(torch: Any, got: Any, want: Any) -> float:
    """The error of `got` against the float64 `want`, relative to its size."""
    there = got.detach().to("cpu", torch.float64)
    return float(torch.linalg.vector_norm(there - want) / torch.linalg.vector_norm(want).clamp_min(1e-30))


def torch_maths(context: Context) -> Answer:
    """Products, a solution and a gradient on the CPU against sums written out in Python."""
    torch = load_torch()
    torch.manual_seed(0)
    a, b = torch.randn(7, 5), torch.randn(5, 3)
    rows, columns = a.tolist(), b.t().tolist()
    want = torch.tensor([[sum(map(float.__mul__, row, column)) for column in columns] for row in rows], dtype=torch.float64)
    told = [near("matmul", relative(torch, a @ b, want), 1e-5)]
    square = torch.randn(6, 6, dtype=torch.float64) + 6 * torch.eye(6, dtype=torch.float64)
    x = torch.linalg.solve(square, torch.ones(6, dtype=torch.float64))
    told.append(near("solve", relative(torch, square @ x, torch.ones(6, dtype=torch.float64)), 1e-10))
    weight = torch.randn(5, requires_grad=True)
    (weight.sin() ** 2).sum().backward()
    told.append(near("gradient", relative(torch, weight.grad, torch.sin(2 * weight.detach().double())), 1e-5))
    return "; ".join(told), {"torch": str(torch.__version__)}


def numpy_bridge(context: Context) -> Answer:
    """torch and numpy hand arrays to each other: they were built for one numpy."""
    torch = load_torch()
    if "numpy" not in versions():
        raise SkippedError("numpy is not installed")
    numpy = importlib.import_module("numpy")
    there = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    back = torch.from_numpy(there.numpy() + numpy.float32(1))
    if back.tolist() != [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]:
        raise FailedError(f"six numbers came back from numpy as {back.tolist()}")
    return f"torch {torch.__version__} and numpy {numpy.__version__} share arrays", {}


def transformers_forward(context: Context) -> Answer:
    """A tiny Llama with random weights: finite logits of the right shape, the same twice, and gradients."""
    torch = load_torch()
    if "transformers" not in versions():
        raise SkippedError("transformers is not installed")
    os.environ.update({"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HOME": tempfile.mkdtemp()})
    transformers = importlib.import_module("transformers")
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=96, num_key_value_heads=2, **shape)).eval()
    tokens = torch.arange(12).reshape(2, 6)
    with torch.no_grad():
        first, second = model(tokens).logits, model(tokens).logits
    if tuple(first.shape) != (2, 6, 96) or not bool(torch.isfinite(first).all()):
        raise FailedError(f"logits of shape {tuple(first.shape)}, {int((~torch.isfinite(first)).sum())} of them not finite")
    if not torch.equal(first, second):
        raise FailedError("the same tokens gave two answers")
    loss = model(tokens, labels=tokens).loss
    loss.backward()
    lacking = [name for name, weight in model.named_parameters() if weight.grad is None]
    if lacking:
        raise FailedError(f"no gradient reached {some(lacking)}")
    facts = {"transformers": transformers.__version__}
    return f"a tiny Llama answers twice the same, loss {float(loss.detach()):.3f}, gradients everywhere", facts


def tokenizers_round_trip(context: Context) -> Answer:
    """A tokenizer learned here gives back what it was given."""
    if "tokenizers" not in versions():
        raise SkippedError("tokenizers is not installed")
    tokenizers = importlib.import_module("tokenizers")
    trainers, pre = importlib.import_module("tokenizers.trainers"), importlib.import_module("tokenizers.pre_tokenizers")
    decoders = importlib.import_module("tokenizers.decoders")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = pre.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=300, initial_alphabet=pre.ByteLevel.alphabet(), show_progress=False)
    text = "smoke rises, smoke clears: naïve 烟"
    tokenizer.train_from_iterator([text] * 4, trainer)
    back = tokenizer.decode(tokenizer.encode(text).ids)
    if back != text:
        raise FailedError(f"{text!r} came back as {back!r}")
    return f"{len(text)} characters in {len(tokenizer.encode(text).ids)} tokens and back", {}


# --- quant ---
import importlib
import warnings
from typing import Any


# What is lost is the rounding itself: normal numbers in blocks of 64, relative to their size.
EIGHT_BITS, FOUR_BITS, LINEAR = 0.02, 0.14, 0.2


def load_bitsandbytes() -> Any:
    """The module bitsandbytes. SkippedError where it is not installed."""
    if "bitsandbytes" not in versions():
        raise SkippedError("bitsandbytes is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("bitsandbytes")


def eight_bits(torch: Any, device: str) -> Answer:
    """Blocks of numbers to 8 bits and back, and a layer with 8-bit weights."""
    functional = load_bitsandbytes().functional
    torch.manual_seed(0)
    plain = torch.randn(256, 128)
    packed, state = functional.quantize_blockwise(plain.to(device), blocksize=64)
    back = functional.dequantize_blockwise(packed, state)
    if packed.element_size() != 1:
        raise FailedError(f"8-bit numbers take {packed.element_size()} bytes each")
    told = near("8-bit blocks", relative(torch, back, plain.double()), EIGHT_BITS)
    return told, {}


def four_bits(torch: Any, device: str) -> Answer:
    """Numbers to NF4 and back, and a layer with 4-bit weights against the plain one."""
    module = load_bitsandbytes()
    torch.manual_seed(0)
    plain = torch.randn(128, 256)
    packed, state = module.functional.quantize_4bit(plain.to(device), blocksize=64, quant_type="nf4")
    back = module.functional.dequantize_4bit(packed, state)
    told = [near("4-bit blocks", relative(torch, back, plain.double()), FOUR_BITS)]
    if packed.numel() * packed.element_size() * 2 != plain.numel():
        raise FailedError(f"{plain.numel()} numbers in 4 bits take {packed.numel() * packed.element_size()} bytes")
    layer = module.nn.Linear4bit(256, 128, bias=False, compute_dtype=torch.float32, quant_type="nf4")
    layer.weight = module.nn.Params4bit(plain, requires_grad=False, quant_type="nf4")
    layer = layer.to(device)
    x = torch.randn(4, 256)
    told.append(near("4-bit layer", relative(torch, layer(x.to(device)), x.double() @ plain.double().t()), LINEAR))
    return "; ".join(told), {}


def optimizer_step(torch: Any, device: str) -> Answer:
    """Adam with 8-bit state beside torch's own: the same way down."""
    module = load_bitsandbytes()
    torch.manual_seed(0)
    start = torch.randn(64, 128)
    ends = {}
    for name, factory in (("8-bit", module.optim.Adam8bit), ("plain", torch.optim.Adam)):
        weight = torch.nn.Parameter(start.clone().to(device))
        # 64 x 128 numbers: smaller ones keep 32-bit state.
        optimizer = factory([weight], lr=0.05)
        for _ in range(10):
            optimizer.zero_grad()
            (weight**2).sum().backward()
            optimizer.step()
        ends[name] = weight.detach()
    if float((ends["8-bit"] ** 2).sum()) >= float((start**2).sum()):
        raise FailedError("ten steps of Adam with 8-bit state went up, not down")
    return near("Adam8bit against Adam", relative(torch, ends["8-bit"], ends["plain"].to("cpu", torch.float64)), 0.05), {}


def bitsandbytes_cpu(context: Context) -> Answer:
    """8-bit and 4-bit rounding on the CPU."""
    module, torch = load_bitsandbytes(), load_torch()
    told = [eight_bits(torch, "cpu")[0], four_bits(torch, "cpu")[0]]
    return "; ".join(told), {"bitsandbytes": module.__version__}


# --- device ---
import copy
import importlib
import os
import platform
import shutil
from typing import Any


KINDS = ("cuda", "xpu", "hpu")
_DRIVERS = ("/proc/driver/nvidia/version", *(f"/sys/module/{name}/version" for name in ("amdgpu", "xe", "habanalabs")))
_MIB = 1 << 20
# Relative errors: of sums over 256 products in the type, and of a softmax over them.
TOLERANCE = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 1e-2}
ATTENTION = {"float32": 1e-5, "float16": 3e-3, "bfloat16": 2e-2}


def part(torch: Any, kind: str) -> Any:
    """torch.cuda, torch.xpu or torch.hpu; None where this torch has none."""
    if kind == "hpu":
        try:
            importlib.import_module("habana_frameworks.torch.core")
        except ImportError:
            return None
    return getattr(torch, kind, None)


def device_of(context: Context) -> tuple[Any, str]:
    """(torch, device): the one asked for, else the first that this torch sees. FailedError where there is none."""
    torch = load_torch()
    if context.device == "cpu":
        return torch, "cpu"
    kinds = (context.device,) if context.device else KINDS
    for kind in kinds:
        module = part(torch, kind)
        if module is not None and module.is_available():
            return torch, kind
    raise FailedError(f"torch {torch.__version__} sees no device ({' or '.join(kinds)}){_why(torch, kinds)}")


def _why(torch: Any, kinds: tuple[str, ...]) -> str:
    """What torch says when it is made to look."""
    for kind in kinds:
        module = part(torch, kind)
        if module is not None and hasattr(module, "init"):
            try:
                module.init()
            except Exception as problem:
                return f": {problem}"
    return ""


def count_of(torch: Any, device: str) -> int:
    """How many of the devices there are."""
    return 1 if device == "cpu" else int(part(torch, device).device_count())


def driver(context: Context) -> Answer:
    """The driver is seen, and the device is the plan's."""
    torch, device = device_of(context)
    facts: dict[str, Any] = {"device": device, "count": count_of(torch, device), "torch": str(torch.__version__)}
    if device == "cpu":
        return "the CPU, as asked; no driver is looked at", {**facts, "name": platform.processor() or platform.machine()}
    properties = part(torch, device).get_device_properties(0)
    facts["name"] = str(getattr(properties, "name", part(torch, device).get_device_name(0)))
    facts["arch"] = arch_of(torch, device, properties)
    facts["memory_mib"] = int(getattr(properties, "total_memory", 0)) // _MIB
    facts["driver"] = str(getattr(properties, "driver_version", "")) or _driver_text()
    wanted = [str(arch) for arch in context.expect.get("devices", ())]
    if facts["arch"] and wanted and facts["arch"] not in wanted:
        raise FailedError(f"the device is {facts['name']} ({facts['arch']}), the plan is for {', '.join(dict.fromkeys(wanted))}")
    return f"{facts['count']} x {facts['name']} ({facts['arch'] or device}), driver {facts['driver'] or 'unknown'}", facts


def arch_of(torch: Any, device: str, properties: Any) -> str:
    """The architecture as the matrix spells it; empty where torch does not tell."""
    if device != "cuda":
        return ""
    gfx = str(getattr(properties, "gcnArchName", "")).partition(":")[0]
    if getattr(torch.version, "hip", None):
        return gfx
    return f"sm_{properties.major}{properties.minor}"


def _driver_text() -> str:
    for path in _DRIVERS:
        try:
            with open(path, encoding="utf-8", errors="replace") as stream:
                line = stream.readline().strip()
        except OSError:
            continue
        numbers = [word for word in line.split() if word[:1].isdigit() and "." in word]
        return numbers[0] if numbers else line
    return ""


def tensor(context: Context) -> Answer:
    """Numbers go to the device, are changed there, and come back exact, from every device."""
    torch, device = device_of(context)
    count = count_of(torch, device)
    for number in range(count):
        place = device if device == "cpu" else f"{device}:{number}"
        back = (torch.arange(1000, dtype=torch.int64).to(place) * 2 + 1).to("cpu")
        if back.tolist() != list(range(1, 2001, 2)):
            raise FailedError(f"a thousand numbers came back from {place} changed")
    return f"a thousand numbers went to {count} device(s) and came back", {}


def half_of(torch: Any, device: str) -> Any:
    """The 16-bit type for this device: bfloat16 where it computes in it."""
    if device == "cuda" and not getattr(torch.version, "hip", None) and torch.cuda.get_device_capability() < (8, 0):
        return torch.float16
    return torch.bfloat16


def product(context: Context, dtype_name: str) -> Answer:
    """A product of matrices in one type against float64 on the CPU."""
    torch, device = device_of(context)
    dtype = half_of(torch, device) if dtype_name == "half" else getattr(torch, dtype_name)
    name = str(dtype).partition(".")[2]
    if device == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(0)
    a, b = torch.randn(256, 256).to(dtype), torch.randn(256, 256).to(dtype)
    error = relative(torch, a.to(device) @ b.to(device), a.double() @ b.double())
    return near(f"matmul in {name}", error, TOLERANCE[name]), {"dtype": name}


def matmul_single(context: Context) -> Answer:
    """A product in float32."""
    return product(context, "float32")


def matmul_half(context: Context) -> Answer:
    """A product in bfloat16, in float16 where the device has no bfloat16."""
    return product(context, "half")


def backward(context: Context) -> Answer:
    """Gradients of a small network against the same network in float64 on the CPU."""
    torch, device = device_of(context)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.LayerNorm(64), torch.nn.Linear(64, 8))
    x = torch.randn(16, 32)
    grads: list[Any] = []
    for place, dtype in ((device, torch.float32), ("cpu", torch.float64)):
        network = copy.deepcopy(model).to(place, dtype)
        network(x.to(place, dtype)).square().mean().backward()
        grads.append([weight.grad.detach().to("cpu", torch.float64) for weight in network.parameters()])
    worst = max(relative(torch, got, grads[1][place]) for place, got in enumerate(grads[0]))
    return near("worst gradient", worst, 1e-3), {}


def compiler_for(device: str) -> str:
    """The compiler that code made at run time is built with; empty where there is none."""
    names = (os.environ.get("CXX"), "g++", "clang++") if device == "cpu" else (os.environ.get("CC"), "gcc", "cc", "clang")
    return next((name for name in names if name and shutil.which(name)), "")


def compiled(context: Context) -> Answer:
    """torch.compile gives what eager gives. SkippedError without the C compiler that it needs."""
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # one small function: workers would only take time to start
    torch, device = device_of(context)
    compiler = compiler_for(device)
    if not compiler:
        what = f"a {'C++' if device == 'cpu' else 'C'} compiler, and there is none"
        if context.expect.get("compiles"):
            raise FailedError(f"what the plan picks needs {what}")
        raise SkippedError(f"torch.compile needs {what}")

    def run(x: Any) -> Any:
        return torch.nn.functional.silu(x * 2 + 1).sum(dim=-1)

    torch.manual_seed(0)
    x = torch.randn(64, 128)
    got = torch.compile(run)(x.to(device))
    return near("torch.compile against eager", relative(torch, got, run(x.double())), 1e-5), {}


def memory(context: Context) -> Answer:
    """A quarter GiB is given, holds what is written to it, and is given back."""
    torch, device = device_of(context)
    module = part(torch, device) if device != "cpu" else None
    block = torch.full((64 * _MIB,), 3, dtype=torch.int32, device=device)
    total = int(block.sum(dtype=torch.int64))
    held = int(module.memory_allocated()) // _MIB if module is not None and hasattr(module, "memory_allocated") else 256
    del block
    if total != 3 * 64 * _MIB:
        raise FailedError(f"256 MiB of threes sum up to {total}, not to {3 * 64 * _MIB}")
    facts: dict[str, Any] = {"allocated_mib": held}
    if module is not None and hasattr(module, "mem_get_info"):
        free, whole = module.mem_get_info()
        facts.update(free_mib=int(free) // _MIB, total_mib=int(whole) // _MIB)
    return f"256 MiB written and read{', ' + str(facts['free_mib']) + ' MiB free' if 'free_mib' in facts else ''}", facts


# --- kernels ---
import importlib.util
import os
import subprocess
import sys
import tempfile
from typing import Any


# Triton reads a kernel from its file; workers of a group are processes of their own.
KERNEL = """
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)
"""
WORKER = """
import sys
import torch
import torch.distributed as dist

rank, world, device, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
if device == "hpu":
    import habana_frameworks.torch.core
    import habana_frameworks.torch.distributed.hccl
place = device if device in ("cpu", "hpu") else f"{device}:{rank}"
backend = {"cuda": "nccl", "xpu": "xccl", "hpu": "hccl"}.get(device, "gloo")
dist.init_process_group(backend, init_method=f"file://{path}", rank=rank, world_size=world)
x = torch.full((1024,), float(rank + 1), device=place)
dist.all_reduce(x)
found = sorted(set(x.cpu().tolist()))
assert found == [world * (world + 1) / 2], f"rank {rank} holds {found[:4]}"
dist.destroy_process_group()
"""


def triton_kernel(context: Context) -> Answer:
    """A kernel of our own, compiled here and run on the device."""
    torch, device = device_of(context)
    if device not in ("cuda", "xpu"):
        raise SkippedError(f"no Triton for {device}")
    if not versions().keys() & {"triton", "triton-rocm", "pytorch-triton-rocm", "triton-xpu", "pytorch-triton-xpu"}:
        raise SkippedError("triton is not installed")
    if not compiler_for(device):
        raise SkippedError("Triton builds its launcher with a C compiler, and there is none")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "smoke_kernel.py")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(KERNEL)
        spec = importlib.util.spec_from_file_location("smoke_kernel", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        torch.manual_seed(0)
        x, y = torch.randn(5000), torch.randn(5000)
        out = torch.empty(5000, device=device)
        module.add[(5,)](x.to(device), y.to(device), out, 5000, BLOCK=1024)
        return near("sum by a Triton kernel", relative(torch, out, x.double() + y.double()), 1e-6), {}


def exact_attention(torch: Any, q: Any, k: Any, v: Any, causal: bool) -> Any:
    """Attention written out in float64 on the CPU; heads before positions."""
    q, k, v = (one.detach().to("cpu", torch.float64) for one in (q, k, v))
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), float("-inf"))
    return scores.softmax(-1) @ v


def sdpa(context: Context) -> Answer:
    """scaled_dot_product_attention against the formula, plain and causal, in 32 and 16 bits."""
    torch, device = device_of(context)
    torch.manual_seed(0)
    told = []
    for dtype in (torch.float32, half_of(torch, device)):
        q, k, v = (torch.randn(2, 4, 128, 64).to(dtype) for _ in range(3))
        name = str(dtype).partition(".")[2]
        for causal in (False, True):
            got = torch.nn.functional.scaled_dot_product_attention(q.to(device), k.to(device), v.to(device), is_causal=causal)
            error = relative(torch, got, exact_attention(torch, q, k, v, causal))
            told.append(near(f"{name}{' causal' if causal else ''}", error, ATTENTION[name]))
    return "; ".join(told), {}


def flash_attention(context: Context) -> Answer:
    """flash_attn_func against the formula, plain and causal."""
    torch, device = device_of(context)
    if "flash-attn" not in versions():
        raise SkippedError("flash-attn is not installed")
    if device != "cuda":
        raise SkippedError(f"flash-attn does not run on {device}")
    function = importlib.import_module("flash_attn").flash_attn_func
    torch.manual_seed(0)
    dtype = half_of(torch, device)
    q, k, v = (torch.randn(2, 128, 4, 64, device=device).to(dtype) for _ in range(3))
    turned = [one.transpose(1, 2) for one in (q, k, v)]
    told = []
    for causal in (False, True):
        want = exact_attention(torch, turned[0], turned[1], turned[2], causal).transpose(1, 2)
        error = relative(torch, function(q, k, v, causal=causal), want)
        told.append(near("causal" if causal else "plain", error, ATTENTION[str(dtype).partition(".")[2]]))
    return "; ".join(told), {}


def quant_eight(context: Context) -> Answer:
    """bitsandbytes in 8 bits."""
    load_bitsandbytes()
    return eight_bits(*device_of(context))


def quant_four(context: Context) -> Answer:
    """bitsandbytes in 4 bits."""
    load_bitsandbytes()
    return four_bits(*device_of(context))


def quant_optimizer(context: Context) -> Answer:
    """A step of an 8-bit optimizer."""
    load_bitsandbytes()
    torch, device = device_of(context)
    try:
        return optimizer_step(torch, device)
    except (NotImplementedError, RuntimeError) as problem:
        if device == "cpu":
            raise SkippedError(f"no 8-bit optimizer on the CPU: {problem}") from None
        raise


def all_reduce(context: Context) -> Answer:
    """All devices add up their ranks; on the CPU two processes do."""
    torch, device = device_of(context)
    world = 2 if device == "cpu" else count_of(torch, device)
    if world < 2:
        raise SkippedError("one device alone")
    environment = {**os.environ, **({"GLOO_SOCKET_IFNAME": "lo"} if device == "cpu" else {})}
    with tempfile.TemporaryDirectory() as folder:
        meeting = os.path.join(folder, "meeting")
        words = [[sys.executable, "-c", WORKER, str(rank), str(world), device, meeting] for rank in range(world)]
        # In files, so that no worker waits for a full pipe while another waits for it.
        logs = [open(os.path.join(folder, f"log{rank}"), "w+", encoding="utf-8") for rank in range(world)]  # noqa: SIM115
        workers = [
            subprocess.Popen(line, env=environment, stdout=logs[rank], stderr=logs[rank]) for rank, line in enumerate(words)
        ]
        codes = [worker.wait() for worker in workers]
        last = []
        for log in logs:
            log.seek(0)
            last.append((log.read().strip().splitlines() or [""])[-1])
            log.close()
    wrong = [f"rank {rank}: {last[rank] or f'status {code}'}" for rank, code in enumerate(codes) if code]
    if wrong:
        raise FailedError(f"{len(wrong)} of {world} ranks failed: {'; '.join(wrong[:2])}")
    return f"{world} ranks added up", {"ranks": world}


# --- runner ---
import argparse
import contextlib
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from typing import Any


_FAILED = 7


def fixed_checks() -> list[Check]:
    """Every check but the imports, in order; seconds are for a slow machine with a cold disk."""
    return [
        Check("static", "python", 30, python),
        Check("static", "packages as planned", 60, planned_versions),
        Check("static", "requirements met", 60, requirements),
        Check("static", "one owner per module", 120, owners),
        Check("static", "libraries found", 240, needed),
        Check("static", "system libraries new enough", 240, system_versions),
        Check("static", "symbols of torch", 300, symbols),
        Check("static", "one major", 240, majors),
        Check("static", "architectures", 240, archs),
        Check("import", "torch maths", 180, torch_maths),
        Check("import", "numpy bridge", 180, numpy_bridge),
        Check("import", "bitsandbytes on the CPU", 180, bitsandbytes_cpu),
        Check("import", "tokenizers", 120, tokenizers_round_trip),
        Check("import", "transformers", 300, transformers_forward),
        Check("device", "driver", 180, driver),
        Check("device", "tensor", 180, tensor),
        Check("device", "matmul in 32 bits", 180, matmul_single),
        Check("device", "matmul in 16 bits", 180, matmul_half),
        Check("device", "backward", 180, backward),
        Check("device", "torch.compile", 600, compiled),
        Check("device", "triton kernel", 300, triton_kernel),
        Check("device", "attention", 180, sdpa),
        Check("device", "flash-attn", 180, flash_attention),
        Check("device", "bitsandbytes 8 bits", 180, quant_eight),
        Check("device", "bitsandbytes 4 bits", 180, quant_four),
        Check("device", "bitsandbytes optimizer", 180, quant_optimizer),
        Check("device", "memory", 180, memory),
        Check("device", "all-reduce", 300, all_reduce),
    ]


def all_checks(expect: dict[str, Any]) -> list[Check]:
    """Every check in the order in which they run."""
    fixed = fixed_checks()
    place = next(number for number, check in enumerate(fixed) if check.level == "import")
    return [*fixed[:place], *import_checks(expect), *fixed[place:]]


def run_one(check: Check, context: Context) -> Result:
    """The check in this process; whatever it raises is a verdict."""
    start = time.monotonic()
    verdict, detail, facts = PASS, "", None
    try:
        detail, facts = check.run(context)
    except SkippedError as problem:
        verdict, detail = SKIP, str(problem)
    except FailedError as problem:
        verdict, detail = FAIL, str(problem)
    except BaseException as problem:
        traceback.print_exc()
        verdict, detail = FAIL, f"{type(problem).__name__}: {problem}"
    return Result(check.level, check.name, verdict, " ".join(detail.split()), time.monotonic() - start, facts)


def run_child(check: Check, words: Sequence[str], patience: float = 1.0) -> Result:
    """The check in a child process, started by the command `words`."""
    start = time.monotonic()
    limit = check.seconds * patience
    with tempfile.TemporaryDirectory() as folder:
        answer, log = os.path.join(folder, "answer"), os.path.join(folder, "log")
        with open(log, "wb") as stream:
            line = [*words, "--one", f"{check.level}/{check.name}", "--answer", answer]
            child = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, start_new_session=True)
            try:
                status: int | None = child.wait(limit)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                _end(child)
        seconds = time.monotonic() - start
        with contextlib.suppress(OSError, ValueError), open(answer, encoding="utf-8") as found:
            row = json.load(found)
            return Result(check.level, check.name, row["verdict"], row["detail"], seconds, row.get("facts"))
        what = f"no answer within {limit:g} s" if status is None else _ended(status)
        return Result(check.level, check.name, FAIL, f"{what}{_last(log)}", seconds)


def _end(child: Any) -> None:
    """Ends what is left of a child and of those it started."""
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(child.pid, signal.SIGKILL)
        else:
            child.kill()
    child.wait()


def _ended(status: int) -> str:
    if status >= 0:
        return f"ended with status {status} and no answer"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"


def _last(log: str) -> str:
    """The last line that the child said."""
    with open(log, "rb") as stream:
        stream.seek(max(0, os.path.getsize(log) - 4096))
        lines = [line.strip() for line in stream.read().decode("utf-8", "replace").splitlines() if line.strip()]
    return f"; it said last: {lines[-1][:300]}" if lines else ""


def report(results: Sequence[Result], levels: Sequence[str], device: str) -> dict[str, Any]:
    """The report as JSON knows it."""
    here = versions()
    libc = " ".join(part for part in platform.libc_ver() if part)
    summary = {verdict: sum(result.verdict == verdict for result in results) for verdict in (PASS, FAIL, SKIP)}
    return {
        "schema": SCHEMA, "status": FAIL if summary[FAIL] else PASS, "levels": list(levels), "device": device,
        "environment": {
            "python": platform.python_version(), "platform": f"{platform.system().lower()}_{platform.machine()}", "libc": libc,
            "packages": len(here), "torch": here.get("torch", ""),
        },
        "summary": summary, "checks": [result.row() for result in results],
    }  # fmt: skip


def chosen(given: Any) -> list[Check]:
    """The checks that the command line asks for."""
    listed = all_checks(given.expect) if "import" in given.levels else fixed_checks()
    wanted = [check for check in listed if check.level in given.levels]
    if given.only:
        wanted = [check for check in wanted if any(part in f"{check.level}/{check.name}" for part in given.only)]
    return wanted


def parsed(words: Sequence[str]) -> Any:
    """The command line."""
    parser = argparse.ArgumentParser(description="Whether this environment works. Prints a report as JSON; exit status 7: no.")
    parser.add_argument("--levels", default="static,import", help=f"which levels, of {','.join(LEVELS)}")
    parser.add_argument("--device", default="", choices=("", "cpu", *KINDS), help="for level device; else the first there is")
    parser.add_argument("--expect", default="{}", help="what the plan says, as JSON, or @FILE")
    parser.add_argument("--only", action="append", default=[], help="checks with this text in their names; repeat for several")
    parser.add_argument("--patience", type=float, default=1.0, help="all time limits times this")
    parser.add_argument("--output", default="-", help="where the report goes")
    parser.add_argument("--one", default="", help=argparse.SUPPRESS)
    parser.add_argument("--answer", default="", help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    given.levels = [level for level in given.levels.split(",") if level]
    unknown = [level for level in given.levels if level not in LEVELS]
    if unknown:
        parser.error(f"no such level: {', '.join(unknown)}")
    try:
        if given.expect.startswith("@"):
            with open(given.expect[1:], encoding="utf-8") as stream:
                given.expect = json.load(stream)
        else:
            given.expect = json.loads(given.expect)
    except (OSError, ValueError) as problem:
        parser.error(f"--expect: {problem}")
    return given


def main(words: Sequence[str] | None = None) -> int:
    """0, or 7 where a check failed."""
    typed = list(sys.argv[1:] if words is None else words)
    given = parsed(typed)
    if given.one:
        return _answer_one(given)
    results = []
    for check in chosen(given):
        result = run_child(check, [sys.executable, os.path.abspath(sys.argv[0]), *typed], given.patience)
        print(result.line(), file=sys.stderr, flush=True)
        results.append(result)
    text = json.dumps(report(results, given.levels, given.device), indent=1)
    if given.output == "-":
        print(text)
    else:
        with open(given.output, "w", encoding="utf-8") as stream:
            stream.write(text + "\n")
    return _FAILED if any(result.verdict == FAIL for result in results) else 0


def _answer_one(given: Any) -> int:
    """Runs one check here and writes its result into a file, whole."""
    level, _, name = given.one.partition("/")
    check = next((check for check in fixed_checks() if (check.level, check.name) == (level, name)), None)
    if check is None and level == "import":
        check = import_check(name, given.expect)
    if check is None:
        return 2
    row = run_one(check, Context(given.expect, given.device)).row()
    with open(given.answer + ".part", "w", encoding="utf-8") as stream:
        json.dump(row, stream)
    os.replace(given.answer + ".part", given.answer)
    return 0


if __name__ == "__main__":
    sys.exit(main())
