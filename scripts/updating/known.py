"""What PyPI says today of releases that the matrix knows: files that are gone, yanked ones, wheels that came later."""

from __future__ import annotations

from collections.abc import Mapping

from packaging.version import Version

from accel_env.matrix.packages import Release
from updating import pages
from updating.run import Job
from updating.wheels import Reader, UnknownWord

INDEX = "pypi"
_ANYWHERE = 6  # platforms of a wheel that is for all of them


def look_for_gone(job: Job, name: str, releases: Mapping[str, Release], by_version: Mapping[str, list[pages.File]]) -> None:
    """A known release that is gone is a fault; a yanked one is for people to look at."""
    for version, release in releases.items():
        if not any(build.index == INDEX for build in release.builds):
            continue
        listed = by_version.get(str(Version(version)), [])
        if not listed:
            job.broken(f"{name} {version}: PyPI lists no file of it any more")
        reasons = sorted({file.yanked for file in listed if file.yanked})
        if reasons:
            job.notes.append(f"{name} {version} is yanked on PyPI: {'; '.join(reasons)}")


def look_for_late(
    job: Job, name: str, releases: Mapping[str, Release], by_version: Mapping[str, list[pages.File]], reader: Reader
) -> None:
    """Wheels that came to the newest known release after it was written down: for people, who know what its builds need.

    A wheel for every platform beside builds for some is left out on purpose: it holds no code for them.
    """
    newest = max(releases, key=Version)
    named = {
        (platform, tag)
        for build in releases[newest].builds if build.index == INDEX
        for platform in build.platforms for tag in build.tags
    }  # fmt: skip
    found: dict[str, None] = {}
    for file in by_version.get(str(Version(newest)), []) if named else []:
        try:
            wheel = reader.read(file.name)
        except UnknownWord as problem:
            job.unknown(str(problem))
            continue
        if (
            wheel
            and len(wheel.platforms) < _ANYWHERE
            and any((platform, tag) not in named for platform in wheel.platforms for tag in wheel.tags)
        ):
            found.update(dict.fromkeys(f"{tag} ({', '.join(wheel.platforms)})" for tag in wheel.tags))
    if found:
        job.notes.append(f"{name} {newest} has wheels on PyPI that no build of the matrix names: {'; '.join(found)}")
