"""Typed access to mappings out of files: each getter checks, notes what is wrong with its dotted path, and goes on.

A getter that finds a fault returns an empty value of its type, so that one reading of a file finds all its faults.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

_PLAIN_KEY = re.compile(r"[A-Za-z_][\w-]*")


def dotted(path: str, key: str | int) -> str:
    """The path of `key` under `path`: `a.b`, `a[0]`, `a["1.2"]`."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    if not _PLAIN_KEY.fullmatch(key):
        return f'{path}["{key}"]'
    return f"{path}.{key}" if path else key


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong, and where. `line` counts from 1; 0 when unknown."""

    file: str
    path: str
    message: str
    line: int = 0

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where}: {self.path}: {self.message}" if self.path else f"{where}: {self.message}"


class Faults:
    """The faults of one reading, in order."""

    __slots__ = ("items",)

    def __init__(self) -> None:
        self.items: list[Fault] = []

    def add(self, file: str, path: str, message: str, line: int = 0) -> None:
        """Notes one fault."""
        self.items.append(Fault(file, path, message, line))


def with_lines(faults: list[Fault], contents: Mapping[str, bytes]) -> Iterator[Fault]:
    """The faults with their lines, found by reading the YAML files once more."""
    from accel_env.matrix.store import parse_yaml

    known: dict[str, dict[str, int]] = {}
    for fault in faults:
        if fault.line or not fault.file.endswith((".yaml", ".yml")) or fault.file not in contents:
            yield fault
            continue
        if fault.file not in known:
            known[fault.file] = {}
            parse_yaml(contents[fault.file], fault.file, Faults(), known[fault.file])
        path = fault.path
        while path and path not in known[fault.file]:
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        yield Fault(fault.file, fault.path, fault.message, known[fault.file].get(path, 1))


def kind_of(value: object) -> str:
    """The YAML word for the type of `value`."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int):
        return "a number"
    return "text" if isinstance(value, str) else type(value).__name__


