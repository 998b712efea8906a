"""Clues about code for an AMD device: in the wheel, in a library of ROCm, or lost though it is there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from accel_env.judge.builds import hip_of
from accel_env.judge.clue_arch import failing_torch
from accel_env.judge.clue_driver import plain
from accel_env.judge.evaluate import arch_fixes
from accel_env.judge.fixes import torch_fixes, unique
from accel_env.judge.live import Keep
from accel_env.judge.types import Clue, Finding, Fix
from accel_env.model import Because
from accel_env.solve.explain import need_text
from accel_env.solve.versions import allows, parse, split_stack

if TYPE_CHECKING:
    from accel_env.judge.scene import Scene


def amd(scene: Scene, clue: Clue) -> Finding:
    """No code for the device in torch or in a library of ROCm; with the code there, what else loses code objects."""
    lost = _lost_code(scene, clue)
    if lost is not None:
        return lost
    failed = failing_torch(scene)
    reasons: list[Because] = [*plain(scene, clue).because]
    rule, component = _amd_rule(scene, clue)
    message = f"{'the installed torch' if component == 'torch' else component} has no code for {scene.named()}"
    found = scene.possible("torch")
    if failed is None and scene.arch and found is not None and found.exact and found.candidates and component == "torch":
        message = (
            f"torch holds code for {scene.named()}: the device without code may be another one, often an integrated GPU beside it"
        )
        fixes_first = [Fix("env", set={"HIP_VISIBLE_DEVICES": "0"}, do="show the runtime the discrete GPU alone")]
    else:
        fixes_first = []
    if failed:
        message = f"{need_text(failed[0].need, failed[0].candidate)}; {failed[0].met}"
        reasons.append(scene.because("arch", message, failed[0].need.fact))
    fixes = [*fixes_first, *arch_fixes(scene, "torch" if rule == "gfx-not-in-wheel" else component)]
    if scene.torch() is not None or rule == "gfx-not-in-wheel":
        fixes = [*torch_fixes(scene, _older_rocm(scene) if clue.facts.get("symptom") == "rocblas-no-kernels" else None), *fixes]
    return Finding(rule, component, "error", message, tuple(reasons), unique((*fixes, *clue.fixes)))


def _older_rocm(scene: Scene) -> Keep | None:
    """Libraries lose old devices as they go on: where one has lost the device, look at builds for an older ROCm."""
    have = hip_of(scene.torch_label())
    if not have:
        return None
    return lambda torch: bool(hip_of(torch.build)) and parse(hip_of(torch.build)) < parse(have)


def _amd_rule(scene: Scene, clue: Clue) -> tuple[str, str]:
    """(rule, component): a library that lies inside the wheel of torch is part of that wheel."""
    row = scene.torch()
    inside = clue.facts.get("symptom") == "rocblas-no-kernels" and (
        "torch/lib" in clue.line or (row is not None and hip_of(row.local))
    )
    if inside:
        return "gfx-not-in-wheel", f"{clue.component.removesuffix('-in-torch')}-in-torch"
    return clue.rule, _amd_component(scene, clue)


def _amd_component(scene: Scene, clue: Clue) -> str:
    """What lacks the code: a vendor image's torch is named after the image."""
    container = scene.environment.container
    image = scene.book.image(container.base) if container else None
    row = scene.torch()
    if clue.component == "torch" and image is not None and image.component and (row is None or row.vendor or not row.local):
        return image.component
    return clue.component


def _lost_code(scene: Scene, clue: Clue) -> Finding | None:
    """The build holds the code that the device would run, and it is not found: a known fault of the runtime."""
    target = scene.override_target()  # without one another device of the machine may be the one that lacks code
    rule = scene.book.lost_code
    version = hip_of(scene.torch_label()) or re.sub(r"^[^\d]*", "", scene.said("rocm"))
    if rule is None or not target or not version or failing_torch(scene) is not None:
        return None
    number = re.match(r"\d+(?:\.\d+)*", version)
    if number is None or not allows(rule.allows, number[0]) or not _has_code(scene, target):
        return None
    message = f"ROCm {number[0]} holds code for {target}, yet finds none: {rule.text}"
    reasons = (*plain(scene, clue).because, scene.because("text", message, rule.fact))
    return Finding(rule.rule, rule.component, "error", message, reasons, rule.fixes)


def _has_code(scene: Scene, target: str) -> bool:
    """True where torch's list, or without torch the targets of the ROCm release, hold the target."""
    found = scene.possible("torch")
    if found is not None and found.candidates:
        mine = [c for c in found.likely if split_stack(c.stack)[0] == scene.stack_name]
        return any(not scene.failures(c) for c in mine)
    return any(target == rule.target for rule in scene.book.overrides)
