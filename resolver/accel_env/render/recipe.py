"""A container image as typed instructions, so that its properties can be tested without reading text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Comment:
    """A line for the reader."""

    text: str


@dataclass(frozen=True, slots=True)
class From:
    """The base of a stage. `digest` is empty only where an unpinned base was asked for."""

    ref: str
    digest: str
    stage: str = ""

    @property
    def pinned(self) -> bool:
        """Whether the base can only ever be this one."""
        return bool(_DIGEST.fullmatch(self.digest))


@dataclass(frozen=True, slots=True)
class Arg:
    """A build argument; `value` None takes the one from outside."""

    name: str
    value: str | None = None


@dataclass(frozen=True, slots=True)
class Env:
    """Variables of the image, in order. A value may refer to others as `${NAME}` only where `expand` names them."""

    values: tuple[tuple[str, str], ...]
    expand: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Mount:
    """A mount of one Run: `cache` at `target`, or `secret` named `id` at `target` (absent when the builder was given none)."""

    kind: str
    target: str
    id: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """Shell commands of one step, all of which must succeed."""

    commands: tuple[str, ...]
    mounts: tuple[Mount, ...] = ()


@dataclass(frozen=True, slots=True)
class Copy:
    """Files from the build context, or from the stage `stage`."""

    sources: tuple[str, ...]
    target: str
    stage: str = ""


@dataclass(frozen=True, slots=True)
class Workdir:
    """The folder in which the container starts; it must exist by then."""

    path: str


@dataclass(frozen=True, slots=True)
class User:
    """Who runs in the container, by numbers: a name would need a look-up that some engines refuse."""

    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class Cmd:
    """What the container runs when it is told nothing."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entrypoint:
    """What the container always runs."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Label:
    """Metadata of the image, in order."""

    values: tuple[tuple[str, str], ...]


Instruction = Comment | From | Arg | Env | Run | Copy | Workdir | User | Cmd | Entrypoint | Label


@dataclass(frozen=True, slots=True)
class Stage:
    """A From and what follows it."""

    base: From
    steps: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class Recipe:
    """An image: global arguments, stages (the last one is the image), the labels, which come last."""

    header: tuple[str, ...]
    arguments: tuple[Arg, ...]
    stages: tuple[Stage, ...]
    labels: Label

    def instructions(self) -> Iterator[Instruction]:
        """Every instruction in order."""
        yield from self.arguments
        for stage in self.stages:
            yield stage.base
            yield from stage.steps
        yield self.labels
