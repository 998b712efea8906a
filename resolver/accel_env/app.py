"""One function per verb: the only place where the stages are chained.

Every function takes plain words and gives a plain mapping; what is printed, and how, is the business of `cli`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accel_env.app_close import answer_of, close_problem, plan_bytes, shown_plan
from accel_env.model import Host, Lock, Policy, Problem, Solution

if TYPE_CHECKING:
    from accel_env.app_image import ImageWords
    from accel_env.app_judge import Sources
    from accel_env.matrix.load import Matrix

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """The common options, as typed; empty means not given."""

    asks: tuple[str, ...] = ()
    requirement_files: tuple[str, ...] = ()
    host: str = ""
    devices: tuple[str, ...] = ()
    driver: str = ""
    stack: str = ""
    python: str = ""
    glibc: str = ""
    arch: str = ""
    target: str = ""
    prefer: str = ""
    offline: bool = False
    overlays: tuple[str, ...] = ()
    source_builds: bool = False
    base: str = ""
    own_base: bool = False


def matrix_of(overlays: tuple[str, ...] = ()) -> Matrix:
    """The matrix with a site's overlays: those of ACCEL_ENV_OVERLAY (paths, as PATH joins them) below those of the words."""
    from accel_env.matrix.load import open_matrix
    from accel_env.system.files import check_file

    always = tuple(name for name in os.environ.get("ACCEL_ENV_OVERLAY", "").split(os.pathsep) if name.strip())
    names = tuple(dict.fromkeys((*always, *overlays)))
    for name in names:
        check_file(name)
    return open_matrix(None, tuple(Path(name) for name in names))


def host_of(request: Request, matrix: Matrix, described: Host | None = None) -> Host:
    """The machine: the one described, a host file or profile, else this one; then what the options say instead."""
    from accel_env.hostfile import read
    from accel_env.probe import override, probe
    from accel_env.system.real import RealSystem

    elsewhere = bool(request.devices) and not request.host and described is None
    host = described or (
        read(request.host, matrix) if request.host else probe(RealSystem(), matrix, full=False, accelerators=not elsewhere)
    )
    if elsewhere and request.target != "venv":
        # what runs on the described machine must not depend on this one, or two people get two plans
        host = Host(os=host.os, arch=host.arch)
    changed = override(
        host,
        devices=request.devices,
        driver=request.driver,
        python=request.python,
        glibc=request.glibc,
        arch=request.arch,
        matrix=matrix,
    )
    if elsewhere and not request.arch:
        rows = [matrix.devices().by_name(device.vendor, device.name) for device in changed.devices]
        only = {row.cpu if row else "" for row in rows}
        if len(only) == 1 and "" not in only:
            return replace(changed, arch=only.pop())
    return changed


def problem_of(request: Request, matrix: Matrix) -> tuple[Problem, tuple[str, ...]]:
    """The problem behind a request, and notes about requirement lines that were left out."""
    from accel_env.app_image import check_base, vendor_base
    from accel_env.asks import read_asks
    from accel_env.solve.problem import inside_container, state
    from accel_env.system.real import RealSystem

    asks, notes = read_asks(request.asks, request.requirement_files, RealSystem())
    host = host_of(request, matrix)
    base = vendor_base(request.base, matrix, request.own_base) if request.base else ""
    policy = Policy(
        prefer=request.prefer or "default",
        # containers run Linux: elsewhere the plan is for the machine itself unless a container is asked for
        target=request.target or ("container" if host.os == "linux" else "venv"),
        stack=request.stack,
        python=request.python,
        source_builds=request.source_builds,
        base=base, base_digest=request.base.partition("@")[2] if base else "",
    )
    host = inside_container(host) if policy.target == "container" else host
    check_base(policy, host, matrix)
    if not any(ask.name.startswith("@") for ask in asks):
        return state(host, asks, policy, matrix), notes
    from accel_env.solve.bundles import settled

    return settled(host, asks, policy, matrix), notes


