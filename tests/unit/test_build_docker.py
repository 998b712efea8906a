"""The Docker backend against a command line and an API that are scripts of this file."""

from __future__ import annotations

import hashlib
import io
import json
import sys
import tarfile
import threading
from collections.abc import Generator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from accel_env.build.containers import run_words
from accel_env.build.dated import archive, dated
from accel_env.build.docker import DockerEngine, build_words
from accel_env.build.engine import BuildRequest, RunRequest, Step
from accel_env.build.find import find_engine
from accel_env.errors import BuildError

EPOCH = 1795996800
DATE = "2026-11-30T00:00:00Z"
REQUEST = BuildRequest("CONTEXT", "a/b:1", EPOCH)

# Plays `docker`: keeps its words and settings, and does what the file `plan` beside it says.
CLI = """#!{python}
import json, os, sys
from pathlib import Path
here = Path(__file__).parent
words = sys.argv[1:]
plan = json.loads((here / "plan").read_text())
with (here / "calls").open("a") as file:
    names = ("SOURCE_DATE_EPOCH", "DOCKER_BUILDKIT", "BUILDX_GIT_LABELS")
    file.write(json.dumps([words, {{name: os.environ.get(name, "") for name in names}}]) + "\\n")
if words == ["--version"]:
    print("Docker version 26.1.5, build x")
elif words[-1] == "--help":
    print(plan["help"].get(" ".join(words[:-1]), ""))
elif "build" in words:
    print(plan["talk"], file=sys.stderr)
    for flag in ("--metadata-file", "--iidfile"):
        if flag in words and not plan["status"]:
            Path(words[words.index(flag) + 1]).write_text(plan["answer"])
    sys.exit(plan["status"])
"""
BUILDX = {"buildx build": "--metadata-file --progress (rawjson)"}
CONFIG = {"created": "2026-11-30T14:00:00.5Z", "history": [{"created": DATE}, {"created": "2026-11-30T14:00:00Z"}],
          "rootfs": {"type": "layers", "diff_ids": ["sha256:l"]}}  # fmt: skip


