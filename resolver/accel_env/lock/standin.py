"""Metadata-only wheels: what a resolver needs to know of a file, without the gigabytes in it."""

from __future__ import annotations

import re
from pathlib import Path

from accel_env.errors import ClosureError
from accel_env.lock.closer import StandIn

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the oldest time a zip can hold: the same bytes on every run
_EXTRA = re.compile(r"\bextra\s*==\s*[\"']([A-Za-z0-9._-]+)[\"']")


def write_stand_in(folder: Path, stand_in: StandIn) -> Path:
    """The path of the wheel written into `folder`. ClosureError when the metadata cannot be one."""
    import zipfile

    stem = "-".join(stand_in.filename.split("-")[:2])
    members = {
        "METADATA": _metadata(stand_in),
        "WHEEL": _wheel(stand_in.filename),
        "RECORD": "".join(f"{stem}.dist-info/{name},,\n" for name in ("METADATA", "WHEEL", "RECORD")),
    }
    path = folder / stand_in.filename
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(zipfile.ZipInfo(f"{stem}.dist-info/{name}", _EPOCH), text.encode())
    return path


def extras_in(requirement: str) -> list[str]:
    """The extras that the marker of a Requires-Dist line names."""
    return _EXTRA.findall(requirement)


def _metadata(stand_in: StandIn) -> str:
    """The METADATA file; extras are those that the markers speak of and those that were asked for."""
    for line in (stand_in.name, stand_in.version, *stand_in.requires):
        if "\n" in line or "\r" in line:
            raise ClosureError(
                "bad-metadata", f"{stand_in.name} {stand_in.version} has a requirement of more than one line: {line!r}"
            )
    extras = {extra for line in stand_in.requires for extra in extras_in(line)} | set(stand_in.extras)
    lines = ["Metadata-Version: 2.1", f"Name: {stand_in.name}", f"Version: {stand_in.version}"]
    lines += [f"Provides-Extra: {extra}" for extra in sorted(extras)]
    lines += [f"Requires-Dist: {requirement}" for requirement in stand_in.requires]
    return "\n".join(lines) + "\n"


def _wheel(filename: str) -> str:
    """The WHEEL file with the tags of the file name spelt out."""
    from packaging.utils import parse_wheel_filename

    tags = sorted(str(tag) for tag in parse_wheel_filename(filename)[3])
    lines = ["Wheel-Version: 1.0", "Generator: accel-env", "Root-Is-Purelib: false", *(f"Tag: {tag}" for tag in tags)]
    return "\n".join(lines) + "\n"
