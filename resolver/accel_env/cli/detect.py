"""`detect`: what this machine has."""
from __future__ import annotations

from accel_env.cli.options import JSON, OVERLAY
from accel_env.cli.table import Option, Verb, Words

RECORD = Option(
    "record", ("--record",), "Keep the raw probes as a fixture in this folder, for --host or a bug report.", "DIR",
    completes="path",
)
HOST_FILE = Option(
    "output", ("--output", "-o"), "Write a host file, for --host on another machine.", "FILE", completes="path"
)
RECORDED = (
    "note: in the recording, host and user names, serial numbers and ids are masked; of PATH it keeps the folders with a Python"
)
VERB = Verb(
    ("detect",), "Say what this machine has.", (RECORD, HOST_FILE, OVERLAY, JSON), None, "accel-env detect -o host.json"
)


def run(words: Words) -> int:
    """Print the host; 0 also where no accelerator is found."""
    from accel_env import app
    from accel_env.cli.output import print_answer, talk
    from accel_env.cli.show_host import host_lines

    answer = app.detect(words.text("record"), words.text("output"), words.many("overlay"))
    print_answer(answer, words.flag("json"), host_lines)
    if words.text("record"):
        talk([RECORDED])
    return 0
