"""What an installer takes: the newest builds that agree with each other's metadata, as pip and uv choose them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

from accel_env.judge.files.pool import Offer, Places, label_of, places, pool, requires_of, runs_on, too_new
from accel_env.judge.files.values import Install, Wanted
from accel_env.model import Candidate
from accel_env.solve.versions import allows

if TYPE_CHECKING:
    from accel_env.matrix.load import Matrix

STEPS = 4000  # of the search; a handful of packages needs a few dozen
_EXACT = re.compile(r"={2,3}[^*,]+")


@dataclass(frozen=True, slots=True)
class Group:
    """One wheel: builds that differ in a library inside only."""

    offers: tuple[Offer, ...]

    @property
    def first(self) -> Candidate:
        """One of its builds."""
        return self.offers[0].candidate

    @property
    def version(self) -> str:
        """The version that its file name says."""
        return self.offers[0].version


@dataclass(frozen=True, slots=True)
class Present:
    """A package that ends up installed. Empty `candidates`: no index serves it, or nothing is known about it.

    `free`: the files leave the version to the installer. `vendor`: a build of the image's maker, `conda`: of a conda channel.
    `by`: the package that asked for it; empty for the files themselves. `shaky`: the command may not run, or looks at places
    that the matrix does not know.
    """

    name: str
    where: str
    version: str = ""
    local: str = ""
    spec: str = ""
    candidates: tuple[Candidate, ...] = ()
    free: bool = False
    vendor: bool = False
    conda: bool = False
    nightly: bool = False
    shaky: bool = False
    by: str = ""
    text: str = ""
    url: str = ""
    places: Places | None = None
    install: Install | None = None

    @property
    def label(self) -> str:
        """`torch 2.9.1+cu128` in words."""
        local = f"+{self.local}" if self.local else ""
        return f"{self.name} {self.version or self.spec or 'of unknown version'}{local if self.version else ''}"


@dataclass(frozen=True, slots=True)
class Clash:
    """Two requirements that no builds meet together: `on` is the package about which they disagree."""

    a: Wanted
    b: Wanted
    on: str
    needs: tuple[tuple[Candidate, str], ...]


class Picker:
    """One act of installing into an environment that holds `state`."""

    def __init__(self, matrix: Matrix, platform: str, python: str, state: Mapping[str, Present], install: Install) -> None:
        self.matrix, self.platform, self.python = matrix, platform, python
        self.state = {} if install.fresh else dict(state)
        self.install = install
        self.steps = 0
        self._groups: dict[tuple[str, str, str, str], tuple[Group, ...]] = {}

    def pick(self, wanted: Sequence[Wanted]) -> dict[str, Group] | None:
        """The wheel of each name that is taken anew, those that come along included; None where nothing agrees."""
        asked: dict[str, list[Wanted]] = {}
        for one in wanted:
            asked.setdefault(one.name, []).append(one)
        self.steps = 0
        todo = [name for name in asked if not self._kept(name, asked[name])]
        return self._search(tuple(todo), {}, asked)

    def clash(self, wanted: Sequence[Wanted]) -> Clash | None:
        """Two of the requirements that do not agree; None where no two alone explain it."""
        rows = [w for w in wanted if self.groups(w)]
        for a, b in combinations(rows, 2):
            if a.name != b.name and self.pick((a, b)) is None:
                return self._explained(a, b)
        return None

    def limit(self, wanted: Wanted) -> Wanted | None:
        """The constraint that leaves nothing of what a requirement asks for; None where another reason does."""
        if self.groups(wanted):
            return None
        free = Picker(self.matrix, self.platform, self.python, {}, replace(self.install, limits=()))
        return next((row for row in self.install.limits if row.name == wanted.name), None) if free.groups(wanted) else None

    def groups(self, wanted: Wanted) -> tuple[Group, ...]:
        """The wheels that a requirement can mean, best first; where none is for this Python, those for others."""
        key = (wanted.name, wanted.spec, wanted.url, wanted.index)
        if key not in self._groups:
            offers = pool(wanted, places(wanted, self.install, self.matrix), self.matrix, self.platform)
            limits = [row.spec for row in self.install.limits if row.name == wanted.name and not wanted.url]
            offers = tuple(o for o in offers if all(allows(spec, o.version) for spec in limits))
            found: dict[tuple[str, str, str], list[Offer]] = {}
            for offer in offers:
                found.setdefault((offer.version, offer.candidate.build, offer.candidate.index), []).append(offer)
            groups = tuple(Group(tuple(rows)) for rows in found.values())
            fitting = tuple(g for g in groups if any(runs_on(o.candidate, self.python) for o in g.offers))
            listed = exact(wanted.spec) or wanted.url or not all(too_new(g.first, self.python) for g in groups)
            self._groups[key] = fitting or (groups if listed else ())
        return self._groups[key]

    def requires(self, group: Group) -> Iterator[tuple[str, str]]:
        """What a wheel's metadata requires of packages that the matrix models."""
        if self.install.no_deps:
            return
        names = self.matrix.package_names()
        for name, spec in requires_of(group.first.requires, self.platform, self.python):
            if name in names and name != group.first.name:
                yield name, spec

    def _kept(self, name: str, asked: Sequence[Wanted]) -> bool:
        """True where what is installed meets the requirements and nothing asks for a newer one."""
        here = self.state.get(name)
        return here is not None and not self.install.upgrade and all(not w.url and meets(here, w.spec) for w in asked)

    def _search(
        self, todo: tuple[str, ...], chosen: dict[str, Group], asked: Mapping[str, Sequence[Wanted]]
    ) -> dict[str, Group] | None:
        if not todo:
            return chosen
        self.steps += 1
        if self.steps > STEPS:
            return None
        name, rest = todo[0], todo[1:]
        for group in self._options(name, chosen, asked):
            more = self._consistent(name, group, chosen, asked)
            if more is None:
                continue
            following = rest + tuple(n for n in more if n not in rest)
            found = self._search(following, {**chosen, name: group}, asked)
            if found is not None or self.steps > STEPS:
                return found
        return None

    def _options(self, name: str, chosen: Mapping[str, Group], asked: Mapping[str, Sequence[Wanted]]) -> list[Group]:
        specs = [spec for group in chosen.values() for n, spec in self.requires(group) if n == name]
        rows = asked.get(name) or [Wanted(name, where=self.install.where)]
        first, *others = rows
        specs += [w.spec for w in others]
        return [g for g in self.groups(first) if all(allows(spec, g.version) for spec in specs)]

    def _consistent(
        self, name: str, group: Group, chosen: Mapping[str, Group], asked: Mapping[str, Sequence[Wanted]]
    ) -> list[str] | None:
        """The names that must be picked on this wheel's account; None where it contradicts what is chosen."""
        more: list[str] = []
        for other, spec in self.requires(group):
            if other in chosen:
                if not allows(spec, chosen[other].version):
                    return None
            elif other in self.state and meets(self.state[other], spec):
                continue
            elif self.groups(Wanted(other, where=self.install.where)) or other in asked:
                more.append(other)
        return more

    def _explained(self, a: Wanted, b: Wanted) -> Clash:
        """What the newest wheels of the two ask of a third, or of each other."""
        tops = [self.groups(a)[0], self.groups(b)[0]]
        asks = [dict(self.requires(top)) for top in tops]
        for mine, other, asked in ((a, b, asks[0]), (b, a, asks[1])):
            if other.name in asked:
                top = tops[0] if mine is a else tops[1]
                return Clash(a, b, other.name, ((top.first, asked[other.name]),))
        shared = [n for n in asks[0] if n in asks[1] and asks[0][n] != asks[1][n]]
        on = next((n for n in shared if _EXACT.fullmatch(asks[0][n]) and _EXACT.fullmatch(asks[1][n])), "") or next(
            iter(shared), ""
        )
        return Clash(a, b, on, tuple((top.first, asked[on]) for top, asked in zip(tops, asks, strict=True)) if on else ())


def meets(here: Present, spec: str) -> bool:
    """True where what is installed meets a specifier; a version that nobody knows misses exact ones only."""
    if not here.version:
        return not _EXACT.fullmatch(spec)
    return allows(spec, f"{here.version}+{here.local}" if here.local and "+" in spec else here.version)


def exact(spec: str) -> bool:
    """True where a specifier allows one version only."""
    return bool(_EXACT.fullmatch(spec))


def present(group: Group, wanted: Wanted, install: Install, where: Places, *, by: str = "", free: bool = False) -> Present:
    """The package that a wheel makes."""
    candidate = group.first
    return Present(
        name=candidate.name,
        where=wanted.where or install.where,
        version=candidate.version,
        local=label_of(candidate),
        spec=wanted.spec,
        candidates=tuple(o.candidate for o in group.offers),
        free=free,
        shaky=install.maybe or where.unknown,
        by=by,
        text=wanted.text or wanted.name,
        url=wanted.url,
        places=where,
        install=install,
    )
