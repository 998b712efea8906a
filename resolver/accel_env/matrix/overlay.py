"""A site's own file on top of the matrix: packages, devices, images, indexes, mirrors, conflicts, profiles, what is forbidden."""
from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from accel_env.matrix import checks, store, tables
from accel_env.matrix.bundles import parse_bundles
from accel_env.matrix.packages import Build, Package, Release, parse_package
from accel_env.matrix.profiles import parse_profiles
from accel_env.matrix.read import Faults, Row
from accel_env.model import Fact, Image, Need, Subject

if TYPE_CHECKING:
    from accel_env.matrix.compile import Model
    from accel_env.model import Image


def read_overlay(model: Model, file: str, content: bytes, faults: Faults) -> None:
    """Adds an overlay to the model; its facts are named after its file. What is wrong goes to `faults`."""
    from accel_env.matrix.compile import fact_uses, open_row

    before = len(faults.items)
    plain = store.parse_yaml(content, file, faults)
    if len(faults.items) > before:
        return
    model.raw[file] = plain
    row = open_row(plain, faults, file, "overlay")
    model.facts.update(tables.parse_facts(row))
    held = _held(model, file)
    _packages(model, row, held)
    _devices(model, row, held)
    indexes, images, bundles = tables.parse_indexes(row), tables.parse_images(row), parse_bundles(row)
    model.indexes.update(indexes)
    named = {image.ref for image in images}
    model.images = laid_images(images, model.images)
    model.bundles.update(bundles)
    held |= {"indexes": [*indexes], "images": sorted(named), "bundles": [*bundles]}
    _mirrors(model, row, held)
    if "profiles" in row:
        model.profiles.update(parse_profiles(row))
    if "conflicts" in row:
        model.conflicts += tables.parse_conflicts(row)
    for item in row.rows("forbid"):
        _forbid(model, item, held)
    row.close()
    for path, written in fact_uses(plain):
        if (written if ":" in written else f"{row.stem}:{written}") not in model.facts:
            faults.add(file, path, f"there is no fact `{written}`")


def laid_images(own: tuple[Image, ...], known: tuple[Image, ...]) -> tuple[Image, ...]:
    """The overlay's images before the matrix's, whose rows they replace. One that says nothing but a digest pins the matrix's row
    of its reference, which stays what it is and where it is."""
    pins = {image.ref: image for image in own if image == Image(image.ref, image.digest, image.digests, fact=image.fact)}
    there = {image.ref for image in known} & {ref for ref, pin in pins.items() if pin.digest or pin.digests}
    named = {image.ref for image in own} - there
    return (
        *(image for image in own if image.ref in named),
        *(
            replace(image, digest=pins[image.ref].digest, digests=pins[image.ref].digests) if image.ref in there else image
            for image in known
            if image.ref not in named
        ),
    )


def _held(model: Model, file: str) -> dict[str, list[str]]:
    """What an overlay brings, by kind, kept for the plans that rest on it."""
    rows = model.documents.setdefault("overlays", {})
    held: dict[str, list[str]] = {kind: [] for kind in ("builds", "devices", "forbids")}
    rows[file] = held
    return held


def _mirrors(model: Model, row: Row, held: dict[str, list[str]]) -> None:
    """URLs of indexes and registries of images, its own ones left alone: they say where they are.

    What an overlay below has moved is known by the place that it was moved from (`moved`) and by the one that it has now.
    """
    from accel_env.matrix.mirrors import moved_images, moved_indexes

    mirrors = row.pairs("mirrors", check=checks.url, names=checks.url)
    registries = row.pairs("registries", check=checks.registry, names=checks.registry)
    for name in (*held["indexes"], *held["images"]):
        model.moved.pop(name, None)
    own = set(held["indexes"])
    now = {name: index for name, index in model.indexes.items() if name not in own}
    before = {name: replace(index, url=model.moved.get(name, index.url)) for name, index in now.items()}
    indexes = {**moved_indexes(now, mirrors), **moved_indexes(before, mirrors)}
    model.moved.update({name: before[name].url for name in indexes})
    model.indexes.update(indexes)
    images: dict[str, Image] = {}
    for image in (image for image in model.images if image.ref not in held["images"]):
        ref = model.moved.get(image.ref, image.ref)
        there = (*moved_images((replace(image, ref=ref),), registries).values(), *moved_images((image,), registries).values())
        if there:
            images[image.ref] = there[0]
            model.moved[there[0].ref] = ref
    model.images = tuple(images.get(image.ref, image) for image in model.images)
    held["indexes"] += indexes
    held["images"] += sorted(image.ref for image in images.values())


def _packages(model: Model, row: Row, held: dict[str, list[str]]) -> None:
    for item in row.rows("packages"):
        if "schema" in item:
            item.one_of("schema", ("accel-env/package/1",))
        model.facts.update(tables.parse_facts(item))
        package = parse_package(item, overlay=True)
        others = {known.module for known in model.packages if known.name == package.name} - {package.module}
        if others:
            item.fault("module", f"is `{package.module}`, the matrix says `{min(others)}`")
        model.packages.append(package)
        held["builds"] += [f"{package.name}=={one.version}+{build.build}" for one in package.releases for build in one.builds]


def _devices(model: Model, row: Row, held: dict[str, list[str]]) -> None:
    from accel_env.matrix.compile import with_rows

    for item in row.rows("devices"):
        vendor = item.text("vendor")
        pci_vendor = item.optional("pci_vendor", checks.pci)
        known = model.vendors.get(vendor, tables.Vendor(vendor, pci_vendor, (), ()))
        device = tables.parse_device(item, vendor)
        model.vendors[vendor] = with_rows(known, (device,))
        held["devices"].append(device.name)


def _forbid(model: Model, row: Row, held: dict[str, list[str]]) -> None:
    """A forbidden release gets a need on itself that nothing can meet, so that the refusal tells why."""
    name, why = row.text("name", check=checks.distribution), row.text("why")
    versions = row.optional("versions", checks.specifier)
    fact = row.fact(required=False)
    row.close()
    if not fact:
        fact = f"{row.stem}:{row.path}"
        model.facts[fact] = Fact(fact, why, row.file, "vendor", "")
    if name not in {package.name for package in model.packages}:
        row.fault("name", f"the matrix has no package `{name}`")
    held["forbids"].append(f"{name} {versions}".strip())
    need = Need(Subject.PACKAGE, fact, name=name, unknown=True)
    try:
        wanted = SpecifierSet(versions)
    except InvalidSpecifier:
        return
    model.forbidden.append((name, versions, need))
    model.packages[:] = [_refused(package, wanted, need) if package.name == name else package for package in model.packages]


def _refused(package: Package, wanted: SpecifierSet, need: Need) -> Package:
    releases = tuple(
        replace(release, builds=tuple(_with(build, need) for build in release.builds)) if _holds(wanted, release) else release
        for release in package.releases
    )
    return replace(package, releases=releases)


def _holds(wanted: SpecifierSet, release: Release) -> bool:
    return not checks.version(release.version) and wanted.contains(release.version, prereleases=True)


def _with(build: Build, need: Need) -> Build:
    return replace(build, needs=(need, *build.needs))
