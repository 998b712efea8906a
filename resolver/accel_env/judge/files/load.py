"""Which parser reads a file, and the files that it names."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace

from accel_env.errors import InputError
from accel_env.judge.files.values import Document, Install, Scene, Step
from accel_env.system.files import read_file

LIMIT = 64 << 20  # bytes of a file that is read at all
_KINDS: tuple[tuple[str, str], ...] = (
    (r"(?:.*[._-])?(?:docker|container)file(?:[._-].*)?", "dockerfile"),
    (r"pylock(?:\.[^.]+)?\.toml", "pylock"),
    (r"uv\.lock", "uv"),
    (r"poetry\.lock", "poetry"),
    (r"pixi\.lock", "pixi-lock"),
    (r"pixi\.toml", "pixi"),
    (r"pyproject\.toml", "pyproject"),
    (r"(?:docker-)?compose.*\.ya?ml", "compose"),
    (r"(?:.*[._-])?(?:environment|conda|env)(?:[._-].*)?\.ya?ml", "environment"),
    (r".*\.(?:txt|in|pip)|.*requirements.*\.lock|requirements\..*", "requirements"),
)
_YAML = re.compile(r".*\.ya?ml")
_INSTRUCTION = re.compile(r"\s*(?:#[^\n]*\n\s*)*(?:FROM|ARG)\s", re.IGNORECASE)
KNOWN = (
    "requirements files, pylock.toml, uv.lock, poetry.lock, pyproject.toml, environment.yml, pixi files, Dockerfiles and compose"
)


def load(path: str, arch: str = "x86_64") -> Document:
    """The file as scenes, for a CPU architecture. InputError with file and line where it is broken or of no known kind."""
    text = _text(path)
    kind = kind_of(path, text)
    if kind == "dockerfile":
        return _dockerfile(path, text, arch, {})
    if kind == "compose":
        from accel_env.judge.files import compose

        return compose.read(text, path, lambda name, arguments, target: _built(name, arch, arguments, target))
    return _plain(kind, path, text)


def kind_of(path: str, text: str) -> str:
    """The kind of a file, by its name and then by its content. InputError for a file of no known kind."""
    name = os.path.basename(path)
    for pattern, kind in _KINDS:
        if re.fullmatch(pattern, name, re.IGNORECASE):
            return kind
    if _YAML.fullmatch(name):
        from accel_env.judge.files.yamltext import parse

        root = parse(text, path)
        return "compose" if root.get("services") else "environment"
    if _INSTRUCTION.match(text):
        return "dockerfile"
    raise InputError("unknown-file", f"{path} is no file that `check` can read", hint=f"it reads {KNOWN}")


def _text(path: str) -> str:
    try:
        if os.path.getsize(path) > LIMIT:
            raise InputError("file-too-large", f"{path} is larger than {LIMIT >> 20} MiB", hint="name the file that people write")
    except OSError:
        pass  # reading says it better
    if os.path.isdir(path):
        raise InputError("file-unreadable", f"{path} is a directory", hint=f"name files: {KNOWN}")
    return read_file(path)


def _plain(kind: str, path: str, text: str) -> Document:
    if kind in ("pylock", "uv", "poetry"):
        from accel_env.judge.files import locks

        return {"pylock": locks.pylock, "uv": locks.uv, "poetry": locks.poetry}[kind](text, path)
    if kind == "pyproject":
        from accel_env.judge.files import pyproject

        return pyproject.read(text, path)
    if kind == "requirements":
        return _requirements(path, text)
    from accel_env.judge.files import condalike

    if kind == "environment":
        return Document(path, "environment.yml", (condalike.environment(text, path),))
    if kind == "pixi-lock":
        return condalike.pixi_lock(text, path)
    from accel_env.judge.files.tomltext import Lines, parse

    return Document(path, "pixi.toml", (condalike.pixi(parse(text, path), path, Lines(text)),))


def _requirements(path: str, text: str) -> Document:
    from accel_env.judge.files import requirements

    listed = requirements.read(text, path, _or_none)
    pinned = bool(listed.wanted) and all(w.hashed for w in listed.wanted)
    step = requirements.as_install(listed, "pip", f"{path}:1")
    step = replace(step, hashes=step.hashes or pinned, fresh=True, skipped=tuple(listed.missing))
    places = tuple(listed.options.items())
    scene = Scene(path, path, "list", (step,) if listed.wanted else (), options=dict(places))
    return Document(path, "requirements", (scene,), tuple(listed.files[1:]))


def _or_none(path: str) -> str | None:
    try:
        return read_file(path) if os.path.isfile(path) and os.path.getsize(path) <= LIMIT else None
    except (InputError, OSError, ValueError):
        return None


def _finder(path: str) -> _Find:
    return _Find(os.path.dirname(path))


class _Find:
    """Files that a Dockerfile names: beside it, in the folder where the program runs, then in the folders between."""

    def __init__(self, folder: str) -> None:
        self.folders = list(dict.fromkeys((folder, *_above(folder))))

    def __call__(self, name: str) -> tuple[str, str] | None:
        """(text, path) of a file; None where there is none."""
        if not name or "\0" in name:
            return None
        for folder in self.folders:
            path = os.path.normpath(os.path.join(folder, name.lstrip("/")))
            text = _or_none(path)
            if text is not None:
                return text, path
        return None


def _above(folder: str) -> list[str]:
    """The folders above one, as long as they lie in the folder where the program runs."""
    found: list[str] = []
    current = folder
    while current and not os.path.isabs(current) and not current.startswith(".."):
        current = os.path.dirname(current)
        found.append(current)
    return found


def _dockerfile(path: str, text: str, arch: str, arguments: Mapping[str, str]) -> Document:
    from accel_env.judge.files import dockerfile
    from accel_env.judge.files.installers import Context

    find = _finder(path)

    def lock(tool: str) -> tuple[Step, ...]:
        found = find(f"{tool}.lock")
        if found is None:
            return ()
        steps = _plain(tool, found[1], found[0]).scenes[0].steps
        return tuple(replace(s, fresh=True) if isinstance(s, Install) else s for s in steps)

    return dockerfile.read(text, path, Context(path, find, lock), arch, arguments)


def _built(path: str, arch: str, arguments: Mapping[str, str], target: str) -> Scene | None:
    text = _or_none(path)
    if text is None:
        return None
    scenes = _dockerfile(path, text, arch, arguments).scenes
    wanted = next((s for s in scenes if target and s.title == f"stage {target.lower()}"), None)
    return wanted or next((s for s in scenes if s.final), None)
