"""Error texts -> clues: what a known text proves, which rule and component it speaks of, and what usually helps.

A clue is a prior with facts; the needs decide. A text that fits no signature gives nothing, which is for the caller to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING

from accel_env.judge.text_scan import BLOCK, Hit, Key, Scanner, blocks_of, key_of, ordered
from accel_env.judge.text_table import Documents, Table, load

if TYPE_CHECKING:
    from accel_env.judge.types import Clue

__all__ = ["LogScan", "Table", "load", "read", "scan_log"]

_BOMS = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


@dataclass(frozen=True, slots=True)
class LogScan:
    """What a log says. `clues`: the heaviest first; `lines`: (number from 1, text) of the deciding lines, in order.

    `size` is in bytes.
    """

    clues: tuple[Clue, ...]
    lines: tuple[tuple[int, str], ...]
    size: int


def read(texts: Iterable[str], matrix: Documents, table: Table | None = None) -> tuple[Clue, ...]:
    """The clues in some texts, the heaviest first; nothing for texts that no signature fits. `table`: what `load` gave."""
    known = table or load(matrix)
    found: dict[Key, Hit] = {}
    for text in texts:
        # People paste texts with line ends of their own: read it as it stands and as one line.
        for version in (text, " ".join(text.split())):
            scanner = Scanner(known)
            scanner.feed(version.encode("utf-8", "replace"))
            for hit in scanner.hits():
                found.setdefault(key_of(hit.clue), hit)
    return tuple(hit.clue for hit in ordered(found.values()))


def scan_log(source: str | PathLike[str] | Iterable[str], matrix: Documents, table: Table | None = None) -> LogScan:
    """The deciding lines of a log (a path, or its lines) and the clues in them. InputError where a path cannot be read.

    One pass in blocks: a log of any length takes the memory of a few blocks.
    """
    scanner, size = Scanner(table or load(matrix)), 0
    for block in _blocks(source):
        size += len(block)
        scanner.feed(block)
    hits = scanner.hits()
    lines = {hit.line: hit.clue.line for hit in hits}
    return LogScan(tuple(hit.clue for hit in hits), tuple(sorted(lines.items())), size)


def _blocks(source: str | PathLike[str] | Iterable[str]) -> Iterator[bytes]:
    if not isinstance(source, (str, PathLike)):
        yield from blocks_of(source)
        return
    from accel_env.errors import InputError

    try:
        with open(source, "rb") as stream:
            yield from _decoded(iter(lambda: stream.read(BLOCK), b""))
    except OSError as problem:
        reason = problem.strerror or problem
        raise InputError("log-unreadable", f"{source}: {reason}", hint="check the path and its permissions") from None


def _decoded(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The blocks as UTF-8; shells of Windows write UTF-16 with a mark at the start."""
    first = next(blocks, b"")
    for mark, encoding in _BOMS:
        if first.startswith(mark):
            import codecs

            decoder = codecs.getincrementaldecoder(encoding)("replace")
            yield decoder.decode(first[len(mark) :]).encode("utf-8", "replace")
            for block in blocks:
                yield decoder.decode(block).encode("utf-8", "replace")
            return
    yield first
    yield from blocks
