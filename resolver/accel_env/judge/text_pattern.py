"""Whether a pattern of signatures.yaml is safe: it compiles and no text makes it run away."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_MOST = 1000  # times that anything may repeat; the text around a needle is bounded as well


def complaint_of(pattern: str) -> str:
    """What is wrong with a pattern, or nothing: it must compile, repeat nothing without bound and nest no repetitions."""
    try:
        compiled = re.compile(pattern, re.IGNORECASE)
    except re.error as problem:
        return f"is no regular expression: {problem}"
    if compiled.match(""):
        return "matches the empty text"
    return next(_faults(_parse(pattern), inside=False), "")


def _parse(pattern: str) -> Any:
    try:
        from re import _parser as parser  # type: ignore[attr-defined]
    except ImportError:  # Python 3.10 has it under its old name
        import sre_parse as parser
    return parser.parse(pattern)


def _faults(parsed: Any, *, inside: bool) -> Iterator[str]:
    """Everything that could take long: repetitions without a bound, repetitions within others."""
    for code, argument in parsed:
        word = str(code)
        if word in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            _, most, inner = argument
            many = int(most) > 1
            if int(most) > _MOST:
                yield f"repeats something without a bound, or more than {_MOST} times"
            if many and inside:
                yield "nests repetitions"
            yield from _faults(inner, inside=inside or many)
        else:
            for inner in _inner(argument):
                yield from _faults(inner, inside=inside)


def _inner(argument: Any) -> Iterator[Any]:
    """The sub-patterns in the argument of a group, a branch or an assertion."""
    if type(argument).__name__ == "SubPattern":
        yield argument
    elif isinstance(argument, (tuple, list)):
        for item in argument:
            yield from _inner(item)
