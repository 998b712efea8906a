"""Running a builder: its lines as they come, and an end that leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence

from accel_env.errors import BuildError

PATIENCE = 20.0  # seconds that a builder gets to clean up after an interrupt


def stream(words: Sequence[str], take: Callable[[str], None], env: Mapping[str, str] | None = None) -> int:
    """Runs a command; every line that it prints, on either stream, goes to `take`. Gives its status.

    A KeyboardInterrupt, or SIGTERM to this process, interrupts the command, waits until it has cleaned up, and goes on as
    KeyboardInterrupt. BuildError when the command cannot be started.
    """
    with terminable():
        # A session of its own: Ctrl-C at the terminal reaches us alone, and we tell the command once.
        process = start(words, env, merged=True)
        assert process.stdout is not None
        try:
            for line in process.stdout:
                take(line.rstrip("\r\n"))
            return process.wait()
        except BaseException:
            stop(process)
            raise
        finally:
            process.stdout.close()


def start(words: Sequence[str], env: Mapping[str, str] | None = None, *, merged: bool = False) -> subprocess.Popen[str]:
    """The started command, with both streams piped; `merged`: both as its standard output."""
    try:
        return subprocess.Popen(
            list(words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if merged else subprocess.PIPE,
            env=dict(env) if env is not None else None,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
    except OSError as problem:
        raise BuildError(
            "cannot-start",
            f"{words[0]} cannot be started: {problem.strerror or problem}",
            hint="install a container engine: Docker with buildx, or podman",
        ) from None


def stop(process: subprocess.Popen[str]) -> None:
    """Interrupts a command and waits for it to clean up; one that does not end in time is killed with its children."""
    for number, seconds in ((signal.SIGINT, PATIENCE), (signal.SIGTERM, PATIENCE / 4), (signal.SIGKILL, 5.0)):
        if process.poll() is not None:
            break
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        # Whoever presses Ctrl-C again does not want to wait.
        with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
            process.communicate(timeout=seconds)
    for source in (process.stdout, process.stderr):
        if source is not None:
            source.close()


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Inside, SIGTERM and SIGHUP end the work as Ctrl-C does. Only the main thread may set that; elsewhere nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # Windows has no SIGHUP; who was told to ignore a signal (nohup) goes on ignoring it.
    numbers = [number for name in ("SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)) is not None]
    before = {
        number: signal.signal(number, _interrupt) for number in numbers if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt
