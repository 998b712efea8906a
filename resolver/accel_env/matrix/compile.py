"""All files of the matrix -> typed values -> the sections of the compiled form. Imported only when something has changed."""
from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from accel_env.errors import InputError
from accel_env.matrix import installed, store, tables
from accel_env.matrix.amend import Amender
from accel_env.matrix.brought import Code, brought_sections, read_images
from accel_env.matrix.bundles import parse_bundles
from accel_env.matrix.codec import flatten, pack_candidates
from accel_env.matrix.devices import key_of
from accel_env.matrix.expand import Expander
from accel_env.matrix.inspected import Reading, parse_inspected
from accel_env.matrix.packages import Package, parse_package
from accel_env.matrix.pins import clashes
from accel_env.matrix.profiles import parse_profiles
from accel_env.matrix.read import Faults, Row, dotted, with_lines
from accel_env.matrix.types import Absent, Artifact, Bundle, DeviceRow, Index, KnownConflict, Profile, PythonRelease, Stack
from accel_env.model import Candidate, Fact, Image, Need

if TYPE_CHECKING:
    from accel_env.matrix.codec import Flat

_SHOWN = 20
T = TypeVar("T")


@dataclass(slots=True)
class Model:
    """Everything that the files say, before candidates are spread out. `raw`: file -> its plain mapping.

    `documents`: what the files hold that belong to one stage alone and are checked there. `moved`: from where.
    """

    version: str = ""
    digest: str = ""
    facts: dict[str, Fact] = field(default_factory=dict)
    forbidden: list[tuple[str, str, Need]] = field(default_factory=list)
    moved: dict[str, str] = field(default_factory=dict)
    packages: list[Package] = field(default_factory=list)
    stacks: dict[str, Stack] = field(default_factory=dict)
    vendors: dict[str, tables.Vendor] = field(default_factory=dict)
    pythons: tuple[PythonRelease, ...] = ()
    images: tuple[Image, ...] = ()
    code: dict[str, dict[str, Code]] = field(default_factory=dict)
    indexes: dict[str, Index] = field(default_factory=dict)
    conflicts: tuple[KnownConflict, ...] = ()
    profiles: dict[str, Profile] = field(default_factory=dict)
    bundles: dict[str, Bundle] = field(default_factory=dict)
    artifacts: dict[str, dict[str, Artifact]] = field(default_factory=dict)
    readings: list[Reading] = field(default_factory=list)
    artifact_files: dict[str, str] = field(default_factory=dict)
    documents: dict[str, dict[str, object]] = field(default_factory=dict)
    raw: dict[str, dict[str, object]] = field(default_factory=dict)

    def names(self) -> tuple[str, ...]:
        """The modelled distributions, sorted."""
        return tuple(sorted({package.name for package in self.packages}))

    def candidates(self, amender: Amender | None = None) -> Iterator[tuple[str, dict[str, tuple[Candidate, ...]]]]:
        """(distribution, platform -> candidates); with an amender, with what was read out of their files."""
        expander = Expander(self.names(), self.artifacts)
        for name in self.names():
            spread = expander.candidates(package for package in self.packages if package.name == name)
            yield name, amender.amend(spread) if amender else spread


