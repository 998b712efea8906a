"""resolvelib over a domain: a requirement is a mask over a slot, a candidate an index in it.

A slot that is bounded but not required may also be *absent*; that is the bit just above its candidates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from accel_env.solve.domain import Domain, bits

if TYPE_CHECKING:
    from resolvelib.structs import RequirementInformation


class Wish(NamedTuple):
    """A requirement: one of `mask` must fill `module`."""

    module: str
    mask: int


class Choice(NamedTuple):
    """A candidate; `place` equal to the number of candidates means that the module is absent."""

    module: str
    place: int


ROUNDS = 10_000


def resolve(domain: Domain) -> dict[str, int] | None:
    """Some consistent choice of a candidate for every required slot, newest preferred; None when there is none.

    Raises TooDeep after ROUNDS rounds: neither a yes nor a no.
    """
    from resolvelib import BaseReporter, ResolutionImpossible, ResolutionTooDeep, Resolver

    wishes = [Wish(module, domain.live[module]) for module in sorted(domain.required)]
    resolver: Resolver[Wish, Choice, str] = Resolver(_Provider(domain), BaseReporter())  # type: ignore[arg-type]
    try:
        result = resolver.resolve(wishes, max_rounds=ROUNDS)
    except ResolutionImpossible:
        return None
    except ResolutionTooDeep as error:
        raise TooDeep(f"no answer after {ROUNDS} rounds") from error
    slots = domain.field.slots
    return {m: c.place for m, c in result.mapping.items() if c.place < len(slots[m].entries)}


class TooDeep(Exception):
    """The search gave up; the caller says so instead of claiming that nothing works."""


class _Provider:
    """Delegates everything to masks. Preference: the slots in the last conflict, then the fewest candidates."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.field = domain.field
        self.python = domain.python or 0

    def identify(self, requirement_or_candidate: Wish | Choice) -> str:
        return requirement_or_candidate.module

    def get_preference(
        self,
        identifier: str,
        resolutions: Mapping[str, Choice],
        candidates: Mapping[str, Iterator[Choice]],
        information: Mapping[str, Iterator[RequirementInformation[Wish, Choice]]],
        backtrack_causes: Sequence[RequirementInformation[Wish, Choice]],
    ) -> tuple[bool, int, str]:
        mask = self._mask(identifier, (i.requirement for i in information[identifier]))
        blamed = any(cause.requirement.module == identifier for cause in backtrack_causes)
        return (not blamed, mask.bit_count() if hasattr(mask, "bit_count") else bin(mask).count("1"), identifier)

    def find_matches(
        self, identifier: str, requirements: Mapping[str, Iterator[Wish]], incompatibilities: Mapping[str, Iterator[Choice]]
    ) -> Iterable[Choice]:
        mask = self._mask(identifier, requirements[identifier])
        for choice in incompatibilities[identifier]:
            mask &= ~(1 << choice.place)
        absent = 1 << len(self.field.slots[identifier].entries)
        if mask & absent:
            return [Choice(identifier, absent.bit_length() - 1), *(Choice(identifier, i) for i in bits(mask & ~absent))]
        return [Choice(identifier, i) for i in bits(mask)]

    def is_satisfied_by(self, requirement: Wish, candidate: Choice) -> bool:
        return bool(requirement.mask >> candidate.place & 1)

    def get_dependencies(self, candidate: Choice) -> Iterable[Wish]:
        size = len(self.field.slots[candidate.module].entries)
        if candidate.place == size:
            return []
        rows = []
        for target, mask, always, _ in self.field.links_of(candidate.module, candidate.place, self.python):
            absent = 0 if always else 1 << len(self.field.slots[target].entries)
            rows.append(Wish(target, mask & self.domain.live[target] | absent))
        return rows

    def narrow_requirement_selection(self, identifiers: Iterable[str], *_: object, **__: object) -> Iterable[str]:
        return identifiers

    def _mask(self, identifier: str, wishes: Iterable[Wish]) -> int:
        mask = self.domain.live[identifier] | 1 << len(self.field.slots[identifier].entries)
        for wish in wishes:
            mask &= wish.mask
        return mask
