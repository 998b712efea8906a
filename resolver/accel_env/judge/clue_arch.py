"""Clues about code for a device: is it really missing, where, and what has it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from accel_env.judge.builds import cuda_of
from accel_env.judge.clue_driver import plain
from accel_env.judge.evaluate import arch_fixes, failing
from accel_env.judge.fixes import fitting_fixes, torch_fixes, unique
from accel_env.judge.old import lines, number, of_era, old_builds, reaches
from accel_env.judge.types import Clue, Finding, Fix
from accel_env.model import Candidate, Device, Need, Subject
from accel_env.solve.explain import need_text
from accel_env.solve.verdict import SOURCE_RANK
from accel_env.solve.versions import parse, split_stack

if TYPE_CHECKING:
    from accel_env.judge.scene import Failed, Scene


def nvidia(scene: Scene, clue: Clue) -> Finding | None:
    """No code for the device in torch: by the list of the message, by the builds that torch can be, or by the toolkit."""
    if scene.vendor == "amd":
        from accel_env.judge.clue_amd import amd

        return amd(scene, clue)
    said = _said_list(scene, clue)
    if said is not None and scene.arch and _runs(scene, said):
        return _alarm(scene, clue)
    failed = failing_torch(scene)
    if said is None and failed is None and scene.possible("torch") and scene.arch:
        other = _other_package(scene, clue)
        if other is not None:
            return other
    reasons = [*plain(scene, clue).because]
    message = f"the installed torch has no code for {scene.named(_spoken_of(scene))}"
    if failed is None and said is None and _has_native(scene):
        message = f"the text says that code for {scene.named()} is missing; torch has it, so another compiled package has not"
    if failed:
        message = scene.spoken(f"{need_text(failed[0].need, failed[0].candidate)}; {failed[0].met}", failed[0].candidate)
        reasons.append(scene.because("arch", message, failed[0].need.fact))
    elif bound := _toolkit_bound(scene):
        message = bound[0]
        reasons.append(scene.because("arch", *bound))
    fixes = [*_torch_for(scene, said), *arch_fixes(scene, "torch")]
    return Finding("gpu-arch-not-in-wheel", "torch", "error", message, tuple(reasons), unique((*fixes, *clue.fixes)))


def _has_native(scene: Scene) -> bool:
    """True where torch's builds are known and hold code for the device."""
    found = scene.possible("torch")
    mine = [c for c in found.likely if split_stack(c.stack)[0] == scene.stack_name] if found and scene.arch else []
    known = [c for c in mine if any(n.subject is Subject.ARCH and not n.unknown for n in c.needs)]
    return bool(known) and failing(scene, known) is None


def _torch_for(scene: Scene, said: Need | None = None) -> list[Fix]:
    """Builds of torch with code for the device; without a known device only newer toolkits can be named."""
    if scene.arch:
        row = scene.torch()
        era = row is not None and bool(cuda_of(row.local)) and scene.book.toolkit(cuda_of(row.local)) is not None
        newest = max((number(arch) for arch in said.values if arch.startswith("sm_")), default=0) if said else 0
        before = old_builds(scene) if era else lines(scene) if of_era(scene, newest) else []
        return [*before, *torch_fixes(scene)]
    return _for_one_of(scene) if len({d.arch for d in scene.devices if d.arch}) > 1 else newer_builds(scene)


def _for_one_of(scene: Scene) -> list[Fix]:
    """Several generations and one that the build has no code for: hide it, or build for it."""
    lacking = _spoken_of(scene)
    values = ";".join(dict.fromkeys(f"{d.arch[3:-1]}.{d.arch[-1]}" for d in lacking if d.arch.startswith("sm_")))
    setting = scene.book.build_setting(scene.vendor)
    fixes = [Fix("env", set={"CUDA_VISIBLE_DEVICES": "the numbers of the devices that torch has code for"})]
    if values and setting:
        fixes.append(Fix("build", "torch", set={setting: values}, do="build it from source for this device"))
    return fixes


def _spoken_of(scene: Scene) -> tuple[Device, ...]:
    """The devices that the texts name by the last word of their product; all where they name none."""
    words = "\n".join(scene.environment.texts).lower()
    named = tuple(d for d in scene.devices if d.name and d.name.lower().split()[-1] in words)
    return named or scene.devices


