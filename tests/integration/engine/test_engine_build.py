"""build, verify and run on a real Docker engine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.engine.conftest import Fill, Home, edit, secrets

from accel_env import app_build
from accel_env.app_build import BuildWords
from accel_env.build.docker import DockerEngine
from accel_env.build.engine import Event, RunRequest, Step, StepLog
from accel_env.errors import BuildError, VerifyError

pytestmark = [
    pytest.mark.docker,
    # One worker: the tests count images and containers, and an engine has one store.
    pytest.mark.xdist_group("engine"),
    # The engine's SDK forgets its socket when the first answer does not come; a later test would be blamed for it.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
Spare = Callable[..., Home]
MOVE = "mv /opt/venv /out/opt/venv"


def words(folder: Path, **more: object) -> BuildWords:
    return BuildWords(str(folder), network="host", secrets=secrets(folder), **more)  # type: ignore[arg-type]


def cli(*typed: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "accel_env", *typed], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def images() -> set[str]:
    done = subprocess.run(["docker", "images", "--all", "--quiet", "--no-trunc"], check=True, capture_output=True, text=True)
    return set(done.stdout.split())


def containers() -> str:
    return subprocess.run(["docker", "ps", "--all", "--quiet"], check=True, capture_output=True, text=True).stdout


def test_two_builds_give_one_image(engine: DockerEngine, rendered: Fill) -> None:
    folder = rendered()
    events: list[Event] = []
    built = app_build.build(words(folder), events.append)
    names = [event.name for event in events if isinstance(event, Step) and event.state in ("done", "cached")]
    assert any(name.startswith("[build 3/3] RUN") for name in names) and "exporting to image" in names
    assert any("Successfully installed" in event.text for event in events if isinstance(event, StepLog))
    record = json.loads((folder / "image.json").read_text())
    assert record["config"] == built["config"] and len(record["layers"]) == 3 and record["platform"].startswith("linux/")
    verified = app_build.verify(words(folder))
    assert verified["status"] == "identical" and verified["recorded"] and verified["config"] == built["config"]
    found = engine.inspect(built["image"])
    assert found is not None and found.id == built["config"] and found.created == "2026-11-30T00:00:00Z"
    assert found.user == "10001:10001"

    code = "import getpass, os, smallpart, otherpart; print(getpass.getuser(), os.getuid(), smallpart.version)"
    ran = engine.run(RunRequest(built["image"], ("python3", "-c", code), ("--cap-drop", "ALL"), read_only=True))
    assert (ran.status, ran.stdout) == (0, "app 10001 1.0\n"), ran.stderr
    leftovers = engine.run(RunRequest(built["image"], ("sh", "-c", "ls /run/secrets /tmp/accel-env /root/.cache"), user="0"))
    assert leftovers.stdout == "" and leftovers.status != 0


def test_a_planted_difference_is_named(engine: DockerEngine, rendered: Fill) -> None:
    folder = edit(rendered(), MOVE, f"{MOVE} && \\\n    head -c 8 /dev/urandom > /out/opt/venv/noise")
    before = images()
    with pytest.raises(VerifyError) as caught:
        app_build.verify(words(folder))
    assert caught.value.context[-1] == "/opt/venv/noise: content (both 8 bytes)"
    assert len(images() - before) == 1  # the first build's; the second is gone


def test_a_failing_step_shows_its_last_lines(engine: DockerEngine, rendered: Fill) -> None:
    folder = edit(rendered(), MOVE, "echo the first line && echo the second line >&2 && exit 3")
    before = images()
    process = cli("build", str(folder), "--network", "host", "--secret", secrets(folder)[0], "--progress", "quiet")
    out, err = process.communicate(timeout=300)
    assert process.returncode == 6 and out == ""
    assert err.startswith("error: step-failed\n  the step `[build 3/3] RUN python3") and "failed: exit code: 3" in err
    assert "\n  the first line\n" in err and "\n  the second line\n" in err and "\nhint: " in err
    assert images() == before


def test_a_wrong_hash_and_a_wrong_base(engine: DockerEngine, rendered: Fill, home: Home) -> None:
    folder = rendered()
    text = (folder / "requirements.lock").read_text()
    first = text.index("--hash=sha256:") + len("--hash=sha256:")
    (folder / "requirements.lock").write_text(f"{text[:first]}{'0' * 64}{text[first + 64 :]}")
    with pytest.raises(BuildError) as caught:
        app_build.build(words(folder))
    assert caught.value.reference == "wrong-hash"
    edit(folder, home.digest, f"sha256:{'0' * 64}")
    with pytest.raises(BuildError) as caught:
        app_build.build(words(folder))
    # The registry here says no; whether the makers' own can be asked next depends on the machine.
    assert caught.value.reference in ("base-not-found", "registry-unreachable")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_nothing(engine: DockerEngine, rendered: Fill, number: signal.Signals) -> None:
    folder = edit(rendered(), MOVE, f"echo begun {uuid.uuid4()} && sleep 120 && {MOVE}")
    before = images()
    process = cli("build", str(folder), "--network", "host", "--secret", secrets(folder)[0])
    assert process.stderr is not None
    while "begun" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130 and "interrupted" in err
    assert images() == before and containers() == "" and not (folder / "image.json").exists()


def test_a_container_that_takes_too_long(engine: DockerEngine, rendered: Fill) -> None:
    built = app_build.build(words(rendered()))
    ran = engine.run(RunRequest(built["image"], ("sh", "-c", "echo begun; sleep 60"), timeout=2.0))
    assert ran.timed_out and ran.stdout == "begun\n" and containers() == ""
    with pytest.raises(BuildError) as caught:
        engine.run(RunRequest(built["image"], words=("--runtime", "nothing")))
    assert caught.value.reference == "cannot-run"


def test_a_push(engine: DockerEngine, rendered: Fill, home: Home) -> None:
    ref = f"{home.registry}/cells/small:{uuid.uuid4()}"
    folder = rendered()
    pushed = app_build.build(words(folder, push=ref))
    built = app_build.build(words(folder))
    assert pushed["image"] == ref and pushed["config"] == built["config"]
    with urllib.request.urlopen(f"http://{home.registry}/v2/cells/small/tags/list") as answer:
        assert ref.rpartition(":")[2] in json.load(answer)["tags"]


def use(home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Makes an engine the one that is found."""
    for name, value in home.settings.items():
        monkeypatch.setenv(name, value)
    return home


