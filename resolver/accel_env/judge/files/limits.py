"""What a constraints file leaves nothing of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accel_env.judge.types import Finding, Fix

if TYPE_CHECKING:
    from accel_env.judge.files.pick import Clash
    from accel_env.judge.files.scope import Scope
    from accel_env.judge.files.values import Install


def limited(scope: Scope, clash: Clash, install: Install) -> Finding:
    """A requirement and a row of the command's constraints on the same package, which no release meets together."""
    wanted, limit = clash.a, clash.b
    text = f"the constraint {limit.text or limit.name} ({limit.where}) leaves no release of {wanted.text or wanted.name}"
    reasons = (scope.because("package", text, scope.know.book.note("constraints")),)
    fixes = (
        Fix("package", wanted.name, limit.spec, do="ask for what the constraint leaves"),
        Fix("action", do=f"change the constraint at {limit.where}"),
    )
    return scope.finding(
        "package-pin-conflict", wanted.name, "warning" if install.maybe else "error", text, wanted.where, reasons, fixes
    )
