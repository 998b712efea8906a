"""What was read out of wheels (`matrix/inspected/<package>.json`), typed, and found again by file or by candidate."""
from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from accel_env.matrix import checks
from accel_env.matrix.read import Row

SCHEMA = "accel-env/inspected/1"
_FORM = str.maketrans("", "", " ()'\"")
_EXTRA = re.compile(r";.*\bextra\b")
_FLOORS = ("glibc", "glibcxx", "cxxabi")
_LISTS = ("needed", "code", "some_code", "ptx", "some_ptx", "gfx", "sycl", "sycl_devices")


@dataclass(frozen=True, slots=True)
class Contents:
    """What libraries hold. `names`: which ones, empty for the wheel as a whole. `code`, `ptx`: throughout, which is in at least
    half of the fat binaries of a library, and in all libraries of a wheel that hold any; `some_code`, `some_ptx`: the rest.
    Versions are the highest that symbols need, empty for none."""

    names: tuple[str, ...] = ()
    glibc: str = ""
    glibcxx: str = ""
    cxxabi: str = ""
    needed: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    some_code: tuple[str, ...] = ()
    ptx: tuple[str, ...] = ()
    some_ptx: tuple[str, ...] = ()
    gfx: tuple[str, ...] = ()
    sycl: tuple[str, ...] = ()
    sycl_devices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TorchSymbols:
    """What a wheel asks of torch: the number of symbols, their digest, whether all are of the stable C shim, whether they hold
    std::string of the new ABI (empty: no name tells), the releases that define all, and for the others one that is missing."""

    symbols: int
    digest: str
    stable: bool
    cxx11: str
    fits: tuple[str, ...]
    lacks: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Held:
    """What a file says and holds; several files may hold the same. `requires` is a digest over Requires-Dist without extras;
    `wheel_tags` only where WHEEL says something else than the file name; `cxx11` (torch alone): the C++ ABI that it offers."""

    requires: str = ""
    python: str = ""
    wheel_tags: tuple[str, ...] = ()
    whole: Contents = field(default_factory=Contents)
    kernels: tuple[str, ...] = ()
    torch: TorchSymbols | None = None
    cxx11: str = ""
    libraries: tuple[Contents, ...] = ()

    def of(self, variant: str) -> Contents | None:
        """What counts for a variant: its own libraries together (of `rocm64-older` those of `rocm64`), the wheel as a whole where
        it tells no libraries apart. None where it does, and none is named after the variant."""
        if not variant or not self.libraries:
            return self.whole
        own = re.compile(rf"(?<![0-9a-z])(?:lib[0-9a-z]*_)?{re.escape(variant.partition('-')[0])}(?![0-9a-z])[^/]*$")
        found = [item for item in self.libraries if any(own.search(name) for name in item.names)]
        return reduce(_joined, found) if found else None


@dataclass(frozen=True, slots=True)
class Reading:
    """One inspected file. `size` in bytes, `read` is the day."""

    package: str
    index: str
    filename: str
    sha256: str
    size: int
    read: str
    held: Held


def _joined(a: Contents, b: Contents) -> Contents:
    lists = [tuple(dict.fromkeys((*getattr(a, key), *getattr(b, key)))) for key in ("names", *_LISTS)]
    floors = [max(getattr(a, key), getattr(b, key), key=_numbers) for key in _FLOORS]
    return Contents(lists[0], floors[0], floors[1], floors[2], *lists[1:])


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(".") if part.isdigit()]


def requires_digest(requires: Iterable[str]) -> str:
    """16 hex digits over Requires-Dist, its order, blanks, quotes and extras left aside."""
    return hashlib.sha256("\n".join(sorted(plain_requirements(requires))).encode()).hexdigest()[:16]


def plain_requirements(requires: Iterable[str]) -> set[str]:
    """The requirements in one spelling, those of extras left out."""
    return {text.translate(_FORM).lower().replace("_", "-") for text in requires if not _EXTRA.search(text)}


