"""Clues of error texts, confirmed, refuted or completed by the needs. Where the environment is silent the clue's word stands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from accel_env.judge import clue_amd, clue_arch, clue_driver, clue_native, clue_pairs, clue_wanted
from accel_env.judge.fixes import unique
from accel_env.judge.text_fill import look_up
from accel_env.judge.types import Clue, Finding, Fix

if TYPE_CHECKING:
    from accel_env.judge.scene import Scene

Handler = Callable[["Scene", Clue], Finding | None]

GENERIC = ("extension", "glibc", "libstdc++")
BY_LIBRARY = ("extension-abi-mismatch", "glibc-too-old", "libstdcxx-too-old", "extension-cuda-major-mismatch", "soname-mismatch")


def clue_findings(scene: Scene, by_needs: tuple[Finding, ...] = ()) -> Iterator[Finding]:
    """One finding per clue that holds; the heaviest first. `by_needs`: what the needs found without the texts."""
    for clue in scene.clues:
        name = component_of(scene, clue, by_needs)
        fixes = tuple(fix for fix in clue.fixes if fix.name != clue.component or fix.name == name or scene.row(fix.name))
        named = replace(clue, component=name, fixes=fixes if _carried(scene, clue.component) == name else clue.fixes)
        handler = _HANDLERS.get(clue.rule)
        found = handler(scene, named) if handler else plain(scene, named)
        if found is not None:
            yield found


def component_of(scene: Scene, clue: Clue, by_needs: tuple[Finding, ...] = ()) -> str:
    """The component; where the text names none, what the needs found, or the one installed package that the line speaks of."""
    component = _carried(scene, _owner(scene, clue))
    if component not in GENERIC and not (component.startswith("lib") and clue.rule in BY_LIBRARY):
        return _installed_instead(scene, clue, component, by_needs)
    same = [found.component for found in by_needs if found.rule == clue.rule]
    if same:
        return same[0]
    words = clue.line.lower().replace("_", "-")
    named = [row.name for row in scene.rows() if row.name in words and row.name != "torch"]
    others = [row.name for row in scene.rows() if row.name not in ("torch", "numpy") and row.name not in scene.book.pairs]
    if component == "glibc":  # the system's own library, found by one that nobody names
        others = [name for name in others if name in scene.matrix.package_names()]
    chosen = named or (others if component in ("extension", "glibc") else [])
    return chosen[0] if len(set(chosen)) == 1 else component


def _carried(scene: Scene, component: str) -> str:
    """The installed distribution that carried a part before it was released by itself."""
    carrier = scene.matrix.document("signatures").get("lookups", {}).get("carriers", {}).get(component, "")
    return str(carrier) if carrier and scene.row(component) is None and scene.row(carrier) is not None else component


def _installed_instead(scene: Scene, clue: Clue, component: str, by_needs: tuple[Finding, ...]) -> str:
    """A library that no table knows, where one installed package is known not to fit torch."""
    if clue.rule != "extension-abi-mismatch" or scene.row(component) or component in scene.matrix.package_names():
        return component
    table = scene.matrix.document("signatures").get("lookups", {}).get("packages", {}).values()
    apart = {found.component for found in by_needs if found.rule in ("package-pair-mismatch", clue.rule)}
    return apart.pop() if component not in table and len(apart) == 1 else component


def _owner(scene: Scene, clue: Clue) -> str:
    """The distribution of the library that the line names, where the text's own word for it is none that is known."""
    component = clue.component
    if scene.row(component) is not None or component in scene.matrix.package_names() or clue.rule not in BY_LIBRARY:
        return component
    table: dict[str, str] = scene.matrix.document("signatures").get("lookups", {}).get("packages", {})
    for name in re.findall(r"([A-Za-z_][\w-]{0,80})(?:\.[\w-]{1,60}){0,3}\.(?:so|pyd|dll)\b", clue.line):
        owner = look_up(table, name) or look_up(table, name.removeprefix("lib"))
        if owner:
            return owner
    return component


