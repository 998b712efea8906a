"""What the words of `smoke` mean: checked, and turned into the place where the checks run and what they compare with."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from accel_env.errors import UsageError

if TYPE_CHECKING:
    from accel_env.build.engine import Engine, ImageDetails

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SmokeWords:
    """What was typed. `target`: a folder, a cell or an image; empty with `here`. `plan`: what to compare with where the target
    does not bring it. `level`: the highest level. `device`: for the level `device`. `venv`: install the lock, take no image."""

    target: str = ""
    here: bool = False
    level: str = "import"
    device: str = ""
    only: tuple[str, ...] = ()
    plan: str = ""
    engine: str = ""
    venv: bool = False
    patience: str = ""
    report: str = ""
    junit: str = ""
    evidence: bool = False


@dataclass(frozen=True, slots=True)
class Scene:
    """Where the checks run and what they compare with. `kind`: `interpreter`, `environment`, `image`. `checks`: the path of an
    image's own."""

    kind: str
    shown: str
    plan: Json
    plan_digest: str = ""
    expect: Json | None = None
    place: str = ""
    lock: str = ""
    engine: Engine | None = None
    image: str = ""
    checks: str = ""


def check_words(words: SmokeWords) -> None:
    """Refuses words that make no sense, and outputs that cannot be written, before anything is done."""
    if words.here == bool(words.target):
        raise UsageError(
            "no-target",
            "`smoke` needs a folder, a cell or an image, or --here",
            hint="`accel-env smoke --here` checks this Python",
        )
    if words.evidence and words.only:
        raise UsageError("part-is-no-evidence", "--only runs a part of the checks, which is no evidence", hint="leave --only out")
    if words.evidence and not (words.plan or words.target):
        raise UsageError("no-plan", "evidence is about a plan, and --here brings none", hint="add --plan DIR")
    if words.here and words.venv:
        raise UsageError("no-target", "--here is this interpreter, --venv one made from a folder's lock", hint="leave one out")
    _check_patience(words.patience)
    for option, path in (("--report", words.report), ("--junit", words.junit)):
        if path:
            _check_output(option, path)


def _check_patience(text: str) -> None:
    import math

    try:
        good = not text or (math.isfinite(float(text)) and float(text) > 0)
    except ValueError:
        good = False
    if not good:
        raise UsageError("bad-number", f"--patience {text} is no number above 0", hint="try --patience 3")


def _check_output(option: str, path: str) -> None:
    """Refuses a file that cannot be written, before the work whose result goes there."""
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.isdir(path) or path.endswith(os.sep):
        why = "it is a directory"
    elif not os.path.isdir(folder):
        why = f"{folder} is no directory"
    elif not os.access(folder, os.W_OK | os.X_OK):
        why = f"no permission in {folder}"
    else:
        return
    raise UsageError("cannot-write", f"{option} {path} cannot be written: {why}", hint="name a file in a folder that is there")


def scene_of(words: SmokeWords) -> Scene:
    """What the words mean; the most special reading first."""
    if words.here:
        return _with_plan(Scene("interpreter", "this interpreter", {}, place=sys.executable), words.plan)
    if os.path.isdir(words.target):
        return _folder(words, words.target)
    if words.target in _cells():
        folder = os.path.join("dockerfiles", words.target)
        if not os.path.isdir(folder):
            raise UsageError(
                "cell-not-rendered",
                f"the cell {words.target} has no folder {folder} here",
                hint="run in the repository, or `accel-env cells show CELL` and `accel-env render` with its words",
            )
        return _folder(words, folder)
    if words.venv:
        raise UsageError("nothing-to-smoke", f"{words.target} is no folder with a lock, which --venv needs", hint="name one")
    return _with_plan(_image(words.target, words.engine), words.plan)


def _cells() -> tuple[str, ...]:
    from accel_env import app
    from accel_env.app_cells import load_book

    return tuple(load_book(app.matrix_of()).cells)


def _folder(words: SmokeWords, folder: str) -> Scene:
    """A virtual environment, or what `lock` or `render` wrote."""
    from accel_env.smoke.local import python_of

    python = python_of(folder)
    if python:
        return _with_plan(Scene("environment", folder, {}, place=python), words.plan)
    has = {name for name in ("Dockerfile", "plan.json", "requirements.lock") if os.path.isfile(os.path.join(folder, name))}
    if "Dockerfile" in has and not words.venv:
        return _with_plan(
            replace(_built(folder, words.engine), shown=folder), words.plan or ("plan.json" in has and folder) or ""
        )
    if {"plan.json", "requirements.lock"} <= has:
        lock = os.path.join(folder, "requirements.lock")
        return _with_plan(Scene("environment", folder, {}, lock=lock), folder)
    raise UsageError(
        "nothing-to-smoke",
        f"{folder} is neither a virtual environment nor a folder that `lock` or `render` wrote",
        hint="`accel-env render ASK... -o DIR`, then `accel-env build DIR` and `accel-env smoke DIR`",
    )


def _built(folder: str, engine_name: str) -> Scene:
    """The image that was built from a folder."""
    from accel_env.build.find import find_engine
    from accel_env.build.folder import read_folder, read_record

    found = read_folder(folder)
    record = read_record(found)
    engine = find_engine(engine_name)
    names = [found.tag] + ([record.config] if record is not None and record.recipe == found.recipe else [])
    for name in names:
        image = engine.inspect(name)
        if image is not None:
            return _found(engine, name, image)
    raise UsageError(
        "not-built",
        f"the image of {folder} is not there",
        hint=f"`accel-env build {folder}` first, or --venv to do without an image",
    )


def _image(name: str, engine_name: str) -> Scene:
    from accel_env.build.find import find_engine
    from accel_env.errors import BuildError

    try:
        engine = find_engine(engine_name)
        image = engine.inspect(name)
    except BuildError as problem:
        problem.context = (*problem.context, f"{name} is no folder and no cell, so it must be an image")
        raise
    if image is None:
        raise UsageError(
            "no-such-target",
            f"{name} is no folder, no cell, and no image that the engine has",
            hint=f"`docker pull {name}` first",
        )
    return _found(engine, name, image)


def _found(engine: Engine, name: str, image: ImageDetails) -> Scene:
    from accel_env.app_image import CHECKS_LABEL

    own = dict(image.labels).get(CHECKS_LABEL, "")
    return Scene("image", name, {}, engine=engine, place=name, image=image.id, checks=own)


def _with_plan(scene: Scene, path: str) -> Scene:
    """The scene with what the plan expects."""
    import hashlib

    from accel_env.smoke.expect import expected, read_plan

    if not path:
        return replace(scene, expect={})
    plan, lock = read_plan(path)
    file = os.path.join(path, "plan.json") if os.path.isdir(path) else path
    with open(file, "rb") as stream:
        digest = f"sha256:{hashlib.sha256(stream.read()).hexdigest()}"
    return replace(scene, plan=plan, plan_digest=digest, expect=expected(plan, lock))
