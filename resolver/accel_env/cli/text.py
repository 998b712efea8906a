"""Text for people: reading a JSON-shaped answer, aligned tables, wrapping. Nothing here needs colour to be read."""
from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence

Json = Mapping[str, object]

# Without a terminal: wide enough for an index URL in the table, narrow enough for a log.
DEFAULT_WIDTH = 100
NARROWEST = 40
PLAIN_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./-_")


def program() -> str:
    """The command as people called it: the script of a checkout says so in a variable, else `accel-env`."""
    return os.environ.get("ACCEL_ENV_PROGRAM") or "accel-env"


def string(answer: object, *keys: str) -> str:
    """The text at a path of keys; empty where something on the way is missing or null."""
    for key in keys:
        answer = answer.get(key) if isinstance(answer, Mapping) else None
    return "" if answer is None else str(answer)


def mapping(answer: object, *keys: str) -> Json:
    """The mapping at a path of keys; empty where it is missing."""
    for key in keys:
        answer = answer.get(key) if isinstance(answer, Mapping) else None
    return answer if isinstance(answer, Mapping) else {}


def items(answer: object, *keys: str) -> tuple[object, ...]:
    """The list at a path of keys; empty where it is missing."""
    for key in keys:
        answer = answer.get(key) if isinstance(answer, Mapping) else None
    return tuple(answer) if isinstance(answer, (list, tuple)) else ()


def width() -> int:
    """Columns to fill: COLUMNS, else the terminal on stdout, else a fixed number."""
    wanted = os.environ.get("COLUMNS", "")
    if wanted.isdigit() and int(wanted):
        return max(NARROWEST, int(wanted))
    try:
        return max(NARROWEST, os.get_terminal_size(sys.stdout.fileno()).columns or DEFAULT_WIDTH)
    except (OSError, ValueError, AttributeError):
        return DEFAULT_WIDTH


def wrap(text: str, columns: int, indent: str = "", hanging: str | None = None) -> list[str]:
    """The text in lines of at most `columns`; a word longer than that (a URL) keeps its line to itself."""
    lines: list[str] = []
    line = indent
    following = indent if hanging is None else hanging
    empty = True
    for word in text.split():
        if not empty and len(line) + 1 + len(word) > columns:
            lines.append(line)
            line, empty = following, True
        line += word if empty else f" {word}"
        empty = False
    return [*lines, line] if not empty else lines


def fits(rows: Sequence[Sequence[str]], columns: int) -> bool:
    """Whether a table of these rows fills no more than `columns`."""
    return sum(_sizes(rows)) + 2 * (len(rows[0]) - 1) <= columns if rows else True


def _sizes(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]


def table(head: Sequence[str], rows: Iterable[Sequence[str]], columns: int) -> list[str]:
    """Aligned lines. Where they do not fit, the widest column of each row moves to a line of its own below it."""
    cells = [tuple(row) for row in rows]
    sizes = _sizes((head, *cells))
    if fits((head, *cells), columns):
        return [_line(row, sizes) for row in (head, *cells)]
    widest = sizes.index(max(sizes[1:])) if len(sizes) > 1 else 0
    kept = [i for i in range(len(head)) if i != widest]
    lines = [_line([head[i] for i in kept], [sizes[i] for i in kept])]
    for row in cells:
        lines.append(_line([row[i] for i in kept], [sizes[i] for i in kept]))
        if row[widest]:
            lines.append(f"    {head[widest]}: {row[widest]}")
    return lines


def _line(row: Sequence[str], sizes: Sequence[int]) -> str:
    return "  ".join(cell.ljust(size) for cell, size in zip(row, sizes, strict=True)).rstrip()


def pairs(rows: Iterable[tuple[str, str]], columns: int) -> list[str]:
    """`name  value` lines with the values aligned and wrapped; rows without a value are left out."""
    kept = [(name, value) for name, value in rows if value]
    size = max((len(name) for name, _ in kept), default=0) + 2
    lines: list[str] = []
    for name, value in kept:
        lines += wrap(value, columns, name.ljust(size), " " * size)
    return lines


def quoted(words: Iterable[str]) -> str:
    """Words as a shell reads them back."""
    return " ".join(
        word if word and PLAIN_CHARACTERS.issuperset(word) else "'" + word.replace("'", "'\"'\"'") + "'" for word in words
    )


def reason(because: object) -> str:
    """One reason with what stands behind it: `text (vendor: source)`; a doubt is said."""
    text, source, grade = string(because, "text"), string(because, "source"), string(because, "grade")
    behind = ": ".join(part for part in (grade, source) if part)
    doubt = string(because, "doubt")
    return f"{text}{f' ({behind})' if behind else ''}{f' [doubtful: {doubt}]' if doubt else ''}"
