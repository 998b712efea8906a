"""Running a builder: its lines as they come, and an end that leaves nothing behind."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence

from accel_env.errors import BuildError

PATIENCE = 20.0  # seconds that a builder gets to clean up after an interrupt


def stream(
    words: Sequence[str], take: Callable[[str], None], env: Mapping[str, str] | None = None, *, merged: bool = True
) -> tuple[int, str]:
    """Runs a command; every line of its standard error (and output when `merged`) goes to `take`.

    Gives its status and its standard output (empty when merged). A KeyboardInterrupt, or SIGTERM to this process, interrupts the
    command, waits until it has cleaned up, and goes on as KeyboardInterrupt. BuildError when the command cannot be started.
    """
    with terminable():
        # A session of its own: Ctrl-C at the terminal reaches us alone, and we tell the command once.
        process = start(words, env, stdout=subprocess.STDOUT if merged else subprocess.PIPE)
        output: list[str] = []
        reader = None
        if process.stdout is not None:
            reader = threading.Thread(target=_collect, args=(process.stdout, output), daemon=True)
            reader.start()
        try:
            assert process.stderr is not None
            for line in process.stderr:
                take(line.rstrip("\r\n"))
            status = process.wait()
        except BaseException:
            stop(process)
            raise
        if reader is not None:
            reader.join()
        return status, "".join(output)


def _collect(source: Iterator[str], into: list[str]) -> None:
    into.extend(source)


def start(words: Sequence[str], env: Mapping[str, str] | None, *, stdout: int) -> subprocess.Popen[str]:
    """The started command. With STDOUT both streams come as its standard error."""
    merged = stdout == subprocess.STDOUT
    try:
        process = subprocess.Popen(
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
    if merged:
        process.stderr, process.stdout = process.stdout, None
    return process


def stop(process: subprocess.Popen[str]) -> None:
    """Interrupts a command and waits for it to clean up; one that does not end in time is killed with its children."""
    import os

    for number, seconds in ((signal.SIGINT, PATIENCE), (signal.SIGTERM, PATIENCE / 4), (signal.SIGKILL, 5.0)):
        if process.poll() is not None:
            break
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        # Whoever presses Ctrl-C again does not want to wait.
        with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
            process.communicate(timeout=seconds)


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Inside, SIGTERM and SIGHUP end the work as Ctrl-C does. Only the main thread may set that; elsewhere nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt
