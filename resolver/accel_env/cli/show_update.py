"""What `matrix update` did, and which matrix is used, as text for people."""

from __future__ import annotations

from accel_env.cli.text import Json, items, pairs, string


def update_lines(answer: Json, columns: int) -> list[str]:
    """What happened, the matrix in use, the others, the keys."""
    lines: list[str] = []
    if string(answer, "signed_by"):
        name = string(answer, "installed")
        lines.append(f"installed {name}" if name else "this matrix is installed and in use already")
    if string(answer, "left"):
        lines.append(f"went back from {string(answer, 'left')} to {string(answer, 'now') or 'the packaged matrix'}")
    rows = [
        ("used", f"{string(answer, 'used', 'version')} ({string(answer, 'used', 'from')})"),
        ("path", string(answer, "used", "path")),
        ("packaged", string(answer, "packaged", "version")),
        ("installed", ", ".join(_other(row) for row in items(answer, "others")) or "none"),
        ("keys", ", ".join(f"{string(row, 'id')} {string(row, 'name')}".strip() for row in items(answer, "keys")) or "none"),
    ]
    return [*lines, *([""] if lines else []), *pairs(rows, columns)]


def _other(row: object) -> str:
    marks = [
        word for word, there in (("forced", string(row, "forced") == "True"), ("gone", string(row, "there") == "False")) if there
    ]
    return string(row, "name") + (f" ({', '.join(marks)})" if marks else "")
