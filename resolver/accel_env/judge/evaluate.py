"""Every need of every installed build against the host: what fails, as findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from accel_env.judge.builds import Possible
from accel_env.judge.fixes import driver_fix, fitting_fixes, free_fixes, torch_fixes, unique
from accel_env.judge.old import old_findings
from accel_env.judge.pairs import broken_needs
from accel_env.judge.types import Finding, Fix, Installed
from accel_env.model import Because, Candidate, Subject
from accel_env.solve.explain import need_text
from accel_env.solve.versions import split_stack

if TYPE_CHECKING:
    from accel_env.judge.scene import Failed, Scene

# In this order a failing need decides what the finding is about.
ORDER = (
    Subject.OS,
    Subject.CPU,
    Subject.PYTHON,
    Subject.LIBC,
    Subject.LIBSTDCXX,
    Subject.STACK,
    Subject.DRIVER,
    Subject.ARCH,
    Subject.KERNEL,
)


def host_findings(scene: Scene) -> Iterator[Finding]:
    """Findings about single packages on this host."""
    yield from old_findings(scene)
    for row in scene.rows():
        yield from absent_findings(scene, row)
        found = scene.possible(row.name)
        if found is None or not found.candidates:
            continue
        if row.name == "torch":
            yield from _torch(scene, found)
        else:
            yield from _package(scene, found)


def failing(scene: Scene, candidates: Sequence[Candidate], *, wanted: bool = False) -> list[Failed] | None:
    """The first failed need of each build, or None where one of them works here."""
    rows = []
    for candidate in candidates:
        failed = sorted(scene.failures(candidate, wanted=wanted), key=_rank)
        if not failed:
            return None
        rows.append(failed[0])
    return rows


def _rank(failed: Failed) -> int:
    return ORDER.index(failed.need.subject) if failed.need.subject in ORDER else len(ORDER)


def severity(scene: Scene, found: Possible, *, by_all: bool) -> str:
    """An error where no build that it can be works; where only the usual one fails, an error if somebody complains."""
    return "error" if (by_all and found.exact) or scene.complaint else "warning"


def _torch(scene: Scene, found: Possible) -> Iterator[Finding]:
    if scene.on_board:
        return  # said as such, whatever the build
    accelerated = scene.vendor if scene.stack_name in _served(scene) else ""
    mine = [c for c in found.likely if not accelerated or split_stack(c.stack)[0] == scene.stack_name]
    if accelerated and not mine:
        yield from _foreign(scene, found)
        return
    rows = failing(scene, mine or found.likely, wanted=scene.wanted(found.installed))
    if not rows:
        return
    rest = [
        c
        for c in found.candidates
        if c not in (mine or found.likely) and split_stack(c.stack)[0] == split_stack(rows[0].candidate.stack)[0]
    ]
    by_all = found.labelled or not rest or failing(scene, rest) is not None
    window = rows[0].need.subject is Subject.DRIVER and bool(rows[0].need.values)
    # outside a documented window of drivers much still works
    level = "warning" if window and not scene.complaint else severity(scene, found, by_all=by_all)
    yield finding(scene, rows, level)


def _served(scene: Scene) -> set[str]:
    """The stacks with builds of torch on indexes."""
    return {split_stack(c.stack)[0] for c in scene.matrix.candidates("torch", scene.host.platform) if c.index != "image"} - {
        "cpu",
        "",
    }


def _foreign(scene: Scene, found: Possible) -> Iterator[Finding]:
    """A torch for another stack than that of the devices: a CPU build, or another vendor's."""
    names = {split_stack(c.stack)[0] for c in found.likely}
    if any(row.name in scene.book.plugins for row in scene.environment.installed):
        return
    candidate = found.likely[0]
    certain = found.labelled or {split_stack(c.stack)[0] for c in found.candidates} == names
    here = scene.named() if scene.devices else "the accelerator here"
    if names == {"cpu"}:
        rule = "platform-no-wheel" if _lacks_wheel(scene, candidate) else "cpu-only-build"
        text = scene.spoken(f"{candidate.label} is a CPU build: it cannot use {here}", candidate)
    elif not names & {scene.stack_name}:
        rule, text = "wrong-index", f"{candidate.label} is built for {' or '.join(sorted(names))}: it cannot use {here}"
    else:
        return
    fixes = torch_fixes(scene)
    reasons = (scene.because("build", f"{candidate.label} is for the stack {candidate.stack}", candidate.fact),)
    yield Finding(rule, "torch", "error" if certain or scene.complaint else "warning", text, reasons, unique(fixes))


