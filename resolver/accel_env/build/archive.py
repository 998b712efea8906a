"""Reading an image's archive as a stream: its JSON documents and, layer by layer, what every file is."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import tarfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, cast

BLOCK = 1 << 20
_DOCUMENT_LIMIT = 8 << 20  # bytes of a JSON document; configurations are some kilobytes
_BLOB = re.compile(r"blobs/sha256/([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Entry:
    """One file, folder or link of a layer. `mtime` in seconds, as written; `digest` of the content, empty without any."""

    kind: str
    mode: int
    owner: tuple[int, int]
    mtime: float
    size: int
    link: str = ""
    digest: str = ""


Files = Mapping[str, Entry]


@dataclass(frozen=True, slots=True)
class Archive:
    """`documents`: the JSON files by their digest. `layers`: diffID -> path -> what is there."""

    documents: Mapping[str, bytes]
    layers: Mapping[str, Files]


def read_archive(chunks: Iterator[bytes], skip: Collection[str] = ()) -> Archive:
    """Reads a docker-archive or an OCI layout; the archive is never held as a whole. `skip`: diffIDs that nobody asks for."""
    documents: dict[str, bytes] = {}
    layers: dict[str, Files] = {}
    with tarfile.open(fileobj=cast(IO[bytes], _Chunks(chunks)), mode="r|") as archive:
        for member in archive:
            named = _BLOB.fullmatch(member.name)
            source = archive.extractfile(member) if member.isfile() else None
            if source is None or (named and f"sha256:{named.group(1)}" in skip):
                continue
            head = source.read(2)
            if head[:1] in (b"{", b"["):
                if member.size <= _DOCUMENT_LIMIT:
                    text = head + source.read()
                    documents[f"sha256:{hashlib.sha256(text).hexdigest()}"] = text
            elif member.size > len(head):
                digest, files = _layer(_Headed(head, source), compressed=head == b"\x1f\x8b")
                if files or not member.name.endswith("VERSION"):
                    layers[digest] = files
    return Archive(documents, layers)


def _layer(source: _Headed, *, compressed: bool) -> tuple[str, Files]:
    """The diffID of a layer and its files; no files for what is no tar archive."""
    plain: IO[bytes] = cast(IO[bytes], io.BufferedReader(source, BLOCK))
    hashing = _Hashing(gzip.GzipFile(fileobj=plain) if compressed else plain)
    files: dict[str, Entry] = {}
    try:
        with tarfile.open(fileobj=cast(IO[bytes], hashing), mode="r|", bufsize=BLOCK) as layer:
            for member in layer:
                files[member.name.strip("/").removeprefix("./")] = _entry(layer, member)
    except tarfile.TarError:
        files = {}
    while hashing.read(BLOCK):
        pass  # the padding at the end belongs to the diffID
    return hashing.digest(), files


def _entry(layer: tarfile.TarFile, member: tarfile.TarInfo) -> Entry:
    kinds = {
        tarfile.DIRTYPE: "folder", tarfile.SYMTYPE: "link", tarfile.LNKTYPE: "hard link", tarfile.CHRTYPE: "device",
        tarfile.BLKTYPE: "device", tarfile.FIFOTYPE: "pipe",
    }  # fmt: skip
    digest = ""
    if member.isfile():
        total = hashlib.sha256()
        source = layer.extractfile(member)
        while source is not None and (block := source.read(BLOCK)):
            total.update(block)
        digest = total.hexdigest()
    owner = (member.uid, member.gid)
    return Entry(kinds.get(member.type, "file"), member.mode & 0o7777, owner, member.mtime, member.size, member.linkname, digest)


class _Chunks(io.RawIOBase):
    """An iterator of bytes as a file."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._left = b""

    def read(self, size: int = -1) -> bytes:
        """Exactly `size` bytes, fewer only at the end."""
        parts, missing = [], size
        while missing:
            if not self._left:
                self._left = next(self._chunks, b"")
                if not self._left:
                    break
            parts.append(self._left[:missing] if size >= 0 else self._left)
            self._left = self._left[len(parts[-1]) :]
            missing -= len(parts[-1])
        return b"".join(parts)


class _Headed(io.RawIOBase):
    """A file whose first bytes were read already."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self._head, self._rest = head, rest

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        """See RawIOBase."""
        data, self._head = (self._head, b"") if self._head else (self._rest.read(len(buffer)), b"")
        buffer[: len(data)] = data
        return len(data)


class _Hashing(io.RawIOBase):
    """A file of which everything read is hashed."""

    def __init__(self, source: IO[bytes] | gzip.GzipFile) -> None:
        self._source = source
        self._total = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        """See RawIOBase."""
        data = self._source.read(size)
        self._total.update(data)
        return data

    def digest(self) -> str:
        """`sha256:...` of what was read."""
        return f"sha256:{self._total.hexdigest()}"
