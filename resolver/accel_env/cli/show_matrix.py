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
    """One paragraph per broken rule, or one line that all is well."""
    problems = items(answer, "problems")
    if not problems:
        return ["the matrix keeps its rules"]
    lines: list[str] = []
    for problem in problems:
        parts = [string(problem, key) for key in ("file", "path", "message")]
        text = ": ".join(part for part in parts if part) or str(problem)
        lines += wrap(text, columns, "", "  ")
    return [*lines, "", f"{len(problems)} problem{'s' if len(problems) != 1 else ''}"]


def stats_lines(answer: Json, columns: int, prefix: str = "") -> list[str]:
    """Every count by its name, groups indented."""
    lines: list[str] = []
    plain = [(key, str(value)) for key, value in answer.items() if not isinstance(value, (Mapping, list, tuple))]
    lines += [prefix + line for line in pairs([row for row in plain if row[0] != "schema"], columns)]
    for key, value in answer.items():
        if isinstance(value, Mapping):
            lines += [f"{prefix}{key}", *stats_lines(value, columns - 2, prefix + "  ")]
    return lines
