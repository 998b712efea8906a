"""Reading and writing the user's own files: whole or not at all."""
from __future__ import annotations

import os
from collections.abc import Mapping

from accel_env.errors import InputError, UsageError

_FROM_SHELL = ("/dev/fd/", "/dev/stdin", "/proc/")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path


def check_file(path: str | Path) -> None:
    """Refuse what is there and is no file: a device never ends, and a pipe that nobody fills never answers.

    What the shell puts in place of a file (`<(...)`, /dev/stdin) passes. Raises InputError that names it.
    """
    import stat

    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return  # opening it says it better
    if stat.S_ISREG(mode) or (stat.S_ISFIFO(mode) and str(path).startswith(_FROM_SHELL)):
        return
    kinds = ((stat.S_ISDIR, "a directory"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))
    what = next((word for test, word in kinds if test(mode)), "a device")
    raise InputError("file-unreadable", f"{path} cannot be read: it is {what}", hint="name a file")


def read_file(path: str | Path) -> str:
    """The UTF-8 text of a file. Raises InputError that names it."""
    check_file(path)
    try:
        with open(path, encoding="utf-8") as stream:
            return stream.read()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is no UTF-8 text"
        raise InputError("file-unreadable", f"{path} cannot be read: {why}", hint="check the path and its permissions") from error


def read_text_file(path: str) -> str:
    """The text of a file that some program wrote, `-` for standard input: undecodable bytes are replaced, and UTF-16 is
    known by its mark (shells of Windows redirect in it). Raises InputError that names the file."""
    import sys

    try:
        if path == "-":
            data = sys.stdin.buffer.read()
        else:
            check_file(path)
            with open(path, "rb") as stream:
                data = stream.read()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InputError("file-unreadable", f"{path} cannot be read: {why}", hint="check the path and its permissions") from error
    return data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig", "replace")


def check_folder(path: str | Path) -> None:
    """Refuse a folder that cannot be written to, before the work whose result goes there. Raises UsageError that names it."""
    target = os.path.abspath(path)
    if os.path.exists(target) and not os.path.isdir(target):
        raise UsageError("cannot-write", f"{path} is no folder", hint="name a folder after -o; it is made when it is missing")
    while not os.path.exists(target):
        target = os.path.dirname(target)
    if not os.path.isdir(target):
        raise UsageError("cannot-write", f"{path} cannot be written: {target} is a file", hint="name another folder after -o")
    if not os.access(target, os.W_OK | os.X_OK):
        why = f"{path} cannot be written: no permission in {target}"
        raise UsageError("cannot-write", why, hint="name another folder after -o")


def write_file(path: str | Path, text: str) -> None:
    """Write a file aside and move it into place. Raises UsageError that names it; nothing is left behind."""
    import tempfile
    from pathlib import Path

    target = Path(path)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
                stream.write(text)
            os.chmod(name, 0o666 & ~_umask())
            os.replace(name, target)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise _cannot_write(target, error) from error


def write_tree(directory: str | Path, files: Mapping[str, str]) -> None:
    """Write a directory of files aside and move it into place. Raises UsageError when it exists and is not empty."""
    import shutil
    import tempfile
    from pathlib import Path

    target = Path(directory)
    if target.is_dir() and any(target.iterdir()):
        raise UsageError("directory-not-empty", f"{target} is not empty", hint="name a directory that does not exist yet")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        try:
            for name, text in files.items():
                (aside / name).parent.mkdir(parents=True, exist_ok=True)
                (aside / name).write_bytes(text.encode("utf-8"))
            os.chmod(aside, 0o777 & ~_umask())
            if target.is_dir():
                target.rmdir()
            os.replace(aside, target)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
    except OSError as error:
        raise _cannot_write(target, error) from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _cannot_write(target: Path, error: OSError) -> UsageError:
    return UsageError("cannot-write", f"{target} cannot be written: {error.strerror or error}",
                      hint="check the directory, its permissions and the free space")
