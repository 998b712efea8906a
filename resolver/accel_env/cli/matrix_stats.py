"""`matrix stats`: how much is known."""
from __future__ import annotations

from accel_env.cli.options import JSON, OVERLAY
from accel_env.cli.table import Verb, Words

VERB = Verb(
    ("matrix", "stats"), "Count builds, devices, facts by grade, and hashes.", (OVERLAY, JSON), None, "accel-env matrix stats"
)


def run(words: Words) -> int:
    """Print the counts."""
    from accel_env import app
    from accel_env.cli.output import print_answer
    from accel_env.cli.show_matrix import stats_lines

    answer = app.matrix_stats(words.many("overlay"))
    print_answer(answer, words.flag("json"), stats_lines)
    return 0
