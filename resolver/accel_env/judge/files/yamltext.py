"""YAML of others, read leniently: every scalar is the text that stands there, and every node knows its line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from accel_env.judge.files.errors import broken
from accel_env.matrix import store


@dataclass(frozen=True, slots=True)
class Node:
    """A value with its line: text, a list of nodes, or pairs of key and node."""

    line: int
    text: str = ""
    items: tuple[Node, ...] = ()
    pairs: tuple[tuple[str, Node], ...] = ()

    def get(self, *keys: str) -> Node:
        """The node at a path of keys; an empty one where something on the way is missing."""
        node = self
        for key in keys:
            node = next((value for name, value in node.pairs if name == key), Node(node.line))
        return node

    def texts(self) -> tuple[str, ...]:
        """The text items of a list; a lone text counts as a list of one."""
        if self.text:
            return (self.text,)
        return tuple(item.text for item in self.items if item.text)

    def __bool__(self) -> bool:
        return bool(self.text or self.items or self.pairs)

    def walk(self) -> Iterator[Node]:
        """This node and those below it."""
        yield self
        for node in (*self.items, *(value for _, value in self.pairs)):
            yield from node.walk()


def parse(text: str, file: str) -> Node:
    """The first document of a YAML file. InputError with file and line where it is none."""
    made, why, line = store.compose_plain(text)
    if why:
        raise broken(file, line, f"is no YAML: {why}", "YAML")
    return _node(made)


def _node(plain: Any) -> Node:
    line, value = plain
    if isinstance(value, str):
        return Node(line, text=value)
    if isinstance(value, list):
        return Node(line, items=tuple(_node(item) for item in value))
    if isinstance(value, dict):
        return Node(line, pairs=tuple((key, _node(item)) for key, item in value.items()))
    return Node(line)
