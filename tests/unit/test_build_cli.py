"""`build` and `verify` as typed, and what they show."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from accel_env import app_build
from accel_env.__main__ import main
from accel_env.app_build import BuildWords
from accel_env.build.engine import Event, Step, StepBytes, StepLog
from accel_env.cli.show_build import Live, built_lines, line_of, size, verified_lines, view
from accel_env.errors import VerifyError

RUN = "[build 3/4] RUN --mount=type=cache,target=/c python3 -m venv"
EVENTS: list[Event] = [
    Step(1, "[internal] load build definition", "started"),
    Step(2, RUN, "started"),
    StepBytes(2, RUN, "sha256:l", 500_000, 1_500_000),
    StepLog(2, RUN, "Collecting six"),
    Step(2, RUN, "done", 12.34),
    Step(3, "[build 1/4] FROM x", "cached"),
    Step(4, "exporting to image", "failed", 1.0),
]
ANSWER: dict[str, Any] = {
    "image": "accel-env/x:1", "config": "sha256:c", "manifest": "", "layers": ["sha256:" + "a" * 64], "size": 1_100_000_000,
    "seconds": 3.2, "engine": {"name": "docker", "version": "26"}, "notes": ["a note"], "written": ["DIR/image.json"],
    "run": ["docker", "run", "--rm", "--gpus", "all", "accel-env/x:1"],
}  # fmt: skip


def test_lines_for_a_log() -> None:
    assert [line for line in map(line_of, EVENTS) if line] == [
        "... [build 3/4] RUN python3 -m venv",
        "    Collecting six",
        "... [build 3/4] done in 12.3 s",
        "... [build 1/4] from the cache",
        "... exporting to image failed after 1.0 s",
    ]


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_the_live_view(monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.console import Console

    screen = Terminal()
    console = Console(file=screen, force_terminal=True, width=80, highlight=False)
    with Live(console) as live:
        for event in EVENTS[:4]:
            live.show(event)
        drawn = io.StringIO()
        Console(file=drawn, width=80).print(live._draw())
        for event in EVENTS[4:]:
            live.show(event)
    assert "RUN python3 -m venv  500.0 kB of 1.5 MB" in drawn.getvalue() and "Collecting six" in drawn.getvalue()
    assert "done in 12.3 s  [build 3/4] RUN python3 -m venv" in screen.getvalue()


@pytest.mark.parametrize(
    ("mode", "terminal", "term", "kind"),
    [("", False, "xterm", "lines"), ("", True, "dumb", "lines"), ("", True, "xterm", "live"), ("plain", True, "xterm", "lines"),
     ("quiet", True, "xterm", "nothing")],
)  # fmt: skip
def test_which_view_is_taken(monkeypatch: pytest.MonkeyPatch, mode: str, terminal: bool, term: str, kind: str) -> None:
    stream = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", term)
    with view(mode) as watch:
        for event in EVENTS:
            watch(event)
    assert ("... [build 3/4] RUN" in stream.getvalue()) == (kind == "lines")
    assert (stream.getvalue() == "") == (kind == "nothing")


def test_sizes() -> None:
    assert [size(count) for count in (5, 5000, 5_500_000, 1_100_000_000)] == ["5 B", "5.0 kB", "5.5 MB", "1.1 GB"]


def test_what_was_built() -> None:
    assert built_lines(ANSWER, 100) == [
        "image   accel-env/x:1",
        "config  sha256:c",
        "layers  sha256:aaaaaaaaaaaa",
        "size    1.1 GB",
        "time    3.2 s",
        "engine  docker 26",
        "note: a note",
        "wrote DIR/image.json",
        "",
        "next: accel-env verify DIR, or docker run --rm --gpus all accel-env/x:1",
    ]
    verified = verified_lines({**ANSWER, "seconds": [0.3, 41.0], "recorded": True}, 100)
    assert verified[0] == "two builds gave the same image, the one of image.json"
    assert "time    0.3 s, and 41.0 s without the cache" in verified


Fake = Callable[..., dict[str, Any]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[BuildWords]:
    """What the verbs asked of the application."""
    found: list[BuildWords] = []

    def build(words: BuildWords, watch: Callable[[Event], None]) -> Mapping[str, object]:
        found.append(words)
        watch(EVENTS[1])
        return ANSWER

    def verify(words: BuildWords, watch: Callable[[Event], None], say: Callable[[str], None]) -> Mapping[str, object]:
        found.append(words)
        say("building")
        raise VerifyError("not-reproducible", "two builds differ", context=("/opt/x: content",))

    monkeypatch.setattr(app_build, "build", build)
    monkeypatch.setattr(app_build, "verify", verify)
    return found


def test_build_as_typed(asked: list[BuildWords], capsys: pytest.CaptureFixture[str]) -> None:
    words = (
        "build DIR -t a:b --push r/x:1 --platform linux/arm64 --builder far --network host --secret id=ca,src=x "
        "--secret id=pip,src=y --no-cache --engine docker --json"
    )
    assert main([*words.split(), "--progress", "plain"]) == 0
    secrets = ("id=ca,src=x", "id=pip,src=y")
    assert asked == [BuildWords("DIR", "a:b", "r/x:1", "linux/arm64", "far", "host", secrets, "docker", True)]
    out, err = capsys.readouterr()
    assert json.loads(out)["config"] == "sha256:c" and "... [build 3/4] RUN" in err
    assert main(["build", "DIR", "--json"]) == 0 and capsys.readouterr().err == ""


def test_verify_as_typed(asked: list[BuildWords], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "DIR", "--progress", "quiet"]) == 7
    out, err = capsys.readouterr()
    assert out == "" and "error: not-reproducible" in err and "/opt/x: content" in err and "... building" in err


@pytest.mark.parametrize(
    "words", ["build", "verify", "build A B", "verify DIR --push x", "build DIR --engine lxc", "build DIR --nothing"]
)
def test_misread(asked: list[BuildWords], capsys: pytest.CaptureFixture[str], words: str) -> None:
    assert main(words.split()) == 2
    assert not asked and "hint:" in capsys.readouterr().err


def test_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", str(tmp_path)]) == 2
    assert "has no Dockerfile" in capsys.readouterr().err
