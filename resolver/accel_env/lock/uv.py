"""The closer that asks uv; the only module that runs it. Its words are shown as they are."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from accel_env.errors import ClosureError
from accel_env.lock.artifacts import normalise
from accel_env.lock.closer import Closure, Found, Question, Refusal, StandIn, Target
from accel_env.lock.standin import write_stand_in

# What would bend the answer from outside: a lock follows from its question, the default index and uv's cache alone.
_BENDING = frozenset(
    [
        "CONSTRAINT",
        "OVERRIDE",
        "EXCLUDE",
        "BUILD_CONSTRAINT",
        "INDEX",
        "EXTRA_INDEX_URL",
        "FIND_LINKS",
        "INDEX_STRATEGY",
        "PRERELEASE",
        "RESOLUTION",
        "FORK_STRATEGY",
        "EXCLUDE_NEWER",
        "TORCH_BACKEND",
        "NO_SOURCES",
        "CUSTOM_COMPILE_COMMAND",
        "NO_BINARY",
    ]
)
_COMMAND = (
    "pip compile requirements.in --format pylock.toml --no-header --no-build --no-progress"
    " --color never --no-python-downloads --index-strategy first-index"
)
# Only to name the trouble: what uv says of a dead network comes under the same status as any other failure.
_NETWORK = ("Failed to fetch", "error sending request", "dns error", "tcp connect error", "Request failed")
_UNSOLVABLE = 1  # uv's exit status for requirements that cannot hold together; anything else is trouble of its own


class UvCloser:
    """Asks `uv pip compile`. `default_index`: another PyPI (empty: uv's own setting); `timeout` in seconds."""

    def __init__(
        self, *, program: str = "", default_index: str = "", timeout: float = 900.0, progress: Callable[[str], None] | None = None
    ) -> None:
        self._program, self._default_index, self._timeout = program, default_index, timeout
        self._progress = progress or (lambda _: None)

    def close(self, question: Question) -> Closure | Refusal:
        """The closure with the hashes of every wheel outside the stand-ins, or uv's refusal; ClosureError when uv fails."""
        import tempfile

        program = self._program or find_uv()
        if question.target.python.endswith("t"):
            raise ClosureError(
                "free-threaded-closure",
                f"uv cannot close over dependencies for the free-threaded Python {question.target.python}",
                hint=f"choose the ordinary build: --python {question.target.python.rstrip('t')}",
            )
        version = self._run([program, "--version"])[1].split()
        try:
            with tempfile.TemporaryDirectory(prefix="accel-env-") as scratch:
                words = self._words(program, question, Path(scratch))
                self._progress(f"asking uv for all that {len(question.requirements) + len(question.stand_ins)} packages need")
                status, output, talk = self._run(words, cwd=scratch)
                talk = talk.replace(f"file://{quote(scratch)}/", "").replace(f"{scratch}/", "").strip()
        except OSError as problem:
            raise ClosureError(
                "cannot-write",
                f"the stand-ins for uv cannot be written: {problem.strerror or problem}",
                hint="they need a little free space in the folder for temporary files (TMPDIR)",
            ) from None
        if status == 0:
            return Closure(
                read_pylock(output, {normalise(stand_in.name) for stand_in in question.stand_ins}),
                {"uv": version[1] if len(version) > 1 else "unknown"},
            )
        if status == _UNSOLVABLE and not question.offline:
            return Refusal(talk)
        raise _failure(status, talk, question.offline)

    def _words(self, program: str, question: Question, scratch: Path) -> list[str]:
        """The command line; the requirement files and the stand-ins are written into `scratch`."""
        asked = [_stand_in_line(write_stand_in(scratch, stand_in), stand_in) for stand_in in question.stand_ins]
        (scratch / "requirements.in").write_text(
            "".join(f"{line}\n" for line in (*asked, *question.requirements)), encoding="utf-8"
        )
        words = [program, *_COMMAND.split(), "--python", sys.executable, "--python-version", question.target.python]
        words += ["--python-platform", self._platform(program, question.target)]
        if question.constraints:
            (scratch / "constraints.in").write_text("".join(f"{line}\n" for line in question.constraints), encoding="utf-8")
            words += ["--constraints", "constraints.in"]
        if question.exclude_newer:
            words += ["--exclude-newer", question.exclude_newer]
        if self._default_index:
            words += ["--default-index", self._default_index]
        return [*words, "--offline"] if question.offline else words

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

    def _run(self, words: list[str], cwd: str | None = None) -> tuple[int, str, str]:
        """Exit status, standard output and error of uv; ClosureError when it cannot run or never ends."""
        import subprocess

        try:
            done = subprocess.run(
                words,
                cwd=cwd,
                env=_environment(os.environ),
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


def read_pylock(text: str, stand_ins: set[str]) -> tuple[Found, ...]:
    """The wheels in uv's pylock output, without those of the normalised names `stand_ins`. ClosureError when it is none."""
    try:
        packages = _rows(_load_toml(text).get("packages"))
        return tuple(
            found for package in packages if normalise(str(package["name"])) not in stand_ins for found in _wheels(package)
        )
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise ClosureError(
            "uv-output",
            f"uv's answer is not the lock file that was expected: {problem!r}",
            hint="install a version of uv that this release of accel-env names",
        ) from None


def _wheels(package: Mapping[str, Any]) -> list[Found]:
    """The wheels of one entry; an entry that has none (a version control URL) comes back as one Found without a file name."""
    name, version = str(package["name"]), str(package["version"])
    archive = package.get("archive")
    found = []
    for wheel in [*_rows(package.get("wheels")), *([archive] if archive else [])]:
        url = str(wheel.get("url") or wheel.get("path"))
        filename = str(wheel.get("name") or unquote(url.partition("#")[0].rpartition("/")[2]))
        size = wheel.get("size")
        found.append(
            Found(
                name,
                version,
                filename,
                url,
                str((wheel.get("hashes") or {}).get("sha256", "")),
                size if isinstance(size, int) else None,
            )
        )
    return found or [Found(name, version, "", "", "")]


def _rows(value: object) -> list[Mapping[str, Any]]:
    """A list of tables, empty where there is none; TypeError for anything else."""
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise TypeError(f"a list of tables was expected, not {type(value).__name__}")
    return value


def _load_toml(text: str) -> dict[str, object]:
    """The mapping in a TOML text; the standard library reads it from Python 3.11 on."""
    import importlib

    toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    loaded = toml.loads(text)
    return loaded if isinstance(loaded, dict) else {}


def _stand_in_line(path: Path, stand_in: StandIn) -> str:
    extras = f"[{','.join(stand_in.extras)}]" if stand_in.extras else ""
    return f"{stand_in.name}{extras} @ {path.as_uri()}"


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    """The environment without what would bend the answer."""
    return {key: value for key, value in given.items() if not (key.startswith("UV_") and key[3:] in _BENDING)}


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
    return ClosureError("uv-failed", f"uv ended with status {status}", context=lines, hint="the text above is uv's own")