def _lacks_wheel(scene: Scene, candidate: Candidate) -> bool:
    """True where the default index serves accelerator builds for this platform, but not of this release."""
    every = scene.matrix.candidates("torch", scene.host.platform)
    served = {c.version for c in every if c.index == "pypi" and split_stack(c.stack)[0] == scene.stack_name}
    return bool(served) and candidate.version not in served


def _package(scene: Scene, found: Possible) -> Iterator[Finding]:
    torch = scene.possible("torch")
    stacks = {split_stack(t.stack)[0] for t in torch.likely} if torch and torch.candidates else {scene.stack_name} - {""}
    mine = [c for c in found.likely if not c.stack or not stacks or split_stack(c.stack)[0] in stacks]
    if not mine and stacks == {"cpu"} and scene.stack_name:
        yield from _beside_cpu(scene, found)
    # of several libraries in one wheel the one that fits torch is loaded
    mine = [c for c in mine if not any(True for _ in broken_needs(scene, c))] or mine
    rows = failing(scene, mine, wanted=scene.wanted(found.installed)) if mine else None
    if rows and not any(row.need.soft for row in rows):
        # that a package cannot run here matters when it is used: without a complaint it is a warning
        hard = rows[0].need.subject in (Subject.LIBC, Subject.LIBSTDCXX, Subject.PYTHON)
        spoken = scene.mentions(found.installed.name) or (hard and scene.complaint)
        yield finding(scene, rows, "error" if spoken or (hard and found.certain) else "warning")


def _beside_cpu(scene: Scene, found: Possible) -> Iterator[Finding]:
    """What a package beside a CPU build of torch will lack when torch is put right: code for the devices."""
    mine = [c for c in found.likely if split_stack(c.stack)[0] == scene.stack_name]
    rows = failing(scene, mine) if mine else None
    if rows and all(row.need.subject is Subject.ARCH and not row.need.soft for row in rows):
        yield finding(scene, rows, "error" if scene.mentions(found.installed.name) else "warning")


def absent_findings(scene: Scene, row: Installed) -> Iterator[Finding]:
    """A package that does not exist for this device or stack, where somebody complains about it."""
    if row.name not in scene.matrix.package_names() or row.vendor or not scene.mentions(row.name):
        return
    for absent in scene.matrix.package(row.name).absent:
        if absent.stack != scene.stack_name or (absent.archs and scene.arch not in absent.archs) or not scene.devices:
            continue
        rule = "gpu-arch-unsupported-by-package" if absent.archs else "backend-unsupported-by-package"
        text = f"{row.name} does not serve {scene.named()}: {absent.text}"
        fixes = (
            *scene.book.recipe(f"{row.name}-{scene.stack_name}"),
            Fix("action", do=absent.text),
            *arch_fixes(scene, row.name),
        )
        yield Finding(rule, row.name, "error", text, (scene.because("instead", absent.text, absent.fact),), unique(fixes))
        return


def finding(scene: Scene, rows: Sequence[Failed], level: str) -> Finding:
    """The finding of builds that all fail: named after the need that fails in the likeliest one."""
    first = rows[0]
    subject, name = first.need.subject, first.candidate.name
    rule, component = _named(scene, first)
    message = scene.spoken(f"{need_text(first.need, first.candidate)}; {first.met}", first.candidate)
    return Finding(rule, component, level, message, tuple(_reasons(scene, rows)), unique(_fixes(scene, name, subject, rows)))