def parse_inspected(row: Row) -> tuple[str, tuple[Reading, ...]]:
    """The package, and its files."""
    package = row.text("package", check=checks.distribution)
    row.optional("source")
    held = {name: _held(item) for name, item in row.keyed("contents", required=True).items()}
    found: list[Reading] = []
    for index, files in row.keyed("indexes", required=True).items():
        for name in files:
            item = files.maybe(name)
            if item is not None:
                found.append(_reading(item, package, index, name, held))
        files.close()
    row.close()
    return package, tuple(found)


def _reading(row: Row, package: str, index: str, name: str, held: Mapping[str, Held]) -> Reading:
    key = row.text("contents")
    if key and key not in held:
        row.fault("contents", f"`{key}` is not among the contents of this file")
    found = Reading(
        package, index, name, row.text("sha256", check=checks.sha256), row.whole("size") or 0,
        row.text("read", check=checks.date), held.get(key, Held()),
    )
    row.close()
    return found


def _held(row: Row) -> Held:
    torch, whole = row.maybe("torch"), _contents(row, ())
    found = Held(
        row.text("requires"), row.optional("python", checks.specifier), row.texts("wheel_tags"), whole,
        row.texts("kernels", check=checks.arch), _torch(torch) if torch else None, _truth(row, "cxx11"),
        tuple(_group(item, whole) for item in row.rows("libraries")),
    )
    row.close()
    return found


def _contents(row: Row, names: tuple[str, ...], whole: Contents | None = None) -> Contents:
    """A key that a group lacks is as in the wheel as a whole."""
    floors = [
        row.optional(key, checks.version, empty=True) if key in row or not whole else str(getattr(whole, key)) for key in _FLOORS
    ]
    lists: list[tuple[str, ...]] = [row.texts(key) if key in row or not whole else getattr(whole, key) for key in _LISTS]
    return Contents(names, floors[0], floors[1], floors[2], *lists)


def _group(row: Row, whole: Contents) -> Contents:
    found = _contents(row, row.texts("names", required=True), whole)
    row.close()
    return found


def _torch(row: Row) -> TorchSymbols:
    missing = row.maybe("lacks")
    lacks = {version: symbol for symbol in missing or () for version in (missing.texts(symbol) if missing else ())}
    found = TorchSymbols(
        row.whole("symbols") or 0, row.text("digest"), row.flag("stable"), _truth(row, "cxx11"),
        row.texts("fits", check=checks.version), lacks,
    )
    row.close()
    return found


def _truth(row: Row, key: str) -> str:
    return ("true" if row.flag(key) else "false") if key in row else ""


def read_readings(root: str, package: str) -> tuple[Reading, ...]:
    """The readings of one package in the matrix at `root`; empty where there are none. InputError for a broken file."""
    from accel_env.errors import InputError
    from accel_env.matrix import store
    from accel_env.matrix.read import Faults

    path = f"inspected/{package}.json"
    place = os.path.join(root, "inspected", f"{package}.json")
    if not os.path.isfile(place):
        return ()
    faults = Faults()
    row = Row(store.parse_json(store.read_bytes(place), path, faults), faults, path, f"inspected/{package}")
    row.text("schema")
    _, found = parse_inspected(row)
    if faults.items:
        raise InputError("matrix-invalid", f"{place}: {faults.items[0]}", hint="`accel-env matrix lint` lists all faults")
    return found


def reading_of(package: str, index: str, filename: str, row: Mapping[str, Any]) -> Reading:
    """A fresh reading: `row` holds `sha256`, `size` and `held`, what a row under `contents` holds."""
    from accel_env.matrix.read import Faults

    held = _held(Row(row["held"], Faults(), filename, filename))
    return Reading(package, index, filename, row["sha256"], row["size"], "now", held)


def plain(held: Held) -> dict[str, object]:
    """What a reading holds, by key, empty values left out; without the torch releases that it was tried against."""
    found: dict[str, object] = {key: getattr(held, key) for key in ("requires", "python", "wheel_tags", "kernels", "cxx11")}
    found |= {key: getattr(held.whole, key) for key in (*_FLOORS, *_LISTS)}
    if held.torch is not None:
        found["torch"] = f"{held.torch.symbols} symbols, {held.torch.digest}"
    for item in held.libraries:
        found["; ".join(item.names)] = tuple((key, getattr(item, key)) for key in (*_FLOORS, *_LISTS))
    return {key: value for key, value in found.items() if value}
