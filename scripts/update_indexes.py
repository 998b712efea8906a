#!/usr/bin/env python3
"""Collects new files and hashes of the wheel indexes (download.pytorch.org, AMD's, ...) into `artifacts/<index>.json`.

Which paths are read follows from the builds of the matrix: a build of torch on `pytorch:cu126` makes it read the page of
torch under that path. A new file is added, a hash that nobody had is filled in; a known file that is gone, or has another
hash, stops the run.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from packaging.version import InvalidVersion, Version

from accel_env.matrix.packages import Build
from updating import files, pages
from updating.run import Job, main
from updating.wheels import Reader, UnknownWord, Wheel, package_of, stack_of

Page = tuple[str, str]  # index with its path, package


def draft(job: Job) -> None:
    """Compares every page with the matrix."""
    reader = job.reader()
    _unread(job)
    by_index: dict[str, list[tuple[str, bool]]] = {}
    for (index, package), sure in sorted(_pages(job).items()):
        by_index.setdefault(index, []).append((package, sure))
    for index, packages in by_index.items():
        file = files.name_of(index)
        raw = job.model.raw.get(file, {})
        known = raw.get("files", {})
        compared = files.Compared(dict(known) if isinstance(known, Mapping) else {})
        for package, sure in packages:
            _page(job, index, package, sure, reader, compared)
        if compared.added or compared.filled:
            source = str(raw.get("source") or f"file names and sha256 as the index {index} gives them")
            job.put(
                file,
                files.render(index, source, compared.rows),
                f"{index}: {len(compared.added)} new files, {len(compared.filled)} hashes for files without one",
            )


def _pages(job: Job) -> dict[Page, bool]:
    """What to read, and whether a missing page is a fault: builds whose existence is in doubt may have none."""
    found: dict[Page, bool] = {}
    for package in job.model.packages:
        for release in package.releases:
            for build in release.builds:
                if build.index.partition(":")[0] in job.settings["indexes"] and job.wants(package.name):
                    key = (build.index, package.name)
                    found[key] = found.get(key, False) or not _is_doubtful(build, package.name)
    return found


def _unread(job: Job) -> None:
    """Indexes that builds come from and that refresh.yaml does not speak of."""
    used = {build.index.partition(":")[0] for one in job.model.packages for release in one.releases for build in release.builds}
    known = {**job.settings["indexes"], **job.settings["assets"], "pypi": None, "image": None}
    for name in sorted(used - set(known)):
        job.notes.append(f"builds come from the index {name}, and refresh.yaml does not speak of it: it is not refreshed")


def _is_doubtful(build: Build, name: str) -> bool:
    return any(need.unknown and need.name == name for need in build.needs)


def _page(job: Job, index: str, package: str, sure: bool, reader: Reader, compared: files.Compared) -> None:
    name, _, path = index.partition(":")
    base = job.model.indexes[name]
    url = "/".join(part for part in (base.url.rstrip("/"), path, "" if base.kind == "flat" else package) if part) + "/"
    page = job.source.get(url, accept=pages.ACCEPT, also=() if sure else (403, 404))
    if page.status != 200:
        job.notes.append(f"{index} holds no {package}, and the matrix doubts that it does")
        return
    rules = job.settings["indexes"][name] or {}
    listed = [file for file in pages.read_files(page) if package_of(file.name) == package and file.name.endswith(".whl")]
    mine = {file: row for file, row in compared.rows.items() if package_of(file) == package}
    wanted = list(_wanted(job, index, rules, listed, mine, reader))
    site = url.partition("://")[2].rstrip("/").removesuffix(f"/{package}")
    result = files.compare(mine, wanted, f"index page of {site}", "vendor", complete=mine)
    for line in result.changed:
        job.broken(f"{index} has another file under a known name: {line}")
    for gone in result.gone:
        job.broken(f"{index} lists {gone} no more")
    _unnamed(job, index, package, result.added, reader)
    compared.rows.update(result.rows)
    compared.added += result.added
    compared.filled += result.filled


def _wanted(
    job: Job, index: str, rules: Mapping[str, Any], listed: Iterable[pages.File], mine: Mapping[str, files.Row], reader: Reader
) -> Iterator[files.Seen]:
    """The files that the matrix keeps: releases, of stacks that it knows, for its platforms."""
    ignored = [re.compile(text) for text in rules.get("ignored_labels", [])]
    for file in listed:
        if file.name in mine:
            yield files.Seen(file.name, file.sha256, file.size)
            continue
        if not _is_release(file.name, rules.get("since", {})):
            continue
        try:
            wheel = reader.read(file.name)
        except UnknownWord as problem:
            job.unknown(f"{index}: {problem}")
            continue
        if wheel is None or not (wheel.tags and wheel.platforms) or any(one.fullmatch(wheel.local) for one in ignored):
            continue
        if _is_known_stack(job, index, wheel):
            yield files.Seen(file.name, file.sha256, file.size)


def _is_release(file: str, since: Mapping[str, str]) -> bool:
    try:
        version = Version(file.split("-")[1])
    except (InvalidVersion, IndexError):
        return True  # the reader words it
    return not version.is_prerelease and version >= Version(since.get(package_of(file), "0"))


def _is_known_stack(job: Job, index: str, wheel: Wheel) -> bool:
    """Whether the label means a stack of the matrix; says so where it does not."""
    label = wheel.local.replace("-", ".")
    if not label:
        return True
    stack = stack_of(label, job.settings["labels"])
    if stack in job.stacks():
        return True
    what = f"the stack {stack}, which the matrix does not hold" if stack else "nothing that refresh.yaml knows"
    job.unknown(f"{index}: {wheel.file}: the label {label} means {what}")
    return False


def _unnamed(job: Job, index: str, package: str, added: Iterable[str], reader: Reader) -> None:
    """Files of releases for which the matrix has no build there: somebody should add it."""
    named = {
        str(Version(release.version))
        for one in job.model.packages
        if one.name == package
        for release in one.releases
        if any(build.index == index for build in release.builds)
    }
    wheels = [wheel for wheel in map(reader.read, added) if wheel]
    for version in sorted({wheel.version for wheel in wheels} - named, key=Version):
        job.notes.append(f"{index} has {package} {version}, and no build of the matrix is there: add one")


if __name__ == "__main__":
    sys.exit(main(__doc__ or "", draft))
