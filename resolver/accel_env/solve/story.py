"""The story of a choice: what was passed over, and why something asked about is not in the answer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from accel_env.errors import UsageError
from accel_env.model import Because, Conflict, Problem, Solution
from accel_env.solve.explain import because, failure_text, need_text, stack_answer, stand_ins
from accel_env.solve.field import Field
from accel_env.solve.finish import answer
from accel_env.solve.images import INDEX
from accel_env.solve.problem import normalise, parse_ask
from accel_env.solve.prune import prune
from accel_env.solve.slot import Entry
from accel_env.solve.versions import allows, valid_specifier

if TYPE_CHECKING:
    from accel_env.matrix.load import Matrix

SHOWN = 12


def passed_over(field: Field, result: Solution) -> tuple[Because, ...]:
    """For each asked package, the better candidates that were not taken, one line per distinct reason."""
    rows: list[Because] = []
    chosen = {p.candidate.module: p.candidate for p in result.picks}
    for module in dict.fromkeys(["torch", *(m for _, m in field.asked)]):
        if module not in chosen:
            continue
        seen: set[str] = set()
        for entry in field.slots[module].entries:
            if entry.candidate == chosen[module]:
                break
            reason = _passed(field, entry, result)
            if reason is not None and reason[0] not in seen and len(seen) < SHOWN:
                seen.add(reason[0])
                rows.append(reason[1])
    return tuple(rows)


def _passed(field: Field, entry: Entry, result: Solution) -> tuple[str, Because] | None:
    """(what makes the reason distinct, the reason) for one candidate; None where another stack's build says nothing."""
    candidate = entry.candidate
    if not entry.verdict.failures:
        # one file may hold several libraries, of which the pick is another
        variant = f" ({candidate.variant})" if candidate.variant else ""
        text = f"{candidate.label}{variant} {_set_back(field, entry, result)}"
        return candidate.version, because(field.matrix, "passed over", text, candidate.fact)
    failure = entry.verdict.failures[0]
    if failure.need.subject.value == "stack" and candidate.stack.partition("-")[0] != field.ground.stack_name:
        return None
    text = failure_text(failure, candidate)
    return f"{candidate.version}{failure.met}", because(field.matrix, failure.need.subject.value, text, failure.need.fact)


def _set_back(field: Field, entry: Entry, result: Solution) -> str:
    """Why a candidate that fits the host was not taken."""
    if entry.rank:
        return "fits this host, but is second choice"
    hashed = entry.hashed >> field.pythons.index(result.python) & 1
    if result.lockable and not hashed and entry.candidate.index != "image":
        return f"fits this host, but no hash of its file for Python {result.python} is known, and lockable builds come first"
    return "fits this host, but not the other picks, or comes later in the order of preference"


def why_not(problem: Problem, matrix: Matrix, text: str) -> dict[str, Any]:
    """`accel-env/why-not/1`: every matching candidate that is out, with need, fact and source, and a summary."""
    name, spec, build = split(text)
    if name not in matrix.package_names():
        raise UsageError(
            "unknown-package",
            f"--not {text}: the matrix has no package {name!r}",
            hint="packages outside the matrix are closed by uv at lock time",
        )
    free = replace(problem, asks=tuple(a for a in problem.asks if a.name != name))
    field = prune(replace(free, asks=(*free.asks, parse_ask(name, "--not"))), matrix)
    matching = [
        e
        for s in field.slots.values()
        for e in s.entries
        if e.candidate.name == name and allows(spec, e.candidate.version) and build in ("", e.candidate.build)
    ]
    rows = [_row(field, entry) for entry in matching if entry.verdict.failures]
    own = [r for r in rows if r["need"] != "stack"] or rows
    instead = [*stand_ins(field, name), *stack_answer(field)]
    return {
        "schema": "accel-env/why-not/1",
        "package": text,
        "candidates": len(matching),
        "answer": _left_out(problem, name) or _sum_up(problem, matrix, matching, text, name, spec, build),
        "rejections": _distinct(own),
        "instead": [{"text": b.text, "source": b.source, "grade": b.grade} for b in instead],
    }


