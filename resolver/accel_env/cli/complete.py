"""What the shell completes: names from the matrix. A completion never fails aloud; without a matrix it offers nothing."""
from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable

Completer = Callable[[str], list[str]]


def completer(what: str, choices: tuple[str, ...] = ()) -> Completer | None:
    """A function from the unfinished word to the words it can become; None leaves it to the shell (files)."""
    sources: dict[str, Callable[[str], Iterable[str]]] = {
        "device": _devices, "known": _known, "host": lambda _: _profiles(), "stack": lambda _: _stacks(),
        "package": lambda _: _packages(), "ask": _asks,
        "base": lambda _: _bases(), "python": lambda _: _pythons(),
    }
    if choices:
        return lambda incomplete: _matching(lambda _: choices, incomplete)
    if what not in sources:
        return None
    return lambda incomplete: _matching(sources[what], incomplete)


def _matching(source: Callable[[str], Iterable[str]], incomplete: str) -> list[str]:
    """The words that the unfinished one begins, the plain ones (of the fewest parts) first."""
    try:
        words = set(source(incomplete))
    except Exception:  # a broken matrix must not break the prompt
        return []
    kept = (word for word in words if word.lower().startswith(incomplete.lower()))
    return sorted(kept, key=lambda word: (word.count("-"), word))


def _packages() -> Iterable[str]:
    from accel_env.matrix.load import open_matrix

    return open_matrix().package_names()


def _asks(_: str = "") -> Iterable[str]:
    """Packages, and bundles with their sign; where the shell takes the sign for a word of its own, only what follows it."""
    words, place = os.environ.get("COMP_WORDS", "").split("\n"), os.environ.get("COMP_CWORD", "")
    before = words[int(place) - 1] if place.isdigit() and 0 < int(place) <= len(words) else ""
    if before == "@":
        return _bundles("")
    return [*_packages(), *_bundles("@")]


def _bundles(sign: str) -> Iterable[str]:
    from accel_env.matrix.load import open_matrix

    return (sign + name for name in open_matrix().bundles())


def _bases() -> Iterable[str]:
    from accel_env.matrix.load import open_matrix

    return ["vendor", *(image.ref for image in open_matrix().images() if image.torch)]


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


def _devices(incomplete: str) -> Iterable[str]:
    from accel_env.matrix.load import open_matrix

    # With hyphens: a name with blanks would be split by the shell, and look-up reads both alike. People leave out the family
    # (`4090`, `rtx-4090` for `geforce-rtx-4090`), so what follows it is offered where it means the same product.
    table = open_matrix().devices()
    for row in table:
        for name in (row.name, *row.aliases):
            words = re.findall(r"[a-z0-9.+]+", name.lower())
            yield "-".join(words)
            family = next((n for n, word in enumerate(words) if any(letter.isdigit() for letter in word)), 0)
            for end in ("-".join(words[start:]) for start in range(1, family + 1)) if incomplete else ():
                meant = table.meant(end) if end.startswith(incomplete.lower()) else None
                if meant is not None and (meant.vendor, meant.arch) == (row.vendor, row.arch):
                    yield end


def _known(incomplete: str) -> Iterable[str]:
    """What `matrix show` takes; devices once their name has begun."""
    from accel_env.matrix.show import LISTS

    yield from LISTS
    yield from _asks()
    yield from _stacks()
    if incomplete:
        yield from _devices(incomplete)
