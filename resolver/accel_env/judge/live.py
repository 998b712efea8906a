"""Builds that would work here, and ranges of them in words: the raw material of fixes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accel_env.judge.types import Fix
from accel_env.model import Candidate, Need, Subject
from accel_env.solve.slot import satisfies
from accel_env.solve.verdict import SOURCE_RANK
from accel_env.solve.versions import allows, parse, split_stack

if TYPE_CHECKING:
    from accel_env.judge.scene import Scene

_LINUX = "linux_x86_64"
_LATELY = 2  # minors
Keep = Callable[[Candidate], bool]


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring releases of one label that work: versions rising, `open_end` where the last is the newest release there is."""

    label: str
    index: str
    stack: str
    versions: tuple[str, ...]
    open_end: bool

    @property
    def spec(self) -> str:
        """The range as a specifier."""
        if len(self.versions) == 1 and not self.open_end:
            return f"=={self.versions[0]}"
        return f">={self.versions[0]}" + ("" if self.open_end else f",<={self.versions[-1]}")

    def holds(self, version: str) -> bool:
        """True where the version is one of the run."""
        return any(parse(v) == parse(version) for v in self.versions)


def live(scene: Scene, name: str, keep: Keep | None = None) -> list[Candidate]:
    """The published builds of a package that this host runs, first choices only; `keep` narrows them."""
    rows: list[Candidate] = []
    if scene.bare:
        return rows
    stacks = scene.stacks() or {"cuda", "cpu"} if name != "torch" else set()
    for candidate in scene.matrix.candidates(name, scene.host.platform):
        if candidate.rank >= SOURCE_RANK or (keep is not None and not keep(candidate)) or _doubtful(candidate):
            continue
        if candidate.stack and stacks and split_stack(candidate.stack)[0] not in stacks:
            continue
        if scene.arch and _unlisted(scene, candidate):
            continue
        if not scene.failures(candidate, wanted=True):
            rows.append(candidate)
    return rows


def _doubtful(candidate: Candidate) -> bool:
    """True for a build whose very existence nobody has published."""
    return any(need.unknown and need.subject is Subject.PACKAGE and need.name == candidate.name for need in candidate.needs)


def _unlisted(scene: Scene, candidate: Candidate) -> bool:
    """True where nobody has published the architectures of a build, and those of the same build for Linux do not speak for it."""
    if not unknown_arch(candidate):
        return False
    same = [
        c for c in scene.matrix.candidates(candidate.name, _LINUX) if (c.version, c.build) == (candidate.version, candidate.build)
    ]
    listed = [c for c in same if not unknown_arch(c)]
    return not any(not scene.lacks_code(c) for c in listed)


def unknown_arch(candidate: Candidate) -> bool:
    """True where nobody has published what devices a build has code for."""
    return any(need.unknown and need.subject is Subject.ARCH for need in candidate.needs)


def runs(scene: Scene, name: str, chosen: Iterable[Candidate]) -> list[Run]:
    """The chosen builds as runs of neighbouring releases, by label."""
    fit: dict[str, dict[str, Candidate]] = {}
    for candidate in chosen:
        fit.setdefault(_label(candidate), {}).setdefault(candidate.version, candidate)
    found: list[Run] = []
    newest = max(
        (c.version for c in scene.matrix.candidates(name, scene.host.platform) if c.rank < SOURCE_RANK), key=parse, default=""
    )
    for label, by_version in fit.items():
        every = sorted(
            {
                c.version
                for c in scene.matrix.candidates(name, scene.host.platform)
                if _label(c) == label and c.rank < SOURCE_RANK
            },
            key=parse,
        )
        found += _split(label, every, by_version, newest)
    return found


def _label(candidate: Candidate) -> str:
    return "" if candidate.build in ("", "any") else candidate.build


def _split(label: str, every: Sequence[str], fit: dict[str, Candidate], newest: str) -> list[Run]:
    found, current = [], list[str]()
    for place, version in enumerate(every):
        if version in fit:
            current.append(version)
        last = place == len(every) - 1
        if current and (last or version not in fit):
            sample = fit[current[-1]]
            found.append(Run(label, sample.index, sample.stack, tuple(current), current[-1] == newest))
            current = []
    return found


