"""A rendered folder as the builder sees it, and the record of the image that was built from it."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from accel_env.errors import InputError, UsageError

DOCKERFILE = "Dockerfile"
PLAN = "plan.json"
RECORD = "image.json"
SCHEMA = "accel-env/image/1"
_EPOCH = re.compile(r'^ARG SOURCE_DATE_EPOCH="?(\d+)"?\s*$', re.MULTILINE)
_COPY = re.compile(r"^COPY (?!--from=)(?P<sources>.+) \S+$", re.MULTILINE)
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class Folder:
    """What is to be built. `recipe`: digest of the Dockerfile and of every file that it copies.

    `epoch`: its time in seconds, None where it names none. `platform`: what the plan is for, `linux/amd64`; empty without a plan.
    `run_args`: words to run it with.
    """

    path: Path
    recipe: str
    epoch: int | None
    platform: str
    run_args: tuple[str, ...]

    @property
    def tag(self) -> str:
        """The name of the image where the user gives none: another recipe has another one."""
        name = re.sub(r"[^a-z0-9]+", "-", self.path.resolve().name.lower()).strip("-") or "image"
        return f"accel-env/{name}:{self.recipe.removeprefix('sha256:')[:12]}"


@dataclass(frozen=True, slots=True)
class Record:
    """What was built once: the digests that the next build must give.

    `config` and `layers` are the promise for every machine with the same kind of engine, `manifest` only for one version of it.
    `size` in bytes.
    """

    recipe: str
    config: str
    layers: tuple[str, ...]
    manifest: str
    size: int
    platform: str
    epoch: int | None
    engine: str
    version: str


def read_folder(path: str | Path) -> Folder:
    """The folder. UsageError when it is none, InputError (3) when a file of it is missing or unreadable."""
    from accel_env.system.files import read_file

    root = Path(path)
    if not root.is_dir():
        raise UsageError("no-folder", f"{path} is no folder", hint="name a folder that `accel-env render -o DIR` wrote")
    if not (root / DOCKERFILE).is_file():
        raise UsageError("no-dockerfile", f"{path} has no {DOCKERFILE}", hint="`accel-env render ASK... -o DIR` writes one")
    text = read_file(root / DOCKERFILE)
    total = hashlib.sha256(text.encode())
    for found in _COPY.finditer(text):
        for name in found.group("sources").split():
            total.update(f"\0{name}\0".encode() + read_file(root / name).encode())
    epoch = _EPOCH.search(text)
    plan = _plan(root)
    host = plan.get("host") or {}
    machine = _MACHINES.get(str(host.get("arch", "")), "")
    return Folder(
        root,
        f"sha256:{total.hexdigest()}",
        int(epoch.group(1)) if epoch else None,
        f"linux/{machine}" if machine else "",
        tuple(str(word) for word in plan.get("run_args") or ()),
    )


def _plan(root: Path) -> dict[str, Any]:
    if not (root / PLAN).is_file():
        return {}
    return _mapping(root / PLAN)


def _mapping(path: Path) -> dict[str, Any]:
    from accel_env.system.files import read_file

    try:
        value = json.loads(read_file(path))
    except (ValueError, RecursionError) as problem:
        raise InputError("file-unreadable", f"{path} is no JSON: {problem}", hint="write the folder again") from None
    if not isinstance(value, dict):
        raise InputError("file-unreadable", f"{path} is no JSON object", hint="write the folder again")
    return value


def read_record(folder: Folder) -> Record | None:
    """The record in the folder; None when there is none. InputError (3) for a broken one."""
    path = folder.path / RECORD
    if not path.is_file():
        return None
    row = _mapping(path)
    try:
        if row.pop("schema") != SCHEMA:
            raise ValueError("another schema")
        return Record(**{**row, "layers": tuple(row["layers"])})
    except (KeyError, TypeError, ValueError) as problem:
        raise InputError("record-unreadable", f"{path} is no record of an image: {problem}", hint="delete it and build") from None


def record_text(record: Record) -> str:
    """The record as the text of its file; the same image gives the same bytes."""
    return json.dumps({"schema": SCHEMA, **asdict(record)}, indent=1) + "\n"
