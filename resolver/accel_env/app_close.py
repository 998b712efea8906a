"""Solving and closing in turn: what every verb that locks does, below the verbs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from accel_env.errors import ClosureError, NoSolution
from accel_env.model import Ask, Conflict, Lock, Nogood, Problem, Solution

if TYPE_CHECKING:
    from accel_env.matrix.load import Matrix

Json = dict[str, Any]
ATTEMPTS = 5


def answer_of(problem: Problem, matrix: Matrix) -> Solution | Conflict:
    """The best working combination, or why there is none."""
    from accel_env.solve.finish import answer
    from accel_env.solve.prune import prune

    return answer(prune(problem, matrix))


def plan_of(result: Solution | Conflict, matrix: Matrix, notes: tuple[str, ...] = ()) -> Json:
    """The plan, or the refusal, of interface.md. `notes` are about requirement lines that were left out."""
    from accel_env.matrix.evidence import lift
    from accel_env.solve.plan import plan

    row = lift(plan(result, matrix), matrix.root)
    row["warnings"] = [*row["warnings"], *({"rule": "requirement-line", "message": note, "source": ""} for note in notes)]
    return row


def plan_bytes(plan: Json) -> bytes:
    """The content of plan.json."""
    import json

    return (json.dumps(plan, indent=1, ensure_ascii=False) + "\n").encode()


def close_problem(
    problem: Problem,
    notes: tuple[str, ...],
    matrix: Matrix,
    progress: Callable[[str], None],
    *,
    offline: bool = False,
    hashed_only: bool = False,
) -> tuple[Lock, Json, tuple[str, ...]]:
    """Solve and close in turn: a refusal of the closure becomes a nogood, a package it needs becomes an ask; at most ATTEMPTS.

    Gives the lock, the plan, and what the closure refused. `hashed_only`: a file of unknown hash is an error and no download.
    """
    from accel_env.lock.close import LockOptions, close, cutoff
    from accel_env.lock.closer import Refusal
    from accel_env.lock.rules import load_rules
    from accel_env.lock.uv import UvCloser

    rules = load_rules(matrix)
    closer = UvCloser(progress=progress)
    options = LockOptions(cutoff(matrix.version), offline, progress=progress)
    told: list[str] = []
    for _ in range(ATTEMPTS):
        result = answer_of(problem, matrix)
        if isinstance(result, Conflict):
            raise _no_solution(plan_of(result, matrix, notes), told)
        labels = ", ".join(p.candidate.label for p in result.picks)
        _refuse_source(result)
        last = result
        if hashed_only and not result.lockable:
            raise ClosureError("artifact-unhashed", f"not every file of {labels} has a known hash")
        progress(f"closing over {labels}")
        closed = close(result, matrix, rules, closer, options)
        if not isinstance(closed, Refusal):
            return closed, plan_of(result, matrix, notes), tuple(told)
        if closed.reason in told or not (result.picks or closed.also):
            raise _refused(closed.reason, result, matrix)
        told.append(closed.reason)
        problem = _learn(problem, closed)
    raise _refused(told[-1], last, matrix)


def _learn(problem: Problem, refusal: Any) -> Problem:
    if refusal.also:
        asks = tuple(Ask(name, "", text=name, origin="needed by the closure") for name in refusal.also)
        return replace(problem, asks=problem.asks + asks)
    return replace(problem, nogoods=(*problem.nogoods, Nogood(refusal.picks, refusal.reason)))


def _refuse_source(solution: Solution) -> None:
    """A source build has no file to lock: say so before the closure does in its own words."""
    from accel_env.solve.verdict import SOURCE_RANK

    built = [p.candidate.label for p in solution.picks if p.candidate.rank >= SOURCE_RANK]
    if built:
        raise ClosureError(
            "source-build",
            f"{', '.join(built)} must be compiled: there is no file whose hash could be locked",
            hint="leave it out, or lock the rest without --source-builds and compile it in the image",
        )


def _refused(words: str, solution: Solution, matrix: Matrix) -> ClosureError:
    """The closure's refusal; where packages outside the matrix were asked for, they are the first to look at."""
    import difflib

    hint = "loosen one of the asks, or name an older torch"
    if solution.outside:
        names = [ask.name for ask in solution.outside]
        near = [n for name in names for n in difflib.get_close_matches(name, sorted(matrix.package_names()), 1, 0.6)]
        hint = f"look at {', '.join(names)} first, which the matrix does not know" + (
            f"; did you mean {near[0]}?" if near else ""
        )
    return ClosureError(
        "closure-refused", "the closure refused the picks in the words below", context=tuple(words.splitlines()), hint=hint
    )


def _no_solution(plan: Json, told: list[str]) -> NoSolution:
    conflict = plan["conflict"]
    core = " and ".join(item["text"] for item in conflict["core"]) or "what was asked"
    lines = tuple(f"because: {b['text']}" for b in conflict["because"])
    if told:
        lines += ("after the closure had refused:", *told[-1].splitlines())
    return NoSolution(
        "no-combination",
        f"nothing works for {core}",
        context=lines,
        hint="`accel-env resolve` with the same words shows the ways out",
    )
