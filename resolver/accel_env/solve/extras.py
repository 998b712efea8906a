"""Extras that make a build (`jax[cuda12]`): which builds an ask's extras mean, and what is said of those that mean none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from accel_env.model import Ask, Because, Candidate, Warned
from accel_env.solve.problem import normalise

if TYPE_CHECKING:
    from accel_env.matrix.load import Matrix


def makers(matrix: Matrix, *names: str) -> set[str]:
    """The extras and labels that choose a build of these packages; empty where no extra does."""
    found: set[str] = set()
    for name in set(names):
        rows = _rows(matrix, name)
        made = any(c.extras for c in rows)
        found.update(word for c in rows for word in (*c.extras, c.build) if made)
    return found


def extras_fit(ask: Ask, candidate: Candidate, matrix: Matrix) -> bool:
    """Whether a build is one that the extras of an ask name; extras that name none say nothing."""
    return _meant(ask, makers(matrix, ask.name, candidate.name)) <= {*candidate.extras, candidate.build}


def idle_extras(asks: Iterable[Ask], matrix: Matrix) -> Iterator[Warned]:
    """That an extra chooses no build, where others of the package do: it may be misspelt, or of another purpose."""
    import difflib

    for ask in asks:
        known = makers(matrix, ask.name) if ask.extras else set()
        for extra in ask.extras if known else ():
            if normalise(extra) in known:
                continue
            there = sorted({word for c in _rows(matrix, ask.name) for word in c.extras})
            near = difflib.get_close_matches(normalise(extra), there, 1, 0.75)
            like = f" (did you mean {ask.name}[{near[0]}]?)" if near else ""
            yield Warned("extra-without-build", f"{ask.name}[{extra}]: no known build comes with the extra {extra}{like}, so "
                         f"that it decides nothing here; those that choose a build are {', '.join(there)}")


def exclusive(asks: Iterable[Ask], matrix: Matrix) -> Iterator[Because]:
    """That the extras of one package choose builds of which one alone can be installed."""
    wanted: dict[str, set[str]] = {}
    for ask in asks:
        if ask.extras:
            wanted.setdefault(ask.name, set()).update(_meant(ask, makers(matrix, ask.name)))
    for name, words in wanted.items():
        if len(words) > 1 and not any(words <= {*c.extras, c.build} for c in _rows(matrix, name)):
            listed = " and ".join(f"{name}[{word}]" for word in sorted(words))
            yield Because("package", f"{listed} exclude each other: each chooses a build, and one can be installed", "", "", "")


def _meant(ask: Ask, known: set[str]) -> set[str]:
    return {normalise(extra) for extra in ask.extras} & known


def _rows(matrix: Matrix, name: str) -> list[Candidate]:
    return [c for platform in matrix.platforms(name) for c in matrix.candidates(name, platform)]
