"""Which published builds an installed package can be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accel_env.judge.types import Installed
from accel_env.model import Candidate
from accel_env.solve.versions import allows, parse

if TYPE_CHECKING:
    from accel_env.matrix.load import Matrix

UNLABELLED = ("", "any")


@dataclass(frozen=True, slots=True)
class Possible:
    """`candidates`: all builds that the package can be, on its platform. `default`: those that an index serves to whoever names
    no other; the package is one of them where `labelled` or nothing else is said.

    `exact` is False where the version itself is a guess (a nightly, a series): then the nearest releases stand for it.
    """

    installed: Installed
    candidates: tuple[Candidate, ...]
    default: tuple[Candidate, ...]
    labelled: bool
    exact: bool

    @property
    def likely(self) -> tuple[Candidate, ...]:
        """The builds to reason from."""
        return self.default or self.candidates

    @property
    def certain(self) -> bool:
        """True where the builds are known to be complete: the version exact and the label said, or no other label there."""
        return self.exact and (self.labelled or len({c.build for c in self.candidates}) == 1)


def possible(installed: Installed, matrix: Matrix, platform: str) -> Possible | None:
    """The builds behind what is installed; None where the matrix does not model it or it is a vendor's own build."""
    if installed.name not in matrix.package_names() or installed.vendor:
        return None
    every = matrix.candidates(installed.name, platform)
    chosen, exact = _by_version(installed, every)
    labelled = [c for c in chosen if _label_fits(installed.local, c)] if installed.local else chosen
    if installed.local and not labelled:
        return Possible(installed, (), (), True, False)
    default = tuple(c for c in labelled if c.index == "pypi") if not installed.local else ()
    return Possible(installed, tuple(labelled), default, bool(installed.local), exact)


def _by_version(installed: Installed, every: Iterable[Candidate]) -> tuple[list[Candidate], bool]:
    every = list(every)
    if installed.version and not installed.nightly:
        version = installed.version
        found = [c for c in every if parse(c.version) == parse(version)]
        if found:
            return found, True
        # `2.10` means a release of that series; a whole version that the matrix does not hold is unknown
        numbers = parse(version).release
        series = f"=={'.'.join(map(str, numbers[:2]))}.*"
        return [c for c in every if allows(series, c.version)] if len(numbers) < 3 else [], True
    if installed.version:
        return _nearest(installed, every), False
    if installed.spec:
        return [c for c in every if allows(installed.spec, c.version)], True
    return (every if installed.local else []), not installed.nightly


def _nearest(installed: Installed, every: list[Candidate]) -> list[Candidate]:
    """What stands for a nightly: the builds of its label in the release nearest to it, that release's others if it has none."""
    base = parse(installed.version)
    fitting = [c for c in every if _label_fits(installed.local, c)] if installed.local else every
    older = {c.version for c in fitting if parse(c.version) <= parse(base.base_version)}
    newest = max(older, key=parse, default="")
    return [c for c in fitting if c.version == newest]


def _label_fits(label: str, candidate: Candidate) -> bool:
    """True when a build can carry the label: its own, its beginning (`cu13`), or none at all on its file name."""
    build = candidate.build.lower()
    label = label.lower().replace("-", ".").replace("_", ".")
    if build in UNLABELLED:
        return not label.startswith(("cu", "rocm")) or _stack_label(candidate).startswith(label) or not candidate.stack
    if build.replace("-", ".").replace("_", ".") == label:
        return True
    return label[2:].isdigit() and len(label) < 5 and build.startswith(label) and build[len(label) :].isdigit()


def _stack_label(candidate: Candidate) -> str:
    """`cu126` for a build of the stack `cuda-12.6`."""
    name, _, version = candidate.stack.partition("-")
    return {"cuda": "cu" + version.replace(".", "")}.get(name, name + version)


def cuda_of(label: str) -> str:
    """The CUDA version in a label: `cu126` -> `12.6`, `cu92` -> `9.2`, `cu13` -> `13`; empty for others."""
    digits = label[2:]
    if not label.startswith("cu") or not digits.isdigit():
        return ""
    if len(digits) == 3:
        return f"{digits[:2]}.{digits[2]}"
    return f"{digits[0]}.{digits[1]}" if digits[0] != "1" else digits


def hip_of(label: str) -> str:
    """The ROCm version in a label: `rocm6.3` -> `6.3`."""
    return label[4:] if label.startswith("rocm") and label[4:5].isdigit() else ""
