"""Vendors' images as the place where torch comes from: what they offer, what they demand of the driver, what a base brings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from accel_env.model import Candidate, Device, Host, Image, Need, Policy, Problem, Subject, Warned
from accel_env.solve.stacks import comes_in_images
from accel_env.solve.verdict import ALWAYS, Failure
from accel_env.solve.versions import split_stack

if TYPE_CHECKING:
    from accel_env.matrix.load import Matrix
    from accel_env.solve.ground import Ground

INDEX, VENDOR = "image", "vendor"
COMPAT, REQUIRES, REF, PURPOSE = "compat", "requires", "image", "purpose"
NO_GLIBC = "0"  # below every floor


def offered(matrix: Matrix, name: str, platform: str, policy: Policy) -> tuple[Candidate, ...]:
    """The candidates of a package; with `--base` also what images bring of it."""
    rows = matrix.candidates(name, platform)
    if not policy.base:
        return rows
    return (*(c for c in matrix.brought(name, platform) if policy.base in (VENDOR, c.tag)), *rows)


def off_base(matrix: Matrix, candidate: Candidate, policy: Policy, charge: int, asked: Collection[str]) -> Failure | None:
    """Why a torch is none for the base that was asked for, or for the asks: an image for a purpose serves that alone."""
    if not policy.base or candidate.module != "torch":
        return None
    purpose = dict(candidate.provides).get(PURPOSE, "")
    if purpose and policy.base == VENDOR and purpose not in asked:
        need = Need(Subject.PACKAGE, candidate.fact, name=candidate.name)
        return Failure(need, f"{candidate.tag} is made for {purpose}, which was not asked for", (ALWAYS,))
    if candidate.index == INDEX and (policy.base in (VENDOR, candidate.tag) or _is_of(matrix, candidate, policy.base)):
        return None
    return Failure(Need(Subject.PACKAGE, candidate.fact, name=candidate.name), f"--base {policy.base} was asked for", (charge,))


def _is_of(matrix: Matrix, candidate: Candidate, ref: str) -> bool:
    return not candidate.tag and any(i.ref == ref and i.stack == candidate.stack and i.torch == candidate.version
                                     for i in matrix.images())


def image_pythons(matrix: Matrix, stack: str, policy: Policy) -> set[str]:
    """The Pythons of the images that bring torch for a stack."""
    return {i.python for i in matrix.images() if i.torch and split_stack(i.stack)[0] == stack
            and policy.base in ("", VENDOR, i.ref)}


def image_for(images: tuple[Image, ...], torch: Candidate, python: str, policy: Policy) -> Image | None:
    """The image that a picked torch comes in: the one that it names, else one of its stack and release, of its Python first."""
    fitting = [i for i in images if (i.ref == torch.tag if torch.tag else i.stack == torch.stack and i.torch == torch.version)]
    fitting = [i for i in fitting if i.ref == policy.base] or fitting
    found = next(iter([i for i in fitting if i.python == python] or fitting), None)
    # the digest that a user named counts for more than the one that is known of the tag
    return replace(found, digest=policy.base_digest, digests={}) if found and policy.base_digest else found


def idle_base(problem: Problem, picks: Iterable[Candidate]) -> Iterator[Warned]:
    """That `--base` decides nothing, since no package of the plan comes in an image."""
    base = problem.policy.base
    if base and not any(pick.index == INDEX for pick in picks):
        yield Warned("option-without-effect", f"--base {base} decides no package here: it says which image torch comes in, and "
                     "this plan has no torch")


def other_digest(matrix: Matrix, problem: Problem, image: Image | None) -> Iterator[Warned]:
    """That the digest named with `--base` is not the one known of the tag: what the image holds is said of the latter."""
    rows = [i for i in matrix.images() if image and i.ref == image.ref]
    known = [digest for i in rows for digest in (i.digest, *i.digests.values()) if digest]
    named = problem.policy.base_digest
    if image and image.torch and named and known and named not in known:
        yield Warned("base-digest", f"{image.ref} is known as {known[0]}, not as the digest that was named: what this plan "
                     "says of the image is said of the former", image.fact)


def base_levels(matrix: Matrix, host: Host, policy: Policy, stack: str) -> tuple[str, str]:
    """glibc and GLIBCXX levels that bind: the host's in a venv, the lowest default image's in a container."""
    if policy.target == "venv":
        return (host.libc if host.libc_family in ("", "glibc") else NO_GLIBC), host.libstdcxx
    if policy.base or comes_in_images(matrix, host, stack):
        return "", ""  # the vendor's image is the base, and each brings its own
    images = [i for i in matrix.images() if i.default]
    return _least(i.libc for i in images), _least(i.libstdcxx for i in images)


def _least(levels: Iterable[str]) -> str:
    known = [level for level in levels if level]
    return min(known, key=lambda level: [int(part) for part in level.split(".")], default="")


def driver_failure(ground: Ground, candidate: Candidate, failure: Failure | None) -> Failure | None:
    """The driver rule of a torch that an image brings. `failure`: what the plain rule says.

    The vendor's package for older drivers, where the image holds it, lifts the floor on the kinds of device that it is for; an
    image that refuses to start below its toolkit's driver raises it.
    """
    if candidate.index != INDEX or candidate.module != "torch":
        return failure
    said = dict(candidate.provides)
    if COMPAT in said and bridged(ground):
        return None
    full = ground.driver_need(candidate.stack, full=True) if REQUIRES in said else None
    if failure is None and full is not None and not ground.fully_supported(candidate.stack):
        drivers = ", ".join(dict.fromkeys(d.driver for d in ground.devices))
        met = f"this host has driver {drivers}, and the image refuses to start below its toolkit's"
        return Failure(full, met, (ground.bits.get("driver", ALWAYS),))
    return failure


def bridge_warnings(ground: Ground, torch: Candidate) -> Iterator[Warned]:
    """That the image's package for older drivers is what makes it run, where the driver is older than the toolkit's."""
    compat = ground.stack.forward_compat if ground.stack else None
    if compat and COMPAT in dict(torch.provides) and bridged(ground) and not ground.fully_supported(torch.stack):
        drivers = ", ".join(dict.fromkeys(d.driver for d in ground.devices))
        told = f"driver {drivers} is older than {torch.stack}: the image runs by the vendor's forward compatibility package in it"
        yield Warned("forward-compat", told, compat.fact)


def bridged(ground: Ground) -> bool:
    """True where the vendor's package for older drivers serves every device with its driver's branch."""
    compat = ground.stack.forward_compat if ground.stack else None
    if compat is None or not ground.devices:
        return False
    return all(device.kind in compat.kinds and _branch(ground, device) in compat.branches for device in ground.devices)


def _branch(ground: Ground, device: Device) -> str:
    return ground.driver(device).split(".")[0]