def fact_uses(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """(dotted path, id as written) of every `fact` in a plain mapping, the `facts` themselves left out."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            inner = dotted(path, key)
            if key == "fact" and isinstance(item, str):
                yield inner, item
            elif key != "facts":
                yield from fact_uses(item, inner)
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from fact_uses(item, dotted(path, place))


def stem_of(file: str) -> str:
    """The part of fact ids that names the file."""
    return os.path.splitext(file)[0]


def read_model(root: str, overlays: tuple[str, ...] = ()) -> Model:
    """The typed matrix; InputError with all faults where a file breaks a rule."""
    faults = Faults()
    files = [path for path, _, _ in store.list_files(root)]
    contents = {path: store.read_bytes(os.path.join(root, path)) for path in files}
    installed.refuse_damaged(root, store.digest_of(contents))
    model = Model()
    for path, content in contents.items():
        _read_file(model, path, content, faults)
    for shown, place in _overlay_names(overlays).items():
        contents[shown] = store.read_bytes(place)
        from accel_env.matrix.overlay import read_overlay

        read_overlay(model, shown, contents[shown], faults)
    if faults.items:
        raise _refusal(faults, contents, root)
    model.digest = store.digest_of(contents)
    return model


def _overlay_names(overlays: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for place in overlays:
        shown = f"overlay/{os.path.basename(place)}"
        if shown in found:
            raise InputError("overlay-twice", f"two overlays are named {os.path.basename(place)}",
                             hint="give them different file names: facts of an overlay are named after its file")
        found[shown] = place
    return found


def _refusal(faults: Faults, contents: Mapping[str, bytes], root: str) -> InputError:
    listed = list(with_lines(faults.items[:_SHOWN], contents))
    more = len(faults.items) - len(listed)
    lines = [str(fault) for fault in listed] + ([f"and {more} more"] if more else [])
    place = ", ".join(filter(None, (listed[0].file, listed[0].path)))
    count = len(faults.items)
    message = f"a fault in {place}" if count == 1 else f"{count} faults in the matrix, the first in {place}"
    return InputError("matrix-invalid", message, context=tuple(lines),
                      hint=f"correct the file; {os.path.join(root, 'README.md')} describes the format")


def _read_file(model: Model, path: str, content: bytes, faults: Faults) -> None:
    folder, _, name = path.rpartition("/")
    kinds = {"torch": "package", "packages": "package", "stacks": "stack", "devices": "devices", "artifacts": "artifacts"}
    if folder == "inspected":
        kinds[folder] = "inspected" if name.endswith(".json") else stem_of(name)
    kind = kinds[folder] if folder else stem_of(name)
    before = len(faults.items)
    plain = store.parse_json(content, path, faults) if name.endswith(".json") else store.parse_yaml(content, path, faults)
    if not plain and len(faults.items) > before:
        return
    model.raw[path] = plain
    row = open_row(plain, faults, path, kind)
    if kind not in ("artifacts", "inspected"):
        model.facts.update(tables.parse_facts(row))
    reader = _READERS.get(kind)
    if reader:
        reader(model, row)
    else:
        model.documents[kind] = {key: value for key, value in plain.items() if key not in ("schema", "facts")}


def open_row(plain: Mapping[str, object], faults: Faults, path: str, kind: str) -> Row:
    """The mapping of a file, its `schema` checked."""
    row = Row(plain, faults, path, stem_of(path))
    wanted = f"accel-env/{kind}/1"
    found = row.text("schema")
    if found and found != wanted:
        row.fault("schema", f"must be {wanted}, is {found}")
    return row


def _once(row: Row, known: Mapping[str, object], key: str, name: str) -> None:
    if name and name in known:
        row.fault(key, f"`{name}` has another file already")


def _read_matrix(model: Model, row: Row) -> None:
    model.version = row.text("version")
    days = row.whole("stale_after_days")
    model.documents["matrix"] = {"stale_after_days": days} if days else {}
    row.close()


def _read_package(model: Model, row: Row) -> None:
    model.packages.append(parse_package(row))


def _read_stack(model: Model, row: Row) -> None:
    stack = tables.parse_stack(row)
    _once(row, model.stacks, "stack", stack.name)
    model.stacks[stack.name] = stack


def _read_devices(model: Model, row: Row) -> None:
    vendor = tables.parse_devices(row)
    _once(row, model.vendors, "vendor", vendor.vendor)
    model.vendors[vendor.vendor] = vendor


def _read_artifacts(model: Model, row: Row) -> None:
    index, files = tables.parse_artifacts(row)
    _once(row, model.artifacts, "index", index)
    model.artifacts[index] = files
    model.artifact_files[index] = row.file


def _read_inspected(model: Model, row: Row) -> None:
    package, readings = parse_inspected(row)
    if row.file != f"inspected/{package}.json":
        row.fault("package", f"readings of `{package}` belong into inspected/{package}.json")
    model.readings.extend(readings)


def _reader(parse: Callable[[Row], T], name: str) -> Callable[[Model, Row], None]:
    def read(model: Model, row: Row) -> None:
        setattr(model, name, parse(row))
        row.close()

    return read


_READERS: Mapping[str, Callable[[Model, Row], None]] = {
    "matrix": _read_matrix, "package": _read_package, "stack": _read_stack, "devices": _read_devices,
    "artifacts": _read_artifacts, "inspected": _read_inspected, "images": read_images,
    "indexes": _reader(tables.parse_indexes, "indexes"), "python": _reader(tables.parse_pythons, "pythons"),
    "conflicts": _reader(tables.parse_conflicts, "conflicts"), "profiles": _reader(parse_profiles, "profiles"),
    "bundles": _reader(parse_bundles, "bundles"),
}


def compile_matrix(root: str, overlays: tuple[str, ...] = ()) -> tuple[str, dict[str, Any]]:
    """(digest, section name -> what `marshal` stores)."""
    model = read_model(root, overlays)
    sections: dict[str, Any] = {
        "head": (model.version, model.digest),
        "packages": {name: _package_info(model, name) for name in model.names()},
        "stacks": tuple(_pack_stack(stack) for stack in model.stacks.values()),
        "devices": {vendor.vendor: pack_vendor(vendor) for vendor in model.vendors.values()},
        "pythons": tuple(map(flatten, model.pythons)),
        "images": tuple(map(flatten, model.images)),
        "indexes": tuple(map(flatten, model.indexes.values())),
        "conflicts": tuple(map(flatten, model.conflicts)),
        "profiles": tuple(map(flatten, model.profiles.values())),
        "bundles": tuple(map(flatten, model.bundles.values())),
        "artifacts": tuple(sorted(model.artifacts)),
    }
    for name, document in model.documents.items():
        sections[f"documents/{name}"] = document
    for index, files in model.artifacts.items():
        sections[f"artifacts/{index}"] = {name: flatten(artifact) for name, artifact in files.items()}
    platforms: dict[str, tuple[str, ...]] = {}
    amender = Amender(model.readings, model.artifacts, model.facts, model.documents.get("disagreements", {}))
    for name, spread in model.candidates(amender):
        platforms[name] = tuple(spread)
        for platform, candidates in spread.items():
            sections[f"candidates/{name}/{platform}"] = pack_candidates(candidates)
    sections["platforms"] = platforms
    sections.update(brought_sections(model))
    for name, tags in amender.tags.items():
        sections[f"inspected/{name}"] = tags
    beside, said = clashes(model.packages, model.facts)
    sections["beside"] = tuple(beside)
    sections.update({f"beside/{name}": {version: tuple(rows) for version, rows in told.items()} for name, told in beside.items()})
    sections.update(_fact_sections({**model.facts, **amender.facts, **said}))
    return model.digest, sections


def _fact_sections(facts: Mapping[str, Fact]) -> dict[str, Any]:
    """The facts by file, and the list of these files."""
    by_file: dict[str, dict[str, Flat]] = {}
    for full, fact in facts.items():
        by_file.setdefault(full.rpartition(":")[0], {})[full] = flatten(fact)
    return {"facts": tuple(sorted(by_file)), **{f"facts/{stem}": rows for stem, rows in by_file.items()}}


def _package_info(model: Model, name: str) -> Flat:
    """(module, summary, absent rows); a later file (an overlay) has the word, what is absent adds up."""
    files = [package for package in model.packages if package.name == name]
    absent: dict[Absent, None] = {}
    for package in files:
        absent.update(dict.fromkeys(package.absent))
    return files[-1].module, files[-1].summary, tuple(map(flatten, absent))


def _pack_stack(stack: Stack) -> Flat:
    return flatten(stack)


def pack_vendor(vendor: tables.Vendor) -> Any:
    """The vendor as `DeviceTable` takes it."""
    keys: dict[str, int] = {}
    pci: dict[str, int] = {}
    for place, row in enumerate(vendor.rows):
        # Names before aliases: an alias never takes the name of another product.
        keys.setdefault(key_of(row.name, vendor.strip), place)
        for device in row.pci:
            pci.setdefault(device, place)
    for place, row in enumerate(vendor.rows):
        for alias in row.aliases:
            keys.setdefault(key_of(alias, vendor.strip), place)
    keys.pop("", None)
    return vendor.pci_vendor, vendor.strip, tuple(map(flatten, vendor.rows)), keys, pci


def with_rows(vendor: tables.Vendor, rows: tuple[DeviceRow, ...]) -> tables.Vendor:
    """The vendor with these rows before its own; a row of the same name is replaced."""
    names = {row.name for row in rows}
    return replace(vendor, rows=rows + tuple(row for row in vendor.rows if row.name not in names))
