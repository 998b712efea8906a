"""A recipe as the text of a Dockerfile that every builder since 2020 reads: no syntax line, no heredoc, no --link."""

from __future__ import annotations

import json
import re
from functools import singledispatch

from accel_env.errors import UsageError
from accel_env.render.recipe import (
    Arg,
    Cmd,
    Comment,
    Copy,
    Entrypoint,
    Env,
    From,
    Instruction,
    Label,
    Mount,
    Recipe,
    Run,
    User,
    Workdir,
)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LABEL_KEY = re.compile(r"[a-z][a-z0-9.-]*[a-z0-9]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def dockerfile(recipe: Recipe) -> str:
    """The Dockerfile. UsageError for a text that no Dockerfile can hold (a line break in a value)."""
    blocks = ["\n".join([*(f"# {_one_line(line)}" for line in recipe.header), *(text(item) for item in recipe.arguments)])]
    for place, stage in enumerate(recipe.stages):
        steps = [stage.base, *stage.steps, *((recipe.labels,) if place == len(recipe.stages) - 1 else ())]
        blocks.append("\n".join(text(step) for step in steps))
    return "\n\n".join(blocks) + "\n"


@singledispatch
def text(step: Instruction) -> str:
    """One instruction as text."""
    raise TypeError(f"no text for {type(step).__name__}")


@text.register
def _(step: Comment) -> str:
    return f"# {_one_line(step.text)}"


@text.register
def _(step: From) -> str:
    pinned = f"{step.ref}@{step.digest}" if step.digest else step.ref
    return f"FROM {pinned} AS {step.stage}" if step.stage else f"FROM {pinned}"


@text.register
def _(step: Arg) -> str:
    return f"ARG {_name(step.name)}" if step.value is None else f"ARG {_name(step.name)}={quoted(step.value)}"


@text.register
def _(step: Env) -> str:
    pairs = [f"{_name(key)}={quoted(value, step.expand)}" for key, value in step.values]
    return "ENV " + " \\\n    ".join(pairs)


@text.register
def _(step: Run) -> str:
    mounts = [f"--mount={_mount(mount)}" for mount in step.mounts]
    body = " && \\\n    ".join(_one_line(command) for command in step.commands)
    return "RUN " + " \\\n    ".join([*mounts, body])


@text.register
def _(step: Copy) -> str:
    source = [f"--from={step.stage}"] if step.stage else []
    return " ".join(["COPY", *source, *step.sources, step.target])


@text.register
def _(step: Workdir) -> str:
    return f"WORKDIR {step.path}"


@text.register
def _(step: User) -> str:
    return f"USER {step.uid}:{step.gid}"


@text.register
def _(step: Cmd) -> str:
    return f"CMD {json.dumps(list(step.words))}"


@text.register
def _(step: Entrypoint) -> str:
    return f"ENTRYPOINT {json.dumps(list(step.words))}"


@text.register
def _(step: Label) -> str:
    return "LABEL " + " \\\n      ".join(f"{_label_key(key)}={quoted(value)}" for key, value in step.values)


def quoted(value: str, expand: tuple[str, ...] = ()) -> str:
    """A double-quoted word in which nothing is expanded but `${NAME}` of the names in `expand`."""
    if _CONTROL.search(value):
        raise UsageError("unprintable-value", f"a line break or control character cannot stand in a Dockerfile: {value!r}")
    safe = value.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$")
    for name in expand:
        safe = safe.replace(f"\\${{{name}}}", f"${{{name}}}")
    return f'"{safe}"'


def _mount(mount: Mount) -> str:
    return ",".join([f"type={mount.kind}", *([f"id={mount.id}"] if mount.id else []), f"target={mount.target}"])


def _name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise UsageError("bad-variable", f"{name!r} is no name of an environment variable")
    return name


def _label_key(key: str) -> str:
    if not _LABEL_KEY.fullmatch(key):
        raise UsageError("bad-label", f"{key!r} is no key of an image label", hint="small letters, digits, dots and hyphens")
    return key


def _one_line(line: str) -> str:
    """Text in which nothing can start a new instruction."""
    return " ".join(line.split())
