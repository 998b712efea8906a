"""The answer to `explain --not`, as text for people."""
from __future__ import annotations

from accel_env.cli.text import Json, items, reason, string, wrap

SHOWN = 12  # rejections in text; --json has all


def why_not_lines(answer: Json, columns: int) -> list[str]:
    """The answer in one sentence, then one entry per rejected candidate with the fact behind it."""
    lines = wrap(string(answer, "answer"), columns)
    rejections = items(answer, "rejections")
    told: set[str] = set()
    shown = 0
    for rejection in rejections:
        why = wrap(f"{string(rejection, 'need')}: {reason(rejection)}", columns, "    ", "      ")
        met = string(rejection, "met")
        if met:
            why += wrap(f"here: {met}", columns, "    ", "      ")
        if shown == SHOWN:
            break
        # The same reason for twenty builds in a row is said once.
        text = "\n".join(why)
        lines += ["", f"  {string(rejection, 'candidate')}"]
        lines += ["    as above"] if text in told else why
        told.add(text)
        shown += 1
    left = len(rejections) - shown
    return [*lines, "", f"  and {left} more; --json lists them all"] if left > 0 else lines
