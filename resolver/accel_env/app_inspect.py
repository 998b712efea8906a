"""`matrix verify`: one artifact read again, against its hash, the matrix, and what was read before."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from accel_env.errors import ClosureError, UsageError

if TYPE_CHECKING:
    from accel_env.matrix.inspected import Reading
    from accel_env.matrix.load import Matrix
    from accel_env.model import Candidate

Json = dict[str, Any]
Say = Callable[[str], None]
_PREFERRED = ("linux_x86_64",)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What `matrix verify` was asked, empty for free choice. `file`: a local wheel; `quick`: by range, the bytes not hashed."""

    spec: str
    build: str = ""
    python: str = ""
    platform: str = ""
    index: str = ""
    file: str = ""
    quick: bool = False


def verify(wanted: Wanted, matrix: Matrix, say: Say) -> Json:
    """The comparison; `status` is `agrees`, `differs`, `unproven` (what it says agrees, but nobody gives its hash) or `refused`
    (another hash: not read). ClosureError where the artifact is another one, cannot be had or is broken."""
    from accel_env.inspect.elf import check_tools

    candidates, tag = _choose(wanted, matrix)
    check_tools()
    name, place, listed = _find(wanted, candidates[0], tag, matrix)
    before = _before(matrix, candidates[0], name)
    expected = _expected(listed, candidates[0].index, name, before, matrix)
    answer: Json = {"schema": "accel-env/verified/1", "file": name, "index": candidates[0].index, "build": candidates[0].build}
    with _opened(place, wanted.quick, say) as (stream, found):
        other = {who: value for who, value in expected.items() if found and value != found}
        rivals = len(set(expected.values())) > 1
        answer |= {"sha256": {"found": found or "not computed", "expected": expected}}
        if other or rivals:
            lines = [f"sha256 {value} says {who}" for who, value in {**expected, "the file": found}.items() if value]
            return answer | {"status": "refused", "differences": lines, "agrees": []}
        agreed, differs = _compare(stream, name, candidates, found or next(iter(expected.values()), ""), before)
    head = ["sha256" if found and expected else "sha256 as listed, the bytes were not hashed" if expected else ""]
    agreed = [line for line in (*head, *agreed) if line]
    if not expected:
        lines = [*differs, f"sha256 {found} is nobody's word for this file: whether it is the published one is not known"]
        return answer | {"status": "differs" if differs else "unproven", "agrees": agreed, "differences": lines}
    return answer | {"status": "differs" if differs else "agrees", "agrees": agreed, "differences": differs}


def _expected(listed: str, index: str, name: str, before: Reading | None, matrix: Matrix) -> dict[str, str]:
    """Who gives which hash of the file."""
    artifact = matrix.artifact(index, name)
    known = (("the index", listed), ("the matrix", artifact and artifact.sha256), ("the reading", before and before.sha256))
    return {who: value for who, value in known if value}


def _choose(wanted: Wanted, matrix: Matrix) -> tuple[list[Candidate], str]:
    """(the candidates that one file holds, its tag); UsageError where nothing fits."""
    from accel_env.solve.versions import allows

    name, spec, label = _split(wanted.spec)
    matrix.package(name)
    offered = tuple(row.version for row in matrix.pythons())
    if wanted.python and wanted.python not in offered:
        raise UsageError(
            "python-unknown", f"the matrix has no Python `{wanted.python}`", hint=f"it has: {', '.join(offered)}"
        )
    file = os.path.basename(wanted.file)
    platforms = _platforms(wanted, name, spec)
    build = wanted.build or label
    for platform in platforms:
        rows = [
            row for row in matrix.candidates(name, platform)
            if row.index != "image" and allows(spec, row.version) and (not build or build in (row.build, row.variant))
        ]  # fmt: skip
        for row in sorted(rows, key=lambda row: not _is_known(matrix, row, file)) if file else rows:
            tag = _tag(row, (wanted.python,) if wanted.python else offered, file)
            if tag:
                same = (row.version, row.build, row.index)
                return [item for item in rows if (item.version, item.build, item.index) == same and tag in item.tags], tag
    raise UsageError(
        "nothing-to-verify",
        f"the matrix knows no file of {wanted.spec} for {', '.join(platforms)}" + (f", build {build}" if build else "")
        + (f", that is named as {file}" if file else ""),
        hint=f"`accel-env matrix show {name}` lists its builds; --platform, --python and --build choose one",
    )


