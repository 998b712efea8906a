"""What a host says about one candidate: failures, and the items on whose account they are.

A charge is a mask of items that make a failure together; a candidate is out as long as all items of one charge are in force.
So any subset of the items can be tried without judging anything again.
"""

from __future__ import annotations

from dataclasses import dataclass

from accel_env.model import Need

ALWAYS = 1
SOURCE_RANK = 3


@dataclass(frozen=True, slots=True)
class Item:
    """A thing that the user could change: an ask or a fact about the host. `bit` is its place in failure masks."""

    kind: str
    key: str
    text: str
    bit: int
    index: int = 0


@dataclass(frozen=True, slots=True)
class Failure:
    """A need that is not met, what it met instead, and the charges: each alone is enough to fail it."""

    need: Need
    met: str
    charges: tuple[int, ...]

    def holds(self, active: int) -> bool:
        """True when the need fails under the items of `active`."""
        return any(charge & active == charge for charge in self.charges)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Everything static about one candidate. `jit`: runs, but through just-in-time compilation."""

    failures: tuple[Failure, ...]
    soft: tuple[Failure, ...]
    jit: bool

    @property
    def charges(self) -> tuple[int, ...]:
        """All charges, each once."""
        if not self.failures:
            return ()
        return tuple(dict.fromkeys(c for failure in self.failures for c in failure.charges))


CLEAN = Verdict((), (), False)
