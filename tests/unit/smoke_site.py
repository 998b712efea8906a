"""Made-up environments for the smoke checks: packages with metadata, and shared libraries written byte by byte."""

from __future__ import annotations

import base64
import hashlib
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path

NEEDED, SONAME, RUNPATH = 1, 14, 29


class Strings:
    """A string table."""

    def __init__(self) -> None:
        self.data = b"\0"

    def place(self, text: str) -> int:
        """Where the text stands; it is added when it is new."""
        found = self.data.find(b"\0" + text.encode() + b"\0")
        if found >= 0:
            return found + 1
        self.data += text.encode() + b"\0"
        return len(self.data) - len(text) - 1


def library(
    *,
    needed: Iterable[str] = (),
    soname: str = "",
    runpath: str = "",
    exports: Iterable[str] = (),
    wants: Iterable[str] = (),
    weak: Iterable[str] = (),
    offers: Iterable[str] = (),
    demands: Mapping[str, Iterable[str]] | None = None,
    text: bytes = b"",
) -> bytes:
    """A shared library as far as anybody reads it: the sections of its dynamic part, and `text` somewhere."""
    strings = Strings()
    tags = [(NEEDED, strings.place(name)) for name in needed]
    tags += [(SONAME, strings.place(soname))] if soname else []
    tags += [(RUNPATH, strings.place(runpath))] if runpath else []
    dynamic = b"".join(struct.pack("<QQ", *tag) for tag in (*tags, (0, 0)))
    symbols = struct.pack("<IBBHQQ", 0, 0, 0, 0, 0, 0)
    for names, info, index in ((exports, 0x12, 7), (wants, 0x10, 0), (weak, 0x20, 0)):
        symbols += b"".join(struct.pack("<IBBHQQ", strings.place(name), info, 0, index, 0, 0) for name in names)
    defined = list(offers)
    verdef = b"".join(
        struct.pack("<HHHHIII", 1, 0, 1, 1, 0, 20, 28 if place < len(defined) - 1 else 0)
        + struct.pack("<II", strings.place(name), 0)
        for place, name in enumerate(defined)
    )
    verneed, files = b"", list((demands or {}).items())
    for place, (file, versions) in enumerate(files):
        listed = list(versions)
        size = 16 + 16 * len(listed)
        verneed += struct.pack("<HHIII", 1, len(listed), strings.place(file), 16, size if place < len(files) - 1 else 0)
        for number, version in enumerate(listed):
            following = 16 if number < len(listed) - 1 else 0
            verneed += struct.pack("<IHHII", 0, 0, 2, strings.place(version), following)
    # section: type, content, link (1 is the string table), entries
    sections = [(0, b"", 0, 0), (3, strings.data, 0, 0), (6, dynamic, 1, 0), (11, symbols, 1, 0)]
    sections += [(0x6FFFFFFD, verdef, 1, len(defined))] if defined else []
    sections += [(0x6FFFFFFE, verneed, 1, len(files))] if files else []
    return _file(sections, text)


def _file(sections: list[tuple[int, bytes, int, int]], text: bytes) -> bytes:
    body, headers, offset = text, b"", 64 + len(text)
    for kind, content, link, entries in sections:
        headers += struct.pack("<IIQQQQIIQQ", 0, kind, 0, 0, offset, len(content), link, entries, 8, 0)
        body += content
        offset += len(content)
    head = b"\x7fELF\x02\x01\x01" + b"\0" * 9
    head += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, offset, 0, 64, 0, 0, 64, len(sections), 0)
    return head + body + headers


def install(
    site: Path, name: str, version: str = "1.0", files: Mapping[str, bytes] | None = None, requires: Iterable[str] = ()
) -> None:
    """Installs a made-up distribution: its files, METADATA and RECORD."""
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    lines = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", *(f"Requires-Dist: {text}\n" for text in requires)]
    (info / "METADATA").write_text("".join(lines))
    record = [f"{info.name}/METADATA,,", f"{info.name}/RECORD,,"]
    for path, content in (files or {}).items():
        place = site / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record.append(f"{path},sha256={digest},{len(content)}")
    (info / "RECORD").write_text("\n".join(record) + "\n")
