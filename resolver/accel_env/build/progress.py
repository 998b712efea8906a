"""What a builder prints while it works -> events, and what is to be said when it fails.

Three dialects: BuildKit's `rawjson` (records of vertexes, statuses and logs), BuildKit's `plain` (for a buildx that knows no
rawjson), and buildah's (podman). Each decoder takes lines as they come.
"""

from __future__ import annotations

import base64
import json
import re
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from accel_env.build.engine import CACHED, DONE, FAILED, STARTED, Step, StepBytes, StepLog, Watcher

KEPT_LINES = 20  # of a step, to show when it fails
_ENDED = (DONE, CACHED, FAILED)
_CANCELLED = re.compile(r"context canceled|^canceled$", re.IGNORECASE)  # a step that only ended because another one failed


@dataclass(frozen=True, slots=True)
class Failure:
    """The step that failed, in the builder's words, and the last lines that it printed. `step` is empty when none did."""

    step: str
    error: str
    lines: tuple[str, ...]


@dataclass(slots=True)
class _Running:
    number: int
    name: str
    state: str = ""
    began: float = 0.0
    error: str = ""
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT_LINES))
    rest: str = ""


class Board:
    """The steps of one build. `talk`: the last lines that belong to no step."""

    def __init__(self, watch: Watcher, clock: Callable[[], float] = time.monotonic) -> None:
        self._watch = watch
        self._clock = clock
        self._steps: dict[str, _Running] = {}
        self.talk: deque[str] = deque(maxlen=KEPT_LINES)

    def step(self, key: str, name: str = "") -> _Running:
        """The step of the builder's key; its name is the first one that was told."""
        known = self._steps.get(key)
        if known is None:
            known = self._steps[key] = _Running(len(self._steps) + 1, name)
        known.name = known.name or name
        return known

    def start(self, key: str, name: str = "") -> None:
        """A step begins, or goes on after a pause."""
        step = self.step(key, name)
        if not step.state:
            step.state, step.began = STARTED, self._clock()
            self._watch(Step(step.number, step.name, STARTED))

    def end(self, key: str, state: str, error: str = "", seconds: float | None = None) -> None:
        """A step ends; a failure counts more than what was told before."""
        step = self.step(key)
        if step.state in _ENDED and not (error and not step.error):
            return
        took = seconds if seconds is not None else self._clock() - step.began if step.began else 0.0
        self.log(key, "", last=True)
        step.state, step.error = state, error
        self._watch(Step(step.number, step.name, state, took))

    def log(self, key: str, text: str, *, last: bool = False) -> None:
        """Text of a step, which may end inside a line; `last` lets go of what is left."""
        step = self.step(key)
        *lines, step.rest = (step.rest + text).replace("\r\n", "\n").replace("\r", "\n").split("\n")
        if last and step.rest:
            lines, step.rest = [*lines, step.rest], ""
        for line in lines:
            if line.strip():
                step.lines.append(line.rstrip())
                self._watch(StepLog(step.number, step.name, line.rstrip()))

    def bytes(self, key: str, what: str, current: int, total: int) -> None:
        """How far a transfer has come."""
        step = self.step(key)
        self._watch(StepBytes(step.number, step.name, what, current, total))

    def failure(self) -> Failure:
        """What to say of a build that ended badly."""
        failed = [step for step in self._steps.values() if step.error]
        guilty = next((step for step in failed if not _CANCELLED.search(step.error)), None)
        if guilty is None:
            return Failure("", "", tuple(self.talk))
        return Failure(" ".join(guilty.name.split()), " ".join(guilty.error.split()), tuple(guilty.lines))


class Decoder(Protocol):
    """Reads what one kind of builder prints."""

    board: Board

    def feed(self, line: str) -> None:
        """One line, without its end."""
        ...


