"""What `lint` says: one broken rule, or one note, and where."""
from __future__ import annotations

from dataclasses import dataclass

ERROR, NOTE = "error", "note"


@dataclass(frozen=True, slots=True)
class LintProblem:
    """`rule` is a slug, `severity` is `error` or `note`, `path` the dotted path in `file` (either may be empty)."""

    rule: str
    severity: str
    file: str
    path: str
    message: str
    hint: str = ""

    @property
    def where(self) -> str:
        """File and path as one text."""
        return ": ".join(part for part in (self.file, self.path) if part)


def error(rule: str, file: str, path: str, message: str, hint: str = "") -> LintProblem:
    """A broken rule."""
    return LintProblem(rule, ERROR, file, path, message, hint)


def note(rule: str, file: str, path: str, message: str, hint: str = "") -> LintProblem:
    """Something to know that breaks no rule."""
    return LintProblem(rule, NOTE, file, path, message, hint)
