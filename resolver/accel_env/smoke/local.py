"""The checks in an interpreter of this machine, and virtual environments made from a lock to run them in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from accel_env.errors import ClosureError, UsageError, VerifyError
from accel_env.smoke.checks import program

PROGRAM, EXPECT = "checks.py", "expect.json"


@contextmanager
def prepared(expect: dict[str, Any]) -> Iterator[str]:
    """A folder with the program and what it compares with; everybody may read it, for it is also seen from containers."""
    with tempfile.TemporaryDirectory(prefix="accel-env-smoke-") as folder:
        os.chmod(folder, 0o755)
        for name, content in ((PROGRAM, program()), (EXPECT, json.dumps(expect).encode())):
            path = os.path.join(folder, name)
            with open(path, "wb") as stream:
                stream.write(content)
            os.chmod(path, 0o644)
        yield folder


def run_here(python: str, expect: dict[str, Any], words: tuple[str, ...], say: Callable[[str], None]) -> tuple[str, str]:
    """(report, talk) of the checks in an interpreter; each line of talk goes to `say` as it comes."""
    with prepared(expect) as folder:
        output = os.path.join(folder, "report.json")
        line = [python, os.path.join(folder, PROGRAM), *words, "--expect", f"@{os.path.join(folder, EXPECT)}", "--output", output]
        talk = []
        try:
            process = subprocess.Popen(
                line, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
            )
        except OSError as problem:
            raise VerifyError("no-python", f"{python} cannot be started: {problem.strerror or problem}") from None
        with process:
            assert process.stderr is not None
            try:
                for text in process.stderr:
                    talk.append(text)
                    say(text.rstrip())
            except BaseException:
                process.terminate()
                raise
        try:
            return Path(output).read_text(encoding="utf-8"), "".join(talk)
        except OSError:
            return "", "".join(talk)


def python_of(folder: str) -> str:
    """The interpreter of a virtual environment; empty where the folder is none."""
    for parts in (("bin", "python"), ("Scripts", "python.exe")):
        path = os.path.join(folder, *parts)
        if os.access(path, os.X_OK):
            return path
    return ""


@contextmanager
def installed(plan: dict[str, Any], lock: str, uv: str, say: Callable[[str], None]) -> Iterator[str]:
    """The interpreter of a scratch environment that holds exactly the lock; it is removed afterwards.

    UsageError where the plan is for another machine, ClosureError (5) when a file cannot be had or has another hash.
    """
    _check_machine(plan)
    version = str(plan["python"])
    with tempfile.TemporaryDirectory(prefix="accel-env-venv-") as folder:
        say(f"a scratch environment with Python {version}")
        made = _uv([uv, "venv", "--quiet", "--no-python-downloads", "--python", version, os.path.join(folder, "venv")])
        if made:
            raise UsageError(
                "no-python", f"this machine has no Python {version}", context=made, hint="smoke the image instead, or install it"
            )
        python = python_of(os.path.join(folder, "venv"))
        say("installing the lock")
        problem = _uv([uv, "pip", "sync", "--quiet", "--require-hashes", "--python", python, lock])
        if problem:
            raise ClosureError(
                "install-failed", f"{lock} cannot be installed", context=problem, hint="the text above is uv's own"
            )
        yield python


def _check_machine(plan: dict[str, Any]) -> None:
    host, here = plan["host"], os.uname() if hasattr(os, "uname") else None
    wanted = (str(host.get("os")), str(host.get("arch")))
    found = (sys.platform, here.machine.replace("arm64", "aarch64") if here else "")
    if wanted != found:
        raise UsageError(
            "another-machine",
            f"the plan is for {' '.join(wanted)}, this machine is {' '.join(found)}",
            hint="build its image and smoke that, on a machine that can run it",
        )


def _uv(words: list[str]) -> tuple[str, ...]:
    """The last lines of a failed uv; none when it went well."""
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return tuple((done.stderr or done.stdout).strip().splitlines()[-8:] or ("no word",)) if done.returncode else ()
