"""The verbs `build` and `verify` over an engine that is a table."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from accel_env import app_build
from accel_env.app_build import BuildWords
from accel_env.build import find, folder
from accel_env.build.engine import BuildRequest, Built, Engine, EngineInfo, ImageDetails, Ran, RunRequest, Step, Watcher
from accel_env.errors import AccelEnvError, BuildError, InputError, UsageError, VerifyError
from accel_env.smoke.checks import program

DOCKERFILE = """\
ARG SOURCE_DATE_EPOCH="1795996800"
FROM python:3.12-slim@sha256:ab AS build
COPY requirements.lock /tmp/accel-env/
COPY --from=build /out/ /
"""


def packed(files: dict[str, bytes]) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return whole.getvalue()


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


BASE = packed({"bin/sh": b"shell"})


@dataclass(frozen=True)
class Made:
    """An image of the fake: a layer over the base, and something in its configuration."""

    layer: bytes = field(default_factory=lambda: packed({"opt/venv/x": b"1"}))
    created: str = "2026-11-30T00:00:00Z"

    @property
    def config(self) -> bytes:
        return json.dumps({"created": self.created, "rootfs": {"diff_ids": [digest(BASE), digest(self.layer)]}}).encode()


class FakeEngine:
    """See Engine; builds what it is told to build, in turn."""

    def __init__(
        self, *made: Made | BaseException, name: str = "docker", version: str = "26", architecture: str = "amd64"
    ) -> None:
        self.answers = list(made) or [Made()]
        self.told = EngineInfo(name, version, version, architecture)
        self.requests: list[BuildRequest] = []
        self.store: dict[str, Made] = {}
        self.removed: list[str] = []

    def info(self) -> EngineInfo:
        return self.told

    def build(self, request: BuildRequest, watch: Watcher) -> Built:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        watch(Step(1, "RUN x", "started"))
        ref = request.push or request.tag
        self.store |= {ref: answer, digest(answer.config): answer}
        return Built(ref, digest(answer.config))

    def inspect(self, ref: str) -> ImageDetails | None:
        made = self.store.get(ref)
        if made is None:
            return None
        return ImageDetails(digest(made.config), (digest(BASE), digest(made.layer)), made.created, 7, "linux/amd64")

    def run(self, request: RunRequest) -> Ran:
        raise NotImplementedError

    def save(self, ref: str) -> Iterator[bytes]:
        made = self.store[ref]
        parts = {f"blobs/sha256/{digest(content)[7:]}": content for content in (BASE, made.layer, made.config)}
        yield packed(parts)

    def load(self, path: str) -> str:
        raise NotImplementedError

    def tag(self, ref: str, name: str) -> None:
        self.store[name] = self.store[ref]

    def remove(self, ref: str) -> None:
        self.removed.append(ref)
        self.store.pop(ref, None)


Use = Callable[[FakeEngine], FakeEngine]


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Use:
    """Makes a fake the engine that is found."""

    def use(engine: FakeEngine) -> FakeEngine:
        found: Engine = engine
        monkeypatch.setattr(find, "find_engine", lambda wanted="": found)
        return engine

    return use


@pytest.fixture
def rendered(tmp_path: Path) -> Path:
    """A folder as `render` writes it, in short."""
    root = tmp_path / "My cell"
    root.mkdir()
    (root / "Dockerfile").write_text(DOCKERFILE)
    (root / "requirements.lock").write_text("six==1\n")
    (root / "plan.json").write_text(json.dumps({"host": {"os": "linux", "arch": "x86_64"}, "run_args": ["--gpus", "all"]}))
    return root


def words(root: Path, **more: object) -> BuildWords:
    return replace(BuildWords(str(root)), **more)  # type: ignore[arg-type]


def test_build_tells_and_records_the_digests(use: Use, rendered: Path) -> None:
    engine = use(FakeEngine())
    events: list[object] = []
    answer = app_build.build(words(rendered), events.append)
    request = engine.requests[0]
    assert request.epoch == 1795996800 and not request.no_cache and not request.platform
    assert request.tag.startswith("accel-env/my-cell:") and len(request.tag.partition(":")[2]) == 12
    assert events == [Step(1, "RUN x", "started")]
    assert answer["schema"] == "accel-env/built/1" and answer["config"] == digest(Made().config)
    assert answer["run"] == ["docker", "run", "--rm", "--gpus", "all", request.tag]
    assert answer["written"] == [str(rendered / "image.json")] and answer["notes"] == []
    record = json.loads((rendered / "image.json").read_text())
    assert record["config"] == answer["config"] and record["layers"] == [digest(BASE), digest(Made().layer)]
    assert record["engine"] == "docker" and record["version"] == "26" and record["epoch"] == 1795996800
    assert json.dumps(answer)


def test_a_folder_that_is_kept_without_the_checks_gets_them(use: Use, rendered: Path) -> None:
    use(FakeEngine())
    app_build.build(BuildWords(str(rendered)))
    assert not (rendered / "checks.py").exists(), "no Dockerfile asks for them"
    recipe = DOCKERFILE.replace("COPY requirements.lock ", "COPY requirements.lock checks.py ")
    (rendered / "Dockerfile").write_text(recipe)
    app_build.build(BuildWords(str(rendered)))
    assert (rendered / "checks.py").read_bytes() == program()
    (rendered / "checks.py").write_text("mine")
    app_build.verify(BuildWords(str(rendered)))
    assert (rendered / "checks.py").read_text() == "mine"


def test_another_recipe_has_another_name(use: Use, rendered: Path) -> None:
    engine = use(FakeEngine())
    app_build.build(words(rendered))
    (rendered / "requirements.lock").write_text("six==2\n")
    app_build.build(words(rendered))
    assert engine.requests[0].tag != engine.requests[1].tag


def test_words_are_passed_on(use: Use, rendered: Path) -> None:
    engine = use(FakeEngine())
    secret = f"id=ca,src={rendered / 'plan.json'}"
    asked = words(rendered, tag="a:b", push="r/x:1", platform="linux/arm64", builder="far", network="host", secrets=(secret,))
    app_build.build(replace(asked, no_cache=True))
    epoch = 1795996800
    assert engine.requests == [BuildRequest(str(rendered), "a:b", epoch, True, "linux/arm64", "far", "host", "r/x:1", (secret,))]


@pytest.mark.parametrize(
    ("arch", "engine", "platform"),
    [("aarch64", "amd64", "linux/arm64"), ("x86_64", "arm64", "linux/amd64"), ("x86_64", "amd64", ""), ("x86_64", "", "")],
)
def test_a_plan_for_another_architecture_says_so(use: Use, rendered: Path, arch: str, engine: str, platform: str) -> None:
    (rendered / "plan.json").write_text(json.dumps({"host": {"arch": arch}}))
    fake = use(FakeEngine(architecture=engine))
    app_build.build(words(rendered))
    assert fake.requests[0].platform == platform


def test_a_record_is_a_promise(use: Use, rendered: Path) -> None:
    use(FakeEngine())
    app_build.build(words(rendered))
    kept = (rendered / "image.json").read_text()
    use(FakeEngine(Made(created="2026-12-01T00:00:00Z")))
    answer = app_build.build(words(rendered))
    assert "not the image of image.json" in answer["notes"][0] and (rendered / "image.json").read_text() == kept
    use(FakeEngine(Made(created="2026-12-01T00:00:00Z"), name="podman"))
    assert "another configuration" in app_build.build(words(rendered))["notes"][0]
    (rendered / "requirements.lock").write_text("six==2\n")
    assert app_build.build(words(rendered))["written"]


def test_a_folder_that_cannot_be_written_keeps_the_build(use: Use, rendered: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(FakeEngine())

    def refuse(*_words: object) -> None:
        raise UsageError("cannot-write", "image.json cannot be written: read-only")

    monkeypatch.setattr("accel_env.system.files.write_file", refuse)
    answer = app_build.build(words(rendered))
    assert answer["written"] == [] and "cannot be written" in answer["notes"][0]


def test_verify_builds_again_without_the_cache(use: Use, rendered: Path) -> None:
    engine = use(FakeEngine())
    said: list[str] = []
    answer = app_build.verify(words(rendered), say=said.append)
    assert [request.no_cache for request in engine.requests] == [False, True]
    assert engine.requests[1].tag.startswith("accel-env/verify:") and engine.removed == [engine.requests[1].tag]
    assert answer["status"] == "identical" and len(answer["seconds"]) == 2 and not answer["recorded"]
    assert said == ["building", "building again, without the cache"] and answer["written"]
    assert app_build.verify(words(rendered))["recorded"]


def test_verify_names_the_file(use: Use, rendered: Path) -> None:
    engine = use(FakeEngine(Made(), Made(packed({"opt/venv/x": b"2"}))))
    with pytest.raises(VerifyError) as caught:
        app_build.verify(words(rendered))
    assert caught.value.exit_code == 7 and "layer 2 of 2" in caught.value.message
    assert caught.value.context[-1] == "/opt/venv/x: content (both 1 bytes)"
    assert engine.removed == [engine.requests[1].tag] and not (rendered / "image.json").exists()


def test_verify_names_the_key_of_the_configuration(use: Use, rendered: Path) -> None:
    use(FakeEngine(Made(), Made(created="2026-12-01T00:00:00Z")))
    with pytest.raises(VerifyError) as caught:
        app_build.verify(words(rendered))
    assert "the configuration" in caught.value.message
    assert caught.value.context[-1] == 'created: "2026-11-30T00:00:00Z" against "2026-12-01T00:00:00Z"'


def test_verify_holds_the_record(use: Use, rendered: Path) -> None:
    use(FakeEngine())
    app_build.build(words(rendered))
    use(FakeEngine(Made(packed({"other": b""}))))
    with pytest.raises(VerifyError) as caught:
        app_build.verify(words(rendered))
    assert caught.value.reference == "differs-from-record" and "layer 2" in caught.value.message
    use(FakeEngine(Made(created="2026-12-01T00:00:00Z")))
    with pytest.raises(VerifyError, match="the configuration"):
        app_build.verify(words(rendered))
    use(FakeEngine(Made(created="2026-12-01T00:00:00Z"), name="podman"))
    assert app_build.verify(words(rendered))["status"] == "identical"


@pytest.mark.parametrize("problem", [KeyboardInterrupt(), BuildError("step-failed", "no")])
def test_nothing_is_left_of_a_verification_that_ends_early(use: Use, rendered: Path, problem: BaseException) -> None:
    engine = use(FakeEngine(Made(), problem))
    with pytest.raises(type(problem)):
        app_build.verify(words(rendered))
    assert engine.removed == [engine.requests[1].tag]


def test_an_engine_that_is_gone_does_not_hide_the_reason(use: Use, rendered: Path) -> None:
    engine = use(FakeEngine(Made(), BuildError("disk-full", "full")))

    def gone(ref: str) -> None:
        raise BuildError("no-engine", "gone")

    engine.remove = gone  # type: ignore[method-assign]
    with pytest.raises(BuildError) as caught:
        app_build.verify(words(rendered))
    assert caught.value.reference == "disk-full"


@pytest.mark.parametrize(
    ("break_it", "kind", "reference"),
    [
        (lambda root: (root / "Dockerfile").unlink(), UsageError, "no-dockerfile"),
        (lambda root: (root / "requirements.lock").unlink(), InputError, "file-unreadable"),
        (lambda root: (root / "plan.json").write_text("{"), InputError, "file-unreadable"),
        (lambda root: (root / "plan.json").write_text("[]"), InputError, "file-unreadable"),
        (lambda root: (root / "image.json").write_text("{}"), InputError, "record-unreadable"),
        (
            lambda root: (root / "image.json").write_text('{"schema": "accel-env/image/1", "x": 1}'),
            InputError,
            "record-unreadable",
        ),
    ],
)
def test_broken_folders(
    use: Use, rendered: Path, break_it: Callable[[Path], object], kind: type[AccelEnvError], reference: str
) -> None:
    engine = use(FakeEngine())
    break_it(rendered)
    with pytest.raises(kind) as caught:
        app_build.build(words(rendered))
    assert caught.value.reference == reference and caught.value.hint and not engine.requests


@pytest.mark.parametrize("secret", ["src=x", "id=ca,src=/nowhere/x", "ca"])
def test_secrets_are_looked_at_first(use: Use, rendered: Path, secret: str) -> None:
    engine = use(FakeEngine())
    with pytest.raises(UsageError) as caught:
        app_build.build(words(rendered, secrets=(secret,)))
    assert caught.value.reference == "bad-secret" and not engine.requests


def test_a_folder_without_a_plan_and_without_a_time(use: Use, rendered: Path) -> None:
    (rendered / "plan.json").unlink()
    (rendered / "Dockerfile").write_text("FROM python\n")
    engine = use(FakeEngine())
    answer = app_build.build(words(rendered))
    assert engine.requests[0].epoch is None and answer["run"] == ["docker", "run", "--rm", engine.requests[0].tag]
    with pytest.raises(UsageError, match="no folder"):
        app_build.build(words(rendered / "Dockerfile"))


def test_the_record_is_the_same_text_every_time(rendered: Path) -> None:
    read = folder.read_folder(rendered)
    record = folder.Record(read.recipe, "sha256:a", ("sha256:b",), "", 1, "linux/amd64", 5, "docker", "26")
    (rendered / "image.json").write_text(folder.record_text(record))
    assert folder.read_record(read) == record
