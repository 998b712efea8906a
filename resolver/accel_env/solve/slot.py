"""A slot: all candidates of one import name, and the masks over them.

Many builds are alike: what the host says of one holds for all that share the same needs, and so does what they demand of
others. A set of candidates is a bit mask over the slot's list, so "which torch builds satisfy this need" is one integer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from accel_env.model import Candidate, Need, Subject
from accel_env.solve.stacks import OWN
from accel_env.solve.verdict import Verdict
from accel_env.solve.versions import allows


class Entry(NamedTuple):
    """A candidate with its verdict. `charges`: what keeps it out; `pythons`, `hashed`: masks over `Field.pythons`.

    `partners`: its needs that other picks decide; equal ones are one object.
    """

    candidate: Candidate
    verdict: Verdict
    charges: tuple[int, ...]
    pythons: int
    hashed: int
    rank: int
    partners: tuple[Need, ...]

    def out(self, active: int) -> bool:
        """True when the items of `active` rule the candidate out."""
        return any(charge & active == charge for charge in self.charges)


class Slot:
    """All candidates of one import name, best first.

    `stacks`: stack -> its rank, smaller is better. `banning`: distributions that known conflicts may keep from others.
    `alike`: (mask, one of them) of candidates that the host treats alike; `kin`: (mask, place of one) of those that demand
    the same of others; `by_version`, `by_stack`: masks, best first.
    """

    def __init__(
        self, module: str, entries: tuple[Entry, ...], stacks: Mapping[str, tuple[float, ...]], banning: frozenset[str]
    ) -> None:
        self.module = module
        self.entries = entries
        self.everything = (1 << len(entries)) - 1
        alike: dict[tuple[object, ...], tuple[int, Entry]] = {}
        kin: dict[object, tuple[int, int]] = {}
        versions: dict[str, int] = {}
        by_stack = dict.fromkeys(sorted(stacks, key=stacks.__getitem__), 0)
        for place, entry in enumerate(entries):
            candidate, bit = entry.candidate, 1 << place
            same = (entry.charges, entry.pythons, entry.hashed, entry.rank)
            alike[same] = (alike[same][0] | bit, entry) if same in alike else (bit, entry)
            demands = (id(entry.partners), candidate.version) if candidate.name in banning else id(entry.partners)
            kin[demands] = (kin[demands][0] | bit, place) if demands in kin else (bit, place)
            versions[candidate.version] = versions.get(candidate.version, 0) | bit
            by_stack[candidate.stack] |= bit
        self.alike = tuple(alike.values())
        self.kin = tuple(kin.values())
        self.by_version = tuple(versions.values())
        self.by_stack = tuple(by_stack.values())


class Lookup:
    """Masks of one slot's candidates by what needs ask about, so that a need is a few unions instead of a pass over the slot."""

    def __init__(self, slot: Slot) -> None:
        self.everything = slot.everything
        self.named: dict[str, int] = {}
        self.versions: dict[str, dict[str, dict[str, int]]] = {}
        self.builds: dict[str, int] = {}
        self.provided: dict[str, dict[str, int]] = {}
        self._known: dict[tuple[object, ...], int] = {}
        bit = 1
        for entry in slot.entries:
            candidate = entry.candidate
            self.named[candidate.name] = self.named.get(candidate.name, 0) | bit
            builds = self.versions.setdefault(candidate.name, {}).setdefault(candidate.version, {})
            builds[candidate.build] = builds.get(candidate.build, 0) | bit
            self.builds[candidate.build] = self.builds.get(candidate.build, 0) | bit
            for name, value in candidate.provides:
                values = self.provided.setdefault(name, {})
                values[value] = values.get(value, 0) | bit
            bit <<= 1

    def mask(self, need: Need) -> int:
        """The candidates that meet a need on torch or on a package; the same answer as `satisfies`, for a whole slot."""
        # many needs differ in the fact behind them alone
        same = (need.subject, need.name, need.allows, need.values, need.abi, need.when)
        if same not in self._known:
            self._known[same] = self._mask(need)
        return self._known[same]

    def _mask(self, need: Need) -> int:
        name = "torch" if need.subject is Subject.TORCH else need.name
        fitting = union(self._fitting(need.allows, self.versions.get(name, {})))
        if compiled_against(need):
            fitting &= ~union(self.provided.get(OWN, {}).values())
        if need.subject is Subject.TORCH and need.values:
            fitting &= union(self.builds.get(build, 0) for build in need.values)
        for key, wanted in need.abi:
            fitting &= union(bits for value, bits in self.provided.get(key, {}).items() if _abi(value, wanted))
        return self._by_presence(need.when, self.named.get(name, 0), fitting)

    @staticmethod
    def _fitting(spec: str, versions: dict[str, dict[str, int]]) -> Iterator[int]:
        if "+" in spec:
            for version, builds in versions.items():
                yield from (bits for build, bits in builds.items() if allows(spec, labelled(spec, version, build)))
            return
        for version, builds in versions.items():
            if allows(spec, version):
                yield from builds.values()

    def _by_presence(self, when: str, named: int, fitting: int) -> int:
        if when == "absent":
            return self.everything & ~fitting
        return fitting if when == "always" else fitting | self.everything & ~named


def union(masks: Iterable[int]) -> int:
    """All masks together."""
    total = 0
    for mask in masks:
        total |= mask
    return total


def satisfies(candidate: Candidate, need: Need) -> bool:
    """True when having `candidate` meets a need on torch or on a package."""
    if compiled_against(need) and candidate.module == "torch" and OWN in dict(candidate.provides):
        return False
    if need.subject is Subject.TORCH:
        if not allows(need.allows, candidate.version) or (need.values and candidate.build not in need.values):
            return False
        provided = dict(candidate.provides)
        return all(_abi(provided.get(key, ""), wanted) for key, wanted in need.abi)
    named = candidate.name == need.name
    version = labelled(need.allows, candidate.version, candidate.build)
    if need.when == "absent":
        return not (named and allows(need.allows, version))
    if not named:
        return need.when == "present"
    provided = dict(candidate.provides)
    return allows(need.allows, version) and all(_abi(provided.get(key, ""), wanted) for key, wanted in need.abi)


def compiled_against(need: Need) -> bool:
    """True for a need that a published release of torch meets and a vendor's own build of it is not known to: that of a binary on
    releases of torch, or an exact pin. Ranges in metadata (`torch>=2.4`) go by the version alone, as pip reads them."""
    if need.subject is Subject.TORCH:
        return bool(need.allows)
    return need.name == "torch" and need.when != "absent" and "==" in need.allows


def labelled(spec: str, version: str, build: str) -> str:
    """The version to hold against a specifier: with its label where the specifier names one."""
    return f"{version}+{build}" if "+" in spec and build not in ("", "any") else version


def _abi(have: str, wanted: str) -> bool:
    if not have:
        return False
    return allows(wanted, have) if wanted[:1] in "<>=!~" else have == wanted