def split(text: str) -> tuple[str, str, str]:
    """`torch==2.9.1+cu128` -> (`torch`, `==2.9.1`, `cu128`); UsageError where it does not parse."""
    head, _, build = text.partition("+")
    name = head
    for sign in ("==", ">=", "<=", "~=", "!=", "<", ">"):
        name = name.split(sign, 1)[0]
    spec = head[len(name) :].strip()
    if not name.strip() or not valid_specifier(spec):
        raise UsageError("bad-package", f"--not {text!r} is no package", hint="write PKG, PKG==VERSION or PKG==VERSION+BUILD")
    return normalise(name.strip()), spec, build


def _row(field: Field, entry: Entry) -> dict[str, str]:
    failure = entry.verdict.failures[0]
    fact = because(field.matrix, failure.need.subject.value, need_text(failure.need, entry.candidate), failure.need.fact)
    return {
        "candidate": entry.candidate.label,
        "need": fact.need,
        "text": fact.text,
        "met": failure.met,
        "fact": fact.fact,
        "source": fact.source,
        "grade": fact.grade,
    }


def _distinct(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """One row per (need, what was met, fact), the newest candidate first."""
    seen: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rows:
        seen.setdefault((row["need"], row["met"], row["fact"]), row)
    return list(seen.values())


def _left_out(problem: Problem, name: str) -> str:
    """That a bundle goes without the package, and why; empty where none does."""
    row = next((row for row in problem.left_out if row.name == name), None)
    return f"{name} is left out of @{row.bundle}: {row.why}" if row else ""


def _sum_up(problem: Problem, matrix: Matrix, matching: list[Entry], text: str, name: str, spec: str, build: str) -> str:
    if not matching:
        return f"the matrix knows no {text} for {problem.host.platform}"
    live = [e for e in matching if not e.verdict.failures]
    if not live:
        return f"every build of {text} is ruled out here" + _by_image(problem, matrix, name, spec, build)
    pinned = f"{name}{spec}" + (f"+{build}" if build and spec.startswith("==") else "")
    asks = (*(a for a in problem.asks if a.name != name), parse_ask(pinned, "--not"))
    result = answer(prune(replace(problem, asks=asks), matrix))
    if isinstance(result, Conflict):
        core = " and ".join(c.text for c in result.core)
        return f"{live[0].candidate.label} fits this host, but not together: {core}"
    now = answer(prune(problem, matrix))
    taken = (
        next((p.candidate.label for p in now.picks if p.candidate.name == name), "nothing of it")
        if isinstance(now, Solution)
        else "nothing"
    )
    if any(e.candidate.label == taken for e in live):
        return f"nothing rules it out: {taken} is the answer"
    why = _why_later(live[0], result)
    return f"nothing rules out {live[0].candidate.label}; {taken} comes first by the order of preference{why}"


def _by_image(problem: Problem, matrix: Matrix, name: str, spec: str, build: str) -> str:
    """That a vendor's image brings the package where no index does; empty where none does."""
    asks = problem.asks if any(a.name == name for a in problem.asks) else (*problem.asks, parse_ask(name, "--not"))
    result = answer(prune(replace(problem, asks=asks), matrix))
    picked = [p.candidate for p in result.picks if p.candidate.name == name] if isinstance(result, Solution) else []
    if isinstance(result, Solution) and result.image and picked and picked[0].index == INDEX:
        one = picked[0]
        named = allows(spec, one.version) and build in ("", one.build)
        return f", but for {one.label} in the image {result.image.ref}, which is the answer" if named else ""
    return ""


def _why_later(entry: Entry, result: Solution) -> str:
    if entry.rank:
        return "; it is a second choice (a third party's build, a fallback, or one with a known flaw here)"
    if not result.lockable and any(p.candidate == entry.candidate and p.tag not in p.candidate.hashed for p in result.picks):
        return "; its hash is not known, and lockable builds are preferred"
    return ""
