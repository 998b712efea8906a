"""The answer to `explain --not`, as text for people."""
from __future__ import annotations

from accel_env.cli.text import Json, items, reason, string, wrap

SHOWN = 12  # reasons in text; --json has every rejection
NAMED = 6  # candidates named per reason


def why_not_lines(answer: Json, columns: int) -> list[str]:
    """The answer in one sentence, then each reason once with the candidates that it rejects."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for rejection in items(answer, "rejections"):
        why = f"{string(rejection, 'need')}: {reason(rejection)}"
        reasons.setdefault((why, string(rejection, "met")), []).append(string(rejection, "candidate"))
    lines = wrap(string(answer, "answer"), columns)
    for (why, met), candidates in list(reasons.items())[:SHOWN]:
        names = list(dict.fromkeys(candidates))
        if len(names) > NAMED:
            names[NAMED - 1:] = [f"{len(names) - NAMED + 1} more"]
        lines += ["", *wrap(", ".join(names), columns, "  ", "    ")]
        lines += wrap(why, columns, "    ", "      ")
        if met:
            lines += wrap(f"here: {met}", columns, "    ", "      ")
    for other in items(answer, "instead"):
        lines += ["", *wrap(f"instead: {reason(other)}", columns, "", "  ")]
    left = len(reasons) - SHOWN
    return [*lines, "", f"and {left} more reasons; --json has them all"] if left > 0 else lines
