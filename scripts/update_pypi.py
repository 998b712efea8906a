#!/usr/bin/env python3
"""Drafts the releases that PyPI has and the matrix has not, from PyPI's file lists and metadata files.

A release is drafted when it is newer, or was uploaded later, than the newest one that the matrix knows of its package. What a
draft cannot know (architectures, stack, torch) is marked `unknown`: such a build is not picked until somebody has looked.
Packages whose builds need nothing but what metadata says (numpy) are drafted whole. PyPI is whatever index pip is configured
to use by default.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from email.parser import Parser
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version

from accel_env.matrix.packages import Package, Release
from updating import edit, files, pages
from updating.known import INDEX, look_for_gone, look_for_late
from updating.metadata import read_metadata
from updating.run import Job, main
from updating.source import PYPI
from updating.wheels import Reader, UnknownWord, Wheel, package_of

LISTED = "PyPI simple index"


@dataclass(frozen=True, slots=True)
class Found:
    """A file of PyPI with what its name says; `wheel` None for a source archive."""

    file: pages.File
    version: str
    wheel: Wheel | None


def draft(job: Job) -> None:
    """Drafts for every package that has builds on PyPI."""
    known = job.model.raw.get(files.name_of(INDEX), {}).get("files", {})
    rows: dict[str, files.Row] = dict(known) if isinstance(known, Mapping) else {}
    compared = files.Compared(dict(rows))
    reader = job.reader()
    for name in job.model.names():
        ours = [package for package in job.model.packages if package.name == name]
        if not job.wants(name) or not any(
            build.index == INDEX for one in ours for release in one.releases for build in release.builds
        ):
            continue
        page = job.source.get(f"{PYPI}{name}/", accept=pages.ACCEPT)
        new = _package(job, name, ours, pages.read_files(page), reader)
        _hashes(job, name, ours, new, pages.read_files(page), compared)
    if compared.added or compared.filled:
        source = str(job.model.raw[files.name_of(INDEX)].get("source", ""))
        job.put(
            files.name_of(INDEX),
            files.render(INDEX, source, compared.rows),
            f"{len(compared.added)} new files, {len(compared.filled)} hashes for files without one",
        )


def _package(job: Job, name: str, ours: list[Package], listed: Iterable[pages.File], reader: Reader) -> dict[str, list[Found]]:
    """Drafts the new releases of one package; gives their files by version."""
    releases = {release.version: release for package in ours for release in package.releases}
    by_version: dict[str, list[pages.File]] = {}
    for file in listed:
        if version := _version_of(file.name):
            by_version.setdefault(version, []).append(file)
    look_for_gone(job, name, releases, by_version)
    look_for_late(job, name, releases, by_version, reader)
    new: dict[str, list[Found]] = {}
    versions = sorted(_new(releases, by_version), key=Version)
    if name in job.settings.get("pypi", {}).get("newest_of_series", ()):
        versions = list({Version(version).release[:2]: version for version in versions}.values())
    for version in versions:
        try:
            found = [Found(file, version, reader.read(file.name)) for file in by_version[version]]
        except UnknownWord as problem:
            job.unknown(str(problem))
            continue
        wheels = [one for one in found if one.wheel and one.wheel.tags and one.wheel.platforms]
        if not wheels:
            job.notes.append(f"{name} {version} has no wheel for a platform of the matrix: add it by hand if it is wanted")
            continue
        _release(job, name, ours, version, wheels)
        new[version] = wheels
    return new


def _version_of(file: str) -> str:
    """The release that a file belongs to, empty for what names none."""
    stem = file.removesuffix(".tar.gz").removesuffix(".zip")
    text = file.split("-")[1] if file.endswith(".whl") else stem.rpartition("-")[2]
    try:
        version = Version(text)
    except (InvalidVersion, IndexError):
        return ""
    return "" if version.local else str(version)


def _new(releases: Mapping[str, Release], by_version: Mapping[str, list[pages.File]]) -> list[str]:
    """The versions that are newer, or were uploaded later, than everything known; yanked ones are left out, and pre-releases
    where the newest that is known is none."""
    known = {str(Version(version)) for version in releases}
    newest = max((Version(version) for version in releases), default=Version("0"))
    last = max((release.date for release in releases.values()), default="")
    return [
        version
        for version, listed in by_version.items()
        if version not in known
        and not all(file.yanked for file in listed)
        and (newest.is_prerelease or not Version(version).is_prerelease)
        and (Version(version) > newest or (last and min(file.uploaded or last for file in listed) > last))
    ]


def _release(job: Job, name: str, ours: list[Package], version: str, wheels: list[Found]) -> None:
    """Puts one release into the package's file (torch has one file per release)."""
    requires = {one.file.name: _requires(job, one) for one in _samples(wheels)}
    python = sorted({one.file.requires_python for one in wheels if one.file.requires_python})
    uploaded = min(one.file.uploaded for one in wheels)
    plain = _is_plain(ours)
    fact = f"pypi-{version}"
    said = f"{name} {version} of {uploaded}: file names, Requires-Python and Requires-Dist (extras left out) as PyPI has them"
    if not plain:
        said += ". Nobody has read yet what its builds need (stack, architectures, torch): they are not picked"
    head: dict[str, Any] = {"version": version, "date": uploaded}
    if len(python) == 1:
        head["requires_python"] = python[0]
    elif python:
        job.notes.append(f"{name} {version}: its files differ in Requires-Python ({', '.join(python)}): none was drafted")
    common = max(requires.values(), key=lambda row: sum(row == other for other in requires.values()))
    if common:
        head["requires"] = list(common)
    head["fact"] = fact
    builds = [_build(row, fact, plain, requires, common) for row in _grouped(wheels)]
    block = edit.fact_block(fact, said, f"PyPI metadata and file list of {name} {version}", "vendor", job.today)
    _place(job, name, ours, version, block, edit.release_block(head, builds))


