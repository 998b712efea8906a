"""Clues about packages that do not fit each other, or the system's libraries, or the compiler."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from accel_env.judge.builds import cuda_of
from accel_env.judge.clue_driver import plain
from accel_env.judge.fixes import beside, bound_to_torch, fitting_fixes, free_newer, keep_torch_of, torch_fixes, unique
from accel_env.judge.pairs import broken_needs, keep_torch_beside
from accel_env.judge.types import Clue, Finding, Fix
from accel_env.judge.words import built_for
from accel_env.model import Because, Candidate, Subject
from accel_env.solve.explain import need_text
from accel_env.solve.problem import normalise
from accel_env.solve.versions import allows, parse, valid_specifier

if TYPE_CHECKING:
    from accel_env.judge.scene import Scene


def completed(
    scene: Scene, clue: Clue, fixes: Iterable[Fix], *, rule: str = "", message: str = "", more: Iterable[Because] = ()
) -> Finding:
    """The clue's finding with what the needs add."""
    base = plain(scene, clue)
    return Finding(
        rule or clue.rule,
        clue.component,
        clue.severity,
        message or base.message,
        (*base.because, *more),
        unique((*fixes, *clue.fixes)),
    )


def need_reasons(scene: Scene, name: str) -> Iterator[Because]:
    """The needs of an installed package that the rest does not meet, as reasons."""
    found = scene.possible(name)
    for candidate in found.likely[:1] if found else ():
        for broken in broken_needs(scene, candidate):
            yield scene.because(broken.need.subject.value, f"{need_text(broken.need, candidate)}; {broken.met}", broken.need.fact)
            return


def abi(scene: Scene, clue: Clue) -> Finding:
    """A compiled extension of another torch: its release for this torch, or the torch that it was built for."""
    name = clue.component
    fixes: list[Fix] = []
    if name in scene.matrix.package_names():
        known = scene.torch_known()
        mine = fitting_fixes(scene, name, None if known else lambda c: _outside(scene, c, _built(scene, clue)[0]))
        fixes += mine
        if mine and known and not any(fix.command for fix in mine):
            labels = ", ".join(fix.build for fix in mine if fix.build)
            fixes.append(Fix("action", do=f"install the wheel that was built for this torch by its URL ({labels})"))
    spec, label = _built(scene, clue)
    if spec or clue.facts.get("cxx11abi_built"):
        fixes += _torch_of(scene, spec, label, clue.facts.get("cxx11abi_built", ""))
    elif name in scene.matrix.package_names():
        fixes += keep_torch_of(scene, name)
    if not any(fix.name == name for fix in fixes):
        fixes.append(Fix("package", name, do="take the release or wheel that was built for the installed torch"))
    fixes.append(Fix("build", name, do="build it from source against the installed torch"))
    message = f"{name} was built for torch {spec.lstrip('=')}" if spec else ""
    row = scene.torch()
    if message and row is not None and (row.version or row.local):
        message += f"; torch here is {row.version or row.text}" + (f"+{row.local}" if row.local else "")
    return completed(scene, clue, fixes, message=message, more=need_reasons(scene, name))


def _built(scene: Scene, clue: Clue) -> tuple[str, str]:
    """(range of torch, label) that the extension was built for: by the text, else by what is written behind its name."""
    spec, _, label = clue.facts.get("torch_built", "").partition("+")
    row = scene.row(clue.component)
    version, named = built_for(row.text) if row else ("", "")
    if version and (not spec or not valid_specifier(spec) or allows(spec, version)):
        return f"=={version}", label or named
    return (spec, label) if spec and valid_specifier(spec) else ("", named)


def _outside(scene: Scene, candidate: Candidate, spec: str) -> bool:
    """True where a build fits a torch outside the range that the text blames: inside it lacks the symbol again."""
    torches = scene.matrix.candidates("torch", scene.host.platform) if spec else ()
    return not spec or any(beside(candidate, torch) for torch in torches if not allows(spec, torch.version))


