"""Asked packages that nobody has built for the devices of the host, in any file that the requirement can mean."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import TYPE_CHECKING

from accel_env.judge.types import Finding, Fix
from accel_env.model import Because, Candidate, Subject
from accel_env.solve.explain import need_text
from accel_env.solve.versions import allows, parse, split_stack

if TYPE_CHECKING:
    from accel_env.judge.files.pick import Present
    from accel_env.judge.files.scope import Scope
    from accel_env.judge.scene import Failed
    from accel_env.judge.scene import Scene as Judged

_REASONS = 3  # of builds; more say the same


def device_findings(scope: Scope) -> Iterator[Finding]:
    """An error for each asked package of which no build, from source or not, serves the devices: nothing can be installed."""
    if not scope.named or not scope.stack_name or not all(d.arch for d in scope.devices):
        return
    asked = [p for p in scope.state.packages.values() if p.candidates and not (p.by or p.shaky or p.vendor or p.nightly)]
    asked = [p for p in asked if p.name != "torch"]  # which builds of torch an index gives is judged as such
    if not asked:
        return
    from accel_env.judge.files.needs import environment_of
    from accel_env.judge.scene import Scene as Judged

    scene = Judged(environment_of(scope), (), scope.matrix, scope.know.book)
    for present in asked:
        rows = _allowed(scope, present)
        mine = [c for c in rows if split_stack(c.stack)[0] == scope.stack_name]
        if not rows or any(split_stack(c.stack)[0] in ("", "cpu") for c in rows):
            continue
        # the first that works ends the search
        lacking = [failed for failed in takewhile(bool, (_lack(scene, c) for c in mine)) if failed]
        if len(lacking) == len(mine):
            yield _finding(scope, scene, present, rows, lacking)


def _allowed(scope: Scope, present: Present) -> list[Candidate]:
    """The builds of the release, or of the releases that the requirement allows, wherever they are."""
    every = scope.matrix.candidates(present.name, scope.host.platform)
    if present.free:
        public = present.spec.partition("+")[0]
        return [c for c in every if allows(public, c.version)]
    return [c for c in every if parse(c.version) == parse(present.version)]


def _lack(scene: Judged, candidate: Candidate) -> Failed | None:
    """The missing code of a build; None where the devices run it, or nobody published what they need."""
    rows = scene.failures(candidate)
    return next((row for row in rows if row.need.subject in (Subject.ARCH, Subject.STACK) and not row.need.soft), None)


def _finding(scope: Scope, scene: Judged, present: Present, rows: list[Candidate], lacking: list[Failed]) -> Finding:
    from accel_env.judge.evaluate import arch_fixes
    from accel_env.judge.fixes import fitting_fixes, unique

    name = present.name
    label = f"{name} {present.version}" if present.version and not present.free else present.text or name
    reasons: list[Because] = []
    fixes: list[Fix] = list(fitting_fixes(scene, name))
    for absent in scope.matrix.package(name).absent:
        if absent.stack == scope.stack_name and (not absent.archs or scene.arch in absent.archs):
            reasons.append(scene.because("instead", absent.text, absent.fact))
            fixes.append(Fix("action", do=absent.text))
    if lacking:
        rule, first = "gpu-arch-unsupported-by-package", lacking[0]
        message = f"no build of {label} is for {scene.named()}: {need_text(first.need, first.candidate)}"
        facts = {row.need.fact: row for row in reversed(lacking)}
        told = [(f"{need_text(row.need, row.candidate)}; {row.met}", fact) for fact, row in facts.items()]
    else:
        rule = "backend-unsupported-by-package"
        stacks = " and ".join(sorted({split_stack(c.stack)[0] for c in rows}))
        message = f"no build of {label} is for {scene.named()}: its builds are for {stacks}"
        told = [(f"{rows[0].label} is for the stack {rows[0].stack}", rows[0].fact)]
    reasons += [scene.because("arch" if lacking else "build", text, fact) for text, fact in told[:_REASONS]]
    fixes += arch_fixes(scene, name) if lacking else [Fix("hardware", do=f"a device that {name} has code for")]
    return scope.finding(rule, name, "error", message, present.where, reasons, unique(fixes))
