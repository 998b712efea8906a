"""A smoke report as text for people."""
from __future__ import annotations

from accel_env.cli.text import Json, items, mapping, string, table, wrap

KEYS = ("verdict", "level", "name")
WORDS = (("pass", "passed"), ("fail", "failed"), ("skip", "left out"))


def report_lines(answer: Json, columns: int) -> list[str]:
    """Where it ran, a row per check, the details of what failed or was left out, and the sum."""
    environment = mapping(answer, "environment")
    facts = [f"Python {string(environment, 'python')}", string(environment, "platform"), string(environment, "libc")]
    torch = string(environment, "torch")
    facts.append(f"torch {torch}" if torch else "no torch")
    lines = [*wrap(f"{string(answer, 'target')}: {', '.join(part for part in facts if part)}", columns, "", "  "), ""]
    checks = items(answer, "checks")
    rows = [[*(string(c, key) for key in KEYS), f"{float(string(c, 'seconds') or 0):.1f}"] for c in checks]
    lines += table(("verdict", "level", "check", "seconds"), rows, columns) if rows else ["no check was asked for"]
    for verdict in ("fail", "skip"):
        told = [c for c in checks if string(c, "verdict") == verdict]
        lines += ["", {"fail": "failed", "skip": "left out"}[verdict]] if told else []
        for check in told:
            lines += wrap(f"{string(check, 'level')} {string(check, 'name')}: {string(check, 'detail')}", columns, "  ", "    ")
    counts = mapping(answer, "summary")
    lines += ["", ", ".join(f"{string(counts, verdict)} {word}" for verdict, word in WORDS)]
    evidence = string(answer, "evidence")
    lines += [f"evidence: {evidence}"] if evidence else []
    return [*lines, *(f"wrote {path}" for path in items(answer, "written"))]
