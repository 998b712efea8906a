"""`lock ASK... -o DIR`: resolve, close over every dependency, write the lock files."""
from __future__ import annotations

from accel_env.cli.options import ASKS, BASE, COMMON
from accel_env.cli.table import Option, Verb, Words

INTO = Option("output", ("--output", "-o"), "The folder to write into.", "DIR", completes="path")
VERB = Verb(
    ("lock",), "Resolve, close over every dependency, and write pylock.toml, requirements.lock and plan.json.",
    (INTO, BASE, *COMMON), ASKS, "accel-env lock torch bitsandbytes -o DIR",
)


def run(words: Words) -> int:
    """Print what was written; errors have the codes of `errors`."""
    from accel_env import app
    from accel_env.cli.output import print_answer, progress_of
    from accel_env.cli.request import folder, request
    from accel_env.cli.show_written import written_lines

    answer = app.lock(request(words), folder(words), progress_of(words.flag("json")))
    print_answer(answer, words.flag("json"), written_lines)
    return 0
