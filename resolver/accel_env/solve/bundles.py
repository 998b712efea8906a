"""`settle`: the members of bundles become asks; which of their names, and what is left out for what reason, is decided here.

One field holds every name of every member; a member is tried by switching its item on, so that nothing is judged twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from accel_env.errors import UsageError
from accel_env.model import Ask, Host, LeftOut, Policy, Problem, Warned
from accel_env.solve.conflict import told
from accel_env.solve.core import minimal_core
from accel_env.solve.explain import stand_ins
from accel_env.solve.field import Field
from accel_env.solve.finish import in_images
from accel_env.solve.problem import parse_ask, state
from accel_env.solve.prune import prune
from accel_env.solve.search import Found, search
from accel_env.solve.stacks import active_stack, leads
from accel_env.solve.versions import minor, split_stack

if TYPE_CHECKING:
    from accel_env.matrix.load import Matrix
    from accel_env.matrix.types import Bundle, Choice, Member

SIGN = "@"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A member of an asked bundle: its names as asks with the stacks that each is for, those of other stacks left away."""

    bundle: str
    member: Member
    names: tuple[tuple[Ask, tuple[str, ...]], ...]

    @property
    def shown(self) -> str:
        """What people call the member: its first name."""
        return parse_ask(self.member.choices[0].ask, self.bundle).name


@dataclass(slots=True)
class _State:
    """What has been decided: the items in force and the answer under them."""

    whole: Field
    active: int
    found: Found | None = None
    taken: list[Ask] = field(default_factory=list)
    optional: list[str] = field(default_factory=list)
    left: list[LeftOut] = field(default_factory=list)
    remarks: list[Warned] = field(default_factory=list)


def settled(host: Host, asks: Sequence[Ask], policy: Policy, matrix: Matrix) -> Problem:
    """The problem of asks among which are bundles. UsageError for a bundle that is none."""
    plain, bundles = split(asks, matrix)
    return settle(state(host, plain, policy, matrix), bundles, matrix)


def split(asks: Sequence[Ask], matrix: Matrix) -> tuple[tuple[Ask, ...], tuple[Bundle, ...]]:
    """(plain asks, bundles asked for). UsageError for a name that is none, with the nearest ones."""
    plain = tuple(ask for ask in asks if not ask.name.startswith(SIGN))
    named = [ask for ask in asks if ask.name.startswith(SIGN)]
    known = matrix.bundles() if named else {}
    for ask in named:
        if ask.name.removeprefix(SIGN) not in known:
            raise _unknown(ask, list(known))
    return plain, tuple(known[name] for name in dict.fromkeys(ask.name.removeprefix(SIGN) for ask in named))


def _unknown(ask: Ask, known: list[str]) -> UsageError:
    import difflib

    near = difflib.get_close_matches(ask.name.removeprefix(SIGN), known, 3, 0.5) or known
    return UsageError("unknown-bundle", f"{ask.origin}: there is no bundle {ask.name}",
                      hint=f"there are: {', '.join(SIGN + name for name in near)}; `accel-env matrix show bundles` lists them")


def settle(problem: Problem, bundles: Sequence[Bundle], matrix: Matrix) -> Problem:
    """The problem with the members of the bundles among its asks: all that must be there, and of the optional ones those that
    can be had without giving up a torch so new that it counts more. What the user named is never optional."""
    if not bundles:
        return problem
    stack = active_stack(matrix, problem.devices, problem.policy)
    wanted = list(_wanted(problem, bundles, stack))
    problem = replace(problem, bundles=tuple(bundle.name for bundle in bundles))
    must = [w for w in wanted if not w.member.optional]
    missing = tuple(_nameless(w, stack) for w in must if not w.names)
    if not missing and len(must) == len(wanted) and all(len(w.names) == 1 for w in must):
        return replace(problem, asks=(*(w.names[0][0] for w in must), *problem.asks))  # nothing to choose
    asks = dict.fromkeys((*problem.asks, *(ask for w in wanted for ask, _ in w.names)))
    whole = prune(replace(problem, asks=tuple(asks)), matrix)
    so_far = _State(whole, whole.everything & ~_bits(whole, [ask for w in wanted for ask, _ in w.names]))
    for w in sorted((w for w in must if w.names), key=lambda w: len(w.names) > 1):
        _take_must(so_far, w)
    so_far.found = _search(whole, so_far.active)
    base = so_far.found
    if base is None and not missing and (other := _on_an_image(problem, so_far, matrix)):
        return settle(other, bundles, matrix)
    for w in (w for w in wanted if w.member.optional):
        if base is not None and not missing:
            _try(so_far, w, base, stack)
    return _settled(problem, wanted, so_far, missing)


