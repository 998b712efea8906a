"""Where output goes: answers to stdout, talk and errors to stderr."""
from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TextIO

from accel_env.errors import AccelEnvError, ClosureError

BOLD_RED, YELLOW, CYAN, END = "\033[1;31m", "\033[33m", "\033[36m", "\033[0m"
CONTROLS = {code: "?" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}
COLOURS = {"error:": BOLD_RED, "warning:": YELLOW, "hint:": CYAN, "next:": CYAN}


def print_answer(answer: Mapping[str, object], as_json: bool, lines: Callable[[Mapping[str, object], int], list[str]]) -> None:
    """Print an answer as JSON, or as the text that `lines` makes of it for so many columns."""
    if as_json:
        answer_json(answer)
    else:
        from accel_env.cli.text import width

        answer_text(lines(answer, width()))


def answer_json(answer: Mapping[str, object]) -> None:
    """Print an answer as JSON on stdout."""
    import json

    _write(json.dumps(answer, indent=2, ensure_ascii=True, default=_plain))


def answer_text(lines: Iterable[str]) -> None:
    """Print lines for people on stdout."""
    _write("\n".join(_coloured(lines, sys.stdout)))


def talk(lines: Iterable[str]) -> None:
    """Print lines for people on stderr."""
    print("\n".join(_coloured(lines, sys.stderr)), file=sys.stderr, flush=True)


def progress(line: str) -> None:
    """Say on stderr what is going on, for verbs that take long."""
    talk([f"... {line}"])


def progress_of(as_json: bool) -> Callable[[str], None]:
    """How a verb says what is going on: with `--json` not at all, so that stderr holds an error alone."""
    return (lambda _: None) if as_json else progress


def error_json(error: AccelEnvError) -> None:
    """Print an error as JSON on stderr: stdout carries answers only."""
    import json

    described = {
        "reference": error.reference, "message": error.message, "context": list(error.context),
        "hint": error.hint, "exit_code": error.exit_code,
    }
    print(json.dumps({"schema": "accel-env/error/1", "error": described}, indent=2), file=sys.stderr, flush=True)


def _plain(value: object) -> object:
    """Mappings and sequences of our own as JSON's; anything else is a bug and raises TypeError."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} in an answer")


def _write(text: str) -> None:
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except UnicodeEncodeError:
        # An old locale: every answer is better than none, and JSON is ASCII already.
        sys.stdout.write(text.encode("ascii", "replace").decode() + "\n")
        sys.stdout.flush()
    except OSError as error:
        raise ClosureError(
            "answer-not-written", f"stdout does not take the answer: {error.strerror}", hint="free space or send it elsewhere"
        ) from error


def _coloured(lines: Iterable[str], stream: TextIO) -> list[str]:
    """The lines, with the leading word of an error, warning or hint in colour on a terminal that wants it."""
    # names come from drivers, files and logs: none of them may steer the terminal
    lines = [line.translate(CONTROLS) for line in lines]
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not stream.isatty():
        return lines
    coloured = []
    for line in lines:
        word, blank, rest = line.partition(" ")
        coloured.append(f"{COLOURS[word]}{word}{END}{blank}{rest}" if word in COLOURS else line)
    return coloured
