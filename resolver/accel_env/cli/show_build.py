"""What a build looks like while it runs (on stderr), and what is said when it is done."""
from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from accel_env.build.engine import CACHED, DONE, FAILED, STARTED, Event, Step, StepBytes, StepLog
from accel_env.build.failures import title
from accel_env.cli.text import Json, items, mapping, pairs, quoted, string, wrap

if TYPE_CHECKING:
    from rich.console import Console, Group

    from accel_env.cli.table import Words

SILENT = "building with "  # a remark of buildx that it counts as a step
HIDDEN = ("[internal]", "[auth]", SILENT)  # the builder's own business: shown only while it takes time
_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def mode_of(words: Words) -> str:
    """What `--progress` says; with `--json` and without it `quiet`, so that stderr holds an error alone."""
    return words.text("progress") or ("quiet" if words.flag("json") else "")


@contextlib.contextmanager
def view(mode: str) -> Iterator[Callable[[Event], None]]:
    """Shows events on stderr: live on a terminal, else line by line; `mode` is `plain`, `quiet` or empty for what fits."""
    if mode == "quiet":
        yield lambda _event: None
    elif mode == "plain" or not sys.stderr.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        yield Lines().show
    else:
        from rich.console import Console

        with Live(Console(stderr=True, highlight=False)) as live:
            yield live.show


class Lines:
    """One line per beginning, log line and end, for logs and pipes."""

    def show(self, event: Event) -> None:
        """Print the line of an event, where it has one."""
        line = line_of(event)
        if line:
            print(line, file=sys.stderr, flush=True)


def line_of(event: Event) -> str:
    """The line of an event; empty for what a log need not hold."""
    if isinstance(event, StepBytes) or event.name.startswith(HIDDEN):
        return ""
    if isinstance(event, StepLog):
        return f"    {event.text}"
    name = title(event.name, 110)
    if event.state == STARTED:
        return f"... {name}"
    return f"... {_place(name)} {_ended(event)}"


def _ended(step: Step) -> str:
    if step.state == CACHED:
        return "from the cache"
    return f"{'done in' if step.state == DONE else 'failed after'} {step.seconds:.1f} s"


def _place(name: str) -> str:
    """The short part of a step's name: `[build 3/4]`."""
    return name.partition("]")[0] + "]" if name.startswith("[") and "]" in name else name


@dataclass(slots=True)
class _Shown:
    name: str
    began: float
    text: str = ""
    transfers: dict[str, tuple[int, int]] = field(default_factory=dict)


class Live:
    """The running steps with their time, bytes and last line, drawn again and again; finished steps stay above."""

    def __init__(self, console: Console) -> None:
        from rich.live import Live as Screen

        self._console = console
        self._running: dict[int, _Shown] = {}
        self._screen = Screen(console=console, get_renderable=self._draw, refresh_per_second=8, transient=True)

    def __enter__(self) -> Live:
        self._screen.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._screen.stop()

    def show(self, event: Event) -> None:
        """Take an event in."""
        if event.name.startswith(SILENT):
            return
        if isinstance(event, Step) and event.state != STARTED:
            self._running.pop(event.number, None)
            if not event.name.startswith(HIDDEN):
                text = f"{_ended(event):>18}  {title(event.name, max(20, self._console.width - 22))}"
                self._console.print(text, markup=False, style="red" if event.state == FAILED else None)
            return
        shown = self._running.setdefault(event.number, _Shown(event.name, time.monotonic()))
        if isinstance(event, StepLog):
            shown.text = event.text
        elif isinstance(event, StepBytes) and event.total:
            shown.transfers[event.what] = (event.current, event.total)

    def _draw(self) -> Group:
        from rich.console import Group
        from rich.text import Text

        width, now = max(40, self._console.width), time.monotonic()
        lines: list[Any] = []
        for shown in list(self._running.values()):
            moved = [sum(pair[place] for pair in list(shown.transfers.values())) for place in (0, 1)]
            amount = f"  {size(moved[0])} of {size(moved[1])}" if moved[1] else ""
            head = f"{now - shown.began:>16.1f} s  {title(shown.name, width - 22 - len(amount))}{amount}"
            lines.append(Text(head, style="bold", no_wrap=True, overflow="ellipsis"))
            if shown.text:
                lines.append(Text(f"{'':20}{shown.text}", style="dim", no_wrap=True, overflow="ellipsis"))
        return Group(*lines)


def size(count: float) -> str:
    """Bytes as people write them, in powers of ten."""
    for unit, name in _UNITS:
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count:.0f} B"


def built_lines(answer: Json, columns: int) -> list[str]:
    """The image, its digests and how to run it."""
    lines = pairs(_facts(answer, f"{string(answer, 'seconds')} s"), columns)
    return [*lines, *_notes(answer, columns), "", f"next: accel-env verify DIR, or {quoted(map(str, items(answer, 'run')))}"]


def verified_lines(answer: Json, columns: int) -> list[str]:
    """What both builds have in common."""
    first, second = (str(value) for value in items(answer, "seconds"))
    lines = pairs(_facts(answer, f"{first} s, and {second} s without the cache"), columns)
    known = "two builds gave the same image" + (", the one of image.json" if answer.get("recorded") else "")
    return [known, "", *lines, *_notes(answer, columns)]


def _facts(answer: Json, seconds: str) -> list[tuple[str, str]]:
    count = string(answer, "size")
    engine = mapping(answer, "engine")
    return [
        ("image", string(answer, "image")),
        ("config", string(answer, "config")),
        ("manifest", string(answer, "manifest")),
        ("layers", ", ".join(str(layer)[:19] for layer in items(answer, "layers"))),
        ("size", size(float(count)) if count not in ("", "0") else ""),
        ("time", seconds),
        ("engine", f"{string(engine, 'name')} {string(engine, 'version')}"),
    ]


def _notes(answer: Json, columns: int) -> list[str]:
    lines = [line for note in items(answer, "notes") for line in wrap(f"note: {note}", columns, "", "  ")]
    return [*lines, *(f"wrote {path}" for path in items(answer, "written"))]
