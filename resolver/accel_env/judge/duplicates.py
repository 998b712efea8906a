"""What must not be there twice: known conflicts, several owners of one module, several copies of one package."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from accel_env.judge.types import Finding, Fix, Installed
from accel_env.solve.versions import allows, parse

if TYPE_CHECKING:
    from accel_env.judge.scene import Scene


def duplicate_findings(scene: Scene) -> Iterator[Finding]:
    """Findings about packages of which one is too many."""
    yield from _known_conflicts(scene)
    yield from _owners(scene)
    yield from _twice(scene)


def said(row: Installed) -> str:
    """An installed version in words."""
    version = row.version or row.spec or row.text or "of unknown version"
    return version + (f"+{row.local}" if row.local else "")


def _known_conflicts(scene: Scene) -> Iterator[Finding]:
    """Pairs of conflicts.yaml that are both there."""
    for conflict in scene.matrix.conflicts():
        if conflict.id in scene.book.unjudged:
            continue
        rows = [scene.row(name) for name, _ in (conflict.a, conflict.b)]
        if any(row is None for row in rows):
            continue
        ranges = (conflict.a[1], conflict.b[1])
        if all(row is not None and _inside(row, spec) for row, spec in zip(rows, ranges, strict=True)):
            (a, _), (b, _) = conflict.a, conflict.b
            wanted = any(row is not None and row.wanted for row in rows)
            # a range that ends: it is these releases that do not go together, not the two packages
            ends = any("<" in spec or "==" in spec for spec in ranges)
            rule = "package-pin-conflict" if wanted else "package-pair-mismatch" if ends else "duplicate-install"
            level = "error" if scene.complaint else "warning"
            reason = scene.because("package", f"{a} and {b}: {conflict.why}", conflict.fact)
            fixes = (*_out_of(scene, a, ranges[0]), *_out_of(scene, b, ranges[1])) if ends else ()
            fixes = fixes or (Fix("package", b, do=f"remove {b}", command=f"pip uninstall {b}"),)
            both = f"{a} {said(rows[0])} and {b} {said(rows[1])}" if ends and rows[0] and rows[1] else f"{a} and {b}"
            yield Finding(rule, a if ends else b, level, f"{both} cannot be in one environment: {conflict.why}", (reason,), fixes)


def _out_of(scene: Scene, name: str, spec: str) -> Iterator[Fix]:
    """The newest release that a range leaves out: above it where there is one."""
    for candidate in scene.matrix.candidates(name, scene.host.platform):
        if not candidate.rank and not allows(spec, candidate.version):
            yield Fix("package", name, f"=={candidate.version}", command=f'pip install "{name}=={candidate.version}"')
            return


def _inside(row: Installed, spec: str) -> bool:
    return allows(spec, row.version) if row.version else bool(row.spec)


def _owners(scene: Scene) -> Iterator[Finding]:
    """Several distributions that own one import name."""
    modules = {**scene.matrix.modules(), **scene.book.owners}
    groups: dict[str, list[str]] = {}
    for row in scene.rows():
        if row.name in modules and not row.wanted:
            groups.setdefault(modules[row.name], []).append(row.name)
    for module, names in groups.items():
        if len(names) > 1:
            known = (c.fact for name in names for c in scene.matrix.candidates(name, scene.host.platform))
            fact = next(known, "") or scene.book.note("one-owner")
            reasons = (scene.because("package", f"{' and '.join(names)} both install the module {module}", fact),)
            keep = [name for name in names if name != module] or names
            fix = Fix(
                "package", module, do=f"remove {module} and install {keep[0]} again", command=f"pip uninstall {' '.join(names)}"
            )
            text = f"{' and '.join(names)} both own the module {module}: the one installed last wins"
            level = "error" if scene.mentions(module) or any(scene.mentions(name) for name in names) else "warning"
            yield Finding("duplicate-install", module, level, text, reasons, (fix,))


def _twice(scene: Scene) -> Iterator[Finding]:
    """One distribution in several versions."""
    groups: dict[str, list[Installed]] = {}
    for row in scene.environment.installed:
        if row.version and not row.wanted:
            groups.setdefault(row.name, []).append(row)
    for name, rows in groups.items():
        versions = list(dict.fromkeys(said(row) for row in rows))
        if len(versions) > 1 and len({parse(row.version) for row in rows}) > 1:
            where = ", ".join(f"{said(row)} ({row.origin})" for row in rows)
            reason = scene.because("package", f"several copies of {name}: {where}", scene.book.note("several-copies"))
            fix = Fix("package", name, do=f"remove all copies and install one: {versions[0]}", command=f"pip uninstall {name}")
            level = "error" if scene.complaint and name == "torch" else "warning"
            yield Finding("duplicate-install", name, level, f"{name} is there several times: {where}", (reason,), (fix,))
