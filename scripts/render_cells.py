#!/usr/bin/env python3
"""Writes `dockerfiles/` from the cells of the matrix; `--check` writes nothing and fails where anything differs.

A cell is written when every file and the base image are known by hash; README.md lists the others with what is missing.
The closure over what the matrix does not model is asked of PyPI, so the network is needed; the cut-off is the matrix's date.
`--programs` needs no network: it puts the smoke checks into the folders that are there, which are kept without.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from accel_env import app, app_cells
from accel_env.errors import AccelEnvError
from accel_env.lock.write import write_files
from accel_env.model import Solution
from accel_env.smoke.checks import program
from accel_env.smoke.local import PROGRAM

README = "README.md"
HEAD = """# Cells

One folder per cell of `matrix/cells.yaml` whose every file is known by hash: `Dockerfile`, `requirements.lock`, `plan.json`.
`accel-env build dockerfiles/CELL` makes the image; it puts `checks.py` beside them, the smoke checks that the image holds at
`/opt/accel-env/checks.py`. To build with another tool, `scripts/render_cells.py --programs` puts it into every folder.
Written by `scripts/render_cells.py`; do not edit. `accel-env cells show CELL` tells why a cell looks as it does, and
`accel-env render` with the same words writes the other files too. The digest of the matrix in a folder, and the release of
uv, are those that first gave exactly these files: a change of the matrix that touches no plan touches no folder.

"""


def main(words: list[str] | None = None) -> int:
    """0, or 1 where `--check` finds a difference; the codes of `errors` for what cannot be done."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cells", nargs="*", metavar="CELL", help="only these cells; README.md stays as it is")
    parser.add_argument("--check", action="store_true", help="write nothing; fail on any difference")
    root = Path(__file__).resolve().parents[1] / "dockerfiles"
    parser.add_argument("--into", type=Path, default=root, metavar="DIR", help="another folder than dockerfiles")
    parser.add_argument("--overlay", action="append", default=[], metavar="FILE", help="a site's own facts; repeat for several")
    parser.add_argument("--programs", action="store_true", help="only put the smoke checks into the folders that are there")
    given = parser.parse_args(words)
    try:
        if given.programs:
            wrong = programs(given.into)
        else:
            wrong = render(given.cells, given.into, check=given.check, overlays=tuple(given.overlay))
    except AccelEnvError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    for line in wrong:
        print(line, file=sys.stderr)
    if wrong and given.check:
        print(f"{given.into.name} is not what the matrix says: run scripts/render_cells.py", file=sys.stderr)
        return 1
    return 0


def programs(root: Path) -> list[str]:
    """Writes the smoke checks alone; gives a line per folder."""
    folders = sorted(path.parent for path in root.glob("*/Dockerfile"))
    for folder in folders:
        write_files(folder, {PROGRAM: program()})
    return [f"{folder.name}/{PROGRAM} written" for folder in folders]


def render(names: Iterable[str], root: Path, *, check: bool, overlays: tuple[str, ...] = ()) -> list[str]:
    """Writes or compares; gives a line per file that was or would be changed."""
    matrix = app.matrix_of(overlays)
    book = app_cells.load_book(matrix)
    cells = app_cells.choose(book, names)
    states = [app_cells.state(cell, matrix, overlays) for cell in cells]
    befores = [contents(root / state.cell.name) for state in states]

    def wanted(state: app_cells.State, before: Mapping[str, bytes]) -> dict[str, bytes]:
        if state.lacks:
            return {}
        print(f"... {state.cell.name}", file=sys.stderr, flush=True)
        return app_cells.files(state.cell, matrix, before, lambda _: None, overlays)

    changed: list[str] = []
    # Most of the time is uv's, in processes of its own.
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for state, before, files in zip(states, befores, pool.map(wanted, states, befores), strict=True):
            changed += put(root / state.cell.name, before, files, check)
    if not names:
        known = {cell.name for cell in cells}
        for folder in sorted(path for path in root.glob("*") if path.is_dir() and path.name not in known):
            changed += put(folder, contents(folder), {}, check)
        before = {README: (root / README).read_bytes()} if (root / README).exists() else {}
        changed += put(root, before, {README: readme(states).encode()}, check)
    return changed


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a cell's folder, but for what a build puts there."""
    names = sorted(path for path in folder.glob("*") if path.is_file() and path.name != PROGRAM)
    return {path.name: path.read_bytes() for path in names}


def put(folder: Path, before: Mapping[str, bytes], wanted: Mapping[str, bytes], check: bool) -> list[str]:
    """A line per difference; without `check` the folder is then as wanted."""
    names = sorted(name for name in {*before, *wanted} if before.get(name) != wanted.get(name))
    if names and not check:
        for name in names:
            if name not in wanted:
                (folder / name).unlink()
        if wanted:
            write_files(folder, wanted)
        elif folder.is_dir():
            shutil.rmtree(folder)
    words = ("differs", "is missing", "is left over") if check else ("written anew", "written", "removed")
    kinds = {(True, True): words[0], (False, True): words[1], (True, False): words[2]}
    return [f"{folder.name}/{name} {kinds[name in before, name in wanted]}" for name in names]


def readme(states: Iterable[app_cells.State]) -> str:
    """The list of the cells: those that have a folder, and what the others lack."""
    rows = ["| cell | machine | stack | Python | picks |", "| --- | --- | --- | --- | --- |"]
    others = ["| cell | machine | missing |", "| --- | --- | --- |"]
    ready = total = 0
    for state in states:
        total += 1
        cell, result = state.cell, state.result
        if state.lacks or not isinstance(result, Solution):
            others.append(f"| {cell.name} | {cell.profile} | {'; '.join(state.lacks)} |")
            continue
        ready += 1
        picks = ", ".join(pick.candidate.label for pick in result.picks)
        rows.append(f"| [{cell.name}]({cell.name}/) | {cell.profile} | {result.stack} | {result.python} | {picks} |")
    parts = [HEAD + f"{ready} of {total} cells:\n", *(f"{row}\n" for row in rows)]
    if total > ready:
        parts += ["\n## Not written\n", *(f"{row}\n" for row in others)]
    return "".join(parts)


if __name__ == "__main__":
    # what is committed follows this checkout, not what this user has installed or laid over it
    os.environ.setdefault("ACCEL_ENV_MATRIX", str(Path(__file__).resolve().parents[1] / "matrix"))
    os.environ.pop("ACCEL_ENV_OVERLAY", None)
    sys.exit(main())