def _split(spec: str) -> tuple[str, str, str]:
    """(name, specifier, build) of what was asked."""
    import re

    from accel_env.solve.story import split

    try:
        if re.match(r"\s*[A-Za-z0-9]", spec):
            return split(spec)
    except UsageError:
        pass
    raise UsageError("bad-package", f"`{spec}` is no release of a package", hint="write PKG, PKG==VERSION or PKG==VERSION+BUILD")


def _platforms(wanted: Wanted, name: str, spec: str) -> tuple[str, ...]:
    """Where to look: of a local file where it says, once it is known to be of the release that was asked for."""
    if not wanted.file:
        return (wanted.platform,) if wanted.platform else _PREFERRED
    from accel_env.lock.artifacts import normalise
    from accel_env.matrix.expand import wheel_name
    from accel_env.solve.versions import allows
    from accel_env.system.files import check_file

    file = os.path.basename(wanted.file)
    wheel = wheel_name(file)
    hint = "name the file as it was published: the name of a wheel says what it is of"
    if wheel is None:
        raise UsageError("no-wheel-name", f"`{file}` is no name of a wheel", hint=hint)
    if normalise(wheel.name) != name or not allows(spec, wheel.version):
        what = f"{file} is of {wheel.name} {wheel.version}, and {wanted.spec} was asked for"
        raise ClosureError("another-artifact", what, hint="name that release, or the file of this one")
    check_file(wanted.file)
    every = tuple(sorted(wheel.platforms, key=lambda place: (place not in _PREFERRED, place)))
    return (wanted.platform,) if wanted.platform else every or _PREFERRED


def _tag(row: Candidate, pythons: tuple[str, ...], file: str) -> str:
    """The tag under which a build is taken; of a file, one that its name has too. Empty where there is none."""
    from accel_env.lock.artifacts import best_file
    from accel_env.matrix.expand import same_version, wheel_name
    from accel_env.model import Pick
    from accel_env.solve.versions import best_tag

    tags = row.tags
    if file:
        wheel = wheel_name(file)
        if wheel is None or not same_version(wheel.version, row.version):
            return ""
        tags = tuple(tag for tag in tags if best_file(Pick(row, tag), (file,), ""))
    return next((tag for python in pythons if (tag := best_tag(tags, python))), "")


def _is_known(matrix: Matrix, row: Candidate, file: str) -> bool:
    return bool(matrix.artifact(row.index, file) or _before(matrix, row, file))


def _find(wanted: Wanted, candidate: Candidate, tag: str, matrix: Matrix) -> tuple[str, str, str]:
    """(file name, path or URL, hash that the index gives)."""
    from accel_env.inspect.shelf import list_files
    from accel_env.lock.artifacts import best_file, choose, normalise
    from accel_env.model import Pick

    if wanted.file:
        file = os.path.basename(wanted.file)
        listing = list_files(wanted.index, normalise(candidate.name)) if wanted.index else ()
        return file, wanted.file, next((row.sha256 for row in listing if row.name == file), "")
    pick = Pick(candidate, tag)
    if candidate.index != "pypi" and not wanted.index:
        chosen = choose(pick, "", matrix)
        if chosen.asset:
            return chosen.filename, chosen.url, ""
    index = wanted.index or (_own_index() if candidate.index == "pypi" else matrix.index_url(candidate.index))
    files = {file.name: file for file in list_files(index, normalise(candidate.name))}
    name = best_file(pick, files, "")
    if not name:
        raise ClosureError(
            "artifact-missing", f"{index} lists no file of {candidate.label} for {tag} on {candidate.platform}",
            hint="it may have been withdrawn; --index names another index, --file a local copy",
        )  # fmt: skip
    return name, files[name].url, files[name].sha256


