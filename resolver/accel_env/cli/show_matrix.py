"""Answers about the matrix itself, as text for people."""
from __future__ import annotations

from collections.abc import Mapping

from accel_env.cli.text import Json, items, mapping, pairs, reason, string, table, wrap


def package_lines(answer: Json, columns: int) -> list[str]:
    """A package: summary, a row per build, what each build of a single release needs, the facts behind it."""
    facts = {string(fact, "id"): fact for fact in items(answer, "facts")}
    builds = items(answer, "builds")
    lines = wrap(f"{string(answer, 'package')}: {string(answer, 'summary')}".rstrip(": "), columns, "", "  ")
    head = ("version", "build", "platform", "stack", "tags", "index")
    lines += ["", *table(head, [_build_row(build) for build in builds], columns)]
    for note in items(answer, "absent"):
        archs = " ".join(str(arch) for arch in items(note, "archs"))
        fact = facts.get(string(note, "fact"), {})
        told = reason({"text": string(note, "text"), "source": string(fact, "source"), "grade": string(fact, "grade")})
        lines += ["", *wrap(f"not on {string(note, 'stack')}{f' ({archs})' if archs else ''}: {told}", columns, "", "  ")]
    if len(items(answer, "releases")) == 1:
        for build in builds:
            lines += _needs(build, columns)
    lines += ["", "facts"] if facts else []
    for name, fact in facts.items():
        lines += wrap(f"{name}: {reason(fact)}", columns, "  ", "    ")
    return lines


def _label(build: object) -> str:
    variant = string(build, "variant")
    return string(build, "build") + (f" ({variant})" if variant else "")


def _build_row(build: object) -> tuple[str, str, str, str, str, str]:
    tags = " ".join(str(tag) for tag in items(build, "tags"))
    return (
        string(build, "version"), _label(build), string(build, "platform"), string(build, "stack") or "any", tags,
        string(build, "index"),
    )


def _needs(build: object, columns: int) -> list[str]:
    lines = ["", f"{string(build, 'version')} {_label(build)} on {string(build, 'platform')} needs"]
    for need in items(build, "needs"):
        parts = [string(need, "name"), string(need, "allows"), *(str(value) for value in items(need, "values"))]
        parts += [f"{key} {value}" for key, value in mapping(need, "abi").items()]
        for key in ("jit", "lacks"):
            values = " ".join(str(value) for value in items(need, key))
            parts += [f"{key}: {values}"] if values else []
        parts += [string(need, "when"), string(need, "marker")]
        parts += [word for word, key in (("unknown", "unknown"), ("or second choice", "soft")) if string(need, key) == "True"]
        text = " ".join(part for part in parts if part)
        lines += wrap(f"{string(need, 'need')}: {text} ({string(need, 'fact')})", columns, "  ", "    ")
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


def stats_lines(answer: Json, columns: int) -> list[str]:
    """Every count by its name; groups of equal rows as a table."""
    plain = [(key, str(value)) for key, value in answer.items() if not isinstance(value, Mapping) and key != "schema"]
    lines = pairs(plain, columns)
    for key, value in answer.items():
        if not isinstance(value, Mapping) or not value:
            continue
        rows = [(name, row) for name, row in value.items() if isinstance(row, Mapping)]
        if rows:
            head = (key, *rows[0][1])
            body = table(head, [(name, *(string(row, column) for column in head[1:])) for name, row in rows], columns)
        else:
            body = [key, *(f"  {line}" for line in pairs([(name, str(count)) for name, count in value.items()], columns - 2))]
        lines += ["", *body]
    return lines
