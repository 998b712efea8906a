"""The podman backend against a command line that is a script of this file."""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from accel_env.build.engine import BuildRequest, RunRequest, Step
from accel_env.build.find import find_engine
from accel_env.build.podman import PodmanEngine, build_words, limits
from accel_env.errors import BuildError

REQUEST = BuildRequest("CONTEXT", "a/b:1", 5)
CLI = """#!{python}
import json, os, signal, sys, time
from pathlib import Path
here = Path(__file__).parent
words = sys.argv[1:]
plan = json.loads((here / "plan").read_text())
with (here / "calls").open("a") as file:
    file.write(json.dumps(words) + "\\n")
verb = " ".join(words[:2]) if words[0] == "image" else words[0]
if words[-1] == "--help":
    print(plan.get("help", ""))
elif verb == "build":
    print(plan["talk"], flush=True)
    if plan.get("sleep"):
        (here / "workers").write_text("old1 old-working-container\\nnew1 python-working-container\\nelse user\\n")
        time.sleep(60)
    if not plan["status"]:
        Path(words[words.index("--iidfile") + 1]).write_text("sha256:c0ffee")
    sys.exit(plan["status"])
elif verb == "ps":
    print((here / "workers").read_text())
elif verb == "save":
    Path(words[words.index("--output") + 1]).write_bytes(b"archive")
elif verb == "image exists":
    sys.exit(words[2] not in plan["images"])
elif verb == "load":
    print("Loaded image: a/b:1")
else:
    print(plan.get(verb, ""))
    sys.exit(plan.get("refuse") == verb)
"""
VERSION = json.dumps({"Client": {"Version": "4.3.1", "OsArch": "linux/amd64"}})
INSPECTED = [
    {"Id": "c0ffee", "Created": "2026", "Size": 3, "Os": "linux", "Architecture": "amd64", "RootFS": {"Layers": ["sha256:l"]}}
]
TALK = "STEP 1/2: FROM x\nSTEP 2/2: RUN y\nhello\nCOMMIT a/b:1"


@pytest.fixture
def engine(tmp_path: Path) -> PodmanEngine:
    """A podman that is played."""
    (tmp_path / "podman").write_text(CLI.format(python=sys.executable))
    (tmp_path / "podman").chmod(0o755)
    (tmp_path / "workers").write_text("old1 old-working-container\n")
    tell(tmp_path)
    return PodmanEngine(str(tmp_path / "podman"))


def tell(folder: Path, **plan: Any) -> None:
    told = {"talk": TALK, "status": 0, "version": VERSION, "images": ["a/b:1"], "image inspect": json.dumps(INSPECTED), **plan}
    (folder / "plan").write_text(json.dumps(told))


def calls(folder: Path, verb: str) -> list[list[str]]:
    rows = [json.loads(line) for line in (folder / "calls").read_text().splitlines()]
    return [words for words in rows if words[0] == verb and words[-1] != "--help"]


def test_a_build(engine: PodmanEngine, tmp_path: Path) -> None:
    events: list[object] = []
    built = engine.build(REQUEST, events.append)
    assert (built.ref, built.config) == ("a/b:1", "sha256:c0ffee")
    assert [event.name for event in events if isinstance(event, Step) and event.state == "done"] == ["FROM x", "RUN y"]
    words = calls(tmp_path, "build")[0]
    assert words[-1] == "CONTEXT" and "oci" in words and words[words.index("--timestamp") + 1] == "5"


def test_a_push(engine: PodmanEngine, tmp_path: Path) -> None:
    assert engine.build(replace(REQUEST, push="r/x:1"), print).ref == "r/x:1"
    assert calls(tmp_path, "push") == [["push", "r/x:1"]]
    tell(tmp_path, refuse="push")
    with pytest.raises(BuildError, match="podman push failed"):
        engine.build(replace(REQUEST, push="r/x:1"), print)


def test_a_failed_build(engine: PodmanEngine, tmp_path: Path) -> None:
    tell(tmp_path, talk=TALK.partition("COMMIT")[0] + 'Error: building at STEP "RUN y": exit status 1', status=1)
    with pytest.raises(BuildError) as caught:
        engine.build(REQUEST, lambda _event: None)
    assert "`RUN y` failed" in caught.value.message and caught.value.context == ("hello",)
    with pytest.raises(BuildError, match="no named builders"):
        engine.build(replace(REQUEST, builder="far"), print)