class Api(ThreadingHTTPServer):
    """Plays the engine: images by name, and what was asked of it."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.images: dict[str, dict[str, Any]] = {}
        self.archives: dict[str, bytes] = {}
        self.asked: list[str] = []

    def add(self, config: bytes, *names: str) -> str:
        """An image with a configuration; returns its id."""
        found = json.loads(config)
        id = f"sha256:{hashlib.sha256(config).hexdigest()}"
        row = {"Id": id, "Created": found["created"], "Size": 5, "Os": "linux", "Architecture": "amd64",
               "Config": {"User": "10001:10001", "Env": ["A=b"], "Labels": {"z": "1", "a": "2"}},
               "RootFS": {"Layers": found["rootfs"]["diff_ids"]}}  # fmt: skip
        whole = io.BytesIO()
        with tarfile.open(fileobj=whole, mode="w") as tar:
            info = tarfile.TarInfo(f"{id[7:]}.json")
            info.size = len(config)
            tar.addfile(info, io.BytesIO(config))
        for name in (id, *names):
            self.images[name], self.archives[name] = row, whole.getvalue()
        return id


class _Answer(BaseHTTPRequestHandler):
    server: Api

    def log_message(self, *_words: object) -> None:
        """Quiet."""

    def _send(self, status: int, value: object, kind: str = "application/json") -> None:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        """Version, inspection, archive."""
        path = self.path.partition("?")[0].removeprefix("/v1.45")
        if path == "/version":
            self._send(200, {"Version": "26.1.5", "ApiVersion": "1.45", "MinAPIVersion": "1.24", "Arch": "amd64"})
        elif path.endswith("/json"):
            row = self.server.images.get(path.removeprefix("/images/").removesuffix("/json"))
            self._send(200 if row else 404, row or {"message": "No such image"})
        elif path.endswith("/get"):
            self._send(200, self.server.archives[path.removeprefix("/images/").removesuffix("/get")], "application/x-tar")
        else:
            self._send(500, {"message": f"unexpected {path}"})

    def do_POST(self) -> None:
        """Load and tag."""
        self.server.asked.append(f"POST {self.path.removeprefix('/v1.45')}")
        body = self._body()
        if "/load" in self.path:
            with tarfile.open(fileobj=io.BytesIO(body)) as tar:
                name = next(member.name for member in tar if member.name != "manifest.json")
                file = tar.extractfile(name)
                assert file is not None
                id = self.server.add(file.read())
            self._send(200, {"stream": f"Loaded image ID: {id}\n"})
        else:
            self._send(201, {})

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        return b"".join(parts)

    def do_DELETE(self) -> None:
        """Remove."""
        path = self.path.partition("?")[0].removeprefix("/v1.45")
        self.server.asked.append(f"DELETE {path}")
        known = path.removeprefix("/images/") in self.server.images
        self._send(200 if known else 404, [] if known else {"message": "No such image"})


class Stage:
    """The fake command line and API together."""

    def __init__(self, root: Path, api: Api) -> None:
        self.root, self.api = root, api
        self.plan: dict[str, Any] = {"help": BUILDX, "talk": "", "answer": "", "status": 0}
        program = root / "docker"
        program.write_text(CLI.format(python=sys.executable))
        program.chmod(0o755)

    def engine(self, **plan: Any) -> DockerEngine:
        """The backend, with the command line doing as planned."""
        (self.root / "plan").write_text(json.dumps({**self.plan, **plan}))
        return DockerEngine(str(self.root / "docker"))

    def calls(self) -> list[tuple[list[str], dict[str, str]]]:
        """What the command line was called with to build."""
        rows = [json.loads(line) for line in (self.root / "calls").read_text().splitlines()]
        return [(words, settings) for words, settings in rows if "build" in words and words[-1] != "--help"]


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Stage]:
    """A Docker engine that is played."""
    api = Api()
    thread = threading.Thread(target=api.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{api.server_address[1]}")
    monkeypatch.setenv("BUILDX_GIT_LABELS", "full")
    yield Stage(tmp_path, api)
    api.shutdown()
    api.server_close()
    thread.join()


def at(created: str) -> bytes:
    return json.dumps({**CONFIG, "created": created}).encode()


def test_a_build_with_buildx(stage: Stage) -> None:
    id = stage.api.add(at(DATE), "a/b:1")
    record = {"vertexes": [{"digest": "d", "name": "RUN x", "started": "t", "completed": "t"}]}
    answer = json.dumps({"containerimage.config.digest": id, "containerimage.digest": "sha256:m"})
    events: list[object] = []
    built = stage.engine(talk=json.dumps(record), answer=answer).build(REQUEST, events.append)
    assert (built.ref, built.config, built.manifest, built.notes) == ("a/b:1", id, "sha256:m", ())
    assert [event.state for event in events if isinstance(event, Step)] == ["started", "done"]
    words, settings = stage.calls()[0]
    assert words[:4] == ["buildx", "build", "--provenance=false", "--metadata-file"] and words[-1] == "CONTEXT"
    assert settings == {"SOURCE_DATE_EPOCH": str(EPOCH), "DOCKER_BUILDKIT": "1", "BUILDX_GIT_LABELS": ""}


def test_the_default_store_has_no_manifest(stage: Stage) -> None:
    id = stage.api.add(at(DATE), "a/b:1")
    answer = json.dumps({"containerimage.config.digest": id, "containerimage.digest": id})
    assert stage.engine(answer=answer).build(REQUEST, print).manifest == ""


def test_a_failed_build(stage: Stage) -> None:
    record = {"vertexes": [{"digest": "d", "name": "RUN x", "started": "t", "error": "exit code: 3"}]}
    with pytest.raises(BuildError) as caught:
        stage.engine(talk=json.dumps(record), status=1).build(REQUEST, lambda _event: None)
    assert caught.value.message == "the step `RUN x` failed: exit code: 3"


def test_an_engine_without_epochs_is_helped(stage: Stage) -> None:
    old = stage.api.add(json.dumps(CONFIG).encode(), "a/b:1")
    built = stage.engine(help={"build": "--secret"}, answer=old).build(REQUEST, lambda _event: None)
    wanted = dated(CONFIG, EPOCH)
    assert built.config == f"sha256:{hashlib.sha256(wanted).hexdigest()}" and "26.1.5" in built.notes[0]
    assert json.loads(wanted)["created"] == DATE
    assert [row["created"] for row in json.loads(wanted)["history"]] == [DATE, DATE]
    assert stage.api.asked[-2:] == [f"POST /images/{built.config}/tag?tag=1&repo=a%2Fb&force=1", f"DELETE /images/{old}"]
    words, _ = stage.calls()[0]
    assert words[:2] == ["build", "--iidfile"] and "--load" not in words and words[words.index("--progress") + 1] == "plain"


def test_an_engine_without_epochs_pushes_nothing_dated(stage: Stage) -> None:
    stage.api.add(json.dumps(CONFIG).encode(), "r/x:1")
    with pytest.raises(BuildError) as caught:
        stage.engine(answer="{}").build(replace(REQUEST, push="r/x:1"), lambda _event: None)
    assert caught.value.reference == "engine-too-old"


def test_an_image_that_is_elsewhere(stage: Stage) -> None:
    answer = json.dumps({"containerimage.config.digest": "sha256:c"})
    built = stage.engine(answer=answer).build(REQUEST, lambda _event: None)
    assert built.config == "sha256:c" and "not in this engine's store" in built.notes[0]


def test_no_buildx(stage: Stage) -> None:
    with pytest.raises(BuildError) as caught:
        stage.engine(help={}).build(REQUEST, lambda _event: None)
    assert caught.value.reference == "no-buildx" and "docker-buildx" in caught.value.hint


def test_inspection_tags_and_removal(stage: Stage) -> None:
    engine = stage.engine()
    id = stage.api.add(at(DATE), "a/b:1")
    found = engine.inspect("a/b:1")
    assert found is not None and found.id == id and found.layers == ("sha256:l",) and found.platform == "linux/amd64"
    assert found.user == "10001:10001" and found.labels == (("a", "2"), ("z", "1"))
    assert engine.inspect("nothing") is None
    engine.remove("nothing")
    engine.tag("a/b:1", "127.0.0.1:5000/x")
    assert stage.api.asked[-1] == "POST /images/a/b:1/tag?tag=latest&repo=127.0.0.1%3A5000%2Fx&force=1"
    with pytest.raises(BuildError, match="no image nothing"):
        list(engine.save("nothing"))


def test_an_engine_that_does_not_answer(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = stage.engine()
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:9")
    with pytest.raises(BuildError) as caught:
        engine.info()
    assert caught.value.reference == "no-engine" and caught.value.exit_code == 6


def test_which_engine_is_found(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(stage.root))
    stage.engine()
    assert isinstance(find_engine(), DockerEngine) and find_engine().info().version == "26.1.5"
    with pytest.raises(BuildError, match="podman is not installed"):
        find_engine("podman")
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:9")
    with pytest.raises(BuildError, match="no Docker engine answers"):
        find_engine()
    monkeypatch.setenv("PATH", str(stage.root / "nothing"))
    with pytest.raises(BuildError, match="neither docker nor podman"):
        find_engine()


@pytest.mark.parametrize(
    ("request_", "kind", "wanted"),
    [
        (REQUEST, "rawjson", ["--tag", "a/b:1", "--build-arg", f"SOURCE_DATE_EPOCH={EPOCH}", "--load", "CONTEXT"]),
        (replace(REQUEST, epoch=None, no_cache=True), "plain", ["--tag", "a/b:1", "--no-cache", "--load", "CONTEXT"]),
        (
            BuildRequest("C", "t", None, False, "linux/arm64", "far", "host", "r/x:1", ("id=a,src=b", "id=c")),
            "rawjson",
            ["--tag", "r/x:1", "--platform", "linux/arm64", "--builder", "far", "--network", "host", "--secret", "id=a,src=b",
             "--secret", "id=c", "--push", "C"],
        ),
    ],
)  # fmt: skip
def test_words_for_the_builder(request_: BuildRequest, kind: str, wanted: list[str]) -> None:
    words = build_words(request_, kind, "FILE")
    assert words[:7] == ["buildx", "build", "--provenance=false", "--metadata-file", "FILE", "--progress", kind]
    assert words[7:] == wanted


def test_words_for_a_container(tmp_path: Path) -> None:
    request = RunRequest(
        "i", ("python3", "-c", "x"), ("--gpus", "all"), (("A", "b c"),), ((str(tmp_path), "/checks"),), user="1:2",
        read_only=True, entrypoint="",
    )  # fmt: skip
    assert run_words(request, "name") == [
        "run", "--rm", "--name", "name", "--network", "none", "--read-only", "--tmpfs", "/tmp:exec", "--user", "1:2",
        "--entrypoint", "", "--env", "A=b c", "--mount", f"type=bind,source={tmp_path},target=/checks,readonly",
        "--gpus", "all", "i", "python3", "-c", "x",
    ]  # fmt: skip
    assert "none" not in run_words(RunRequest("i", words=("--net=host",)), "name")


def test_an_archive_whose_layers_are_only_named() -> None:
    with tarfile.open(fileobj=io.BytesIO(archive(b'{"a": 1}', "a/b:1", 2))) as tar:
        manifest = tar.extractfile("manifest.json")
        assert manifest is not None
        row = json.loads(manifest.read())[0]
        assert row["RepoTags"] == ["a/b:1"] and len(row["Layers"]) == 2 and row["Config"] in tar.getnames()
        assert len(tar.getnames()) == 2