def test_an_engine_of_2020(rendered: Fill, spare: Spare, monkeypatch: pytest.MonkeyPatch) -> None:
    """Docker 20.10 knows no epoch: its images are redated, and then repeat too."""
    use(spare("--suite", "bookworm"), monkeypatch)
    verified = app_build.verify(words(rendered()))
    assert verified["status"] == "identical" and "knows no SOURCE_DATE_EPOCH" in verified["notes"][0]
    found = DockerEngine().inspect(verified["image"])
    assert found is not None and found.id == verified["config"] and found.created == "2026-11-30T00:00:00Z"
    assert len(images()) == 1


def test_a_full_disk_and_an_engine_that_goes_away(rendered: Fill, spare: Spare, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a disk of its own, so that nobody else is hurt."""
    other = use(spare("--disk", "600M"), monkeypatch)
    full = edit(rendered("full"), MOVE, f"head -c 700000000 /dev/zero > /big && {MOVE}")
    with pytest.raises(BuildError) as caught:
        app_build.build(words(full))
    assert caught.value.reference == "disk-full", caught.value
    slow = edit(rendered("slow"), MOVE, f"echo begun {uuid.uuid4()} && sleep 120 && {MOVE}")

    def kill(event: Event) -> None:
        if isinstance(event, StepLog) and event.text.startswith("begun"):
            os.kill(int((other.folder / "run" / "docker.pid").read_text()), signal.SIGKILL)

    with pytest.raises(BuildError) as caught:
        app_build.build(words(slow), kill)
    assert caught.value.reference == "engine-gone", caught.value
    with pytest.raises(BuildError) as caught:
        app_build.build(words(slow))
    assert caught.value.reference == "no-engine"


def test_a_registry_that_is_down(rendered: Fill, spare: Spare, monkeypatch: pytest.MonkeyPatch) -> None:
    other = use(spare(), monkeypatch)
    os.kill(int((other.folder / "run" / "registry.pid").read_text()), signal.SIGTERM)
    with pytest.raises(BuildError) as caught:
        app_build.build(words(rendered()))
    # The makers' own registry is asked next; what it says of a base that only we have depends on the machine.
    assert caught.value.reference in ("registry-unreachable", "base-not-found"), caught.value


def test_both_image_stores_give_one_image(
    engine: DockerEngine, rendered: Fill, spare: Spare, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = rendered()
    built = app_build.build(words(folder))
    use(spare("--store", "containerd"), monkeypatch)
    verified = app_build.verify(words(folder))
    assert verified["config"] == built["config"] and verified["recorded"]
    assert verified["manifest"] and not built["manifest"]
    edit(folder, MOVE, f"{MOVE} && \\\n    head -c 8 /dev/urandom > /out/opt/venv/noise")
    with pytest.raises(VerifyError) as caught:
        app_build.verify(words(folder))
    assert caught.value.context[-1] == "/opt/venv/noise: content (both 8 bytes)"