def _own_index() -> str:
    """The user's own package index, as `lock` takes it."""
    from accel_env.inspect.shelf import default_index
    from accel_env.lock.settings import environment, settings
    from accel_env.system.real import RealSystem

    with tempfile.TemporaryDirectory() as scratch:
        config = Path(scratch) / "uv.toml"
        config.write_text(settings(RealSystem()), encoding="utf-8")
        return default_index(environment(os.environ), str(config))


class _opened:
    """The wheel at a path or URL and its sha256; the hash is empty where it is read by range."""

    def __init__(self, place: str, quick: bool, say: Say) -> None:
        self._place, self._quick, self._say = place, quick, say

    def __enter__(self) -> tuple[IO[bytes], str]:
        import hashlib

        from accel_env.inspect.source import download, open_wheel

        if "://" not in self._place or self._quick:
            self._stream = open_wheel(self._place, self._say)
            if "://" in self._place:
                return self._stream, ""
            digest = hashlib.sha256()
            while chunk := self._stream.read(1 << 20):
                digest.update(chunk)
            self._stream.seek(0)
            return self._stream, digest.hexdigest()
        self._say(f"downloading {self._place.rpartition('/')[2]}")
        self._stream = tempfile.TemporaryFile()
        found = download(self._place, self._stream)
        self._stream.seek(0)
        return self._stream, found

    def __exit__(self, *_: object) -> None:
        self._stream.close()


def _before(matrix: Matrix, candidate: Candidate, name: str) -> Reading | None:
    """The reading of a file that the matrix holds."""
    from accel_env.matrix.inspected import read_readings

    found = read_readings(matrix.root, candidate.name)
    return next((item for item in found if (item.index, item.filename) == (candidate.index, name)), None)


def _compare(
    stream: IO[bytes], name: str, candidates: list[Candidate], sha256: str, before: Reading | None
) -> tuple[list[str], list[str]]:
    """(what agrees, what differs)."""
    from accel_env.inspect.record import record
    from accel_env.inspect.wheel import inspect_wheel
    from accel_env.matrix.agree import checks_of
    from accel_env.matrix.inspected import reading_of

    wheel = inspect_wheel(stream, name)
    row = record(wheel)
    reading = reading_of(candidates[0].name, candidates[0].index, name, {"sha256": sha256, "size": wheel.size, "held": row})
    agreed: list[str] = []
    differs: list[str] = []
    for candidate in candidates:
        label = candidate.variant or candidate.build
        for check in checks_of(candidate, reading):
            line = f"{label}: {check.subject} {check.documented}"
            if check.subject == "requires":
                differs += [f"{label}: {line}" for line in _requirements(candidate, wheel.metadata)]
            (agreed if check.agrees else differs).append(line if check.agrees else f"{line}, the file says {check.read}")
    if before is not None:
        changes = list(_changes(before, reading))
        differs += changes
        agreed += [] if changes else [f"the reading of {before.read}"]
    return list(dict.fromkeys(agreed)), list(dict.fromkeys(differs))


def _requirements(candidate: Candidate, metadata: tuple[tuple[str, str], ...]) -> Iterator[str]:
    """The requirements that only the matrix or only METADATA has."""
    from accel_env.matrix.inspected import plain_requirements

    ours = plain_requirements(candidate.requires)
    theirs = plain_requirements(value for key, value in metadata if key == "Requires-Dist")
    yield from (f"the matrix alone requires {text}" for text in sorted(ours - theirs))
    yield from (f"METADATA alone requires {text}" for text in sorted(theirs - ours))


def _changes(before: Reading, now: Reading) -> Iterator[str]:
    """What the earlier reading has otherwise. Which torch releases fit is worked out against all of them, and left aside."""
    from accel_env.matrix.inspected import plain

    old, new = plain(before.held), plain(now.held)
    yield from _unlike(old, new)


def _unlike(old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[str]:
    for key in sorted({*old, *new}):
        if old.get(key) != new.get(key):
            yield f"{key}: {old.get(key, 'nothing')} was read before, now {new.get(key, 'nothing')}"
