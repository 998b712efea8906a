"""What every parser of dumps shares: the statements that it gives, and how lines are cleaned and cut.

A parser is a pure function of cleaned lines. It looks for lines that its tool alone prints, so that dumps may be pasted
together in any order; what it does not know, it skips. No parser raises, whatever the text, and each looks at a line a
fixed number of times.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from accel_env.model import Device

LINE_LIMIT = 4096  # characters looked at of one line; longer ones are data, not dumps
TEXT_LIMIT = 16 << 20  # characters looked at of one text
_REPEATED = 500  # times that one line counts: no machine has more devices, and logs repeat whole dumps

# Who says it: the process or kernel that is meant, a tool that looks from outside, a conclusion from something else.
RUNNING, TOOL, DERIVED = 3, 2, 1

_ESCAPES = re.compile(r"\x1b\[[0-9;?]{0,16}[A-Za-z]")
_STAMP = re.compile(r"(?:> ?){1,3}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]{0,12}Z ")
_MISSING = frozenset(
    (
        "",
        "n/a",
        "na",
        "none",
        "could not collect",
        "no cuda",
        "no xpu",
        "unknown",
        "not found",
        "not set",
        "not installed",
        "err!",
    )
)


@dataclass(frozen=True, slots=True)
class Said:
    """One statement: `field` of the environment has this value, as `by` printed it. A higher `rank` is the better witness."""

    field: str
    value: str
    by: str
    rank: int = TOOL


@dataclass(frozen=True, slots=True)
class DeviceList:
    """The devices that one tool lists; `vendor` is empty where the tool does not tell. Fields that it does not know are empty."""

    devices: tuple[Device, ...]
    by: str
    vendor: str = ""
    rank: int = TOOL


@dataclass(frozen=True, slots=True)
class Listed:
    """A package as printed. `text` is the version with its label; `build` and `channel` are conda's; `url` where it came from."""

    name: str
    text: str
    by: str
    rank: int = TOOL
    build: str = ""
    channel: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a parser found."""

    said: tuple[Said, ...] = ()
    devices: tuple[DeviceList, ...] = ()
    packages: tuple[Listed, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()


class Notes:
    """Collects a parser's findings; values that only say that nothing is known are dropped."""

    def __init__(self, by: str) -> None:
        self._by = by
        self._said: list[Said] = []
        self._lists: list[DeviceList] = []
        self._packages: list[Listed] = []

    def say(self, field: str, value: str, rank: int = TOOL, by: str = "") -> None:
        """A statement, unless the value is empty or a word for nothing."""
        value = value.strip()
        if known(value):
            self._said.append(Said(field, value, by or self._by, rank))

    def package(self, name: str, text: str, rank: int = TOOL, by: str = "", build: str = "", channel: str = "") -> None:
        """A package, unless its version is a word for nothing."""
        text = text.strip()
        if known(text):
            self._packages.append(Listed(name, text, by or self._by, rank, build, channel))

    def list(self, devices: Iterable[Device], vendor: str = "", rank: int = TOOL, by: str = "") -> None:
        """A list of devices, unless it is empty."""
        found = tuple(devices)
        if found:
            self._lists.append(DeviceList(found, by or self._by, vendor, rank))

    def facts(self) -> Facts:
        """Everything collected."""
        return Facts(tuple(self._said), tuple(self._lists), tuple(self._packages))


def known(value: str) -> bool:
    """False for an empty text and for the words with which tools say that they know nothing."""
    return value.strip("[]").casefold() not in _MISSING


def lines_of(text: str) -> list[str]:
    """The lines as the tool printed them: without colours, quote marks, time stamps of a job log and trailing blanks.

    What a long text says again and again is left out, so that its time follows what it says; blank lines part lists and stay.
    """
    lines = [_cleaned(line) for line in text[:TEXT_LIMIT].splitlines()]
    if len(lines) <= 2 * _REPEATED:
        return lines
    seen = Counter(lines)
    often = {line: 0 for line, count in seen.items() if line and count > _REPEATED}
    return [line for line in lines if line not in often or _counted(line, often)] if often else lines


def _counted(line: str, often: dict[str, int]) -> bool:
    often[line] += 1
    return often[line] <= _REPEATED


def _cleaned(line: str) -> str:
    line = line[:LINE_LIMIT].rstrip()
    if "\x1b" in line:
        line = _ESCAPES.sub("", line)
    stamp = _STAMP.match(line)
    return line[stamp.end() :] if stamp else line


def key_value(line: str) -> tuple[str, str]:
    """(key in lower case with single blanks, value) of `key : value`; two empty texts for another line."""
    key, colon, value = line.partition(":")
    return (" ".join(key.split()).casefold(), value.strip()) if colon else ("", "")


def cells(line: str) -> list[str]:
    """The cells of a line of a table drawn with bars; empty for another line."""
    line = line.strip()
    if not (line.startswith("|") and line.endswith("|") and len(line) > 1):
        return []
    return [cell.strip() for cell in line[1:-1].split("|")]


def first(pattern: re.Pattern[str], lines: Sequence[str]) -> re.Match[str] | None:
    """The first match at the start of a line."""
    return next((found for line in lines if (found := pattern.match(line))), None)


def mib(text: str) -> int | None:
    """The size in MiB of `24564MiB`, `24564 MiB`, `24 GB`; None where it is none."""
    found = re.match(r"(\d{1,12})\s?(Mi?B|Gi?B|Ki?B|B)\b", text.strip())
    if not found:
        return None
    size, unit = int(found[1]), found[2][0]
    return {"M": size, "G": size << 10, "K": size >> 10, "B": size >> 20}[unit]


def dotted(text: str) -> str:
    """The dotted number that a text begins with, empty where there is none."""
    found = re.match(r"\d{1,9}(?:\.\d{1,9}){0,4}", text.strip())
    return found.group() if found else ""
