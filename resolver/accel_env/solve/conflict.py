"""A refusal that teaches: the minimal core, the facts behind it, what stands in, and the ways out."""

from __future__ import annotations

from collections.abc import Iterator

from accel_env.model import Ask, Because, Candidate, Conflict, CoreItem, Need, Relaxation, Subject
from accel_env.solve.core import minimal_core
from accel_env.solve.explain import because, failure_text, forward_compat, need_text, stack_answer, stand_ins
from accel_env.solve.extras import exclusive
from accel_env.solve.field import Field, Link
from accel_env.solve.prune import ask_fits
from accel_env.solve.relax import cost, relaxations
from accel_env.solve.slot import Entry
from accel_env.solve.verdict import SOURCE_RANK, Failure, Item
from accel_env.solve.versions import parse, split_stack

REASONS = 8
RELAXATIONS = 6
UNSURE = 2  # reasons of this weight and more say less than what stands in
ALIKE = 3  # so many builds that meet the same thing are told; the others are in `explain --not`


def conflict(field: Field) -> Conflict:
    """The conflict of a field without a solution."""
    core = minimal_core(field)
    asks = [field.problem.asks[i.index] for i in core if i.kind == "ask"]
    reasons, vague = _told(field, core)
    if any(item.key == "driver" for item in core):
        reasons += forward_compat(field)
    instead = [row for ask in asks for row in stand_ins(field, ask.name)]
    apart = len(asks) > 1 and all(item.kind == "ask" for item in core)  # no matter of the host: what stands in helps least
    reasons += [*vague, *instead] if apart else [*instead, *vague]
    reasons = reasons or list(_apart(field, asks)) or [reason for ask in asks for reason in _published(field, ask)]
    useful = [w for w in relaxations(field, core) if not any(c.kind == "drop" and _empty(c.name, w) for c in w.change)]
    ways = sorted(useful, key=cost)
    return Conflict(
        field.problem,
        tuple(CoreItem(i.kind, i.text) for i in core),
        tuple(dict.fromkeys(reasons)),
        tuple(ways[:RELAXATIONS]),
    )


def _empty(name: str, way: Relaxation) -> bool:
    """True where leaving a package out changes nothing that a range would not, since it comes along all the same, or leaves
    nothing to install."""
    return name in way.gives or set(way.gives) == {"python"}


def nameless(field: Field) -> Conflict:
    """The conflict of a bundle that must hold something which has no name on the active stack."""
    rows = field.problem.missing
    named = [item for item in field.items if item.key == "stack"]
    hosts = named or [item for item in field.items if item.key.startswith(("device", "none"))]
    core = [CoreItem("ask", f"@{row.bundle}") for row in rows] + [CoreItem(item.kind, item.text) for item in hosts[:1]]
    reasons = [because(field.matrix, "package", f"{row.name}: {row.why}", row.fact) for row in rows]
    for row in rows:
        reasons += stand_ins(field, row.name)
    reasons += stack_answer(field)
    return Conflict(field.problem, tuple(dict.fromkeys(core)), tuple(reasons), ())


def told(field: Field, core: tuple[Item, ...]) -> list[Because]:
    """Why the members of a core do not go together: of where the asks are published, of the stack, of their builds."""
    plain, vague = _told(field, core)
    return plain + vague


def _told(field: Field, core: tuple[Item, ...]) -> tuple[list[Because], list[Because]]:
    """The reasons, and those that say less than what stands in: other stacks, source builds, what is unknown."""
    asks = [field.problem.asks[item.index] for item in core if item.kind == "ask"]
    reasons = list(exclusive(asks, field.matrix)) or [reason for ask in asks for reason in _elsewhere(field, ask)]
    answer = list(stack_answer(field))
    return (reasons, answer) if reasons or answer else _reasons(field, core)


def _elsewhere(field: Field, ask: Ask) -> Iterator[Because]:
    """Where the asked releases are published, when it is not this platform."""
    matrix, here = field.matrix, field.problem.host.platform
    if ask.name not in matrix.package_names():
        return
    yield from _unknown_release(field, ask)
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


def _unknown_release(field: Field, ask: Ask) -> Iterator[Because]:
    """That no release inside the range is known for the platform, or for the stack on it, and which are."""
    matrix, here, stack = field.matrix, field.problem.host.platform, field.ground.stack_name
    rows = matrix.candidates(ask.name, here)
    for where, fitting in ((here, rows), (f"{stack} on {here}", [c for c in rows if split_stack(c.stack)[0] in ("", stack)])):
        known = sorted({c.version for c in fitting}, key=parse, reverse=True)
        if ask.specifier and known and not any(ask_fits(ask, c, matrix) for c in fitting):
            listed = ", ".join(known[:5]) + (", ..." if len(known) > 5 else "")
            text = f"the matrix of {matrix.version} knows no {ask.name} {ask.specifier} for {where}, but {listed}"
            yield because(matrix, "package", text, fitting[0].fact)
            return


def _apart(field: Field, asks: list[Ask]) -> Iterator[Because]:
    """That two ranges of one package have no release in common."""
    for index, first in enumerate(asks):
        for second in asks[index + 1 :]:
            if first.name == second.name and first.specifier and second.specifier:
                text = f"no release of {first.name} that is known here is both {first.specifier} and {second.specifier}"
                yield because(field.matrix, "package", text, "")


