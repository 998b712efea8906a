"""What must hold of a finished closure although no metadata says so. Each check returns sentences; none means fine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from accel_env.lock.artifacts import IMAGE, PYPI, normalise, with_label
from accel_env.lock.rules import Rules
from accel_env.model import Subject

if TYPE_CHECKING:
    from accel_env.matrix.types import KnownConflict
    from accel_env.model import Candidate, Fact, LockedFile, Solution


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

    def conflicts(self) -> tuple[KnownConflict, ...]:
        """The known-bad pairs."""
        ...

    def fact(self, id: str) -> Fact:
        """The statement behind a fact's full id."""
        ...


def needed_but_unpicked(solution: Solution, names: Iterable[str], matrix: Knowledge) -> tuple[str, ...]:
    """The packages in the closure that the matrix models per stack and that nobody picked: the solver must choose their build."""
    picked = {normalise(pick.candidate.name) for pick in solution.picks}
    modelled = {normalise(name): name for name in matrix.package_names()}
    found = {modelled[name] for name in map(normalise, names) if name in modelled and name not in picked}
    platform = solution.problem.host.platform
    return tuple(sorted(name for name in found if any(_depends_on_stack(build) for build in matrix.candidates(name, platform))))


def _depends_on_stack(candidate: Candidate) -> bool:
    """Whether it matters to torch or the device which build of the package is installed."""
    return bool(candidate.index != PYPI or candidate.stack) or any(
        need.subject in (Subject.ARCH, Subject.TORCH) for need in candidate.needs
    )


def broken_rules(solution: Solution, files: tuple[LockedFile, ...], matrix: Knowledge, rules: Rules) -> tuple[str, ...]:
    """Every sentence about what is wrong with the closure, in a fixed order."""
    versions = _versions(solution, files)
    return (
        *_owners(versions, matrix.modules()),
        *_absent(solution, versions),
        *_forbidden(solution, files, matrix, rules),
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


def _forbidden(solution: Solution, files: tuple[LockedFile, ...], matrix: Knowledge, rules: Rules) -> list[str]:
    """No other vendor's user space, and no stranger under a stack's name, from PyPI."""
    stack = solution.stack.partition("-")[0]
    return [
        f"{file.name} {file.version} from PyPI on {solution.stack}: {rule.why} ({_source(matrix, rule.fact)})"
        for file in files
        if file.index == PYPI
        for rule in rules.forbid
        if rule.hits(normalise(file.name), stack)
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
        if Version(file.version).is_devrelease or "/nightly/" in file.url
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
