"""torch of before the matrix: the toolkit of its build against driver and device, by the tables of judge.yaml."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from accel_env.judge.builds import cuda_of
from accel_env.judge.fixes import torch_fixes, unique
from accel_env.judge.types import Finding, Fix
from accel_env.solve.versions import allows, parse

if TYPE_CHECKING:
    from accel_env.judge.book_rows import OldTorch
    from accel_env.judge.scene import Scene


def old_findings(scene: Scene) -> Iterator[Finding]:
    """Findings about a torch that the matrix no longer models."""
    row = scene.torch()
    old = scene.book.old_torch(row.version) if row and row.version else None
    if row is None or old is None:
        return
    label = row.local or (old.default if scene.host.os == "linux" and not row.vendor else "")
    cuda = cuda_of(label)
    level = "error" if row.local or scene.complaint else "warning"
    if cuda and scene.devices and scene.stack_name != "cuda":
        text = f"torch {row.version}+{label} is built for cuda: it cannot use {scene.named()}"
        reasons = (scene.because("build", f"torch {row.version} is the build {label}", old.fact),)
        yield Finding("wrong-index", "torch", level, text, reasons, unique(torch_fixes(scene)))
    else:
        yield from _driver(scene, row.version, label, old, level)
        if cuda and scene.arch:
            yield from _device(scene, row.version, label, old, level)
    if row.wanted and scene.host.python and not allows(old.pythons, f"{scene.host.python.rstrip('t')}.0"):
        text = f"torch {row.version} has wheels for Python {old.pythons}; this is Python {scene.host.python}"
        fixes = (Fix("python", "python", spec=f"<{old.pythons.split('<')[-1]}"), *torch_fixes(scene, limit=2))
        yield Finding("python-no-wheel", "torch", "error", text, (scene.because("python", text, old.fact),), unique(fixes))


def _driver(scene: Scene, version: str, label: str, old: OldTorch, level: str) -> Iterator[Finding]:
    floor, fact = floor_of(scene, cuda_of(label))
    if not floor or not scene.driver.text or not scene.driver.fails(f">={floor}"):
        return
    text = f"torch {version}+{label} needs driver >={floor}; the driver here is {scene.driver.text}"
    reasons = (scene.because("driver", text, fact), scene.because("build", f"torch {version} is the build {label}", old.fact))
    fixes = (*old_builds(scene), Fix("driver", scene.vendor or "nvidia", spec=f">={floor}", do="install a newer driver"))
    yield Finding("driver-too-old-for-cuda-runtime", "nvidia-driver", level, text, reasons, unique(fixes))


def _device(scene: Scene, version: str, label: str, old: OldTorch, level: str) -> Iterator[Finding]:
    toolkit = scene.book.toolkit(cuda_of(label))
    if toolkit is None or not toolkit.newest or reaches(toolkit.newest, scene.arch):
        return
    text = (
        f"torch {version}+{label}: the compiler of CUDA {toolkit.version} ends at {toolkit.newest}; this host has {scene.named()}"
    )
    reasons = (
        scene.because("arch", text, toolkit.fact),
        scene.because("build", f"torch {version} is the build {label}", old.fact),
    )
    fixes = (*old_builds(scene), *torch_fixes(scene))
    yield Finding("gpu-arch-not-in-wheel", "torch", level, text, reasons, unique(fixes))


def number(arch: str) -> int:
    """`sm_86` -> 86."""
    return int(re.sub(r"\D", "", arch) or 0)


def reaches(newest: str, arch: str) -> bool:
    """True where a compiler that ends at `newest` can make code for `arch`: its own generation, or that of an older sibling."""
    return number(newest) // 10 >= number(arch) // 10


def floor_of(scene: Scene, cuda: str) -> tuple[str, str]:
    """(lowest driver, fact) of a CUDA version here; both empty when unknown."""
    system = "windows" if scene.host.wsl else scene.host.os
    stack = scene.matrix.stacks().get("cuda")
    release = next((r for r in stack.releases if r.version == cuda), None) if stack else None
    if release is not None:
        floor = release.driver_floors.get(system)
        return (floor.minor, release.driver_fact) if floor else ("", "")
    toolkit = scene.book.toolkit(cuda) if cuda else None
    if toolkit is None:
        return "", ""
    # drivers of one major run every toolkit of it from CUDA 11 on
    same = next((r for r in stack.releases if parse(r.version).major == parse(cuda).major), None) if stack else None
    shared = same.driver_floors.get(system) if same else None
    return (shared.minor if shared else toolkit.drivers.get(system, "")), toolkit.fact


def old_builds(scene: Scene, limit: int = 4) -> list[Fix]:
    """Builds of old releases that driver and device allow: of that version, of releases with that label, of the one before."""
    row = scene.torch()
    if row is None or not served(scene):
        return []
    mine = scene.book.old_torch(row.version) if row.version else None
    fixes: list[Fix] = []
    if mine is not None:
        fixes += [
            Fix("package", "torch", f"=={row.version}", label)
            for label in mine.builds
            if label != row.local and _works(scene, label)
        ]
        older = [t for t in scene.book.torches if parse(t.versions[0]) < parse(mine.versions[-1]) and _works(scene, t.default)]
        fixes = fixes[: limit - 1] + [Fix("package", "torch", f"=={t.versions[0]}", t.default) for t in older[:1]]
    elif row.local:
        holders = [t for t in scene.book.torches if row.local in t.builds]
        labels = {label: t for t in reversed(holders) for label in t.builds if label != row.local and _works(scene, label)}
        fixes += [Fix("package", "torch", f"=={t.versions[0]}", label) for label, t in labels.items()]
    return fixes[:limit]


def served(scene: Scene) -> bool:
    """True where the oldest release of the matrix has accelerator builds for this platform: the ones before it had no more."""
    every = scene.matrix.candidates("torch", scene.host.platform)
    oldest = min((c.version for c in every), key=parse, default="")
    return not scene.on_board and any(c.version == oldest and cuda_of(c.build) for c in every)


def lines(scene: Scene) -> list[Fix]:
    """One build of before the matrix for each CUDA version that driver and device allow, the newest release that has it."""
    found: dict[str, str] = {}
    for torch in scene.book.torches if served(scene) else ():
        for label in torch.builds:
            if _works(scene, label):
                found.setdefault(label, torch.versions[0])
    return [Fix("package", "torch", f"=={version}", label) for label, version in found.items()]


def of_era(scene: Scene, newest: int) -> bool:
    """True where a list of code ends at a device that the toolkits of before the matrix end at too."""
    unable = [number(t.newest) for t in scene.book.toolkits if t.newest and not reaches(t.newest, scene.arch)]
    return bool(unable) and 0 < newest <= max(unable)


def _works(scene: Scene, label: str) -> bool:
    """True where driver and device allow a build, as far as they are known."""
    cuda = cuda_of(label)
    floor, _ = floor_of(scene, cuda)
    if not cuda or not floor or (scene.driver.text and scene.driver.fails(f">={floor}")):
        return False
    toolkit = scene.book.toolkit(cuda)
    newest = toolkit.newest if toolkit else ""
    return not scene.arch or not newest or reaches(newest, scene.arch)
