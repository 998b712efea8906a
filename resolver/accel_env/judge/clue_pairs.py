"""Clues about packages that do not fit each other, or the system's libraries, or the compiler."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from accel_env.judge.builds import cuda_of, hip_of
from accel_env.judge.clue_driver import plain
from accel_env.judge.fixes import fitting_fixes, free_fixes, keep_torch_of, torch_fixes, unique
from accel_env.judge.pairs import broken_needs, keep_torch_beside
from accel_env.judge.types import Clue, Finding, Fix
from accel_env.judge.words import built_for
from accel_env.model import Because, Candidate, Subject
from accel_env.solve.explain import need_text
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
        mine = fitting_fixes(scene, name)
        fixes += mine
        if mine and not any(fix.command for fix in mine):
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
    fixes += torch_fixes(scene, fits, limit=3) if major else []
    return completed(scene, clue, fixes, more=need_reasons(scene, name))


def native_library(scene: Scene, clue: Clue) -> Finding:
    """One wheel with a library per toolkit, and that of torch's is not inside."""
    name = clue.component
    rule = "version-string-misparsed" if _misparsed(scene, clue) else clue.rule
    if rule == clue.rule == "version-string-misparsed" and not _misparsed(scene, clue) and hip_of(scene.torch_label()):
        rule = "native-lib-missing-for-runtime"
    fixes = [*free_newer(scene, name)] if rule == "version-string-misparsed" else [*fitting_fixes(scene, name)]
    fixes += [*_library_override(scene, clue), *keep_torch_of(scene, name, limit=2)]
    row = scene.row(name)
    if (row is not None and row.vendor) or "misparsed" in rule:
        fixes.append(Fix("build", name, do="build it from source with torch's own toolkit version"))
    return completed(scene, clue, fixes, rule=rule, more=need_reasons(scene, name))


def free_newer(scene: Scene, name: str) -> list[Fix]:
    """The releases after the installed one."""
    row = scene.row(name)
    if row is None or not row.version:
        return []
    return free_fixes(scene, name, lambda c: parse(c.version) > parse(row.version), limit=1)


def _misparsed(scene: Scene, clue: Clue) -> bool:
    """True where the digits of the library are not those of torch's version but its numbers added up."""
    digits = re.sub(r"\D", "", clue.facts.get("library", ""))
    version = hip_of(scene.torch_label()) or cuda_of(scene.torch_label())
    numbers = version.split(".")[:2]
    if not digits or len(numbers) < 2:
        return False
    return digits != "".join(numbers) and digits == str(int(numbers[0]) * 10 + int(numbers[1]))


def _library_override(scene: Scene, clue: Clue) -> Iterator[Fix]:
    """The variable that picks another library of the same major, where the installed release reads it."""
    library = re.fullmatch(r"(cuda|rocm)(\d{2,4})", clue.facts.get("library", ""))
    if library is None:
        return
    variable = scene.book.library_variables.get(library[1], "")
    row = scene.row(clue.component)
    if not variable:
        return
    every = scene.matrix.candidates(clue.component, scene.host.platform)
    mine = {c.variant for c in every if row is not None and row.version and parse(c.version) == parse(row.version)}
    major = library[2][:2] if library[1] == "cuda" else library[2][:1]
    same = sorted((v for v in mine if v.startswith(f"{library[1]}{major}")), key=lambda v: int(re.sub(r"\D", "", v)))
    value = re.sub(r"\D", "", same[-1]) if same else ""
    if value:
        yield Fix("env", set={variable: value}, do=f"take the library {same[-1]}")
    elif library[1] == "rocm":
        yield Fix("env", set={variable: "the digits of the library that is there"})
        yield Fix("build", clue.component, set={"ROCM_VERSION": library[2]}, do="build it for torch's own ROCm version")


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
    with scene.as_index():
        if name in scene.matrix.package_names():
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
    fixes = fitting_fixes(scene, name) if name in scene.matrix.package_names() else []
    fixes += keep_torch_of(scene, name, limit=2)
    return completed(
        scene, clue, [*fixes, Fix("action", do=f"put {name} into an environment of its own")], more=need_reasons(scene, name)
    )


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
