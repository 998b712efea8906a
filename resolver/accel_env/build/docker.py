"""Docker: BuildKit by the command line (the SDK has no BuildKit), everything else by the SDK.

Containers are run by the command line as well: plans hold their device flags as words of `docker run`.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from accel_env.build.containers import run_container
from accel_env.build.engine import BuildRequest, Built, EngineInfo, ImageDetails, Ran, RunRequest, Watcher
from accel_env.build.failures import build_error
from accel_env.build.process import stream
from accel_env.build.progress import Board, Decoder, Plain, RawJson
from accel_env.errors import BuildError

if TYPE_CHECKING:
    import docker
    from docker.models.images import Image

SECONDS = 600  # that a single answer of the engine may take: loading a large image is one answer
_UNWANTED = ("BUILDX_GIT_LABELS", "BUILDX_GIT_INFO")  # would write the checkout of the moment into the image
EPOCH = "SOURCE_DATE_EPOCH"


class DockerEngine:
    """See Engine. `program`: the command line."""

    def __init__(self, program: str = "docker") -> None:
        self._program = program

    def info(self) -> EngineInfo:
        """See Engine."""
        with self._client() as client:
            version = client.version()
        ours = self._ask("--version").removeprefix("Docker version ").partition(",")[0]
        return EngineInfo("docker", str(version["Version"]), ours, str(version.get("Arch", "")))

    def build(self, request: BuildRequest, watch: Watcher) -> Built:
        """See Engine."""
        info = self.info()
        kind = self._builder()
        board = Board(watch)
        decoder: Decoder = RawJson(board) if kind == "rawjson" else Plain(board)
        with tempfile.TemporaryDirectory(prefix="accel-env-") as scratch:
            answer = os.path.join(scratch, "answer")
            words = [self._program, *build_words(request, kind, answer)]
            status = stream(words, decoder.feed, self._environment(request))
            if status:
                raise build_error(board.failure(), board.talk, f"{info.name} {info.version}")
            told = _read_answer(answer)
        return self._checked(request, info, told)

    def _checked(self, request: BuildRequest, info: EngineInfo, told: dict[str, str]) -> Built:
        """What was built, its configuration brought to the epoch where the builder is too old to know one."""
        ref = request.push or request.tag
        image = self.inspect(ref)
        manifest = told["manifest"] if told["manifest"] != told["config"] else ""
        config = told["config"] or (image.id if image else manifest)
        if image is None or request.epoch is None or _seconds(image.created) == request.epoch:
            notes = () if image else ("the image is not in this engine's store, so its layers are not in the record",)
            return Built(ref, config, manifest, notes)
        if request.push:
            raise BuildError(
                "engine-too-old",
                f"{info.name} {info.version} knows no {EPOCH}: what it pushed has today's date in it",
                hint="build with Docker 23 or newer; or build without --push, then tag and push the result",
            )
        from accel_env.build.dated import redate

        return Built(
            ref,
            redate(self, ref, image.id, request.epoch),
            notes=(f"{info.name} {info.version} knows no {EPOCH}: the image's configuration was brought to it afterwards",),
        )

    def inspect(self, ref: str) -> ImageDetails | None:
        """See Engine."""
        with self._client() as client:
            image = _image(client, ref)
        return None if image is None else details(image.attrs)

    def run(self, request: RunRequest) -> Ran:
        """See Engine."""
        return run_container(self._program, request, self._discard)

    def save(self, ref: str) -> Iterator[bytes]:
        """See Engine."""
        with self._client() as client:
            image = _image(client, ref)
            if image is None:
                raise BuildError("no-image", f"the engine has no image {ref}", hint="build it first")
            yield from image.save(named=False)

    def load(self, path: str) -> str:
        """See Engine."""
        with self._client() as client, open(path, "rb") as archive:
            return str(client.images.load(archive)[0].id)

    def tag(self, ref: str, name: str) -> None:
        """See Engine."""
        with self._client() as client:
            client.api.tag(ref, *_split(name), force=True)

    def remove(self, ref: str) -> None:
        """See Engine."""
        import docker.errors

        with self._client() as client, contextlib.suppress(docker.errors.NotFound):
            client.images.remove(ref)

    def _discard(self, container: str) -> None:
        """Removes a container, running or not; nothing happens when it is gone."""
        import docker.errors

        with self._client() as client, contextlib.suppress(docker.errors.NotFound):
            client.api.remove_container(container, force=True, v=True)

    @contextlib.contextmanager
    def _client(self) -> Iterator[docker.DockerClient]:
        """The SDK's client, on the endpoint that the command line uses; its errors are worded."""
        import docker
        import docker.errors
        import requests

        endpoint = os.environ.get("DOCKER_HOST") or self._ask("context", "inspect", "--format", "{{.Endpoints.docker.Host}}")
        settings = {**os.environ, **({"DOCKER_HOST": endpoint} if endpoint else {})}
        try:
            with contextlib.closing(docker.from_env(version="auto", timeout=SECONDS, environment=settings)) as client:
                yield client
        except docker.errors.APIError as problem:
            raise BuildError("engine-refused", f"the engine refused: {problem.explanation or problem}") from None
        except (docker.errors.DockerException, requests.RequestException) as problem:
            raise BuildError(
                "no-engine",
                "no Docker engine answers",
                context=(str(problem)[:300],),
                hint="start it, or name its address in DOCKER_HOST; `docker version` must show a server",
            ) from None

    def _builder(self) -> str:
        """How BuildKit is driven here: `rawjson`, `plain` (older buildx) or `builtin` (Docker 20.10 and before)."""
        words = self._ask("buildx", "build", "--help")
        if "--metadata-file" in words:
            return "rawjson" if "rawjson" in words else "plain"
        if "--secret" in self._ask("build", "--help", DOCKER_BUILDKIT="1"):
            return "builtin"
        raise BuildError(
            "no-buildx",
            "this docker has no buildx, without which it cannot build the Dockerfile",
            hint="install the package docker-buildx (docker-buildx-plugin in Docker's own packages)",
        )

    def _environment(self, request: BuildRequest) -> dict[str, str]:
        settings = {name: value for name, value in os.environ.items() if name not in (*_UNWANTED, EPOCH)}
        settings |= {"DOCKER_BUILDKIT": "1", "BUILDX_NO_DEFAULT_ATTESTATIONS": "1"}
        return settings if request.epoch is None else {**settings, EPOCH: str(request.epoch)}

    def _ask(self, *words: str, **settings: str) -> str:
        """What the command line answers; empty when it does not know the words."""
        try:
            done = subprocess.run(
                [self._program, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                env={**os.environ, **settings}, check=False, timeout=30,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return done.stdout.strip() if done.returncode == 0 else ""


def _image(client: docker.DockerClient, ref: str) -> Image | None:
    import docker.errors

    try:
        return client.images.get(ref)
    except docker.errors.NotFound:
        return None


def build_words(request: BuildRequest, kind: str, answer: str) -> list[str]:
    """The words after `docker`; the builder writes its answer to the file `answer`."""
    words = ["build"] if kind == "builtin" else ["buildx", "build", "--provenance=false", "--metadata-file", answer]
    if kind == "builtin":
        words += ["--iidfile", answer]
    words += ["--progress", "rawjson" if kind == "rawjson" else "plain", "--tag", request.push or request.tag]
    for flag, value in (("--platform", request.platform), ("--builder", request.builder), ("--network", request.network)):
        words += [flag, value] if value else []
    for secret in request.secrets:
        words += ["--secret", secret]
    if request.epoch is not None:
        words += ["--build-arg", f"{EPOCH}={request.epoch}"]
    words += ["--no-cache"] if request.no_cache else []
    words += ["--push"] if request.push else [] if kind == "builtin" else ["--load"]
    return [*words, request.context]


def details(found: dict[str, Any]) -> ImageDetails:
    """An image from what `docker image inspect` tells (podman tells the same)."""
    config = found.get("Config") or {}
    return ImageDetails(
        str(found["Id"]) if str(found["Id"]).startswith("sha256:") else f"sha256:{found['Id']}",
        tuple(found.get("RootFS", {}).get("Layers") or ()),
        str(found.get("Created") or ""),
        int(found.get("Size") or 0),
        "/".join(str(found[key]) for key in ("Os", "Architecture", "Variant") if found.get(key)),
        str(config.get("User") or ""),
        tuple(config.get("Env") or ()),
        tuple(sorted((config.get("Labels") or {}).items())),
    )


def _read_answer(path: str) -> dict[str, str]:
    """Digests of configuration and manifest, from a metadata file or an id file; empty where the builder told none."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read().strip()
    except OSError:
        text = ""
    if text.startswith("sha256:"):
        return {"config": text, "manifest": ""}
    told = json.loads(text) if text else {}
    return {"config": told.get("containerimage.config.digest", ""), "manifest": told.get("containerimage.digest", "")}


def _seconds(created: str) -> int | None:
    """The moment of an image's `created`, in whole seconds; None for what is no moment."""
    import datetime

    head, _, _ = created.removesuffix("Z").partition(".")
    try:
        return int(datetime.datetime.fromisoformat(head[:19]).replace(tzinfo=datetime.timezone.utc).timestamp())
    except ValueError:
        return None


def _split(name: str) -> tuple[str, str]:
    """Repository and tag."""
    head, slash, tail = name.rpartition("/")
    repository, _, tag = tail.partition(":")
    return f"{head}{slash}{repository}", tag or "latest"
