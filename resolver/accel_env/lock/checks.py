"""What must hold of a finished closure although no metadata says so. Each check returns sentences; none means fine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from accel_env.errors import ClosureError
from accel_env.lock.artifacts import IMAGE, PYPI, normalise, with_label
from accel_env.lock.rules import Rules
from accel_env.model import Subject

if TYPE_CHECKING:
    from accel_env.matrix.types import KnownConflict, PackageInfo
    from accel_env.model import Ask, Candidate, Fact, LockedFile, Solution


class Knowledge(Protocol):
    """What this module asks of the matrix."""

    def modules(self) -> Mapping[str, str]:
        """Distribution name -> the import name that it owns."""
        ...

    def package_names(self) -> frozenset[str]:
        """The distributions that the matrix models."""
        ...

    def candidates(self, name: str, platform: str) -> tuple[Candidate, ...]:
        """The builds of a distribution on a platform."""
        ...

    def package(self, name: str) -> PackageInfo:
        """What is said of a distribution as a whole."""
        ...

    def conflicts(self) -> tuple[KnownConflict, ...]:
        """The known-bad pairs."""
        ...

    def fact(self, id: str) -> Fact:
        """The statement behind a fact's full id."""
        ...


def unpicked(solution: Solution, names: Iterable[str], matrix: Knowledge) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The packages in the closure whose build depends on the stack and that nobody picked, sorted.

    First those that the solver must choose: torch alone as long as it is not picked, because what the index's torch needs may
    differ from what the stack's does. Then those that can stay as the index has them, because no build for the stack is known
    and the index's neither links torch nor holds code for a device.
    """
    settled = {normalise(pick.candidate.name) for pick in solution.picks}
    # of these the closer has the choice
    settled |= {normalise(name) for name in (*solution.problem.left, *(ask.name for ask in solution.outside))}
    modelled = {normalise(name): name for name in matrix.package_names()}
    found = {modelled[name] for name in map(normalise, names) if name in modelled and name not in settled}
    platform, stack = solution.problem.host.platform, solution.stack.partition("-")[0]
    builds = {name: matrix.candidates(name, platform) for name in sorted(found)}
    pending = [name for name in builds if any(_depends_on_stack(build) for build in builds[name])]
    if "torch" in pending:
        return ("torch",), ()
    left = tuple(
        name
        for name in pending
        if not any(build.stack.partition("-")[0] in ("", stack) for build in builds[name])
        and any(_stands_alone(build) for build in builds[name])
        and not any(absent.stack == stack for absent in matrix.package(name).absent)
    )
    return tuple(name for name in pending if name not in left), left


def _depends_on_stack(candidate: Candidate) -> bool:
    """Whether it matters to torch or the device which build of the package is installed."""
    return bool(candidate.index != PYPI or candidate.stack) or any(
        need.subject in (Subject.ARCH, Subject.TORCH) for need in candidate.needs
    )


def _stands_alone(candidate: Candidate) -> bool:
    """Whether the package index has the build, and it neither links torch nor must hold code for the device."""
    hard = [need for need in candidate.needs if need.subject is Subject.TORCH or (need.subject is Subject.ARCH and not need.soft)]
    return candidate.index == PYPI and not hard


def refuse_asks(solution: Solution, matrix: Knowledge, rules: Rules) -> None:
    """ClosureError for an ask that the package index would answer with something else than what is meant."""
    for ask in solution.outside:
        name = normalise(ask.name)
        refuse_stub(name, matrix, rules)
        for rule in rules.exact:
            if name in rule.names and not _is_exact(ask):
                raise ClosureError(
                    "floating-version",
                    f"{ask.text or ask.name} does not name one version: {rule.why}",
                    context=(_source(matrix, rule.fact),),
                    hint=f"name the exact version, with its suffix, for example {name}==X.Y.Z.postN",
                )


def refuse_stub(name: str, matrix: Knowledge, rules: Rules) -> None:
    """ClosureError when PyPI holds nothing of use under the normalised name."""
    for rule in rules.stubs:
        if rule.hits(name):
            raise ClosureError(
                "stub", f"{name} cannot come from PyPI: {rule.why}", context=(_source(matrix, rule.fact),), hint=rule.real
            )


def _is_exact(ask: Ask) -> bool:
    """Whether an ask names one version and no pattern."""
    return re.fullmatch(r"\s*===?[^,*]+", ask.specifier) is not None


def misplaced(solution: Solution, files: tuple[LockedFile, ...], matrix: Knowledge, rules: Rules) -> tuple[str, ...]:
    """Sentences about what PyPI brings in and should not: another vendor's user space, development builds. No other pick would
    keep it out."""
    stack = solution.stack.partition("-")[0]
    return (
        *(
            f"{file.name} {file.version} from PyPI on {solution.stack}: {rule.why} ({_source(matrix, rule.fact)})"
            for file in files
            if file.index == PYPI
            for rule in rules.forbid
            if rule.hits(normalise(file.name), stack)
        ),
        *_unreleased(solution, files),
    )


def broken_rules(solution: Solution, files: tuple[LockedFile, ...], matrix: Knowledge, rules: Rules) -> tuple[str, ...]:
    """Every sentence about what is wrong with the closure, in a fixed order."""
    versions = _versions(solution, files)
    return (
        *_owners(versions, matrix.modules()),
        *_absent(solution, versions),
        *_majors(solution, files, matrix, rules),
        *_known_bad(versions, matrix),
        *_nightly(files),
    )


def unhashed(files: tuple[LockedFile, ...]) -> tuple[str, ...]:
    """The names of files that have no sha256."""
    return tuple(file.filename for file in files if len(file.sha256) != 64)


def _versions(solution: Solution, files: tuple[LockedFile, ...]) -> dict[str, str]:
    """Normalised name -> version of everything that will be there, what the image brings included."""
    found = {
        normalise(pick.candidate.name): with_label(pick.candidate) for pick in solution.picks if pick.candidate.index == IMAGE
    }
    return found | {normalise(file.name): file.version for file in files}


def _owners(versions: Mapping[str, str], modules: Mapping[str, str]) -> list[str]:
    """One distribution per import name."""
    owners: dict[str, list[str]] = {}
    for name, module in sorted(modules.items()):
        if normalise(name) in versions:
            owners.setdefault(module, []).append(name)
    return [
        f"{' and '.join(names)} both install the module `{module}`: whichever comes last overwrites the other"
        for module, names in sorted(owners.items())
        if len(names) > 1
    ]


def _absent(solution: Solution, versions: Mapping[str, str]) -> list[str]:
    """Nothing that a pick must not have beside it."""
    return [
        f"{pick.candidate.label} must not be installed together with {need.name}"
        for pick in solution.picks
        for need in pick.candidate.needs
        if need.subject is Subject.PACKAGE
        and need.when == "absent"
        and not need.soft
        and _within(versions.get(normalise(need.name)), need.allows)
    ]


def _majors(solution: Solution, files: tuple[LockedFile, ...], matrix: Knowledge, rules: Rules) -> list[str]:
    """One major of the stack's user space, and that of the torch build."""
    stack, _, release = solution.stack.partition("-")
    found = []
    for rule in rules.majors:
        majors: dict[str, list[str]] = {}
        for file in files:
            if major := rule.major_of(normalise(file.name), file.version):
                majors.setdefault(major, []).append(file.name)
        wanted = release.partition(".")[0] if stack == rule.stack else ""
        wrong = sorted(set(majors) - {wanted}) if wanted else sorted(majors) if len(majors) > 1 else []
        found += [
            f"{', '.join(sorted(majors[major]))} {'are' if len(majors[major]) > 1 else 'is'} of {rule.stack.upper()} {major}"
            + (f", torch is of {wanted}" if wanted else "")
            + f": {rule.why} ({_source(matrix, rule.fact)})"
            for major in wrong
        ]
    return found


