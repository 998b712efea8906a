"""What a reader of a lock should know that its pins do not say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from accel_env.lock.artifacts import IMAGE, Chosen, normalise
from accel_env.lock.question import substitutes

if TYPE_CHECKING:
    from accel_env.lock.closer import Closure
    from accel_env.lock.rules import Rules
    from accel_env.model import Solution


def notes_of(
    solution: Solution, chosen: Mapping[str, Chosen], closure: Closure, left: tuple[str, ...], rules: Rules
) -> tuple[str, ...]:
    """Sentences, in a fixed order. `left`: the packages of the matrix that stayed as the package index has them."""
    return (*_closure(solution, closure, left, rules), *_files(chosen), *_surroundings(solution, rules))


def _closure(solution: Solution, closure: Closure, left: tuple[str, ...], rules: Rules) -> Iterator[str]:
    """What in the closure is not what its name would say elsewhere."""
    for pick, rule in substitutes(solution, rules):
        if normalise(rule.provides) in closure.substituted:
            yield f"requirements on {rule.provides} are met by {pick.candidate.label}: {rule.why}"
    stack = solution.stack.partition("-")[0]
    for found in closure.files:
        if normalise(found.name) in left:
            yield (
                f"{found.name} {found.version} is what PyPI has: something asks for it, and no build of it for {stack} is known;"
                " it can be installed, whether it does anything here is another matter"
            )


def _files(chosen: Mapping[str, Chosen]) -> Iterator[str]:
    """Where a hash comes from."""
    for _, file in sorted(chosen.items()):
        if file.grade == "community":
            yield f"the sha256 of {file.filename} is known from public lock files ({file.seen}), not from the index itself"


def missing(solution: Solution, rules: Rules) -> Iterator[str]:
    """The notes about what the image lacks, without which nothing in it sees the device: whoever reads a lock must see these."""
    stack = solution.stack.partition("-")[0]
    plain = solution.image is not None and not solution.image.stack
    if solution.problem.policy.target == "container" and plain:
        for need in rules.user_space:
            if need.stack == stack:
                yield (
                    "not in this image, because no dated package snapshot is known to pin it: "
                    f"{', '.join(need.packages)} ({need.why})"
                )


def _surroundings(solution: Solution, rules: Rules) -> Iterator[str]:
    """What must be there and is in no file of the lock."""
    yield from missing(solution, rules)
    for floor in rules.os_floors:
        if floor.platform == solution.problem.host.platform:
            yield f"for {floor.os} {floor.release} or newer"
    for candidate in (pick.candidate for pick in solution.picks):
        if candidate.index == IMAGE:
            yield f"the image brings {candidate.name} {candidate.version}; it is not in the lock and must not be replaced"
