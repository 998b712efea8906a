"""Everything that can go wrong on purpose.

AccelEnvError                1  a bug, never raised on purpose
|- UsageError                2  the words on the command line
|- InputError                3  a file: matrix, host, requirements, overlay
|- NoSolution                4  used by verbs that need a solution (`lock`, `render`); `resolve` reports a value
|- ClosureError              5  uv, an index or an artifact
|- BuildError                6  the engine
|- VerifyError               7  smoke or verify
|- FindingsError             8  check or doctor found an error
`- Interrupted             130  somebody pressed Ctrl-C (as shells report SIGINT)

Each carries a reference (kebab-case), one sentence, optional context lines and a hint.
"""
from __future__ import annotations


class AccelEnvError(Exception):
    """Base: `reference` is a slug, `message` one sentence, `context` lines of detail, `hint` the next step."""

    exit_code = 1

    def __init__(self, reference: str, message: str, *, context: tuple[str, ...] = (), hint: str = "") -> None:
        super().__init__(message)
        self.reference = reference
        self.message = message
        self.context = context
        self.hint = hint

    def __str__(self) -> str:
        lines = [f"error: {self.reference}", f"  {self.message}", *(f"  {line}" for line in self.context)]
        if self.hint:
            lines += ["", f"hint: {self.hint}"]
        return "\n".join(lines)


class UsageError(AccelEnvError):
    """The command line does not make sense."""

    exit_code = 2


class InputError(AccelEnvError):
    """A matrix, host, requirements or overlay file is unreadable or breaks a rule."""

    exit_code = 3


class NoSolution(AccelEnvError):
    """A verb needs a working combination and there is none."""

    exit_code = 4


class ClosureError(AccelEnvError):
    """The closure over all dependencies failed, or an artifact is missing or wrong."""

    exit_code = 5


class BuildError(AccelEnvError):
    """The container engine failed."""

    exit_code = 6


class VerifyError(AccelEnvError):
    """A smoke check or the comparison of two images failed."""

    exit_code = 7


class FindingsError(AccelEnvError):
    """`check` or `doctor` found an error."""

    exit_code = 8


class Interrupted(AccelEnvError):
    """The user stopped it."""

    exit_code = 130