def _torch_of(scene: Scene, spec: str, label: str, cxx11: str) -> list[Fix]:
    row = scene.torch()

    def fits(torch: Candidate) -> bool:
        if row is not None and row.version and parse(row.version) == parse(torch.version) and row.local in ("", torch.build):
            return False  # the one that lacks the symbol
        provided = dict(torch.provides).get("cxx11abi", "")
        return (not spec or allows(spec, torch.version)) and (not label or torch.build == label) and cxx11 in ("", provided)

    fixes = torch_fixes(scene, fits, limit=3)
    if not fixes and spec:
        fixes = [Fix("package", "torch", spec, label)]
    return fixes


def cuda_major(scene: Scene, clue: Clue) -> Finding:
    """An extension for another CUDA major: its build for torch's, or a torch of its own major."""
    major = clue.facts.get("extension_cuda", "")

    def fits(torch: Candidate) -> bool:
        return dict(torch.provides).get("cuda", "").split(".")[0] == major

    name = clue.component
    fixes = fitting_fixes(scene, name) if name in scene.matrix.package_names() else []
    if not fixes and name in {row.name for row in scene.rows()}:
        fixes = [Fix("package", name, do="take the build for the CUDA major version of torch")]
    apart = any(fix.name and fix.name != "torch" for fix in clue.fixes) and not bound_to_torch(scene, name)
    if major and not apart and (scene.torch() is not None or not scene.environment.installed):
        found = torch_fixes(scene, fits, limit=3)
        if scene.torch() is None and found:  # the text alone: the package that asks for it is there, whatever torch is
            own = [fix for fix in clue.fixes if fix.kind == "action"]
            fixes, clue = [*own, *fixes], replace(clue, fixes=tuple(fix for fix in clue.fixes if fix.name != "torch"))
        fixes += found
    return completed(scene, clue, fixes, more=need_reasons(scene, name))


def soname(scene: Scene, clue: Clue) -> Finding:
    """A library of another generation of the runtime: the release for torch's, or a torch with the old one."""
    name = clue.component
    sycl = clue.facts.get("extension_sycl", "")
    fixes = fitting_fixes(scene, name) if name in scene.matrix.package_names() else []
    if not fixes and name in scene.matrix.package_names():
        fixes = free_newer(scene, name)
    if sycl:
        fixes += torch_fixes(scene, lambda torch: dict(torch.provides).get("sycl", "") == sycl, limit=2)
    return completed(scene, clue, fixes, more=need_reasons(scene, name))


def pair(scene: Scene, clue: Clue) -> Finding:
    """Two packages of one release line: the component for this torch, or the torch for this component."""
    name = clue.component
    fixes: list[Fix] = []
    if not bound_to_torch(scene, name) and any(fix.name for fix in clue.fixes):
        return completed(scene, clue, (), more=need_reasons(scene, name))
    with scene.as_index():
        # beside a torch that nobody named every release would fit
        if name in scene.matrix.package_names() and (scene.torch_known() or scene.row(name) is not None):
            fixes += [*_wanted_by_torch(scene, name), *fitting_fixes(scene, name, soft=True)]
            fixes += keep_torch_of(scene, name, limit=2, soft=True) or keep_torch_beside(scene, name, 2)
        more = tuple(need_reasons(scene, name)) or tuple(_torch_reasons(scene, name))
    return completed(scene, clue, [*fixes, *scene.book.recipe(name)], more=more)


def _wanted_by_torch(scene: Scene, name: str) -> Iterator[Fix]:
    found = scene.possible("torch")
    for torch in found.likely if found else ():
        for need in torch.needs:
            if need.subject is Subject.PACKAGE and need.name == name and need.allows:
                yield Fix("package", name, need.allows, command=f'pip install "{name}{need.allows}"')


def _torch_reasons(scene: Scene, name: str) -> Iterator[Because]:
    found = scene.possible("torch")
    for torch in found.likely if found else ():
        for need in torch.needs:
            if need.subject is Subject.PACKAGE and need.name == name:
                yield scene.because("package", need_text(need, torch), need.fact)
                return


