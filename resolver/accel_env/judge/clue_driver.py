"""Clues about drivers: which builds the driver runs, which driver the image or the runtime asks for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from accel_env.judge.builds import cuda_of
from accel_env.judge.fixes import driver_fix, torch_fixes, unique
from accel_env.judge.old import floor_of, old_builds
from accel_env.judge.types import Clue, Finding, Fix
from accel_env.model import Candidate
from accel_env.solve.explain import need_text

if TYPE_CHECKING:
    from accel_env.judge.scene import Failed, Scene


def plain(scene: Scene, clue: Clue) -> Finding:
    """The clue's own word."""
    said = f"the text says: {clue.line.strip()}"
    reason = scene.because("text", said, clue.fact)
    return Finding(clue.rule, clue.component, clue.severity, clue.told, (reason,), unique(clue.fixes))


def too_old(scene: Scene, clue: Clue) -> Finding:
    """The driver refuses the runtime of torch: which builds it refuses, and which it runs."""
    failed = _refused(scene)
    base = plain(scene, clue)
    found = scene.possible("torch")
    reasons = [*base.because]
    message = f"the driver ({scene.driver.text or 'of this machine'}) is too old for the CUDA runtime of the installed build"
    if failed:
        message = scene.spoken(f"{need_text(failed[0].need, failed[0].candidate)}; {failed[0].met}", failed[0].candidate)
        reasons.append(scene.because("driver", message, failed[0].need.fact))
    fixes: list[Fix] = []
    if scene.driver.text:
        keep = None if failed or found is None or not found.candidates else lambda torch: _in_full(scene, torch)
        fixes += torch_fixes(scene, keep, limit=3)
        fixes += old_builds(scene)
    fixes += driver_fix(scene, failed) if failed else [_runtime_driver(scene)]
    return Finding(clue.rule, clue.component, clue.severity, message, tuple(reasons), unique((*fixes, *clue.fixes)))


def _refused(scene: Scene) -> list[Failed]:
    """Builds that the installed torch can be and that the driver does not run."""
    found = scene.possible("torch")
    if found is None:
        return []
    rows = [scene.driver_failure(c) for c in (*found.likely, *found.candidates)]
    return [row for row in rows if row is not None]


def _in_full(scene: Scene, torch: Candidate) -> bool:
    """True where the driver is that of the build's own toolkit or newer: then nothing of it is refused."""
    floor = toolkit_driver(scene, dict(torch.provides).get("cuda", ""), full=True)
    return bool(floor) and not scene.driver.fails(f">={floor}")


def _runtime_driver(scene: Scene) -> Fix:
    """The driver of the toolkit's own release where the lowest one that starts it is there already."""
    cuda = cuda_of(scene.torch_label())
    floor, _ = floor_of(scene, cuda)
    if floor and scene.driver.text and not scene.driver.fails(f">={floor}"):
        floor = toolkit_driver(scene, cuda, full=True)
    return Fix("driver", scene.vendor or "nvidia", spec=f">={floor}" if floor else "", do="install a newer driver")


def toolkit_driver(scene: Scene, version: str, *, full: bool = False) -> str:
    """The lowest driver of a CUDA version here: its minor floor, or with `full` the driver of its own release."""
    if not version:
        return ""
    system = "windows" if scene.host.wsl else scene.host.os
    stack = scene.matrix.stacks().get("cuda")
    for release in stack.releases if stack else ():
        if release.version == version or ("." not in version and release.version.startswith(f"{version}.")):
            floor = release.driver_floors.get(system)
            return "" if floor is None else (floor.full or floor.minor) if full else floor.minor
    toolkit = scene.book.toolkit(version)
    return toolkit.drivers.get(system, "") if toolkit else ""


def requirement(scene: Scene, clue: Clue) -> Finding:
    """The image asks for a CUDA version that the driver does not offer."""
    if clue.component.startswith("/"):
        return plain(scene, clue)  # no requirement of the image on its driver
    wanted = clue.facts.get("image_cuda") or clue.facts.get("requires_cuda") or clue.facts.get("runtime_cuda") or ""
    return _by_runtime(scene, clue, wanted)


def forward_compat(scene: Scene, clue: Clue) -> Finding:
    """The image's compat libraries do not serve this device: a driver of the image's own CUDA version does."""
    return _by_runtime(scene, clue, image_cuda(scene))


def _by_runtime(scene: Scene, clue: Clue, wanted: str) -> Finding:
    base = plain(scene, clue)
    wanted = wanted or image_cuda(scene)
    floor = toolkit_driver(scene, wanted, full=True)
    if not floor:
        return base
    have = f"; the driver here is {scene.driver.text}" if scene.driver.text else ""
    message = f"the image brings CUDA {wanted}, whose own driver is {floor}{have}"
    stack = scene.matrix.stack_release(f"cuda-{wanted}")
    toolkit = scene.book.toolkit(wanted)
    fact = stack.driver_fact if stack else toolkit.fact if toolkit else clue.fact
    fixes = (
        Fix("driver", scene.vendor or "nvidia", spec=f">={floor}", do="install a newer driver"),
        *clue.fixes,
        _older_image(scene),
    )
    return Finding(
        clue.rule, clue.component, clue.severity, message, (*base.because, scene.because("driver", message, fact)), unique(fixes)
    )


def _older_image(scene: Scene) -> Fix:
    offered = scene.environment.cuda_driver
    return Fix("image", do=f"an image of CUDA {offered} or older" if offered else "an image of an older CUDA version")


def image_cuda(scene: Scene) -> str:
    """The CUDA version of the image or of the runtime that is there: `12.1`; empty when unknown."""
    stack, _, release = scene.said("image_stack").partition("-")
    if stack == "cuda" and release:
        return release
    container = scene.environment.container
    texts = [scene.said(key) for key in ("cuda_runtime", "cuda", "cuda_toolkit")] + [container.base if container else ""]
    for text in texts:
        found = re.search(r"(?:cuda|cu)[ :/_-]{0,3}(\d{1,2}\.\d)|^(\d{1,2}\.\d)", text, re.IGNORECASE)
        if found:
            return found[1] or found[2]
    return cuda_of(scene.torch_label())
