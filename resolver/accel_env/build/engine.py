"""The port to a container engine, and the frozen values that pass through it.

Every method raises BuildError (6) when the engine refuses or is not there; an interrupt (KeyboardInterrupt) first stops what the
engine was doing, so that neither a half image nor a container is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

STARTED, DONE, CACHED, FAILED = "started", "done", "cached", "failed"


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a build changed its state: `started`, `done`, `cached` or `failed`. `seconds`: how long it took so far.

    `number` counts the steps of one build from 1 in the order in which they were seen.
    """

    number: int
    name: str
    state: str
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class StepLog:
    """One line that a step printed."""

    number: int
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class StepBytes:
    """How far a transfer of a step has come: bytes so far, and in all (0 where nobody knows)."""

    number: int
    name: str
    what: str
    current: int
    total: int


Event = Step | StepLog | StepBytes
Watcher = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """Which engine answers. `name` is `docker` or `podman`; `version` of the daemon (or program), `client` of what we call.

    `architecture`: of the machine that builds by default, in the engine's words (`amd64`).
    """

    name: str
    version: str
    client: str
    architecture: str = ""


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """What to build. `context`: the folder with the Dockerfile. `tag`: the name of the result.

    `epoch`: seconds that stand for the time of everything, None where the Dockerfile names none. `secrets`: words of
    `--secret` (`id=ca,src=FILE`). `push`: a reference in a registry to push to, and then the name of the result instead of `tag`.
    `platform`, `builder`, `network`: passed through; empty for the engine's own.
    """

    context: str
    tag: str
    epoch: int | None = None
    no_cache: bool = False
    platform: str = ""
    builder: str = ""
    network: str = ""
    push: str = ""
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Built:
    """What a build gave. `config`: digest of the image's configuration, the promise across machines; `manifest`: digest of the
    manifest, the same only for one version of the builder, empty where there is none. `notes`: what the user should know."""

    ref: str
    config: str
    manifest: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImageDetails:
    """An image in the engine's store. `layers`: diffIDs, the digests of the unpacked layers, lowest first; `size` in bytes.

    `created` is the text of its configuration; `platform` is `linux/amd64`; `user` is what it runs as.
    """

    id: str
    layers: tuple[str, ...]
    created: str
    size: int
    platform: str
    user: str = ""
    env: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What to run in a container that is removed afterwards. `command`: empty for the image's own. `words`: further words of
    `docker run`, as plans hold them (`--gpus all`). `timeout`: seconds, then the container is killed.

    `mounts`: (folder or file here, path in the container), read-only. `network`: `none` unless said otherwise.
    """

    image: str
    command: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    mounts: tuple[tuple[str, str], ...] = ()
    network: str = "none"
    user: str = ""
    read_only: bool = False
    entrypoint: str | None = None
    timeout: float = 600.0


@dataclass(frozen=True, slots=True)
class Ran:
    """How a container ended. `status` is None when it was killed for its time; streams are text, undecodable bytes replaced."""

    status: int | None
    stdout: str
    stderr: str
    seconds: float

    @property
    def timed_out(self) -> bool:
        """Whether the time ran out."""
        return self.status is None


class Engine(Protocol):
    """A container engine."""

    def info(self) -> EngineInfo:
        """Which engine answers; BuildError when none does."""
        ...

    def build(self, request: BuildRequest, watch: Watcher) -> Built:
        """Build a folder; `watch` hears of every step. BuildError names the failed step and shows its last lines."""
        ...

    def inspect(self, ref: str) -> ImageDetails | None:
        """An image of the store, by name or id; None when it is not there."""
        ...

    def run(self, request: RunRequest) -> Ran:
        """Run a command in a new container and remove it."""
        ...

    def save(self, ref: str) -> Iterator[bytes]:
        """The image as the stream of a tar archive (docker-archive or OCI layout)."""
        ...

    def load(self, path: str) -> str:
        """Load the tar archive at `path`; returns the id of the image."""
        ...

    def tag(self, ref: str, name: str) -> None:
        """Give an image a further name."""
        ...

    def remove(self, ref: str) -> None:
        """Take a name away, and with the last one the image; nothing happens when it is not there."""
        ...
