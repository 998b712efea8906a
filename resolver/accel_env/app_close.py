"""Solving and closing in turn: what every verb that locks does, below the verbs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from accel_env.errors import ClosureError, NoSolution
from accel_env.model import Ask, Conflict, Lock, Nogood, Pick, Problem, Solution

if TYPE_CHECKING:
    from accel_env.lock.closer import Refusal
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
    from accel_env.solve.plan import plan

    row = plan(result, matrix)
    if matrix.overlays:
        from accel_env.matrix.laid import laid

        row["overlays"] = laid(row, matrix)
    row["warnings"] = [*row["warnings"], *({"rule": "requirement-line", "message": note, "source": ""} for note in notes)]
    return row


def shown_plan(result: Solution | Conflict, matrix: Matrix, notes: tuple[str, ...] = ()) -> Json:
    """The plan as it is shown, with the best evidence of each pick. The one that is kept in a file is without: evidence that
    arrives later must not make another image of it. So is the age of the matrix, which depends on the day."""
    from accel_env.matrix.age import RULE, warning
    from accel_env.matrix.evidence import lift

    row = lift(plan_of(result, matrix, notes), matrix)
    old = warning(matrix)
    more = [{"rule": RULE, "message": old, "source": ""}] if old else []
    return {**row, "warnings": [*_foreseen(result, matrix), *row["warnings"], *more]}


def _foreseen(result: Solution | Conflict, matrix: Matrix) -> list[Json]:
    """A warning where a lock of the answer is known to be refused, with what can be done instead: as shown, never as kept."""
    if isinstance(result, Conflict):
        return []
    built = _source_builds(result)
    # `resolve` is quick: the rules of a closure are read where one of them may speak
    if not built and not _may_lack_wheels(result, matrix):
        return []
    from accel_env.lock.foreseen import RULE, foreseen
    from accel_env.lock.rules import load_rules

    told = foreseen(result, built, load_rules(matrix))
    if told is None:
        return []
    source = matrix.fact(told.fact).source if told.fact else ""
    return [{"rule": RULE, "message": f"`lock` refuses this: {told.why}", "source": source, "instead": told.instead}]


def _may_lack_wheels(solution: Solution, matrix: Matrix) -> bool:
    """Whether a requirement of a pick begins like a package without wheels."""
    rows = matrix.document("closure").get("source_only") or ()
    names = tuple(str(name) for row in rows if isinstance(row, dict) for name in row.get("names") or ())
    return any(line.startswith(names) for pick in solution.picks for line in pick.candidate.requires)


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
    """Solve and close in turn: a refusal of the closure becomes a nogood (at most ATTEMPTS), a package it needs becomes an ask.

    Gives the lock, the plan, and what the closure refused. `hashed_only`: a file of unknown hash is an error and no download.
    An optional member of a bundle that a refusal names is left out.
    """
    from accel_env.lock.question import refuse_free_threaded

    refuse_free_threaded(problem.policy.python)
    attempt = _attempts(matrix, progress, offline, hashed_only)
    while True:
        try:
            return _closed(problem, notes, matrix, progress, attempt)
        except (ClosureError, NoSolution) as refusal:
            smaller = _smaller(problem, refusal)
            if smaller is None:
                raise
            problem = smaller
            progress(f"leaving out {problem.left_out[-1].name}: {problem.left_out[-1].why}")


def _smaller(problem: Problem, refusal: ClosureError | NoSolution) -> Problem | None:
    """The problem without the last optional member that a refusal names; None where it names none."""
    import re

    from accel_env.solve.bundles import without

    # the message of a refused closure lists every pick: what it rests on is in the closure's own words
    lines = (*refusal.context, *([refusal.message] if isinstance(refusal, NoSolution) else []))
    words = set(re.findall(r"[a-z0-9]+(?:[-_.]+[a-z0-9]+)*", " ".join(lines).lower()))
    named = [name for name in problem.optional if name in {re.sub(r"[-_.]+", "-", word) for word in words}]
    if refusal.reference not in ("closure-refused", "no-combination") or not named:
        return None
    told = next((line for line in refusal.context if named[-1] in line), refusal.message)
    return without(problem, named[-1], f"the closure over it was refused: {told.strip()}")


def _closed(
    problem: Problem,
    notes: tuple[str, ...],
    matrix: Matrix,
    progress: Callable[[str], None],
    attempt: Callable[[Solution, bool], Lock | Refusal],
) -> tuple[Lock, Json, tuple[str, ...]]:
    from accel_env.lock.answer import without_wheel
    from accel_env.lock.chosen import instead
    from accel_env.lock.foreseen import hopeless, staying
    from accel_env.lock.rules import load_rules
    from accel_env.lock.stop import terminable

    rules = load_rules(matrix)
    refused: list[tuple[Refusal, Solution]] = []
    added: list[str] = []
    with terminable():
        while len(refused) < ATTEMPTS:
            result = _solve(problem, refused, matrix)
            if isinstance(result, Conflict):
                raise _refused(refused, matrix) if refused else _no_solution(plan_of(result, matrix, notes), added)
            own = {name for name, _ in staying(result, rules)} - set(problem.left)
            if own & {pick.candidate.name for pick in result.picks}:
                problem = replace(problem, left=(*problem.left, *sorted(own)))
                continue
            closed = attempt(result, not refused)
            if isinstance(closed, Lock):
                told = (instead(refusal, closed) or f"{_labels(s)} was refused: {refusal.reason}" for refusal, s in refused)
                return closed, plan_of(result, matrix, notes), tuple(told)
            if closed.also and not set(closed.also) & set(added):
                added += closed.also
                progress(closed.reason)
            elif closed.picks and not closed.also and not hopeless(without_wheel(closed.reason), result, rules, matrix):
                refused.append((closed, result))
            else:
                raise _refused([*refused, (closed, result)], matrix)
            problem = _learn(problem, closed, result, matrix)
    raise _refused(refused, matrix)


def _attempts(
    matrix: Matrix, progress: Callable[[str], None], offline: bool, hashed_only: bool
) -> Callable[[Solution, bool], Lock | Refusal]:
    """What closes over a solution; of the first refusal it wants to know what is behind it."""
    from accel_env.lock.close import LockOptions, close, cutoff, look_into
    from accel_env.lock.rules import load_rules
    from accel_env.lock.uv import UvCloser

    rules, closer = load_rules(matrix), UvCloser(progress=progress)
    options = LockOptions(cutoff(matrix.version), offline, progress=progress)

    def attempt(solution: Solution, first: bool) -> Lock | Refusal:
        _refuse_unlockable(solution, hashed_only)
        progress(f"closing over {_labels(solution)}")
        closed = close(solution, matrix, rules, closer, options)
        if isinstance(closed, Lock) or closed.also or not first:
            return closed
        return look_into(closed, solution, matrix, rules, closer, options)

    return attempt


def _solve(problem: Problem, refused: list[tuple[Refusal, Solution]], matrix: Matrix) -> Solution | Conflict:
    """The answer with a torch that the closure said it would take; where there is none, any that it has not refused yet."""
    from accel_env.lock.words import TAKEN

    torch = refused[0][0].torch if refused else ""
    if torch:
        ask = Ask("torch", f"<={torch}", text=f"torch<={torch}", origin=TAKEN)
        result = answer_of(replace(problem, asks=(*problem.asks, ask)), matrix)
        if isinstance(result, Solution):
            return result
    return answer_of(problem, matrix)


def _learn(problem: Problem, refusal: Refusal, solution: Solution, matrix: Matrix) -> Problem:
    """The problem with what a refusal taught. Of packages that no machine decides about the closer then has the choice, since
    walking down their releases one by one finds the right one late or never."""
    from accel_env.lock.words import NEEDED
    from accel_env.solve.free import is_free

    if refusal.also:
        asks = tuple(Ask(name, "", text=name, origin=NEEDED) for name in refusal.also)
        return replace(problem, asks=problem.asks + asks)
    named = {name for name, _, _ in refusal.picks} - set(problem.left)
    platform, stack = problem.host.platform, solution.stack.partition("-")[0]
    free = sorted(name for name in named if is_free(matrix, name, platform, stack))
    asked = {ask.name for ask in problem.asks}
    if free := [name for name in free if name not in asked] or free:
        return replace(problem, left=(*problem.left, *free))
    return replace(problem, nogoods=(*problem.nogoods, Nogood(refusal.picks, refusal.reason)))


def _labels(solution: Solution) -> str:
    return ", ".join(pick.candidate.label for pick in solution.picks) or ", ".join(ask.name for ask in solution.outside)


def _source_builds(solution: Solution) -> tuple[Pick, ...]:
    """The picks that have no file: they are compiled where they are installed."""
    from accel_env.solve.verdict import SOURCE_RANK

    return tuple(pick for pick in solution.picks if pick.candidate.rank >= SOURCE_RANK)


def _refuse_unlockable(solution: Solution, hashed_only: bool) -> None:
    """A source build has no file to lock: say so before the closure does in its own words."""
    from accel_env.lock.foreseen import foreseen
    from accel_env.lock.rules import Rules

    if told := foreseen(solution, _source_builds(solution), Rules()):
        raise ClosureError("source-build", told.why, hint=told.instead)
    if hashed_only and not solution.lockable:
        raise ClosureError("artifact-unhashed", f"not every file of {_labels(solution)} has a known hash")


def _refused(refused: list[tuple[Refusal, Solution]], matrix: Matrix) -> ClosureError:
    """The closure's first refusal, which is that of the best picks, in its own words, and where to look first."""
    from accel_env.lock.answer import without_wheel

    refusal, solution = refused[0]
    missing = without_wheel(refusal.reason)
    message = f"the closure over {_labels(solution)} was refused"
    if missing:
        message += f": {', '.join(missing)} {'have' if len(missing) > 1 else 'has'} no wheel that can be used here"
    context = refusal.reason.splitlines()
    if others := len(refused) - 1:
        context.append(f"{others} other {'choice was' if others == 1 else 'choices were'} refused as well")
    if refusal.torch:
        context.append(f"torch {refusal.torch} would do for it, and does not do for the rest")
    return ClosureError(
        "closure-refused", f"{message}; in its words:", context=tuple(context), hint=_way_out(refusal, solution, missing, matrix)
    )


