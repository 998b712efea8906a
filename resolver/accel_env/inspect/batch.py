"""All wheels that plans can pick -> `matrix/inspected/<package>.json`. What was read is kept aside, so that a run can go on."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accel_env.errors import AccelEnvError
from accel_env.inspect import kept
from accel_env.inspect.record import Exports, exports_of, names_digest, record
from accel_env.inspect.shelf import File, list_files
from accel_env.inspect.source import open_wheel
from accel_env.inspect.wheel import Library, Wheel, inspect_wheel
from accel_env.matrix.expand import wheel_name

if TYPE_CHECKING:
    from accel_env.matrix.expand import WheelName
    from accel_env.matrix.load import Matrix

Json = dict[str, Any]
Say = Callable[[str], None]
SCHEMA = "accel-env/inspected/1"
SOURCE = "ELF files, device code and METADATA of the wheels, read by scripts/inspect_wheel.py"
_PLATFORMS = ("linux_x86_64", "linux_aarch64")
_TORCH = "torch"


@dataclass(slots=True)
class Batch:
    """What to read and where it goes. `tags`: the Pythons that count (and every tag that fits several); empty for all."""

    matrix: Matrix
    index: str
    url: str
    cache: Path
    target: Path
    day: str
    tags: tuple[str, ...] = ()
    say: Say = print
    torches: dict[str, list[Exports]] = field(default_factory=dict)

    def read(self, package: str) -> int:
        """Reads what is missing of a package; gives the number of files read. A file that cannot be read is told and left out."""
        count = 0
        for file in self._missing(package):
            try:
                with open_wheel(file.url, self.say) as stream:
                    wheel = inspect_wheel(stream, file.name, known=self._known(package, file.name))
            except AccelEnvError as problem:
                self.say(f"left out: {problem.message}")
                continue
            self._keep(package, file, wheel)
            count += 1
            self.say(f"read {file.name}")
        return count

    def write(self, package: str) -> int:
        """Writes the file of a package from all that was kept; gives the number of wheels in it."""
        before = self._before(package)
        contents: dict[str, Json] = dict(before.get("contents", {}))
        indexes: dict[str, Json] = dict(before.get("indexes", {}))
        files: dict[str, Json] = dict(indexes.get(self.index, {}))
        for path in sorted((self.cache / "wheels" / package).glob("*.json")):
            row = json.loads(path.read_text(encoding="utf-8"))
            held = record(self._wheel(package, row), self._torches_for(row["filename"]))
            key = names_digest([json.dumps(held, sort_keys=True)])[:10]
            contents[key] = held
            files[row["filename"]] = {"sha256": row["sha256"], "size": row["size"], "read": row["read"], "contents": key}
        if files:
            from accel_env.system.files import write_file

            self.target.mkdir(exist_ok=True)
            indexes[self.index] = files
            used = {row["contents"] for rows in indexes.values() for row in rows.values()}
            contents = {key: held for key, held in contents.items() if key in used}
            write_file(str(self.target / f"{package}.json"), file_text(package, contents, indexes))
        return len(files)

    def _before(self, package: str) -> Json:
        """What the file of a package holds already."""
        try:
            found: Json = json.loads((self.target / f"{package}.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        return found

    def _missing(self, package: str) -> Iterator[File]:
        from packaging.version import Version

        wanted = _wanted(self.matrix, package, self.index, self.tags)
        known = self._before(package).get("indexes", {}).get(self.index, {})
        found = []
        for file in list_files(self.url, package):
            wheel = wheel_name(file.name)
            if wheel is None or not file.sha256 or "musllinux" in file.name or not _keys(wheel) & wanted:
                continue
            same = known.get(file.name, {}).get("sha256") == file.sha256
            if not same and not self._row(package, file.name).exists():
                found.append((Version(wheel.version), file.name, file))
        yield from (file for _, _, file in sorted(found, key=lambda row: row[:2], reverse=True))

    def _row(self, package: str, filename: str) -> Path:
        return self.cache / "wheels" / package / f"{filename}.json"

    def _library(self, package: str, filename: str, name: str, size: int, crc: int) -> Path:
        wheel = wheel_name(filename)
        release = f"{package}-{wheel.version if wheel else ''}"
        return self.cache / "libs" / release / f"{crc:08x}-{size}-{name.rpartition('/')[2]}.json"

    def _known(self, package: str, filename: str) -> Callable[[str, int, int], Library | None]:
        """Libraries of the same release that were read out of another file: same name, length and CRC-32."""

        def known(name: str, size: int, crc: int) -> Library | None:
            path = self._library(package, filename, name, size, crc)
            if not path.exists():
                return None
            found = kept.library_of(json.loads(path.read_text(encoding="utf-8")))
            found.name = name
            return found

        return known

    def _keep(self, package: str, file: File, wheel: Wheel) -> None:
        for library in wheel.libraries:
            path = self._library(package, file.name, library.name, library.size, library.crc)
            if not path.exists():
                _write(path, kept.library_row(library))
        _write(self._row(package, file.name), {**kept.wheel_row(wheel), "sha256": file.sha256, "read": self.day})

    def _wheel(self, package: str, row: Json) -> Wheel:
        known = self._known(package, row["filename"])
        libraries = [known(name, size, crc) for name, size, crc in row["libraries"]]
        return kept.wheel_of(row, tuple(library for library in libraries if library is not None))

    def _torches_for(self, filename: str) -> list[Exports]:
        """The torch releases whose symbols are known on the platform of a file, oldest first."""
        wheel = wheel_name(filename)
        platforms = set(wheel.platforms) & set(_PLATFORMS) if wheel else set()
        if len(platforms) != 1:
            return []
        (platform,) = platforms
        if platform not in self.torches:
            self.torches[platform] = list(self._exports(platform))
        return self.torches[platform]

    def _exports(self, platform: str) -> Iterator[Exports]:
        from packaging.version import Version

        rows: dict[str, Path] = {}
        for path in sorted((self.cache / "wheels" / _TORCH).glob("*.json")):
            wheel = wheel_name(path.name.removesuffix(".json"))
            if wheel and platform in wheel.platforms:
                rows.setdefault(wheel.version, path)
        for version in sorted(rows, key=Version):
            row = json.loads(rows[version].read_text(encoding="utf-8"))
            yield exports_of(self._wheel(_TORCH, row), version)


def _wanted(matrix: Matrix, package: str, index: str, tags: tuple[str, ...]) -> set[tuple[str, str, str]]:
    """(version, platform, tag) of the files that plans can pick."""
    found: set[tuple[str, str, str]] = set()
    for platform in _PLATFORMS:
        for candidate in matrix.candidates(package, platform):
            if candidate.index == index:
                listed = [tag for tag in candidate.tags if not tags or tag in tags or not re.fullmatch(r"cp\d+t?", tag)]
                found.update((candidate.version, platform, tag) for tag in listed or candidate.tags[-1:])
    return found


def _keys(wheel: WheelName) -> set[tuple[str, str, str]]:
    return {(wheel.version, platform, tag) for platform in wheel.platforms for tag in wheel.tags}


def _write(path: Path, row: Json) -> None:
    from accel_env.system.files import write_file

    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(str(path), json.dumps(row))


def file_text(package: str, contents: Json, indexes: dict[str, Json]) -> str:
    """The file of a package: sorted, an entry a line."""
    head = f'{{"schema": {json.dumps(SCHEMA)}, "package": {json.dumps(package)},\n "source": {json.dumps(SOURCE)},\n'
    body = [' "contents": {\n' + _lines(contents, "  ") + "},"]
    inner = [f"  {json.dumps(index)}: {{\n" + _lines(files, "   ") + "}" for index, files in sorted(indexes.items())]
    return head + "\n".join([*body, ' "indexes": {', ",\n".join(inner)]) + "}}\n"


def _lines(rows: Json, indent: str) -> str:
    return ",\n".join(f"{indent}{json.dumps(key)}: {json.dumps(rows[key], sort_keys=True)}" for key in sorted(rows))


def packages_of(matrix: Matrix, names: Iterable[str]) -> list[str]:
    """The packages to read: those named, else all of the matrix, torch first since the others are tried against its symbols."""
    chosen = list(names) or sorted(matrix.package_names())
    return sorted(chosen, key=lambda name: (name != _TORCH, name))
