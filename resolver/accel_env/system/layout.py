"""How a recorded machine lies on disk; shared by the writer and the reader.

    env.json        {"machine": {os, release, cpu, python, libc}, "env": {NAME: value or null}}
    root/...        files as read; `:` in a name is written %3A so that every file system can hold it
    tree.json       {"links": {path: target}, "present": [path], "denied": [path], "scans": {path: {pattern: [match]}}}
    commands/*.json {"argv", "status", "stdout", "stderr", "problem", "missing"}; a stream is a string or a list of lines

`present` are things that exist and have no content worth keeping (device nodes, directories), `denied` those that may
not be opened. The name of a command's file says nothing; its `argv` counts.
"""
from __future__ import annotations

import re


def encode(path: str) -> str:
    """The file name under `root/` of an absolute path."""
    return path.lstrip("/").replace("%", "%25").replace(":", "%3A").replace("\\", "%5C")


def decode(name: str) -> str:
    """The absolute path of a file name under `root/`."""
    plain = name.replace("%5C", "\\").replace("%3A", ":").replace("%25", "%")
    return plain if re.match(r"[A-Za-z]:", plain) else "/" + plain


def to_lines(text: str) -> str | list[str]:
    """A stream for JSON: a list of lines where every line is ended, which reads and diffs better."""
    return text.split("\n")[:-1] if text.endswith("\n") else text


def from_lines(value: object) -> str:
    """The text of a stream as stored."""
    return "".join(f"{line}\n" for line in value) if isinstance(value, list) else str(value or "")


def slug(argv: tuple[str, ...]) -> str:
    """A short file name for a command."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", " ".join(argv)).strip("-.")[:60] or "command"
