"""Releases that belong together by a table: the pairs that no requirement of a wheel holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from accel_env.judge.types import Finding, Fix, Installed
from accel_env.judge.words import built_for
from accel_env.solve.versions import allows, minor

if TYPE_CHECKING:
    from accel_env.judge.book_rows import Pairing
    from accel_env.judge.scene import Scene

PAIR = "package-pair-mismatch"


def pairing_findings(scene: Scene) -> Iterator[Finding]:
    """Findings of judge.yaml's pairings between packages, and of what is written about what a build was made for."""
    yield from _built_findings(scene)
    names = {row.name for row in scene.rows()}
    for row in scene.rows():
        for rule in scene.book.pairings:
            if rule.name != row.name or rule.other not in names or not _is(row, rule):
                continue
            other = scene.row(rule.other)
            if other is not None and _apart(scene, rule, other):
                yield _finding(scene, rule, row, other)
                break


def _built_findings(scene: Scene) -> Iterator[Finding]:
    """Extensions that are said to be built for another torch than the one that is there."""
    torch = scene.torch()
    for row in scene.rows():
        version, label = built_for(row.text)
        if torch is None or row.name == "torch" or not (version or label):
            continue
        apart = bool(version and torch.version) and minor(version) != minor(torch.version)
        other = bool(label and torch.local) and label != torch.local and "cpu" in (label, torch.local)
        if not apart and not other:
            continue
        made = version + (f"+{label}" if label else "")
        here = torch.version + (f"+{torch.local}" if torch.local else "")
        text = f"{row.name} is built for torch {made}; torch here is {here}"
        fixes = (
            Fix("package", "torch", f"=={version}" if version else "", label, do="the torch that it was built for"),
            Fix("package", row.name, do="take the build for the installed torch"),
        )
        reason = scene.because("torch", text, scene.book.note("extension-abi"))
        yield Finding("extension-abi-mismatch", row.name, "error" if scene.complaint else "warning", text, (reason,), fixes)


def _is(row: Installed, rule: Pairing) -> bool:
    if rule.label and not row.local.startswith(rule.label):
        return False
    return bool(row.version) and allows(rule.allows, row.version)


def _apart(scene: Scene, rule: Pairing, other: Installed) -> bool:
    """True where the other release is known not to be the one that belongs to it."""
    if rule.vendor and not other.vendor:
        return bool(other.version or other.local) or scene.mentions(rule.name)
    return bool(other.version) and not other.nightly and not allows(rule.wants, other.version)


def _finding(scene: Scene, rule: Pairing, row: Installed, other: Installed) -> Finding:
    maker = " of its own maker" if rule.vendor and not other.vendor else ""
    here = other.version or other.text
    text = f"{row.name} {row.version} belongs to {rule.other} {rule.wants.lstrip('=')}{maker}; {rule.other} here is {here}"
    mine = [p for p in scene.book.pairings if p.name == row.name and p.other == rule.other and not p.vendor]
    back = [p.allows for p in mine if other.version and allows(p.wants, other.version)]
    fixes = (
        *rule.fixes,
        *(() if rule.fixes else (Fix("package", rule.other, rule.wants, do=f"for {row.name} {row.version}"),)),
        *(Fix("package", row.name, spec, do=f"for {rule.other} {other.version}") for spec in back[:1]),
    )
    level = "error" if (other.version or scene.complaint) else "warning"
    return Finding(rule.rule or PAIR, row.name, level, text, (scene.because("package", text, rule.fact),), fixes)
