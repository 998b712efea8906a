"""A machine that was recorded."""
from __future__ import annotations

import fnmatch
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from accel_env.errors import InputError
from accel_env.system.layout import decode, encode, from_lines
from accel_env.system.types import TIMEOUT, Completed, Machine


class ReplayedSystem:
    """The recording in a directory, as `RecordingSystem` writes it; what is not in it does not exist.

    Raises InputError where the directory is missing or one of its JSON files is broken.
    """

    def __init__(self, directory: str | Path) -> None:
        self._root = Path(directory) / "root"
        if not Path(directory).is_dir():
            raise InputError("recording-missing", f"{directory} is no directory with a recorded machine",
                             hint="make one with `accel-env detect --record DIR`")
        self._env = _read_json(Path(directory) / "env.json")
        tree = _read_json(Path(directory) / "tree.json")
        self._links: dict[str, str] = dict(tree.get("links", {}))
        self._denied: set[str] = set(tree.get("denied", []))
        self._scans: dict[str, Mapping[str, Sequence[str]]] = dict(tree.get("scans", {}))
        self._files = {decode(path.relative_to(self._root).as_posix()) for path in _walk(self._root)}
        known = self._files | self._denied | set(self._links) | set(tree.get("present", [])) | set(self._scans)
        self._known = known | {parent for path in known for parent in _parents(path)}
        self._commands = {done.argv: done for done in map(_command, sorted((Path(directory) / "commands").glob("*.json")))}

    def machine(self) -> Machine:
        """See System."""
        stored: Mapping[str, str] = self._env.get("machine", {})
        return Machine(stored.get("os", "linux"), stored.get("release", ""), stored.get("cpu", ""),
                       stored.get("python", ""), stored.get("libc", ""))

    def env(self, name: str) -> str | None:
        """See System."""
        value = self._env.get("env", {}).get(name)
        return None if value is None else str(value)

    def read_text(self, path: str) -> str | None:
        """See System."""
        if path not in self._files:
            return None
        return (self._root / encode(path)).read_bytes().decode("utf-8", "replace")

    def access(self, path: str) -> str:
        """See System."""
        if path in self._denied:
            return "denied"
        return "ok" if path in self._known else "absent"

    def listdir(self, path: str) -> tuple[str, ...]:
        """See System."""
        prefix = path.rstrip("/") + "/"
        return tuple(sorted({known[len(prefix):].split("/")[0] for known in self._known if known.startswith(prefix)} - {""}))

    def glob(self, pattern: str) -> tuple[str, ...]:
        """See System."""
        wanted = pattern.split("/")
        return tuple(sorted(path for path in self._known if _fits(path.split("/"), wanted)))

    def readlink(self, path: str) -> str | None:
        """See System."""
        return self._links.get(path)

    def scan(self, path: str, pattern: str) -> tuple[str, ...]:
        """See System."""
        return tuple(self._scans.get(path, {}).get(pattern, ()))

    def run(self, argv: Sequence[str], timeout: float = TIMEOUT) -> Completed:
        """See System."""
        words = tuple(argv)
        return self._commands.get(words) or Completed(words, None, "", "", f"{words[0]} is not installed", missing=True)


def _read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file, empty when there is no such file."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise InputError("recording-broken", f"{path} is no readable JSON: {error}", hint="record the machine again") from error
    if not isinstance(value, dict):
        raise InputError("recording-broken", f"{path} must hold a JSON object", hint="record the machine again")
    return value


def _walk(root: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(root):
        yield from (Path(folder) / name for name in names)


def _parents(path: str) -> Iterator[str]:
    while "/" in path[1:]:
        path = path.rsplit("/", 1)[0]
        yield path


def _fits(path: list[str], pattern: list[str]) -> bool:
    return len(path) == len(pattern) and all(fnmatch.fnmatchcase(have, want) for have, want in zip(path, pattern, strict=True))


def _command(path: Path) -> Completed:
    stored = _read_json(path)
    argv = stored.get("argv")
    if not isinstance(argv, list) or not argv or not all(isinstance(word, str) for word in argv):
        raise InputError("recording-broken", f"{path}: argv must be a list of words", hint="record the machine again")
    return Completed(tuple(argv), stored.get("status"), from_lines(stored.get("stdout")), from_lines(stored.get("stderr")),
                     str(stored.get("problem") or ""), bool(stored.get("missing")))
