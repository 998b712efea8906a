"""Level `static`: what the files say. Nothing of the environment is imported, no device is needed."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from accel_env.smoke.elf import Elf, Library, read_library
from accel_env.smoke.folders import system_folders
from accel_env.smoke.installed import distributions, name_of, native_files, normal, shown
from accel_env.smoke.verdict import DRIVER_LIBRARIES, Answer, Context, FailedError, SkippedError, some

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
