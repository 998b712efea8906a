"""What `check` found as text for people: per finding the place, what is wrong and why, then a line for each host."""

from __future__ import annotations

from collections.abc import Mapping

from accel_env.cli.show_findings import finding_lines
from accel_env.cli.text import Json, items, string, table, wrap


def check_lines(answer: Json, columns: int) -> list[str]:
    """The files and hosts that were judged, the findings with their places, and the verdict."""
    lines = wrap(_judged(answer), columns, "", "  ")
    for text in items(answer, "notes"):
        lines += wrap(f"note: {text}", columns, "", "  ")
    for finding in items(answer, "findings"):
        lines += ["", *finding_lines(finding, columns)]
        hosts = items(finding, "hosts")
        if hosts:
            lines += wrap(f"on {', '.join(str(name) for name in hosts)}", columns, "  ", "    ")
    return [*lines, "", *_summary(answer, columns)]


def _judged(answer: Json) -> str:
    files = ", ".join(str(name) for name in items(answer, "judged"))
    also = ", ".join(str(name) for name in items(answer, "also"))
    hosts = items(answer, "hosts")
    name = string(hosts[0], "host") if hosts else ""
    where = (
        f"on {len(hosts)} hosts"
        if len(hosts) > 1
        else f"on {name}"
        if name
        else "on no machine in particular (name one with --host)"
    )
    return f"judged {files}{f' with {also}' if also else ''} {where}"


def _summary(answer: Json, columns: int) -> list[str]:
    hosts = items(answer, "hosts")
    if len(hosts) > 1:
        rows = [
            (string(h, "host"), string(h, "status"), string(h, "errors"), string(h, "warnings"), string(h, "notes"))
            for h in hosts
        ]
        return table(("host", "status", "errors", "warnings", "notes"), rows, columns)
    row = hosts[0] if hosts and isinstance(hosts[0], Mapping) else {}
    counts = [(int(string(row, f"{word}s") or 0), word) for word in ("error", "warning", "note")]
    said = ", ".join(f"{count} {word}{'s' if count > 1 else ''}" for count, word in counts if count)
    if not said:
        return wrap("clean: none of the facts that accel-env has speaks against these files", columns)
    return [said if string(answer, "status") == "errors" else f"no error; {said}"]
