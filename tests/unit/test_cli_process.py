"""What only a real process shows: closed pipes, full disks, both ways in, completion."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TINY = Path(__file__).resolve().parents[1] / "data" / "tiny"

# A process whose `app` answers at once, so that these tests are about the command line alone.
FAKE = """
import sys, types, accel_env
app = types.ModuleType("accel_env.app")
app.Request = types.SimpleNamespace
app.resolve = lambda request: {"status": "ok", "picks": {}, "filler": ["x" * 100] * 3000}
accel_env.app = sys.modules["accel_env.app"] = app
from accel_env.__main__ import main
sys.exit(main())
"""


def test_closed_pipe_is_quiet() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-c", FAKE, "resolve", "torch", "--json"], stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)
    assert done.stderr == b"" and done.returncode == 141


def test_full_disk_is_said() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full on this system")
    with full.open("wb") as stream:
        done = subprocess.run(
            [sys.executable, "-c", FAKE, "resolve", "torch"], stdout=stream, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 5 and done.stderr.startswith("error: answer-not-written\n") and "hint:" in done.stderr
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr


def test_old_locale_gets_its_answer() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    fake = FAKE.replace('"filler"', '"warnings": [{"rule": "caf\\u00e9"}], "filler"')
    done = subprocess.run(
        [sys.executable, "-c", fake, "resolve", "torch"], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0 and "caf?" in done.stdout


def test_both_ways_in() -> None:
    script = Path(sys.executable).with_name("accel-env")
    for command in ([sys.executable, "-m", "accel_env"], [sys.executable, str(script)]):
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script_is_shown(shell: str) -> None:
    environment = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "accel_env", "--show-completion", shell], capture_output=True, text=True, check=False,
        env=environment,
    )
    assert done.returncode == 0 and "_ACCEL_ENV_COMPLETE" in done.stdout


def completed(words: str) -> list[str]:
    environment = {
        **os.environ, "_ACCEL_ENV_COMPLETE": "complete_bash", "COMP_WORDS": f"accel-env {words}",
        "COMP_CWORD": str(len(words.split(" "))), "ACCEL_ENV_MATRIX": str(TINY),
    }
    done = subprocess.run(
        [sys.executable, "-m", "accel_env"], capture_output=True, text=True, check=False, env=environment
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("res", "resolve"), ("matrix st", "stats"), ("resolve --dri", "--driver"), ("resolve --target v", "venv"),
        ("resolve kern", "kernelc"), ("resolve --device mi", "mid-80"), ("resolve --device 8", "80"),
        ("matrix show kern", "kernelc"), ("matrix show cuda-13", "cuda-13.0"), ("matrix show prof", "profiles"),
        ("matrix show mid", "mid-80"), ("resolve --host m", "mid"),
        ("resolve --stack cuda-12.6", "cuda-12.6"), ("resolve --python 3.12", "3.12"), ("explain --not otherat", "otherattn"),
    ],
)
def test_words_are_completed(words: str, offered: str) -> None:
    assert completed(words) == [offered]


def test_plain_names_are_completed_first() -> None:
    from accel_env.cli.complete import completer

    complete = completer("device")
    assert complete is not None
    offered = complete("40")
    plain = [word for word in offered if "-" not in word]
    assert "4090" in plain and offered[: len(plain)] == plain and "4080-super" in offered
    assert all(word.startswith("40") and set(word) <= set("abcdefghijklmnopqrstuvwxyz0123456789-.+") for word in offered)
    assert {"rtx-4090", "rtx-4080-super"} <= set(complete("RTX-40"))


def test_completion_without_a_matrix_offers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from accel_env.cli.complete import completer

    monkeypatch.setenv("ACCEL_ENV_MATRIX", "/nowhere")
    complete = completer("device")
    assert complete is not None and complete("a") == []


def test_with_json_stderr_is_json_alone(tmp_path: Path) -> None:
    environment = {**os.environ, "ACCEL_ENV_MATRIX": str(TINY)}
    for talk, code in (('progress("at it"); raise ClosureError("a-b", "no")', 5), ("raise KeyboardInterrupt", 130)):
        fake = f"""
import sys
import accel_env.app as app
from accel_env.errors import ClosureError
from accel_env.__main__ import main
def lock(request, folder, progress):
    {talk}
app.lock = lock
sys.exit(main())
"""
        asked = [sys.executable, "-c", fake, "lock", "torch", "-o", str(tmp_path), "--json"]
        done = subprocess.run(asked, capture_output=True, text=True, check=False, env=environment)
        assert (done.returncode, done.stdout) == (code, "")
        assert json.loads(done.stderr)["error"]["exit_code"] == code
        if code == 5:
            assert subprocess.run(asked[:-1], capture_output=True, text=True, check=False).stderr.startswith("... at it\n")
