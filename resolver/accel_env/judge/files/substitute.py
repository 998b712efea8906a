"""`$NAME`, `${NAME:-word}` and their kin, as Dockerfiles, shells and compose files write them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from accel_env.judge.files.values import UNKNOWN

_DEPTH = 8  # of expansions inside expansions
_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_DIGITS = frozenset("0123456789")

Lookup = Callable[[str], str | None]


def expand(text: str, variables: Mapping[str, str], *, escape: str = "\\", unset: str = "") -> str:
    """The text with its variables put in; `unset` stands for those that are not there."""
    out: list[str] = []
    place = 0
    while place < len(text):
        char = text[place]
        if char == escape and place + 1 < len(text):
            out.append(text[place + 1] if text[place + 1] == "$" else text[place : place + 2])
            place += 2
        elif char == "$":
            value, place = variable(text, place, variables, unset)
            out.append(value)
        else:
            out.append(char)
            place += 1
    return "".join(out)


def variable(text: str, place: int, variables: Mapping[str, str], unset: str = "", depth: int = _DEPTH) -> tuple[str, int]:
    """(value, next place) of the expansion that starts with `$` at `place`; a lone `$` is itself."""
    following = text[place + 1 : place + 2]
    if following == "{":
        end = _closing(text, place + 2)
        if end < 0:
            return UNKNOWN, len(text)
        return _braced(text[place + 2 : end], variables, unset, depth), end + 1
    if following and following in _NAME and following not in _DIGITS:
        end = place + 1
        while end < len(text) and text[end] in _NAME:
            end += 1
        return variables.get(text[place + 1 : end], unset), end
    if following and following in "@*#?$!-0123456789":
        return UNKNOWN, place + 2
    return "$", place + 1


def _closing(text: str, place: int) -> int:
    """Where the brace that opened before `place` closes; -1 where it does not."""
    depth = 1
    while place < len(text):
        if text[place] == "\\":
            place += 1
        elif text[place] == "{":
            depth += 1
        elif text[place] == "}":
            depth -= 1
            if not depth:
                return place
        place += 1
    return -1


def _braced(inner: str, variables: Mapping[str, str], unset: str, depth: int) -> str:
    """The value of `${inner}`."""
    end = 0
    while end < len(inner) and inner[end] in _NAME:
        end += 1
    name, rest = inner[:end], inner[end:]
    if not name or not depth:
        return UNKNOWN
    value = variables.get(name)
    if not rest:
        return unset if value is None else value
    word = rest.lstrip(":")[1:]
    filled = bool(value) if rest.startswith(":") else value is not None
    operator = rest.lstrip(":")[:1]
    if operator in ("-", "="):
        return (value or "") if filled else _inside(word, variables, unset, depth)
    if operator == "+":
        return _inside(word, variables, unset, depth) if filled else ""
    if operator == "?":
        return (value or "") if filled else UNKNOWN
    # cutting and replacing (`${X%.*}`): what comes out is not worth guessing
    return _cut(value or "", rest) if value and UNKNOWN not in value else UNKNOWN


def _inside(word: str, variables: Mapping[str, str], unset: str, depth: int) -> str:
    out: list[str] = []
    place = 0
    while place < len(word):
        if word[place] == "$":
            value, place = variable(word, place, variables, unset, depth - 1)
            out.append(value)
        else:
            out.append(word[place])
            place += 1
    return "".join(out)


def _cut(value: str, rest: str) -> str:
    """`${X%.*}`, `${X//./}` and `${X/a/b}` with plain patterns; everything else is unknown."""
    plain = set("*?[]$`\\")
    if rest.startswith("/"):
        old, _, new = rest.lstrip("/").partition("/")
        if old and not plain & set(old + new):
            return value.replace(old, new) if rest.startswith("//") else value.replace(old, new, 1)
    for mark, finder in (("%%", "partition"), ("%", "rpartition")):
        if rest.startswith(mark) and rest.endswith("*") and not plain & set(rest[len(mark) : -1]) and rest[len(mark) : -1]:
            head, found, _ = getattr(value, finder)(rest[len(mark) : -1])
            return str(head) if found else value
    return UNKNOWN