def _on_an_image(problem: Problem, so_far: _State, matrix: Matrix) -> Problem | None:
    """The problem with a vendor's image as the base, where only that has what must be there."""
    must = replace(problem, asks=(*so_far.taken, *problem.asks))
    other = in_images(prune(must, matrix))
    return replace(problem, policy=other[0].problem.policy, remarks=other[0].problem.remarks) if other else None


def _wanted(problem: Problem, bundles: Sequence[Bundle], stack: str) -> Iterator[Wanted]:
    """The members, each name once. A member that is a must in one bundle is a must in all; one of whose names the user has
    asked for is the user's, but for a range or extras of its own."""
    own = {ask.name for ask in problem.asks}
    must = {choice.ask for bundle in bundles for m in bundle.members if not m.optional for choice in m.choices}
    seen: set[str] = set()
    for bundle in bundles:
        for member in bundle.members:
            names = tuple((_ask(choice, bundle), choice.stacks) for choice in member.choices if _serves(choice, stack, problem))
            if member.choices[0].ask in seen or (member.optional and must & {choice.ask for choice in member.choices}):
                continue
            seen.add(member.choices[0].ask)
            if any(ask.name in own for ask, _ in names):
                names = tuple(row for row in names if row[0].name in own and (row[0].specifier or row[0].extras))
                if names:
                    yield Wanted(bundle.name, replace(member, optional=False), names)
            else:
                yield Wanted(bundle.name, member, names)


def _ask(choice: Choice, bundle: Bundle) -> Ask:
    return parse_ask(choice.ask, SIGN + bundle.name)


def _serves(choice: Choice, stack: str, problem: Problem) -> bool:
    if choice.archs and not any(device.arch in choice.archs for device in problem.devices):
        return False
    return not choice.stacks or any(split_stack(one)[0] == stack for one in choice.stacks)


def _nameless(w: Wanted, stack: str) -> LeftOut:
    member = w.member
    names = ", ".join(f"{choice.ask} for {' or '.join(choice.stacks)}" for choice in member.choices)
    why = f"nothing of it is known for {stack}, but {names}"
    return LeftOut(w.shown, w.bundle, why, member.fact, member.stands_in, member.fact if member.stands_in else "")


def _bits(whole: Field, asks: Sequence[Ask]) -> int:
    """The items of the asks."""
    chosen = {n for n, ask in enumerate(whole.problem.asks) if ask in asks and ask.origin.startswith(SIGN)}
    return sum(item.bit for item in whole.items if item.kind == "ask" and item.index in chosen)


def _search(whole: Field, active: int) -> Found | None:
    return search(whole, active) if whole.asked else Found({}, 0, 0, False, ())


def _take_must(so_far: _State, w: Wanted) -> None:
    """The first name under which an answer exists; where there is none, the first, so that the refusal speaks of it."""
    ask = w.names[0][0]
    if len(w.names) > 1:
        usable = (one for one, stacks in w.names if _found_with(so_far, one, stacks) is not None)
        ask = next(usable, ask)
    so_far.active |= _bits(so_far.whole, [ask])
    so_far.taken.append(ask)


def _found_with(so_far: _State, ask: Ask, stacks: tuple[str, ...]) -> Found | None:
    found = _search(so_far.whole, so_far.active | _bits(so_far.whole, [ask]))
    return found if found is not None and _on_release(so_far.whole, found, stacks) else None


def _on_release(whole: Field, found: Found, stacks: tuple[str, ...]) -> bool:
    """Whether the answer is of one of the releases: torch's own, or without torch one that drives and serves the devices,
    or where the driver supports none wholly, that of what leads."""
    wanted = [split_stack(one)[1] for one in stacks if split_stack(one)[0] == whole.ground.stack_name]
    if not wanted or "" in wanted:
        return True
    if "torch" in found.chosen:
        have = [split_stack(whole.slots["torch"].entries[found.chosen["torch"]].candidate.stack)[1]]
    else:
        have = list(_usable(whole)) or _led(whole, found)
    return any(one == version or one.startswith(f"{version}.") for one in have for version in wanted)


def _led(whole: Field, found: Found) -> list[str]:
    """The releases of the stack that the picks themselves are for."""
    picked = (whole.slots[module].entries[index].candidate for module, index in found.chosen.items())
    return [split_stack(one.stack)[1] for one in picked if leads(one)]


