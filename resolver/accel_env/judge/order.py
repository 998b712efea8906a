"""One finding per cause, the root cause first, consequences marked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from accel_env.judge.fixes import unique
from accel_env.judge.types import Finding

SEVERITY = {"error": 0, "warning": 1, "note": 2}
# What explains what: the rule of a cause -> the rules that follow from it.
EXPLAINS = {
    "driver-userspace-kernel-mismatch": ("driver-missing", "kernel-driver-not-loaded", "driver-too-old-for-cuda-runtime"),
    "open-kernel-module-required": ("driver-missing", "kernel-driver-not-loaded"),
    "cpu-only-build": ("extension-abi-mismatch", "native-lib-missing-for-runtime", "package-pair-mismatch"),
    "platform-no-wheel": ("extension-abi-mismatch", "native-lib-missing-for-runtime", "cpu-only-build"),
    "wrong-index": ("driver-missing", "cpu-only-build", "extension-cuda-major-mismatch"),
    "vendor-build-overwritten": ("cpu-only-build", "extension-abi-mismatch", "package-pair-mismatch", "wrong-index"),
    "duplicate-install": ("extension-abi-mismatch", "package-pair-mismatch"),
    "package-pin-conflict": ("extension-abi-mismatch",),
}

# The same where both are about one component.
EXPLAINS_SAME = {
    "package-pair-mismatch": ("extension-abi-mismatch",),
    "vendor-stack-version-mismatch": ("extension-abi-mismatch",),
}

# The same where the cause is about one component.
EXPLAINS_BY = {
    ("gpu-arch-unsupported-by-package", "nvidia-driver"): ("device-not-passed", "driver-missing", "kernel-driver-not-loaded"),
}


def ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings merged, marked and sorted; what came first stays first among equals."""
    merged = _merged(findings)
    rules = {(f.rule, f.component) for f in merged if f.severity == "error"}
    marked = [_marked(finding, rules) for finding in merged]
    return tuple(sorted(marked, key=lambda f: (SEVERITY[f.severity], bool(f.consequence_of))))


def _merged(findings: Iterable[Finding]) -> list[Finding]:
    """Findings of one rule and component are one: the first speaks, the others add reasons and fixes."""
    found: dict[tuple[str, str, str], Finding] = {}
    for finding in findings:
        key = (finding.rule, finding.component, finding.where)
        if key not in found:
            found[key] = finding
            continue
        first = found[key]
        level = min((first.severity, finding.severity), key=lambda word: SEVERITY[word])
        reasons = dict.fromkeys((*first.because, *finding.because))
        found[key] = replace(first, severity=level, because=tuple(reasons), fixes=unique((*first.fixes, *finding.fixes)))
    return list(found.values())


def _marked(finding: Finding, causes: set[tuple[str, str]]) -> Finding:
    for cause, component in sorted(causes):
        if finding.rule in (*EXPLAINS.get(cause, ()), *EXPLAINS_BY.get((cause, component), ())):
            return replace(finding, consequence_of=cause)
        if finding.component == component and finding.rule in EXPLAINS_SAME.get(cause, ()):
            return replace(finding, consequence_of=cause)
    return finding
