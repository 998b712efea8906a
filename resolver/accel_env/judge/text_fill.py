"""Placeholders of signatures: `{capture}` or `{capture/other|filter|lookup}` becomes what the pattern caught."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

PLACEHOLDER = re.compile(r"\{(\w+(?:/\w+){0,4})((?:\|\w+){0,4})\}")
Lookups = Mapping[str, Mapping[str, str]]


class Unfilled(Exception):
    """A placeholder has no value: the capture took no part in the match, or a look-up does not know it."""


def fill(text: str, captures: Mapping[str, str | None], lookups: Lookups) -> str:
    """The text with every placeholder replaced. Raises Unfilled where one has no value."""

    def one(found: re.Match[str]) -> str:
        value = next(filter(None, (captures.get(name) for name in found.group(1).split("/"))), "") or ""
        for word in found.group(2).split("|")[1:]:
            value = _apply(word, value, lookups)
        if not value:
            raise Unfilled(found.group(0))
        return value

    return PLACEHOLDER.sub(one, text) if "{" in text else text


def _apply(word: str, value: str, lookups: Lookups) -> str:
    if not value:
        return ""
    if (change := FILTERS.get(word)) is not None:
        return change(value)
    return look_up(lookups.get(word, {}), value)


def look_up(table: Mapping[str, str], value: str) -> str:
    """The row of `value`: the whole text, else the longest row that ends with `*` and is its beginning."""
    key = value.strip().lower()
    if key in table:
        return table[key]
    best = max((row for row in table if row.endswith("*") and key.startswith(row[:-1])), key=len, default="")
    return table.get(best, "")


def from_driver_number(value: str) -> str:
    """`12080` -> `12.8`: the CUDA driver writes 1000 * major + 10 * minor."""
    if not value.isdigit() or len(value) > 6:
        return ""
    number = int(value)
    return f"{number // 1000}.{number % 1000 // 10}"


def _split_after(count: int) -> Callable[[str], str]:
    def split(value: str) -> str:
        digits = value.strip()
        return f"{digits[:count]}.{digits[count:]}" if digits.isdigit() and len(digits) > count else ""

    return split


def _first(count: int) -> Callable[[str], str]:
    def first(value: str) -> str:
        parts = re.findall(r"\d+", value)[:count]
        return ".".join(parts) if len(parts) == count else ""

    return first


def normal_name(value: str) -> str:
    """A distribution name in its normal form."""
    return re.sub(r"[-_.]+", "-", value.strip().strip("'\"`")).strip("-").lower()


def module_of(value: str) -> str:
    """The import name that owns a path: the part after `site-packages`, else the file's own name without its endings."""
    parts = [part for part in re.split(r"[\\/]+", value.strip().strip("'\"`")) if part]
    for place, part in enumerate(parts[:-1]):
        if part in ("site-packages", "dist-packages"):
            return parts[place + 1].partition(".")[0]
    if not parts:
        return ""
    folder = parts[-2] if len(parts) > 1 else ""
    if folder and folder not in ("...", "lib", "lib64", "."):
        return folder
    name = parts[-1].partition(".")[0]
    return name[3:] if name.startswith("lib") else name


def _archs(value: str) -> str:
    return " ".join(sorted(set(re.findall(r"(?:sm|compute|gfx)_?[0-9a-f]+", value.lower()))))


def _version(value: str) -> str:
    """A version cut out of `2.8.0+cu128.`, without what a sentence puts behind it."""
    return value.strip().rstrip(".,;:)")


FILTERS: Mapping[str, Callable[[str], str]] = {
    "driver_number": from_driver_number,
    "after1": _split_after(1),
    "after2": _split_after(2),
    "major": _first(1),
    "minor": _first(2),
    "patch": _first(3),
    "digits": lambda value: re.sub(r"\D", "", value),
    "lower": str.lower,
    "name": normal_name,
    "module": module_of,
    "archs": _archs,
    "version": _version,
    "dashed": lambda value: re.sub(r"(?<=[a-z])(?=\d)", "_", value, count=1),
    "label": lambda value: value.partition("+")[2],
}
