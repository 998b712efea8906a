"""Clues of installers that asked the wrong index: one of another build, or none for a build that has its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accel_env.judge.builds import UNLABELLED
from accel_env.judge.clue_driver import plain
from accel_env.judge.evaluate import failing
from accel_env.judge.fixes import free_fixes, unique
from accel_env.judge.types import Clue, Finding, Fix, Installed
from accel_env.model import Candidate
from accel_env.solve.versions import parse

if TYPE_CHECKING:
    from accel_env.judge.scene import Scene


def by_label(scene: Scene, clue: Clue, row: Installed) -> Finding | None:
    """An index of one build that lacks the release: the indexes of that kind which hold it."""
    label = clue.facts.get("offered_label", "")
    if not label or not row.version or row.name not in scene.matrix.package_names():
        return None
    kind = label.rstrip("0123456789.")
    every = [c for c in scene.matrix.candidates(row.name, scene.host.platform) if parse(c.version) == parse(row.version)]
    same = list(dict.fromkeys((c.build, c.index) for c in every if c.build.rstrip("0123456789.") == kind and c.index != "pypi"))
    if not same or label in {build for build, _ in same}:
        return None
    url = scene.matrix.index_url(same[0][1])
    builds = ", ".join(build for build, _ in same)
    message = f"the index is that of {label}, which holds no {row.name} {row.version}: that is built for {builds}"
    fact = next(c.fact for c in every if (c.build, c.index) == same[0])
    fixes = [
        Fix(
            "package",
            row.name,
            f"=={row.version}",
            build,
            command=f'pip install "{row.name}=={row.version}" --index-url {address}',
        )
        for build, index in same[:3]
        if (address := scene.matrix.index_url(index))
    ]
    base = plain(scene, clue)
    reasons = (*base.because, scene.because("build", message, fact))
    return Finding("wrong-index", row.name, "error", message, reasons, unique((*fixes, Fix("index", url, do="take that index"))))


def by_index(scene: Scene, clue: Clue, row: Installed) -> Finding | None:
    """A local label: its build lies on an index of its own, or on none."""
    asked = row.wanted and ("+" in clue.facts.get("wanted", "") or "+" in row.text)
    if not row.local or not asked or row.name not in scene.matrix.package_names():
        return None
    base = plain(scene, clue)
    every = scene.matrix.candidates(row.name, scene.host.platform)
    labelled = [c for c in every if c.build == row.local.lower()]
    mine = [c for c in labelled if not row.version or parse(c.version) == parse(row.version)]
    if mine:
        if failing(scene, mine, wanted=True):
            return None
        return _published(scene, clue, row, mine)
    known = {c.build for c in every if c.build not in UNLABELLED}
    if any(row.local.lower().startswith(label) for label in known):
        return None
    message = f"no index of the matrix holds {row.name} {row.version}+{row.local}: a build of a development line"
    owner = [r for r in scene.rows() if r.name in scene.book.pins and r.name != row.name]
    fixes = [Fix("package", r.name, do=f"take a release of {r.name} instead of a development build") for r in owner]
    fixes += free_fixes(scene, row.name, limit=1)
    fact = every[0].fact if every else clue.fact
    reasons = (*base.because, scene.because("build", message, fact))
    return Finding("pinned-version-unavailable", row.name, "error", message, reasons, unique((*fixes, *clue.fixes)))


def _published(scene: Scene, clue: Clue, row: Installed, mine: list[Candidate]) -> Finding | None:
    """A build that lies on an index of its own."""
    index = next((c.index for c in mine if c.index not in ("pypi", "image")), "")
    if not index:
        return None
    url = scene.matrix.index_url(index)
    label = f"{row.name} {row.version}+{row.local}"
    command = f'pip install "{row.name}=={row.version}+{row.local}" --index-url {url}'
    fix = Fix("index", url, do=f"take {label} from its own index", command=command)
    message = f"{label} is published, on {url}"
    reason = scene.because("build", f"{label} is published on {url or 'an index'}", mine[0].fact)
    reasons = (*plain(scene, clue).because, reason)
    return Finding("wrong-index", row.name, "error", message, reasons, unique((fix, *clue.fixes)))