def detect(record: str = "", output: str = "", overlays: tuple[str, ...] = ()) -> Json:
    """What this machine has; `record` keeps the raw probes as a fixture, `output` writes a host file."""
    from accel_env.hostfile import to_mapping, write
    from accel_env.probe import probe
    from accel_env.system.real import RealSystem
    from accel_env.system.record import RecordingSystem

    matrix = matrix_of(overlays)
    recording = RecordingSystem(RealSystem(), record) if record else None
    host = probe(recording or RealSystem(), matrix)
    if recording:
        recording.save()
    if output:
        write(host, output)
    written = [name for name in (record, output) if name]
    return {**to_mapping(host), "notes": list(host.notes), "written": written}


def resolve(request: Request) -> Json:
    """The plan, or the conflict, of interface.md."""
    matrix = matrix_of(request.overlays)
    problem, notes = problem_of(request, matrix)
    return shown_plan(answer_of(problem, matrix), matrix, notes)


def explain(request: Request) -> Json:
    """The plan with, per asked package, what was passed over on the way to it and why."""
    from accel_env.solve.finish import answer
    from accel_env.solve.prune import prune
    from accel_env.solve.story import passed_over

    matrix = matrix_of(request.overlays)
    problem, notes = problem_of(request, matrix)
    field = prune(problem, matrix)
    result = answer(field)
    told = [_reason(b) for b in passed_over(field, result)] if isinstance(result, Solution) else []
    return {**shown_plan(result, matrix, notes), "explanation": told}


def explain_not(request: Request, text: str) -> Json:
    """Why a package, release or build is not in the answer: the ledger's words, with sources."""
    from accel_env.solve.story import why_not

    matrix = matrix_of(request.overlays)
    name = text.partition("=")[0].partition("+")[0]
    asked = request if request.asks or request.requirement_files else replace(request, asks=(name,))
    problem, _ = problem_of(asked, matrix)
    return why_not(problem, matrix, text)


def lock(request: Request, output: str, progress: Callable[[str], None] | None = None) -> Json:
    """Resolve, close over every dependency, write `pylock.toml`, `requirements.lock` and `plan.json` into `output`."""
    from accel_env.lock.write import lock_files, refuse_foreign
    from accel_env.system.files import check_folder

    check_folder(output)
    refuse_foreign(Path(output))
    matrix = matrix_of(request.overlays)
    lock, plan, told = closed(request, matrix, progress or _silent)
    files = {**lock_files(lock), "plan.json": plan_bytes(plan)}
    return _put(plan, lock, output, files, told, matrix)


def render(
    request: Request, output: str, image: ImageWords | None = None, progress: Callable[[str], None] | None = None
) -> Json:
    """Lock, then write the Dockerfile and what goes with it into `output`."""
    from accel_env.app_image import ImageWords, check_image, image_options, met
    from accel_env.lock.write import lock_files, refuse_foreign
    from accel_env.render import render as render_files
    from accel_env.system.files import check_folder

    check_folder(output)
    refuse_foreign(Path(output))
    matrix = matrix_of(request.overlays)
    problem, notes = problem_of(request, matrix)
    words, first = image or ImageWords(), answer_of(problem, matrix)
    if isinstance(first, Solution):
        check_image(words, first, matrix)
    lock, plan, told = close_problem(problem, notes, matrix, progress or _silent, offline=request.offline)
    options = image_options(words, lock.solution, matrix, lock)
    files = render_files(lock.solution, lock, lock_files(lock), plan_bytes(plan), options)
    return _put(met(plan, words, matrix), lock, output, files, told, matrix)


def doctor(request: Request, sources: Sources) -> Json:
    """The diagnosis of an environment: this one, or what the sources describe."""
    from accel_env import app_judge

    matrix = matrix_of(request.overlays)
    return app_judge.doctor(sources, matrix, lambda host: host_of(request, matrix, host))


def matrix_show(spec: str, overlays: tuple[str, ...] = ()) -> Json:
    """What is known about a package or one release."""
    from accel_env.matrix.show import show

    return dict(show(matrix_of(overlays), spec))


