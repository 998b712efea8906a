"""The verb `smoke`: from what the user named to an environment, the checks in it, and what is kept of their report."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from accel_env.errors import UsageError, VerifyError

if TYPE_CHECKING:
    from accel_env.build.engine import Engine, RunRequest

Json = dict[str, Any]
_INSIDE = "/accel-env-smoke"  # where a container sees the checks
_HOURS = 2 * 3600.0


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
class _Scene:
    """Where the checks run and what they compare with. `kind`: `interpreter`, `environment`, `image`."""

    kind: str
    shown: str
    plan: Json
    plan_digest: str = ""
    expect: Json | None = None
    place: str = ""
    lock: str = ""
    engine: Engine | None = None
    image: str = ""


def smoke(words: SmokeWords, say: Callable[[str], None]) -> Json:
    """The report of the checks; the caller says by its exit status whether they passed."""
    from accel_env.smoke.report import failures, grade, junit, parse

    _check(words)
    scene = _scene(words, say)
    text, talk = _run(scene, words, say)
    report = parse(text, talk)
    answer: Json = {
        **report,
        "target": scene.shown,
        "kind": scene.kind,
        "evidence": grade(report) if scene.plan else "",
        "written": [],
    }
    if scene.image:
        answer["image"] = scene.image
    if scene.plan_digest:
        answer["plan"] = scene.plan_digest
    if words.evidence:
        answer["written"] += [_keep(scene, answer)] if not failures(report) else []
    for path, content in ((words.report, _json(answer)), (words.junit, junit(report, scene.shown))):
        if path:
            from accel_env.system.files import write_file

            write_file(path, content)
            answer["written"].append(path)
    return answer


def _check(words: SmokeWords) -> None:
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
    try:
        float(words.patience or "1")
    except ValueError:
        raise UsageError("bad-number", f"--patience {words.patience} is no number", hint="try --patience 3") from None


def _scene(words: SmokeWords, say: Callable[[str], None]) -> _Scene:
    """What the words mean; the most special reading first."""
    if words.here:
        return _with_plan(_Scene("interpreter", "this interpreter", {}, place=sys.executable), words.plan)
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
    return _with_plan(_image(words.target, words.engine), words.plan)


def _cells() -> tuple[str, ...]:
    from accel_env import app
    from accel_env.app_cells import load_book

    return tuple(load_book(app.matrix_of()).cells)


def _folder(words: SmokeWords, folder: str) -> _Scene:
    """A virtual environment, or what `lock` or `render` wrote."""
    from accel_env.smoke.local import python_of

    python = python_of(folder)
    if python:
        return _with_plan(_Scene("environment", folder, {}, place=python), words.plan)
    has = {name for name in ("Dockerfile", "plan.json", "requirements.lock") if os.path.isfile(os.path.join(folder, name))}
    if "Dockerfile" in has and not words.venv:
        return _with_plan(
            replace(_built(folder, words.engine), shown=folder), words.plan or ("plan.json" in has and folder) or ""
        )
    if {"plan.json", "requirements.lock"} <= has:
        lock = os.path.join(folder, "requirements.lock")
        return _with_plan(_Scene("environment", folder, {}, lock=lock), folder)
    raise UsageError(
        "nothing-to-smoke",
        f"{folder} is neither a virtual environment nor a folder that `lock` or `render` wrote",
        hint="`accel-env render ASK... -o DIR`, then `accel-env build DIR` and `accel-env smoke DIR`",
    )


def _built(folder: str, engine_name: str) -> _Scene:
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
            return _Scene("image", name, {}, engine=engine, place=name, image=image.id)
    raise UsageError(
        "not-built",
        f"the image of {folder} is not there",
        hint=f"`accel-env build {folder}` first, or --venv to do without an image",
    )


def _image(name: str, engine_name: str) -> _Scene:
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
    return _Scene("image", name, {}, engine=engine, place=name, image=image.id)


def _with_plan(scene: _Scene, path: str) -> _Scene:
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


def _run(scene: _Scene, words: SmokeWords, say: Callable[[str], None]) -> tuple[str, str]:
    from accel_env.smoke.local import installed, run_here
    from accel_env.smoke.report import levels_to

    line = ["--levels", ",".join(levels_to(words.level))]
    line += ["--device", words.device] if words.device else []
    line += [word for part in words.only for word in ("--only", part)]
    line += ["--patience", words.patience] if words.patience else []
    expect = scene.expect or {}
    if scene.engine is not None:
        return _run_image(scene, tuple(line), words, say)
    if scene.place:
        return run_here(scene.place, expect, tuple(line), say)
    from accel_env.lock.uv import find_uv

    with installed(scene.plan, scene.lock, find_uv(), say) as python:
        return run_here(python, expect, tuple(line), say)


def _run_image(scene: _Scene, line: tuple[str, ...], words: SmokeWords, say: Callable[[str], None]) -> tuple[str, str]:
    """The checks in a container without network; without a device also with nothing to write to but /tmp."""
    from accel_env.smoke.local import EXPECT, PROGRAM, prepared

    assert scene.engine is not None
    say(f"the checks in {scene.place}")
    with prepared(scene.expect or {}) as folder:
        command = (f"{_INSIDE}/{PROGRAM}", *line, "--expect", f"@{_INSIDE}/{EXPECT}")
        ran = scene.engine.run(_request(scene, command, folder, words))
    for text in ran.stderr.splitlines():
        say(text)
    if ran.timed_out:
        raise VerifyError("smoke-timeout", f"the checks in {scene.place} did not end within {_HOURS / 3600:g} hours")
    return ran.stdout, ran.stderr


def _request(scene: _Scene, command: tuple[str, ...], folder: str, words: SmokeWords) -> RunRequest:
    from accel_env.build.engine import RunRequest

    device = words.level == "device" and words.device != "cpu"
    args = tuple(str(word) for word in scene.plan.get("run_args", ())) if device else ()
    return RunRequest(
        scene.place,
        command,
        args,
        # the caches of compilers and hubs go where one can write
        env=(("HOME", "/tmp"),),
        mounts=((folder, _INSIDE),),
        # code compiled at run time is loaded from /tmp, which engines mount without that right where the rest is read-only
        read_only=words.level != "device",
        entrypoint="python3",
        timeout=_HOURS,
    )


def _json(answer: Json) -> str:
    import json

    return json.dumps(answer, indent=1) + "\n"


def _keep(scene: _Scene, answer: Json) -> str:
    """Writes the result as evidence into the matrix; gives the path."""
    import datetime

    from accel_env.matrix.evidence import keep
    from accel_env.matrix.store import locate

    if not scene.plan:
        raise UsageError("no-plan", f"evidence is about a plan, and {scene.shown} brings none", hint="add --plan DIR")
    devices = [check.get("facts", {}) for check in answer["checks"] if check["level"] == "device" and check["name"] == "driver"]
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    return keep(locate(), scene.plan, answer, devices[0] if answer["evidence"] == "ran" and devices else {}, today)
