"""What the parsers give: requirements, installs, base images and the like, each with file and line.

Flow: text -> Document (scenes of steps) -> what ends up installed -> Findings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

UNKNOWN = "\0"  # stands in a text for a part that only the build or the shell knows


@dataclass(frozen=True, slots=True)
class Wanted:
    """One requirement as written. `spec` is PEP 440 (a local label kept), `url` the very file that is named.

    `index` is the URL or channel that was named for this one alone. `hashed`: every file has a hash. `locked`: a lock file says
    so, nothing is left to choose. `vague`: a part of it is only known when it runs. `files`: names of wheels that a lock holds.
    `markers`: PEP 508 markers, one of which must hold (empty: always). `unless`: markers of which
    none may hold. `build` is the build string of a conda package.
    """

    name: str
    spec: str = ""
    where: str = ""
    text: str = ""
    url: str = ""
    index: str = ""
    extras: tuple[str, ...] = ()
    markers: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    hashed: bool = False
    locked: bool = False
    vague: bool = False
    files: tuple[str, ...] = ()
    build: str = ""


@dataclass(frozen=True, slots=True)
class Install:
    """One act of installing. `index` replaces PyPI, `extras` are asked beside it, `links` are pages of files.

    `tool`: `pip`, `uv`, `conda`, `poetry`. `constrained`: a constraints file holds versions. `fresh`: into an environment that
    sees nothing of what is there. `built`: only copied from where it was installed. `isolated`: a source build has its own
    environment. `maybe`: it may not run. `backend`: uv's choice of torch index. `first_index`: the first index that has a name
    wins (uv's way). `variables`: the environment of the command. `swallowed`: words that a redirection of the shell took.
    `skipped`: files that it names and that are not here. `limits`: the rows of its constraints files, as far as these are here.
    """

    tool: str
    wanted: tuple[Wanted, ...]
    where: str
    index: str = ""
    extras: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    constrained: bool = False
    upgrade: bool = False
    no_deps: bool = False
    isolated: bool = True
    pre: bool = False
    hashes: bool = False
    maybe: bool = False
    fresh: bool = False
    built: bool = False
    backend: str = ""
    first_index: bool = False
    channels: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    swallowed: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    limits: tuple[Wanted, ...] = ()


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable that the image sets."""

    name: str
    value: str
    where: str


@dataclass(frozen=True, slots=True)
class Tools:
    """Something else that the image gets: packages of the operating system, downloads, files of another image or stage."""

    names: tuple[str, ...]
    where: str


@dataclass(frozen=True, slots=True)
class Base:
    """The image that a stage or service starts from. `digest` empty: a tag alone. `platform`: `linux/amd64`, empty: not said."""

    ref: str
    where: str
    repository: str = ""
    tag: str = ""
    digest: str = ""
    platform: str = ""


@dataclass(frozen=True, slots=True)
class Removed:
    """Packages that are uninstalled."""

    names: tuple[str, ...]
    where: str


Step = Install | Variable | Tools | Removed


@dataclass(frozen=True, slots=True)
class Service:
    """How a container is started (a compose service)."""

    name: str
    where: str
    runtime: str = ""
    gpus: bool = False
    devices: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    privileged: bool = False
    variables: tuple[Variable, ...] = ()


@dataclass(frozen=True, slots=True)
class Scene:
    """One environment that a file describes: a stage, a lock, a set of dependencies.

    `kind`: `image` (everything is said), `list` (requirements: the command that reads them may say more), `lock`.
    `python`: a specifier or `X.Y`, as written. `final`: the environment that people run, not one that only builds.
    `alternative`: one of several that exclude each other, so that one that works is enough. `systems`: the only platforms that it
    is for. `options`: where a list names its `index`, `extras` and `links`.
    """

    title: str
    file: str
    kind: str
    steps: tuple[Step, ...] = ()
    base: Base | None = None
    python: str = ""
    service: Service | None = None
    final: bool = True
    alternative: bool = False
    systems: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Document:
    """A file that was read. `also`: further files that it named and that were read with it."""

    file: str
    kind: str
    scenes: tuple[Scene, ...]
    also: tuple[str, ...] = ()
