"""A site's own file on top of the matrix: packages, devices, images, indexes, conflicts and what is forbidden."""
from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from accel_env.matrix import checks, store, tables
from accel_env.matrix.bundles import parse_bundles
from accel_env.matrix.packages import Build, Package, Release, parse_package
from accel_env.matrix.read import Faults, Row
from accel_env.model import Fact, Need, Subject

if TYPE_CHECKING:
    from accel_env.matrix.compile import Model


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
    _packages(model, row)
    _devices(model, row)
    model.indexes.update(tables.parse_indexes(row))
    images = tables.parse_images(row)
    named = {image.ref for image in images}
    model.images = images + tuple(image for image in model.images if image.ref not in named)
    model.bundles.update(parse_bundles(row))
    if "conflicts" in row:
        model.conflicts += tables.parse_conflicts(row)
    for item in row.rows("forbid"):
        _forbid(model, item)
    row.close()
    for path, written in fact_uses(plain):
        if (written if ":" in written else f"{row.stem}:{written}") not in model.facts:
            faults.add(file, path, f"there is no fact `{written}`")


def _packages(model: Model, row: Row) -> None:
    for item in row.rows("packages"):
        if "schema" in item:
            item.one_of("schema", ("accel-env/package/1",))
        model.facts.update(tables.parse_facts(item))
        package = parse_package(item, overlay=True)
        others = {known.module for known in model.packages if known.name == package.name} - {package.module}
        if others:
            item.fault("module", f"is `{package.module}`, the matrix says `{min(others)}`")
        model.packages.append(package)


def _devices(model: Model, row: Row) -> None:
    from accel_env.matrix.compile import with_rows

    for item in row.rows("devices"):
        vendor = item.text("vendor")
        pci_vendor = item.optional("pci_vendor", checks.pci)
        known = model.vendors.get(vendor, tables.Vendor(vendor, pci_vendor, (), ()))
        model.vendors[vendor] = with_rows(known, (tables.parse_device(item, vendor),))


def _forbid(model: Model, row: Row) -> None:
    """A forbidden release gets a need on itself that nothing can meet, so that the refusal tells why."""
    name, why = row.text("name", check=checks.distribution), row.text("why")
    allows = row.optional("allows", checks.specifier)
    fact = row.fact(required=False)
    row.close()
    if not fact:
        fact = f"{row.stem}:{row.path}"
        model.facts[fact] = Fact(fact, why, row.file, "vendor", "")
    if name not in {package.name for package in model.packages}:
        row.fault("name", f"the matrix has no package `{name}`")
    need = Need(Subject.PACKAGE, fact, name=name, unknown=True)
    try:
        wanted = SpecifierSet(allows)
    except InvalidSpecifier:
        return
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
