"""`matrix diff A [B]`: what changes for users between two states of the matrix."""

from __future__ import annotations

from accel_env.cli.options import JSON
from accel_env.cli.table import Argument, Option, Verb, Words
from accel_env.errors import UsageError

STATES = Argument(
    "states",
    "STATE",
    "A folder, a git revision, an overlay, a signed archive, or packaged, installed, previous, used; the second is `used`.",
    completes="path",
)
PROFILE = Option("profile", ("--profile",), "Only plans of this profile; repeat for several.", "NAME", many=True)
ASK = Option(
    "ask", ("--ask",), "Only plans of these asks, a bundle or requirements in one word; repeat for several.", "ASKS", many=True
)
NO_PLANS = Option("no_plans", ("--no-plans",), "Compare what the states hold, and solve nothing.")
FORMAT = Option(
    "format", ("--format",), "How to print it; markdown is for a pull request.", "text|markdown", choices=("text", "markdown")
)
EXIT_CODE = Option("exit_code", ("--exit-code",), "Exit with 8 where the states differ, with 0 where they say the same.")
VERB = Verb(
    ("matrix", "diff"),
    "Show what changes for users between two states of the matrix.",
    (PROFILE, ASK, NO_PLANS, FORMAT, EXIT_CODE, JSON),
    STATES,
    "accel-env matrix diff main --profile v100-r580",
)
DIFFERENT = 8  # as `check` says that something was found


def run(words: Words) -> int:
    """Print the differences; 0, or 8 with --exit-code where there are any."""
    from accel_env import app_diff
    from accel_env.cli.output import print_answer, progress_of
    from accel_env.cli.show_diff import diff_lines, markdown_lines

    states = words.many("states")
    if not 1 <= len(states) <= 2:
        raise UsageError(
            "diff-what",
            "`matrix diff` compares two states of the matrix",
            hint="try `accel-env matrix diff HEAD`, or a folder, an overlay or an archive",
        )
    asked = app_diff.DiffWords(
        states[0], states[1] if len(states) > 1 else "", words.many("profile"), words.many("ask"), not words.flag("no_plans")
    )
    answer = app_diff.diff(asked, progress_of(words.flag("json")))
    print_answer(answer, words.flag("json"), markdown_lines if words.text("format") == "markdown" else diff_lines)
    return DIFFERENT if words.flag("exit_code") and not answer["same"] else 0
