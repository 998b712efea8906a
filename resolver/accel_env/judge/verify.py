"""A fix tried out: the environment with it, judged again by the same needs. Says `verified` only where nothing is left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from accel_env.judge.driver_releases import unmet_by_device
from accel_env.judge.evaluate import host_findings
from accel_env.judge.fixes import unique
from accel_env.judge.live import unknown_arch
from accel_env.judge.machinery import machine_findings
from accel_env.judge.pairs import pair_findings
from accel_env.judge.scene import OVERRIDE, Scene
from accel_env.judge.types import Environment, Finding, Fix, Installed
from accel_env.model import Candidate
from accel_env.solve.verdict import SOURCE_RANK
from accel_env.solve.versions import allows, parse, split_stack

TRIED = 6
COMPANIONS = 4


def tried(findings: Iterable[Finding], scene: Scene) -> Iterator[Finding]:
    """The findings, their fixes tried out."""
    for finding in findings:
        fixes = [_tried(fix, scene) if place < TRIED else fix for place, fix in enumerate(finding.fixes)]
        yield replace(finding, fixes=unique(fixes))


def _tried(fix: Fix, scene: Scene) -> Fix:
    found = scene.possible("torch")
    if fix.kind in ("env", "driver") and (found is None or not found.candidates):
        return fix  # nothing there that the needs could speak of
    if fix.kind == "env" and OVERRIDE not in (*fix.set, *fix.unset):
        return fix
    if fix.kind == "env":
        changed = with_variables(scene.environment, fix)
        return replace(fix, verified=changed is not None and clean(changed, scene))
    if fix.kind == "driver":
        changed = with_driver(scene, fix)
        return replace(fix, verified=changed is not None and clean(changed, scene))
    return _package(fix, scene) if fix.kind == "package" and fix.name in scene.matrix.package_names() else fix


def _package(fix: Fix, scene: Scene) -> Fix:
    """A package fix holds where every release that it allows does; else the nearest release with what must move along."""
    if fix.do.startswith("remove"):
        changed = replace(scene.environment, installed=tuple(r for r in scene.environment.installed if r.name != fix.name))
        return replace(fix, verified=clean(changed, scene))
    if any(unmet_by_device(scene)):
        return fix  # no package teaches a driver the device
    if not scene.torch_known() and (fix.name != "torch" or scene.torch() is None):
        return fix  # what it must fit is not known
    meant = releases(fix, scene)
    if not meant or not (fix.spec or fix.build) or (scene.arch and any(unknown_arch(c) for c in meant)):
        return fix
    if all(clean(with_package(scene.environment, fix, c), scene) for c in meant):
        return replace(fix, verified=True)
    return _with_companions(fix, scene, meant)


def _with_companions(fix: Fix, scene: Scene, meant: list[Candidate]) -> Fix:
    row = scene.row(fix.name)
    here = parse(row.version) if row and row.version else parse(meant[0].version)
    nearest = min(meant, key=lambda c: (abs(_place(c.version) - _place(str(here))), -_place(c.version)))
    changed = with_package(scene.environment, fix, nearest)
    along: dict[str, tuple[str, str]] = {}
    for _ in range(COMPANIONS):
        left = left_over(changed, scene)
        if not left:
            return _joined(fix, nearest, along)
        step = _next_step(left, changed, scene)
        if step is None or step[0].name in (fix.name, *along):
            return fix
        along[step[0].name] = (step[1].version, step[0].build)
        changed = with_package(changed, *step)
    return _joined(fix, nearest, along) if clean(changed, scene) else fix


def _next_step(left: list[Finding], environment: Environment, scene: Scene) -> tuple[Fix, Candidate] | None:
    """The first package that a finding would move, other than torch, and the release to move it to."""
    inner = Scene(environment, (), scene.matrix, scene.book, like=scene)
    for finding in left:
        for other in finding.fixes:
            if other.kind != "package" or other.name == "torch" or other.name not in scene.matrix.package_names():
                continue
            chosen = releases(other, inner)
            if chosen:
                return other, chosen[0]
    return None


def _joined(fix: Fix, nearest: Candidate, along: dict[str, tuple[str, str]]) -> Fix:
    """`along`: what moves too, name -> (version, label)."""
    words = ", ".join(f"{name} {version}" + (f"+{label}" if label else "") for name, (version, label) in along.items())
    spec = f"=={nearest.version}"
    command = fix.command
    if command:
        pins = " ".join(f'"{name}=={version}"' for name, (version, _) in {fix.name: (nearest.version, ""), **along}.items())
        _, _, tail = command.partition(" --")
        command = f"pip install {pins}" + (f" --{tail}" if tail else "")
    return replace(fix, spec=spec, do=f"together with {words}" if words else fix.do, command=command, verified=True)


def _place(version: str) -> int:
    """A number that grows with the version, for distances."""
    major, minor, patch = (*parse(version).release, 0, 0)[:3]
    return int(major * 1_000_000 + minor * 1_000 + patch)


def releases(fix: Fix, scene: Scene) -> list[Candidate]:
    """The published builds that a package fix allows here, the newest first, one per release."""
    found: dict[str, Candidate] = {}
    stacks = scene.stacks() or {"cuda", "cpu"} if fix.name != "torch" else set()
    for candidate in scene.matrix.candidates(fix.name, scene.host.platform):
        if candidate.stack and stacks and split_stack(candidate.stack)[0] not in stacks:
            continue
        labelled = not fix.build or candidate.build == fix.build
        if labelled and candidate.rank < SOURCE_RANK and allows(fix.spec, candidate.version):
            found.setdefault(candidate.version, candidate)
    return list(found.values())


def with_package(environment: Environment, fix: Fix, candidate: Candidate) -> Environment:
    """The environment in which a package is that build."""
    local = fix.build or ("" if candidate.build in ("", "any") or fix.name != "torch" else candidate.build)
    row = Installed(fix.name, candidate.version, local, origin="fix")
    rest = tuple(r for r in environment.installed if r.name != fix.name)
    return replace(environment, installed=(*rest, row), texts=())


def with_variables(environment: Environment, fix: Fix) -> Environment | None:
    """The environment with the variables of a fix; None where a value is words and no value."""
    if any(" " in value for value in fix.set.values()):
        return None
    kept = {key: value for key, value in environment.variables.items() if key not in fix.unset}
    return replace(environment, variables={**kept, **fix.set}, texts=())


def with_driver(scene: Scene, fix: Fix) -> Environment | None:
    """The environment with the least driver that a fix asks for; None where it names none."""
    version = fix.spec.lstrip(">=")
    if not version or not version[0].isdigit() or not scene.environment.host.devices:
        return None
    devices = tuple(replace(device, driver=version) for device in scene.environment.host.devices)
    extra = {key: value for key, value in scene.environment.extra.items() if not key.startswith("driver")}
    host = replace(scene.environment.host, devices=devices)
    return replace(scene.environment, host=host, cuda_driver="", extra=extra, texts=())


def clean(environment: Environment, like: Scene) -> bool:
    """True where the needs find nothing worse than a note."""
    return not left_over(environment, like, bare=True) and not any(
        unmet_by_device(Scene(replace(environment, texts=()), (), like.matrix, like.book, like=like, bare=True))
    )


def left_over(environment: Environment, like: Scene, *, bare: bool = False) -> list[Finding]:
    """What the needs still find, without any text; `bare` leaves out the ways out, which cost the most."""
    scene = Scene(replace(environment, texts=()), (), like.matrix, like.book, like=like, bare=bare)
    rows = (*machine_findings(scene), *host_findings(scene), *pair_findings(scene))
    return [finding for finding in rows if finding.severity != "note"]