def _place(job: Job, name: str, ours: list[Package], version: str, fact: list[str], release: list[str]) -> None:
    folders = {package.file.partition("/")[0] for package in ours}
    if folders == {"torch"}:
        newest = max(ours, key=lambda package: Version(package.releases[0].version))
        head = ["schema: accel-env/package/1", f"package: {name}", f"module: {newest.module}", f"summary: {newest.summary}"]
        job.put(f"torch/{version}.yaml", "\n".join([*head, "facts:", *fact, "releases:", *release, ""]), f"{name} {version}")
        return
    file = ours[0].file
    text = edit.add_release(edit.add_facts(job.text(file), file, [fact]), file, version, release)
    if wrong := edit.only_added(edit.parsed(job.text(file), file)[0], edit.parsed(text, file)[0]):
        raise AssertionError(f"the draft for {file} changes {wrong}")
    job.put(file, text, f"{name} {version}")


def _is_plain(ours: list[Package]) -> bool:
    """Whether the builds of the newest release need nothing that metadata does not say."""
    releases = [release for package in ours for release in package.releases]
    newest = max(releases, key=lambda release: Version(release.version))
    return all(
        not (build.stack or build.variant or build.provides or build.rank)
        and all(need.subject.value == "libc" for need in build.needs)
        for build in newest.builds
    )


def _samples(wheels: list[Found]) -> list[Found]:
    """One wheel per platform: releases differ between platforms, hardly ever between Pythons."""
    first: dict[tuple[str, ...], Found] = {}
    for one in wheels:
        if one.wheel and (one.file.metadata or one.wheel.platforms not in first):
            first.setdefault(one.wheel.platforms, one)
    return list(first.values())


def _requires(job: Job, one: Found) -> tuple[str, ...]:
    """Requires-Dist of a wheel, word for word, without those of extras."""
    text = read_metadata(job.source, one.file)
    found: list[str] = []
    for row in Parser().parsestr(text, headersonly=True).get_all("Requires-Dist") or []:
        line = " ".join(str(row).split())
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            job.unknown(f"{one.file.name}: Requires-Dist holds `{line}`, which is no requirement")
            continue
        if "extra" not in str(requirement.marker or ""):
            found.append(line)
    return tuple(found)


def _grouped(wheels: list[Found]) -> list[tuple[tuple[str, ...], str, tuple[str, ...]]]:
    """(platforms, glibc, tags) of the builds: platforms with the same floor and tags share one."""
    tags: dict[tuple[str, str], dict[str, None]] = {}
    for one in wheels:
        for platform in one.wheel.platforms if one.wheel else ():
            floor = one.wheel.glibc if one.wheel and platform.startswith("linux") else ""
            tags.setdefault((platform, floor), {}).update(dict.fromkeys(one.wheel.tags if one.wheel else ()))
    rows: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (platform, floor), found in tags.items():
        rows.setdefault((floor, tuple(sorted(found, key=_tag_key))), []).append(platform)
    order = ("linux_x86_64", "linux_aarch64", "windows_x86_64", "windows_aarch64", "macos_aarch64", "macos_x86_64")
    grouped = [(tuple(sorted(platforms, key=order.index)), floor, found) for (floor, found), platforms in rows.items()]
    return sorted(grouped, key=lambda row: (order.index(row[0][0]), row[1]))


def _tag_key(tag: str) -> tuple[int, str]:
    digits = "".join(char for char in tag.partition("-")[0] if char.isdigit())
    return int(digits), tag


def _build(
    row: tuple[tuple[str, ...], str, tuple[str, ...]],
    fact: str,
    plain: bool,
    requires: Mapping[str, tuple[str, ...]],
    common: tuple[str, ...],
) -> dict[str, Any]:
    platforms, floor, tags = row
    build: dict[str, Any] = {"build": "any", "index": INDEX, "platforms": list(platforms), "tags": list(tags)}
    own = {found for file, found in requires.items() if _is_on(file, platforms)}
    if own and own != {common}:
        build["requires"] = list(sorted(own, key=lambda row: (len(row), row))[-1])
    needs: dict[str, Any] = {}
    if not plain:
        needs["published"] = {"unknown": True, "fact": fact}
        needs["arch"] = {"unknown": True, "fact": fact}
    if floor:
        needs["libc"] = {"glibc": floor, "fact": fact}
    return {**build, **({"needs": needs} if needs else {}), "fact": fact}


def _is_on(file: str, platforms: tuple[str, ...]) -> bool:
    words = {"linux": "linux", "windows": "win_", "macos": "macosx"}
    return any(words[place.partition("_")[0]] in file for place in platforms)


def _hashes(
    job: Job,
    name: str,
    ours: list[Package],
    new: Mapping[str, list[Found]],
    listed: Iterable[pages.File],
    compared: files.Compared,
) -> None:
    """Hashes of the new releases' files, where the matrix keeps hashes of the package; what is known must still be as it was."""
    mine = {file: row for file, row in compared.rows.items() if package_of(file) == name}
    if not mine:
        return
    fresh = {one.file.name for found in new.values() for one in found}
    seen = [files.Seen(file.name, file.sha256, file.size) for file in listed if file.name in mine or file.name in fresh]
    result = files.compare(mine, seen, LISTED, "vendor", complete=mine)
    for line in result.changed:
        job.broken(f"{name}: PyPI has another file under a known name: {line}")
    for file in result.gone:
        job.broken(f"{name}: PyPI lists {file} no more")
    compared.rows.update(result.rows)
    compared.added += result.added
    compared.filled += result.filled


if __name__ == "__main__":
    sys.exit(main(__doc__ or "", draft))
