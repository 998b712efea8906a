"""Findings about what replaces a vendor's or a chosen torch, and about libraries that are taken from the system."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from accel_env.judge.files.pick import Present, exact
from accel_env.judge.files.scope import major
from accel_env.judge.files.values import Wanted
from accel_env.judge.types import Finding, Fix
from accel_env.solve.versions import allows, split_stack

if TYPE_CHECKING:
    from accel_env.judge.files.scope import Scope
    from accel_env.judge.files.state import Replaced


def vendor_findings(scope: Scope) -> Iterator[Finding]:
    """Everything about replaced builds and system libraries of a scene."""
    yield from _libraries(scope)
    for replaced in scope.state.replaced:
        yield from _replaced(scope, replaced)
    yield from _risks(scope)


# --- libraries of the system ------------------------------------------------------------------------------------------


def _libraries(scope: Scope) -> Iterator[Finding]:
    """Packages that load CUDA libraries of a major that neither the image nor torch's wheels bring."""
    image = scope.image
    if scope.scene.kind != "image" or image is None or image.stack_name != "cuda" or not image.release:
        return
    torch = split_stack(scope.torch_stack())
    there = {major(image.release)} | ({major(torch[1])} if torch[0] == "cuda" and torch[1] else set())
    for one in scope.state.others.values():
        for row in scope.tables.libraries:
            if row.name != one.name or row.major in there or set(row.extras) & set(one.extras) or not _inside(one, row.allows):
                continue
            if _brought(scope, row.major):
                continue
            reasons = (
                scope.because("native", f"{one.name} loads CUDA {row.major} libraries", row.fact),
                scope.because("image", f"{image.base.ref} has those of CUDA {image.release}", image.fact),
            )
            fixes = (
                Fix("image", "nvidia/cuda", spec=f"=={row.major}.*", do=f"an image of CUDA {row.major}"),
                Fix("package", one.name, do=f"the build for CUDA {major(image.release)}"),
            )
            text = f"{one.text or one.name} needs the libraries of CUDA {row.major}; {image.base.ref} has CUDA {image.release}"
            yield scope.finding("extension-cuda-major-mismatch", one.name, "error", text, one.where, reasons, fixes)


def _inside(wanted: Wanted, spec: str) -> bool:
    """Whether the versions that are asked for lie in a range; the newest one does where nothing is said."""
    version = wanted.spec.lstrip("=").removesuffix(".*")
    if wanted.spec.startswith("=="):
        return allows(spec, version)
    return not spec or (spec.startswith(">=") and "<" not in spec)


def _brought(scope: Scope, cuda: str) -> bool:
    """Whether NVIDIA's wheels or packages of a CUDA major are installed besides."""
    suffix = f"cu{cuda}"
    if any(name.startswith("nvidia-") and name.endswith(suffix) for name in scope.state.others):
        return True
    return any(re.search(rf"cuda[a-z-]*-{cuda}(?:[.-]|$)|cuda-{cuda}", word) for word in scope.state.words)


# --- vendor builds ----------------------------------------------------------------------------------------------------