class RawJson:
    """BuildKit's records. They come one a line, or indented over several lines (buildx before 0.14)."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self._open: list[str] = []

    def feed(self, line: str) -> None:
        """See Decoder."""
        if self._open or line.startswith("{"):
            self._open.append(line)
            if line.endswith("}") and not line.startswith(" "):
                text, self._open = "\n".join(self._open), []
                self._record(text)
        elif line.strip():
            self.board.talk.append(line.rstrip())

    def _record(self, text: str) -> None:
        try:
            record = json.loads(text)
        except ValueError:
            self.board.talk.append(" ".join(text.split())[:500])
            return
        for vertex in record.get("vertexes") or ():
            self._vertex(vertex)
        for status in record.get("statuses") or ():
            self._status(status)
        for log in record.get("logs") or ():
            data = base64.b64decode(log.get("data") or "").decode("utf-8", "replace")
            self.board.log(log["vertex"], data)

    def _vertex(self, vertex: dict[str, Any]) -> None:
        key = vertex["digest"]
        self.board.step(key, vertex.get("name", ""))
        if vertex.get("error"):
            self.board.end(key, FAILED, vertex["error"])
        elif vertex.get("completed"):
            self.board.start(key)
            self.board.end(key, CACHED if vertex.get("cached") else DONE)
        elif vertex.get("started"):
            self.board.start(key)

    def _status(self, status: dict[str, Any]) -> None:
        what = status.get("id") or status.get("name") or ""
        self.board.bytes(status["vertex"], what, int(status.get("current") or 0), int(status.get("total") or 0))


class Plain:
    """BuildKit's plain text: `#7 [build 3/4] RUN ...`, `#7 0.51 a line`, `#7 DONE 1.2s`."""

    _LINE = re.compile(r"#(\d+) (.*)")
    _TIMED = re.compile(r"\d+\.\d+ (.*)")
    _DONE = re.compile(r"DONE (\d+\.\d+)s")

    def __init__(self, board: Board) -> None:
        self.board = board

    def feed(self, line: str) -> None:
        """See Decoder."""
        found = self._LINE.fullmatch(line.rstrip())
        if not found:
            if line.strip():
                self.board.talk.append(line.rstrip())
            return
        key, text = found.groups()
        if done := self._DONE.fullmatch(text):
            self.board.end(key, DONE, seconds=float(done.group(1)))
        elif text == "CACHED":
            self.board.end(key, CACHED)
        elif text.startswith(("ERROR:", "CANCELED")):
            self.board.end(key, FAILED, text.removeprefix("ERROR:").strip())
        elif not self.board.step(key).name:
            self.board.start(key, text)
        elif timed := self._TIMED.fullmatch(text):
            self.board.log(key, f"{timed.group(1)}\n")


class Buildah:
    """What podman and buildah print: `[1/2] STEP 3/9: RUN ...`, then the step's own lines, `Error: building at STEP ...`."""

    _STEP = re.compile(r"(?:\[\d+/\d+\] )?STEP (\d+(?:/\d+)?): (.*)")
    _CACHED = "--> Using cache"

    def __init__(self, board: Board) -> None:
        self.board = board
        self._steps = 0
        self._key = ""

    def feed(self, line: str) -> None:
        """See Decoder."""
        text = line.rstrip()
        if found := self._STEP.fullmatch(text):
            if self._key:
                self.board.end(self._key, DONE)
            self._steps += 1
            self._key = str(self._steps)
            self.board.start(self._key, found.group(2))
        elif text.startswith(self._CACHED) and self._key:
            self.board.end(self._key, CACHED)
        elif text.startswith("Error:"):
            self.board.talk.append(text)
            if self._key:
                self.board.end(self._key, FAILED, text.removeprefix("Error:").strip())
        elif text.startswith(("COMMIT ", "--> ")):
            self.board.end(self._key, DONE)
        elif text and self._key:
            self.board.log(self._key, f"{text}\n")
        elif text:
            self.board.talk.append(text)

    def finish(self) -> None:
        """The build ended well: so did its last step."""
        if self._key:
            self.board.end(self._key, DONE)
