"""A lock as `requirements.lock` (pip) and `pylock.toml` (PEP 751): same lock, same bytes; written whole or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from accel_env.errors import ClosureError, UsageError
from accel_env.lock.artifacts import PYPI, normalise
from accel_env.lock.question import target_of

if TYPE_CHECKING:
    from accel_env.model import Lock, LockedFile

REQUIREMENTS = "requirements.lock"
PYLOCK = "pylock.toml"
_SYSTEMS = {"linux": "linux", "windows": "win32", "macos": "darwin"}  # sys.platform of each


def lock_files(lock: Lock, *, pylock: bool = True) -> dict[str, bytes]:
    """File name -> content of everything that a lock is written as."""
    files = {REQUIREMENTS: requirements_text(lock).encode()}
    return files | {PYLOCK: pylock_text(lock).encode()} if pylock else files


def requirements_text(lock: Lock) -> str:
    """The lock for `pip install --require-hashes --no-deps`. Files of PyPI stand there by name, all others by address."""
    lines = [
        "# Written by accel-env; do not edit. To install it:",
        "#   pip install --require-hashes --no-deps --only-binary :all: -r requirements.lock",
        *(f"# {line}" for line in provenance(lock)),
        *(f"# note: {' '.join(note.split())}" for note in lock.notes),
    ]
    for file in lock.files:
        pin = f"{file.name}=={file.version}" if file.index == PYPI else f"{file.name} @ {file.url}"
        hashes = [file.sha256, *(sha256 for _, sha256 in file.extra_files)]
        lines.append(" \\\n".join([pin, *(f"    --hash=sha256:{sha256}" for sha256 in hashes)]))
    return "\n".join(lines) + "\n"


def provenance(lock: Lock) -> tuple[str, ...]:
    """What the lock follows from, one line each; no moment of writing among it."""
    target, solution = target_of(lock.solution), lock.solution
    libc = f", {target.libc_family or 'libc'} {target.libc}" if target.libc else ""
    words = lock.tools.get("made_by")
    return (
        *([f"made by: {' '.join(words.split())}"] if words else []),
        f"stack {solution.stack}, Python {solution.python}, {target.platform}{libc}",
        f"matrix {lock.tools.get('matrix', 'unknown')} {lock.tools.get('matrix_digest', '')}".rstrip(),
        f"closed by uv {lock.tools.get('uv', 'unknown')}"
        + (f" over files uploaded before {lock.exclude_newer}" if lock.exclude_newer else " without a cut-off date"),
    )


def pylock_text(lock: Lock) -> str:
    """The lock as PEP 751 TOML; every wheel with its address."""
    solution = lock.solution
    system, _, machine = solution.problem.host.platform.partition("_")
    marker = f"sys_platform == {_literal(_SYSTEMS.get(system, system))}" + (
        f" and platform_machine == {_literal(machine)}" if system == "linux" else ""
    )
    lines = [
        f"# {line}"
        for line in (
            "Written by accel-env; do not edit.",
            *provenance(lock),
            *(f"note: {' '.join(note.split())}" for note in lock.notes),
        )
    ]
    lines += [
        'lock-version = "1.0"',
        f"environments = [{_text(marker)}]",
        f"requires-python = {_text('==' + solution.python.removesuffix('t') + '.*')}",
        'created-by = "accel-env"',
    ]
    for file in lock.files:
        lines += [
            "",
            "[[packages]]",
            f"name = {_text(normalise(file.name))}",
            f"version = {_text(file.version)}",
            f"wheels = [{_wheel(file)}]",
        ]
    lines += [
        "",
        "[tool.accel-env]",
        f"stack = {_text(solution.stack)}",
        *(f"{key.replace('_', '-')} = {_text(value)}" for key, value in sorted(lock.tools.items())),
        *([f"exclude-newer = {_text(lock.exclude_newer)}"] if lock.exclude_newer else []),
    ]
    return "\n".join(lines) + "\n"


def _wheel(file: LockedFile) -> str:
    size = f"size = {file.size}, " if file.size is not None else ""
    return f"{{ name = {_text(file.filename)}, url = {_text(file.url)}, {size}hashes = {{ sha256 = {_text(file.sha256)} }} }}"


def _text(value: str) -> str:
    """A TOML basic string; JSON's escapes are TOML's, except that TOML wants DEL escaped as well."""
    import json

    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _literal(value: str) -> str:
    return f"'{value}'"


_MARKS = (b"Written by accel-env", b'"schema": "accel-env/plan/1"')
_UNMARKED = (".dockerignore", "image-constraints.txt", "sbom.json")  # ours where the Dockerfile beside them is
GENERATED = (*_UNMARKED, "Dockerfile", "requirements.lock", "pylock.toml", "plan.json", "apptainer.def")


def refuse_foreign(folder: Path) -> None:
    """Refuse a folder that holds a file of a name that we write, but not one that we wrote. UsageError names the file."""
    for name in GENERATED:
        place = folder / name
        if place.is_file() and not _ours(place):
            raise UsageError(
                "would-overwrite",
                f"{place} was not written by accel-env and is left alone",
                hint="name another folder after -o, or move the file away",
            )


def drop_stale(folder: Path, written: Iterable[str]) -> tuple[str, ...]:
    """Remove what an earlier call wrote into the folder and this one did not: a lock beside the Dockerfile of another plan
    misleads. Gives the names."""
    kept = set(written)
    stale = [name for name in GENERATED if name not in kept and (folder / name).is_file() and _ours(folder / name)]
    for name in stale:
        (folder / name).unlink()
    return tuple(stale)


def _ours(place: Path) -> bool:
    if place.name in _UNMARKED:
        dockerfile = place.with_name("Dockerfile")
        return dockerfile.is_file() and _ours(dockerfile)
    with open(place, "rb") as stream:
        head = stream.read(4096)
    return any(mark in head for mark in _MARKS)


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Writes the files into `folder`, made when missing. All are written aside first and renamed at the end: a full disk or an
    interrupt leaves what was there before. ClosureError (5) when the system refuses."""
    made = _missing_parents(folder)
    asides: list[tuple[Path, Path]] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            target = folder / name
            if target.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
            target.parent.mkdir(parents=True, exist_ok=True)
            aside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
            asides.append((aside, target))
            with open(aside, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
        for aside, target in asides:
            os.replace(aside, target)
    except BaseException as problem:
        _clean(asides, made)
        if isinstance(problem, OSError):
            raise ClosureError(
                "cannot-write",
                f"{problem.filename or folder}: {problem.strerror or problem}; nothing was changed in {folder}",
                hint="check the free space, the path and its permissions",
            ) from None
        raise


def _missing_parents(folder: Path) -> list[Path]:
    """The folders that writing will make, innermost first."""
    return [place for place in (folder, *folder.parents) if not place.exists()]


def _clean(asides: list[tuple[Path, Path]], made: list[Path]) -> None:
    """Removes what was written aside and the empty folders that were made for it."""
    import contextlib

    for aside, _ in asides:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)
    for place in made:
        with contextlib.suppress(OSError):
            place.rmdir()
