"""pyproject.toml: dependencies, extras and groups, with the sources of uv and poetry."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from accel_env.judge.files import condalike, requirement
from accel_env.judge.files.errors import broken
from accel_env.judge.files.tomltext import Lines, mapping, parse, rows, text_of, texts
from accel_env.judge.files.values import Document, Install, Scene, Step, Wanted
from accel_env.solve.problem import normalise

_CARET = re.compile(r"\^\s*(\d+)(?:\.(\d+))?(?:\.(\d+))?")


class _Project:
    """One pyproject.toml while it is read."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.table = parse(text, file)
        self.lines = Lines(text)
        self.uv = mapping(mapping(self.table.get("tool")).get("uv"))
        self.poetry = mapping(mapping(self.table.get("tool")).get("poetry"))
        self.project = mapping(self.table.get("project"))
        self.indexes = {text_of(r.get("name")): text_of(r.get("url")) for r in rows(self.uv.get("index"))}
        self.indexes.update({text_of(r.get("name")): text_of(r.get("url")) for r in rows(self.poetry.get("source"))})

    def python(self) -> str:
        """The range of Pythons."""
        said = text_of(self.project.get("requires-python"))
        return said or _poetry_range(text_of(mapping(self.poetry.get("dependencies")).get("python")))

    def listed(self, items: Sequence[str], chosen: str = "", after: str = "") -> list[Wanted]:
        """PEP 508 texts as requirements, each with the sources that uv is told to take it from.

        `chosen`: the extra or group that is switched on. `after`: the key under which the texts stand.
        """
        found: list[Wanted] = []
        start = self.lines.of(after) if after else 0
        for text in items:
            line = self.lines.of(text, start) or self.lines.of(text)
            try:
                wanted = requirement.parse(text, f"{self.file}:{line}")
            except ValueError as error:
                raise broken(self.file, line, str(error), "requirements") from None
            found += self._sourced(wanted, chosen) if wanted else []
        return found

    def _sourced(self, wanted: Wanted, chosen: str) -> list[Wanted]:
        """A requirement once for each source that may hold, and once for none of them."""
        sources = mapping(self.uv.get("sources"))
        named = next((value for name, value in sources.items() if normalise(name) == wanted.name), None)
        found: list[Wanted] = []
        markers: list[str] = []
        for row in rows(named):
            condition = text_of(row.get("extra")) or text_of(row.get("group"))
            if condition and normalise(condition) != normalise(chosen):
                continue
            markers.append(text_of(row.get("marker")))
            found.append(self._from(wanted, row, markers[-1]))
        if found and "" in markers:
            return found
        return [*found, replace(wanted, unless=tuple(markers))]

    def _from(self, wanted: Wanted, row: Mapping[str, Any], marker: str) -> Wanted:
        url = text_of(row.get("url"))
        tags = requirement.wheel(url) if url else None
        both = f"({wanted.markers[0]}) and ({marker})" if wanted.markers else marker
        return replace(
            wanted,
            index=self.indexes.get(text_of(row.get("index")), "") or text_of(row.get("index")),
            url=url,
            spec=requirement.exactly(tags[1]) if tags else wanted.spec,
            vague=bool(row.get("git") or row.get("path") or row.get("workspace")) or bool(url and not tags),
            markers=(both,) if marker else wanted.markers,
        )

    def install(self, wanted: Sequence[Wanted], tool: str) -> Install:
        """The act of installing, with the indexes that hold for everything."""
        uv = rows(self.uv.get("index"))
        default = next((text_of(r.get("url")) for r in uv if r.get("default")), "") or text_of(self.uv.get("index-url"))
        extras = [text_of(r.get("url")) for r in uv if not r.get("explicit") and not r.get("default")]
        extras += texts(self.uv.get("extra-index-url"))
        strategy = text_of(self.uv.get("index-strategy"))
        if tool == "poetry":
            for row in rows(self.poetry.get("source")):
                priority = text_of(row.get("priority")) or ("default" if row.get("default") else "primary")
                url = text_of(row.get("url"))
                default = url if priority == "default" else default
                extras += [url] if priority in ("primary", "secondary", "supplemental") and url else []
        return Install(
            tool,
            tuple(wanted),
            wanted[0].where if wanted else f"{self.file}:1",
            index=default,
            extras=tuple(extras),
            first_index=tool == "uv" and strategy in ("", "first-index"),
            constrained=bool(self.uv.get("constraint-dependencies") or self.uv.get("override-dependencies")),
        )


