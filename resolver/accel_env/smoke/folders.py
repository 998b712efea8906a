"""Where the loader of this system looks for libraries."""

from __future__ import annotations

import glob
import os
import sysconfig


def system_folders() -> list[str]:
    """Where the loader looks for the libraries of the system."""
    folders = [part for part in os.environ.get("LD_LIBRARY_PATH", "").split(":") if part]
    folders += _configured("/etc/ld.so.conf", set())
    triplet = sysconfig.get_config_var("MULTIARCH")
    for base in ("/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib"):
        folders += [base] + ([os.path.join(base, triplet)] if triplet else [])
    return [*folders, str(sysconfig.get_config_var("LIBDIR") or "")]


def _configured(path: str, seen: set[str]) -> list[str]:
    """The folders that a file for the loader names, included files too."""
    found: list[str] = []
    if path in seen:
        return found
    seen.add(path)
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            lines = [line.partition("#")[0].strip() for line in stream]
    except OSError:
        return found
    for line in lines:
        if line.startswith("include"):
            for pattern in line.split()[1:]:
                for inner in sorted(glob.glob(os.path.join(os.path.dirname(path), pattern))):
                    found += _configured(inner, seen)
        elif line:
            found.append(line)
    return found
