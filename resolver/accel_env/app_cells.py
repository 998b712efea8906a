"""The named cells (`matrix/cells.yaml`): what they are, what they come to, and the files of those that can be built."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from accel_env import app
from accel_env.app_close import answer_of, plan_bytes
from accel_env.errors import InputError, UsageError
from accel_env.model import Conflict, Solution

if TYPE_CHECKING:
    from accel_env.matrix.load import Matrix
    from accel_env.matrix.read import Row
    from accel_env.model import Lock
    from accel_env.render import RenderOptions

Json = dict[str, Any]
DOCUMENT = "cells"
DOCKERFILE, PLAN, REQUIREMENTS = "Dockerfile", "plan.json", "requirements.lock"


@dataclass(frozen=True, slots=True)
class Cell:
    """A machine, what must work on it, a Python. `python`, `stack`, `prefer` are empty where the resolver chooses. `compiler`:
    the image holds a C compiler, which what is in it needs when it runs."""

    name: str
    profile: str
    list: str
    asks: tuple[str, ...]
    python: str = ""
    stack: str = ""
    prefer: str = ""
    compiler: bool = False

    def request(self, overlays: tuple[str, ...] = ()) -> app.Request:
        """The cell as what a user would type."""
        return app.Request(
            asks=self.asks, host=self.profile, python=self.python, stack=self.stack, prefer=self.prefer,
            target="container", overlays=overlays,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Book:
    """Everything in `cells.yaml`: the cells by name, labels of hosted machines by platform, of one's own by vendor."""

    cells: Mapping[str, Cell]
    hosted: Mapping[str, tuple[str, ...]]
    own: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class State:
    """What a cell comes to. `lacks`: why no image can be written from known digests and hashes, one text each."""

    cell: Cell
    result: Solution | Conflict
    lacks: tuple[str, ...]


def load_book(matrix: Matrix) -> Book:
    """The cells of the matrix. InputError (3) with every fault of the file."""
    from accel_env.matrix.read import Faults, Row

    faults = Faults()
    row = Row(matrix.document(DOCUMENT), faults, f"{DOCUMENT}.yaml", DOCUMENT)
    lists = {name: _lines(row, name) for name in row.maybe("lists") or ()}
    compiled = row.texts("compiled")
    lists |= {f"@{name}": (f"@{name}",) for name in matrix.bundles()}
    for name in compiled:
        if name not in lists:
            row.fault("compiled", f"there is no list `{name}`")
    cells = {name: _cell(name, inner, lists, matrix.profiles()) for name, inner in row.keyed("cells").items()}
    cells = {name: replace(cell, compiler=cell.list in compiled) for name, cell in cells.items()}
    book = Book(cells, _labels(row, "hosted"), _labels(row, "own"))
    row.close()
    if faults.items:
        first, *others = (str(fault) for fault in faults.items)
        raise InputError("matrix-invalid", first, context=tuple(others), hint="matrix/README.md tells the format")
    return book


def _lines(row: Row, name: str) -> tuple[str, ...]:
    from packaging.requirements import InvalidRequirement, Requirement

    def check(text: str) -> str:
        try:
            Requirement(text)
        except InvalidRequirement:
            return f"`{text}` is no requirement"
        return ""

    lists = row.maybe("lists")
    return lists.texts(name, required=True, check=check) if lists else ()


def _labels(row: Row, key: str) -> dict[str, tuple[str, ...]]:
    inner = row.maybe(key)
    return {name: inner.texts(name) for name in inner} if inner else {}


def _cell(name: str, row: Row, lists: Mapping[str, tuple[str, ...]], profiles: Iterable[str]) -> Cell:
    from accel_env.matrix import checks

    prefer = row.one_of("prefer", ("lockable", "newest", "tested")) if "prefer" in row else ""
    found = Cell(
        name, row.text("profile"), row.text("list"), (), row.optional("python", checks.python), row.optional("stack"), prefer
    )
    if found.profile and found.profile not in profiles:
        row.fault("profile", f"there is no profile `{found.profile}`")
    if found.list and found.list not in lists:
        row.fault("list", f"there is no list `{found.list}`; there are: {', '.join(lists)}")
    row.close()
    return replace(found, asks=lists.get(found.list, ()))


def choose(book: Book, names: Iterable[str]) -> tuple[Cell, ...]:
    """The named cells, all where none is named. UsageError (2) for a name that is none."""
    import difflib

    wanted = tuple(names)
    for name in wanted:
        if name not in book.cells:
            near = difflib.get_close_matches(name, book.cells, 3) or list(book.cells)[:3]
            raise UsageError("unknown-cell", f"there is no cell `{name}`", hint=f"near it: {', '.join(near)}")
    return tuple(book.cells[name] for name in wanted or book.cells)


def state(cell: Cell, matrix: Matrix, overlays: tuple[str, ...] = ()) -> State:
    """What the cell comes to on this matrix."""
    problem, _ = app.problem_of(cell.request(overlays), matrix)
    result = answer_of(problem, matrix)
    return State(cell, result, _lacks(result, matrix))


