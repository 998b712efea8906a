"""What an image brings, what holds it, and what may come in its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from accel_env.judge.files.pick import Present, exact
from accel_env.judge.files.pool import places, requires_of
from accel_env.judge.files.state import Risk, State
from accel_env.judge.files.values import Install, Wanted
from accel_env.solve.versions import allows, parse

if TYPE_CHECKING:
    from accel_env.judge.files.images import Known
    from accel_env.judge.files.tables import Tables
    from accel_env.matrix.load import Matrix
    from accel_env.model import Host

# Released together with torch, and what vendor images ship beside it besides.
PARTNERS, MORE = ("torchvision", "torchaudio"), ("triton",)


class World(Protocol):
    """What there is to look things up in."""

    host: Host
    matrix: Matrix
    tables: Tables
    state: State


def shipped(image: Known, matrix: Matrix, platform: str) -> dict[str, Present]:
    """The modelled packages of an image."""
    found: dict[str, Present] = {}
    where, text = image.base.where, image.base.ref
    if image.torch or image.vendor:
        torch = Present("torch", where, image.torch, image.label, vendor=image.vendor, text=text)
        if image.label:
            rows = (c for c in matrix.candidates("torch", platform) if c.version == image.torch and c.build == image.label)
            torch = replace(torch, candidates=tuple(rows))
            found |= {name: _partner(name, image, matrix, platform) for name in PARTNERS}
        found["torch"] = torch
    if image.vendor:
        found |= {name: Present(name, where, vendor=True, text=text) for name in (*PARTNERS, *MORE)}
    return found | {name: Present(name, where, version, vendor=True, text=text) for name, version in image.brings}


def _partner(name: str, image: Known, matrix: Matrix, platform: str) -> Present:
    """The release that belongs to an image's torch of torch's own index; of unknown version where none is listed."""
    here = Present(name, image.base.where, vendor=True, text=image.base.ref)
    for one in matrix.candidates(name, platform):
        asked = dict(requires_of(one.requires, platform, image.python)).get("torch", "")
        if one.build == image.label and exact(asked) and allows(asked, image.torch):
            return replace(here, version=one.version, local=one.build, candidates=(one,), vendor=False)
    return here


def held(install: Install, image: Known | None) -> bool:
    """Whether the image's own constraints hold what it ships: pip reads them from its variable, uv does not."""
    cleared = install.variables.get("PIP_CONSTRAINT", "-") != "-"
    return image is not None and image.constrained and install.tool == "pip" and not cleared


def demands(install: Install, wanted: Sequence[Wanted], torch: Present | None, tables: Tables) -> list[Wanted]:
    """What packages outside the matrix ask of torch, where what is there does not meet it."""
    if install.no_deps or any(w.name == "torch" for w in wanted):
        return []
    for one in wanted:
        row = next((r for r in tables.wants if r.name == one.name), None)
        if row is None or exact(one.spec):
            continue
        if torch is None or (torch.version and not allows(row.requires, torch.version)):
            return [Wanted("torch", row.requires, one.where, one.text)]
    return []


def risks(install: Install, wanted: Sequence[Wanted], torch: Present | None, image: Known, world: World) -> list[Risk]:
    """Packages that may bring a torch along, over a vendor's torch that nothing holds."""
    if torch is None or not torch.vendor or torch.where != image.base.where:
        return []
    if install.constrained or install.no_deps or held(install, image):
        return []
    names = tuple(w.name for w in wanted if _may_replace(w, install, world))
    return [Risk(names, next(w.where for w in wanted if w.name in names))] if names else []


def _may_replace(wanted: Wanted, install: Install, world: World) -> bool:
    """Whether a requirement may bring a torch along: it requires one, and nobody can tell which release of it is taken."""
    if any(row.name == wanted.name for row in world.tables.wants):
        return not exact(wanted.spec)
    every = sorted(world.matrix.candidates(wanted.name, world.host.platform), key=lambda c: parse(c.version))
    listed = any(allows(wanted.spec, c.version) for c in every)
    where = places(wanted, install, world.matrix)
    if wanted.name == "torch" or wanted.url or (listed and not where.unknown and not where.nightly):
        return False
    pinned = exact(wanted.spec)
    near = [c for c in every if pinned and parse(c.version) > parse(wanted.spec.lstrip("="))][:1] or every[-1:]
    asked = (dict(requires_of(c.requires, world.host.platform, world.state.python)).get("torch", "") for c in near)
    return any(exact(spec) for spec in asked)