class Row:
    """One mapping of a file. Call `close` when every known key was asked for: what is left over is a fault."""

    __slots__ = ("_asked", "_data", "_faults", "file", "path", "stem")

    def __init__(self, data: Mapping[str, object], faults: Faults, file: str, stem: str, path: str = "") -> None:
        self._data, self._faults, self._asked = data, faults, set[str]()
        self.file, self.stem, self.path = file, stem, path

    def __contains__(self, key: str) -> bool:
        return key in self._data

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def fault(self, key: str, message: str) -> None:
        """Notes a fault of this mapping (`key` empty) or of one of its keys."""
        self._faults.add(self.file, dotted(self.path, key) if key else self.path, message)

    def close(self) -> None:
        """Notes every key that nobody asked for."""
        for key in self._data:
            if key not in self._asked:
                known = ", ".join(sorted(self._asked))
                self.fault(key, f"unknown key; known here: {known}")

    def _get(self, key: str, required: bool) -> object:
        self._asked.add(key)
        if key in self._data:
            return self._data[key]
        if required:
            self.fault("", f"the key `{key}` is missing")
        return None

    def _wrong(self, key: str, wanted: str, value: object) -> None:
        found = f"the number {value}: write it in quotes" if wanted == "text" and type(value) is int else kind_of(value)
        self.fault(key, f"must be {wanted}, is {found}")

    def text(self, key: str, *, required: bool = True, default: str = "", check: Callable[[str], str] | None = None) -> str:
        """A text that is not empty. `check` returns what is wrong with it, or nothing."""
        value = self._get(key, required)
        if value is None:
            return default
        if not isinstance(value, str):
            self._wrong(key, "text", value)
            return default
        complaint = "must not be empty" if not value.strip() else check(value) if check else ""
        if complaint:
            self.fault(key, complaint)
        return value

    def optional(self, key: str, check: Callable[[str], str] | None = None, *, empty: bool = False) -> str:
        """A text, or the empty string where the key is missing. `empty`: the text may be empty too."""
        if empty and self._data.get(key) == "":
            self._asked.add(key)
            return ""
        return self.text(key, required=False, check=check)

    def one_of(self, key: str, words: tuple[str, ...], default: str = "") -> str:
        """One of the words; required without a default."""
        value = self.text(key, required=not default, default=default)
        if value and value not in words:
            self.fault(key, f"`{value}` is none of: {', '.join(words)}")
        return value

    def flag(self, key: str) -> bool:
        """true or false; false where the key is missing."""
        value = self._get(key, required=False)
        if value is not None and not isinstance(value, bool):
            self._wrong(key, "true or false", value)
        return value is True

    def whole(self, key: str, *, required: bool = False) -> int | None:
        """A whole number that is not negative, None where the key is missing."""
        value = self._get(key, required)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            self._wrong(key, "a number", value)
            return None
        if value < 0:
            self.fault(key, "must not be negative")
        return value

    def texts(self, key: str, *, required: bool = False, check: Callable[[str], str] | None = None) -> tuple[str, ...]:
        """A list of texts; empty where the key is missing."""
        value = self._get(key, required)
        if value is None:
            return ()
        if not isinstance(value, list):
            self._wrong(key, "a list", value)
            return ()
        for place, item in enumerate(value):
            where = dotted(key, place)
            if not isinstance(item, str):
                self._faults.add(self.file, dotted(dotted(self.path, key), place),
                                 f"must be text, is {'a number: write it in quotes' if type(item) is int else kind_of(item)}")
            elif complaint := ("must not be empty" if not item.strip() else check(item) if check else ""):
                self._faults.add(self.file, f"{self.path}.{where}" if self.path else where, complaint)
        return tuple(item for item in value if isinstance(item, str))

    def pairs(
        self, key: str, *, check: Callable[[str], str] | None = None, names: Callable[[str], str] | None = None
    ) -> dict[str, str]:
        """A mapping of text to text; empty where the key is missing. `names` checks its keys as `check` does its values."""
        row = self.maybe(key)
        if row is None:
            return {}
        for name in row if names else ():
            row.check_name(name, names)
        return {name: row.text(name, check=check) for name in row}

    def check_name(self, key: str, check: Callable[[str], str] | None) -> None:
        """Notes what is wrong with a key that is free text."""
        if complaint := check(key) if check else "":
            self.fault(key, complaint)

    def maybe(self, key: str, *, required: bool = False) -> Row | None:
        """The mapping under a key, None where the key is missing."""
        value = self._get(key, required)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            self._wrong(key, "a mapping", value)
            return None
        return Row(value, self._faults, self.file, self.stem, dotted(self.path, key))

    def rows(self, key: str, *, required: bool = False, word: str = "") -> list[Row]:
        """The mappings in the list under a key; empty where the key is missing. `word`: a text stands for {word: text}."""
        value = self._get(key, required)
        if value is None:
            return []
        if not isinstance(value, list):
            self._wrong(key, "a list", value)
            return []
        found: list[Row] = []
        for place, item in enumerate(value):
            path = dotted(dotted(self.path, key), place)
            if isinstance(item, str) and word:
                item = {word: item}
            if isinstance(item, Mapping):
                found.append(Row(item, self._faults, self.file, self.stem, path))
            else:
                self._faults.add(self.file, path, f"must be a mapping, is {kind_of(item)}")
        return found

    def one_or_more(self, key: str) -> list[Row]:
        """The mapping under a key, or the mappings in the list there; empty where the key is missing."""
        if isinstance(self._data.get(key), Mapping):
            inner = self.maybe(key)
            return [inner] if inner else []
        return self.rows(key)

    def keyed(self, key: str, *, required: bool = False) -> dict[str, Row]:
        """The mappings in the mapping under a key, by name; empty where the key is missing."""
        row = self.maybe(key, required=required)
        found: dict[str, Row] = {}
        for name in row or ():
            inner = row.maybe(name) if row else None
            if inner is not None:
                found[name] = inner
        return found

    def fact(self, key: str = "fact", *, required: bool = True) -> str:
        """The full id of the fact that the value names."""
        value = self.text(key, required=required)
        return value if not value or ":" in value else f"{self.stem}:{value}"