def _replaced(scope: Scope, replaced: Replaced) -> Iterator[Finding]:
    """A vendor's torch that pip puts another in place of."""
    image, before, after = scope.image, replaced.before, replaced.after
    if not before.vendor and before.name == "torch":
        yield from _pin_overwritten(scope, replaced)
    if not before.vendor or before.name != "torch" or image is None or not image.vendor or image.family is None:
        return
    stack = {split_stack(c.stack)[0] for c in after.candidates}
    foreign = bool(image.stack_name) and bool(stack) and image.stack_name not in stack
    severity = "error" if (image.family.needs_torch or foreign) and not after.shaky else "warning"
    by = replaced.by or after.text
    reasons = [
        scope.because("image", f"{image.base.ref} brings {before.label}, a build of its own", image.fact),
        scope.because("package", f"{by} asks for torch {after.spec or after.version}", scope.tables.note("replaced")),
    ]
    if replaced.held:
        text = f"{by} asks for {after.label}, and the constraints of {image.base.ref} hold its own torch: pip "
        text += "goes back to an older release that takes it, or refuses" if after.free else "refuses"
        severity = "warning" if after.shaky or after.free or image.unsure else "error"
        if image.unsure:
            text += "; where the file of constraints is empty, pip puts it in place of the image's"
            reasons.append(scope.because("image", "it is not certain that they hold torch", scope.tables.note("unsure")))
        component = after.by or "torch"
        yield scope.finding("package-pin-conflict", component, severity, text, after.where, reasons, _kept(scope, after, before))
        return
    text = f"{by} puts {after.label} in place of the torch that {image.base.ref} brings"
    text += f": that build is for {' or '.join(sorted(stack))}" if foreign else ""
    yield scope.finding("vendor-build-overwritten", "torch", severity, text, after.where, reasons, _kept(scope, after, before))


def _pin_overwritten(scope: Scope, replaced: Replaced) -> Iterator[Finding]:
    """A torch that one command chooses and a later one replaces on another package's account."""
    before, after = replaced.before, replaced.after
    if not after.by or not before.candidates or not after.candidates or before.free or before.by:
        return
    reasons = (scope.because("package", f"{after.by} asks for torch {_spec(scope, after)}", scope.tables.note("replaced")),)
    fixes = (
        Fix("package", after.by, do=f"the release of {after.by} that goes with {before.label}"),
        Fix(
            "package",
            "torch",
            f"=={after.version}",
            after.local,
            do=f"ask for the torch that {after.by} takes in the first place",
        ),
    )
    text = f"{after.by} puts {after.label} in place of {before.label}, which {before.where} asks for"
    yield scope.finding("pin-overwritten", "torch", "warning", text, after.where, reasons, fixes)


def _spec(scope: Scope, after: Present) -> str:
    from accel_env.judge.files.pool import requires_of

    by = scope.state.packages.get(after.by)
    asked = dict(requires_of(by.candidates[0].requires, scope.host.platform, scope.state.python)) if by and by.candidates else {}
    return asked.get("torch", "") or after.spec or after.version


def _kept(scope: Scope, after: Present, before: Present | None = None) -> tuple[Fix, ...]:
    if before is not None and not after.by and not _agrees(before, after.spec):
        do = f"leave {after.text} out: the torch of the image stays"
        return Fix("action", do=do), Fix("image", do="another base: one that brings this torch, or none of its own")
    keep = "python -c \"import torch; print('torch==' + torch.__version__)\" > /tmp/keep.txt"
    name = after.by or after.text or "PACKAGE"
    return (
        Fix(
            "action",
            do="hold the image's torch with a constraints file",
            command=f"{keep} && pip install {name} -c /tmp/keep.txt",
        ),
        Fix(
            "package",
            after.by or "torch",
            do="leave it out, or take the release that was built for the image's torch, with --no-deps",
        ),
    )


def _agrees(before: Present, spec: str) -> bool:
    """Whether a constraint on the image's torch and the requirement can hold together."""
    return not exact(spec) if not before.version else allows(spec, before.version)


def _risks(scope: Scope) -> Iterator[Finding]:
    image = scope.image
    rows = scope.state.risks
    if not rows or image is None:
        return
    names = list(dict.fromkeys(name for row in rows for name in row.names))
    reasons = (scope.because("image", f"{image.base.ref} brings a torch of its own", image.fact),)
    fixes = _kept(scope, Present(names[0], rows[0].where, text=names[0], by=names[0]))[:1]
    text = f"{', '.join(names)} may replace the torch that {image.base.ref} brings: nothing holds it"
    yield scope.finding("vendor-build-overwritten", "torch", "warning", text, rows[0].where, reasons, fixes)
