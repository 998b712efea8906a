"""Answers about the matrix itself, as text for people."""
from __future__ import annotations

from collections.abc import Mapping

from accel_env.cli.text import Json, items, pairs, reason, string, table, wrap


def package_lines(answer: Json, columns: int) -> list[str]:
    """A package: summary, a row per build, the facts behind them."""
    lines = [f"{string(answer, 'package')}: {string(answer, 'summary')}".rstrip(": ")]
    rows = []
    for build in items(answer, "builds"):
        tags = " ".join(str(tag) for tag in items(build, "tags"))
        rows.append((
            string(build, "version"), string(build, "build"), string(build, "platform"), string(build, "stack"), tags,
            string(build, "index"),
        ))
    if rows:
        lines += ["", *table(("version", "build", "platform", "stack", "tags", "index"), rows, columns)]
    for note in items(answer, "absent"):
        lines += ["", *wrap(f"not on {string(note, 'stack')}: {reason(note)}", columns, "", "  ")]
    facts = items(answer, "facts")
    if facts:
        lines += ["", "facts"]
        for fact in facts:
            lines += wrap(f"{string(fact, 'id')}: {reason(fact)}", columns, "  ", "    ")
    return lines


def lint_lines(answer: Json, columns: int) -> list[str]:
    """One paragraph per broken rule and per note, then how many, or one line that all is well."""
    problems, notes = items(answer, "problems"), items(answer, "notes")
    lines: list[str] = []
    for finding in (*problems, *notes):
        parts = (string(finding, "where"), string(finding, "rule"), string(finding, "message"))
        lines += wrap(": ".join(part for part in parts if part), columns, "", "  ")
    told = f"{len(problems)} problem{'s' if len(problems) != 1 else ''}" if problems else "the matrix keeps its rules"
    return [*lines, *([""] if lines else []), told]


def stats_lines(answer: Json, columns: int, prefix: str = "") -> list[str]:
    """Every count by its name, groups indented."""
    lines: list[str] = []
    plain = [(key, str(value)) for key, value in answer.items() if not isinstance(value, (Mapping, list, tuple))]
    lines += [prefix + line for line in pairs([row for row in plain if row[0] != "schema"], columns)]
    for key, value in answer.items():
        if isinstance(value, Mapping):
            lines += [f"{prefix}{key}", *stats_lines(value, columns - 2, prefix + "  ")]
    return lines
