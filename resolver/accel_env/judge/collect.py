"""Pasted dumps -> Environment: recognises the parts of one text and weighs what they say against each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accel_env.judge.types import Environment

if TYPE_CHECKING:
    from accel_env.matrix.load import Matrix


def collect(text: str, matrix: Matrix, origin: str = "collect_env") -> Environment:
    """What the dumps in `text` say (any of them, in any order, pasted together); an empty Environment for anything else.

    Never raises. `origin` names the text in `Installed.origin` and in the provenance of the host.
    """
    return Environment()
