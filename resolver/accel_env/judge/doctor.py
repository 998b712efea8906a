"""`judge`: an environment and the clues of its texts become findings. The needs of the matrix decide."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from accel_env.judge.book import open_book
from accel_env.judge.clue_wanted import wanted_findings
from accel_env.judge.clues import clue_findings, refined
from accel_env.judge.driver_releases import device_findings, with_releases
from accel_env.judge.evaluate import host_findings
from accel_env.judge.imaged import with_image
from accel_env.judge.machinery import machine_findings
from accel_env.judge.order import ordered
from accel_env.judge.pairs import pair_findings
from accel_env.judge.proven import with_facts
from accel_env.judge.resolved import with_resolved
from accel_env.judge.scene import Scene
from accel_env.judge.types import Clue, Environment, Finding, Fix
from accel_env.judge.verify import tried

if TYPE_CHECKING:
    from accel_env.matrix.load import Matrix


def judge(environment: Environment, clues: tuple[Clue, ...], matrix: Matrix) -> tuple[Finding, ...]:
    """All findings, the root cause first; empty where nothing speaks against the environment."""
    book = open_book(matrix)
    scene = Scene(with_image(with_facts(environment, clues, matrix), matrix, book), clues, matrix, book)
    machine = (*machine_findings(scene), *device_findings(scene))
    needs = (*machine, *host_findings(scene), *wanted_findings(scene), *pair_findings(scene))
    found = [refined(scene, finding) for finding in (*clue_findings(scene, needs), *needs)]
    rows = ordered(_meant(_sourced(finding), scene) for finding in found if any(reason.source for reason in finding.because))
    return with_resolved(tuple(tried((with_releases(row, scene) for row in rows), scene)), scene)


def _sourced(finding: Finding) -> Finding:
    """Only reasons that have a source."""
    return replace(finding, because=tuple(reason for reason in finding.because if reason.source))


def _meant(finding: Finding, scene: Scene) -> Finding:
    """Without bare words about what is no package: neither of the environment nor of the matrix."""

    def empty(fix: Fix) -> bool:
        said = fix.spec or fix.build or fix.do or fix.command or fix.set or fix.unset
        package = scene.row(fix.name) is not None or fix.name in scene.matrix.package_names()
        return fix.kind in ("package", "build") and not said and not package

    return replace(finding, fixes=tuple(fix for fix in finding.fixes if not empty(fix)))
