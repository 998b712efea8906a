"""What the shell completes: names from the matrix. A completion never fails aloud; without a matrix it offers nothing."""
from __future__ import annotations

from collections.abc import Callable, Iterable

Completer = Callable[[str], list[str]]


def completer(what: str, choices: tuple[str, ...] = ()) -> Completer | None:
    """A function from the unfinished word to the words it can become; None leaves it to the shell (files)."""
    sources: dict[str, Callable[[], Iterable[str]]] = {
        "device": _devices, "host": _profiles, "stack": _stacks, "package": _packages, "python": _pythons,
    }
    if choices:
        return lambda incomplete: _matching(lambda: choices, incomplete)
    if what not in sources:
        return None
    return lambda incomplete: _matching(sources[what], incomplete)


def _matching(source: Callable[[], Iterable[str]], incomplete: str) -> list[str]:
    try:
        words = sorted(set(source()))
    except Exception:  # a broken matrix must not break the prompt
        return []
    return [word for word in words if word.lower().startswith(incomplete.lower())]


def _packages() -> Iterable[str]:
    from accel_env.matrix.load import open_matrix

    return open_matrix().package_names()


def _stacks() -> Iterable[str]:
    from accel_env.matrix.load import open_matrix

    for stack in open_matrix().stacks().values():
        yield stack.name
        for release in stack.releases:
            yield f"{stack.name}-{release.version}"


def _profiles() -> Iterable[str]:
    from accel_env.matrix.load import open_matrix

    return open_matrix().profiles()


def _pythons() -> Iterable[str]:
    from accel_env.matrix.load import open_matrix

    return (python.version for python in open_matrix().pythons())


def _devices() -> Iterable[str]:
    from accel_env.matrix.load import open_matrix

    # With hyphens: a name with blanks would be split by the shell, and look-up reads both alike. People leave out the
    # family (`rtx-4090` for `geforce-rtx-4090`), so the name is offered without its first word too.
    for row in open_matrix().devices():
        words = row.name.lower().split()
        yield "-".join(words)
        if len(words) > 1:
            yield "-".join(words[1:])
