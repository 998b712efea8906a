"""The needs of what ends up installed: judged like an installed environment, and by the solver where versions are free."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from accel_env.judge.files.limits import limited
from accel_env.judge.files.pick import Clash, Present, exact
from accel_env.judge.files.pins import partner
from accel_env.judge.files.pool import PYPI, Places, pool
from accel_env.judge.files.requirement import wheel
from accel_env.judge.files.rules_build import guessed
from accel_env.judge.files.values import Install, Wanted
from accel_env.judge.types import Environment, Finding, Fix, Installed
from accel_env.model import Ask, Candidate, Host, Policy, Solution, Subject
from accel_env.solve.explain import need_text
from accel_env.solve.versions import split_stack

if TYPE_CHECKING:
    from accel_env.judge.files.scope import Scope
    from accel_env.matrix.load import Matrix

# What a file says about versions cannot settle these: they are about the machine as it runs.
_NOT_HERE = frozenset({"driver-missing", "device-not-passed", "device-permission"})


def need_findings(scope: Scope) -> Iterator[Finding]:
    """Findings about builds: on this host, beside each other, for this Python, and clashes of their requirements."""
    for clash, install in scope.state.clashes:
        yield limited(scope, clash, install) if clash.a.name == clash.b.name else _clash(scope, clash, install)
    yield from _python(scope)
    environment = environment_of(scope)
    if not environment.installed:
        return
    from accel_env.judge.doctor import judge

    found = [f for f in judge(environment, (), scope.matrix) if f.rule not in _NOT_HERE]
    placed = [_placed(scope, finding) for finding in found]
    if any(f.severity == "error" for f in placed) and _some_free(scope):
        yield from _loosened(scope, placed)
    else:
        yield from placed


def environment_of(scope: Scope) -> Environment:
    """What ends up installed, as `doctor` takes it. In an image its C library and Python count, not the host's."""
    host, image = scope.host, scope.image
    python = scope.state.python
    if scope.scene.kind == "image":
        libc = image.libc if image else ""
        host = replace(
            host, libc=libc, libc_family="glibc" if libc else "", libstdcxx=image.libstdcxx if image else "", python=python
        )
    else:
        host = replace(host, python=python)
    if not scope.named:
        host = replace(host, devices=(), libc="", libc_family="", libstdcxx="", kernel="")
    rows = tuple(_installed(scope, p) for p in scope.state.packages.values())
    variables = dict(scope.state.variables)
    service = scope.scene.service
    variables.update({v.name: v.value for v in (service.variables if service else ())})
    return Environment(host=host, installed=rows, variables=variables)


def _installed(scope: Scope, present: Present) -> Installed:
    """A wheel that its setup.py downloads stands for a source build."""
    local, wheel = present.local, None
    if present.candidates and all(c.build == "source" for c in present.candidates):
        torch = next((c.torch for c in scope.state.compiled if c.package is present), scope.torch)
        wheel = guessed(scope, present, torch)
        local = wheel.build if wheel else ""
    vendor = present.vendor or (not present.candidates and not present.nightly and bool(present.version) and present.shaky)
    source = bool(present.candidates) and wheel is None and all(c.build == "source" for c in present.candidates)
    return Installed(
        present.name,
        present.version,
        local,
        "" if present.version else present.spec,
        present.text,
        present.where,
        vendor=vendor or source,
        nightly=present.nightly,
        url=present.url,
    )


def _placed(scope: Scope, finding: Finding) -> Finding:
    """The finding at the line that asks for the component, and as an error where the file itself asks for what cannot run."""
    packages = scope.state.packages
    present = packages.get(finding.component) or _mentioned(finding, packages.values())
    where = present.where if present else scope.scene.base.where if scope.scene.base else f"{scope.scene.file}:1"
    severity = finding.severity
    asked = present is not None and bool(present.candidates) and not present.by and present.name == finding.component
    if severity == "warning" and asked and finding.rule in _HOST_RULES and scope.named:
        severity = "error"
    if severity == "error" and any(p.shaky for p in packages.values() if p.name in (finding.component, "torch")):
        severity = "warning"
    message = finding.message
    pypi = present is not None and all(c.index == PYPI for c in present.candidates)
    if asked and pypi and finding.rule in _INDEX_RULES and scope.scene.kind == "list" and not scope.scene.options:
        message += "; the file names no index, and PyPI's build is this one"
    return replace(finding, where=where, severity=severity, message=message)


# What a build lacks for the devices of this host, whoever complains.
_HOST_RULES = frozenset(
    {"gpu-arch-unsupported-by-package", "gfx-not-in-wheel", "gpu-arch-not-in-wheel", "driver-too-old-for-cuda-runtime"}
)

