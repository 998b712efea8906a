"""The frame of every update: read the matrix, draft, check the draft as a whole, and write all of it or nothing.

Exit codes: 0 done (or nothing to do), 1 `--check` found something to draft, 2 usage, 3 the source holds what the matrix has
no word for, or a draft breaks a rule, 5 the source cannot be read, lists less than before, or has another hash for a known
file.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from accel_env.errors import AccelEnvError, ClosureError, InputError
from accel_env.matrix import store
from accel_env.matrix.compile import Model, read_model
from accel_env.matrix.read import Faults
from accel_env.system.files import write_file
from updating.source import Source
from updating.wheels import Reader

ROOT = Path(__file__).resolve().parents[2]
UNKNOWN, BROKEN = 3, 5


@dataclass(slots=True)
class Job:
    """One run. `faults`: (exit code, sentence), any of which keeps everything unwritten; `notes`: for a person to look at."""

    root: Path
    model: Model
    source: Source
    settings: Mapping[str, Any]
    today: str
    packages: frozenset[str]
    texts: dict[str, str] = field(default_factory=dict)
    faults: list[tuple[int, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def wants(self, package: str) -> bool:
        """Whether the run is about this package."""
        return not self.packages or package in self.packages

    def text(self, file: str) -> str:
        """The text of a file of the matrix with the drafts so far; empty where there is none."""
        if file not in self.texts:
            path = self.root / file
            return path.read_bytes().decode() if path.is_file() else ""
        return self.texts[file]

    def put(self, file: str, text: str, what: str = "") -> None:
        """Keeps a draft; `what` says it in a line."""
        if text != self.text(file):
            self.texts[file] = text
            self.said += [what] if what else []

    def unknown(self, sentence: str) -> None:
        """The source has a word that the matrix does not have."""
        self.faults.append((UNKNOWN, sentence))

    def broken(self, sentence: str) -> None:
        """The source contradicts what is known."""
        self.faults.append((BROKEN, sentence))

    def reader(self) -> Reader:
        """What reads the names of wheels."""
        return Reader(self.settings["wheels"], tuple(python.version for python in self.model.pythons))

    def stacks(self) -> frozenset[str]:
        """`cuda-X.Y` of every release that the matrix knows, and the bare names."""
        names = {f"{stack.name}-{one.version}" for stack in self.model.stacks.values() for one in stack.releases}
        return frozenset(names | set(self.model.stacks))


def main(about: str, draft: Callable[[Job], None], words: list[str] | None = None) -> int:
    """Runs one script; gives its exit code."""
    given = _parser(about).parse_args(words)
    try:
        job = _job(given)
        draft(job)
        _refuse(job)
        texts = {file: text for file, text in sorted(job.texts.items()) if text != _now(job, file)}
        if texts:
            _validate(job, texts)
    except AccelEnvError as error:
        print(error, file=sys.stderr)
        print("nothing was written", file=sys.stderr)
        return error.exit_code
    return _finish(job, texts, given)


def _finish(job: Job, texts: Mapping[str, str], given: argparse.Namespace) -> int:
    for note in dict.fromkeys(job.notes):
        print(f"note: {note}", file=sys.stderr)
    if given.dry_run:
        for file, text in texts.items():
            old = _now(job, file).splitlines(keepends=True)
            sys.stdout.writelines(difflib.unified_diff(old, text.splitlines(keepends=True), f"a/{file}", f"b/{file}"))
    for line in job.said:
        print(line if not given.check else f"would be drafted: {line}", file=sys.stderr)
    if not texts:
        print(f"nothing new ({job.source.asked} documents read)", file=sys.stderr)
    elif not (given.check or given.dry_run):
        for file, text in texts.items():
            (job.root / file).parent.mkdir(exist_ok=True)
            write_file(job.root / file, text)
            print(f"wrote {file}", file=sys.stderr)
    return 1 if texts and given.check else 0


def _parser(about: str) -> argparse.ArgumentParser:
    lines = about.strip().splitlines()
    parser = argparse.ArgumentParser(
        description=lines[0], epilog="\n".join(lines[1:]), formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where something would be drafted")
    parser.add_argument("--dry-run", action="store_true", help="write nothing; print the drafts as a diff")
    parser.add_argument("--package", action="append", default=[], metavar="NAME", help="only this package; repeat for several")
    parser.add_argument("--source", default="", metavar="URL|DIR", help="a copy of the sites: a server or a folder")
    parser.add_argument("--matrix", type=Path, default=ROOT / "matrix", metavar="DIR", help="another matrix than this checkout's")
    parser.add_argument(
        "--settings", type=Path, default=ROOT / "scripts" / "refresh.yaml", metavar="FILE", help=argparse.SUPPRESS
    )
    parser.add_argument("--today", default="", metavar="YYYY-MM-DD", help="the day that the drafts bear, instead of today")
    return parser


def _job(given: argparse.Namespace) -> Job:
    if given.source and "://" not in given.source and not os.path.isdir(given.source):
        raise InputError("no-source", f"--source {given.source} is neither a URL nor a folder", hint="name a copy of the sites")
    if given.today and not re.fullmatch(r"\d{4}-\d\d-\d\d", given.today):
        raise InputError("no-day", f"--today {given.today} is no day", hint="write YYYY-MM-DD")
    model = read_model(store.locate(str(given.matrix)))
    packages = frozenset(given.package)
    if strange := sorted(packages - set(model.names())):
        raise InputError(
            "package-unknown",
            f"the matrix has no package {', '.join(strange)}",
            hint="a new package starts with a file of its own: matrix/README.md",
        )
    settings = read_settings(given.settings)
    return Job(given.matrix, model, Source(given.source), settings, given.today or date.today().isoformat(), packages)


def read_settings(path: Path) -> dict[str, Any]:
    """The plain mapping of refresh.yaml. InputError where it is no such file."""
    faults = Faults()
    found = store.parse_yaml(store.read_bytes(str(path)), path.name, faults)
    if faults.items or found.get("schema") != "accel-env/refresh/1":
        said = tuple(map(str, faults.items)) or (f"{path.name}: schema must be accel-env/refresh/1",)
        raise InputError("settings-invalid", f"{path.name} cannot be used", context=said, hint="correct the file")
    return found


def _refuse(job: Job) -> None:
    """Any fault refuses everything: half a refresh would look like a whole one."""
    if not job.faults:
        return
    said = tuple(dict.fromkeys(sentence for _, sentence in job.faults))
    shown = (*said[:40], *((f"and {len(said) - 40} more",) if len(said) > 40 else ()))
    hint = "look at each; add what is missing to the matrix by hand, or take the row out, and run it again"
    if any(code == BROKEN for code, _ in job.faults):
        raise ClosureError("source-contradicts", "the source does not agree with what the matrix holds", context=shown, hint=hint)
    raise InputError("source-unknown-words", "the source holds what the matrix has no word for", context=shown, hint=hint)


def _now(job: Job, file: str) -> str:
    path = job.root / file
    return path.read_bytes().decode() if path.is_file() else ""


def _validate(job: Job, texts: Mapping[str, str]) -> None:
    """The drafts laid over a copy of the matrix must load, and break no rule that was kept before."""
    from accel_env.matrix.findings import ERROR
    from accel_env.matrix.lint import rules

    def broken(model: Model) -> set[str]:
        return {f"{one.where}: {one.message}" for rule in rules() for one in rule(model) if one.severity == ERROR}

    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "matrix"
        shutil.copytree(job.root, copy, ignore=shutil.ignore_patterns("evidence", "schema", ".*"))
        for file, text in texts.items():
            (copy / file).parent.mkdir(exist_ok=True)
            (copy / file).write_bytes(text.encode())
        fresh = sorted(broken(read_model(str(copy))) - broken(job.model))
    if fresh:
        raise InputError(
            "draft-breaks-rules",
            "the drafts would break rules of the matrix",
            context=tuple(fresh[:20]),
            hint="add by hand what they name (a stack release, a package) and run it again",
        )
