"""Putting a matrix in place: written aside, checked as a whole, then named in one file that is replaced at once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from accel_env.errors import InputError, UsageError
from accel_env.matrix import installed

_KEPT = 2  # the one in use and the one before it


def install(files: Mapping[str, bytes], *, force: bool, packaged: str, what: str) -> str:
    """Installs a matrix; gives its name, empty where it is in use already. InputError where it is invalid or not newer.

    Nothing changes unless everything holds: the files are checked in a folder of their own before `current` names them.
    """
    import tempfile

    folder = installed.data_folder()
    if not folder:
        raise UsageError(
            "no-data-folder",
            "there is no place for data: neither XDG_DATA_HOME nor the home is an absolute path",
            hint="set ACCEL_ENV_DATA to a folder",
        )
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=folder) as scratch:
            fresh = os.path.join(scratch, "matrix")
            _write(fresh, files)
            version, digest = check(fresh, what)
            name = f"{version}-{digest.rpartition(':')[2][:16]}"
            before = installed.history(folder)
            used = _is_used(folder, name, before, packaged)  # and damaged: it is put back as it was
            if used and installed.is_whole(os.path.join(folder, name)):
                return ""
            _refuse_older(version, name, before, folder, packaged, force or used, what)
            target = os.path.join(folder, name)
            if os.path.isdir(target):
                shutil.rmtree(target)
            os.rename(fresh, target)
        kept = [(name, force or (used and before[0][1])), *(row for row in before if row[0] != name)][:_KEPT]
        _name(folder, kept)
        _sweep(folder, {row[0] for row in kept})
    except OSError as problem:
        raise UsageError(
            "cannot-write",
            f"{folder} cannot be written: {problem.strerror or problem}",
            hint="free space, or set ACCEL_ENV_DATA to another folder",
        ) from None
    return name


def back() -> tuple[str, str]:
    """(what was in use, what is now) by name, empty for the packaged one. UsageError where nothing is installed."""
    folder = installed.data_folder()
    found = installed.history(folder) if folder else ()
    if not found:
        raise UsageError(
            "nothing-installed",
            "no matrix is installed: there is nothing to go back from",
            hint="`accel-env matrix update --status` shows what is used",
        )
    _name(folder, list(found[1:]))
    return found[0][0], found[1][0] if len(found) > 1 else ""


def check(folder: str, what: str) -> tuple[str, str]:
    """(version, digest) of a matrix that keeps every rule. InputError, all faults at once, where it does not."""
    from accel_env.matrix.findings import ERROR
    from accel_env.matrix.lint import lint
    from accel_env.matrix.load import open_matrix

    hint = "the matrix in use stays; an archive for a newer accel-env needs that accel-env"
    try:
        matrix = open_matrix(Path(folder))
        wrong = [f"{one.where}: {one.message}" for one in lint(matrix) if one.severity == ERROR]
    except InputError as problem:
        raise InputError("archive-invalid", f"{what}: {problem.message}", context=problem.context, hint=hint) from None
    if not all(part.isdigit() for part in matrix.version.split(".")):  # it becomes the name of a folder, and is compared
        wrong.append(f"matrix.yaml: version: `{matrix.version[:40]}` is no date: numbers joined by dots")
    if wrong:
        raise InputError("archive-invalid", f"{what} breaks rules of the matrix", context=tuple(wrong[:20]), hint=hint)
    return matrix.version, matrix.digest


def _is_used(folder: str, name: str, before: tuple[tuple[str, bool], ...], packaged: str) -> bool:
    return bool(before) and before[0][0] == name and installed.preferred(packaged) == os.path.join(folder, name)


def _refuse_older(
    version: str, name: str, before: tuple[tuple[str, bool], ...], folder: str, packaged: str, force: bool, what: str
) -> None:
    used = installed.preferred(packaged)
    current = installed.version_of(os.path.basename(used)) if used else installed.read_version(packaged)
    if not force and installed.order_of(version) <= installed.order_of(current):
        raise InputError(
            "archive-older",
            f"{what} holds the matrix of {version}, and the one in use is of {current}",
            hint="an old matrix hides what was found since; --force installs it all the same",
        )


def _write(folder: str, files: Mapping[str, bytes]) -> None:
    for path, content in files.items():
        target = os.path.join(folder, *path.split("/"))
        os.makedirs(os.path.dirname(target), mode=0o755, exist_ok=True)
        with open(target, "xb") as stream:
            stream.write(content)
            if path == "matrix.yaml":
                os.fsync(stream.fileno())


def _name(folder: str, rows: list[tuple[str, bool]]) -> None:
    """Replaces `current`: readers see the old list or the new one."""
    target = os.path.join(folder, installed.CURRENT)
    aside = f"{target}.{os.getpid()}"
    handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with open(handle, "w", encoding="ascii") as stream:
            stream.write("".join(f"{name}{f' {installed.FORCED}' if forced else ''}\n" for name, forced in rows))
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(aside, target)
    except OSError:
        os.unlink(aside)
        raise


def _sweep(folder: str, kept: set[str]) -> None:
    """Removes matrices that nothing names any more."""
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False) and entry.name not in kept and not entry.name.startswith("."):
            shutil.rmtree(entry.path, ignore_errors=True)
