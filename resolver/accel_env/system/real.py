"""This machine."""
from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence

from accel_env.system.types import OUTPUT_LIMIT, SCAN_LIMIT, TEXT_LIMIT, TIMEOUT, Completed, Machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from typing import IO

_OS_NAMES = {"linux": "linux", "darwin": "macos", "win32": "windows", "cygwin": "windows"}


class RealSystem:
    """The machine that this process runs on; every method as in System."""

    def machine(self) -> Machine:
        """See System."""
        thread = "t" if "t" in getattr(sys, "abiflags", "") else ""
        python = f"{sys.version_info.major}.{sys.version_info.minor}{thread}"
        if hasattr(os, "uname"):
            release, cpu = os.uname().release, os.uname().machine
        else:  # Windows only: `platform` is slow to import
            import platform

            release, cpu = platform.version(), platform.machine()
        return Machine(_OS_NAMES.get(sys.platform, sys.platform), release, cpu, python, _confstr_libc())

    def env(self, name: str) -> str | None:
        """See System."""
        return os.environ.get(name)

    def read_text(self, path: str) -> str | None:
        """See System."""
        data = _read(path, TEXT_LIMIT)
        return None if data is None else data.decode("utf-8", "replace")

    def access(self, path: str) -> str:
        """See System."""
        if not os.path.lexists(path):
            return "absent"
        return "ok" if os.access(path, os.R_OK) else "denied"

    def listdir(self, path: str) -> tuple[str, ...]:
        """See System."""
        try:
            return tuple(sorted(os.listdir(path)))
        except (OSError, ValueError):
            return ()

    def glob(self, pattern: str) -> tuple[str, ...]:
        """See System."""
        import glob

        return tuple(sorted(glob.glob(pattern)))

    def readlink(self, path: str) -> str | None:
        """See System."""
        try:
            return os.readlink(path)
        except (OSError, ValueError):
            return None

    def scan(self, path: str, pattern: str) -> tuple[str, ...]:
        """See System."""
        import re

        data = _read(path, SCAN_LIMIT) or b""
        return tuple(sorted({match.group().decode("ascii", "replace") for match in re.finditer(pattern.encode("ascii"), data)}))

    def run(self, argv: Sequence[str], timeout: float = TIMEOUT) -> Completed:
        """See System."""
        import subprocess

        words = tuple(argv)
        try:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env={**os.environ, "LC_ALL": "C"}, start_new_session=os.name == "posix",
            )
        except FileNotFoundError:
            return Completed(words, None, "", "", f"{words[0]} is not installed", missing=True)
        except (OSError, ValueError) as error:
            return Completed(words, None, "", "", f"{words[0]} cannot be started ({error.__class__.__name__})")
        return _watch(process, words, timeout)


def _read(path: str, limit: int) -> bytes | None:
    """Up to `limit` bytes of a regular file; None when it cannot be read. A FIFO or a device is never opened: it may block."""
    try:
        if not os.path.isfile(path):
            return None
        with open(path, "rb") as stream:
            return stream.read(limit)
    except (OSError, ValueError):
        return None


def _confstr_libc() -> str:
    """`glibc 2.36` where the C library of this interpreter says so, else empty."""
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (AttributeError, OSError, ValueError):
        return ""


class _Reader:
    """Collects one stream in a thread of its own (works for pipes on every system) until it ends or grows too long."""

    def __init__(self, stream: IO[bytes]) -> None:
        import threading

        self._stream = stream
        self.data = bytearray()
        self.full = False
        self._thread = threading.Thread(target=self._collect, daemon=True)
        self._thread.start()

    def _collect(self) -> None:
        try:
            while chunk := os.read(self._stream.fileno(), 65536):
                self.data += chunk
                if len(self.data) > OUTPUT_LIMIT // 2:
                    self.full = True
                    return
        except (OSError, ValueError):
            return

    def join(self, seconds: float) -> bool:
        """True when the stream has ended."""
        self._thread.join(max(seconds, 0.0))
        return not self._thread.is_alive()

    def close(self) -> str:
        """What was collected, cut at the limit. A stream that somebody still reads (a process that cannot die) stays open."""
        if self.join(0.5):
            self._stream.close()
        return bytes(self.data[: OUTPUT_LIMIT // 2]).decode("utf-8", "replace")


def _watch(process: subprocess.Popen[bytes], words: tuple[str, ...], timeout: float) -> Completed:
    """Wait for a command and its output; kill the whole process group when it takes too long or prints too much."""
    assert process.stdout is not None and process.stderr is not None
    readers = (_Reader(process.stdout), _Reader(process.stderr))
    deadline = time.monotonic() + timeout
    problem = ""
    while process.poll() is None and not problem:
        if any(reader.full for reader in readers):
            problem = f"{words[0]} printed more than {OUTPUT_LIMIT >> 20} MiB and was stopped"
        elif time.monotonic() > deadline:
            problem = f"{words[0]} did not answer within {timeout:g} s and was stopped"
        else:
            readers[0].join(0.02)
            time.sleep(0.001)
    status = process.returncode
    # A child that the command left behind may hold the pipes open: its output is not waited for.
    for reader in readers:
        reader.join(0.0 if problem else 0.5)
    _end_group(process)
    stdout, stderr = (reader.close() for reader in readers)
    if not problem and status:
        said = next((line.strip() for line in f"{stderr}\n{stdout}".splitlines() if line.strip()), "")
        problem = f"{words[0]} failed with status {status}" + (f": {said[:200]}" if said else "")
    return Completed(words, status, stdout, stderr, problem)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of a command and its children; give up after a second: a process stuck in the kernel cannot die."""
    import signal
    import subprocess

    try:
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        elif process.poll() is None:
            process.kill()
    except (ProcessLookupError, PermissionError):
        pass
    try:
        process.wait(1.0)
    except subprocess.TimeoutExpired:
        return
