"""How a file is refused: always with its name and, where one is to blame, the line."""

from __future__ import annotations

from accel_env.errors import InputError

_HINTS = {
    "TOML": "a TOML checker shows the place",
    "YAML": "a YAML checker shows the place",
    "Dockerfile": "`docker build --check` reads it the same way",
    "requirements": "write a name and a version range, for example 'torch>=2.9,<2.12'",
}


def broken(file: str, line: int, why: str, kind: str) -> InputError:
    """The refusal of a file whose text breaks the rules of its kind."""
    place = f"{file}:{line}" if line else file
    return InputError("file-broken", f"{place}: {why}", hint=_HINTS.get(kind, "correct the file"))