def test_an_interrupt_removes_the_working_containers_of_this_build(engine: PodmanEngine, tmp_path: Path) -> None:
    tell(tmp_path, sleep=True)

    def interrupt(event: object) -> None:
        if isinstance(event, Step) and event.name == "RUN y" and event.state == "done":
            while "new1" not in (tmp_path / "workers").read_text():
                pass
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        engine.build(REQUEST, interrupt)
    assert calls(tmp_path, "rm") == [["rm", "--force", "--ignore", "new1"]]


def test_images(engine: PodmanEngine, tmp_path: Path) -> None:
    found = engine.inspect("a/b:1")
    assert found is not None and found.id == "sha256:c0ffee" and found.layers == ("sha256:l",)
    assert engine.inspect("other") is None
    assert b"".join(engine.save("a/b:1")) == b"archive"
    with pytest.raises(BuildError, match="no image other"):
        list(engine.save("other"))
    assert engine.load("x.tar") == "sha256:c0ffee"
    engine.tag("a/b:1", "c:2")
    engine.remove("a/b:1")
    engine.remove("other")
    assert calls(tmp_path, "tag") == [["tag", "a/b:1", "c:2"]] and calls(tmp_path, "rmi") == [["rmi", "a/b:1"]]


def test_a_container(engine: PodmanEngine, tmp_path: Path) -> None:
    assert engine.run(RunRequest("a/b:1", ("true",))).status == 0
    words = calls(tmp_path, "run")[0]
    assert words[-2:] == ["a/b:1", "true"] and all(word in words for word in limits())


def test_which_engine_is_found(engine: PodmanEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = find_engine()
    assert isinstance(found, PodmanEngine) and found.info() == engine.info()
    assert (found.info().name, found.info().version, found.info().architecture) == ("podman", "4.3.1", "amd64")
    (tmp_path / "docker").write_text("#!/bin/sh\necho podman version 4.3.1\n")
    (tmp_path / "docker").chmod(0o755)
    assert isinstance(find_engine("podman"), PodmanEngine)


def test_podman_under_dockers_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = CLI.format(python=sys.executable).replace(
        "verb = ", 'if words == ["--version"]: sys.exit(print("podman version 4"))\nverb = '
    )
    (tmp_path / "docker").write_text(script)
    (tmp_path / "docker").chmod(0o755)
    tell(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert isinstance(find_engine(), PodmanEngine)


def test_no_podman(tmp_path: Path) -> None:
    with pytest.raises(BuildError) as caught:
        PodmanEngine(str(tmp_path / "podman")).info()
    assert caught.value.reference == "no-engine"


def test_words_for_the_builder() -> None:
    request = BuildRequest("C", "t", 5, True, "linux/arm64", "", "host", "", ("id=a,src=b",))
    assert build_words(request, True, "FILE") == [
        "build", "--format", "oci", "--iidfile", "FILE", "--tag", "t", "--layers", "--force-rm",
        "--build-arg", "SOURCE_DATE_EPOCH=5", "--source-date-epoch", "5", "--rewrite-timestamp",
        "--platform", "linux/arm64", "--network", "host", "--secret", "id=a,src=b", "--no-cache",
    ]  # fmt: skip
    assert "--timestamp" not in build_words(replace(request, epoch=None), False, "FILE")


@pytest.mark.parametrize(
    ("files", "processes", "wanted"),
    [
        (-1, -1, ()),
        (1 << 20, 1 << 22, ()),
        (20000, -1, ("--ulimit", "nofile=20000:20000")),
        (20000, 96365, ("--ulimit", "nofile=20000:20000", "--ulimit", "nproc=32768:32768")),
        (-1, 4096, ("--ulimit", "nproc=4096:4096")),
    ],
)
def test_limits_that_may_be_set(monkeypatch: pytest.MonkeyPatch, files: int, processes: int, wanted: tuple[str, ...]) -> None:
    import resource

    hard = {resource.RLIMIT_NOFILE: files, resource.RLIMIT_NPROC: processes}
    monkeypatch.setattr(resource, "getrlimit", lambda number: (hard[number], hard[number]))
    assert limits() == wanted
