"""`cells [list|show|resolve|ci] [CELL...]`: the named cells, what they come to, and the matrix of a CI job."""
from __future__ import annotations

from accel_env.cli.options import JSON, OVERLAY
from accel_env.cli.table import Argument, Option, Verb, Words
from accel_env.errors import UsageError

OPTIONS = (("--host", "profile"), ("--python", "python"), ("--stack", "stack"), ("--prefer", "prefer"))
ACTIONS = ("list", "show", "resolve", "ci")
ACTION = Argument(
    "words", "[list|show|resolve|ci] [CELL]", "What to do (`list` without a word), with which cells (all without a name)."
)
FORMAT = Option(
    "format", ("--format",), "`github`: the matrix of a CI job in one line; the same as `ci`.", "github", choices=("github",)
)
VERB = Verb(
    ("cells",), "List the named cells, show or resolve them again, or emit a CI matrix.", (FORMAT, OVERLAY, JSON), ACTION,
    "accel-env cells show v100-quant",
)


def run(words: Words) -> int:
    """Print the cells; 0, or 4 where a cell that was named has no solution."""
    action, names = _asked(words)
    from accel_env import app_cells

    overlays = words.many("overlay")
    if action == "ci":
        return _emit(app_cells.ci(names, overlays), words.flag("json"))
    if action == "show":
        from accel_env.cli.show_plan import print_plan

        answer = app_cells.show(names[0], overlays)
        return print_plan(answer, words.flag("json"), _as_typed(answer))
    from accel_env.cli.output import print_answer
    from accel_env.cli.show_cells import cell_lines

    answer = app_cells.table(names, overlays) if action == "list" else app_cells.solved(names, overlays)
    print_answer(answer, words.flag("json"), cell_lines)
    refused = any(row.get("status") == "conflict" for row in answer["cells"])
    return 4 if refused and names else 0


def _asked(words: Words) -> tuple[str, tuple[str, ...]]:
    given = words.many("words")
    action, names = ("ci" if words.text("format") else "list", given)
    if given and given[0] in ACTIONS:
        if words.text("format") and given[0] not in ("list", "ci"):
            raise UsageError("format-without-matrix", f"`cells {given[0]}` has no --format", hint="try `accel-env cells ci`")
        action, names = ("ci" if words.text("format") else given[0], given[1:])
    elif given:
        raise UsageError("unknown-action", f"`cells` does not know `{given[0]}`", hint=f"it knows {', '.join(ACTIONS)}")
    if action == "show" and len(names) != 1:
        raise UsageError("one-cell", "`cells show` shows one cell", hint="`accel-env cells` lists them")
    return action, names


def _as_typed(answer: object) -> tuple[str, ...]:
    """The words that ask the same of `lock`, for the line that says what to do next."""
    from accel_env.cli.text import items, mapping, string

    asks = tuple(str(ask) for ask in items(mapping(answer, "cell"), "asks"))
    chosen = [(flag, string(answer, "cell", key)) for flag, key in OPTIONS]
    return (*asks, *(word for flag, value in chosen if value for word in (flag, value)))


def _emit(answer: dict[str, object], as_json: bool) -> int:
    """One line for a job's output; indented where JSON is asked for."""
    import json

    from accel_env.cli.output import answer_json, answer_text

    if as_json:
        answer_json(answer)
    else:
        answer_text([json.dumps(answer, separators=(",", ":"))])
    return 0
