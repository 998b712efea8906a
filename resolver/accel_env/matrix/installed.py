"""The matrix that `matrix update` installed apart from the code: where it lies, and whether it counts.

`<data>/matrix/<version>-<digest>/` holds one whole matrix; the file `current` beside them names those that were installed,
the one in use first, each with the word `forced` where it is to count although the code came with a newer one.
"""

from __future__ import annotations

import os

CURRENT, FORCED = "current", "forced"
_DIGITS = 16  # of the digest, in the name of a folder


def data_folder() -> str:
    """The folder of installed matrices, which need not exist; empty where there is no safe place."""
    base = os.environ.get("ACCEL_ENV_DATA", "")
    if not base:
        base = os.environ.get("XDG_DATA_HOME", "")
        base = os.path.join(
            base if os.path.isabs(base) else os.path.join(os.path.expanduser("~"), ".local", "share"), "accel-env"
        )
    return os.path.join(base, "matrix") if os.path.isabs(base) else ""


def history(folder: str) -> tuple[tuple[str, bool], ...]:
    """(name, forced) of the installed matrices, the one in use first; empty where none is, or somebody else could write it."""
    try:
        with open(os.path.join(folder, CURRENT), encoding="ascii") as stream:
            status = os.fstat(stream.fileno())
            owner = getattr(os, "geteuid", None)
            if owner is not None and (status.st_uid not in (owner(), 0) or status.st_mode & 0o022):
                return ()
            lines = [line.split() for line in stream.read(4096).splitlines()]
    except (OSError, ValueError):
        return ()
    return tuple((words[0], FORCED in words[1:]) for words in lines if words and "/" not in words[0] and words[0][0] != ".")


def version_of(name: str) -> str:
    """The version in the name of an installed matrix."""
    return name.rpartition("-")[0]


def order_of(version: str) -> tuple[int, ...]:
    """What versions (dates, perhaps with a count behind) are compared by."""
    return tuple(int(part) if part.isdigit() else 0 for part in version.split("."))


def preferred(packaged: str) -> str:
    """The installed matrix where it is newer than the packaged one, or forced; else empty."""
    folder = data_folder()
    found = history(folder) if folder else ()
    if not found:
        return ""
    name, forced = found[0]
    place = os.path.join(folder, name)
    if not os.path.isfile(os.path.join(place, "matrix.yaml")):
        return ""
    return place if forced or order_of(version_of(name)) > order_of(read_version(packaged)) else ""


def is_whole(place: str) -> bool:
    """Whether an installed matrix is what was installed: the end of its name is the beginning of its digest."""
    from accel_env.errors import InputError
    from accel_env.matrix import store

    try:
        contents = {path: store.read_bytes(os.path.join(place, path)) for path, _, _ in store.list_files(place)}
    except InputError:
        return False
    return _fits(os.path.basename(place), store.digest_of(contents))


def refuse_damaged(place: str, digest: str) -> None:
    """InputError where a folder of the installed ones has another digest than the one that is in its name."""
    from accel_env.errors import InputError

    folder, name = os.path.split(place)
    if folder == data_folder() and not _fits(name, digest):
        raise InputError(
            "matrix-damaged", f"the matrix installed in {place} is not what was installed: files were changed or removed",
            hint="install it again with `accel-env matrix update`, or leave it with `accel-env matrix update --back`",
        )  # fmt: skip


def _fits(name: str, digest: str) -> bool:
    beginning = name.rpartition("-")[2]
    return len(beginning) < _DIGITS or digest.rpartition(":")[2].startswith(beginning)


def read_version(place: str) -> str:
    """The version in a folder's matrix.yaml, read without YAML: on the path of every start; empty where it is not found."""
    try:
        with open(os.path.join(place, "matrix.yaml"), encoding="utf-8") as stream:
            for line in stream:
                key, _, value = line.partition(":")
                if key == "version":
                    return value.split("#")[0].strip().strip("'\"")
    except (OSError, ValueError):
        pass
    return ""


def origin(place: str) -> str:
    """What a folder of the matrix is: `packaged`, `installed`, or `named` (by ACCEL_ENV_MATRIX)."""
    from accel_env.matrix import store

    if os.environ.get("ACCEL_ENV_MATRIX"):
        return "named"
    folder = data_folder()
    if folder and os.path.dirname(place) == folder:
        return "installed"
    return "packaged" if place == store.packaged() else "named"
