"""The closer that asks uv; the only module that runs it. Its words are shown as they are."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from accel_env.errors import ClosureError
from accel_env.lock.answer import read_pylock
from accel_env.lock.artifacts import normalise
from accel_env.lock.closer import Closure, Question, Refusal, StandIn, Target
from accel_env.lock.question import refuse_free_threaded
from accel_env.lock.settings import asks_offline, environment, settings
from accel_env.lock.standin import write_stand_in

if TYPE_CHECKING:
    from accel_env.system.types import System

_COMMAND = (
    "pip compile requirements.in --format pylock.toml --no-header --no-build --no-progress"
    " --color never --no-python-downloads --index-strategy first-index --config-file uv.toml"
)
# Only to name the trouble: what uv says of a dead network comes under the same status as any other failure.
_NETWORK = ("Failed to fetch", "error sending request", "dns error", "tcp connect error", "Request failed")
_NO_PLACE = ("initialize cache", "Read-only file system", "Permission denied", "No space left")
_UNSOLVABLE = 1  # uv's exit status for requirements that cannot hold together; anything else is trouble of its own


class UvCloser:
    """Asks `uv pip compile`. `default_index`: another PyPI (empty: the user's, as `system` has it configured); `timeout` in s."""

    def __init__(
        self,
        *,
        program: str = "",
        default_index: str = "",
        timeout: float = 900.0,
        progress: Callable[[str], None] | None = None,
        system: System | None = None,
    ) -> None:
        from accel_env.system.real import RealSystem

        self._program, self._default_index, self._timeout = program, default_index, timeout
        self._progress, self._system = progress or (lambda _: None), system or RealSystem()

    def close(self, question: Question) -> Closure | Refusal:
        """The closure with the hashes of every wheel outside the stand-ins, or uv's refusal; ClosureError when uv fails."""
        import tempfile

        refuse_free_threaded(question.target.python)
        program, offline = self._program or find_uv(), question.offline or asks_offline(self._system)
        version = self._run([program, "--version"])[1].split()
        try:
            with tempfile.TemporaryDirectory(prefix="accel-env-") as scratch:
                words = [*self._words(program, question, Path(scratch)), *(["--offline"] if offline else [])]
                count = len(question.requirements) + len(question.stand_ins)
                self._progress("asking uv for all that " + ("a package needs" if count == 1 else f"{count} packages need"))
                status, output, talk = self._run(words, scratch, question.target.os_floor)
                talk = talk.replace(f"file://{quote(scratch)}/", "").replace(f"{scratch}/", "").strip()
        except OSError as problem:
            raise ClosureError(
                "cannot-write",
                f"the stand-ins for uv cannot be written: {problem.strerror or problem}",
                hint="they need a little free space in the folder for temporary files (TMPDIR)",
            ) from None
        if status == 0:
            ours = {normalise(stand_in.name) for stand_in in (*question.stand_ins, *question.substitutes)}
            files, seen = read_pylock(output, ours)
            asked = frozenset(normalise(stand_in.name) for stand_in in question.substitutes) & seen
            return Closure(files, {"uv": version[1] if len(version) > 1 else "unknown"}, asked)
        if status == _UNSOLVABLE and not offline:
            return Refusal(talk)
        raise _failure(status, talk, offline)

    def _words(self, program: str, question: Question, scratch: Path) -> list[str]:
        """The command line; the requirement files and the stand-ins are written into `scratch`."""
        asked = [_stand_in_line(write_stand_in(scratch, stand_in), stand_in) for stand_in in question.stand_ins]
        _write(scratch / "requirements.in", (*asked, *question.requirements))
        _write(scratch / "uv.toml", [] if self._default_index else settings(self._system).splitlines())
        words = [program, *_COMMAND.split(), "--python", sys.executable, "--python-version", question.target.python]
        words += ["--python-platform", self._platform(program, question.target)]
        # a constraint with an address counts only where something asks for its package
        others = [_stand_in_line(write_stand_in(scratch, stand_in), stand_in) for stand_in in question.substitutes]
        if question.constraints or others:
            _write(scratch / "constraints.in", (*question.constraints, *others))
            words += ["--constraints", "constraints.in"]
        return [*words, "--exclude-newer", question.exclude_newer] if question.exclude_newer else words

    def _platform(self, program: str, target: Target) -> str:
        """uv's word for the target: the highest manylinux level that it knows and the libc allows."""
        system, _, machine = target.platform.partition("_")
        if system == "windows":
            return f"{machine}-pc-windows-msvc"
        if system == "macos":
            return f"{machine}-apple-darwin"
        if target.libc_family == "musl":
            return f"{machine}-unknown-linux-musl"
        known = self._run([program, "pip", "compile", "--help"])[1]
        return manylinux(machine, target.libc, known) or f"{machine}-unknown-linux-gnu"

    def _run(self, words: list[str], cwd: str | None = None, os_floor: str = "") -> tuple[int, str, str]:
        """Exit status, standard output and error of uv; ClosureError when it cannot run or never ends."""
        import subprocess

        try:
            done = subprocess.run(
                words,
                cwd=cwd,
                env=environment(os.environ, self._default_index, os_floor),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                encoding="utf-8",
                errors="replace",
                timeout=self._timeout,
                check=False,
            )
        except OSError as problem:
            raise ClosureError(
                "uv-missing", f"{words[0]} cannot be started: {problem.strerror or problem}", hint="pip install uv"
            ) from None
        except subprocess.TimeoutExpired:
            raise ClosureError(
                "uv-timeout", f"uv did not answer within {self._timeout:g} s", hint="look at the network, or use --offline"
            ) from None
        return done.returncode, done.stdout, done.stderr


def _write(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def find_uv() -> str:
    """The path of uv: beside this interpreter, else on PATH. ClosureError when it is nowhere."""
    import shutil

    name = "uv.exe" if os.name == "nt" else "uv"
    beside = Path(sys.executable).parent / name
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("uv")
    if not found:
        raise ClosureError("uv-missing", "uv is not installed, and locking needs it", hint="pip install uv")
    return found


def manylinux(machine: str, libc: str, known: str) -> str:
    """The highest `<machine>-manylinux_X_Y` named in `known` that glibc `libc` can run; empty when there is none."""
    wanted = re.fullmatch(r"(\d+)\.(\d+).*", libc)
    if not wanted:
        return ""
    levels = {(int(a), int(b)) for a, b in re.findall(rf"\b{re.escape(machine)}-manylinux_(\d+)_(\d+)\b", known)}
    fitting = [level for level in levels if level <= (int(wanted.group(1)), int(wanted.group(2)))]
    return f"{machine}-manylinux_{max(fitting)[0]}_{max(fitting)[1]}" if fitting else ""


def _stand_in_line(path: Path, stand_in: StandIn) -> str:
    extras = f"[{','.join(stand_in.extras)}]" if stand_in.extras else ""
    return f"{stand_in.name}{extras} @ {path.as_uri()}"


def _failure(status: int, talk: str, offline: bool) -> ClosureError:
    """The error for an answer that is neither a closure nor a clean refusal."""
    lines = tuple(talk.splitlines())
    if offline:
        return ClosureError(
            "network-needed",
            "uv cannot close over all dependencies from its cache alone",
            context=lines,
            hint="run once without --offline; the cache then serves the next time",
        )
    if any(word in talk for word in _NETWORK):
        return ClosureError(
            "network-down",
            "uv could not get what it needs from an index",
            context=lines,
            hint="check the network, UV_DEFAULT_INDEX and the proxy, or use --offline where uv's cache has everything",
        )
    if "cache" in talk and any(word in talk for word in _NO_PLACE):
        return ClosureError(
            "uv-cache",
            "uv has no place for its cache",
            context=lines,
            hint="name a folder that can be written to: UV_CACHE_DIR=FOLDER",
        )
    return ClosureError("uv-failed", f"uv ended with status {status}", context=lines, hint="the text above is uv's own")
