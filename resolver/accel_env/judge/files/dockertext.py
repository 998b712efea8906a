"""The text of a Dockerfile -> instructions with their lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from accel_env.judge.files.errors import broken
from accel_env.judge.files.script import Source

_WORDS = """
ADD ARG CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL MAINTAINER ONBUILD RUN SHELL STOPSIGNAL USER VOLUME WORKDIR
"""
KEYWORDS = frozenset(_WORDS.split())
_DIRECTIVE = re.compile(r"#\s*([A-Za-z]+)\s*=\s*(\S.*)")
_HEREDOC = re.compile(r"(?:^|(?<=\s))\d*<<-?(['\"]?)([A-Za-z_][\w.-]*)\1(?=\s|$)")
_FLAG = re.compile(r"--([a-z-]+)(?:=(\S*))?\s+")
_HEREDOCS_IN = ("RUN", "COPY", "ADD")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. `source`: what follows keyword and flags; `bodies`: here-documents with their delimiter."""

    keyword: str
    flags: tuple[tuple[str, str], ...]
    source: Source
    line: int
    bodies: tuple[tuple[str, Source], ...] = ()

    @property
    def text(self) -> str:
        """What follows keyword and flags."""
        return self.source.text


def instructions(text: str, file: str) -> tuple[tuple[Instruction, ...], str]:
    """(instructions in order, escape character). InputError with file and line for what Docker refuses as well."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    escape = _escape(lines)
    found: list[Instruction] = []
    place = 0
    while place < len(lines):
        bare = lines[place].strip()
        if not bare or bare.startswith("#"):
            place += 1
            continue
        start = place
        pieces, place = _logical(lines, place, escape)
        instruction, place = _instruction(pieces, lines, start, place, file)
        found.append(instruction)
    if not any(i.keyword == "FROM" for i in found):
        raise broken(file, 0, "there is no FROM in it", "Dockerfile")
    return tuple(found), escape


def _escape(lines: Sequence[str]) -> str:
    """The escape character that a directive at the top names."""
    for line in lines:
        match = _DIRECTIVE.fullmatch(line.strip())
        if not match:
            return "\\"
        if match[1].lower() == "escape" and match[2].strip() in ("`", "\\"):
            return match[2].strip()
    return "\\"


def _logical(lines: Sequence[str], place: int, escape: str) -> tuple[list[tuple[int, str]], int]:
    """((line number, piece) of one instruction, the place after it); comments and empty lines inside are dropped."""
    pieces: list[tuple[int, str]] = []
    while place < len(lines):
        line = lines[place]
        place += 1
        stripped = line.strip()
        if pieces and (not stripped or stripped.startswith("#")):
            continue
        kept = line.rstrip()
        if kept.endswith(escape):
            pieces.append((place, kept[:-1]))
            continue
        pieces.append((place, line))
        break
    return pieces, place


def _instruction(
    pieces: list[tuple[int, str]], lines: Sequence[str], start: int, place: int, file: str
) -> tuple[Instruction, int]:
    source = _joined(pieces)
    head = re.match(r"\s*([A-Za-z]+)(?:\s+|$)", source.text)
    keyword = head[1].upper() if head else ""
    if head is None or keyword not in KEYWORDS:
        word = source.text.split()[0][:40] if source.text.split() else ""
        raise broken(file, start + 1, f"{word!r} is no Dockerfile instruction", "Dockerfile")
    offset = head.end()
    flags: list[tuple[str, str]] = []
    while match := _FLAG.match(source.text, offset):
        flags.append((match[1], match[2] or ""))
        offset = match.end()
    rest = _cut(source, offset)
    if keyword == "FROM" and not rest.text.strip():
        raise broken(file, start + 1, "FROM names no image", "Dockerfile")
    bodies: list[tuple[str, Source]] = []
    if keyword in _HEREDOCS_IN:
        for _, word in _HEREDOC.findall(rest.text):
            body, place = _heredoc(lines, place, word, file, start)
            bodies.append((word, body))
    return Instruction(keyword, tuple(flags), rest, start + 1, tuple(bodies)), place


def _heredoc(lines: Sequence[str], place: int, word: str, file: str, start: int) -> tuple[Source, int]:
    first = place
    while place < len(lines) and lines[place].strip("\t ") != word:
        place += 1
    if place == len(lines):
        raise broken(file, start + 1, f"the here-document {word} has no end", "Dockerfile")
    return Source("\n".join(lines[first:place]), (0,), (first + 1,)), place + 1


def _joined(pieces: Sequence[tuple[int, str]]) -> Source:
    starts: list[int] = []
    size = 0
    for _, piece in pieces:
        starts.append(size)
        size += len(piece)
    return Source("".join(piece for _, piece in pieces), tuple(starts), tuple(number for number, _ in pieces))


def _cut(source: Source, offset: int) -> Source:
    """The source from an offset on."""
    kept = [(max(s - offset, 0), n) for s, n in zip(source.starts, source.lines, strict=True)]
    # of the pieces that begin before the cut only the last one counts
    first = max(i for i, s in enumerate(source.starts) if s <= offset)
    return Source(source.text[offset:], tuple(s for s, _ in kept[first:]), tuple(n for _, n in kept[first:]))
