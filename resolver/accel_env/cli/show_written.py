"""What `lock` and `render` wrote, as text for people."""
from __future__ import annotations

from accel_env.cli.show_plan import host_line, picks_table
from accel_env.cli.text import Json, items, mapping, string, wrap


def written_lines(answer: Json, columns: int) -> list[str]:
    """What the image lacks, the picks that were locked, how many files with hashes, and the files written."""
    plan = mapping(answer, "plan") or answer
    lines: list[str] = []
    for warning in items(answer, "warnings"):
        lines += [*wrap(f"warning: {warning}", columns, "", "  "), ""]
    if mapping(plan, "picks"):
        lines += [*wrap(f"for {host_line(plan)}", columns, "", "  "), "", *picks_table(plan, columns), ""]
    locked = string(answer, "locked")
    if locked:
        lines.append(f"{locked} packages locked, each with its hash")
    for note in (*items(answer, "notes"), *items(plan, "warnings")):
        lines += wrap(f"note: {string(note, 'message') or note}", columns, "", "  ")
    for path in items(answer, "written"):
        lines.append(f"wrote {path}")
    return lines
