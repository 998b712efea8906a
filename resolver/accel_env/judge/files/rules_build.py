"""Findings about packages that are compiled while they are installed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from accel_env.judge.files.pick import Present
from accel_env.judge.files.scope import major
from accel_env.judge.files.values import UNKNOWN, Install, Tools
from accel_env.judge.types import Finding, Fix
from accel_env.model import Candidate
from accel_env.solve.versions import allows, split_stack

if TYPE_CHECKING:
    from accel_env.judge.files.scope import Scope
    from accel_env.judge.files.state import Compiled
    from accel_env.judge.files.tables import Toolchain

_TRUE = frozenset({"1", "true", "yes"})


def build_findings(scope: Scope) -> Iterator[Finding]:
    """Everything about the source builds of a scene."""
    if scope.scene.kind == "image":
        for one in scope.state.compiled:
            yield from _compiled(scope, one)
        yield from _other_sources(scope)


# --- source builds ----------------------------------------------------------------------------------------------------


def _compiled(scope: Scope, one: Compiled) -> Iterator[Finding]:
    """A package that PyPI has as source only, installed by a command of an image."""
    found, install = one.package, one.install
    row = next((r for r in scope.tables.sources if r.name == found.name), None)
    skip = row is not None and any(install.variables.get(name, "").lower() in _TRUE for name in row.skip)
    stack = _stack(scope, one)
    tools = scope.tables.toolchain(stack)
    if install.isolated and _imports_torch(scope, found):
        yield _isolated(scope, found, install)
    if skip or tools is None or install.maybe:
        return
    if _has_compiler(scope, tools, one.words) is False:
        yield _no_compiler(scope, found, tools, one.torch)
    elif found.url == "" and guessed(scope, found, one.torch) is None:
        yield from _other_major(scope, found, tools, one.torch)


def _stack(scope: Scope, one: Compiled) -> str:
    """The stack that the build is for: torch's, the image's, the devices', or the only one that there is."""
    stacks = {split_stack(c.stack)[0] for c in one.package.candidates}
    for stack in (split_stack(scope.stack_of(one.torch))[0], scope.image.stack_name if scope.image else "", scope.stack_name):
        if stack in stacks:
            return stack
    return "cuda" if "cuda" in stacks else ""


def _imports_torch(scope: Scope, found: Present) -> bool:
    return any(r.name == found.name and r.skip for r in scope.tables.sources)


def _has_compiler(scope: Scope, tools: Toolchain, words: tuple[str, ...]) -> bool | None:
    """Whether the compiler is there; None where nobody can tell."""
    if any(re.fullmatch(tools.found, word, re.IGNORECASE) for word in words):
        return True
    if any(scope.state.variables.get(name) for name in tools.variables) and not (scope.image and scope.image.family):
        return None
    if any(UNKNOWN in word for word in words):
        return None
    if scope.image is None or scope.image.family is None:
        return None
    if scope.image.stack_name not in ("", tools.stack):
        return False
    return scope.image.compiler


def _isolated(scope: Scope, found: Present, install: Install) -> Finding:
    reasons = (scope.because("build", f"{found.name} is built in an environment of its own", scope.tables.note("isolation")),)
    fixes = (
        Fix(
            "action",
            do="install torch first, then this with --no-build-isolation",
            command=f"{_command(install)} {found.text} --no-build-isolation",
        ),
        Fix("package", found.name, do="take the wheel of its release that fits this torch, by URL"),
    )
    text = f"{found.text}: its setup.py imports torch, which an isolated build does not see"
    text += "" if install.tool == "uv" else ", and current pip isolates"
    severity = "error" if install.tool == "uv" and not install.maybe else "warning"
    return scope.finding("build-toolchain-missing", found.name, severity, text, found.where, reasons, fixes)


def _command(install: Install) -> str:
    return "uv pip install" if install.tool == "uv" else "pip install"


def _no_compiler(scope: Scope, found: Present, tools: Toolchain, torch: Present | None) -> Finding:
    image = scope.image
    assert image is not None
    release = image.release or split_stack(scope.stack_of(torch))[1] or "*"
    reasons = [
        scope.because(
            "build", f"PyPI has {found.name} as source only", found.candidates[0].fact if found.candidates else tools.fact
        ),
        scope.because("image", f"{image.base.ref} has no {tools.component}", image.fact),
    ]
    fixes = [
        *_wheels(scope, found, torch),
        Fix("image", tools.image.format(release=release), do="build in an image with the compiler, copy the result"),
    ]
    text = f"{found.text} is compiled here, and {image.base.ref} has no {tools.component}"
    return scope.finding("build-toolchain-missing", tools.component, "error", text, found.where, reasons, fixes)


