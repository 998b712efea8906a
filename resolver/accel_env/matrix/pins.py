"""Releases that exclude each other by what they require of packages outside the matrix.

Two servers may agree on torch and still pin different releases of a parser that the matrix does not hold. Only an installer
would notice, one pair of releases after the other; here all pairs are compared once, when the matrix is compiled.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from accel_env.matrix.markers import reduce_marker
from accel_env.model import Fact

if TYPE_CHECKING:
    from accel_env.matrix.packages import Package, Release

Wishes = Mapping[str, str]  # distribution -> specifier
Releases = Mapping[str, list[Wishes]]
Beside = tuple[str, str, str, str]  # another distribution, what of it can be beside this release, `present` or `absent`, fact
_SHOWN = 3


def clashes(packages: Sequence[Package], facts: Mapping[str, Fact]) -> tuple[dict[str, dict[str, list[Beside]]], dict[str, Fact]]:
    """(distribution -> release -> what may be beside it of others, the facts behind it).

    Only what is narrower than anything goes is told. Packages of one module exclude each other anyway.
    """
    modelled = {package.name for package in packages}
    wishes = {package.name: _of_package(package, modelled) for package in packages}
    modules = {package.name: package.module for package in packages}
    rows: dict[str, dict[str, list[Beside]]] = {}
    made: dict[str, Fact] = {}
    names = sorted(wishes)
    for place, a in enumerate(names):
        for b in names[place + 1:]:
            if modules[a] == modules[b] or not _share(wishes[a], wishes[b]):
                continue
            bad, said = _pair(a, wishes[a], b, wishes[b])
            if bad:
                full = f"pins:{a}+{b}"
                made[full] = _fact(full, a, b, said, facts)
                _tell(rows, a, b, bad, wishes[b], full)
                _tell(rows, b, a, {(y, x) for x, y in bad}, wishes[a], full)
    return rows, made


def _tell(
    rows: dict[str, dict[str, list[Beside]]], a: str, b: str, bad: set[tuple[str, str]], known: Iterable[str], fact: str
) -> None:
    out: dict[str, set[str]] = {}
    for mine, other in bad:
        out.setdefault(mine, set()).add(other)
    for mine, others in sorted(out.items()):
        allowed = _without(others, known)
        row = (b, allowed, "present", fact) if allowed else (b, "", "absent", fact)
        rows.setdefault(a, {}).setdefault(mine, []).append(row)


def _of_package(package: Package, modelled: set[str]) -> dict[str, list[Wishes]]:
    """Version -> what its builds require of others, each way once."""
    found: dict[str, list[Wishes]] = {}
    for release in package.releases:
        ways: dict[tuple[str, ...], Wishes] = {}
        for requires, platforms in _ways(release):
            ways.setdefault(requires, _wishes(requires, platforms, modelled))
        found.setdefault(release.version, []).extend(ways.values())
    # a build whose list was replaced by none (a vendor's, beside its own torch) says nothing about the release
    told = {version: [way for way in ways if way] for version, ways in found.items()}
    return {version: ways for version, ways in told.items() if ways}


def _ways(release: Release) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    for build in release.builds:
        yield (release.requires if build.requires is None else build.requires), build.platforms


def _wishes(requires: tuple[str, ...], platforms: tuple[str, ...], modelled: set[str]) -> Wishes:
    """What is required on every platform and Python, of packages outside the matrix, with bounds."""
    found: dict[str, str] = {}
    for text in requires:
        name, bounds, marker = _parsed(text)
        if name and bounds and name not in modelled and (not marker or _always(marker, platforms)):
            found[name] = f"{found[name]},{bounds}" if name in found else bounds
    return found


@cache
def _parsed(text: str) -> tuple[str, str, str]:
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return "", "", ""
    return canonicalize_name(requirement.name), str(requirement.specifier), str(requirement.marker or "")


@cache
def _always(marker: str, platforms: tuple[str, ...]) -> bool:
    return "extra" not in marker and all(reduce_marker(marker, platform) == "" for platform in platforms)


def _share(a: Releases, b: Releases) -> bool:
    names = [{name for ways in side.values() for way in ways for name in way} for side in (a, b)]
    return not names[0].isdisjoint(names[1])


def _pair(a: str, ours: Releases, b: str, theirs: Releases) -> tuple[set[tuple[str, str]], str]:
    """(the pairs of releases that clash, the newest such pair in words)."""
    bad: set[tuple[str, str]] = set()
    newest, said = (Version("0"), Version("0")), ""
    for mine, ways in ours.items():
        for other, rest in theirs.items():
            why = _apart(ways, rest)
            if why:
                bad.add((mine, other))
                if newest < (age := (Version(mine), Version(other))):
                    newest, said = age, f"{a} {mine} and {b} {other} want {why}"
    return bad, said


def _apart(ours: Iterable[Wishes], theirs: Iterable[Wishes]) -> str:
    """Where no way of the one goes with a way of the other: what they want, in words; else empty."""
    said = ""
    for mine in ours:
        for other in theirs:
            names = [n for n in sorted(mine.keys() & other.keys()) if disjoint(*sorted((mine[n], other[n])))]
            if not names:
                return ""
            said = said or ", ".join(f"{n} {mine[n]} and {other[n]}" for n in names[:_SHOWN])
    return said


@cache
def disjoint(a: str, b: str) -> bool:
    """True when no release can satisfy both specifiers."""
    first, second = SpecifierSet(a), SpecifierSet(b)
    points = {"0"}
    for clause in (*first, *second):
        text = clause.version.removesuffix(".*")
        parts = list(Version(text).release)
        points |= {text, ".".join(map(str, [*parts[:-1], parts[-1] + 1])), ".".join(map(str, [*parts, 0, 0, 1]))}
    return not any(first.contains(p, prereleases=True) and second.contains(p, prereleases=True) for p in points)


def _without(bad: set[str], known: Iterable[str]) -> str:
    """A specifier that is true of the known releases less `bad`; empty where nothing is left. Ranges where they can say it."""
    order = sorted(known, key=Version)
    good = [place for place, version in enumerate(order) if version not in bad]
    if not good:
        return ""
    if len(good) == good[-1] - good[0] + 1:
        low = f">={order[good[0]]}" if good[0] else ""
        high = f"<={order[good[-1]]}" if good[-1] + 1 < len(order) else ""
        return ",".join(part for part in (low, high) if part)
    return ",".join(f"!={version}" for version in order if version in bad)


def _fact(full: str, a: str, b: str, said: str, facts: Mapping[str, Fact]) -> Fact:
    """The fact of a pair: graded and dated as the metadata of the two."""
    days = [fact.checked for name in (a, b) if (fact := facts.get(f"packages/{name}:metadata"))]
    text = f"{a} and {b} require releases of other packages that exclude each other: {said}"
    return Fact(full, text, f"PyPI metadata of {a} and {b}", "vendor", min(days, default=""))
