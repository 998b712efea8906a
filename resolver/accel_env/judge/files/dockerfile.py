"""Dockerfiles: instructions -> stages, each a scene with all steps from its first ancestor on."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from accel_env.judge.files.commands import commands
from accel_env.judge.files.dockertext import Instruction, instructions
from accel_env.judge.files.errors import broken
from accel_env.judge.files.installers import Context, steps
from accel_env.judge.files.script import Source
from accel_env.judge.files.substitute import expand
from accel_env.judge.files.values import UNKNOWN, Base, Document, Install, Removed, Scene, Step, Tools, Variable

_FROM = re.compile(r"(\S+)(?:\s+[Aa][Ss]\s+(\S+))?")
_REFERENCE = re.compile(r"(?P<name>.+?)(?::(?P<tag>[\w][\w.-]{0,127}))?(?:@(?P<digest>\w+:[0-9a-fA-F]{32,}))?")
_ARCHES = {"x86_64": "amd64", "aarch64": "arm64"}
# Folders that hold an environment: what is copied from there was installed elsewhere, with the tools of that stage.
_ENVIRONMENTS = re.compile(
    r"venv|site-packages|dist-packages|conda|/\.local|^/usr/local(?:/lib(?:/python[\d.]*)?)?/?$|^/(?:install|opt|app|workspace|usr|root)?/?$"
)


@dataclass(slots=True)
class _Stage:
    """A stage while it is read."""

    name: str
    base: Base
    line: int
    steps: list[Step] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    copied: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    shell: bool = True


class _Reader:
    def __init__(self, file: str, context: Context, arch: str, arguments: Mapping[str, str]) -> None:
        self.file, self.context, self.arch = file, context, arch
        self.arguments = dict(arguments)
        self.platform = {
            "TARGETPLATFORM": f"linux/{_ARCHES.get(arch, arch)}", "TARGETARCH": _ARCHES.get(arch, arch), "TARGETOS": "linux",
            "TARGETVARIANT": "", "BUILDPLATFORM": f"linux/{_ARCHES.get(arch, arch)}", "BUILDARCH": _ARCHES.get(arch, arch),
            "BUILDOS": "linux",
        }  # fmt: skip
        self.globals: dict[str, str] = {}
        self.stages: list[_Stage] = []
        self.escape = "\\"

    def take(self, one: Instruction) -> None:
        """One instruction."""
        if one.keyword == "FROM":
            self._from(one)
        elif not self.stages:
            if one.keyword != "ARG":
                raise broken(self.file, one.line, f"{one.keyword} stands before the first FROM", "Dockerfile")
            self._arg(one, self.globals, {**self.platform, **self.globals})
        else:
            handler = {"ARG": self._stage_arg, "ENV": self._env, "RUN": self._run, "COPY": self._copy, "ADD": self._copy}
            if one.keyword in handler:
                handler[one.keyword](one, self.stages[-1])

    def _where(self, line: int) -> str:
        return f"{self.file}:{line}"

    def _from(self, one: Instruction) -> None:
        text = expand(one.text.strip(), {**self.platform, **self.globals}, escape=self.escape, unset=UNKNOWN)
        match = _FROM.match(text)
        if match is None:
            raise broken(self.file, one.line, "FROM names no image", "Dockerfile")
        name = (match[2] or "").lower()
        platform = expand(dict(one.flags).get("platform", ""), {**self.platform, **self.globals}, unset=UNKNOWN)
        parent = next((s for s in reversed(self.stages) if s.name and s.name == match[1].lower()), None)
        if parent is None:
            base = base_of(match[1], self._where(one.line), "" if UNKNOWN in platform else platform)
            self.stages.append(_Stage(name, base, one.line))
            return
        stage = _Stage(name, parent.base, one.line, list(parent.steps))
        # ENV is inherited, ARG is not
        stage.variables = {s.name: s.value for s in parent.steps if isinstance(s, Variable)}
        stage.copied, stage.settings = dict(parent.copied), dict(parent.settings)
        self.stages.append(stage)

    def _arg(self, one: Instruction, into: dict[str, str], known: Mapping[str, str]) -> None:
        for word in split(one.text, known, self.escape):
            name, equals, value = word.partition("=")
            if name in self.arguments:
                into[name] = self.arguments[name]
            elif equals:
                into[name] = value
            elif name in self.platform:
                into[name] = self.platform[name]
            elif name in self.globals:
                into[name] = self.globals[name]
            else:
                into.setdefault(name, UNKNOWN)

    def _stage_arg(self, one: Instruction, stage: _Stage) -> None:
        self._arg(one, stage.variables, stage.variables)

    def _env(self, one: Instruction, stage: _Stage) -> None:
        text = one.text.strip()
        words = split(text, stage.variables, self.escape)
        if words and "=" not in words[0]:  # the old form: ENV NAME the rest
            name, _, rest = text.partition(" ")
            words = [f"{name}={expand(rest.strip(), stage.variables, escape=self.escape)}"]
        for word in words:
            name, _, value = word.partition("=")
            stage.variables[name] = value
            stage.steps.append(Variable(name, value, self._where(one.line)))

    def _run(self, one: Instruction, stage: _Stage) -> None:
        context = replace(self.context, find=lambda name: self._find(name, stage))
        for source in self._scripts(one):
            for command in commands(source, stage.variables):
                found = steps(replace(command, variables={**stage.settings, **command.variables}), context)
                # a setting of pip's own counts for later commands, and is no variable of the image
                stage.settings.update({step.name: step.value for step in found if isinstance(step, Variable)})
                stage.steps += [step for step in found if not isinstance(step, Variable)]

    def _scripts(self, one: Instruction) -> list[Source]:
        text = one.text.strip()
        if text.startswith("["):
            words = _listed(text)
            if words is not None:
                return [Source(" ".join(_quoted(word) for word in words), (0,), (one.line,))]
        if one.bodies and text.startswith("<<"):
            return [body for _, body in one.bodies]
        return [one.source]

    def _find(self, name: str, stage: _Stage) -> tuple[str, str] | None:
        """The file behind a name that a command uses: what was copied there, else one of that name beside the Dockerfile."""
        base = posixpath.basename(name)
        for candidate in (stage.copied.get(base, ""), name.lstrip("/"), base):
            found = self.context.find(candidate) if candidate and UNKNOWN not in candidate else None
            if found:
                return found
        return None

    def _copy(self, one: Instruction, stage: _Stage) -> None:
        words = _listed(one.text.strip()) or split(one.text, stage.variables, self.escape)
        if len(words) < 2:
            return
        sources, target = words[:-1], words[-1]
        origin = expand(dict(one.flags).get("from", ""), {**self.globals, **stage.variables}, unset=UNKNOWN)
        if not origin:
            for source in sources:
                name = target if not target.endswith(("/", ".")) and len(sources) == 1 else source
                stage.copied[posixpath.basename(name)] = source
                stage.copied.setdefault(posixpath.basename(source), source)
            return
        where = self._where(one.line)
        other = next((s for s in reversed(self.stages[:-1]) if s.name and s.name == origin.lower()), None)
        if other is None and origin.isdigit() and int(origin) < len(self.stages) - 1:
            other = self.stages[int(origin)]
        if other is None:
            stage.steps.append(Tools(tuple(sources), where))
            return
        stage.steps.append(Tools(tuple(sources), where))
        whole = target == "/" and any(source.endswith("/") for source in sources)
        if whole or any(_ENVIRONMENTS.search(source) for source in sources):
            stage.steps += _carried(other.steps)


def _carried(steps: Iterable[Step]) -> Iterator[Step]:
    """What an environment takes along when it is copied into another stage: its packages and its Python, no compiler."""
    for step in steps:
        if isinstance(step, Install):
            yield replace(step, built=True)
        elif isinstance(step, Tools):
            mine = tuple(name for name in step.names if name == "venv" or name.startswith("python"))
            if mine:
                yield replace(step, names=mine)
        elif isinstance(step, Removed):
            yield step


def read(text: str, file: str, context: Context, arch: str, arguments: Mapping[str, str] | None = None) -> Document:
    """The stages of a Dockerfile for a CPU architecture. InputError with file and line for what Docker refuses too."""
    reader = _Reader(file, context, arch, arguments or {})
    found, reader.escape = instructions(text, file)
    for one in found:
        reader.take(one)
    last = len(reader.stages) - 1
    scenes = tuple(
        Scene(f"stage {stage.name or number}", file, "image", tuple(stage.steps), stage.base, final=number == last)
        for number, stage in enumerate(reader.stages)
    )
    return Document(file, "Dockerfile", scenes)


def base_of(reference: str, where: str, platform: str = "") -> Base:
    """An image reference in parts; `docker.io/library/` is left out, as people leave it out."""
    if UNKNOWN in reference:
        return Base(reference.replace(UNKNOWN, "..."), where, platform=platform)
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        return Base(reference, where, platform=platform)
    name = match["name"]
    for registry in ("docker.io/", "index.docker.io/", "registry-1.docker.io/", "library/"):
        name = name.removeprefix(registry)
    return Base(reference, where, name, match["tag"] or "", match["digest"] or "", platform)


def split(text: str, variables: Mapping[str, str], escape: str = "\\") -> list[str]:
    """Words of ENV, ARG and COPY: blanks separate, quotes hold together, variables are put in except in single quotes."""
    found: list[str] = []
    parts: list[str] = []
    begun, place = False, 0
    while place < len(text):
        char = text[place]
        if char in " \t\r\n":
            if begun:
                found.append("".join(parts))
            parts, begun = [], False
            place += 1
        elif char in "'\"":
            end = _end_of_quote(text, place, escape)
            inner = text[place + 1 : end]
            parts.append(inner if char == "'" else expand(inner, variables, escape=escape).replace(f'{escape}"', '"'))
            begun, place = True, end + 1
        elif char == escape and place + 1 < len(text):
            parts.append(text[place + 1])
            begun, place = True, place + 2
        else:
            end = place + 1
            while end < len(text) and text[end] not in " \t\r\n'\"" and text[end] != escape:
                end += 1
            parts.append(expand(text[place:end], variables, escape=escape))
            begun, place = True, end
    if begun:
        found.append("".join(parts))
    return found


def _end_of_quote(text: str, place: int, escape: str) -> int:
    mark, place = text[place], place + 1
    while place < len(text) and text[place] != mark:
        place += 2 if text[place] == escape and mark == '"' else 1
    return min(place, len(text))


def _listed(text: str) -> list[str] | None:
    """The words of the JSON form; None where it is not that form."""
    if not text.startswith("["):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list) and all(isinstance(word, str) for word in value) else None


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\"'\"'") + "'"


def names(found: Sequence[Step]) -> tuple[str, ...]:
    """Everything that steps other than installs of Python packages bring."""
    return tuple(name for step in found if isinstance(step, Tools) for name in step.names)