def _way_out(refusal: Refusal, solution: Solution, missing: tuple[str, ...], matrix: Matrix) -> str:
    """What to try after a refusal; packages outside the matrix that were asked for are the first to look at."""
    import difflib

    asked = [ask.name for ask in solution.outside]
    if not asked and missing:
        from accel_env.lock.foreseen import by_hand

        return by_hand(missing)
    if not asked:
        return "loosen one of the asks, or name an older torch" if refusal.picks else "no other torch would help: loosen the asks"
    suspects = [name for name in asked if name in missing] or asked
    hint = f"look at {', '.join(suspects)} first, which the matrix does not know"
    if not refusal.picks:
        hint += "; no other torch would help"
    near = [n for name in suspects for n in difflib.get_close_matches(name, sorted(matrix.package_names()), 1, 0.6)]
    return f"{hint}; did you mean {near[0]}?" if near and "not found" in refusal.reason else hint


def _no_solution(plan: Json, added: list[str]) -> NoSolution:
    conflict = plan["conflict"]
    core = " and ".join(item["text"] for item in conflict["core"]) or "what was asked"
    lines = [f"because: {b['text']}" for b in conflict["because"]]
    if added:
        lines.append(f"something asks for {', '.join(added)}, whose build must fit torch and the device")
    words = f"the same words and {' '.join(added)}" if added else "the same words"
    return NoSolution(
        "no-combination",
        f"nothing works for {core}",
        context=tuple(lines),
        hint=f"`accel-env resolve` with {words} shows the ways out",
    )
