"""A refusal that teaches: the minimal core, the facts behind it, what stands in, and the ways out."""

from __future__ import annotations

from collections.abc import Iterator

from accel_env.model import Ask, Because, Candidate, Conflict, CoreItem, Need
from accel_env.solve.core import minimal_core
from accel_env.solve.explain import because, failure_text, forward_compat, need_text, stack_answer, stand_ins
from accel_env.solve.field import Entry, Field, Link
from accel_env.solve.prune import ask_fits
from accel_env.solve.relax import COST, relaxations
from accel_env.solve.verdict import SOURCE_RANK, Failure, Item
from accel_env.solve.versions import allows, parse, split_stack

REASONS = 8
RELAXATIONS = 6


def conflict(field: Field) -> Conflict:
    """The conflict of a field without a solution."""
    core = minimal_core(field)
    asks = [field.problem.asks[i.index] for i in core if i.kind == "ask"]
    reasons = list(stack_answer(field))
    reasons += [reason for ask in asks for reason in _elsewhere(field, ask)]
    reasons = reasons or list(_reasons(field, core))
    if any(item.key == "driver" for item in core):
        reasons += forward_compat(field)
    for ask in asks:
        reasons += stand_ins(field, ask.name)
    ways = sorted(relaxations(field, core), key=lambda r: sum(COST.get(c.kind, 9) for c in r.change))
    return Conflict(
        field.problem,
        tuple(CoreItem(i.kind, i.text) for i in core),
        tuple(dict.fromkeys(reasons)),
        tuple(ways[:RELAXATIONS]),
    )


def _elsewhere(field: Field, ask: Ask) -> Iterator[Because]:
    """Where the asked releases are published, when it is not this platform."""
    matrix, here = field.matrix, field.problem.host.platform
    if ask.name not in matrix.package_names():
        return
    known = list(dict.fromkeys(c.version for c in matrix.candidates(ask.name, here)))
    if ask.specifier and known and not any(allows(ask.specifier, version) for version in known):
        newest = max(known, key=parse)
        text = f"the matrix of {matrix.version} knows no {ask.name} {ask.specifier} for {here}; the newest is {newest}"
        yield because(matrix, "package", text, matrix.candidates(ask.name, here)[0].fact)
    found_on: dict[str, list[Candidate]] = {}
    for platform in matrix.platforms(ask.name):
        fitting = [c for c in matrix.candidates(ask.name, platform) if ask_fits(ask, c, matrix)]
        found_on[platform] = [c for c in fitting if split_stack(c.stack)[0] in ("", field.ground.stack_name)]
    if found_on.get(here):
        return
    there = {platform: rows[0] for platform, rows in found_on.items() if rows}
    for found in list(there.values())[:1]:
        text = f"{found.label} is published for {', '.join(sorted(there))}; this host is {here}"
        same_os = any(platform.startswith(f"{field.problem.host.os}_") for platform in there)
        yield because(matrix, "cpu" if same_os else "os", text, found.fact)


def _reasons(field: Field, core: tuple[Item, ...]) -> Iterator[Because]:
    """The facts that make the core: what the asked packages' candidates need and what they met, newest candidates first."""
    active = field.base
    for item in core:
        active |= item.bit
    asked = {module for ask, module in field.asked if any(i.kind == "ask" and field.problem.asks[i.index] is ask for i in core)}
    count = 0
    for module in sorted(asked):
        for reason in _static_reasons(field, module, active):
            yield reason
            count += 1
            if count >= REASONS:
                break
    dynamic = list(_dynamic_reasons(field, sorted(asked), active))
    yield from dynamic
    if not count and not dynamic:
        for module in sorted(set(field.slots) - asked):
            yield from list(_static_reasons(field, module, active))[:3]


def _static_reasons(field: Field, module: str, active: int) -> Iterator[Because]:
    """One reason per distinct (need, what it met) of a slot, newest first, builds of the active stack before others."""
    seen: set[tuple[object, ...]] = set()
    own: list[tuple[Entry, Failure]] = []
    foreign: list[tuple[Entry, Failure]] = []
    for entry in field.slots[module].entries:
        if _asked_out(entry, field, active):
            continue
        for failure in entry.verdict.failures:
            if failure.holds(active):
                (foreign if failure.need.subject.value == "stack" else own).append((entry, failure))
                break
    own.sort(key=lambda row: row[1].need.unknown or row[0].candidate.rank >= SOURCE_RANK)  # what is surely so comes first
    foreign.sort(key=lambda row: row[0].candidate.rank)
    for entry, failure in [*own, *foreign[: not own]]:
        key = (failure.need.subject, failure.need.values, failure.need.allows, failure.met)
        if key in seen:
            continue
        seen.add(key)
        text = failure_text(failure, entry.candidate)
        yield because(field.matrix, failure.need.subject.value, text, failure.need.fact)


def _asked_out(entry: Entry, field: Field, active: int) -> bool:
    """True when an ask's own range already excludes the candidate: nobody wants to read why it would not run."""
    ranges = sum(field.ranges)
    return any(charge & ranges and charge & active == charge for charge in entry.charges)


def _dynamic_reasons(field: Field, asked: list[str], active: int) -> Iterator[Because]:
    """What live candidates of the core's packages demand of each other and of torch."""
    for module in asked:
        shown = 0
        for index, entry in enumerate(field.slots[module].entries):
            if entry.out(active):
                continue
            links = field.links_of(module, index, 0)
            for target, mask, _, need in links:
                rest = [e for i, e in enumerate(field.slots[target].entries) if mask >> i & 1 and not e.out(active)]
                if not rest or target in asked or (len(asked) > 1 and target == "torch"):
                    yield because(field.matrix, need.subject.value, need_text(need, entry.candidate), need.fact)
                    shown += 1
            if not shown:
                clash = list(_clash(field, entry, links, active))
                yield from clash
                shown += len(clash)
            if shown >= 3:
                break


def _clash(field: Field, entry: Entry, links: tuple[Link, ...], active: int) -> Iterator[Because]:
    """Two demands of one candidate that cannot be met together: every release of one package wants another of the other."""
    wanted = {target: (mask, need) for target, mask, _, need in links}
    for target, (mask, need) in wanted.items():
        living = [i for i, e in enumerate(field.slots[target].entries) if mask >> i & 1 and not e.out(active)]
        clashing = [c for i in living for c in [_against(field, target, i, wanted)] if c is not None]
        if living and len(clashing) == len(living):
            other, theirs = clashing[0]
            child = field.slots[target].entries[living[0]].candidate
            mine = wanted[other][1]
            yield because(field.matrix, need.subject.value, need_text(need, entry.candidate), need.fact)
            yield because(field.matrix, theirs.subject.value, need_text(theirs, child), theirs.fact)
            yield because(field.matrix, mine.subject.value, need_text(mine, entry.candidate), mine.fact)
            return


def _against(field: Field, module: str, index: int, wanted: dict[str, tuple[int, Need]]) -> tuple[str, Need] | None:
    """(slot, need) where a candidate wants of a slot what excludes all that is already wanted of it."""
    for target, mask, _, need in field.links_of(module, index, 0):
        if target in wanted and not mask & wanted[target][0]:
            return target, need
    return None