def pin(scene: Scene, clue: Clue) -> Finding:
    """Requirements that exclude each other: the obsolete one goes, else the release whose pin fits."""
    names = {row.name for row in scene.rows()}
    for conflict in scene.matrix.conflicts():
        if {conflict.a[0], conflict.b[0]} <= names:
            reason = scene.because("package", conflict.why, conflict.fact)
            gone = conflict.b[0]
            fix = Fix("package", gone, do=f"remove {gone}: {conflict.why}", command=f"pip uninstall {gone}")
            base = plain(scene, clue)
            return Finding(clue.rule, gone, "error", base.message, (*base.because, reason), unique((fix, *clue.fixes)))
    name = clue.component
    fixes = [*_pinned(scene, clue)]
    fixes += fitting_fixes(scene, name) if name in scene.matrix.package_names() else []
    fixes += keep_torch_of(scene, name, limit=2)
    return completed(
        scene, clue, [*fixes, Fix("action", do="put it into an environment of its own")], more=need_reasons(scene, name)
    )


def _pinned(scene: Scene, clue: Clue) -> Iterator[Fix]:
    """What a package that is named asks of another one that is here too: `torch==2.6.0: triton==3.2.0`."""
    for key in ("requires", "requires_other"):
        found = re.match(r"([A-Za-z][\w.-]{0,60}?) ?([=<>!~]{1,3} ?[\w.+*]{1,40})$", clue.facts.get(key, "").partition(": ")[2])
        name, spec = (normalise(found[1]), found[2].replace(" ", "")) if found else ("", "")
        row = scene.row(name)
        if row is not None and valid_specifier(spec) and row.version and not allows(spec, row.version):
            yield Fix("package", name, spec, do="what the other one asks for", command=f'pip install "{name}{spec}"')


def numpy(scene: Scene, clue: Clue) -> Finding:
    """Modules built against the old array ABI."""
    fixes: list[Fix] = []
    row = scene.row("numpy")
    torch = scene.torch()
    if row is not None and torch is not None and torch.version:
        with scene.as_index():
            fixes += [fix for fix in keep_torch_beside(scene, "numpy", 3) if fix.spec != f"=={torch.version}"]
    return completed(scene, clue, [*clue.fixes, *fixes], more=need_reasons(scene, "torch"))


def system_library(scene: Scene, clue: Clue) -> Finding:
    """glibc or libstdc++ of the system is older than a library asks for."""
    name = clue.component
    fixes: list[Fix] = []
    known = name in scene.matrix.package_names()
    row = scene.row(name)
    if known:
        same = row.version if row else ""
        chosen = fitting_fixes(scene, name, lambda c: not same or parse(c.version) != parse(same))
        newer = free_newer(scene, name)
        fixes += [*chosen, *(newer if not chosen else ())]
    wanted = clue.facts.get("needs_glibc", "")
    if wanted:
        fixes.append(Fix("image", do=f"a base with glibc {wanted} or newer"))
        if known or row is not None:
            fixes.append(Fix("build", name, do="build it from source on this machine"))
    have = scene.host.libc if wanted else scene.host.libstdcxx
    message = f"{name} needs {'glibc ' + wanted if wanted else 'a newer libstdc++'}; the system has {have}" if have else ""
    return completed(scene, clue, fixes, message=message)


def toolchain(scene: Scene, clue: Clue) -> Finding:
    """A source build without the right compiler: a wheel, a devel image, or the toolkit of torch's own CUDA."""
    cuda = clue.facts.get("torch_cuda") or cuda_of(scene.torch_label())
    fixes: list[Fix] = []
    wanted = [row for row in scene.rows() if row.name in scene.matrix.package_names() and row.name != "torch"]
    for row in wanted:
        found = [fix for fix in fitting_fixes(scene, row.name, limit=2) if fix.build and not fix.command]
        if found:
            labels = ", ".join(f"{row.name} {fix.spec} {fix.build}" for fix in found)
            fixes.append(Fix("action", do=f"install the matching wheel by its URL: {labels}"))
    nvcc = clue.facts.get("nvcc", "")
    if nvcc:

        def fits(torch: Candidate) -> bool:
            return dict(torch.provides).get("cuda", "").split(".")[0] == nvcc.split(".")[0]

        fixes += torch_fixes(scene, fits, limit=2)
    if cuda:
        fixes.append(
            Fix(
                "toolchain",
                "cuda-toolkit" if not nvcc else "nvcc",
                f"=={cuda}.*",
                do=f"the toolkit of CUDA {cuda}",
            )
        )
    return completed(scene, clue, fixes)