def _known_bad(versions: Mapping[str, str], matrix: Knowledge) -> list[str]:
    """No pair of the matrix's list."""
    return [
        f"{left} {versions[normalise(left)]} and {right} {versions[normalise(right)]} do not work together: {item.why}"
        f" ({_source(matrix, item.fact)})"
        for item in matrix.conflicts()
        for (left, allows), (right, bounds) in [(item.a, item.b)]
        if _within(versions.get(normalise(left)), allows) and _within(versions.get(normalise(right)), bounds)
    ]


def _nightly(files: tuple[LockedFile, ...]) -> list[str]:
    """Nothing that will be pruned from its index."""
    from packaging.version import Version

    return [
        f"{file.name} {file.version} is a development build: such files are removed after a while, so a lock cannot name them"
        for file in files
        if "/nightly/" in file.url or (file.index != PYPI and Version(file.version).is_devrelease)
    ]


def _unreleased(solution: Solution, files: tuple[LockedFile, ...]) -> list[str]:
    """PyPI keeps development builds, but a closer takes one that nobody asked for only where it finds no wheel of a release."""
    from packaging.version import Version

    exact = {normalise(ask.name) for ask in solution.outside if _is_exact(ask)}
    return [
        f"{file.name} {file.version} is a development build, and no release of it has a wheel that can be used here"
        for file in files
        if file.index == PYPI and Version(file.version).is_devrelease and normalise(file.name) not in exact
    ]


def _source(matrix: Knowledge, fact: str) -> str:
    """`grade: source` of a fact."""
    known = matrix.fact(fact)
    return f"{known.grade}: {known.source}"


def _within(version: str | None, allows: str) -> bool:
    """Whether an installed version lies in a specifier; False when it is not installed."""
    if version is None:
        return False
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(allows).contains(version, prereleases=True)
