"""An archive: one gzip'd tar of a whole matrix. Read after its signature held, and even then only what a matrix may hold."""

from __future__ import annotations

import re
from collections.abc import Mapping

from accel_env.errors import InputError

FOLDERS = ("artifacts", "devices", "evidence", "inspected", "packages", "stacks", "torch")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+@-]{0,150}\.(yaml|json|md)")
_LIMIT, _FILES, _FILE = 256 << 20, 10_000, 64 << 20


def read_archive(content: bytes, what: str) -> dict[str, bytes]:
    """Relative path -> bytes of the files in an archive. InputError for what is no archive, or holds what no matrix holds."""
    import io
    import tarfile
    import zlib

    found: dict[str, bytes] = {}
    total = 0
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
            for member in archive:
                if member.isdir():
                    continue
                if wrong := _wrong(member.name, member.isreg(), found):
                    raise _refusal(f"{what}: {wrong}")
                total += member.size
                if total > _LIMIT or member.size > _FILE or len(found) >= _FILES:
                    raise _refusal(f"{what} is larger than any matrix")
                stream = archive.extractfile(member)
                found[member.name] = stream.read() if stream else b""
    except (tarfile.TarError, EOFError, OSError, zlib.error, ValueError) as problem:
        raise _refusal(f"{what} is no archive: {problem}") from None
    if "matrix.yaml" not in found:
        raise _refusal(f"{what} holds no matrix: there is no matrix.yaml in it")
    return found


def _wrong(name: str, regular: bool, found: Mapping[str, bytes]) -> str:
    """What is wrong with a member; a name is refused unless it is one that a matrix has."""
    folder, _, file = name.rpartition("/")
    shown = name.encode("unicode_escape").decode()[:200]
    if not regular:
        return f"`{shown}` is no plain file"
    if (folder and folder not in FOLDERS) or not _NAME.fullmatch(file):
        return f"`{shown}` is no file of a matrix"
    return f"`{shown}` is there twice" if name in found else ""


def _refusal(message: str) -> InputError:
    return InputError("archive-invalid", message, hint="get it again; an archive for a newer accel-env needs that accel-env")


def write_archive(files: Mapping[str, bytes]) -> bytes:
    """The archive of these files: the same files give the same bytes."""
    import gzip
    import io
    import tarfile

    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(files):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(files[name]), 0o644
            archive.addfile(member, io.BytesIO(files[name]))
    return gzip.compress(plain.getvalue(), 9, mtime=0)
