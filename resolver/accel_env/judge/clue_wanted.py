"""Clues of installers that found nothing to install: what is really missing decides the rule."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from accel_env.judge.clue_driver import plain
from accel_env.judge.clue_index import by_index, by_label
from accel_env.judge.evaluate import failing, finding, python_fixes
from accel_env.judge.fixes import fitting_fixes, free_fixes, torch_fixes, unique
from accel_env.judge.live import choose, live, package_fix, runs
from accel_env.judge.pairs import broken_needs
from accel_env.judge.types import Clue, Finding, Fix, Installed
from accel_env.model import Candidate, Subject
from accel_env.solve.problem import normalise
from accel_env.solve.slot import satisfies
from accel_env.solve.verdict import SOURCE_RANK
from accel_env.solve.versions import allows, parse, split_stack, valid_specifier

if TYPE_CHECKING:
    from accel_env.judge.scene import Scene

_WANTED = re.compile(r"([A-Za-z0-9][\w.-]*)\s*((?:==|~=|>=|<=|!=|<|>)[^;\s]*)?")


def no_match(scene: Scene, clue: Clue) -> Finding:
    """`No matching distribution found`: an index, a Python, a platform, a glibc, or a version that is nowhere."""
    row = wanted_row(scene, clue)
    if row is None:
        return plain(scene, clue)
    found = by_label(scene, clue, row) or by_index(scene, clue, row) or _by_needs(scene, clue, row) or _by_old(scene, clue, row)
    found = found or (no_prebuilt(scene, row) if row.name in scene.matrix.package_names() else None)
    if found is not None:
        return found
    known = row.name in scene.matrix.package_names()
    fixes = torch_fixes(scene) if row.name == "torch" and scene.devices else free_fixes(scene, row.name) if known else []
    base = plain(scene, clue)
    return replace(base, component=row.name, fixes=unique((*fixes, *base.fixes)))


def wanted_row(scene: Scene, clue: Clue) -> Installed | None:
    """What the installer was asked for: by the text, completed by what the environment says."""
    found = _WANTED.match(clue.facts.get("wanted", ""))
    name = normalise(found[1]) if found else clue.component
    row = scene.row(name)
    spec = (found[2] or "").rstrip(".,") if found else ""
    if row is None and found is None:
        return None
    public, _, label = spec.partition("+")
    if row is None or (spec and not row.version and not row.spec):
        exact = public[2:] if public.startswith("==") and "," not in public and "*" not in public else ""
        return Installed(name, exact, label, public if valid_specifier(public) else "", spec, "the error text", wanted=True)
    return replace(row, wanted=True, local=row.local or label)


def wanted_findings(scene: Scene) -> Iterator[Finding]:
    """What somebody tries to install and cannot, without a text that says so in a known way."""
    spoken = {clue.facts.get("wanted", "").split("=")[0] for clue in scene.clues}
    for row in scene.rows():
        if not scene.wanted(row) or row.name in spoken:
            continue
        clue = Clue("wanted", "python-no-wheel", row.name, row.text)
        known = row.name in scene.matrix.package_names() and not row.vendor
        found = by_index(scene, clue, row) or (known and (no_prebuilt(scene, row) or _by_needs(scene, clue, row))) or None
        if found is not None:
            yield found


def no_prebuilt(scene: Scene, row: Installed) -> Finding | None:
    """A package that is compiled on the spot where no wheel fits: there is none for this torch and Python."""
    every = scene.matrix.candidates(row.name, scene.host.platform)
    mine = [c for c in every if _meant(row, c)]
    wheels = [c for c in mine if c.rank < SOURCE_RANK]
    source = [c for c in mine if c.rank >= SOURCE_RANK]
    if not source:
        return None
    fitting = [
        c for c in wheels if not c.rank and not any(True for _ in broken_needs(scene, c)) and not scene.failures(c, wanted=True)
    ]
    if fitting:
        return None
    torch = scene.torch()
    here = f"torch {torch.version or torch.text}" if torch else "this torch"
    python = f"Python {scene.host.python}" if scene.host.python else "this Python"
    message = f"{row.name} {row.version} has no wheel for {here} and {python}: only a source build"
    reasons = [scene.because("build", message, source[0].fact)]
    reasons += [scene.because("build", f"{c.label}: built for another torch or Python", c.fact) for c in wheels[:1]]
    fixes = [
        *fitting_fixes(scene, row.name),
        Fix("build", row.name, do="build it from source"),
        *keep_torch_of_wheels(scene, wheels),
    ]
    return Finding("no-prebuilt-wheel", row.name, "error", message, tuple(reasons), unique(fixes))


def keep_torch_of_wheels(scene: Scene, wheels: list[Candidate]) -> list[Fix]:
    """Builds of torch for which this Python has a wheel of the package."""
    able = [c for c in wheels if not c.rank and not any(f.need.subject is Subject.PYTHON for f in scene.failures(c, wanted=True))]

    def fits(torch: Candidate) -> bool:
        return any(satisfies(torch, n) for c in able for n in c.needs if n.subject is Subject.TORCH)

    return torch_fixes(scene, fits, limit=3)


def _by_needs(scene: Scene, clue: Clue, row: Installed) -> Finding | None:
    """The releases that were asked for exist, and each misses something of this host."""
    every = scene.matrix.candidates(row.name, scene.host.platform)
    mine = [c for c in every if _meant(row, c)]
    if not mine:
        return _elsewhere(scene, clue, row) if row.name in scene.matrix.package_names() else None
    stacks = scene.stacks() or {"cuda", "cpu"}
    mine = [c for c in mine if not c.stack or split_stack(c.stack)[0] in stacks] or mine
    plain_rows = [c for c in mine if not c.stack or c.index == "pypi"] or mine
    rows = failing(scene, plain_rows, wanted=True)
    if not rows:
        return None
    found = finding(scene, rows, "error")
    base = plain(scene, clue)
    fixes = [*found.fixes, *free_fixes(scene, row.name), *owner_fixes(scene, row.name)]
    if found.rule == "python-no-wheel":
        fixes = [*python_fixes(scene, mine), *fixes]
    return replace(found, because=(*base.because, *found.because), fixes=unique((*fixes, *clue.fixes)))


def owner_fixes(scene: Scene, name: str) -> Iterator[Fix]:
    """Releases of the packages that ask for this one, whose own choice of it this host takes."""
    takes = {c.version for c in live(scene, name)}

    for row in scene.rows():
        if row.name == name or row.name not in scene.matrix.package_names() or row.name == "torch":
            continue
        wanting = [
            c
            for c in live(scene, row.name)
            if any(n.subject is Subject.PACKAGE and n.name == name and any(allows(n.allows, v) for v in takes) for n in c.needs)
        ]
        for run in choose(runs(scene, row.name, wanting), row.version, row.local, 1):
            yield package_fix(scene, row.name, run)


def _meant(row: Installed, candidate: Candidate) -> bool:
    if row.spec:
        return allows(row.spec, candidate.version)
    if row.version:
        exact = parse(candidate.version) == parse(row.version)
        return exact or (len(parse(row.version).release) < 3 and allows(f"=={row.version}.*", candidate.version))
    return True


def _elsewhere(scene: Scene, clue: Clue, row: Installed) -> Finding | None:
    """A release that is published, but not for this platform."""
    base = plain(scene, clue)
    meant = [c for p in scene.matrix.platforms(row.name) for c in scene.matrix.candidates(row.name, p) if _meant(row, c)]
    if not meant:
        return None
    platforms = ", ".join(dict.fromkeys(c.platform for c in meant))
    label = " ".join(filter(None, (row.name, row.version or row.spec)))
    message = f"{label} has no build for {scene.host.platform}: only for {platforms}"
    fixes = [*free_fixes(scene, row.name), Fix("build", row.name, do="build it from source")]
    if scene.host.os == "windows":
        fixes.append(Fix("action", do="run it under WSL2 or in a Linux container"))
    reasons = (*base.because, scene.because("build", message, meant[0].fact))
    return Finding("platform-no-wheel", row.name, "error", message, reasons, unique(fixes))


def _by_old(scene: Scene, clue: Clue, row: Installed) -> Finding | None:
    """A torch of before the matrix: its Pythons."""
    old = scene.book.old_torch(row.version) if row.name == "torch" and row.version else None
    if old is None or not scene.host.python or allows(old.pythons, f"{scene.host.python.rstrip('t')}.0"):
        return None
    base = plain(scene, clue)
    message = f"torch {row.version} has wheels for Python {old.pythons}; this is Python {scene.host.python}"
    top = old.pythons.split("<")[-1]
    fixes = [
        Fix("python", "python", spec=f"<{top}", do="an older Python"),
        *free_fixes(scene, "torch"),
        *torch_fixes(scene, limit=2),
    ]
    reasons = (*base.because, scene.because("python", message, old.fact))
    return Finding("python-no-wheel", "torch", "error", message, reasons, unique(fixes))


def tool_gap(scene: Scene, clue: Clue) -> Finding:
    """A tool lists combinations and this one is none of them: the tool's next release, another torch, another Python."""
    base = plain(scene, clue)
    row = scene.torch()
    torch = row.version if row and row.version else clue.facts.get("torch_wanted", "")
    python = scene.host.python or clue.facts.get("python", "")
    fixes = [*clue.fixes]
    if torch:
        fixes.append(
            Fix(
                "package",
                "torch",
                f">{torch}" if torch.count(".") > 1 else f">={_next_minor(torch)}",
                do="a release that the tool lists",
            )
        )
    if python:
        fixes.append(Fix("python", "python", spec=f"<{python}", do="a Python that the tool lists for this torch"))
    return replace(base, fixes=unique(fixes))


def _next_minor(version: str) -> str:
    major, minor = (*parse(version).release, 0)[:2]
    return f"{major}.{minor + 1}"
