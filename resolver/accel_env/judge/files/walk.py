"""Steps of a scene in order -> the environment that they make, as pip, uv and conda choose."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from accel_env.judge.files.images import Known
from accel_env.judge.files.pick import STEPS, Clash, Group, Picker, Present, exact, present
from accel_env.judge.files.pool import Places, places, runs_on
from accel_env.judge.files.shipped import demands, held, risks, shipped
from accel_env.judge.files.state import Compiled, Missing, Replaced, State
from accel_env.judge.files.values import UNKNOWN, Install, Removed, Scene, Step, Tools, Variable, Wanted
from accel_env.solve.versions import allows, parse

if TYPE_CHECKING:
    from accel_env.judge.files.tables import Tables
    from accel_env.matrix.load import Matrix
    from accel_env.model import Host

_PYTHON = re.compile(r"python=?(3\.\d+)(?:\.\d+)?t?")


class Walker:
    """Walks through one scene for one host."""

    def __init__(self, scene: Scene, image: Known | None, host: Host, matrix: Matrix, tables: Tables) -> None:
        self.scene, self.image, self.host, self.matrix, self.tables = scene, image, host, matrix, tables
        self.state = State(python=self._first_python())
        if image is not None:
            self.state.packages = shipped(image, matrix, host.platform)

    def walk(self) -> State:
        """The environment at the end."""
        for step in self.scene.steps:
            self._step(step)
        return self.state

    def _first_python(self) -> str:
        if self.image is not None and self.image.python:
            return self.image.python
        said = re.fullmatch(r"(?:==)?(3\.\d+)(?:\.(?:\d+|\*))?", self.scene.python)
        if said:
            return said[1]
        return "" if self.scene.kind == "image" or not self._suits(self.host.python) else self.host.python

    def _suits(self, python: str) -> bool:
        from accel_env.solve.versions import valid_specifier

        spec = self.scene.python
        return bool(python) and (not spec or (valid_specifier(spec) and allows(spec, python.rstrip("t") + ".99")))

    def _step(self, step: Step) -> None:
        if isinstance(step, Variable):
            self.state.variables[step.name] = step.value
        elif isinstance(step, Tools):
            self.state.words += step.names
            self._tools(step)
        elif isinstance(step, Removed):
            for name in step.names:
                self.state.packages.pop(name, None)
                self.state.others.pop(name, None)
        else:
            self.state.words += [w.name for w in step.wanted]
            self._install(step)

    def _tools(self, step: Tools) -> None:
        found = {match[1] for name in step.names if (match := _PYTHON.fullmatch(name.partition("-")[0]))}
        if found:  # of several at once nobody knows which one it is
            self.state.python = found.pop() if len(found) == 1 else ""
        if "venv" in step.names:  # a new environment sees nothing of the image's
            self.state.packages = {}
        system = {"python3", "python3-pip", "python3-dev", "python3-venv"} & set(step.names)
        if system and not self.state.python and self.image is not None and self.image.os:
            self.state.python = self.tables.system_python(self.image.os)

    def _install(self, install: Install) -> None:
        wanted = [w for w in install.wanted if self._applies(w)]
        install = replace(install, limits=tuple(row for row in install.limits if self._applies(row)))
        names = self.matrix.package_names()
        loading = {row.name for row in self.tables.libraries}  # what the system must bring for them stands in a table
        for one in wanted:
            if one.name not in names or one.name in loading:
                self.state.others[one.name] = one
        if install.fresh:
            self.state.packages = {}
        if install.tool == "conda":
            self._conda(install, wanted)
            return
        mine = [w for w in wanted if w.name in names]
        if any(w.locked for w in mine):
            self._locked(install, mine)
            return
        torch = self.state.packages.get("torch")
        if self.image is not None:
            self.state.risks += risks(install, wanted, torch, self.image, self)
        self._pip(install, mine + demands(install, wanted, torch, self.tables))

    def _applies(self, wanted: Wanted) -> bool:
        """Whether a requirement's markers can hold here; the Python counts where it is known."""
        if any(self._holds(marker) for marker in wanted.unless):
            return False
        return not wanted.markers or any(self._holds(marker) for marker in wanted.markers)

    def _holds(self, marker: str) -> bool:
        from packaging.markers import InvalidMarker, Marker

        from accel_env.matrix.markers import marker_environment

        try:
            parsed = Marker(marker)
        except InvalidMarker:
            return True
        pythons = [self.state.python] if self.state.python else [p.version for p in self.matrix.pythons()]
        if "extra" in marker or "dependency_groups" in marker:
            return True
        return any(parsed.evaluate({**marker_environment(self.host.platform, p)}) for p in pythons)

    # --- pip, uv, poetry ----------------------------------------------------------------------------------------------

    def _pip(self, install: Install, wanted: Sequence[Wanted]) -> None:
        picker = Picker(self.matrix, self.host.platform, self.state.python, self.state.packages, install)
        usable: list[Wanted] = []
        for one in wanted:
            where = places(one, install, self.matrix)
            if one.vague or where.nightly or install.pre:
                self._unknown(one, install, where)
                picker.state[one.name] = self.state.packages[one.name]
            elif picker.groups(one):
                usable.append(one)
            else:
                self._nothing(one, install, where, picker)
                picker.state[one.name] = self.state.packages[one.name]
        before = dict(self.state.packages)
        picker, picked = self._choose(picker, usable)
        if picked is None:
            clash = picker.clash(usable) if picker.steps <= STEPS else None
            if clash is not None:
                self.state.clashes.append((clash, install))
            # what is pinned is judged all the same; about the rest nobody can tell
            picked = {w.name: picker.groups(w)[0] for w in usable if w.url or exact(w.spec)}
            for one in usable:
                if one.name not in picked:
                    self._unknown(one, install, places(one, install, self.matrix))
        for name, group in picked.items():
            one = next((w for w in usable if w.name == name), Wanted(name, where=install.where))
            if UNKNOWN in install.extras and not one.url and not exact(one.spec):
                self._unknown(one, install, places(one, install, self.matrix))  # a word that nobody can read may say more
                continue
            self._take(name, group, picker, picked, usable, install, before)

    def _choose(self, picker: Picker, usable: Sequence[Wanted]) -> tuple[Picker, dict[str, Group] | None]:
        """What is taken, and the picker that took it: where nothing names the Python, for the newest that allows the pins."""
        for python in () if self.state.python else self._pythons(picker, usable):
            other = Picker(self.matrix, self.host.platform, python, picker.state, picker.install)
            picked = other.pick(usable)
            if picked is not None:
                self.state.assumed = python
                return other, picked
        return picker, picker.pick(usable)

    def _pythons(self, picker: Picker, usable: Sequence[Wanted]) -> list[str]:
        """The Pythons that have files of every exact pin, newest first; none where all have."""
        pinned = [[o.candidate for g in picker.groups(w) for o in g.offers] for w in usable if w.url or exact(w.spec)]
        pinned += [list(p.candidates) for p in self.state.packages.values() if p.candidates and not p.free]
        every = [p.version for p in self.matrix.pythons() if not p.version.endswith("t")]
        mine = [p for p in every if all(any(runs_on(c, p) for c in rows) for rows in pinned if rows)]
        return sorted(mine, key=parse, reverse=True) if len(mine) < len(every) else []

    def _take(
        self,
        name: str,
        group: Group,
        picker: Picker,
        picked: Mapping[str, Group],
        usable: Sequence[Wanted],
        install: Install,
        before: dict[str, Present],
    ) -> None:
        asked = next((w for w in usable if w.name == name), None)
        by = "" if asked else self._asker(name, picker, picked)[0]
        source = asked or next((w for w in usable if w.name == by), Wanted(name, where=install.where))
        one = asked or Wanted(name, where=source.where, text=source.text)
        where = places(one, install, self.matrix)
        free = not self._settled(name, picker, picked, usable)
        found = present(group, one, install, where, by=by, free=free)
        if all(o.candidate.build == "source" for o in group.offers) and not install.built:
            torch = self.state.packages.get("torch")
            self.state.compiled.append(Compiled(found, install, torch, tuple(self.state.words)))
        old = before.get(name)
        kept = old is not None and old.vendor and held(install, self.image)
        if old is not None and (old.version, old.local) != (found.version, found.local):
            self.state.replaced.append(Replaced(old, found, by or (asked.text if asked else ""), one.where, kept))
        if not kept:
            self.state.packages[name] = found

    def _settled(self, name: str, picker: Picker, picked: Mapping[str, Group], usable: Sequence[Wanted]) -> bool:
        """Whether the requirements allow one version of a package only, by themselves or by what they pin."""
        seen: set[str] = set()
        while name and name not in seen:
            seen.add(name)
            asked = next((w for w in usable if w.name == name), None)
            if asked is not None:
                return bool(asked.url) or exact(asked.spec)
            name, said = self._asker(name, picker, picked)
            if not exact(said):
                return False
        return False

    def _asker(self, name: str, picker: Picker, picked: Mapping[str, Group]) -> tuple[str, str]:
        """The package on whose account another comes along, and its word on it: the one with the strictest."""
        said = [(who, dict(picker.requires(group)).get(name)) for who, group in picked.items()]
        rows = [(who, spec) for who, spec in said if spec is not None]
        return next((row for row in rows if exact(row[1])), rows[0] if rows else ("", ""))

    def _unknown(self, one: Wanted, install: Install, where: Places) -> None:
        """A package about whose build nothing can be said."""
        version = one.spec.lstrip("=") if exact(one.spec) else ""
        version, _, local = version.partition("+")
        nightly = where.nightly or install.pre or bool(version and parse(version).is_devrelease)
        found = Present(
            one.name, one.where, version, local, one.spec, free=not version,
            vendor=not nightly and (bool(version) or where.unknown), nightly=nightly,
            shaky=True, text=one.text or one.name, url=one.url, places=where, install=install,
        )  # fmt: skip
        self.state.packages[one.name] = found

    def _nothing(self, one: Wanted, install: Install, where: Places, picker: Picker) -> None:
        limit = picker.limit(one)
        if limit is not None:
            self.state.clashes.append((Clash(one, limit, one.name, ()), install))
            self._unknown(one, install, where)
            return
        every = self.matrix.candidates(one.name, self.host.platform)
        version = one.spec.lstrip("=").partition("+")[0] if exact(one.spec) else ""
        elsewhere = tuple(dict.fromkeys(c.index for c in every if not version or parse(c.version) == parse(version)))
        if not where.unknown and not one.url:
            self.state.missing.append(Missing(one, install, where, elsewhere))
        self._unknown(one, install, where)
        found = self.state.packages[one.name]
        mine = tuple(c for c in every if c.version == found.version and found.local and c.build == found.local)
        if mine:  # the label tells the build, wherever it is taken from
            kept = tuple(c for c in mine if c.index == mine[0].index)
            self.state.packages[one.name] = replace(found, candidates=kept, vendor=False, shaky=install.maybe)

    # --- locks and conda ----------------------------------------------------------------------------------------------

    def _locked(self, install: Install, wanted: Sequence[Wanted]) -> None:
        """What a lock holds. A name that is there several times (a fork that markers do not settle) stays open."""
        rows: dict[str, list[Wanted]] = {}
        for one in wanted:
            rows.setdefault(one.name, []).append(one)
        for name, ones in rows.items():
            one = ones[0]
            where = places(one, install, self.matrix)
            groups = Picker(self.matrix, self.host.platform, self.state.python, {}, install).groups(one)
            if len(ones) > 1 or not groups or one.vague or not one.spec:
                self._unknown(one, install, where)
                if len(ones) > 1:
                    self.state.packages[name] = replace(self.state.packages[name], version="", local="", spec="")
                continue
            self.state.packages[name] = present(groups[0], one, install, where)

    def _conda(self, install: Install, wanted: Sequence[Wanted]) -> None:
        label = self._conda_label(wanted)
        for one in wanted:
            name = self.tables.conda_names.get(one.name, one.name)
            if name in self.matrix.package_names():
                version = one.spec.lstrip("=").removesuffix(".*") if exact(one.spec.removesuffix(".*")) else ""
                local = label if name == "torch" and version else ""
                text = one.text or one.name
                self.state.packages[name] = Present(
                    name, one.where, version, local, one.spec, vendor=True, conda=True, text=text, shaky=install.maybe
                )

    def _conda_label(self, wanted: Sequence[Wanted]) -> str:
        """`cu113` where a package chooses the CUDA of conda's torch."""
        for one in wanted:
            found = re.fullmatch(r"=*(\d+\.\d+)(?:\.[\d*]+)*", one.spec)
            if one.name in self.tables.conda_cuda and found:
                return "cu" + found[1].replace(".", "")
        return ""