def _usable(whole: Field) -> Iterator[str]:
    """The releases of the stack that the drivers support and that know the devices, as far as anybody said."""
    stack, devices = whole.ground.stack, whole.ground.devices
    for release in stack.releases if stack else ():
        knows = not release.targets or all(device.arch in release.targets for device in devices)
        if knows and whole.ground.fully_supported(f"{whole.ground.stack_name}-{release.version}"):
            yield release.version


def _try(so_far: _State, w: Wanted, base: Found, stack: str) -> None:
    """Take an optional member in, or note why it is left out."""
    if not w.names:
        so_far.left.append(_nameless(w, stack))
        return
    for ask, stacks in w.names:
        found = _found_with(so_far, ask, stacks)
        lost = _minors(so_far.whole, base, found) if found else 0
        if found is None or lost > w.member.behind:
            continue
        if lost and lost > _minors(so_far.whole, base, so_far.found or base):
            so_far.remarks.append(Warned("older-torch", _holds(so_far.whole, ask, found, base), w.member.fact))
        so_far.active |= _bits(so_far.whole, [ask])
        so_far.found = found
        so_far.taken.append(ask)
        so_far.optional.append(ask.name)
        return
    so_far.left.append(_why(so_far, w, base))


def _minors(whole: Field, newer: Found, older: Found) -> int:
    """How many minor releases of torch lie between two answers; 0 where either has none."""
    if "torch" not in newer.chosen or "torch" not in older.chosen:
        return 0
    entries = whole.slots["torch"].entries
    known = sorted({minor(entry.candidate.version) for entry in entries})
    places = [known.index(minor(entries[found.chosen["torch"]].candidate.version)) for found in (newer, older)]
    return places[0] - places[1]


def _holds(whole: Field, ask: Ask, found: Found, base: Found) -> str:
    torch, without = (whole.slots["torch"].entries[one.chosen["torch"]].candidate.version for one in (found, base))
    return f"{ask.name} holds torch at {torch}; without it {without}"


def _why(so_far: _State, w: Wanted, base: Found) -> LeftOut:
    """The reason that a member is left out for, and what stands in for it."""
    whole = so_far.whole
    ask, stacks = w.names[0]
    active = so_far.active | _bits(whole, [ask])
    found = _search(whole, active)
    why, fact = "", w.member.fact
    if found is not None and _on_release(whole, found, stacks):
        lost, given = _minors(whole, base, found), w.member.behind
        why = f"{_holds(whole, ask, found, base)}: {lost} minor releases, and @{w.bundle} gives {given or 'none'} for it"
    elif found is not None:
        why = f"it is for {' or '.join(stacks)}"
    else:
        core = minimal_core(whole, active)
        reasons = told(whole, core)
        together = " and ".join(item.text for item in core if item.text != ask.name)
        why, fact = (reasons[0].text, reasons[0].fact) if reasons else (f"not together with {together}", "")
    instead = stand_ins(whole, ask.name)
    text, source = (instead[0].text, instead[0].fact) if instead else (w.member.stands_in, w.member.fact)
    return LeftOut(ask.name, w.bundle, why, fact, text, source if text else "")


def _settled(problem: Problem, wanted: Sequence[Wanted], so_far: _State, missing: tuple[LeftOut, ...]) -> Problem:
    """The asks in the order of the bundles, what the user wrote last: it binds whatever its place."""
    order = {ask: n for n, ask in enumerate(ask for w in wanted for ask, _ in w.names)}
    taken = sorted(so_far.taken, key=lambda ask: order[ask])
    return replace(problem, asks=(*taken, *problem.asks), optional=tuple(so_far.optional), left_out=tuple(so_far.left),
                   missing=missing, remarks=(*problem.remarks, *so_far.remarks))


def without(problem: Problem, name: str, why: str) -> Problem:
    """The problem without an optional member that turned out not to be had, which the plan then says."""
    bundle = next(ask.origin.removeprefix(SIGN) for ask in problem.asks if ask.name == name and ask.origin.startswith(SIGN))
    asks = tuple(ask for ask in problem.asks if ask.name != name or not ask.origin.startswith(SIGN))
    remarks = tuple(remark for remark in problem.remarks if not remark.message.startswith(f"{name} "))
    return replace(problem, asks=asks, optional=tuple(one for one in problem.optional if one != name), remarks=remarks,
                   nogoods=(), left_out=(*problem.left_out, LeftOut(name, bundle, why)))
