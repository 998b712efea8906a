"""Running builders and containers: lines, ends, interrupts."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from accel_env.build.containers import run_container
from accel_env.build.engine import RunRequest
from accel_env.build.process import start, stop, stream, terminable
from accel_env.errors import BuildError

# Ends tidily when it is interrupted, and says so in a file.
TIDY = """
import signal, sys, time
def tidy(*_):
    open(sys.argv[1], "w").write("tidied")
    sys.exit(130)
signal.signal(signal.SIGINT, tidy)
print("begun", flush=True)
time.sleep(60)
"""
STUBBORN = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('begun', flush=True)\ntime.sleep(60)\n"


def python(code: str, *words: object) -> list[str]:
    return [sys.executable, "-c", code, *map(str, words)]


def test_both_streams_come_as_lines() -> None:
    lines: list[str] = []
    code = "import sys; print('out', flush=True); print('err', file=sys.stderr); sys.stdout.buffer.write(b'\\xff end')"
    assert stream(python(code), lines.append) == 0
    assert sorted(lines) == ["err", "out", "\ufffd end"]
    assert stream(python("raise SystemExit(7)"), lines.append) == 7


def test_settings_are_passed_on() -> None:
    lines: list[str] = []
    stream(python("import os; print(os.environ.get('A'))"), lines.append, {**os.environ, "A": "b"})
    assert lines == ["b"]


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(BuildError) as caught:
        stream(["/nowhere/docker"], print)
    assert caught.value.exit_code == 6 and caught.value.hint


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_lets_the_builder_clean_up(tmp_path: Path, number: signal.Signals) -> None:
    before = signal.getsignal(signal.SIGTERM)

    def interrupt(_line: str) -> None:
        os.kill(os.getpid(), number)

    with pytest.raises(KeyboardInterrupt):
        stream(python(TIDY, tmp_path / "note"), interrupt)
    assert (tmp_path / "note").read_text() == "tidied"
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_system_without_hangups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(signal, "SIGHUP")
    with terminable():
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL


def test_what_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with terminable():
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_builder_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accel_env.build.process.PATIENCE", 0.2)
    process = start(python(STUBBORN))
    assert process.stdout is not None and process.stdout.readline() == "begun\n"
    began = time.monotonic()
    stop(process)
    assert process.poll() is not None and time.monotonic() - began < 10


def test_another_thread_can_run_a_builder() -> None:
    lines: list[str] = []
    thread = threading.Thread(target=stream, args=(python("print('x')"), lines.append))
    thread.start()
    thread.join()
    assert lines == ["x"]


def program(folder: Path, code: str) -> str:
    """A `docker` that runs the code instead of a container."""
    path = folder / "docker"
    path.write_text(f"#!{sys.executable}\n{code}\n")
    path.chmod(0o755)
    return str(path)


def test_a_container_ends(tmp_path: Path) -> None:
    code = "import sys; print(' '.join(sys.argv[1:])); print('err', file=sys.stderr); sys.exit(3)"
    ran = run_container(program(tmp_path, code), RunRequest("image", ("a", "b")), pytest.fail)
    assert (ran.status, ran.stderr, ran.timed_out) == (3, "err\n", False)
    assert ran.stdout.startswith("run --rm --name accel-env-") and ran.stdout.endswith(" --network none image a b\n")


def test_a_container_that_the_engine_refuses(tmp_path: Path) -> None:
    code = "import sys; print('could not select device driver', file=sys.stderr); sys.exit(125)"
    with pytest.raises(BuildError) as caught:
        run_container(program(tmp_path, code), RunRequest("image"), pytest.fail)
    assert caught.value.reference == "cannot-run" and "could not select device driver" in caught.value.context


SLEEP = """
import os, time
from pathlib import Path
Path(__file__).with_name("pid").write_text(str(os.getpid()))
print("begun", flush=True)
time.sleep(60)
"""


class Containers:
    """Removes the container that `docker` of this folder plays, by ending it."""

    def __init__(self, folder: Path) -> None:
        self.removed: list[str] = []
        self._pid = folder / "pid"

    def discard(self, name: str) -> None:
        self.removed.append(name)
        with contextlib.suppress(OSError):
            os.kill(int(self._pid.read_text()), signal.SIGKILL)


def test_a_container_whose_time_is_over(tmp_path: Path) -> None:
    containers = Containers(tmp_path)
    ran = run_container(program(tmp_path, SLEEP), RunRequest("image", timeout=1.0), containers.discard)
    assert ran.timed_out and ran.stdout == "begun\n" and len(containers.removed) == 1


def test_an_interrupt_removes_the_container(tmp_path: Path) -> None:
    containers = Containers(tmp_path)
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        run_container(program(tmp_path, SLEEP), RunRequest("image"), containers.discard)
    timer.join()
    assert len(set(containers.removed)) == 1