def newer_builds(scene: Scene) -> list[Fix]:
    """Other builds of the same torch, for newer toolkits than that of the installed one."""
    row = scene.torch()
    if row is None or not row.version:
        return []
    have = parse(cuda_of(row.local) or "0")
    old = scene.book.old_torch(row.version)
    labels = list(old.builds) if old else []
    platform = scene.matrix.candidates("torch", scene.host.platform)
    labels += [c.build for c in platform if parse(c.version) == parse(row.version) and c.build not in labels]
    newer = [label for label in labels if cuda_of(label) and parse(cuda_of(label)) > have]
    return [Fix("package", "torch", f"=={row.version}", label) for label in newer[:3]]


def _said_list(scene: Scene, clue: Clue) -> Need | None:
    """The architectures that the message, or the words about torch, give for the build."""
    words = clue.facts.get("torch_archs", "")
    row = scene.torch()
    if not words and row is not None and len(re.findall(r"sm_\d+", row.text)) > 1:
        words = " ".join(re.findall(r"sm_\d+", row.text))
    if words:
        return Need(Subject.ARCH, clue.fact, values=tuple(words.split()))
    low, top = clue.facts.get("capability_low", ""), clue.facts.get("capability_top", "")
    if low and top:
        # the message gives the ends of the list alone
        return Need(Subject.ARCH, clue.fact, values=(f"sm_{low.replace('.', '')}", f"sm_{top.replace('.', '')}"))
    return None


def _runs(scene: Scene, need: Need) -> bool:
    from accel_env.vendors import vendors

    stack = scene.matrix.stacks().get(scene.stack_name)
    vendor = vendors().get(scene.vendor)
    if stack is None or vendor is None:
        return False
    release = cuda_of(scene.torch_label())
    return bool(vendor.runs(need, scene.arch, stack, release))


def false_alarm(scene: Scene, clue: Clue) -> Finding | None:
    """A warning about the device although older code of the same major version runs on it."""
    if clue.component != "torch":
        return plain(scene, clue)  # about no device
    said = _said_list(scene, clue)
    if scene.arch and said is not None and not _runs(scene, said):
        return nvidia(scene, clue)
    return _alarm(scene, clue)


def _alarm(scene: Scene, clue: Clue) -> Finding:
    message = f"a false alarm: code for an older chip of the same major version runs on {scene.named()}"
    reasons = [*plain(scene, clue).because]
    rule = scene.book.note("binary-rule")
    if rule:
        reasons.append(scene.because("arch", message, rule))
    fixes = (Fix("action", do="ignore the warning"), *clue.fixes)
    # the reported text is what is judged, and this is the answer to it
    return Finding("false-positive-warning", "torch", "error", message, tuple(reasons), unique(fixes))


def failing_torch(scene: Scene) -> list[Failed] | None:
    """The missing code of the builds that torch can be; None where one has it or nothing is known."""
    found = scene.possible("torch")
    if found is None or not scene.arch:
        return None
    for group in (found.likely, found.candidates):
        mine = [c for c in group if split_stack(c.stack)[0] == scene.stack_name]
        rows = failing(scene, mine) if mine else None
        hit = [row for row in rows or () if row.need.subject in (Subject.ARCH, Subject.STACK)]
        if hit:
            return hit
    return None


def _toolkit_bound(scene: Scene) -> tuple[str, str] | None:
    """(why, fact) where the toolkit of torch is older than the device: its compiler does not know it."""
    version = cuda_of(scene.torch_label())
    if not version or not scene.arch:
        return None
    toolkit = scene.book.toolkit(version)
    release = scene.matrix.stack_release(f"cuda-{version}")
    newest = toolkit.newest if toolkit else max(release.targets, key=number, default="") if release else ""
    if not newest or reaches(newest, scene.arch):
        return None
    fact = toolkit.fact if toolkit else release.fact if release else ""
    return f"torch is built with CUDA {version}, whose compiler ends at {newest}: no code for {scene.named()}", fact


def _other_package(scene: Scene, clue: Clue) -> Finding | None:
    """torch has the code: another package on the way has not."""
    for row in scene.rows():
        found = scene.possible(row.name)
        if row.name == "torch" or found is None or not found.candidates:
            continue
        wheels = [c for c in found.likely if c.rank < SOURCE_RANK] or [c for c in found.candidates if c.rank < SOURCE_RANK]
        mine = [c for c in wheels if not c.stack or split_stack(c.stack)[0] == scene.stack_name]
        rows = [r for r in failing(scene, mine) or () if r.need.subject is Subject.ARCH] if mine else []
        if rows and len(rows) == len(mine):
            message = f"torch has code for {scene.named()}; {need_text(rows[0].need, rows[0].candidate)}"
            reasons = (*plain(scene, clue).because, scene.because("arch", message, rows[0].need.fact))
            fixes = unique((*fitting_fixes(scene, row.name), *arch_fixes(scene, row.name)))
            return Finding("gpu-arch-unsupported-by-package", row.name, "error", message, reasons, fixes)
    return None


