"""Package documents -> candidates: releases x builds x platforms, each with all its needs."""
from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from accel_env.matrix.markers import SYSTEMS, reduce_marker, split_platform
from accel_env.matrix.packages import Build, Package, Release
from accel_env.matrix.types import Artifact
from accel_env.model import Candidate, Need, Subject

_EXTRA = re.compile(r"\bextra\b")


class WheelName(NamedTuple):
    """What a wheel's file name says. `tags` and `platforms` are the matrix's words."""

    name: str
    version: str
    local: str
    tags: frozenset[str]
    platforms: frozenset[str]


def wheel_name(filename: str) -> WheelName | None:
    """The parts of a wheel's file name, None where it is none."""
    try:
        name, version, _, tags = parse_wheel_filename(filename)
    except (InvalidWheelFilename, InvalidVersion):
        return None
    short = frozenset(_short_tag(tag.interpreter, tag.abi) for tag in tags)
    platforms = frozenset(platform for tag in tags for platform in _platforms(tag.platform))
    return WheelName(str(name), version.public, version.local or "", short, platforms)


def _short_tag(interpreter: str, abi: str) -> str:
    if abi in ("none", interpreter):
        return interpreter
    return abi if abi == f"{interpreter}t" else f"{interpreter}-{abi}"


def _platforms(tag: str) -> tuple[str, ...]:
    if tag == "any":
        return tuple(f"{system}_{cpu}" for system in SYSTEMS for cpu in ("x86_64", "aarch64"))
    if tag.startswith("win"):
        return {"win_amd64": ("windows_x86_64",), "win_arm64": ("windows_aarch64",)}.get(tag, ())
    if tag.startswith("macosx"):
        return tuple(f"macos_{cpu}" for word, cpu in (("x86_64", "x86_64"), ("arm64", "aarch64"))
                     if tag.endswith((word, "universal2")))
    return tuple(f"linux_{cpu}" for cpu in ("x86_64", "aarch64") if tag.endswith(cpu))


def same_version(a: str, b: str) -> bool:
    """Whether two version texts name one version."""
    return a == b or Version(a) == Version(b)


def _key(candidate: Candidate) -> tuple[str, ...]:
    return candidate.version, candidate.build, candidate.variant, candidate.index, candidate.stack


class Hashes:
    """Which tags of a build have a file whose sha256 is known."""

    def __init__(self, artifacts: Mapping[str, Mapping[str, Artifact]]) -> None:
        self._known: dict[tuple[str, str, str], list[WheelName]] = {}
        for index, files in artifacts.items():
            for filename, artifact in files.items():
                wheel = wheel_name(filename) if artifact.sha256 else None
                if wheel:
                    self._known.setdefault((index, wheel.name, wheel.version), []).append(wheel)

    def tags(self, package: Package, release: Release, build: Build, platform: str) -> tuple[str, ...]:
        """The hashed tags, in the build's order. The user's PyPI hashes its files itself; an image brings them."""
        if build.index in ("pypi", "image"):
            return build.tags
        local = "" if build.build == "any" else str(Version(f"0+{build.build}").local) if _is_local(build.build) else build.build
        wheels = self._known.get((build.index, package.name, str(Version(release.version))), ())
        known = {tag for wheel in wheels if platform in wheel.platforms and wheel.local in ("", local) for tag in wheel.tags}
        return tuple(tag for tag in build.tags if tag in known)


def _is_local(label: str) -> bool:
    return all(part.isalnum() for part in label.replace("_", ".").replace("-", ".").split("."))


class Expander:
    """Turns packages into candidates. `modelled`: the distribution names that the matrix holds."""

    def __init__(self, modelled: Iterable[str], artifacts: Mapping[str, Mapping[str, Artifact]]) -> None:
        self._modelled = frozenset(modelled)
        self._hashes = Hashes(artifacts)
        self._requirements: dict[str, Requirement] = {}
        self._markers: dict[tuple[str, str, tuple[str, ...]], str | None] = {}

    def candidates(self, packages: Iterable[Package]) -> dict[str, tuple[Candidate, ...]]:
        """Platform -> candidates of one distribution, newest first.

        A build of an overlay takes the place of the matrix's builds with its version, label, variant, index and stack.
        """
        found: dict[str, list[Candidate]] = {}
        for package in packages:
            for platform, fresh in self._spread(package):
                rows = found.setdefault(platform, [])
                if package.overlay:
                    keys = {_key(item) for item in fresh}
                    rows[:] = [item for item in rows if _key(item) not in keys]
                rows.extend(fresh)
        return {
            platform: tuple(sorted(rows, key=lambda item: Version(item.version), reverse=True))
            for platform, rows in sorted(found.items())
        }

    def _spread(self, package: Package) -> Iterable[tuple[str, list[Candidate]]]:
        found: dict[str, list[Candidate]] = {}
        for release in package.releases:
            for build in release.builds:
                for platform in build.platforms:
                    found.setdefault(platform, []).append(self._candidate(package, release, build, platform))
        return found.items()

    def _candidate(self, package: Package, release: Release, build: Build, platform: str) -> Candidate:
        system, cpu = split_platform(platform)
        requires = release.requires if build.requires is None else build.requires
        needs = [
            Need(Subject.OS, build.fact, values=(system,)),
            Need(Subject.CPU, build.fact, values=(cpu,)),
            Need(Subject.PYTHON, build.fact, allows=release.requires_python, values=build.tags),
        ]
        if build.stack:
            needs.append(Need(Subject.STACK, build.fact, values=(build.stack,)))
        needs.extend(build.needs)
        fact = release.fact if build.requires is None else build.fact
        needs.extend(self._required(requires, build.extras, platform, fact, package.name))
        return Candidate(
            name=package.name, module=package.module, version=release.version, build=build.build, variant=build.variant,
            index=build.index, platform=platform, stack=build.stack, tags=build.tags, needs=tuple(needs), requires=requires,
            provides=build.provides, hashed=self._hashes.tags(package, release, build, platform), fact=build.fact,
            rank=build.rank, tag=build.tag, note=build.note, extras=build.extras,
        )

    def _required(
        self, requires: tuple[str, ...], extras: tuple[str, ...], platform: str, fact: str, own: str
    ) -> Iterable[Need]:
        for text in requires:
            requirement = self._requirements.get(text)
            if requirement is None:
                try:
                    requirement = self._requirements[text] = Requirement(text)
                except InvalidRequirement:
                    continue
            name = canonicalize_name(requirement.name)
            if name not in self._modelled or name == own:
                continue
            marker = str(requirement.marker or "")
            wanted = extras if _EXTRA.search(marker) else ()
            if _EXTRA.search(marker) and not extras:
                continue
            left = self._reduced(marker, platform, wanted) if marker else ""
            if left is not None:
                yield Need(Subject.PACKAGE, fact, allows=str(requirement.specifier), name=name, marker=left)

    def _reduced(self, marker: str, platform: str, extras: tuple[str, ...]) -> str | None:
        key = (marker, platform, extras)
        if key not in self._markers:
            self._markers[key] = reduce_marker(marker, platform, extras)
        return self._markers[key]
