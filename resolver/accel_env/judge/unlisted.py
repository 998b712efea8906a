"""Releases of modelled packages that the matrix does not hold: their needs are not known, and nothing was checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from accel_env.solve.versions import allows, parse

if TYPE_CHECKING:
    from accel_env.judge.files.values import Document
    from accel_env.judge.types import Environment
    from accel_env.matrix.load import Matrix


def of_environment(environment: Environment, matrix: Matrix) -> Iterator[str]:
    """A sentence for each package that is there in a release which nobody listed."""
    rows = [(r.name, r.version, "") for r in environment.installed if r.version and not r.vendor and not r.nightly]
    yield from _said(rows, matrix)


def of_documents(documents: Iterable[Document], matrix: Matrix) -> Iterator[str]:
    """A sentence for each requirement of one release which nobody listed."""
    from accel_env.judge.files.pick import exact
    from accel_env.judge.files.values import UNKNOWN, Install

    steps = [step for one in documents for scene in one.scenes for step in scene.steps if isinstance(step, Install)]
    wanted = [w for step in steps if step.tool != "conda" for w in step.wanted]
    rows = [
        (w.name, w.spec.lstrip("= "), w.where)
        for w in wanted
        if exact(w.spec) and not w.vague and not w.url and UNKNOWN not in w.spec
    ]
    yield from _said(rows, matrix)


def _said(rows: Iterable[tuple[str, str, str]], matrix: Matrix) -> Iterator[str]:
    from accel_env.judge.book import open_book

    book = open_book(matrix)
    for name, said, where in dict.fromkeys(rows):
        version = said.partition("+")[0].strip()
        if name not in matrix.package_names() or _listed(name, version, matrix):
            continue
        if name == "torch" and book.old_torch(version) is not None:
            continue  # the tables of old releases hold it
        place = f"{where}: " if where else ""
        yield f"{place}{name} {said} is a release that accel-env does not know: what it needs was not checked"


def _listed(name: str, version: str, matrix: Matrix) -> bool:
    """True where some platform has the release, or a release of the series that two numbers name."""
    numbers = parse(version)
    series = f"=={'.'.join(map(str, numbers.release[:2]))}.*" if len(numbers.release) < 3 else ""
    known = [c.version for platform in matrix.platforms(name) for c in matrix.candidates(name, platform)]
    return not known or any(parse(one) == numbers or (series and allows(series, one)) for one in known)
