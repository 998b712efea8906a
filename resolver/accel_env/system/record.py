"""Keeps what a probe reads, so that a bug report is a fixture; private details are masked before anything is written."""
from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from accel_env.system.layout import encode, slug, to_lines
from accel_env.system.types import TIMEOUT, Completed, Machine, System

# Words that vendors' tools print themselves: a machine of that name keeps it, or the recording could not be read back.
_COMMON = frozenset({"nvidia", "amd", "intel", "gaudi", "ubuntu", "debian", "fedora", "linux", "docker", "podman", "jetson",
                     "orin", "tegra", "localhost", "cuda", "rocm", "python", "root", "driver", "version", "kernel", "host"})
# Homes that name nobody: hiding them would hide every path.
_SHARED = _COMMON | {"", "usr", "bin", "lib", "lib64", "opt", "var", "srv", "sys", "dev", "etc", "proc", "run", "tmp", "home"}

# What tells one machine or person from another, and what stands in for it.
_PRIVATE = (
    (r"\b(GPU|MIG)-[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b", r"\1-00000000-0000-0000-0000-000000000000"),
    (r"\b[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b", "00000000-0000-0000-0000-000000000000"),
    (r"(?<![0-9a-fA-F:])([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}(?![0-9a-fA-F:])", "00:00:00:00:00:00"),
    (r"\b[0-9a-f]{32,}\b", "0" * 32),
    (r"(?im)(\b(?:serial|asset tag|service tag)(?:[ _-]?num(?:ber)?)?\b[\"']?\s*[:=]\s*[\"']?)(?!\[?N/?A\b)[\w.-]+", r"\g<1>0"),
    (r"(?m)^(unique_id )\d+$", r"\g<1>0"),
    (r"(?i)(\buuid\s*:?\s+)0x[0-9a-f]+", r"\g<1>0x0"),
    (r"(/home/|/Users/)[^/\s:\"']+", r"\1user"),
    (r"[\w.+-]+@[\w.-]+", "builder@host"),
)


class RecordingSystem:
    """Another system, every answer of which is kept. `save()` writes the recording; until then nothing is on disk."""

    def __init__(self, system: System, directory: str | Path) -> None:
        self._system = system
        self._directory = Path(directory)
        self._env: dict[str, str | None] = {}
        self._files: dict[str, str] = {}
        self._links: dict[str, str] = {}
        self._present: set[str] = set()
        self._denied: set[str] = set()
        self._scans: dict[str, dict[str, list[str]]] = {}
        self._commands: dict[tuple[str, ...], Completed] = {}

    def machine(self) -> Machine:
        """See System."""
        return self._system.machine()

    def env(self, name: str) -> str | None:
        """See System."""
        return self._env.setdefault(name, self._system.env(name))

    def read_text(self, path: str) -> str | None:
        """See System."""
        text = self._system.read_text(path)
        if text is not None:
            self._files[path] = text
        elif self._system.access(path) == "denied":
            self._denied.add(path)
        return text

    def access(self, path: str) -> str:
        """See System."""
        answer = self._system.access(path)
        if answer != "absent":
            (self._denied if answer == "denied" else self._present).add(path)
        return answer

    def listdir(self, path: str) -> tuple[str, ...]:
        """See System."""
        names = self._system.listdir(path)
        self._present.update(f"{path.rstrip('/')}/{name}" for name in names)
        return names

    def glob(self, pattern: str) -> tuple[str, ...]:
        """See System."""
        paths = self._system.glob(pattern)
        self._present.update(paths)
        return paths

    def readlink(self, path: str) -> str | None:
        """See System."""
        target = self._system.readlink(path)
        if target is not None:
            self._links[path] = target
        return target

    def scan(self, path: str, pattern: str) -> tuple[str, ...]:
        """See System."""
        found = self._system.scan(path, pattern)
        if found:
            self._scans.setdefault(path, {})[pattern] = list(found)
        return found

    def run(self, argv: Sequence[str], timeout: float = TIMEOUT) -> Completed:
        """See System."""
        done = self._system.run(argv, timeout)
        if not done.missing:
            self._commands[done.argv] = done
        return done

    def save(self, extra: dict[str, str] | None = None) -> None:
        """Write the recording, with `extra` files (name -> text) beside it. Raises UsageError when the directory is not empty.

        The directory appears whole or not at all.
        """
        from accel_env.system.files import write_tree

        hide = _Mask(self._nodename(), self._system.env("HOME") or "")
        write_tree(self._directory, {**self._layout(hide), **{name: hide(text) for name, text in (extra or {}).items()}})

    def _nodename(self) -> str:
        told = (self._system.read_text("/proc/sys/kernel/hostname") or "").strip()
        return told or (os.uname().nodename if hasattr(os, "uname") else "")

    def _environment(self) -> dict[str, str | None]:
        """The variables that were asked for; of PATH only the folders in which something was found."""
        kept = dict(sorted(self._env.items()))
        if kept.get("PATH"):
            folders = str(kept["PATH"]).split(":")
            kept["PATH"] = ":".join(folder for folder in folders if folder and any(
                path.startswith(f"{folder.rstrip('/')}/") for path in self._present))
        return kept

    def _layout(self, hide: _Mask) -> dict[str, str]:
        import json

        machine = self._system.machine()
        files = {f"root/{encode(hide(path))}": hide(text) for path, text in self._files.items()}
        files["env.json"] = hide(json.dumps({
            "machine": {"os": machine.os, "release": machine.release, "cpu": machine.cpu, "python": machine.python,
                        "libc": machine.libc},
            "env": self._environment()}, indent=1)) + "\n"
        folders = self._present - set(self._files) - self._denied - set(self._links) - set(self._scans)
        tree = {"links": dict(sorted(self._links.items())), "present": sorted(folders), "denied": sorted(self._denied),
                "scans": dict(sorted(self._scans.items()))}
        files["tree.json"] = hide(json.dumps(tree, indent=1)) + "\n"
        for argv, done in self._commands.items():
            name = stem = f"commands/{slug(argv)}"
            while f"{name}.json" in files:
                name = f"{stem}-{sum(other.startswith(stem) for other in files) + 1}"
            files[f"{name}.json"] = json.dumps({
                "argv": [hide(word) for word in argv], "status": done.status, "stdout": to_lines(hide(done.stdout)),
                "stderr": to_lines(hide(done.stderr)), "problem": hide(done.problem)}, indent=1) + "\n"
        return files


class _Mask:
    """Replaces what tells one machine or person from another; the shape of the text stays, so it can still be parsed."""

    def __init__(self, nodename: str, home: str = "") -> None:
        import re

        end = r"(?![\w.-])"
        user = home.rstrip("/").rsplit("/", 1)[-1]
        rules = [(re.escape(home.rstrip("/")) + end, "/home/user"), (rf"(?<=/){re.escape(user)}{end}", "user")]
        rules = [*rules, *_PRIVATE] if user not in _SHARED else list(_PRIVATE)
        names = {nodename, nodename.split(".")[0]}
        rules += [(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", "host") for name in sorted(names, key=len, reverse=True)
                  if len(name) >= 3 and name.lower() not in _COMMON]
        self._rules = [(re.compile(pattern), instead) for pattern, instead in rules]

    def __call__(self, text: str) -> str:
        for pattern, instead in self._rules:
            text = pattern.sub(instead, text)
        return text