def _named(scene: Scene, failed: Failed) -> tuple[str, str]:
    subject, name = failed.need.subject, failed.candidate.name
    if subject is Subject.ARCH:
        if name != "torch":
            return "gpu-arch-unsupported-by-package", name
        if scene.vendor == "amd":
            return ("gfx-not-in-library" if failed.need.lacks and not failed.need.values else "gfx-not-in-wheel"), name
        return "gpu-arch-not-in-wheel", name
    if subject is Subject.DRIVER:
        return scene.book.driver_rule(scene.stack_name or split_stack(failed.candidate.stack)[0])
    if subject is Subject.STACK:
        return "gpu-arch-not-in-wheel", name
    if subject is Subject.LIBC and scene.host.libc_family == "musl":
        return "platform-no-wheel", name
    rules = {Subject.LIBC: "glibc-too-old", Subject.LIBSTDCXX: "libstdcxx-too-old", Subject.PYTHON: "python-no-wheel"}
    return rules.get(subject, "platform-no-wheel"), name


def _reasons(scene: Scene, rows: Sequence[Failed]) -> Iterator[Because]:
    seen: dict[str, None] = {}
    for row in rows:
        if row.need.fact not in seen and len(seen) < 3:
            seen[row.need.fact] = None
            text = scene.spoken(f"{need_text(row.need, row.candidate)}; {row.met}", row.candidate)
            yield scene.because(row.need.subject.value, text, row.need.fact)


def _fixes(scene: Scene, name: str, subject: Subject, rows: Sequence[Failed]) -> Iterator[Fix]:
    same = torch_fixes(scene) if name == "torch" else fitting_fixes(scene, name)
    yield from same
    if subject is Subject.PYTHON and name != "torch":
        yield from free_fixes(scene, name)
    if subject is Subject.DRIVER:
        yield from driver_fix(scene, rows)
    elif subject is Subject.ARCH:
        yield from arch_fixes(scene, name, same)
    elif subject is Subject.LIBC:
        yield Fix("image", do=f"a base with glibc {rows[0].need.allows}")
        yield Fix("build", name, do="build it from source on this machine")
    elif subject is Subject.LIBSTDCXX:
        yield Fix("package", "libstdc++", do=f"a libstdc++ with GLIBCXX {rows[0].need.allows} (conda: libstdcxx-ng)")
        yield Fix("env", set={"LD_LIBRARY_PATH": "the lib directory of an environment with a newer libstdc++ first"})
    elif subject is Subject.PYTHON:
        yield from python_fixes(scene, [row.candidate for row in rows])


def arch_fixes(scene: Scene, name: str, found: Iterable[Fix] = ()) -> Iterator[Fix]:
    """What helps against missing code beside another build: an override, an own build, another device."""
    arch = scene.arch
    override = scene.book.override_of(arch)
    if override is not None and not scene.override_target():
        yield Fix("env", set={"HSA_OVERRIDE_GFX_VERSION": override.value}, do=f"run {override.target} code; not supported by AMD")
    setting = scene.book.build_setting(scene.vendor)
    if arch and setting and name == "torch":
        value = f"{arch[3:-1]}.{arch[-1]}" if arch.startswith("sm_") else arch
        yield Fix("build", name, set={setting: value}, do="build it from source for this device")
    yield from scene.book.recipe(f"{name}-arch")
    yield Fix("hardware", do=f"a device that {name} has code for")


def python_fixes(scene: Scene, candidates: Iterable[Candidate]) -> Iterator[Fix]:
    """The nearest Python that one of the builds has a wheel for."""
    from accel_env.solve.versions import tag_fits

    have = tuple(int(n) for n in scene.host.python.rstrip("t").split(".")) if scene.host.python else ()
    tags = {tag for c in candidates for tag in c.tags}
    known = [
        p.version for p in scene.matrix.pythons() if not p.version.endswith("t") and any(tag_fits(tag, p.version) for tag in tags)
    ]
    lower = [p for p in known if tuple(map(int, p.split("."))) < have]
    newest = max(lower or known, key=lambda p: tuple(map(int, p.split("."))), default="")
    if newest and lower:
        major, minor = newest.split(".")
        yield Fix("python", "python", spec=f"<{major}.{int(minor) + 1}", do=f"Python {newest}")
    elif newest:
        oldest = min(known, key=lambda p: tuple(map(int, p.split("."))))
        yield Fix("python", "python", spec=f">={oldest}", do=f"Python {oldest}" + (f" to {newest}" if newest != oldest else ""))
