"""The cells as text for people."""
from __future__ import annotations

from accel_env.cli.text import Json, items, mapping, pairs, program, string, table, wrap


def cell_lines(answer: Json, columns: int) -> list[str]:
    """One aligned row per cell; where they were resolved, what each comes to, and below what the others lack."""
    rows = items(answer, "cells")
    solved = any(string(row, "status") for row in rows)
    if not solved:
        lists = {string(row, "list"): " ".join(map(str, items(row, "asks"))) for row in rows}
        own = [(name, asks) for name, asks in lists.items() if name != asks]
        bundles = ["", f"a list with @ is a bundle: `{program()} matrix show bundles`"] if len(own) < len(lists) else []
        named = table(("cell", "machine", "python", "list"), [_asked(row) for row in rows], columns)
        return [*named, "", *pairs(own, columns), *bundles]
    ready = [row for row in rows if not items(row, "lacks")]
    lines = table(("cell", "stack", "python", "picks"), [_ready(row) for row in ready], columns) if ready else []
    others = [row for row in rows if items(row, "lacks")]
    if others:
        lines += ["", f"{len(others)} of {len(rows)} cannot be written as an image yet"]
    for row in others:
        what = "; ".join(str(one) for one in items(row, "lacks"))
        lines += wrap(f"{string(row, 'cell')}: {what}", columns, "  ", "    ")
    return lines


def _asked(row: object) -> list[str]:
    return [string(row, "cell"), string(row, "profile"), string(row, "python") or "any", string(row, "list")]


def _ready(row: object) -> list[str]:
    picks = " ".join(f"{name} {version}" for name, version in mapping(row, "picks").items())
    return [string(row, "cell"), string(row, "stack"), string(row, "python"), picks]
