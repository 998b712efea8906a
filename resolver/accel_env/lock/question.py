"""What the closer is asked for a solution: pins, stand-ins, the asks outside the matrix, and bounds on the rest."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from accel_env.errors import ClosureError
from accel_env.lock.artifacts import IMAGE, PYPI, Chosen, normalise
from accel_env.lock.closer import Question, StandIn, Target
from accel_env.lock.standin import extras_in
from accel_env.model import Subject

if TYPE_CHECKING:
    from accel_env.lock.rules import Rules, StandsFor
    from accel_env.model import Ask, Need, Pick, Solution


def refuse_free_threaded(python: str) -> None:
    """ClosureError for a free-threaded Python: nothing closes over dependencies for one yet."""
    if python.endswith("t"):
        raise ClosureError(
            "free-threaded-closure",
            f"the free-threaded Python {python} cannot be locked yet: uv cannot close over dependencies for it",
            hint=f"choose the ordinary build: --python {python.rstrip('t')}",
        )


def target_of(solution: Solution) -> Target:
    """Where the closure is installed: into the image when there is one and a container is wanted, else on the host."""
    host, image = solution.problem.host, solution.image
    if solution.problem.policy.target == "container" and image is not None:
        return Target(solution.python, host.platform, "glibc" if image.libc else "", image.libc)
    return Target(solution.python, host.platform, host.libc_family, host.libc)


def _target(solution: Solution, rules: Rules) -> Target:
    floors = [floor.release for floor in rules.os_floors if floor.platform == solution.problem.host.platform]
    return replace(target_of(solution), os_floor="".join(floors[:1]))


def make_question(
    solution: Solution, chosen: Mapping[str, Chosen], rules: Rules, exclude_newer: str, offline: bool
) -> Question:
    """The question for the closer. `chosen`: name of each pick that comes from neither PyPI nor the image -> its file."""
    picked = {normalise(pick.candidate.name) for pick in solution.picks}
    extras = _extras(solution.problem.asks)
    requirements: list[str] = []
    stand_ins: list[StandIn] = []
    for pick in solution.picks:
        name = pick.candidate.name
        wanted = _wanted(pick, extras)
        if pick.candidate.index == PYPI:
            requirements.append(f"{name}{_bracket(wanted)}=={pick.candidate.version}")
        else:
            stand_ins.append(_stand_in(pick, chosen, wanted))
    requirements += [requirement(ask) for ask in solution.outside]
    needs = [
        need for pick in solution.picks for need in pick.candidate.needs if need.subject is Subject.PACKAGE and not need.soft
    ]
    unpicked = [need for need in needs if normalise(need.name) not in picked]
    requirements += [_line(need) for need in unpicked if need.when == "always"]
    constraints = {_line(need) for need in unpicked if need.when == "present" and need.allows}
    asked = {normalise(ask.name) for ask in solution.problem.asks}
    constraints |= {bound.requirement for bound in rules.bounds if normalise(name_in(bound.requirement)) not in asked}
    return Question(
        tuple(dict.fromkeys(requirements)),
        tuple(sorted(constraints)),
        tuple(stand_ins),
        _target(solution, rules),
        exclude_newer,
        offline,
        tuple(_substitute(pick, rule) for pick, rule in substitutes(solution, rules)),
    )


def torch_question(solution: Solution, rules: Rules, exclude_newer: str, offline: bool) -> Question:
    """What torch the packages outside the matrix would take: they and torch alone, within the bounds that were asked for."""
    asked = [requirement(ask) for ask in solution.problem.asks if normalise(ask.name) == "torch"] or ["torch"]
    # torch comes first: the closer gives the newest release to what it meets first
    requirements = (*asked, *(requirement(ask) for ask in solution.outside))
    return Question(requirements, (), (), _target(solution, rules), exclude_newer, offline)


def substitutes(solution: Solution, rules: Rules) -> tuple[tuple[Pick, StandsFor], ...]:
    """The picks that own the import name of another distribution, which nobody picked, with the rule that says so."""
    picked = {normalise(pick.candidate.name) for pick in solution.picks}
    return tuple(
        (pick, rule)
        for pick in solution.picks
        for rule in rules.stands_for
        if normalise(pick.candidate.name) in rule.names and normalise(rule.provides) not in picked
    )


def _substitute(pick: Pick, rule: StandsFor) -> StandIn:
    """What a requirement on the other distribution gets: the pick's version, and no file."""
    version = pick.candidate.version.partition("+")[0]
    return StandIn(rule.provides, version, f"{normalise(rule.provides).replace('-', '_')}-{version}-py3-none-any.whl")


def name_in(requirement: str) -> str:
    """The name at the beginning of a requirement."""
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0]


def requirement(ask: Ask) -> str:
    """The PEP 508 line of an ask: as it was written, else put together."""
    return ask.text.strip() or f"{ask.name}{_bracket(ask.extras)}{ask.specifier}"


def _stand_in(pick: Pick, chosen: Mapping[str, Chosen], extras: tuple[str, ...]) -> StandIn:
    """The stand-in of a pick. What an image brings has its dependencies there, so that it asks for nothing."""
    candidate = pick.candidate
    if candidate.index == IMAGE:
        stem = normalise(candidate.name).replace("-", "_")
        version = candidate.version.partition("+")[0]
        return StandIn(candidate.name, version, f"{stem}-{version}-py3-none-any.whl", (), extras)
    file = chosen[candidate.name]
    return StandIn(candidate.name, file.version, file.filename, candidate.requires, extras)


def _extras(asks: tuple[Ask, ...]) -> dict[str, tuple[str, ...]]:
    """Normalised name -> the extras that any ask names."""
    found: dict[str, set[str]] = {}
    for ask in asks:
        found.setdefault(normalise(ask.name), set()).update(ask.extras)
    return {name: tuple(sorted(names)) for name, names in found.items()}


def _wanted(pick: Pick, asked: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The extras to install a pick with: those that make its build and that the release has, and what else an ask names.

    An ask for the import name takes any distribution that owns it; its extras are meant for that one.
    """
    candidate = pick.candidate
    named = {normalise(e) for name in (candidate.name, candidate.module) for e in asked.get(normalise(name), ())}
    if not candidate.extras:
        return tuple(sorted(named))
    real = {normalise(extra) for line in candidate.requires for extra in extras_in(line)}
    return tuple(sorted({*candidate.extras} & real | named - {*candidate.extras, candidate.build}))


def _bracket(extras: tuple[str, ...]) -> str:
    return f"[{','.join(extras)}]" if extras else ""


def _line(need: Need) -> str:
    """The requirement line of a need on another package."""
    return f"{need.name}{need.allows}; {need.marker}" if need.marker else f"{need.name}{need.allows}"