def plain(scene: Scene, clue: Clue, fixes: Iterable[Fix] = (), message: str = "") -> Finding:
    """The finding that a clue stands for, with better fixes before its own."""
    text = message or clue.told
    reason = scene.because("text", text, clue.fact)
    level = clue.severity
    return Finding(clue.rule, clue.component, level, text, (reason,), unique((*fixes, *clue.fixes)))


def refined(scene: Scene, found: Finding) -> Finding:
    """The finding under the first refinement whose conditions hold."""
    for row in scene.book.refinements:
        if row.rule == found.rule and _holds(scene, row.when, found):
            reason = scene.because("text", scene.matrix.fact(row.fact).text, row.fact)
            return replace(
                found,
                rule=row.becomes or found.rule,
                component=row.component or found.component,
                because=(*found.because, reason),
                fixes=unique((*row.fixes, *found.fixes)),
            )
    return found


def _holds(scene: Scene, when: dict[str, str] | object, found: Finding) -> bool:
    environment = scene.environment
    container = environment.container
    subjects = {
        "arch": " ".join(d.arch for d in scene.devices),
        "text": "\n".join(environment.texts),
        "component": found.component,
        "wsl": "yes" if environment.host.wsl else "no",
        "os": environment.host.os,
        "vendor": scene.vendor,
        "base": container.base if container else "",
        "runtime": f"{container.runtime} {container.args}" if container else "",
        "said": " ".join(f"{key}={value}" for key, value in environment.extra.items()),
        "packages": " ".join(f"{row.name} {row.text}" for row in environment.installed),
        "variables": " ".join(f"{key}={value}" for key, value in environment.variables.items()),
    }
    pairs = dict(when) if isinstance(when, dict) else {}
    return all(re.search(pattern, subjects.get(key, ""), re.IGNORECASE) for key, pattern in pairs.items())


_HANDLERS: dict[str, Handler] = {
    "driver-too-old-for-cuda-runtime": clue_driver.too_old,
    "container-requirement-unsatisfied": clue_driver.requirement,
    "forward-compat-unsupported-hw": clue_driver.forward_compat,
    "driver-userspace-kernel-mismatch": clue_driver.plain,
    "system-cuda-lib-shadows-wheel": clue_native.shadowed,
    "gpu-arch-not-in-wheel": clue_arch.nvidia,
    "gfx-not-in-wheel": clue_amd.amd,
    "gfx-not-in-library": clue_amd.amd,
    "false-positive-warning": clue_arch.false_alarm,
    "gpu-arch-unsupported-by-package": clue_arch.unsupported,
    "gpu-arch-not-in-toolchain": clue_arch.toolchain,
    "cpu-only-build": clue_arch.cpu_only,
    "extension-abi-mismatch": clue_pairs.abi,
    "extension-cuda-major-mismatch": clue_pairs.cuda_major,
    "native-lib-missing-for-runtime": clue_native.native_library,
    "version-string-misparsed": clue_native.native_library,
    "soname-mismatch": clue_pairs.soname,
    "package-pair-mismatch": clue_pairs.pair,
    "package-pin-conflict": clue_pairs.pin,
    "numpy-abi": clue_pairs.numpy,
    "glibc-too-old": clue_pairs.system_library,
    "libstdcxx-too-old": clue_pairs.system_library,
    "build-toolchain-missing": clue_pairs.toolchain,
    "build-toolchain-version-mismatch": clue_pairs.toolchain,
    "python-no-wheel": clue_wanted.no_match,
    "platform-no-wheel": clue_wanted.no_match,
    "no-prebuilt-wheel": clue_wanted.no_match,
    "wrong-index": clue_wanted.no_match,
    "pinned-version-unavailable": clue_wanted.no_match,
    "tool-matrix-gap": clue_wanted.tool_gap,
}
