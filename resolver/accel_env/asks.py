"""The asks of a request: words on the command line and lines of requirements files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath

from accel_env.errors import InputError, UsageError
from accel_env.model import Ask
from accel_env.solve.problem import merge, parse_ask
from accel_env.system.types import System

DEPTH = 8


def read_asks(words: Sequence[str], files: Sequence[str], system: System) -> tuple[tuple[Ask, ...], tuple[str, ...]]:
    """(asks in order, notes about lines that say something else than a requirement).

    UsageError for a word that is no requirement, InputError (file and line) for a file that cannot be read or parsed.
    """
    asks = [parse_ask(word, f"argument {n}") for n, word in enumerate(words, 1)]
    notes: list[str] = []
    for name in files:
        asks += _file(name, system, notes, DEPTH)
    if not asks:
        raise UsageError(
            "nothing-asked",
            f"no requirement in {', '.join(files)}" if files else "no package was named",
            hint="name at least one package, for example torch",
        )
    return merge(asks), tuple(notes)


def _file(name: str, system: System, notes: list[str], depth: int) -> list[Ask]:
    text = system.read_text(name)
    if text is None:
        raise InputError("unreadable-file", f"cannot read the requirements file {name}", hint="check the path given with -r")
    if not depth:
        raise InputError(
            "nested-requirements",
            f"{name}: requirements files include each other too deeply",
            hint="remove the circle of -r lines",
        )
    asks: list[Ask] = []
    for number, line in _logical_lines(text):
        if line.startswith("-"):
            asks += _option(name, number, line, system, notes, depth)
            continue
        try:
            asks.append(parse_ask(line, f"{name}:{number}"))
        except UsageError as error:
            raise InputError(error.reference, error.message, hint=error.hint) from None
    return asks


def _option(name: str, number: int, line: str, system: System, notes: list[str], depth: int) -> list[Ask]:
    flag, _, value = line.replace("=", " ", 1).partition(" ")
    if flag in ("-r", "--requirement") or (flag.startswith("-r") and not flag.startswith("--")):
        included = value.strip() or flag[2:]
        return _file(str(PurePath(name).parent / included), system, notes, depth - 1)
    notes.append(f"{name}:{number}: {flag} is left out: the matrix names the index of every package it picks")
    return []


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """(line number, requirement) without comments, hashes and continuations."""
    held, start = "", 0
    for number, raw in enumerate(text.splitlines(), 1):
        start = start or number
        held += raw.rstrip("\\") if raw.rstrip().endswith("\\") else raw
        if raw.rstrip().endswith("\\"):
            continue
        line = held.split(" #", 1)[0].strip()
        line = line.split(" --hash", 1)[0].strip()
        if line and not line.startswith("#"):
            yield start, line
        held, start = "", 0