def _lacks(result: Solution | Conflict, matrix: Matrix) -> tuple[str, ...]:
    from accel_env.lock.artifacts import IMAGE, PYPI
    from accel_env.lock.artifacts import choose as choose_file
    from accel_env.lock.question import target_of
    from accel_env.solve.plan import index_text

    if isinstance(result, Conflict):
        return (f"no combination: {' and '.join(item.text for item in result.core) or 'nothing fits'}",)
    libc = target_of(result).libc
    missing = []
    for pick in result.picks:
        candidate = pick.candidate
        if candidate.index not in (PYPI, IMAGE):
            file = choose_file(pick, libc, matrix)
            if not file.sha256:
                missing.append(f"sha256 of {file.filename} ({index_text(candidate.index, candidate.tag, matrix)})")
    if not (missing or result.lockable):
        missing.append("the sha256 of some file")
    image = result.image
    if image is None:
        missing.append("a base image")
    elif not (image.digest or image.digests.get(result.problem.host.platform)):
        missing.append(f"digest of {image.ref}")
    return tuple(missing)


def table(names: Iterable[str], overlays: tuple[str, ...] = ()) -> Json:
    """The cells as written; nothing is solved."""
    book = load_book(app.matrix_of(overlays))
    return {"schema": "accel-env/cell-table/1", "cells": [_row(cell) for cell in choose(book, names)]}


def solved(names: Iterable[str], overlays: tuple[str, ...] = ()) -> Json:
    """The cells with what each comes to: stack, Python, picks, and what an image lacks."""
    matrix = app.matrix_of(overlays)
    states = [state(cell, matrix, overlays) for cell in choose(load_book(matrix), names)]
    return {"schema": "accel-env/cell-table/1", "cells": [_row(one.cell) | outcome(one) for one in states]}


def show(name: str, overlays: tuple[str, ...] = ()) -> Json:
    """The plan, or the refusal, of one cell."""
    matrix = app.matrix_of(overlays)
    (cell,) = choose(load_book(matrix), [name])
    return {**app.resolve(cell.request(overlays)), "cell": _row(cell)}


def ci(names: Iterable[str], overlays: tuple[str, ...] = ()) -> Json:
    """The matrix of a CI job, one entry per cell that can be built: `runner` for what needs no device, `own` for what does."""
    matrix = app.matrix_of(overlays)
    book = load_book(matrix)
    rows = []
    for cell in choose(book, names):
        found = state(cell, matrix, overlays)
        if found.lacks or not isinstance(found.result, Solution):
            continue
        platform = found.result.problem.host.platform
        vendor = found.result.problem.devices[0].vendor if found.result.problem.devices else ""
        rows.append(
            {"cell": cell.name, "folder": f"dockerfiles/{cell.name}", "stack": found.result.stack, "python": found.result.python,
             "platform": platform, "runner": list(book.hosted.get(platform, ())), "levels": "static,import",
             "vendor": vendor, "own": list(book.own.get(vendor, ()))}
        )  # fmt: skip
    return {"include": rows}


def _row(cell: Cell) -> Json:
    row: Json = {"cell": cell.name, "profile": cell.profile, "list": cell.list, "asks": list(cell.asks)}
    wanted = {"python": cell.python, "stack": cell.stack, "prefer": cell.prefer, "compiler": cell.compiler}
    return row | {key: value for key, value in wanted.items() if value}


def outcome(found: State) -> Json:
    """What the cell came to, as a plain mapping."""
    result = found.result
    if isinstance(result, Conflict):
        return {"status": "conflict", "lacks": list(found.lacks)}
    picks = {pick.candidate.name: pick.candidate.label.partition(" ")[2] for pick in result.picks}
    return {
        "status": "ok", "stack": result.stack, "python": result.python, "platform": result.problem.host.platform,
        "picks": picks, "image": result.image.ref if result.image else "", "lacks": list(found.lacks),
    }  # fmt: skip


def files(
    cell: Cell, matrix: Matrix, before: Mapping[str, bytes], progress: Callable[[str], None], overlays: tuple[str, ...] = ()
) -> dict[str, bytes]:
    """The files of a cell without `lacks`, name -> content.

    `before`: what is there already. The digest of the matrix and the release of uv that it names are kept as long as nothing
    else would change: they say what first gave exactly this, and an edit elsewhere in the matrix touches no cell.
    """
    import json

    from accel_env.app_image import ImageWords, image_options

    lock, plan, _ = app.closed(cell.request(overlays), matrix, progress, hashed_only=True)
    # what a vendor's image compiles with is its own; nothing of the base's distribution is known to fit it
    own = not any(pick.candidate.module == "torch" and pick.candidate.index == "image" for pick in lock.solution.picks)
    options = image_options(ImageWords(compiler=cell.compiler and own), lock.solution, matrix, lock)
    try:
        digest = str(json.loads(before[PLAN])["matrix"]["digest"])
        uv = before[REQUIREMENTS].decode().partition("closed by uv ")[2].split()[0]
    except (KeyError, ValueError, TypeError, IndexError):
        return _render(lock, plan, options)
    tools = {**lock.tools, "matrix_digest": digest, "uv": uv}
    same = _render(replace(lock, tools=tools), {**plan, "matrix": {**plan["matrix"], "digest": digest}}, options)
    return same if same == before else _render(lock, plan, options)


def _render(lock: Lock, plan: Json, options: RenderOptions) -> dict[str, bytes]:
    """What is kept of a rendered folder: what a build needs, and the plan. pylock.toml repeats the lock with addresses; the smoke
    checks are the same in every folder, and `build` puts them in."""
    from accel_env.lock.write import lock_files
    from accel_env.render import render
    from accel_env.render.compose import context_files

    written = render(lock.solution, lock, lock_files(lock), plan_bytes(plan), options)
    kept = (DOCKERFILE, PLAN, REQUIREMENTS, *context_files(lock.solution, lock, options))
    return {name: written[name] for name in sorted(set(kept) - set(options.programs))}
