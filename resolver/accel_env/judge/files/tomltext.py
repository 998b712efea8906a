"""TOML of others: values by the standard reader, lines by looking where things stand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from accel_env.judge.files.errors import broken

_PLACE = re.compile(r"\(at (?:line (\d+)|end of document)")
_HEADER = re.compile(r"^[ \t]*\[\[[ \t]*([^\]]*?)[ \t]*\]\]", re.MULTILINE)


def parse(text: str, file: str) -> dict[str, Any]:
    """The table of a TOML file. InputError with file and line where it is none."""
    import importlib
    import sys

    # by name: type checkers look for one of the two and miss the other
    toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        loaded: dict[str, Any] = toml.loads(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    except (ValueError, RecursionError) as error:
        match = _PLACE.search(str(error))
        line = int(match[1]) if match and match[1] else text.count("\n") + 1 if match else 0
        why = str(error).partition(" (at ")[0] if not isinstance(error, RecursionError) else "it is nested too deeply"
        raise broken(file, line, f"is no TOML: {why}", "TOML") from None
    return loaded


def mapping(value: object) -> Mapping[str, Any]:
    """The value where it is a table, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def rows(value: object) -> list[Mapping[str, Any]]:
    """The tables in a list; a single table counts as a list of one."""
    if isinstance(value, Mapping):
        return [value]
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def texts(value: object) -> list[str]:
    """The texts in a list."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def text_of(value: object) -> str:
    """The value where it is text."""
    return value if isinstance(value, str) else ""


class Lines:
    """Where things stand in a text: approximate by nature, exact for the files that tools write."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._headers: dict[str, list[int]] = {}
        count, last = 1, 0
        for match in _HEADER.finditer(text):
            count += text.count("\n", last, match.start())
            last = match.start()
            self._headers.setdefault(match[1], []).append(count)

    def header(self, name: str, index: int) -> int:
        """The line of the nth `[[name]]`; 0 where there is none."""
        lines = self._headers.get(name, [])
        return lines[index] if index < len(lines) else 0

    def of(self, text: str, after: int = 0) -> int:
        """The first line, from line `after` on, that holds a text (as a key or in quotes before anything else); 0 for none."""
        lines = self._lines
        quoted = (f'"{text}', f"'{text}", f"{text} =", f"{text}=")
        for number in range(max(after, 1), len(lines) + 1):
            if any(mark in lines[number - 1] for mark in quoted):
                return number
        return next((n for n, line in enumerate(lines, 1) if n >= after and text in line), 0)
