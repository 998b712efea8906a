"""The declarative table of verbs: one description drives the quick parser, the typer application and its help.

This module is on the path of every command and start-up is a budget: it imports neither `app` nor typer.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

Value = bool | str | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Option:
    """One option. An empty `metavar` makes it a switch; `many` lets it repeat; `completes` names what fills it in."""

    dest: str
    flags: tuple[str, ...]
    help: str
    metavar: str = ""
    many: bool = False
    choices: tuple[str, ...] = ()
    completes: str = ""


@dataclass(frozen=True, slots=True)
class Argument:
    """The words of a verb that are no options. `many`: any number; else none or one."""

    dest: str
    metavar: str
    help: str
    many: bool = True
    completes: str = ""


@dataclass(frozen=True, slots=True)
class Verb:
    """One command: its words (`("matrix", "show")`), one line of help, what it takes, and an example for the help."""

    words: tuple[str, ...]
    summary: str
    options: tuple[Option, ...]
    argument: Argument | None
    example: str


class Words:
    """What the user typed for one verb, read by the option's `dest`; `typed` are the words as they were given."""

    def __init__(self, verb: Verb, given: Mapping[str, Sequence[str]], typed: Sequence[str]) -> None:
        self.verb = verb
        self.typed = tuple(typed)
        self._given = {dest: tuple(values) for dest, values in given.items()}
        for option in verb.options:
            self._check(option, self.many(option.dest))

    def _check(self, option: Option, values: tuple[str, ...]) -> None:
        from accel_env.errors import UsageError

        flag = option.flags[0]
        if option.metavar and not option.many and len(set(values)) > 1:
            raise UsageError(
                "option-given-twice",
                f"{flag} was given with {' and with '.join(values)}; it takes one value",
                hint=f"keep one {flag}",
            )
        for value in values:
            if option.metavar and not value.strip():
                raise UsageError("empty-option", f"{flag} needs a value and got an empty one", hint=f"leave {flag} out")
            if option.choices and value not in option.choices:
                raise UsageError(
                    "unknown-choice",
                    f"{flag} is {' or '.join(option.choices)}, not {value}",
                    hint=f"try {flag} {option.choices[0]}",
                )

    def flag(self, dest: str) -> bool:
        """Whether the switch was given."""
        return bool(self._given.get(dest))

    def text(self, dest: str) -> str:
        """The option's value; empty when it was not given."""
        values = self._given.get(dest, ())
        return values[-1] if values else ""

    def many(self, dest: str) -> tuple[str, ...]:
        """All values in the order given."""
        return self._given.get(dest, ())


class VerbModule(Protocol):
    """What a file of `cli/` for one verb holds."""

    VERB: Verb

    def run(self, words: Words) -> int:
        """Do it and print; returns the exit code."""
