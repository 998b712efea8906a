"""The verb `smoke`: from what the user named to an environment, the checks in it, and what is kept of their report."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from accel_env.app_scene import Scene, SmokeWords, check_words, scene_of
from accel_env.errors import UsageError, VerifyError

if TYPE_CHECKING:
    from accel_env.build.engine import RunRequest

Json = dict[str, Any]
_INSIDE = "/accel-env-smoke"  # where a container sees the checks
_HOURS = 2 * 3600.0
_ARGUMENT = 100_000  # bytes: Linux takes no single word of a command that is longer than 128 KiB


def smoke(words: SmokeWords, say: Callable[[str], None]) -> Json:
    """The report of the checks; the caller says by its exit status whether they passed."""
    from accel_env.smoke.report import failures, grade, junit, parse

    check_words(words)
    scene = scene_of(words)
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


def _run(scene: Scene, words: SmokeWords, say: Callable[[str], None]) -> tuple[str, str]:
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


def _run_image(scene: Scene, line: tuple[str, ...], words: SmokeWords, say: Callable[[str], None]) -> tuple[str, str]:
    """The image's own checks, else this project's, in a container without network."""
    import json

    from accel_env.smoke.local import EXPECT, PROGRAM, prepared

    assert scene.engine is not None
    say(f"the checks in {scene.place}" + ("" if scene.checks else ", which holds none of its own: they are brought along"))
    expect = json.dumps(scene.expect or {}, separators=(",", ":"))
    if scene.checks and len(expect) < _ARGUMENT:
        ran = scene.engine.run(_request(scene, (scene.checks, *line, "--expect", expect), (), words))
    else:
        with prepared(scene.expect or {}) as folder:
            program = scene.checks or f"{_INSIDE}/{PROGRAM}"
            ran = scene.engine.run(
                _request(scene, (program, *line, "--expect", f"@{_INSIDE}/{EXPECT}"), ((folder, _INSIDE),), words)
            )
    for text in ran.stderr.splitlines():
        say(text)
    if ran.timed_out:
        raise VerifyError("smoke-timeout", f"the checks in {scene.place} did not end within {_HOURS / 3600:g} hours")
    return ran.stdout, ran.stderr


def _request(
    scene: Scene, command: tuple[str, ...], mounts: tuple[tuple[str, str], ...], words: SmokeWords
) -> RunRequest:
    """Without a device there is nothing to write to but /tmp."""
    from accel_env.build.engine import RunRequest

    device = words.level == "device" and words.device != "cpu"
    args = tuple(str(word) for word in scene.plan.get("run_args", ())) if device else ()
    return RunRequest(
        scene.place,
        command,
        args,
        # the caches of compilers and hubs go where one can write
        env=(("HOME", "/tmp"),),
        mounts=mounts,
        # what compilers make on a device is more than /tmp should hold in memory
        read_only=words.level != "device",
        entrypoint="python3",
        timeout=_HOURS,
    )


def _json(answer: Json) -> str:
    import json

    return json.dumps(answer, indent=1) + "\n"


def _keep(scene: Scene, answer: Json) -> str:
    """Writes the result as evidence into the matrix; gives the path."""
    import datetime

    from accel_env.matrix.evidence import keep
    from accel_env.matrix.store import locate

    if not scene.plan:
        raise UsageError("no-plan", f"evidence is about a plan, and {scene.shown} brings none", hint="add --plan DIR")
    devices = [check.get("facts", {}) for check in answer["checks"] if check["level"] == "device" and check["name"] == "driver"]
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    return keep(locate(), scene.plan, answer, devices[0] if answer["evidence"] == "ran" and devices else {}, today)
