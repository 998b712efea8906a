"""What the environment shows about the machine: drivers of two versions, kinds of kernel module, overrides, vendor stacks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from accel_env.judge.evaluate import arch_fixes
from accel_env.judge.types import Finding, Fix, Installed
from accel_env.solve.versions import allows, parse, split_stack, tag_fits

if TYPE_CHECKING:
    from accel_env.judge.scene import Scene


def machine_findings(scene: Scene) -> Iterator[Finding]:
    """Findings that need no package."""
    yield from _two_drivers(scene)
    yield from _modules(scene)
    yield from _override(scene)
    yield from _vendor_stack(scene)
    yield from _vendor_plugin(scene)
    yield from _vendor_pairings(scene)
    yield from _boards(scene)
    yield from _overwritten(scene)


def _overwritten(scene: Scene) -> Iterator[Finding]:
    """A torch of an index where the vendor's software needs its own."""
    row = scene.torch()
    rule = scene.book.same_release.get(scene.vendor)
    if rule is None or row is None or row.vendor or not row.local or row.wanted:
        return
    text = f"torch {row.version}+{row.local} comes from an index; the software of {scene.named()} works with its own torch alone"
    level = "error" if scene.complaint else "warning"
    fixes = (
        Fix("image", do="start from the vendor's image again and constrain torch in every later pip step"),
        Fix("package", "torch", do="install the vendor's torch again"),
    )
    yield Finding("vendor-build-overwritten", "torch", level, text, (scene.because("build", text, rule[1]),), fixes)


def _boards(scene: Scene) -> Iterator[Finding]:
    """Kinds of device that no index serves, with a torch that is not the vendor's own."""
    stack = scene.matrix.stacks().get(scene.stack_name)
    row = scene.torch()
    for rule in stack.kind_rules if stack and row else ():
        mine = [d for d in scene.devices if d.kind == rule.kind and (not rule.archs or d.arch in rule.archs)]
        if not mine or row is None or scene.book.is_board_build(row, scene.environment):
            continue
        text = f"{scene.named(tuple(mine))}: {rule.text}; torch here is {row.version or row.text}"
        name = (
            "cpu-only-build"
            if row.local == "cpu"
            else "platform-no-wheel"
            if _default_is_cpu(scene, row)
            else "gpu-arch-not-in-wheel"
        )
        fixes = (*scene.book.recipe(f"torch-{rule.kind}"), *arch_fixes(scene, "torch"))
        level = "error" if scene.complaint else "warning"
        yield Finding(name, "torch", level, text, (scene.because("device", text, rule.fact),), fixes)


def _default_is_cpu(scene: Scene, row: Installed) -> bool:
    """True where the default index had CPU builds alone for this platform, in the releases that the package can be."""
    if row.local or not (row.version or scene.host.python) or ("pypi" not in row.text.lower() and not row.version):
        return False
    every = [c for c in scene.matrix.candidates("torch", scene.host.platform) if c.index == "pypi"]
    mine = [
        c
        for c in every
        if (not row.version or parse(c.version) == parse(row.version))
        and (not scene.host.python or any(tag_fits(tag, scene.host.python) for tag in c.tags))
    ]
    return bool(every) and all(split_stack(c.stack)[0] == "cpu" for c in mine)


def _two_drivers(scene: Scene) -> Iterator[Finding]:
    kernel, user = scene.said("driver_kernel"), scene.said("driver_userspace")
    if not kernel or not user or parse(kernel.split("-")[0]) == parse(user.split("-")[0]):
        return
    text = f"the kernel module is {kernel}, the libraries are {user}: both must be of one version"
    fixes = scene.book.recipe("driver-userspace-kernel-mismatch")
    reason = scene.because("driver", text, scene.book.note("driver-halves"))
    yield Finding("driver-userspace-kernel-mismatch", "nvidia-driver", "error", text, (reason,), fixes)


def _modules(scene: Scene) -> Iterator[Finding]:
    """Open and proprietary kernel modules serve different generations."""
    kind = scene.said("kernel_modules")
    for rule in scene.book.kernel_modules:
        names = [d for d in scene.devices if d.arch in rule.archs]
        if names and kind and kind != rule.needs:
            text = f"{scene.named(tuple(names))} works with the {rule.needs} kernel modules only; the {kind} ones are installed"
            fix = Fix("driver", scene.vendor, do=f"install the driver's variant with the {rule.needs} kernel modules")
            name = "open-kernel-module-required" if rule.needs == "open" else "kernel-driver-not-loaded"
            yield Finding(name, "nvidia-driver", "error", text, (scene.because("driver", text, rule.fact),), (fix,))