def read(text: str, file: str) -> Document:
    """The project's dependencies; each extra and group, together with the plain ones, is a scene of its own."""
    project = _Project(text, file)
    plain = project.listed(texts(project.project.get("dependencies")))
    tool = "poetry" if project.poetry else "uv"
    plain += _poetry(project, mapping(project.poetry.get("dependencies")))
    python = project.python()
    scenes = [Scene("the dependencies", file, "list", _steps(project, plain, tool), python=python)]
    rivals = _rivals(project)
    for kind, name, wanted in _sets(project):
        title = f"with the {kind} {name}"
        mine = project.listed(texts(project.project.get("dependencies")), name)
        steps = _steps(project, [*mine, *plain[len(mine) :], *wanted], tool)
        scenes.append(Scene(title, file, "list", steps, python=python, alternative=normalise(name) in rivals))
    pixi = mapping(mapping(project.table.get("tool")).get("pixi"))
    if pixi:
        scenes.append(condalike.pixi(dict(pixi), file, project.lines))
    return Document(file, "pyproject.toml", tuple(scenes))


def _rivals(project: _Project) -> frozenset[str]:
    """The extras and groups of which uv allows one at a time."""
    listed = project.uv.get("conflicts")
    pairs = [row for group in listed for row in rows(group)] if isinstance(listed, list) else []
    return frozenset(normalise(text_of(row.get("extra")) or text_of(row.get("group"))) for row in pairs)


def _sets(project: _Project) -> list[tuple[str, str, list[Wanted]]]:
    """(kind, name, requirements) of the extras and groups."""
    found: list[tuple[str, str, list[Wanted]]] = []
    for name, items in mapping(project.project.get("optional-dependencies")).items():
        found.append(("extra", name, project.listed(texts(items), name, name)))
    for name, items in mapping(project.table.get("dependency-groups")).items():
        found.append(("group", name, project.listed(texts(items), name, name)))
    for name, group in mapping(project.poetry.get("group")).items():
        found.append(("group", name, _poetry(project, mapping(mapping(group).get("dependencies")))))
    return [row for row in found if row[2]]


def _steps(project: _Project, wanted: Sequence[Wanted], tool: str) -> tuple[Step, ...]:
    return (project.install(wanted, tool),) if wanted else ()


def _poetry(project: _Project, table: Mapping[str, Any]) -> list[Wanted]:
    """Poetry's own tables: `torch = {version = "^2.1", source = "pytorch", markers = "..."}`."""
    found: list[Wanted] = []
    for name, value in table.items():
        if name == "python":
            continue
        for row in [{"version": value}] if isinstance(value, str) else rows(value):
            if row.get("optional"):
                continue
            url = text_of(row.get("url"))
            tags = requirement.wheel(url) if url else None
            found.append(
                Wanted(
                    normalise(name),
                    f"=={tags[1]}" if tags else _poetry_range(text_of(row.get("version"))),
                    f"{project.file}:{project.lines.of(name)}",
                    name,
                    url,
                    index=project.indexes.get(text_of(row.get("source")), ""),
                    markers=(text_of(row.get("markers")),) if row.get("markers") else (),
                    vague=bool(row.get("git") or row.get("path")) or bool(url and not tags),
                )
            )
    return found


def _poetry_range(text: str) -> str:
    """`^2.1` and `~2.1` in PEP 440; what has no such form is left open."""
    from accel_env.solve.versions import valid_specifier

    parts: list[str] = []
    for part in (piece.strip() for piece in text.split(",")):
        match = _CARET.fullmatch(part)
        if match:
            numbers = [int(group) for group in match.groups() if group is not None]
            place = next((i for i, n in enumerate(numbers) if n), len(numbers) - 1)
            upper = ".".join(str(n) for n in (*numbers[:place], numbers[place] + 1))
            parts.append(f">={part[1:].strip()},<{upper}")
        elif part.startswith("~") and not part.startswith("~="):
            version = part[1:].strip()
            parts.append(f"=={'.'.join(version.split('.')[:2])}.*" + (f",>={version}" if version.count(".") > 1 else ""))
        elif part and part != "*":
            parts.append(part if part[0] in "<>=!~" else f"=={part}")
    joined = ",".join(parts)
    return joined if valid_specifier(joined) else ""