def _wheels(scope: Scope, found: Present, torch: Present | None) -> Iterator[Fix]:
    """Ready wheels of the package for the torch that is there."""
    if torch is None or not torch.candidates:
        return
    from accel_env.solve.slot import satisfies

    rows = scope.matrix.candidates(found.name, scope.host.platform)
    for one in rows:
        needs = [n for n in one.needs if n.subject.value == "torch"]
        if one.build != "source" and not one.rank and needs and all(satisfies(torch.candidates[0], n) for n in needs):
            yield Fix(
                "package",
                found.name,
                f"=={one.version}",
                one.build,
                do=f"the wheel of its release for {torch.label}, by URL and hash",
            )
            return


def _other_major(scope: Scope, found: Present, tools: Toolchain, beside: Present | None) -> Iterator[Finding]:
    """A compiler of another CUDA major than torch's."""
    torch = split_stack(scope.stack_of(beside))
    image = scope.image
    if (
        tools.stack != "cuda"
        or image is None
        or image.stack_name != "cuda"
        or not image.release
        or torch[0] != "cuda"
        or not torch[1]
    ):
        return
    if major(image.release) == major(torch[1]) or (beside is not None and beside.shaky):
        return
    reasons = (
        scope.because("build", f"torch is built for CUDA {torch[1]}", scope.tables.note("same-major")),
        scope.because("image", f"{image.base.ref} has the compiler of CUDA {image.release}", image.fact),
    )
    label = beside.label if beside else "torch"
    fixes = (
        Fix("image", "nvidia/cuda", spec=f"=={major(torch[1])}.*", do=f"a devel image of CUDA {torch[1]}"),
        Fix("package", "torch", build=f"cu{major(image.release)}x", do=f"a torch for CUDA {major(image.release)}"),
    )
    text = f"{found.text} is compiled with CUDA {image.release} against {label}: torch refuses another major"
    yield scope.finding("build-toolchain-version-mismatch", tools.component, "error", text, found.where, reasons, fixes)


def guessed(scope: Scope, found: Present, torch: Present | None) -> Candidate | None:
    """The ready wheel that a setup.py downloads instead of compiling; None where it finds none, or nothing is known."""
    if torch is None or not torch.candidates or not torch.version:
        return None
    cuda = dict(torch.candidates[0].provides).get("cuda", "")
    rules = [g for g in scope.tables.guesses if g.name == found.name]
    index = rules[0].index if rules else ""
    rule = next((g for g in rules if allows(g.allows, found.version) and g.instead_of == major(cuda)), None)
    prefix = rule.prefix if rule else f"cu{major(cuda)}"
    series = f"torch{'.'.join(torch.version.split('.')[:2])}"
    abi = dict(torch.candidates[0].provides).get("cxx11abi", "")
    rows = [
        c
        for c in scope.matrix.candidates(found.name, scope.host.platform)
        if c.index == index and c.version == found.version and c.build.startswith(prefix) and series in c.build and c.rank < 2
    ]
    fitting = [c for c in rows if not abi or c.build.upper().endswith(f"ABI{abi.upper()}")]
    return (fitting or [None])[0]  # type: ignore[list-item]


def _other_sources(scope: Scope) -> Iterator[Finding]:
    """Packages outside the matrix that pip compiles."""
    words: list[str] = []
    for step in scope.scene.steps:
        if isinstance(step, Tools):
            words += step.names
        if not isinstance(step, Install) or step.built or step.maybe:
            continue
        for one in step.wanted:
            row = next(
                (r for r in scope.tables.sources if r.name == one.name and one.name not in scope.matrix.package_names()), None
            )
            tools = scope.tables.toolchain(row.stack) if row else None
            if row is not None and tools is not None and not one.url and _has_compiler(scope, tools, tuple(words)) is False:
                found = Present(one.name, one.where, text=one.text or one.name)
                yield _no_compiler(scope, found, tools, scope.torch)