def choose(found: Sequence[Run], version: str, label: str, limit: int = 5) -> list[Run]:
    """The runs to offer, the smallest change first: that very version, that label, the next ones up and down, the newest."""
    here = [run for run in found if version and run.holds(version)]
    here.sort(key=lambda run: _distance(run.label, label))
    same = [run for run in found if label and run.label == label]
    above = [run for run in found if version and parse(run.versions[0]) > parse(version)]
    above.sort(key=lambda run: (parse(run.versions[0]), _order(run.stack)))
    below = [run for run in found if version and parse(run.versions[-1]) < parse(version)]
    below.sort(key=lambda run: (parse(run.versions[-1]), _distance(run.label, label)), reverse=True)
    newest = sorted(found, key=lambda run: (parse(run.versions[-1]), -_distance(run.label, label)), reverse=True)
    near = sorted(found, key=lambda run: (_distance(run.label, label), -parse(run.versions[-1]).release[0]))
    oldest = sorted(found, key=lambda run: (parse(run.versions[0]), _order(run.stack)))
    recent = max((parse(run.versions[-1]).release[:2] for run in found), default=(0, 0))
    widest = sorted(found, key=lambda run: -len(run.versions))[:2] if not version else []
    widest.sort(key=lambda run: _ended(run, recent))  # what goes on before what ended long ago
    order = [
        *here[:2],
        *same[:2],
        *above[:1],
        *widest,
        *newest[:1],
        *(near[:2] if label else []),
        *(oldest[:1] if not version else []),
        *below[:1],
        *newest,
    ]
    picked: list[Run] = []
    for run in order:
        if run not in picked and sum(other.label == run.label for other in picked) < 2:
            picked.append(run)
    return picked[:limit]


def _ended(run: Run, recent: tuple[int, ...]) -> bool:
    """True for a run whose last release is more than a few minors behind the newest."""
    major, minor = (*parse(run.versions[-1]).release, 0)[:2]
    return major != recent[0] or minor < recent[-1] - _LATELY


def _order(stack: str) -> tuple[str, tuple[int, ...]]:
    name, version = split_stack(stack)
    return name, parse(version or "0").release


def _distance(label: str, other: str) -> int:
    """How far two labels are apart: 0 the same, small within a stack, large between stacks."""
    if label == other:
        return 0
    ours, theirs = _numbers(label), _numbers(other)
    if ours[0] != theirs[0] or not ours[0]:
        return 10_000
    # a step down is smaller than a step up: it asks for no newer driver
    step = theirs[1] - ours[1]
    return step if step > 0 else 5_000 - step


def _numbers(label: str) -> tuple[str, int]:
    head = label.rstrip("0123456789.")
    digits = "".join(c for c in label[len(head) :] if c.isdigit())
    return head, int(digits or 0)


def package_fix(scene: Scene, name: str, run: Run, version: str = "") -> Fix:
    """A run as a fix with a command; the version that is there stays where the run holds it."""
    spec = f"=={version}" if version and run.holds(version) and not _series(version) else run.spec
    return Fix("package", name, spec, run.label, command=install_line(scene, name, spec, run))


def _series(version: str) -> bool:
    return len(parse(version).release) < 3


def install_line(scene: Scene, name: str, spec: str, run: Run) -> str:
    """What a person can paste: `pip install "torch==2.7.1" --index-url ...`."""
    if run.index in ("image", "") or run.index.startswith(f"{name}"):
        return ""
    target = name if not spec else f'"{name}{spec}"'
    again = _again(scene, name, spec)
    if run.index == "pypi":
        return f"pip install {target}{again}"
    kind = scene.matrix.indexes()[run.index.partition(":")[0]].kind
    url = scene.matrix.index_url(run.index)
    option = {"simple": "--index-url", "flat": "--find-links"}.get(kind, "")
    return f"pip install {target}{again} {option} {url}" if option else ""


def _again(scene: Scene, name: str, spec: str) -> str:
    """What makes pip replace another build of a release that it takes for installed already."""
    row = scene.row(name)
    held = row is not None and not row.wanted and bool(row.version) and allows(spec, row.version)
    return " --force-reinstall" if held else ""


def meets(candidate: Candidate, needs: Iterable[Need]) -> bool:
    """True when a build satisfies every need."""
    return all(satisfies(candidate, need) for need in needs)
