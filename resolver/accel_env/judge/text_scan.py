"""Finds signatures in texts of any length: literals first, the pattern only around a literal that was found.

Memory is bounded by one block, time by the number of literals times the length of the text plus a bounded number of
pattern searches on bounded windows. Nothing here raises on any bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from accel_env.judge.text_fill import Unfilled, fill
from accel_env.judge.text_gate import Gate
from accel_env.judge.text_table import Recipe, Signature, Table
from accel_env.judge.types import Clue, Fix

BLOCK = 1 << 16  # what stays in the processor's cache is searched twice as fast
BEFORE, AFTER = 700, 1800  # characters of a window around a needle
_LINES_BEFORE, _LINES_AFTER = 3, 12
_TRIES = 30  # pattern searches for one needle; a log repeats itself
_NEAR = 4000  # characters within which one signature stands over another
_SHOWN = 300
_LONGEST = 200  # characters of a needle, at most
Key = tuple[str, str, tuple[tuple[str, str], ...]]
# Colours, frames, and what servers write before every line; it would stand in the middle of a message of several lines.
_NOISE = re.compile(
    r"\x1b\[[0-9;]{0,12}[A-Za-z]|[\u2500-\u257f]"
    r"|\(\w{1,40}(?: [A-Z]{2}\d{1,4})?(?: rank=\d{1,4})?,? ?pid=\d{1,9}[^()\n]{0,60}\)"
    r"|\bNVRM: |(?m:^)\[ {0,8}\d{1,9}\.\d{3,6}\]"
    r"|\b(?:ERROR|WARNING|INFO|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d \[[^\]\n]{1,60}\]"
)


@dataclass(frozen=True, slots=True)
class Hit:
    """A clue and where it stands: offset in characters (bytes of a file), line counted from 1."""

    clue: Clue
    offset: int
    line: int
    over: frozenset[str]


class Scanner:
    """One scan. Feed blocks in order, then call `hits`."""

    def __init__(self, table: Table) -> None:
        self._table, self._gate = table, Gate(table.gates)
        self._buffer, self._start, self._offset, self._lines = "", 0, 0, 1
        self._tries: dict[str, int] = {}
        self._hits: dict[Key, Hit] = {}

    def feed(self, block: bytes) -> None:
        """Takes the next bytes; a needle near the end waits for what follows it."""
        self._buffer += block.decode("latin-1")
        self._search(max(self._start, len(self._buffer) - AFTER))

    def hits(self) -> tuple[Hit, ...]:
        """All hits, ordered."""
        self._search(len(self._buffer))
        return ordered(self._hits.values())

    def _search(self, end: int) -> None:
        # A needle that starts before `end` lies wholly in this piece.
        piece = self._buffer[self._start : end + _LONGEST]
        open_ones = self._gate.open_for(piece.encode("latin-1"))
        for needle, signatures in self._table.by_needle.items():
            if needle not in open_ones:
                continue
            tries = self._tries.get(needle, 0)
            place = self._buffer.find(needle, self._start)
            while 0 <= place < end and tries < _TRIES:
                tries += 1
                self._judge(signatures, place, len(needle))
                place = self._buffer.find(needle, place + len(needle))
            self._tries[needle] = tries
        self._forget(end)

    def _forget(self, end: int) -> None:
        cut = max(0, end - BEFORE)
        self._lines += self._buffer.count("\n", 0, cut)
        self._offset += cut
        self._buffer, self._start = self._buffer[cut:], end - cut

    def _judge(self, signatures: tuple[Signature, ...], place: int, length: int) -> None:
        window, line = _window(self._buffer, place, length)
        for signature in signatures:
            if any(text in window for text in signature.unless):
                continue
            found = self._table.pattern(signature).search(window)
            clue = clue_of(signature, found, self._table, line) if found else None
            if clue is None:
                continue
            key = key_of(clue)
            if key not in self._hits:
                number = self._lines + self._buffer.count("\n", 0, place)
                self._hits[key] = Hit(clue, self._offset + place, number, signature.over)


def ordered(hits: Iterable[Hit]) -> tuple[Hit, ...]:
    """The heaviest first and then in order of place; those that another one stands over are left out."""
    found = list(hits)
    kept = [hit for hit in found if not any(_stands_over(other, hit) for other in found)]
    return tuple(sorted(kept, key=lambda hit: (-hit.clue.weight, hit.offset)))


def key_of(clue: Clue) -> Key:
    """What makes two clues the same."""
    return clue.signature, clue.component, tuple(sorted(clue.facts.items()))


def _stands_over(one: Hit, other: Hit) -> bool:
    return other.clue.signature in one.over and abs(one.offset - other.offset) <= _NEAR


def _window(buffer: str, place: int, length: int) -> tuple[str, str]:
    """(the text around a needle with its blanks evened out, the line that the needle is in)."""
    low, high = max(0, place - BEFORE), min(len(buffer), place + length + AFTER)
    start = place
    for _ in range(_LINES_BEFORE + 1):
        start = buffer.rfind("\n", low, start)
        if start < 0:
            break
    end = place + length
    for _ in range(_LINES_AFTER + 1):
        end = buffer.find("\n", end, high) + 1
        if not end:
            break
    first = buffer.rfind("\n", low, place)
    last = buffer.find("\n", place + length, high)
    line = buffer[first + 1 if first >= 0 else low : last if last >= 0 else high]
    return _even(buffer[start + 1 if start >= 0 else low : end or high]), _short(_even(line))


def _even(text: str) -> str:
    plain = text.encode("latin-1").decode("utf-8", "replace")
    return " ".join(_NOISE.sub(" ", plain).split())


def _short(line: str) -> str:
    return line if len(line) <= _SHOWN else line[: _SHOWN - 3] + "..."


def clue_of(signature: Signature, found: re.Match[str], table: Table, line: str) -> Clue | None:
    """What a match says; None where no component can be named from it."""
    captures = found.groupdict()
    component = next(filter(None, (_filled(text, captures, table) for text in signature.components)), "")
    if not component:
        return None
    proved = {key: _filled(text, captures, table) for key, text in signature.proves.items()}
    fixes = (_fix(recipe, captures, table) for recipe in signature.fixes)
    return Clue(
        signature=signature.id,
        rule=signature.rule,
        component=component,
        line=line,
        facts={key: value for key, value in proved.items() if value},
        weight=signature.weight,
        severity=signature.severity,
        fact=signature.fact,
        fixes=tuple(fix for fix in fixes if fix is not None),
        means=_filled(signature.means, captures, table),
    )


def _filled(text: str, captures: dict[str, str | None], table: Table) -> str:
    try:
        return fill(text, captures, table.lookups)
    except Unfilled:
        return ""


def _fix(recipe: Recipe, captures: dict[str, str | None], table: Table) -> Fix | None:
    """The fix with its captures; None where one of them is missing."""
    try:
        fields = {key: fill(text, captures, table.lookups) for key, text in recipe.fields.items()}
        wanted = {key: fill(text, captures, table.lookups) for key, text in recipe.set.items()}
        unset = tuple(fill(text, captures, table.lookups) for text in recipe.unset)
    except Unfilled:
        return None
    name, spec, build, do, command = (fields.get(key, "") for key in ("name", "spec", "build", "do", "command"))
    return Fix(recipe.kind, name, spec, build, wanted, unset, do, command)


def blocks_of(lines: Iterable[str]) -> Iterator[bytes]:
    """Lines, with or without their ends, as blocks of bytes."""
    pending: list[bytes] = []
    size = 0
    for line in lines:
        raw = line.encode("utf-8", "replace")
        pending.append(raw if raw.endswith(b"\n") else raw + b"\n")
        size += len(pending[-1])
        if size >= BLOCK:
            yield b"".join(pending)
            pending, size = [], 0
    yield b"".join(pending)
