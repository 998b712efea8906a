"""Which literals can be in a piece of a long text at all, told from its words: most pieces hold none of them.

A log repeats its words, so only words that are new are looked at. Digits are dropped first: counters and times would all be new.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

_DIGITS = b"0123456789"
_KEPT = 200_000  # words remembered; beyond that the memory starts anew


def gates_of(needles: Iterable[str]) -> Mapping[bytes, tuple[str, ...]]:
    """The longest word of each needle, without digits -> the needles that it stands for; empty for those that have none."""
    found: dict[bytes, tuple[str, ...]] = {}
    for needle in needles:
        parts = needle.encode("latin-1", "replace").translate(None, _DIGITS).split()
        gate = max(parts, key=len, default=b"")
        found[gate] = (*found.get(gate, ()), needle)
    return found


class Gate:
    """Remembers words between pieces of one text. `gates`: what `gates_of` gave."""

    def __init__(self, gates: Mapping[bytes, tuple[str, ...]]) -> None:
        self._gates = gates
        self._seen: set[bytes] = set()
        self._hot: dict[bytes, tuple[str, ...]] = {}

    def open_for(self, text: bytes) -> set[str]:
        """The needles that may be in the text; every needle that is in it is among them."""
        words = set(text.translate(None, _DIGITS).split())
        new = words - self._seen
        if new:
            self._learn(new)
        found = set(self._gates.get(b"", ()))
        for word in words & self._hot.keys():
            found.update(self._hot[word])
        return found

    def _learn(self, new: set[bytes]) -> None:
        if len(self._seen) + len(new) > _KEPT:
            self._seen.clear()
            self._hot.clear()
        self._seen |= new
        together = b"\n".join(new)
        for gate, needles in self._gates.items():
            if gate and gate in together:
                for word in new:
                    if gate in word:
                        self._hot[word] = (*self._hot.get(word, ()), *needles)