def _published(field: Field, ask: Ask) -> Iterator[Because]:
    """Where an asked package is published at all, when nothing better can be said."""
    if ask.name not in field.matrix.package_names():
        return
    platforms = field.matrix.platforms(ask.name)
    rows = [(platform, c) for platform in platforms for c in field.matrix.candidates(ask.name, platform)]
    if rows:
        stacks = sorted({split_stack(c.stack)[0] for _, c in rows if c.stack})
        where = ", ".join(sorted({platform for platform, _ in rows}))
        text = f"{ask.name} is published for {where}" + (f" with {', '.join(stacks)}" if stacks else "")
        yield because(field.matrix, "package", text, rows[0][1].fact)


def _reasons(field: Field, core: tuple[Item, ...]) -> tuple[list[Because], list[Because]]:
    """The facts that make the core: what the asked packages' candidates need and what they met, newest candidates first."""
    active = field.base
    for item in core:
        active |= item.bit
    asked = {module for ask, module in field.asked if any(i.kind == "ask" and field.problem.asks[i.index] is ask for i in core)}
    told = [row for module in sorted(asked) for row in list(_static_reasons(field, module, active))[:REASONS]][:REASONS]
    plain, vague = [text for sure, text in told if sure], [text for sure, text in told if not sure]
    vague = [*_dynamic_reasons(field, sorted(asked), active), *vague]
    if plain or vague:
        return plain, vague
    foreign = [text for module in sorted(asked) for _, text in _static_reasons(field, module, active, others=True)]
    others = sorted(set(field.slots) - asked)
    return [], foreign or [text for module in others for _, text in list(_static_reasons(field, module, active))[:3]]


def _static_reasons(field: Field, module: str, active: int, *, others: bool = False) -> Iterator[tuple[bool, Because]]:
    """One reason per distinct (need, what it met) of a slot's builds for the active stack, newest first, and whether it is
    one that surely keeps the build out; or of `others`."""
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
    own.sort(key=lambda row: _weight(*row))
    foreign.sort(key=lambda row: row[0].candidate.rank)
    alike: dict[tuple[object, str], int] = {}
    for entry, failure in foreign[:1] if others else own:
        key = (failure.need.subject, failure.need.values, failure.need.allows, failure.met)
        kind = (failure.need.subject, failure.met)
        if key in seen or alike.get(kind, 0) >= ALIKE:
            continue
        seen.add(key)
        alike[kind] = alike.get(kind, 0) + 1
        text = failure_text(failure, entry.candidate)
        sure = not others and _weight(entry, failure) < UNSURE
        yield sure, because(field.matrix, failure.need.subject.value, text, failure.need.fact)


def _weight(entry: Entry, failure: Failure) -> int:
    """What is surely so comes first; what is unknown, which Pythons a build is for, and builds of other stacks, last."""
    if any(other.need.subject is Subject.STACK for other in entry.verdict.failures):
        return UNSURE + 1
    if failure.need.unknown or entry.candidate.rank >= SOURCE_RANK:
        return UNSURE
    return int(failure.need.subject is Subject.PYTHON)


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
            links = tuple(link for link in field.links_of(module, index, 0) if _matters(field, link))
            for target, mask, _, need in links:
                rest = [e for i, e in enumerate(field.slots[target].entries) if mask >> i & 1 and not e.out(active)]
                if not rest or target in asked or (len(asked) > 1 and target == "torch"):
                    yield because(field.matrix, need.subject.value, _demand(field, need, entry.candidate), need.fact)
                    shown += 1
                if not rest:
                    yield from _why_out(field, target, mask, active)
            if not shown:
                clash = list(_clash(field, entry, links, active))
                yield from clash
                shown += len(clash)
            if shown >= 3:
                break


def _matters(field: Field, link: Link) -> bool:
    """True unless a demand is on a package that need not be there, and cannot."""
    target, _, always, need = link
    everything = field.everything
    return always or any(e.candidate.name == need.name and not e.out(everything) for e in field.slots[target].entries)


def _demand(field: Field, need: Need, candidate: Candidate) -> str:
    """What a candidate demands, in words; where it does not require the other package, also why it cannot have all of it."""
    text = need_text(need, candidate)
    unasked = need.subject is Subject.PACKAGE and need.when != "always"
    return f"{text}: {field.matrix.fact(need.fact).text}" if unasked and need.fact else text


def _why_out(field: Field, module: str, mask: int, active: int) -> Iterator[Because]:
    """Why the first of the candidates that a need names is out, where it is one of this stack's."""
    for index, entry in enumerate(field.slots[module].entries):
        if not mask >> index & 1 or _asked_out(entry, field, active):
            continue
        for failure in entry.verdict.failures:
            if failure.need.unknown or failure.need.subject is Subject.STACK:
                break  # that explains nothing: the next candidate may
            if failure.holds(active):
                text = failure_text(failure, entry.candidate)
                yield because(field.matrix, failure.need.subject.value, text, failure.need.fact)
                return


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
