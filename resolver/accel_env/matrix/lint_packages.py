"""Cross-file rules about packages, indexes and files."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from packaging.requirements import Requirement
from packaging.utils import InvalidSdistFilename, canonicalize_name, parse_sdist_filename
from packaging.version import InvalidVersion, Version

from accel_env.matrix.compile import Model
from accel_env.matrix.expand import wheel_name
from accel_env.matrix.findings import LintProblem, error, note
from accel_env.matrix.packages import Build, Package, Release
from accel_env.model import Subject

_CPYTHON = re.compile(r"cp(\d)(\d+)(t?)")


def rules() -> tuple[Callable[[Model], Iterator[LintProblem]], ...]:
    """The rules of this module."""
    return (stacks_exist, indexes_exist, releases_fall, builds_are_one, pythons_exist, modules_agree, needs_are_not_repeated,
            artifacts_are_named, artifacts_fit_builds, community_is_flagged, companions_pair)


def _builds(model: Model) -> Iterator[tuple[Package, Release, Build]]:
    for package in model.packages:
        for release in package.releases:
            for build in release.builds:
                yield package, release, build


def known_stacks(model: Model) -> frozenset[str]:
    """Every stack by its name and by each release."""
    releases = {f"{stack.name}-{release.version}" for stack in model.stacks.values() for release in stack.releases}
    return frozenset(model.stacks) | releases


def stacks_exist(model: Model) -> Iterator[LintProblem]:
    """Builds and absences name stacks and releases that stacks/ describes."""
    known = known_stacks(model)
    for package, _, build in _builds(model):
        if build.stack and build.stack not in known:
            yield error("stack-missing", package.file, f"{build.path}.stack", f"no stack file holds `{build.stack}`",
                        "add the release to its file under stacks/")
    for package in model.packages:
        for absent in package.absent:
            if absent.stack not in known:
                yield error("stack-missing", package.file, "absent", f"no stack file holds `{absent.stack}`")


def indexes_exist(model: Model) -> Iterator[LintProblem]:
    """Builds and artifact files come from indexes that indexes.yaml describes; release assets know their tag."""
    for package, _, build in _builds(model):
        name = build.index.partition(":")[0]
        index = model.indexes.get(name)
        if index is None and build.index not in ("pypi", "image"):
            yield error("index-missing", package.file, f"{build.path}.index", f"indexes.yaml has no `{name}`",
                        "add the index")
        if index is not None and "{tag}" in index.url and not build.tag:
            yield error("asset-tag", package.file, build.path, f"the URL of `{name}` holds {{tag}} and the build has none",
                        "add `tag`, the tag of the release")
    for full, file in model.artifact_files.items():
        name = full.partition(":")[0]
        if name != "pypi" and name not in model.indexes:
            yield error("index-missing", file, "index", f"indexes.yaml has no `{name}`", "add the index")


def releases_fall(model: Model) -> Iterator[LintProblem]:
    """Releases are listed newest first, each once, over all files of a package."""
    seen: dict[tuple[str, Version], str] = {}
    for package in model.packages:
        before: Version | None = None
        for release in package.releases:
            version = Version(release.version)
            if before is not None and version >= before:
                yield error("release-order", package.file, release.path,
                            f"{release.version} stands below {before}", "list releases newest first")
            before = version
            other = seen.setdefault((package.name, version), package.file)
            if other != package.file and not package.overlay:
                yield error("release-twice", package.file, release.path, f"{release.version} is in {other} too")


def builds_are_one(model: Model) -> Iterator[LintProblem]:
    """No two builds of a release could be told apart by nothing."""
    for package in model.packages:
        for release in package.releases:
            seen: dict[tuple[str, ...], Build] = {}
            for build in release.builds:
                label = (build.build, build.variant, build.index, build.stack)
                keys = [(*label, platform, tag) for platform in build.platforms for tag in build.tags]
                other = next((seen[key] for key in keys if key in seen), None)
                if other:
                    yield error("build-twice", package.file, build.path,
                                f"label, variant, index, stack, platform and tag are those of {other.path}",
                                      "join the two, or tell them apart by `variant`")
                seen.update((key, build) for key in keys)


def pythons_exist(model: Model) -> Iterator[LintProblem]:
    """The CPython of every tag is one that python.yaml knows."""
    known = {python.version for python in model.pythons}
    told: set[tuple[str, str]] = set()
    for package, _, build in _builds(model):
        for tag in build.tags:
            found = _CPYTHON.fullmatch(tag)
            version = f"{found[1]}.{found[2]}{found[3]}" if found else ""
            if found and version not in known and (package.file, version) not in told:
                told.add((package.file, version))
                yield error("python-missing", package.file, f"{build.path}.tags", f"python.yaml has no {version}",
                            "add it there, with its status")


def modules_agree(model: Model) -> Iterator[LintProblem]:
    """All files of a package say the same module and summary."""
    first: dict[str, Package] = {}
    for package in model.packages:
        other = first.setdefault(package.name, package)
        if package.module != other.module:
            yield error("module-differs", package.file, "module",
                        f"is `{package.module}`; {other.file} says `{other.module}`")
        if package.summary != other.summary and not package.overlay:
            yield note("summary-differs", package.file, "summary", f"{other.file} says it in other words")


def needs_are_not_repeated(model: Model) -> Iterator[LintProblem]:
    """What Requires-Dist says already is not written again as a need."""
    modelled = set(model.names())
    for package, release, build in _builds(model):
        named = {(item.name, str(item.specifier)) for item in _required(release, build) if not item.marker}
        for need in build.needs:
            plain = need.subject is Subject.PACKAGE and need.name in modelled and need.when == "always" and not need.unknown
            if plain and (need.name, need.allows) in named:
                yield note("need-repeated", package.file, f"{build.path}.needs", f"`requires` says the same of {need.name}")


def _required(release: Release, build: Build) -> list[Requirement]:
    """The requirements of a build, their names normalised."""
    found = [Requirement(text) for text in (release.requires if build.requires is None else build.requires)]
    for item in found:
        item.name = canonicalize_name(item.name)
    return found


def artifacts_are_named(model: Model) -> Iterator[LintProblem]:
    """Files have names of wheels or sdists, and stand in the file that is named after their index."""
    for index, files in model.artifacts.items():
        file = model.artifact_files[index]
        wanted = f"artifacts/{index.replace(':', '-').replace('/', '-')}.json"
        if file != wanted:
            yield error("artifact-file", file, "index", f"files of `{index}` belong into {wanted}")
        for name, artifact in files.items():
            if wheel_name(name) is None and not _is_sdist(name):
                yield error("artifact-name", file, f'files["{name}"]', "is no name of a wheel or sdist")
            if artifact.conflict:
                yield note("artifact-conflict", file, f'files["{name}"]', "sources disagree on its hash: not used")


def _is_sdist(name: str) -> bool:
    try:
        parse_sdist_filename(name)
    except (InvalidSdistFilename, InvalidVersion):
        return False
    return True


def artifacts_fit_builds(model: Model) -> Iterator[LintProblem]:
    """The files of a modelled package belong to builds; else a hash lies idle, or a build is missing."""
    names = set(model.names())
    wanted = {
        (item.index, item.name, item.version, platform, tag)
        for _, spread in model.candidates() for platform, items in spread.items() for item in items for tag in item.tags
    }
    idle: dict[tuple[str, str], list[str]] = {}
    for index, files in model.artifacts.items():
        for filename in files:
            wheel = wheel_name(filename)
            if wheel is None or wheel.name not in names:
                continue
            keys = {(index, wheel.name, wheel.version, platform, tag) for platform in wheel.platforms for tag in wheel.tags}
            if not keys & wanted:
                idle.setdefault((index, wheel.name), []).append(filename)
    for (index, name), found in idle.items():
        yield note("artifact-idle", model.artifact_files[index], "files",
                   f"{len(found)} files of {name} fit no build, such as {found[0]}")


def community_is_flagged(model: Model) -> Iterator[LintProblem]:
    """The newest release of a package, which is picked first, should rest on better than hearsay."""
    newest: dict[str, Version] = {}
    for package, release, _ in _builds(model):
        newest[package.name] = max(Version(release.version), newest.get(package.name, Version("0")))
    told: set[tuple[str, str]] = set()
    for package, release, build in _builds(model):
        unselectable = any(need.unknown for need in build.needs)
        if build.rank or unselectable or Version(release.version) != newest[package.name]:
            continue
        for full in (build.fact, release.fact, *(need.fact for need in build.needs)):
            fact = model.facts.get(full)
            if fact and fact.grade == "community" and (package.name, full) not in told:
                told.add((package.name, full))
                yield note("community-default", package.file, build.path,
                           f"{package.name} {release.version} is a first choice and rests on `{full}`, which is community")


def companions_pair(model: Model) -> Iterator[LintProblem]:
    """What shares torch's own indexes and pins torch exactly has a release for every torch of those indexes in its range."""
    torches = {Version(release.version): {build.index for build in release.builds}
               for package in model.packages if package.name == "torch" for release in package.releases}
    own = {index for indexes in torches.values() for index in indexes} - {"pypi", "image"}
    for name in model.names():
        pins = _pins(model, name, own)
        if name == "torch" or not pins:
            continue
        for torch in sorted(torches):
            if min(pins) <= torch <= max(pins) and torch not in pins:
                yield error("companion-missing", f"packages/{name}.yaml", "releases",
                            f"no release is made for torch {torch}, though older and newer ones are",
                                  "add the release that pairs with it, or say by `needs.torch` which one does")


def _pins(model: Model, name: str, own: set[str]) -> set[Version]:
    """The torch releases that a package names exactly; empty where it comes from elsewhere or does not pin."""
    files = [package for package in model.packages if package.name == name]
    builds = [build for package in files for release in package.releases for build in release.builds]
    if not any(build.index in own for build in builds):
        return set()
    texts = {need.allows for build in builds for need in build.needs if need.subject is Subject.TORCH}
    texts.update(
        str(item.specifier) for package in files for release in package.releases for build in release.builds
        for item in _required(release, build) if item.name == "torch"
    )
    exact = {text[2:].strip() for text in texts if text.startswith("==") and "," not in text and "*" not in text}
    return {Version(Version(text).public) for text in exact}
