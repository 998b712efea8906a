"""What a probe may ask of a machine."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

TYPE_CHECKING = False  # `typing` is not loaded at start-up
if TYPE_CHECKING:
    from typing import Protocol
else:
    Protocol = object

TIMEOUT = 10.0  # seconds that a vendor's tool may take
OUTPUT_LIMIT = 4 << 20  # bytes of both streams together; a tool that prints more is stopped
TEXT_LIMIT = 4 << 20  # bytes read of a text file
SCAN_LIMIT = 64 << 20  # bytes read of a binary


@dataclass(frozen=True, slots=True)
class Completed:
    """The end of a command. `status` is None where it never ended by itself; `problem` is empty when all went well.

    `problem` is one sentence for people; `missing` tells the harmless one (no such program) from the others.
    """

    argv: tuple[str, ...]
    status: int | None
    stdout: str
    stderr: str
    problem: str = ""
    missing: bool = False


@dataclass(frozen=True, slots=True)
class Machine:
    """What the interpreter knows without looking further.

    `os` is `linux`, `macos` or `windows`; `libc` is `glibc 2.36` or empty; `python` is `X.Y`, `X.Yt` when free-threaded.
    """

    os: str
    release: str
    cpu: str
    python: str
    libc: str = ""


class System(Protocol):
    """A machine as probes see it. Paths are absolute; missing things come back as None or empty, never as an exception."""

    def machine(self) -> Machine:
        """The operating system, kernel release, CPU and interpreter."""

    def env(self, name: str) -> str | None:
        """An environment variable, None when unset."""

    def read_text(self, path: str) -> str | None:
        """The start of a file (up to 4 MiB), undecodable bytes replaced; None when it cannot be read."""

    def access(self, path: str) -> str:
        """`ok` (readable), `denied` or `absent`."""

    def listdir(self, path: str) -> tuple[str, ...]:
        """The names in a directory, sorted; empty when there is none."""

    def glob(self, pattern: str) -> tuple[str, ...]:
        """The paths that match a shell pattern (`*`, `?`, `[...]`, never across `/`), sorted."""

    def readlink(self, path: str) -> str | None:
        """What a symbolic link points to, as written in it; None when it is no link."""

    def scan(self, path: str, pattern: str) -> tuple[str, ...]:
        """The distinct matches of an ASCII regular expression in a binary file, sorted; empty when unreadable."""

    def run(self, argv: Sequence[str], timeout: float = TIMEOUT) -> Completed:
        """What a command printed: bounded in time (seconds) and output, LC_ALL=C, no standard input."""
