"""scripts/accel-env sets up .venv once, again when it must, and says what is wrong when it cannot.

A fake python3 stands in for the interpreter: it makes "environments", notes every call, and fails on demand.
"""
from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

FAKE_PYTHON = r"""#!/bin/bash
echo "$*" >>"$CALLS"
case "$*" in
"-c import sys"*) exit "${TOO_OLD:-0}" ;;
"-c import ensurepip"*) [[ -z ${NO_VENV:-} ]] ;;
"-m venv --clear "*)
    [[ -z ${NO_VENV:-} ]] || { echo "ensurepip is not available" >&2; exit 1; }
    mkdir -p "$4/bin"
    ln -sf "$SELF" "$4/bin/python"
    ;;
"-m pip install "*)
    sleep "${PIP_SLEEP:-0}"
    [[ -z ${NO_NETWORK:-} ]] || { echo "no route to host" >&2; exit 1; }
    echo pip talks
    ;;
*) shift; [[ ${1:-} != tell ]] || printf 'called as: %s\n' "$ACCEL_ENV_PROGRAM"; printf 'ran: %s\n' "$*" ;;
esac
"""


class Checkout:
    """A copy of the scripts with a pyproject.toml of its own, and a PATH whose python3 is the fake."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "check out"
        (self.root / "scripts").mkdir(parents=True)
        for name in ("accel-env", "_setup.sh"):
            shutil.copy(ROOT / "scripts" / name, self.root / "scripts" / name)
        (self.root / "pyproject.toml").write_text("[project]\n")
        self.python = folder / "bin" / "python3"
        self.python.parent.mkdir()
        self.python.write_text(FAKE_PYTHON)
        self.python.chmod(0o755)
        self.calls = folder / "calls"
        self.calls.touch()

    def environment(self, **extra: str) -> dict[str, str]:
        path = f"{self.python.parent}:/usr/bin:/bin"
        return {"PATH": path, "CALLS": str(self.calls), "SELF": str(self.python), "HOME": str(self.root), **extra}

    def run(self, *words: str, script: Path | None = None, **extra: str) -> subprocess.CompletedProcess[str]:
        command = [str(script or self.root / "scripts" / "accel-env"), *words]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, cwd="/", env=self.environment(**extra), timeout=30
        )

    def count(self, beginning: str) -> int:
        return sum(line.startswith(beginning) for line in self.calls.read_text().splitlines())


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_first_run_sets_up_and_later_runs_do_not(checkout: Checkout) -> None:
    first = checkout.run("resolve", "a b", "--json")
    assert first.returncode == 0
    assert first.stdout == "ran: resolve a b --json\n", "stdout is the program's alone"
    assert "setting up" in first.stderr
    second = checkout.run("resolve")
    assert second.stderr == ""
    assert (checkout.count("-m venv"), checkout.count("-m pip")) == (1, 1)


def test_runs_through_a_link(checkout: Checkout, tmp_path: Path) -> None:
    link = tmp_path / "bin" / "accel-env"
    link.symlink_to("../check out/scripts/accel-env")
    assert checkout.run("x", script=link).stdout == "ran: x\n"


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("'check out/scripts/accel-env'", "check out/scripts/accel-env"),
        ("'./check out/scripts/accel-env'", "./check out/scripts/accel-env"),
        ("'$PWD/check out/scripts/accel-env'", "$PWD/check out/scripts/accel-env"), ("ae", "ae"), ("tools/ae", "tools/ae"),
    ],
)
def test_program_is_told_how_it_was_called(typed: str, told: str, checkout: Checkout, tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "ae").symlink_to(checkout.root / "scripts" / "accel-env")
    environment = checkout.environment()
    environment["PATH"] = f"{tmp_path}/tools:{environment['PATH']}"
    command = typed.replace("$PWD", str(tmp_path))
    done = subprocess.run(
        ["bash", "-c", f"{command} tell"], capture_output=True, text=True, check=False, cwd=tmp_path, env=environment, timeout=30
    )
    assert done.stdout.splitlines()[0] == f"called as: {told.replace('$PWD', str(tmp_path))}", done.stderr


def test_changed_pyproject_installs_again_into_the_same_environment(checkout: Checkout) -> None:
    checkout.run()
    (checkout.root / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    checkout.run()
    assert (checkout.count("-m venv"), checkout.count("-m pip")) == (1, 2)


def test_other_python_starts_anew(checkout: Checkout, tmp_path: Path) -> None:
    checkout.run()
    other = tmp_path / "python3.99"
    shutil.copy(checkout.python, other)
    link = checkout.root / ".venv" / "bin" / "python"
    link.unlink()
    link.symlink_to(other)
    assert checkout.run().returncode == 0
    assert checkout.count("-m venv") == 2


def test_vanished_python_starts_anew(checkout: Checkout) -> None:
    checkout.run()
    link = checkout.root / ".venv" / "bin" / "python"
    link.unlink()
    link.symlink_to("/nowhere/python3")
    assert checkout.run().returncode == 0


def test_moved_checkout_starts_anew(checkout: Checkout, tmp_path: Path) -> None:
    checkout.run()
    checkout.root.rename(tmp_path / "moved")
    checkout.root = tmp_path / "moved"
    assert checkout.run().returncode == 0
    assert checkout.count("-m venv") == 2


def test_failed_install_is_said_and_tried_again(checkout: Checkout) -> None:
    failed = checkout.run(NO_NETWORK="1")
    assert failed.returncode == 5 and failed.stdout == ""
    assert "no route to host" in failed.stderr and "error: no-install" in failed.stderr and "hint: check that" in failed.stderr
    assert checkout.run("x").stdout == "ran: x\n"


def test_interrupted_set_up_starts_anew(checkout: Checkout) -> None:
    process = subprocess.Popen(
        [checkout.root / "scripts" / "accel-env"], env=checkout.environment(PIP_SLEEP="20"), start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    while not checkout.count("-m pip"):
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert checkout.run("x").stdout == "ran: x\n"
    assert checkout.count("-m venv") == 2


def test_two_at_once_set_up_once(checkout: Checkout) -> None:
    processes = [
        subprocess.Popen(
            [checkout.root / "scripts" / "accel-env", "x"], env=checkout.environment(PIP_SLEEP="0.3"), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for _ in range(2)
    ]
    assert [process.communicate(timeout=30)[0] for process in processes] == ["ran: x\n", "ran: x\n"]
    assert (checkout.count("-m venv"), checkout.count("-m pip")) == (1, 1)


def test_missing_venv_module_is_named(checkout: Checkout) -> None:
    done = checkout.run(NO_VENV="1")
    assert done.returncode == 3 and "error: no-venv-module" in done.stderr and "python3-venv" in done.stderr


def test_old_python_is_named(checkout: Checkout) -> None:
    # Only the fake may be found: the system's own Python would do.
    tools = checkout.python.parent
    for tool in ("bash", "env", "sha256sum", "dirname", "readlink", "flock", "mktemp", "rm", "cat"):
        found = shutil.which(tool)
        if found:
            (tools / tool).symlink_to(found)
    done = checkout.run(TOO_OLD="1", PATH=str(tools))
    assert done.returncode == 3 and "error: no-python" in done.stderr and "3.10" in done.stderr


def test_missing_pyproject_is_named(checkout: Checkout) -> None:
    (checkout.root / "pyproject.toml").unlink()
    done = checkout.run()
    assert done.returncode == 3 and "error: no-pyproject" in done.stderr


@pytest.mark.parametrize("path", ["scripts/accel-env", "scripts/test", ".ci/run"])
def test_scripts_are_executable_and_parse(path: str) -> None:
    assert os.access(ROOT / path, os.X_OK)
    assert subprocess.run(["bash", "-n", ROOT / path], check=False).returncode == 0
