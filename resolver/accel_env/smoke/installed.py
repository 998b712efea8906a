"""What is installed: distributions, their files, their import names. Nothing is imported from them."""

from __future__ import annotations

import os
import re
import sys
from importlib import metadata
from typing import Any

# Top-level names that distributions leave in site-packages by accident.
STRAY = frozenset(
    [
        "tests",
        "test",
        "testing",
        "docs",
        "doc",
        "examples",
        "example",
        "scripts",
        "benchmarks",
        "benchmark",
        "bin",
        "build_backend",
    ]
)


def normal(name: str) -> str:
    """A distribution's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def distributions() -> tuple[Any, ...]:
    """Every distribution that this interpreter sees, sorted by name; the first on the path where there are several."""
    found: dict[str, Any] = {}
    for distribution in metadata.distributions():
        name = distribution.metadata["Name"]
        if name:
            found.setdefault(normal(name), distribution)
    return tuple(found[name] for name in sorted(found))


def name_of(distribution: Any) -> str:
    """The normalised name of a distribution."""
    return normal(distribution.metadata["Name"])


def versions() -> dict[str, str]:
    """Normalised name -> version."""
    return {name_of(distribution): str(distribution.version) for distribution in distributions()}


def files(distribution: Any) -> list[tuple[str, str, str]]:
    """(path relative to its folder, hash as RECORD has it, absolute path) of every file."""
    found = []
    for path in distribution.files or ():
        digest = f"{path.hash.mode}={path.hash.value}" if path.hash else ""
        found.append((str(path).replace(os.sep, "/"), digest, str(path.locate())))
    return found


def import_names(distribution: Any) -> list[str]:
    """The top-level names that a distribution makes importable, private and stray ones left out."""
    names = set()
    for path, _, _ in files(distribution):
        head, slash, rest = path.partition("/")
        if slash and rest == "__init__.py":
            names.add(head)
        elif not slash and head.endswith((".py", ".so")):
            names.add(head.partition(".")[0])
    return sorted(name for name in names if name.isidentifier() and not name.startswith("_") and name not in STRAY)


def native_files(distribution: Any) -> list[str]:
    """The absolute paths of its shared libraries; links and what is gone left out."""
    return [place for path, _, place in files(distribution) if _native(path) and os.path.isfile(place)]


def _native(path: str) -> bool:
    base = path.rpartition("/")[2]
    return base.endswith(".so") or ".so." in base


def shown(path: str) -> str:
    """A path as people recognise it: from site-packages on."""
    for folder in sorted(sys.path, key=len, reverse=True):
        if folder and path.startswith(folder + os.sep):
            return path[len(folder) + 1 :]
    return path
