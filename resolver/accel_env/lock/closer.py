"""The port to whatever closes a set of picks over all dependencies, and the values that pass through it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Target:
    """Where the closure is to be installed. `python` is `X.Y`, `platform` `<os>_<cpu>`; an empty libc is unknown.

    `os_floor`: the oldest release of the operating system that files may ask for; empty for the closer's own idea.
    """

    python: str
    platform: str
    libc_family: str = ""
    libc: str = ""
    os_floor: str = ""


@dataclass(frozen=True, slots=True)
class StandIn:
    """A pick that the closer cannot fetch: a wheel that holds metadata and nothing else.

    `version` has the local label; `requires` are Requires-Dist lines, word for word; `filename` is the real file's
    name, so that its tags are judged like the real ones.
    """

    name: str
    version: str
    filename: str
    requires: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """What to close. `exclude_newer` is an RFC 3339 moment or a date; empty for no cut-off.

    `substitutes` are asked for by nobody: they are what a requirement on their name gets instead of the index's package.
    """

    requirements: tuple[str, ...]
    constraints: tuple[str, ...]
    stand_ins: tuple[StandIn, ...]
    target: Target
    exclude_newer: str = ""
    offline: bool = False
    substitutes: tuple[StandIn, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """One wheel of the answer. `sha256` is empty when the index gives none; `size` in bytes."""

    name: str
    version: str
    filename: str
    url: str
    sha256: str
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Closure:
    """Everything that is to be installed beside the stand-ins; `tools` says what answered (`uv` -> version).

    `substituted`: the normalised names of the substitutes that something in the closure asks for.
    """

    files: tuple[Found, ...]
    tools: Mapping[str, str] = field(default_factory=dict)
    substituted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Refusal:
    """The picks cannot be closed. `reason` is the closer's own text, or the broken rule.

    `picks` are (name, version, build) of the picks that it rests on; none: no other pick would help. `also` names packages of
    the matrix that the closure needs and nobody picked: ask the solver for them as well instead of ruling picks out. `torch`:
    an older release that everything outside the matrix would take; empty where none is known.
    """

    reason: str
    picks: tuple[tuple[str, str, str], ...] = ()
    also: tuple[str, ...] = ()
    torch: str = ""


class Closer(Protocol):
    """Closes a question over every dependency."""

    def close(self, question: Question) -> Closure | Refusal:
        """The whole closure, or why there is none. ClosureError (5) when the closer itself fails."""
        ...
