"""A reading made compact: the row of `matrix/inspected/<package>.json` for one wheel."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from accel_env.inspect.symbols import new_strings
from accel_env.inspect.wheel import Library, Wheel

Json = dict[str, Any]
_BASE = re.compile(r"(?:lib(?:c|m|dl|rt|pthread|util|gcc_s|stdc\+\+|python[\w.]+)|ld-linux[\w-]*)\.so(?:\.\d+)*")
_RUNTIME = re.compile(r"lib(?:cudart|sycl|amdhip64|hipblas)\.so")
# Copies of other projects' libraries, as auditwheel and the like put and name them.
_VENDORED = re.compile(r"(?:^|/)[^/]+\.libs/|[.-][0-9a-f]{8}\.so")
_FAMILIES = {"glibc": "GLIBC_", "glibcxx": "GLIBCXX_", "cxxabi": "CXXABI_"}
_CUDA_SYMBOL = re.compile(r"4cuda|cuda_|CUDA")


@dataclass(frozen=True, slots=True)
class Exports:
    """The symbols that one torch release defines, with its C++ ABI; `cuda`: whether it has CUDA at all."""

    version: str
    names: frozenset[str]
    cuda: bool


def record(wheel: Wheel, torches: Iterable[Exports] = ()) -> Json:
    """What the wheel says as digests, what its libraries hold as lists. `torches`: the releases to try its symbols with."""
    own = [library for library in wheel.libraries if not _VENDORED.search(library.name)]
    row: Json = {"requires": digest_of(wheel.metadata)}
    row["python"] = next((value for key, value in wheel.metadata if key == "Requires-Python"), "")
    row["wheel_tags"] = sorted(wheel.tags) if not _same_tags(wheel) else []
    row.update(_floors(wheel.libraries))
    row["needed"] = _needed(own, {name for item in wheel.libraries for name in (item.soname, item.name.rpartition("/")[2])})
    row.update(_together(own))
    row["kernels"] = [name for name, _ in wheel.kernels]
    row["torch"] = _torch(wheel, tuple(torches), row["needed"])
    row["cxx11"] = _own_abi(own)
    row["libraries"] = _groups(own, row)
    return {key: value for key, value in row.items() if value not in ("", [], {}, None)}


def digest_of(metadata: Iterable[tuple[str, str]]) -> str:
    """The digest of what METADATA requires, as the matrix computes it of its own lists."""
    from accel_env.matrix.inspected import requires_digest

    return requires_digest(value for key, value in metadata if key == "Requires-Dist")


def _same_tags(wheel: Wheel) -> bool:
    """Whether WHEEL says what the file name says."""
    parts = wheel.filename.removesuffix(".whl").split("-")[-3:]
    spread = {f"{a}-{b}-{c}" for a in parts[0].split(".") for b in parts[1].split(".") for c in parts[2].split(".")}
    return spread == set(wheel.tags)


def _floors(libraries: Iterable[Library]) -> Json:
    """The highest version of each family that symbols need."""
    found: Json = {}
    for key, start in _FAMILIES.items():
        versions = [
            version.removeprefix(start) for library in libraries for _, version in library.versions if version.startswith(start)
        ]
        numbers = [text for text in versions if text.replace(".", "").isdigit()]
        found[key] = max(numbers, key=lambda text: [int(part) for part in text.split(".")], default="")
    return found


def _needed(libraries: Iterable[Library], inside: set[str]) -> list[str]:
    """The libraries that come from elsewhere, those of the C library and compiler left out."""
    names = {name for library in libraries for name in library.needed}
    return sorted(name for name in names if name not in inside and not _BASE.fullmatch(name))


def _code(library: Library) -> Json:
    """Architectures of a library: those that at least half of its fat binaries have, and under `some` the rest."""
    row: Json = {}
    for key, count in (("code", library.cuda.code), ("ptx", library.cuda.ptx)):
        most = {name for name in count if 2 * count[name] >= library.cuda.containers}
        row[key], row[f"some_{key}"] = _sorted(most), _sorted(set(count) - most)
    row["gfx"], row["sycl"] = _sorted(library.gfx), sorted(library.sycl.targets)
    row["sycl_devices"] = sorted(library.sycl.devices)
    return row


def _together(libraries: Iterable[Library]) -> Json:
    """Architectures of a wheel: those that all its libraries with device code have, and under `some` the rest."""
    rows = [_code(library) for library in libraries if library.cuda.containers or library.gfx or library.sycl.targets]
    found: Json = {}
    for key in ("code", "ptx"):
        listed = [row for row in rows if row["code"] or row["some_code"] or row["ptx"] or row["some_ptx"]]
        names = {name for row in listed for name in (*row[key], *row[f"some_{key}"])}
        all_have = {name for name in names if all(name in row[key] for row in listed)}
        found[key], found[f"some_{key}"] = _sorted(all_have), _sorted(names - all_have)
    for key in ("gfx", "sycl", "sycl_devices"):
        found[key] = _sorted({name for row in rows for name in row[key]})
    return found


def _sorted(names: Iterable[str]) -> list[str]:
    def key(name: str) -> tuple[int, str]:
        found = re.search(r"\d+", name)
        return (int(found[0]) if found and not name.startswith("gfx") else 0, name)

    return sorted(names, key=key)


def _groups(libraries: list[Library], whole: Mapping[str, Any]) -> list[Json]:
    """What single libraries say where that differs from the wheel as a whole; equal ones share a row."""
    rows: dict[str, Json] = {}
    for library in libraries:
        if not library.machine or not (library.cuda.containers or library.gfx or library.sycl.targets):
            continue  # thousands of bare cubins say together what they hold
        inside: Json = {"needed": [name for name in _needed([library], set()) if _RUNTIME.match(name)], **_code(library)}
        ours = {**whole, "needed": [name for name in whole.get("needed", []) if _RUNTIME.match(name)]}
        if any(value != ours.get(key, []) for key, value in inside.items()):
            inside |= _floors([library])
            differs = {key: value for key, value in inside.items() if value != ours.get(key, type(value)())}
            rows.setdefault(repr(differs), {"names": [], **differs})["names"].append(library.name)
    found = sorted(rows.values(), key=lambda row: str(row["names"][0]))
    return found if len(found) > 1 else []


def _torch(wheel: Wheel, torches: tuple[Exports, ...], needed: list[str]) -> Json:
    """What the wheel asks of torch, and which of the releases that were tried define all of it."""
    linked = any(name.startswith(("libtorch", "libc10")) for name in needed)
    if wheel.torch is None or not linked or any(library.soname == "libtorch.so" for library in wheel.libraries):
        return {}
    names = wheel.torch.wanted
    wants_cuda = any(_CUDA_SYMBOL.search(name) for name in names)
    fits: list[str] = []
    lacks: dict[str, list[str]] = {}
    for torch in torches:
        if wants_cuda and not torch.cuda:
            continue
        missing = [name for name in names if name not in torch.names]
        if missing:
            lacks.setdefault(missing[0], []).append(torch.version)
        else:
            fits.append(torch.version)
    row: Json = {"symbols": len(names), "digest": names_digest(names), "stable": wheel.torch.stable, "cxx11": wheel.torch.cxx11}
    row |= {"fits": fits, "lacks": lacks}
    return {key: value for key, value in row.items() if value not in (None, [], {})}


def names_digest(names: Iterable[str]) -> str:
    """16 hex digits over sorted names."""
    import hashlib

    return hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()[:16]


def _own_abi(libraries: Iterable[Library]) -> bool | None:
    """For torch itself: std::string of the new C++ ABI in what it defines."""
    core = [library for library in libraries if library.soname in ("libc10.so", "libtorch_cpu.so")]
    return new_strings(name for library in core for name in library.defined) if core else None


def exports_of(wheel: Wheel, version: str) -> Exports:
    """What a torch wheel offers to extensions."""
    names = frozenset(name.decode("utf-8", "replace") for library in wheel.libraries for name in library.defined)
    cuda = any(library.soname == "libtorch_cuda.so" for library in wheel.libraries)
    return Exports(version, names, cuda)
