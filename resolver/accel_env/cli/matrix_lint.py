"""`matrix lint`: whether the matrix keeps its own rules."""
from __future__ import annotations

from accel_env.cli.options import JSON, OVERLAY
from accel_env.cli.table import Option, Verb, Words

NOTES = Option("notes", ("--notes",), "Show the notes as well: what breaks no rule and is worth knowing.")
VERB = Verb(("matrix", "lint"), "Check the matrix against its rules.", (NOTES, OVERLAY, JSON), None, "accel-env matrix lint")


def run(words: Words) -> int:
    """Print the problems; 0, or 3 where there is one."""
    from accel_env import app
    from accel_env.cli.output import print_answer
    from accel_env.cli.show_matrix import lint_lines
    from accel_env.cli.text import items

    answer = app.matrix_lint(words.many("overlay"))
    print_answer(answer, words.flag("json"), lambda found, columns: lint_lines(found, columns, words.flag("notes")))
    return 3 if items(answer, "problems") else 0
