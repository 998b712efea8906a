"""What is known before anything is closed over: that a lock of the picks will be refused, and what can be done instead."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from accel_env.lock.artifacts import IMAGE, normalise
from accel_env.lock.question import name_in, requirement
from accel_env.lock.standin import extras_in

if TYPE_CHECKING:
    from accel_env.lock.rules import Rules, SourceOnly, Stays
    from accel_env.model import Candidate, Pick, Solution

RULE = "lock-refused"  # the slug of the warning that a plan as shown has for it


@dataclass(frozen=True, slots=True)
class Foreseen:
    """Why a lock will be refused, and what can be done instead. `fact` may be empty."""

    why: str
    instead: str
    fact: str = ""


class Builds(Protocol):
    """What `hopeless` asks of the matrix."""

    def candidates(self, name: str, platform: str) -> tuple[Candidate, ...]:
        """The builds of a distribution on a platform."""
        ...


def foreseen(solution: Solution, built: tuple[Pick, ...], rules: Rules) -> Foreseen | None:
    """The refusal that a lock of these picks will meet; None where none is known. `built`: those that have no file at all."""
    if built:
        labels = ", ".join(pick.candidate.label for pick in built)
        return Foreseen(f"{labels} must be compiled: there is no file whose hash could be locked", _the_rest(solution, built))
    for pick in solution.picks:
        for name, rule in _sources_of(pick.candidate, rules):
            return Foreseen(f"{pick.candidate.label} requires {name}: {rule.why}", by_hand((name,)), rule.fact)
    return None


def by_hand(names: tuple[str, ...]) -> str:
    """What can be done about packages without a wheel."""
    wheels = " ".join(names)
    return (
        f"make the wheel (`pip wheel --no-deps {wheels}`), put it on a package index of your own that has the rest as well, and"
        " name that to `lock` as UV_DEFAULT_INDEX; or install without a lock, where pip compiles it"
    )


def hopeless(missing: tuple[str, ...], solution: Solution, rules: Rules, matrix: Builds) -> bool:
    """Whether packages without a wheel are asked for by every release of a pick, so that no other choice avoids them."""
    platform = solution.problem.host.platform
    for pick in solution.picks:
        named = {name for name, _ in _sources_of(pick.candidate, rules)} & set(missing)
        if named and all(named & set(dict(_sources_of(c, rules))) for c in matrix.candidates(pick.candidate.name, platform)):
            return True
    return False


def staying(solution: Solution, rules: Rules) -> tuple[tuple[str, Stays], ...]:
    """The packages that stay as the plan's image brings them, with the rule; none that was asked for by name."""
    if solution.image is None or not any(pick.candidate.index == IMAGE for pick in solution.picks):
        return ()
    ref = solution.image.ref
    asked = {normalise(ask.name) for ask in solution.problem.asks}
    return tuple((name, rule) for rule in rules.stays if rule.holds(ref) for name in rule.names if normalise(name) not in asked)


def _sources_of(candidate: Candidate, rules: Rules) -> Iterator[tuple[str, SourceOnly]]:
    """What a candidate requires, outside its extras, that has no wheel."""
    required = {normalise(name_in(line)) for line in candidate.requires if not extras_in(line)}
    for rule in rules.source_only:
        yield from ((name, rule) for name in rule.names if normalise(name) in required)


def _the_rest(solution: Solution, built: tuple[Pick, ...]) -> str:
    """How to have a plan of which a part must be compiled: a lock of the rest, and the part on top of it."""
    names = {normalise(pick.candidate.name) for pick in built}
    asks = {normalise(ask.name): requirement(ask) for ask in solution.problem.asks if normalise(ask.name) not in names}
    torch = [pick.candidate for pick in solution.picks if pick.candidate.name == "torch" and "torch" not in names]
    rest = [*asks.values(), *(f"torch=={each.version}" for each in torch if "torch" not in asks)]
    pins = " ".join(f"{pick.candidate.name}=={pick.candidate.version}" for pick in built)
    apart = f"pip install --no-build-isolation {pins}"
    if not rest:
        return f"`{apart}` where a compiler and the toolkit are"
    words = re.sub(r"\s+", " ", " ".join(f"'{word}'" if re.search(r"[\s<>;*!\[]", word) else word for word in rest))
    return f"`accel-env lock {words}` with your options but --source-builds, and on top of it, where the toolkit is, `{apart}`"
