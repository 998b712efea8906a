#!/usr/bin/env python3
"""Collects wheels that are assets of GitHub releases (flash-attn) with the digests of GitHub's API into
`artifacts/<index>.json`.

Which repositories are read is in refresh.yaml (`assets`). Assets that were uploaded before GitHub kept digests have none:
they are recorded as seen, without a hash. GITHUB_TOKEN, if set, is sent to api.github.com and nowhere else.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from accel_env.errors import ClosureError
from updating import files
from updating.run import Job, main
from updating.wheels import Reader, UnknownWord, package_of

API = "https://api.github.com/repos/{repository}/releases?per_page=100&page={page}"
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_PAGES = 50


def draft(job: Job) -> None:
    """Compares the releases of every repository with the matrix."""
    reader = job.reader()
    for index, rules in sorted(job.settings["assets"].items()):
        if index not in job.model.indexes:
            job.unknown(f"refresh.yaml names the index {index}, which indexes.yaml does not hold")
            continue
        raw = job.model.raw.get(files.name_of(index), {})
        known = raw.get("files", {})
        mine: dict[str, files.Row] = dict(known) if isinstance(known, Mapping) else {}
        if not job.wants(_package(job, index)):
            continue
        seen = list(_seen(job, index, rules, mine, reader))
        _compare(job, index, str(raw.get("source", "")), rules, mine, seen)


def _package(job: Job, index: str) -> str:
    """The package whose builds name the index, empty where none does."""
    return next(
        (one.name for one in job.model.packages for release in one.releases for build in release.builds if build.index == index),
        "",
    )


def _compare(
    job: Job, index: str, source: str, rules: Mapping[str, Any], mine: Mapping[str, files.Row], seen: list[files.Seen]
) -> None:
    fact = job.model.facts.get(job.model.indexes[index].fact)
    grade = fact.grade if fact else "community"
    result = files.compare(mine, seen, f"GitHub's API: releases of {rules['repository']}", grade, complete=mine)
    for line in result.changed:
        job.broken(f"{rules['repository']} has another asset under a known name: {line}")
    for gone in result.gone:
        job.broken(f"{rules['repository']} has no asset {gone} any more")
    if result.added or result.filled:
        source = source or f"assets of the releases of {rules['repository']} with the digests of GitHub's API"
        job.put(
            files.name_of(index),
            files.render(index, source, result.rows),
            f"{index}: {len(result.added)} new assets, {len(result.filled)} hashes for assets without one",
        )


def _seen(job: Job, index: str, rules: Mapping[str, Any], mine: Mapping[str, files.Row], reader: Reader) -> Iterator[files.Seen]:
    """The wheels of all releases that the matrix keeps or knows, drafts and pre-releases left out."""
    pattern = re.compile(rules["files"])
    for release in _releases(job, rules["repository"]):
        if release.get("draft"):
            continue
        for asset in release.get("assets", ()):
            name, digest = str(asset["name"]), _DIGEST.fullmatch(str(asset.get("digest") or ""))
            known = name in mine
            if not known and (not pattern.fullmatch(name) or release.get("prerelease") or not _is_kept(job, index, name, reader)):
                continue
            yield files.Seen(name, digest[1] if digest else "", asset.get("size"), str(release["tag_name"]))


def _releases(job: Job, repository: str) -> Iterator[Mapping[str, Any]]:
    for page in range(1, _PAGES):
        url = API.format(repository=repository, page=page)
        try:
            found = json.loads(job.source.get(url, accept="application/vnd.github+json").body)
            if not isinstance(found, list) or not all("assets" in one and "tag_name" in one for one in found):
                raise ValueError("no list of releases")
        except ValueError as problem:
            raise ClosureError(
                "source-unreadable", f"{url} is no list of releases: {problem}", hint="look at the answer"
            ) from None
        yield from found
        if len(found) < 100:
            return


def _is_kept(job: Job, index: str, name: str, reader: Reader) -> bool:
    """Whether the wheel's label, tags and platform are words of the matrix; says so where they are none."""
    try:
        wheel = reader.read(name)
    except UnknownWord as problem:
        job.unknown(f"{index}: {problem}")
        return False
    if wheel is None or package_of(name) != (_package(job, index) or package_of(name)) or not (wheel.tags and wheel.platforms):
        return False
    label = re.fullmatch(job.settings["asset_labels"], wheel.local, re.IGNORECASE)
    if not label:
        job.unknown(
            f"{index}: {name}: nobody has told refresh.yaml (asset_labels) what the label {wheel.local or '(none)'} means"
        )
        return False
    majors = {release.version.partition(".")[0] for release in job.model.stacks["cuda"].releases}
    if label["cuda"] not in majors:
        job.unknown(f"{index}: {name}: the matrix has no release of CUDA {label['cuda']}")
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(__doc__ or "", draft))