def _override(scene: Scene) -> Iterator[Finding]:
    """An override must name a target of the device's own family."""
    target, arch = scene.override_target(), scene.arch
    if not target or not arch or scene.vendor != "amd" or target == arch:
        return
    known = scene.book.override_of(arch)
    if known is not None and known.target == target:
        return
    if target[:-2] == arch[:-2] and known is None:
        return
    text = f"HSA_OVERRIDE_GFX_VERSION makes the runtime take {scene.named()} for {target}, which is another instruction set"
    fixes: list[Fix] = [Fix("env", unset=("HSA_OVERRIDE_GFX_VERSION",))]
    if known is not None:
        fixes.insert(0, Fix("env", set={"HSA_OVERRIDE_GFX_VERSION": known.value}))
    fact = known.fact if known else scene.book.note("override")
    level = "error" if scene.complaint else "warning"
    yield Finding(
        "wrong-isa-override", "HSA_OVERRIDE_GFX_VERSION", level, text, (scene.because("arch", text, fact),), tuple(fixes)
    )


def container_release(scene: Scene) -> str:
    """The release of the vendor's software in the image: `1.10.0` of `.../gaudi-docker/1.10.0/...`; empty when unknown."""
    container = scene.environment.container
    for image in scene.book.images:
        found = re.search(image.match, container.base, re.IGNORECASE) if container and image.stack else None
        if found:
            return next((value for value in found.groupdict().values() if value), "")
    return ""


def _vendor_stack(scene: Scene) -> Iterator[Finding]:
    """Where driver and software of the image must be one release."""
    rule = scene.book.same_release.get(scene.vendor)
    inside, driver = container_release(scene), scene.driver.low
    if rule is None or not inside or not driver or _same_release(driver, inside):
        return
    text = f"the host's driver is {driver}, the container is {inside}: they must be one release"
    fixes = (
        Fix("driver", rule[0], spec=f"=={inside}", do=f"upgrade driver and firmware of the host to {inside}"),
        Fix("image", rule[0], do=f"an image of release {driver}, the host's own"),
        *scene.book.recipe(rule[0]),
    )
    yield Finding("vendor-stack-version-mismatch", rule[0], "error", text, (scene.because("driver", text, rule[1]),), fixes)


def _same_release(one: str, other: str) -> bool:
    """True where two releases agree as far as both are said: `1.16` may be any patch of it."""
    return all(a == b for a, b in zip(_release(one), _release(other), strict=False))


def _release(text: str) -> tuple[int, ...]:
    numbers = re.findall(r"\d+", text)[:3]
    return tuple(int(n) for n in numbers)


def _vendor_plugin(scene: Scene) -> Iterator[Finding]:
    """A plugin whose number is release and build of the vendor's software: `1.16.0.526` beside the driver `1.16.1-7`."""
    rule = scene.book.same_release.get(scene.vendor)
    driver = scene.said("driver") or scene.driver.text or container_release(scene)
    found = re.search(r"(\d+\.\d+\.\d+)-(\d+)", driver)
    whole = re.search(r"\d+\.\d+\.\d+", driver)
    if rule is None or whole is None:
        return
    for row in scene.rows():
        numbers = row.version.split(".")
        if row.name not in scene.book.plugins or len(numbers) < 4:
            continue
        release, build = ".".join(numbers[:3]), numbers[3]
        if release == whole[0] and (found is None or found[2] == build):
            continue
        text = (
            f"{row.name} is of release {release}, build {build}; the driver is {driver}: even a patch release apart does not work"
        )
        wanted = f"{found[1]}.{found[2]}" if found else f"{whole[0]}.*"
        fixes = (
            Fix("package", row.name, f"=={wanted}", command=f'pip install "{row.name}=={wanted}"'),
            Fix("driver", rule[0], spec=f"=={release}-{build}"),
        )
        yield Finding("vendor-stack-version-mismatch", row.name, "error", text, (scene.because("driver", text, rule[1]),), fixes)


def _vendor_pairings(scene: Scene) -> Iterator[Finding]:
    """Libraries that were validated with one release of the vendor's software."""
    rule = scene.book.same_release.get(scene.vendor)
    release = container_release(scene) or scene.driver.low
    if rule is None or not release:
        return
    for row in scene.rows():
        wants = next(
            (p for p in scene.book.pairings if p.name == row.name and row.version and allows(p.allows, row.version)), None
        )
        if wants is None or wants.other != rule[0] or allows(wants.wants, ".".join(map(str, _release(release)))):
            continue
        spec = wants.wants
        text = f"{row.name} {row.version} is made for release {spec}; host and container are {release}"
        image = scene.book.vendor_image_of(spec.lstrip("=<>~"), scene)
        fixes = (
            Fix("image", image, do=f"a container and a host driver of release {spec}"),
            Fix("driver", rule[0], spec=spec, do="together with the image"),
            Fix("package", row.name, do=f"the release of {row.name} for {release}"),
        )
        level = "error" if scene.complaint else "warning"
        yield Finding("vendor-stack-version-mismatch", rule[0], level, text, (scene.because("package", text, wants.fact),), fixes)
