"""Clues about native libraries: one of the system in place of the wheel's, one that a wheel does not hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from accel_env.judge.builds import cuda_of, hip_of
from accel_env.judge.clue_driver import plain
from accel_env.judge.clue_pairs import completed, need_reasons
from accel_env.judge.fixes import bound_to_torch, fitting_fixes, free_newer, keep_torch_of, torch_fixes
from accel_env.judge.types import Clue, Finding, Fix
from accel_env.solve.versions import parse

if TYPE_CHECKING:
    from accel_env.judge.scene import Scene


def shadowed(scene: Scene, clue: Clue) -> Finding:
    """A library of CUDA without a symbol: the system's in place of the wheel's, or a wheel that is itself too old."""
    name, _, least = clue.facts.get("needs_package", "").partition(">=")
    row = scene.row(name) if least else None
    known = (row.version or row.spec.removeprefix("<")) if row is not None else ""
    old = row is not None and bool(known) and (not row.spec or row.spec[:1] in "<=") and parse(known) <= parse(least)
    if row is None or not old or (row.version and parse(known) == parse(least)):
        return plain(scene, clue)
    message = f"the text asks for {name} >={least}; here it is {row.version or row.text}"
    fixes = [Fix("package", name, f">={least}", command=f'pip install "{name}>={least}"')]
    found = completed(scene, clue, fixes, rule="package-pair-mismatch", message=message)
    return replace(found, component=name)


def native_library(scene: Scene, clue: Clue) -> Finding:
    """One wheel with a library per toolkit, and that of torch's is not inside."""
    name = clue.component
    if not clue.facts.get("library") and clue.facts.get("needs_soname"):
        return plain(scene, clue)  # a library of the system, which no wheel holds
    if not clue.facts.get("library") and not bound_to_torch(scene, name):
        return plain(scene, clue)  # its libraries come by its own extras
    rule = "version-string-misparsed" if _misparsed(scene, clue) else clue.rule
    if rule == clue.rule == "version-string-misparsed" and not _misparsed(scene, clue) and hip_of(scene.torch_label()):
        rule = "native-lib-missing-for-runtime"
    gone = scene.book.toolkit(cuda_of(scene.torch_label())) is not None  # a toolkit that no release serves any more
    if rule == "version-string-misparsed":
        fixes = [*free_newer(scene, name)]
    else:
        fixes = torch_fixes(scene, limit=3) if gone else fitting_fixes(scene, name)
    fixes += [*_library_override(scene, clue), *(keep_torch_of(scene, name, limit=2) if bound_to_torch(scene, name) else ())]
    row = scene.row(name)
    if (row is not None and row.vendor) or "misparsed" in rule or gone:
        fixes.append(Fix("build", name, do="build it from source with torch's own toolkit version"))
    return completed(scene, clue, fixes, rule=rule, more=need_reasons(scene, name))


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