def matrix_lint(overlays: tuple[str, ...] = ()) -> Json:
    """Every broken rule of the matrix; an unreadable file raises InputError with all faults."""
    from accel_env.matrix.lint import lint

    matrix = matrix_of(overlays)
    problems = lint(matrix)
    rows = [{"rule": p.rule, "severity": p.severity, "where": p.where, "message": p.message} for p in problems]
    return {
        "schema": "accel-env/lint/1",
        "problems": [r for r in rows if r["severity"] == "error"],
        "notes": [r for r in rows if r["severity"] != "error"],
    }


def matrix_stats(overlays: tuple[str, ...] = ()) -> Json:
    """How much is known, and where it comes from."""
    from accel_env.matrix.installed import origin
    from accel_env.matrix.stats import stats

    matrix = matrix_of(overlays)
    counts = dict(stats(matrix))
    head = {key: counts.pop(key) for key in ("schema", "version", "digest")}
    return {**head, "from": f"{origin(matrix.root)} ({matrix.root})", **counts}


def closed(
    request: Request, matrix: Matrix, progress: Callable[[str], None], *, hashed_only: bool = False
) -> tuple[Lock, Json, tuple[str, ...]]:
    """The lock of a request, its plan, and what the closure refused on the way; see `app_close.close_problem`."""
    problem, notes = problem_of(request, matrix)
    return close_problem(problem, notes, matrix, progress, offline=request.offline, hashed_only=hashed_only)


def _reason(because: Any) -> Json:
    return {"need": because.need, "text": because.text, "fact": because.fact, "source": because.source, "grade": because.grade}


def _silent(_: str) -> None:
    return None


def _put(plan: Json, closed: Lock, output: str, files: Any, told: tuple[str, ...], matrix: Matrix) -> Json:
    """Write the files, remove what an earlier plan left, and say so. The age of the matrix is said here and is in no file."""
    from accel_env.lock.chosen import with_chosen
    from accel_env.lock.notes import missing
    from accel_env.lock.rules import load_rules
    from accel_env.lock.write import drop_stale, write_files
    from accel_env.matrix.age import warning
    from accel_env.matrix.evidence import lift

    write_files(Path(output), files)
    lacks = list(missing(closed.solution, load_rules(matrix)))
    gone = (f"removed {name}, which belonged to an earlier plan" for name in drop_stale(Path(output), files))
    return {
        "schema": "accel-env/written/1",
        "plan": lift(with_chosen(plan, closed), matrix),  # as `resolve` shows it; the file is without, see `app_close.shown_plan`
        "locked": len(closed.files),
        "warnings": lacks,
        "notes": [*(note for note in closed.notes if note not in lacks), *told, *filter(None, (warning(matrix),)), *gone],
        "written": [str(Path(output) / name) for name in sorted(files)],
    }


def check(request: Request, files: tuple[str, ...]) -> Json:
    """The diagnosis of files on the named host, on every host of a folder, or on this machine where it has an accelerator."""
    from accel_env import app_judge

    matrix = matrix_of(request.overlays)
    names = app_judge.fleet(request.host)
    if names:
        hosts = [(name, host_of(replace(request, host=name), matrix)) for name in names]
        return app_judge.check(files, matrix, hosts, named=True)
    host = host_of(request, matrix)
    named = bool(request.host or host.devices)
    return app_judge.check(files, matrix, [(request.host or (_described(request, host) if named else ""), host)], named=named)


def _described(request: Request, host: Host) -> str:
    """The machine that options describe, in words; `this machine` where none does."""
    if not request.devices and not request.arch:
        return "this machine"
    names = list(dict.fromkeys(device.name or device.arch for device in host.devices))
    drivers = list(dict.fromkeys(device.driver for device in host.devices if device.driver))
    return f"a machine with {' and '.join(names) or 'no accelerator'}" + (f" (driver {drivers[0]})" if drivers else "")
