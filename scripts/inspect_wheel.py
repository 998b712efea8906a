#!/usr/bin/env python3
"""Reads wheels by HTTP range: what they require, link, hold as device code, and ask of torch.

    scripts/inspect_wheel.py WHEEL...              one or more paths or URLs, printed as JSON
    scripts/inspect_wheel.py --all [PACKAGE...]    every wheel of the user's package index that plans can pick

`--all` writes matrix/inspected/, keeps what it read under --cache, and goes on where it stopped: files that are there already
are not read again, nor is a member of the same name, length and CRC-32 as one of another file of that release.
`accel-env matrix lint` then says what differs from the matrix.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from datetime import date
from pathlib import Path

from accel_env.errors import AccelEnvError
from accel_env.inspect.batch import Batch, packages_of
from accel_env.inspect.record import record
from accel_env.inspect.shelf import default_index
from accel_env.inspect.source import open_wheel
from accel_env.inspect.wheel import inspect_wheel
from accel_env.matrix.load import open_matrix

ROOT = Path(__file__).resolve().parents[1]


def main(words: list[str] | None = None) -> int:
    """0, or the code of the error."""
    given = _parser().parse_args(words)
    try:
        return _all(given) if given.all else _some(given.what)
    except AccelEnvError as error:
        print(error, file=sys.stderr)
        return error.exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", nargs="*", metavar="WHEEL|PACKAGE")
    parser.add_argument("--all", action="store_true", help="read what plans can pick, into matrix/inspected/")
    parser.add_argument("--index", default="", help="URL of an index instead of the user's own")
    parser.add_argument("--index-name", default="pypi", help="the name that the matrix gives to it")
    parser.add_argument("--tags", default="cp312", help="Python tags that count, with commas; `all` for all")
    parser.add_argument("--cache", type=Path, default=Path(os.path.expanduser("~/.cache/accel-env/wheels")), metavar="DIR")
    parser.add_argument("--into", type=Path, default=ROOT / "matrix" / "inspected", metavar="DIR")
    parser.add_argument("--date", default=date.today().isoformat(), help="the day that is written beside a reading")
    parser.add_argument("--write-only", action="store_true", help="write the files from what is kept, read nothing")
    return parser


def _some(places: list[str]) -> int:
    for place in places:
        name = place.rpartition("/")[2]
        with open_wheel(place, _say) as stream:
            wheel = inspect_wheel(stream, name)
        print(json.dumps({"file": name, "size": wheel.size, "tags": wheel.tags, **record(wheel)}, indent=1))
    return 0


def _all(given: argparse.Namespace) -> int:
    matrix = open_matrix(ROOT / "matrix")
    url = "" if given.write_only else given.index or default_index(os.environ)
    tags = () if given.tags == "all" else tuple(given.tags.split(","))
    batch = Batch(matrix, given.index_name, url, given.cache, given.into, given.date, tags, _say)
    for package in packages_of(matrix, given.what):
        count = 0 if given.write_only else batch.read(package)
        _say(f"{package}: {count} read, {batch.write(package)} in the file")
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
