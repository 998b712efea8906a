"""Podman (whose builder is buildah): the same port, all by its command line, which answers in Docker's JSON."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from typing import Any

from accel_env.build.containers import run_container
from accel_env.build.docker import EPOCH, details
from accel_env.build.engine import BuildRequest, Built, EngineInfo, ImageDetails, Ran, RunRequest, Watcher
from accel_env.build.failures import build_error
from accel_env.build.process import stream
from accel_env.build.progress import Board, Buildah
from accel_env.errors import BuildError

_LIMIT = 1 << 20  # open files and processes that podman gives to a container unless told otherwise


class PodmanEngine:
    """See Engine. `program`: the command line; `options`: words before the verb (`--root DIR`)."""

    def __init__(self, program: str = "podman", options: tuple[str, ...] = ()) -> None:
        self._words = (program, *options)

    def info(self) -> EngineInfo:
        """See Engine."""
        found = json.loads(self._ask("version", "--format", "json"))
        client = found.get("Client") or {}
        server = found.get("Server") or client
        return EngineInfo(
            "podman",
            str(server.get("Version", "")),
            str(client.get("Version", "")),
            str(server.get("OsArch", "")).partition("/")[2],
        )

    def build(self, request: BuildRequest, watch: Watcher) -> Built:
        """See Engine."""
        info = self.info()
        if request.builder:
            raise BuildError("no-builders", "podman has no named builders", hint="leave --builder out, or use Docker's buildx")
        board = Board(watch)
        decoder = Buildah(board)
        by_epoch = "--source-date-epoch" in self._ask("build", "--help")
        with tempfile.TemporaryDirectory(prefix="accel-env-") as scratch:
            answer = os.path.join(scratch, "id")
            words = [*self._words, *build_words(request, by_epoch, answer), *limits()]
            status = self._stream([*words, request.context], decoder)
            if status:
                raise build_error(board.failure(), board.talk, f"{info.name} {info.version}")
            decoder.finish()
            with open(answer, encoding="utf-8") as file:
                config = file.read().strip()
        if request.push:
            self._ask("push", request.push)
        return Built(request.push or request.tag, config if config.startswith("sha256:") else f"sha256:{config}")

    def _stream(self, words: list[str], decoder: Buildah) -> int:
        """The status of the builder. An interrupted one leaves its working containers: those that it made are removed."""
        before = self._working()
        try:
            return stream(words, decoder.feed)
        except BaseException:
            for container in self._working() - before:
                self._discard(container)
            raise

    def _working(self) -> set[str]:
        """The working containers of builds."""
        done = self._try("ps", "--all", "--external", "--no-trunc", "--format", "{{.ID}} {{.Names}}")
        rows = (line.split() for line in done.stdout.splitlines())
        return {row[0] for row in rows if len(row) > 1 and "-working-container" in row[1]}

    def inspect(self, ref: str) -> ImageDetails | None:
        """See Engine."""
        if not self._there(ref):
            return None
        found: list[dict[str, Any]] = json.loads(self._ask("image", "inspect", ref))
        return details(found[0])

    def run(self, request: RunRequest) -> Ran:
        """See Engine."""
        program, *options = self._words
        if options:
            raise BuildError("cannot-run", "containers run with podman's own settings only")
        return run_container(program, request, self._discard, limits())

    def _discard(self, container: str) -> None:
        self._try("rm", "--force", "--ignore", container)

    def save(self, ref: str) -> Iterator[bytes]:
        """See Engine."""
        if not self._there(ref):
            raise BuildError("no-image", f"the engine has no image {ref}", hint="build it first")
        with tempfile.TemporaryDirectory(prefix="accel-env-") as scratch:
            # An existing pipe or file is refused as an output; it wants to make its own.
            path = os.path.join(scratch, "image.tar")
            self._ask("save", "--quiet", "--format", "docker-archive", "--output", path, ref)
            with open(path, "rb") as archive:
                while block := archive.read(1 << 20):
                    yield block

    def load(self, path: str) -> str:
        """See Engine."""
        loaded = self._ask("load", "--quiet", "--input", path).rpartition(": ")[2].strip()
        found = self.inspect(loaded)
        return found.id if found else loaded

    def tag(self, ref: str, name: str) -> None:
        """See Engine."""
        self._ask("tag", ref, name)

    def remove(self, ref: str) -> None:
        """See Engine."""
        if self._there(ref):
            self._ask("rmi", ref)

    def _there(self, ref: str) -> bool:
        return self._try("image", "exists", ref).returncode == 0

    def _ask(self, *words: str) -> str:
        done = self._try(*words)
        if done.returncode:
            raise BuildError(
                "engine-refused",
                f"podman {words[0]} failed with status {done.returncode}",
                context=tuple(done.stderr.splitlines()[-8:]),
            )
        return done.stdout

    def _try(self, *words: str) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                [*self._words, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
            )
        except OSError as problem:
            raise BuildError(
                "no-engine",
                f"{self._words[0]} cannot be started: {problem.strerror or problem}",
                hint="install podman, or Docker",
            ) from None


def build_words(request: BuildRequest, by_epoch: bool, answer: str) -> list[str]:
    """The words after `podman`, without the context. `by_epoch`: buildah 1.41 or newer, which knows --source-date-epoch."""
    # Docker's format would hold the host name and the ids of the moment.
    words = ["build", "--format", "oci", "--iidfile", answer, "--tag", request.push or request.tag, "--layers", "--force-rm"]
    if request.epoch is not None:
        words += ["--build-arg", f"{EPOCH}={request.epoch}"]
        flag = "--source-date-epoch" if by_epoch else "--timestamp"
        words += [flag, str(request.epoch), *(["--rewrite-timestamp"] if by_epoch else [])]
    for flag, value in (("--platform", request.platform), ("--network", request.network)):
        words += [flag, value] if value else []
    for secret in request.secrets:
        words += ["--secret", secret]
    return [*words, "--no-cache"] if request.no_cache else words


def limits() -> tuple[str, ...]:
    """Limits that podman may set: it fails at the first container where this process may not raise its own to podman's."""
    import resource

    words: list[str] = []
    # Some releases lower the number of processes for themselves first, and can then not raise it again.
    for name, number, top in (("nofile", resource.RLIMIT_NOFILE, _LIMIT), ("nproc", resource.RLIMIT_NPROC, 1 << 15)):
        hard = resource.getrlimit(number)[1]
        if hard != resource.RLIM_INFINITY and hard < _LIMIT:
            words += ["--ulimit", f"{name}={min(hard, top)}:{min(hard, top)}"]
    return tuple(words)