_INDEX_RULES = frozenset({"wrong-index", "cpu-only-build"})
FOR_THIS_HOST = _HOST_RULES | _INDEX_RULES | {"platform-no-wheel", "backend-unsupported-by-package"}


def _mentioned(finding: Finding, rows: Iterable[Present]) -> Present | None:
    """The package that a finding is about where its component is none: a driver, numpy's torch."""
    said = finding.message.split()
    named = [p for p in rows if p.name in said and not p.vendor]
    return named[0] if named else next((p for p in rows if p.name == "torch"), None)


# --- Python -----------------------------------------------------------------------------------------------------------


def _python(scope: Scope) -> Iterator[Finding]:
    """Packages without a file for the Python of the scene."""
    from accel_env.judge.evaluate import python_fixes
    from accel_env.judge.files.pool import runs_on
    from accel_env.judge.scene import Scene

    python = scope.state.python
    for present in scope.state.packages.values():
        yield from _named_file(scope, present, python)
        if not python or not present.candidates or any(runs_on(c, python) for c in present.candidates):
            continue
        first = present.candidates[0]
        need = next((n for n in first.needs if n.subject is Subject.PYTHON), None)
        text = need_text(need, first) if need else f"{first.label} has no wheel for it"
        scene = Scene(
            Environment(host=Host(os=scope.host.os, arch=scope.host.arch, python=python)), (), scope.matrix, scope.know.book
        )
        reasons = (scope.because("python", text, need.fact if need else first.fact),)
        fixes = (*python_fixes(scene, present.candidates), *_newer(scope, present, python))
        message = f"{text}; the Python here is {python}"
        severity = "warning" if present.shaky else "error"
        yield scope.finding("python-no-wheel", present.name, severity, message, present.where, reasons, fixes)


def _named_file(scope: Scope, present: Present, python: str) -> Iterator[Finding]:
    """A wheel named by its URL that is for another Python or another processor."""
    from accel_env.solve.versions import tag_fits

    tags = wheel(present.url) if present.url else None
    if tags is None:
        return
    name = present.url.rpartition("/")[2]
    fact = present.candidates[0].fact if present.candidates else scope.tables.note("wheel-tags")
    tag = f"{tags[2]}-{tags[3]}" if tags[3].startswith("abi3") else tags[2]
    fix = Fix("package", present.name, do="name the file for this Python and platform")
    if python and tags[2][:2] in ("cp", "py") and not any(tag_fits(part, python) for part in tag.split(".")):
        text = f"{name} is a wheel for {tags[2]}; the Python here is {python}"
        reasons = (scope.because("python", text, fact),)
        yield scope.finding("python-no-wheel", present.name, "error", text, present.where, reasons, (fix,))
    machines = {"x86_64": ("x86_64", "amd64"), "aarch64": ("aarch64", "arm64")}.get(scope.host.arch, (scope.host.arch,))
    if tags[4] != "any" and not any(part.endswith(machines) for part in tags[4].split(".")):
        text = f"{name} is a wheel for {tags[4]}; the processor here is {scope.host.arch}"
        reasons = (scope.because("cpu", text, fact),)
        yield scope.finding("platform-no-wheel", present.name, "error", text, present.where, reasons, (fix,))


def _newer(scope: Scope, present: Present, python: str) -> Iterator[Fix]:
    """The nearest release of the package with a file for this Python."""
    from accel_env.judge.files.pool import doubtful, runs_on
    from accel_env.solve.versions import parse

    rows = [c for c in scope.matrix.candidates(present.name, scope.host.platform) if runs_on(c, python) and not doubtful(c)]
    newer = [c for c in rows if present.version and parse(c.version) > parse(present.version) and c.index != "image"]
    one = min(newer, key=lambda c: parse(c.version), default=None)
    if one is not None:
        yield Fix(
            "package",
            present.name,
            f">={one.version}",
            do=f"{present.name} {one.version} is the first with a wheel for Python {python}",
        )


# --- clashes ----------------------------------------------------------------------------------------------------------


def _clash(scope: Scope, clash: Clash, install: Install) -> Finding:
    """Two requirements of one command that no releases meet together."""
    said = [f"{candidate.label} requires {clash.on}{spec}" for candidate, spec in clash.needs]
    a, b = clash.a, clash.b
    text = f"{a.text or a.name} and {b.text or b.name} cannot be in one environment"
    text += f": {', '.join(said)}" if said else f": no releases of them agree on {clash.on or 'torch'}"
    reasons = [scope.because("package", f"{c.label} requires {clash.on}{spec}", _fact(c, clash.on)) for c, spec in clash.needs]
    fixes = [Fix("package", w.name, do=f"put {w.name} into an environment (or image) of its own") for w in (b, a)]
    pair = clash.on in (a.name, b.name) and {a.name, b.name} & scope.know.book.pairs and "torch" in (a.name, b.name)
    rule = "package-pair-mismatch" if pair else "package-pin-conflict"
    component = next((w.name for w in (a, b) if w.name != "torch"), a.name)
    fixes = [*partner(scope, clash, component), *fixes] if clash.on in (a.name, b.name) else fixes
    severity = "warning" if install.maybe else "error"
    where = next(w.where for w in (a, b) if w.name == component)
    return scope.finding(rule, component, severity, text, where, reasons, fixes)


