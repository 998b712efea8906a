"""Needs of installed builds on each other: pairs, ABI, native libraries, pins, several owners of one module."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accel_env.judge.builds import UNLABELLED, Possible, cuda_of, hip_of
from accel_env.judge.companions import pairing_findings
from accel_env.judge.duplicates import duplicate_findings, said
from accel_env.judge.fixes import fitting_fixes, keep_torch_of, unique
from accel_env.judge.types import Finding, Fix, Installed
from accel_env.model import Candidate, Need, Subject
from accel_env.solve.explain import need_text
from accel_env.solve.slot import satisfies
from accel_env.solve.versions import allows, parse, split_stack

if TYPE_CHECKING:
    from accel_env.judge.scene import Scene


@dataclass(frozen=True, slots=True)
class Broken:
    """A need of a build on another package that is not met. `by_all`: by no build that the other can be."""

    candidate: Candidate
    need: Need
    other: str
    met: str
    by_all: bool


def pair_findings(scene: Scene) -> Iterator[Finding]:
    """Findings about packages that do not go together."""
    for row in scene.rows():
        found = scene.possible(row.name)
        if found is None or not found.candidates:
            continue
        rows = _all_broken(scene, found)
        if rows:
            yield _finding(scene, found, rows)
    yield from pairing_findings(scene)
    yield from duplicate_findings(scene)


def _all_broken(scene: Scene, found: Possible) -> list[Broken]:
    """The worst need of each build that the package can be; empty where one of them goes with the rest."""
    rows = []
    mine = _of_stack(scene, found)
    for candidate in mine:
        broken = list(broken_needs(scene, candidate))
        if not broken:
            return []
        rows.append((len(broken), not all(b.by_all for b in broken), broken[0]))
    rows.sort(key=lambda row: row[:2])
    return [row[2] for row in rows]


def _of_stack(scene: Scene, found: Possible) -> list[Candidate]:
    """The builds for torch's own stack; a package that has none for it comes from elsewhere and is not judged.

    One wheel with a library for each backend is judged all the same: the one that is missing is what matters.
    """
    likely = list(found.likely)
    if found.installed.name == "torch":
        stack = scene.stack_name
        mine = [c for c in likely if split_stack(c.stack)[0] == stack] if stack else likely
        return mine or likely
    torch = scene.possible("torch")
    stacks = {split_stack(t.stack)[0] for t in torch.likely} if torch and torch.candidates else set()
    if not stacks:
        stacks = {scene.stack_name} - {""}
    mine = [c for c in likely if not c.stack or not stacks or split_stack(c.stack)[0] in stacks]
    return mine


def broken_needs(scene: Scene, candidate: Candidate) -> Iterator[Broken]:
    """The hard needs of a build on other packages that those which are there do not meet."""
    for need in candidate.needs:
        if (need.soft and need.name not in scene.book.named) or need.unknown or not _applies(scene, need):
            continue
        if need.subject is Subject.TORCH:
            broken = _torch_broken(scene, candidate, need)
        elif need.subject is Subject.PACKAGE and need.name != candidate.name:
            broken = _package_broken(scene, candidate, need)
        else:
            continue
        if broken:
            yield broken


def _applies(scene: Scene, need: Need) -> bool:
    """A need with a marker counts where the Python is known and the marker holds."""
    from accel_env.matrix.markers import marker_holds

    if not need.marker:
        return True
    return bool(scene.host.python) and marker_holds(need.marker, scene.host.platform, scene.host.python)


def _torch_broken(scene: Scene, candidate: Candidate, need: Need) -> Broken | None:
    row, found = scene.torch(), scene.possible("torch")
    if row is None:
        return None
    if found is None or not found.candidates:
        return _by_words(candidate, need, row)
    likely = [t for t in found.likely if satisfies(t, need)]
    if likely:
        return None
    by_all = not any(satisfies(t, need) for t in found.candidates)
    return Broken(candidate, need, "torch", f"torch here is {said(row)}", by_all)


def _by_words(candidate: Candidate, need: Need, row: Installed) -> Broken | None:
    """A torch that no index serves: what its version and its label tell."""
    if row.vendor and not row.local:
        return None
    wanted = dict(need.abi)
    have = {"cuda": cuda_of(row.local), "hip": hip_of(row.local)}
    for key, spec in wanted.items():
        if have.get(key) and "." in have[key] and spec[:1] in "<>=!~" and not allows(spec, have[key]):
            return Broken(candidate, need, "torch", f"torch here is {said(row)}", True)
    if row.version and not row.vendor and not row.nightly and not allows(need.allows, row.version):
        return Broken(candidate, need, "torch", f"torch here is {said(row)}", True)
    return None


def _package_broken(scene: Scene, candidate: Candidate, need: Need) -> Broken | None:
    row = scene.row(need.name)
    if row is None or row.vendor or row.nightly:
        return None
    if need.when == "absent":
        bad = row.version and allows(need.allows, row.version)
    elif row.version:
        bad = not _meets(need.allows, row.version) and not (_is_series(row) and _overlap(scene, need, row))
    else:
        found = scene.possible(need.name)
        bad = (
            bool(row.spec)
            and found is not None
            and bool(found.candidates)
            and not any(satisfies(c, need) for c in found.candidates)
        )
    return Broken(candidate, need, need.name, f"{need.name} here is {said(row)}", True) if bad else None


def _meets(spec: str, version: str) -> bool:
    """True for a release that the specifier allows, and for a post-release of one: makers number builds of one code that way."""
    return allows(spec, version) or (".post" in version and allows(spec, version.partition(".post")[0]))


def _is_series(row: Installed) -> bool:
    return len(parse(row.version).release) < 3


def _overlap(scene: Scene, need: Need, row: Installed) -> bool:
    """`2.10` may be any patch release of it."""
    found = scene.possible(row.name)
    return found is not None and any(satisfies(c, need) for c in found.candidates)


def _finding(scene: Scene, found: Possible, rows: Sequence[Broken]) -> Finding:
    first = rows[0]
    rule, component = name_pair(scene, found.installed, first)
    rest = [c for c in found.candidates if c not in found.likely]
    by_all = found.exact and first.by_all and all(any(True for _ in broken_needs(scene, c)) for c in rest)
    by_all = by_all and not _elsewhere(scene, found, first)
    by_all = by_all and not first.need.soft
    level = "error" if by_all or scene.mentions(component) or scene.mentions(found.installed.name) else "warning"
    message = scene.spoken(f"{need_text(first.need, first.candidate)}; {first.met}", first.candidate)
    seen = {(row.need.fact, need_text(row.need, row.candidate)): row.candidate for row in rows[:3]}
    reasons = tuple(
        scene.because(first.need.subject.value, scene.spoken(f"{text}; {first.met}", candidate), fact)
        for (fact, text), candidate in seen.items()
    )
    return Finding(rule, component, level, message, reasons, unique(pair_fixes(scene, component, first)))


def _elsewhere(scene: Scene, found: Possible, broken: Broken) -> bool:
    """True where only the toolkit differs and the package, named without a label, may come from an index of that toolkit."""
    if found.labelled or not broken.need.abi or broken.other != "torch" or broken.candidate.variant:
        return False
    row = scene.torch()
    versions = row is None or not row.version or allows(broken.need.allows, row.version)
    every = scene.matrix.candidates(found.installed.name, scene.host.platform)
    return versions and any(c.index != "pypi" for c in every)


def name_pair(scene: Scene, installed: Installed, broken: Broken) -> tuple[str, str]:
    """(rule, component) of two packages that do not go together."""
    book, name, other = scene.book, installed.name, broken.other
    if other in book.named:
        return book.named[other], name
    every = scene.matrix.candidates(name, scene.host.platform)
    native = any(c.variant and c.build in UNLABELLED for c in every)
    if name != "torch" and other == "torch" and native and _version_fits(scene, broken):
        return ("soname-mismatch" if "sycl" in dict(broken.need.abi) else "native-lib-missing-for-runtime"), name
    if name in book.pairs:
        return "package-pair-mismatch", name
    if other in book.pairs and other != "torch":
        return "package-pair-mismatch", other
    if broken.need.subject is Subject.TORCH and _major_differs(scene, broken):
        return "extension-cuda-major-mismatch", name
    row = scene.row(other)
    if installed.wanted or name in book.pins or (row is not None and row.wanted):
        return "package-pin-conflict", name
    return ("extension-abi-mismatch" if other == "torch" and not _is_pure(broken.candidate) else "package-pin-conflict"), name


def _is_pure(candidate: Candidate) -> bool:
    """True where nothing is compiled, so that no torch can be the wrong one for its libraries."""
    compiled = any(need.subject in (Subject.ARCH, Subject.TORCH) for need in candidate.needs)
    return not compiled and all(tag.startswith("py") for tag in candidate.tags)


def _version_fits(scene: Scene, broken: Broken) -> bool:
    """True where the release of torch would do, or nobody says which it is: then its toolkit is what is apart."""
    row = scene.torch()
    return row is None or not row.version or row.vendor or allows(broken.need.allows, row.version)


def _major_differs(scene: Scene, broken: Broken) -> bool:
    """True where the version of torch would do and its CUDA major alone does not."""
    wanted = dict(broken.need.abi).get("cuda", "")
    cuda = cuda_of(scene.torch_label())
    row = scene.torch()
    version = row.version if row else ""
    if not wanted or not cuda or (version and not allows(broken.need.allows, version)):
        return False
    major = parse(cuda).major
    return wanted[:1] in "<>=!~" and not any(allows(wanted, f"{major}.{minor}") for minor in range(10))


def pair_fixes(scene: Scene, component: str, broken: Broken) -> Iterator[Fix]:
    """The other release of the component first, then the other torch."""
    if broken.other in scene.book.named:
        yield Fix("package", broken.other, broken.need.allows, command=f'pip install "{broken.other}{broken.need.allows}"')
        yield from keep_torch_beside(scene, broken.other)
        return
    if component == broken.other:  # torch itself names what it wants
        yield Fix("package", component, broken.need.allows, command=f'pip install "{component}{broken.need.allows}"')
        yield from keep_torch_beside(scene, component)
        return
    if broken.need.subject is Subject.PACKAGE and broken.other != "torch" and broken.need.when != "absent":
        spec = broken.need.allows
        yield Fix("package", broken.other, spec, command=f'pip install "{broken.other}{spec}"')
        yield from _beside(scene, component, broken.other)
        return
    yield from fitting_fixes(scene, component)
    yield from keep_torch_of(scene, component)
    yield from scene.book.recipe(component)


def _beside(scene: Scene, name: str, other: str) -> Iterator[Fix]:
    """The newest release of a package that takes the installed release of another one."""
    row = scene.row(other)
    for candidate in scene.matrix.candidates(name, scene.host.platform) if row is not None and row.version else ():
        needs = [n for n in candidate.needs if n.subject is Subject.PACKAGE and n.name == other and n.when != "absent"]
        if row is not None and not candidate.rank and all(allows(n.allows, row.version) for n in needs):
            yield Fix("package", name, f"=={candidate.version}", command=f'pip install "{name}=={candidate.version}"')
            return


def keep_torch_beside(scene: Scene, name: str, limit: int = 3) -> list[Fix]:
    """Builds of torch whose own needs the installed release of a package meets."""
    from accel_env.judge.fixes import torch_fixes

    row = scene.row(name)
    if row is None or not row.version:
        return []

    def fits(torch: Candidate) -> bool:
        needs = [n for n in torch.needs if n.subject is Subject.PACKAGE and n.name == name]
        return all(allows(n.allows, row.version) for n in needs)

    return torch_fixes(scene, fits, limit)
