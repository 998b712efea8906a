"""Ways out: packages by the solver's needs, drivers by floors, and what stands in judge.yaml."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from accel_env.judge.live import Keep, choose, live, package_fix, runs
from accel_env.judge.types import Fix
from accel_env.model import Candidate, Subject
from accel_env.solve.slot import satisfies
from accel_env.solve.versions import allows, parse, split_stack

if TYPE_CHECKING:
    from accel_env.judge.scene import Failed, Scene


def torch_fixes(scene: Scene, keep: Keep | None = None, limit: int = 5) -> list[Fix]:
    """Builds of torch that this host runs, the smallest change first."""
    row = scene.torch()
    version, label = (row.version, row.local) if row else ("", "")
    wanted = _stacks(scene)

    def fits(candidate: Candidate) -> bool:
        return split_stack(candidate.stack)[0] in wanted

    chosen = [c for c in live(scene, "torch", keep) if fits(c) and c.index != "image"]
    return [package_fix(scene, "torch", run, version) for run in choose(runs(scene, "torch", chosen), version, label, limit)]


def _stacks(scene: Scene) -> set[str]:
    """The stacks that another torch may be for: those of the scene, CUDA where nothing tells."""
    return scene.stacks() - {"cpu"} or {"cuda"}


def bound_to_torch(scene: Scene, name: str) -> bool:
    """False for a package that the matrix holds and that neither asks for a torch nor is asked for by one."""
    if name not in scene.matrix.package_names() or name in scene.book.pairs:
        return True
    every = scene.matrix.candidates(name, scene.host.platform)
    return any(n.subject is Subject.TORCH or (n.subject is Subject.PACKAGE and n.name == "torch") for c in every for n in c.needs)


def fitting_fixes(scene: Scene, name: str, keep: Keep | None = None, limit: int = 3, *, soft: bool = False) -> list[Fix]:
    """Releases of a package that fit the torch that is there, and this host; `soft` needs count where somebody met one."""
    before = beside_old(scene, name)
    if before:
        return before
    row = scene.row(name)
    version = row.version if row else ""
    found = scene.possible("torch")
    torches = found.likely if found else ()

    def fits(candidate: Candidate) -> bool:
        if keep is not None and not keep(candidate):
            return False
        if not torches:
            return True
        stacks = {split_stack(t.stack)[0] for t in torches}
        if candidate.stack and split_stack(candidate.stack)[0] not in stacks:
            return False
        return any(beside(candidate, torch, soft=soft) for torch in torches)

    chosen = live(scene, name, fits)
    best = min((c.rank for c in chosen), default=0)
    picked = choose(runs(scene, name, [c for c in chosen if c.rank == best]), version, row.local if row else "", limit)
    return [package_fix(scene, name, run, "") for run in picked]


def beside_old(scene: Scene, name: str) -> list[Fix]:
    """The release that a table names for a torch of before the matrix."""
    torch = scene.torch()
    if torch is None or not torch.version or scene.book.old_torch(torch.version) is None:
        return []
    mine = [p.allows for p in scene.book.pairings if p.name == name and p.other == "torch" and allows(p.wants, torch.version)]
    return [Fix("package", name, spec, do=f"the release of torch {torch.version}") for spec in mine[:1]]


def beside(candidate: Candidate, torch: Candidate, *, soft: bool = False) -> bool:
    """True when a build and a torch meet each other's needs."""
    for need in candidate.needs:
        if (need.soft and not soft) or need.unknown:
            continue
        if need.subject is Subject.TORCH and not satisfies(torch, need):
            return False
        if need.subject is Subject.PACKAGE and need.name == "torch" and not allows(need.allows, torch.version):
            return False
    return all(
        allows(need.allows, candidate.version) or need.soft or need.when == "absent"
        for need in torch.needs
        if need.subject is Subject.PACKAGE and need.name == candidate.name
    )


def keep_torch_of(scene: Scene, name: str, limit: int = 4, *, soft: bool = False) -> list[Fix]:
    """Builds of torch that the installed release of a package fits."""
    found = scene.possible(name)
    mine = found.likely if found else ()
    return torch_fixes(scene, lambda torch: any(beside(c, torch, soft=soft) for c in mine), limit) if mine else []


def driver_fix(scene: Scene, failures: Iterable[Failed]) -> list[Fix]:
    """The least driver that the failed needs ask for."""
    floors = [f.need.allows for f in failures if f.need.subject is Subject.DRIVER and f.need.allows]
    sets = [spec for f in failures if f.need.subject is Subject.DRIVER for spec in f.need.values]
    if floors:
        spec = min(floors, key=lambda text: parse(text.lstrip(">=")))
        return [Fix("driver", scene.vendor, spec=spec, do="install a newer driver")]
    return [Fix("driver", scene.vendor, spec=spec, do="install a driver of that range") for spec in dict.fromkeys(sets)]


def unique(fixes: Iterable[Fix]) -> tuple[Fix, ...]:
    """Each fix once; of two that say the same the one that says more."""
    found: dict[tuple[object, ...], Fix] = {}
    for fix in fixes:
        found.setdefault(_key(fix), fix)
    rows = list(found.values())
    return tuple(fix for fix in rows if not _vaguer(fix, rows))


def _key(fix: Fix) -> tuple[object, ...]:
    """What makes two fixes one: of images, devices and own builds one is enough, of variables one a name."""
    if fix.kind in ("image", "hardware", "build"):
        return fix.kind, fix.name if fix.kind == "build" else ""
    if fix.kind == "env":
        return fix.kind, tuple(sorted(fix.set)), fix.unset
    if fix.kind == "driver":
        return fix.kind, fix.spec
    return fix.kind, fix.name, fix.spec, fix.build, fix.do if not fix.name else ""


def _vaguer(fix: Fix, rows: list[Fix]) -> bool:
    """True for `a build of torch` beside `torch ==2.7.1, cu126`."""
    if fix.kind not in ("package", "driver", "toolchain", "python") or fix.spec or fix.build:
        return False
    same = [other for other in rows if other is not fix and other.kind == fix.kind and (other.spec or other.build)]
    return any(not fix.name or other.name == fix.name for other in same)


def with_do(fixes: Iterable[Fix], text: str) -> list[Fix]:
    """The fixes with a sentence."""
    return [replace(fix, do=fix.do or text) for fix in fixes]


def free_fixes(scene: Scene, name: str, keep: Keep | None = None, limit: int = 2) -> list[Fix]:
    """Releases of a package that this host and Python take, whatever torch they ask for: the nearest and the newest."""
    row = scene.row(name)
    chosen = live(scene, name, keep)
    best = min((c.rank for c in chosen), default=0)
    picked = choose(
        runs(scene, name, [c for c in chosen if c.rank == best]), row.version if row else "", row.local if row else "", limit
    )
    return [package_fix(scene, name, run, "") for run in picked]


def free_newer(scene: Scene, name: str) -> list[Fix]:
    """The releases after the installed one."""
    row = scene.row(name)
    if row is None or not row.version:
        return []
    return free_fixes(scene, name, lambda c: parse(c.version) > parse(row.version), limit=1)
