"""What builders print, read: steps, lines, failures."""

from __future__ import annotations

import base64
import json

import pytest

from accel_env.build.engine import Event, Step, StepBytes, StepLog
from accel_env.build.progress import Board, Buildah, Decoder, Failure, Plain, RawJson


class Heard:
    """A board whose events are kept; its clock goes on by a second per look."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._now = 0.0
        self.board = Board(self.events.append, self._clock)

    def _clock(self) -> float:
        self._now += 1.0
        return self._now

    def lines(self) -> list[str]:
        """The events in short."""
        return [short(event) for event in self.events]


def short(event: Event) -> str:
    if isinstance(event, Step):
        return f"{event.number} {event.state} {event.name}"
    if isinstance(event, StepLog):
        return f"{event.number} | {event.text}"
    return f"{event.number} {event.what} {event.current}/{event.total}"


def log(vertex: str, text: str) -> dict[str, object]:
    return {"logs": [{"vertex": vertex, "stream": 1, "data": base64.b64encode(text.encode()).decode()}]}


RUN = {"digest": "sha256:b", "name": "[build 2/2] RUN make"}
RECORDS: list[dict[str, object]] = [
    {"vertexes": [{"digest": "sha256:a", "name": "[build 1/2] FROM x"}]},
    {"vertexes": [{"digest": "sha256:a", "started": "t"}, {"digest": "sha256:a", "started": "t"}]},
    {"statuses": [{"id": "sha256:l", "vertex": "sha256:a", "name": "downloading", "current": 5, "total": 9}]},
    {"vertexes": [{"digest": "sha256:a", "started": "t", "completed": "t"}]},
    {"vertexes": [{"digest": "sha256:c", "name": "[build 0/2] COPY y", "started": "t", "completed": "t", "cached": True}]},
    {"vertexes": [{**RUN, "started": "t"}]},
    log("sha256:b", "one li"),
    log("sha256:b", "ne\r\ntwo\n\npart"),
]
GOOD: list[dict[str, object]] = [{"vertexes": [{**RUN, "started": "t", "completed": "t"}]}]
BAD: list[dict[str, object]] = [
    {"vertexes": [{"digest": "sha256:d", "name": "other", "started": "t", "error": "context canceled"}]},
    {
        "vertexes": [
            {**RUN, "started": "t", "completed": "t", "error": 'process "/bin/sh -c make" did not complete: exit code: 2'}
        ]
    },
]
HEARD = [
    "1 started [build 1/2] FROM x",
    "1 sha256:l 5/9",
    "1 done [build 1/2] FROM x",
    "2 started [build 0/2] COPY y",
    "2 cached [build 0/2] COPY y",
    "3 started [build 2/2] RUN make",
    "3 | one line",
    "3 | two",
    "3 | part",
    "3 done [build 2/2] RUN make",
]


@pytest.mark.parametrize("indent", [None, 2], ids=["a line each", "over several lines"])
def test_records_of_buildkit(indent: int | None) -> None:
    heard = Heard()
    decoder = RawJson(heard.board)
    for record in (*RECORDS, *GOOD):
        for line in json.dumps(record, indent=indent).split("\n"):
            decoder.feed(line)
    decoder.feed("WARNING: no output specified")
    assert heard.lines() == HEARD
    assert list(heard.board.talk) == ["WARNING: no output specified"]
    assert heard.board.failure() == Failure("", "", ("WARNING: no output specified",))


def test_the_step_that_failed_and_not_the_one_that_was_cancelled() -> None:
    heard = Heard()
    decoder = RawJson(heard.board)
    for record in (*RECORDS, *BAD):
        decoder.feed(json.dumps(record))
    decoder.feed("ERROR: failed to solve: process ...")
    failure = heard.board.failure()
    assert failure.step == "[build 2/2] RUN make" and failure.error.endswith("exit code: 2")
    assert failure.lines == ("one line", "two", "part")


def test_a_record_that_is_none() -> None:
    heard = Heard()
    RawJson(heard.board).feed("{broken}")
    assert list(heard.board.talk) == ["{broken}"]


PLAIN = """\
#0 building with "default" instance using docker driver

#5 [build 1/3] FROM docker.io/library/python
#5 DONE 0.0s

#6 [build 2/3] COPY a /b
#6 CACHED

#7 [build 3/3] RUN make
#7 0.512 one line
#7 1.201 two
#7 ERROR: process "/bin/sh -c make" did not complete successfully: exit code: 2
------
 > [build 3/3] RUN make:
"""


def feed(decoder: Decoder, text: str) -> None:
    for line in text.splitlines():
        decoder.feed(line)


def test_plain_text_of_buildkit() -> None:
    heard = Heard()
    feed(Plain(heard.board), PLAIN)
    assert heard.lines()[1:] == [
        "2 started [build 1/3] FROM docker.io/library/python",
        "2 done [build 1/3] FROM docker.io/library/python",
        "3 started [build 2/3] COPY a /b",
        "3 cached [build 2/3] COPY a /b",
        "4 started [build 3/3] RUN make",
        "4 | one line",
        "4 | two",
        "4 failed [build 3/3] RUN make",
    ]
    failure = heard.board.failure()
    assert failure.step == "[build 3/3] RUN make" and failure.lines == ("one line", "two")
    assert [event.seconds for event in heard.events if isinstance(event, Step) and event.state == "done"] == [0.0]


BUILDAH = """\
[1/2] STEP 1/3: FROM python AS build
[1/2] STEP 2/3: COPY a /b
--> Using cache 0a1b
--> 0a1b
[1/2] STEP 3/3: RUN make
one line
"""


def test_buildah() -> None:
    heard = Heard()
    decoder = Buildah(heard.board)
    feed(decoder, BUILDAH)
    decoder.finish()
    assert heard.lines() == [
        "1 started FROM python AS build",
        "1 done FROM python AS build",
        "2 started COPY a /b",
        "2 cached COPY a /b",
        "3 started RUN make",
        "3 | one line",
        "3 done RUN make",
    ]
    feed(decoder, '[2/2] STEP 1/1: RUN false\nError: building at STEP "RUN false": while running runtime: exit status 1')
    assert heard.board.failure() == Failure("RUN false", 'building at STEP "RUN false": while running runtime: exit status 1', ())


def test_buildah_that_fails_before_its_first_step() -> None:
    heard = Heard()
    feed(Buildah(heard.board), "Error: context must be a directory")
    assert heard.board.failure() == Failure("", "", ("Error: context must be a directory",))


def test_only_the_last_lines_are_kept() -> None:
    heard = Heard()
    heard.board.start("a", "RUN x")
    for number in range(50):
        heard.board.log("a", f"line {number}\n")
    heard.board.end("a", "failed", "no")
    assert heard.board.failure().lines == tuple(f"line {number}" for number in range(30, 50))


def test_bytes_are_told() -> None:
    heard = Heard()
    heard.board.bytes("a", "layer", 1, 2)
    assert heard.events == [StepBytes(1, "", "layer", 1, 2)]