def _fact(candidate: Candidate, name: str) -> str:
    rows = [n.fact for n in candidate.needs if n.name == name or (name == "torch" and n.subject is Subject.TORCH)]
    return rows[0] if rows else candidate.fact


# --- where versions are free ------------------------------------------------------------------------------------------


def _some_free(scope: Scope) -> bool:
    return any(p.free and p.candidates for p in scope.state.packages.values())


def _loosened(scope: Scope, placed: list[Finding]) -> Iterator[Finding]:
    """Errors about what an installer picks by itself are warnings where the files allow something that works."""
    free = {p.name for p in scope.state.packages.values() if p.free}
    here = _solution(scope)
    beside = here or _solution(scope, anywhere=True)
    for finding in placed:
        solution = here if finding.rule in {*_HOST_RULES, *_INDEX_RULES} else beside
        names = (
            {finding.component} | {n for n in free if n in finding.message.split()} | ({"torch"} if "torch" in free else set())
        )
        if finding.severity != "error" or solution is None or not names & free:
            yield finding
            continue
        picks = {p.candidate.name: p.candidate for p in solution.picks}
        pins = [c for name, c in picks.items() if name in free]
        on = f" on Python {scope.state.assumed}" if scope.state.assumed else ""
        text = f"{finding.message}; the file leaves the version open, and this is what an installer takes today{on}"
        yield replace(finding, severity="warning", message=text, fixes=(*_pins(scope, pins), *finding.fixes))


def _pins(scope: Scope, pins: list[Candidate]) -> Iterator[Fix]:
    for one in pins:
        build = "" if one.build in ("", "any", "source") else one.build
        yield Fix("package", one.name, f"=={one.version}", build, do="pin what works here", verified=True)


def _solution(scope: Scope, *, anywhere: bool = False) -> Solution | None:
    """A combination that the files allow and that works on this host (`anywhere`: on some); None where nobody can tell."""
    from accel_env.solve.finish import answer
    from accel_env.solve.problem import state
    from accel_env.solve.prune import prune

    rows = list(scope.state.packages.values())
    if any(p.vendor or not p.candidates for p in rows if p.name == "torch"):
        return None
    mine = [p for p in rows if p.candidates and not p.by]
    loose = anywhere or not scope.devices or not scope.named
    stack = split_stack(scope.torch_stack())[0] if loose else ""
    view = _Restricted(scope.matrix, {p.name: _offered(scope, p) for p in rows if p.candidates})
    host = environment_of(scope).host
    host = replace(host, devices=()) if anywhere else host
    asks = [Ask(p.name, p.spec if exact(p.spec) and "+" not in p.spec else "", text=p.text, origin=p.where) for p in mine]
    policy = Policy(prefer="newest", target="venv", stack=stack, python=scope.state.python, source_builds=True)
    result = answer(prune(state(host, asks, policy, view), view))  # type: ignore[arg-type]
    return result if isinstance(result, Solution) else None


def _offered(scope: Scope, present: Present) -> frozenset[int]:
    """The builds that the files let an installer take, by identity."""
    install = present.install
    where = present.places or Places(("pypi",))
    wanted = Wanted(present.name, present.spec, url=present.url)
    if install is None or not present.free:
        return frozenset(id(c) for c in present.candidates)
    return frozenset(id(o.candidate) for o in pool(wanted, where, scope.matrix, scope.host.platform))


class _Restricted:
    """The matrix with only those builds of some packages that the files allow."""

    def __init__(self, matrix: Matrix, allowed: dict[str, frozenset[int]]) -> None:
        self._matrix, self._allowed = matrix, allowed
        self._kept: dict[tuple[str, str], tuple[Candidate, ...]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._matrix, name)

    def candidates(self, name: str, platform: str) -> tuple[Candidate, ...]:
        """The builds of a package on a platform that the files allow."""
        key = (name, platform)
        if key not in self._kept:
            every = self._matrix.candidates(name, platform)
            ids = self._allowed.get(name)
            self._kept[key] = every if ids is None else tuple(c for c in every if id(c) in ids)
        return self._kept[key]
