"""Lock files: pylock.toml, uv.lock, poetry.lock. Nothing is left to choose in them but the platform."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accel_env.judge.files import requirement
from accel_env.judge.files.errors import broken
from accel_env.judge.files.tomltext import Lines, mapping, parse, rows, text_of, texts
from accel_env.judge.files.values import Document, Install, Scene, Wanted
from accel_env.solve.problem import normalise


def pylock(text: str, file: str) -> Document:
    """A PEP 751 lock."""
    table = parse(text, file)
    if "lock-version" not in table:
        raise broken(file, 1, "a pylock.toml has a `lock-version`", "TOML")
    lines = Lines(text)
    wanted = tuple(
        Wanted(
            normalise(text_of(row.get("name"))),
            _exact(row),
            f"{file}:{lines.header('packages', index)}",
            index=text_of(row.get("index")),
            markers=(text_of(row.get("marker")),) if row.get("marker") else (),
            hashed=_hashed(_files(row)),
            locked=True,
            files=_names(_files(row)),
        )
        for index, row in enumerate(rows(table.get("packages")))
        if text_of(row.get("name"))
    )
    return _document(file, "pylock.toml", wanted, text_of(table.get("requires-python")))


def uv(text: str, file: str) -> Document:
    """A `uv.lock`; packages that are here several times (a fork for each platform or extra) keep their markers."""
    table = parse(text, file)
    if "version" not in table:
        raise broken(file, 1, "a uv.lock starts with a `version`", "TOML")
    lines = Lines(text)
    wanted: list[Wanted] = []
    for index, row in enumerate(rows(table.get("package"))):
        source = mapping(row.get("source"))
        if not text_of(row.get("name")) or any(key in source for key in ("editable", "virtual", "directory")):
            continue
        files = [*rows(row.get("wheels")), *rows(row.get("sdist"))]
        url = text_of(source.get("url"))
        wanted.append(
            Wanted(
                normalise(text_of(row.get("name"))),
                _exact(row),
                f"{file}:{lines.header('package', index)}",
                url=url,
                index=text_of(source.get("registry")),
                markers=tuple(texts(row.get("resolution-markers"))),
                hashed="git" in source or _hashed(files),
                locked=True,
                vague="git" in source or not text_of(row.get("version")),
                files=_names(files),
            )
        )
    return _document(file, "uv.lock", tuple(wanted), text_of(table.get("requires-python")))


def poetry(text: str, file: str) -> Document:
    """A `poetry.lock`."""
    table = parse(text, file)
    if "package" not in table and "metadata" not in table:
        raise broken(file, 1, "a poetry.lock has `[[package]]` and `[metadata]`", "TOML")
    lines = Lines(text)
    elsewhere = mapping(mapping(table.get("metadata")).get("files"))  # locks of poetry 1.0 to 1.2
    wanted: list[Wanted] = []
    for index, row in enumerate(rows(table.get("package"))):
        name = text_of(row.get("name"))
        source = mapping(row.get("source"))
        files = rows(row.get("files")) or rows(elsewhere.get(name))
        if not name or source.get("type") == "directory":
            continue
        marker = text_of(row.get("markers"))
        wanted.append(
            Wanted(
                normalise(name),
                _exact(row),
                f"{file}:{lines.header('package', index)}",
                url=text_of(source.get("url")) if source.get("type") == "url" else "",
                index=text_of(source.get("url")) if source.get("type") == "legacy" else "",
                markers=(marker,) if marker else (),
                hashed=bool(files) and all(row.get("hash") for row in files),
                locked=True,
                vague=source.get("type") == "git",
                files=tuple(text_of(row.get("file")) for row in files),
            )
        )
    return _document(file, "poetry.lock", tuple(wanted), text_of(mapping(table.get("metadata")).get("python-versions")))


def _document(file: str, kind: str, wanted: tuple[Wanted, ...], python: str) -> Document:
    step = Install("uv" if kind == "uv.lock" else "pip", wanted, f"{file}:1", hashes=all(w.hashed for w in wanted), fresh=True)
    return Document(file, kind, (Scene(kind, file, "lock", (step,), python=python),))


def _exact(row: Mapping[str, Any]) -> str:
    return requirement.exactly(text_of(row.get("version")))


def _files(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*rows(row.get("wheels")), *rows(row.get("sdist")), *rows(row.get("archive"))]


def _hashed(files: list[Mapping[str, Any]]) -> bool:
    return all(file.get("hash") or file.get("hashes") for file in files)


def _names(files: list[Mapping[str, Any]]) -> tuple[str, ...]:
    """File names: said, or the end of the URL or path."""
    found = []
    for row in files:
        name = (
            text_of(row.get("name")) or (text_of(row.get("url")) or text_of(row.get("path"))).partition("#")[0].rpartition("/")[2]
        )
        if name:
            found.append(name.replace("%2B", "+"))
    return tuple(found)


def wheels(wanted: Wanted) -> tuple[tuple[str, str, str, str, str], ...]:
    """(name, version, Python tag, ABI tag, platform tag) of the wheels that a lock holds for a package."""
    return tuple(filter(None, (requirement.wheel(name) for name in wanted.files)))
