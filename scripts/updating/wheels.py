"""What the name of a wheel says, in the matrix's words. What the words are is data: the section `wheels` of refresh.yaml."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version


class UnknownWord(Exception):
    """A tag, platform or label that the matrix has no word for."""


@dataclass(frozen=True, slots=True)
class Wheel:
    """`local`: the label after `+`; `tags` and `platforms` as the matrix writes them, empty where it knows none of them;
    `glibc`: the lowest that the platform tag promises, empty where it promises nothing."""

    file: str
    name: str
    version: str
    local: str
    tags: tuple[str, ...]
    platforms: tuple[str, ...]
    glibc: str


class Reader:
    """Reads names by the vocabulary of refresh.yaml and the Pythons of the matrix."""

    def __init__(self, words: Mapping[str, Any], pythons: tuple[str, ...]) -> None:
        self._platforms = [(re.compile(row["match"]), row) for row in words["platforms"]]
        self._ignored = [re.compile(text) for text in words["ignored_platforms"]]
        self._ignored_tags = [re.compile(text) for text in words["ignored_tags"]]
        self._pythons = frozenset(pythons)
        self._newest = max((_number(python) for python in pythons), default=(0, 0))
        self._oldest = min((_number(python) for python in pythons), default=(0, 0))

    def read(self, file: str) -> Wheel | None:
        """The wheel of a file name; None for what is no wheel. UnknownWord where a part has no word in the matrix."""
        if not file.endswith(".whl"):
            return None
        try:
            name, version, _, tags = parse_wheel_filename(file)
        except InvalidWheelFilename as problem:
            raise UnknownWord(f"{file} is no name of a wheel: {problem}") from None
        found: dict[str, None] = {}
        for tag in sorted(tags, key=str):
            if word := self._tag(tag.interpreter, tag.abi, file):
                found[word] = None
        platforms: dict[str, None] = {}
        floors: list[str] = []
        for platform in sorted({tag.platform for tag in tags}):
            places, glibc = self._platform(platform, file)
            platforms.update(dict.fromkeys(places))
            floors += [glibc] if glibc else []
        lowest = min(floors, key=Version) if floors else ""
        return Wheel(file, str(name), version.public, version.local or "", tuple(found), tuple(platforms), lowest)

    def _tag(self, interpreter: str, abi: str, file: str) -> str:
        """The short tag, empty for interpreters that the matrix leaves out."""
        if any(pattern.fullmatch(interpreter) for pattern in self._ignored_tags):
            return ""
        python = re.fullmatch(r"cp(\d)(\d+)", interpreter)
        if not python:
            if re.fullmatch(r"py\d+", interpreter) and abi == "none":
                return interpreter
            raise UnknownWord(f"{file}: the matrix has no word for the tag {interpreter}-{abi}")
        if re.fullmatch(r"abi3t?", abi):
            return f"{interpreter}-{abi}"
        free = abi == f"{interpreter}t"
        if not free and abi not in (interpreter, "none"):
            return self._odd(interpreter, abi, file)
        number = (int(python[1]), int(python[2]))
        if f"{python[1]}.{python[2]}{'t' if free else ''}" not in self._pythons:
            if number > self._newest:
                raise UnknownWord(f"{file}: python.yaml knows no Python {python[1]}.{python[2]}{'t' if free else ''}")
            return ""
        return f"{interpreter}{'t' if free else ''}"

    def _odd(self, interpreter: str, abi: str, file: str) -> str:
        """Old ABIs (cp27mu, cp37m) are left out; a new one is not guessed."""
        number = re.fullmatch(r"cp(\d)(\d+)", interpreter)
        if number and (int(number[1]), int(number[2])) < self._oldest:
            return ""
        raise UnknownWord(f"{file}: the matrix has no word for the tag {interpreter}-{abi}")

    def _platform(self, platform: str, file: str) -> tuple[tuple[str, ...], str]:
        for pattern, row in self._platforms:
            if found := pattern.fullmatch(platform):
                glibc = row.get("glibc", "")
                return tuple(row["platforms"]), found.expand(glibc) if "\\" in glibc else glibc
        if any(pattern.fullmatch(platform) for pattern in self._ignored):
            return (), ""
        raise UnknownWord(f"{file}: the matrix has no word for the platform {platform}")


def _number(python: str) -> tuple[int, int]:
    major, _, minor = python.rstrip("t").partition(".")
    return int(major), int(minor)


def package_of(file: str) -> str:
    """The normalised distribution of a file name, empty where it is none."""
    name = file.partition("-")[0] if file.endswith(".whl") else file.rpartition("-")[0]
    return str(canonicalize_name(name)) if name else ""


def stack_of(label: str, labels: Mapping[str, str]) -> str:
    """The stack that a build's label means by the patterns of refresh.yaml; empty where none fits."""
    for pattern, stack in labels.items():
        if found := re.fullmatch(pattern, label):
            return found.expand(stack)
    return ""
