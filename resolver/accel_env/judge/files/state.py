"""What is in an environment at the end of its steps, and what happened on the way."""

from __future__ import annotations

from dataclasses import dataclass, field

from accel_env.judge.files.pick import Clash, Present
from accel_env.judge.files.pool import Places
from accel_env.judge.files.values import Install, Wanted


@dataclass(frozen=True, slots=True)
class Replaced:
    """A package that a step puts another in place of. `by`: the requirement that asks for it; `held`: constraints forbid it."""

    before: Present
    after: Present
    by: str
    where: str
    held: bool = False


@dataclass(frozen=True, slots=True)
class Risk:
    """Requirements on torch of packages that are installed over a vendor's torch without anything that holds it."""

    names: tuple[str, ...]
    where: str


@dataclass(frozen=True, slots=True)
class Missing:
    """A requirement that nothing meets at the places where the installer looks; `elsewhere`: builds of it at others."""

    wanted: Wanted
    install: Install
    places: Places
    elsewhere: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Compiled:
    """A package that is built from source: by which command, beside which torch, and everything that the image had by then."""

    package: Present
    install: Install
    torch: Present | None
    words: tuple[str, ...]


@dataclass(slots=True)
class State:
    """An environment while it grows. `words`: everything else that the image gets, before and by the current step.

    `assumed`: the Python for which open versions were taken where nothing names one: the newest that the pins have files for.
    """

    packages: dict[str, Present] = field(default_factory=dict)
    others: dict[str, Wanted] = field(default_factory=dict)
    python: str = ""
    assumed: str = ""
    words: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    replaced: list[Replaced] = field(default_factory=list)
    risks: list[Risk] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    clashes: list[tuple[Clash, Install]] = field(default_factory=list)
    compiled: list[Compiled] = field(default_factory=list)