def unsupported(scene: Scene, clue: Clue) -> Finding:
    """A package without code for the generation: another release, another path, another device."""
    base = plain(scene, clue)
    name = clue.component.removesuffix("-ck")
    fixes: list[Fix] = []
    reasons = [*base.because]
    if name in scene.matrix.package_names():
        if scene.arch or not clue.facts.get("needs_arch"):  # else the device is only known to be older than what builds are for
            fixes += fitting_fixes(scene, name)
        for absent in scene.matrix.package(name).absent:
            if absent.stack == scene.stack_name and (not absent.archs or scene.arch in absent.archs):
                fixes.append(Fix("action", do=absent.text))
                reasons.append(scene.because("instead", absent.text, absent.fact))
    fixes += [*clue.fixes, *arch_fixes(scene, name)]
    return Finding(clue.rule, clue.component, clue.severity, base.message, tuple(reasons), unique(fixes))


def toolchain(scene: Scene, clue: Clue) -> Finding:
    """A compiler that does not know the device: a torch whose compiler does, or a newer toolkit."""
    base = plain(scene, clue)
    arch = (
        re.sub(r"[af]$", "", clue.facts.get("arch") or clue.facts.get("toolchain_arch", "").replace("compute_", "sm_"))
        or scene.arch
    )
    first = _first_toolkit(scene, arch)
    fixes = list(_compiling_torch(scene, arch)) if "triton" in clue.component or "ptxas" in clue.component else []
    if first and not fixes:
        fixes.append(Fix("toolchain", "cuda-toolkit", f">={first}", do=f"the first toolkit that knows {arch}"))
        fixes.append(Fix("image", do=f"an image of CUDA {first} or newer"))
    return Finding(clue.rule, clue.component, clue.severity, base.message, base.because, unique((*fixes, *clue.fixes)))


def _first_toolkit(scene: Scene, arch: str) -> str:
    stack = scene.matrix.stacks().get(scene.stack_name or "cuda")
    names = {arch} | {a.a for a in stack.aliases if a.b == arch} | {a.b for a in stack.aliases if a.a == arch} if stack else set()
    known = [r.version for r in stack.releases if names & set(r.targets)] if stack else []
    return min(known, key=parse, default="")


def _compiling_torch(scene: Scene, arch: str) -> Iterator[Fix]:
    """Builds of torch whose own compiler knows the device."""
    able: set[str] = set()
    # pins and compilers of a release are the same on every processor
    for candidate in scene.matrix.candidates("triton", "linux_x86_64"):
        lists = [n for n in candidate.needs if n.subject is Subject.ARCH and not n.unknown]
        if any(value.rstrip("af") == arch for n in lists for value in n.values):
            able.add(candidate.version)

    def fits(torch: Candidate) -> bool:
        from accel_env.solve.versions import allows

        every = scene.matrix.candidates("torch", "linux_x86_64")
        twins = [c for c in every if (c.version, split_stack(c.stack)[0]) == (torch.version, split_stack(torch.stack)[0])]
        wants = {n.allows for c in twins for n in c.needs if n.subject is Subject.PACKAGE and n.name == "triton"}
        return bool(wants) and any(all(allows(spec, version) for spec in wants) for version in able)

    yield from torch_fixes(scene, fits, limit=4)


def cpu_only(scene: Scene, clue: Clue) -> Finding:
    """torch is a CPU build: the builds for the accelerator that the driver runs."""
    from accel_env.judge.evaluate import host_findings

    base = plain(scene, clue)
    if clue.component != "torch":
        return base
    found = next(
        (f for f in host_findings(scene) if f.component == "torch" and f.rule in ("cpu-only-build", "platform-no-wheel")), None
    )
    if found is not None:
        return Finding(
            found.rule, "torch", "error", found.message, (*base.because, *found.because), unique((*found.fixes, *clue.fixes))
        )
    return Finding(
        clue.rule,
        clue.component,
        clue.severity,
        base.message,
        base.because,
        unique((*old_builds(scene), *torch_fixes(scene), *clue.fixes)),
    )
