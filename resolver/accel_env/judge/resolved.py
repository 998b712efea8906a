"""The way out that always is one: what the solver picks for this machine and everything that is installed together."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from accel_env.errors import UsageError
from accel_env.judge.types import Environment, Finding, Fix, Installed
from accel_env.judge.verify import clean
from accel_env.model import Ask, Policy, Solution

if TYPE_CHECKING:
    from accel_env.judge.scene import Scene

# Rules that another set of packages can end.
BY_PACKAGES = frozenset(
    {
        "gpu-arch-not-in-wheel",
        "gfx-not-in-wheel",
        "driver-too-old-for-cuda-runtime",
        "extension-abi-mismatch",
        "extension-cuda-major-mismatch",
        "package-pair-mismatch",
        "package-pin-conflict",
        "native-lib-missing-for-runtime",
        "soname-mismatch",
        "numpy-abi",
        "cpu-only-build",
        "platform-no-wheel",
        "wrong-index",
    }
)


def with_resolved(findings: tuple[Finding, ...], scene: Scene) -> tuple[Finding, ...]:
    """The findings; the first error that packages can end, and has no verified way out yet, gets the solver's own answer."""
    for place, finding in enumerate(findings):
        if finding.severity != "error" or finding.rule not in BY_PACKAGES or _of_system(finding):
            continue
        if any(fix.verified for fix in finding.fixes):
            return findings
        fix = resolved_fix(scene)
        if fix is None:
            return findings
        changed = replace(finding, fixes=(*finding.fixes, fix))
        return (*findings[:place], changed, *findings[place + 1 :])
    return findings


def _of_system(finding: Finding) -> bool:
    """True for a library of the operating system, which no package of Python brings."""
    return finding.rule == "native-lib-missing-for-runtime" and ".so" in finding.component


def resolved_fix(scene: Scene) -> Fix | None:
    """What `resolve` picks for the installed packages on this host; None without a device, or where nothing works."""
    plan = _plan(scene)
    torch = next((p.candidate for p in plan.picks if p.candidate.name == "torch"), None) if plan else None
    if plan is None or torch is None or plan.problem.policy.base:  # a vendor's image is nothing to install
        return None
    rows = {p.candidate.name: p.candidate for p in plan.picks}
    kept = tuple(r for r in scene.environment.installed if r.name not in rows)
    added = tuple(Installed(c.name, c.version, "" if c.build in ("", "any") else c.build, origin="plan") for c in rows.values())
    if not clean(replace(scene.environment, installed=(*kept, *added), texts=()), scene):
        return None
    others = ", ".join(c.label for c in rows.values() if c is not torch)
    asks = " ".join(ask.name for ask in plan.problem.asks)
    text = f"what the solver picks for this machine{': with ' + others if others else ''}"
    return Fix(
        "package", "torch", f"=={torch.version}", torch.build, do=text, command=f"accel-env lock {asks} -o env", verified=True
    )


def _plan(scene: Scene) -> Solution | None:
    from accel_env.solve.finish import answer
    from accel_env.solve.problem import state
    from accel_env.solve.prune import prune

    environment: Environment = scene.environment
    known = scene.matrix.package_names()
    names = [row.name for row in scene.rows() if row.name in known]
    if not scene.devices or not all(d.arch for d in scene.devices) or not names:
        return None
    driver = scene.driver.low
    devices = tuple(replace(d, driver=d.driver or driver) for d in scene.host.devices)
    host = replace(environment.host, devices=devices)
    asks = tuple(Ask(name, "", text=name, origin="installed") for name in dict.fromkeys(["torch", *names]))
    try:
        plan = answer(prune(state(host, asks, Policy(target="venv"), scene.matrix), scene.matrix))
    except UsageError:
        return None
    return plan if isinstance(plan, Solution) else None
