"""Packages of which a machine decides nothing: what their releases require, a closer weighs as well as the search does.

The matrix knows some of their releases and what no metadata says of them. Where an ask names another release, or the closure
will not have the one that was picked, the closer chooses, as it does for everything that the matrix does not model.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from accel_env.model import Ask, Candidate, Subject
from accel_env.solve.verdict import SOURCE_RANK
from accel_env.solve.versions import allows

if TYPE_CHECKING:
    from accel_env.matrix.load import Matrix

PYPI = "pypi"


def is_free(matrix: Matrix, name: str, platform: str, stack: str) -> bool:
    """True when no build of a distribution is for a device, for torch, for another stack or for one release of this one."""
    builds = matrix.candidates(name, platform)
    return bool(builds) and all(_anywhere(build, stack) for build in builds)


def _anywhere(build: Candidate, stack: str) -> bool:
    bound = any(need.subject in (Subject.ARCH, Subject.TORCH) for need in build.needs)
    return build.index == PYPI and build.stack in ("", stack) and build.rank < SOURCE_RANK and not bound


def unknown(asks: Iterable[Ask], matrix: Matrix, platform: str, stack: str) -> frozenset[str]:
    """The free distributions of which the asks name releases alone that the matrix does not hold."""
    names = {ask.name for ask in asks if ask.specifier and ask.name in matrix.package_names()}
    return frozenset(
        name
        for name in names
        if not any(
            all(allows(ask.specifier, build.version) for ask in asks if ask.name == name)
            for build in matrix.candidates(name, platform)
        )
        and is_free(matrix, name, platform, stack)
    )
