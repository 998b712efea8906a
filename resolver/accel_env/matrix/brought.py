"""What vendors' images bring, as candidates: each package of a row of images.yaml that says what is in it.

A build that an index has as well (`2.11.0+xpu`) is that build, with its needs. A build of the vendor's own
(`2.10.0a0+b4e4ee81d3`) has the machine code that a list of images.yaml gives it; nothing else is known of it, so that wheels
compiled against a release of torch are not known to fit: it is marked `own`.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accel_env.matrix import checks
from accel_env.matrix.codec import pack_candidates
from accel_env.model import Candidate, Need, Subject

if TYPE_CHECKING:
    from accel_env.matrix.codec import Flat
    from accel_env.matrix.compile import Model
    from accel_env.matrix.packages import Build, Package
    from accel_env.matrix.read import Row
    from accel_env.model import Image

INDEX = "image"
# What a torch that an image brings says of itself, beside the ABI: `Ground` and the search ask for these.
REF, OWN, COMPAT, REQUIRES, PURPOSE = "image", "own", "compat", "requires", "purpose"


@dataclass(frozen=True, slots=True)
class Code:
    """Machine code and PTX of a vendor's build on one platform."""

    code: tuple[str, ...]
    ptx: tuple[str, ...]
    fact: str


def read_images(model: Model, row: Row) -> None:
    """Reads images.yaml into the model."""
    from accel_env.matrix.tables import parse_images

    model.code, model.images = parse_code(row), parse_images(row)
    row.close()


def brought_sections(model: Model) -> dict[str, Flat]:
    """Section name -> packed candidates."""
    rows = ((name, platform, found) for name, spread in candidates(model).items() for platform, found in spread.items())
    return {f"brought/{name}/{platform}": pack_candidates(found) for name, platform, found in rows}


def parse_code(row: Row) -> dict[str, dict[str, Code]]:
    """List name -> platform -> code, of the mapping `code` of images.yaml."""
    found: dict[str, dict[str, Code]] = {}
    for name, platforms in row.keyed("code").items():
        found[name] = {}
        for platform in platforms:
            platforms.check_name(platform, checks.platform)
            inner = platforms.maybe(platform)
            if inner is not None:
                code = inner.texts("code", required=True, check=checks.arch)
                found[name][platform] = Code(code, inner.texts("ptx", check=checks.arch), inner.fact())
                inner.close()
    return found


def candidates(model: Model) -> dict[str, dict[str, tuple[Candidate, ...]]]:
    """Package -> platform -> what images bring of it, the newest first."""
    from packaging.version import Version

    packages: dict[str, list[Package]] = {}
    for package in model.packages:
        packages.setdefault(package.name, []).append(package)
    found: dict[str, dict[str, list[Candidate]]] = {}
    for image in model.images:
        for name, text in image.brings.items():
            if name in packages:
                for candidate in _spread(model, packages[name], image, text):
                    found.setdefault(name, {}).setdefault(candidate.platform, []).append(candidate)
    return {
        name: {platform: tuple(sorted(rows, key=lambda c: Version(c.version), reverse=True)) for platform, rows in spread.items()}
        for name, spread in found.items()
    }


def _spread(model: Model, files: list[Package], image: Image, text: str) -> Iterator[Candidate]:
    """The candidate of each platform of the image. `text`: version, its local label behind `+`; `files`: all of the package."""
    package = files[-1]
    version, _, label = text.partition("+")
    lead = package.module == "torch"
    tag = f"cp{image.python.replace('.', '')}"
    refused = _refused(model, package.name, version)
    for platform in image.platforms:
        same = build_of(files, version, label, platform, image.stack, refused)
        needs = tuple(dict.fromkeys((*refused, *_needs(model, package, image, platform, same))))
        pinned = bool(image.digest_on(platform))
        yield Candidate(
            name=package.name, module=package.module, version=version, build=label or (same.build if same else "any"), variant="",
            index=INDEX, platform=platform, stack=image.stack, tags=(tag,), needs=needs,
            requires=(), provides=_provides(package, image, same), hashed=(tag,) if pinned else (), fact=image.fact,
            tag=image.ref, note=image.note if lead else "",
        )


def _refused(model: Model, name: str, version: str) -> tuple[Need, ...]:
    """What overlays forbid of a release, an image's no less than an index's."""
    from packaging.specifiers import SpecifierSet

    return tuple(
        need for which, versions, need in model.forbidden
        if which == name and SpecifierSet(versions).contains(version, prereleases=True)
    )  # fmt: skip


def build_of(
    files: list[Package], version: str, label: str, platform: str, stack: str, refused: tuple[Need, ...]
) -> Build | None:
    """The build that an index has of the same version and label; without a label, the one for the image's stack. `refused`:
    needs that say that it is forbidden, not that it is unknown."""
    releases = (release for package in files for release in package.releases if release.version == version)
    builds = [b for release in releases for b in release.builds
              if platform in b.platforms and b.index != INDEX
              and not any(need.unknown and need not in refused for need in b.needs)]
    if label:
        return next((build for build in builds if build.build == label), None)
    return next((build for build in builds if build.stack in (stack, stack.partition("-")[0])), None)


def _needs(model: Model, package: Package, image: Image, platform: str, same: Build | None) -> tuple[Need, ...]:
    system, _, cpu = platform.partition("_")
    tag = f"cp{image.python.replace('.', '')}"
    needs = [
        Need(Subject.OS, image.fact, values=(system,)), Need(Subject.CPU, image.fact, values=(cpu,)),
        Need(Subject.PYTHON, image.fact, values=(tag,)), Need(Subject.STACK, image.fact, values=(image.stack,)),
    ]
    if package.module != "torch":
        needs.append(Need(Subject.TORCH, image.fact, abi=((REF, image.ref),)))
    else:  # what the image has of a package is what is there: nothing is laid over it
        others = (name for name in image.brings if name != package.name)
        ours = ((REF, image.ref),)
        needs += (Need(Subject.PACKAGE, image.fact, name=name, when="present", abi=ours) for name in others)
    if same is not None:
        return (*needs, *same.needs)
    code = model.code.get(image.code.get(package.name, ""), {}).get(platform)
    if code is not None:
        needs.append(Need(Subject.ARCH, code.fact, values=code.code, jit=code.ptx))
    elif package.name in image.code or package.module == "torch":
        needs.append(Need(Subject.ARCH, image.fact, unknown=True))
    return tuple(needs)


def _provides(package: Package, image: Image, same: Build | None) -> tuple[tuple[str, str], ...]:
    if package.module != "torch":
        return ((REF, image.ref),)
    rows = dict(same.provides) if same else {OWN: "true"}
    if same is None:
        stack, _, release = image.stack.partition("-")
        rows[stack] = release  # what loads a library by the release of the toolkit alone (`cuda`) does so here too
    rows |= {REF: image.ref} | ({COMPAT: "true"} if image.compat else {}) | ({REQUIRES: "true"} if image.requires else {})
    rows |= {PURPOSE: image.purpose} if image.purpose else {}
    return tuple(sorted(rows.items()))
