"""The matrix as the stages see it: typed values, read section by section from the compiled form."""
from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from accel_env.errors import InputError
from accel_env.matrix import codec, compiled, store
from accel_env.matrix.devices import DeviceTable
from accel_env.matrix.types import (
    Absent,
    Answer,
    ArchAlias,
    ArchDriver,
    Artifact,
    Bundle,
    Choice,
    CodeRule,
    DriverFloor,
    DriverName,
    ForwardCompat,
    Inbox,
    InboxKernel,
    Index,
    KindRule,
    KindRun,
    KnownConflict,
    Member,
    NoDriver,
    Over,
    PackageInfo,
    Profile,
    PythonRelease,
    Stack,
    StackRelease,
)
from accel_env.model import Candidate, Fact, Image

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any, TypeVar

    T = TypeVar("T")


def open_matrix(root: Path | None = None, overlays: tuple[Path, ...] = ()) -> Matrix:
    """The matrix in `root` (else ACCEL_ENV_MATRIX, else the installed one) under the overlays, the last one on top.

    InputError where there is none, a file cannot be read, or breaks a rule (all faults at once).
    """
    place = store.locate(str(root) if root else None)
    extra = tuple(os.path.abspath(str(path)) for path in overlays)
    stamp: list[Any] = [(place, extra), store.list_files(place)]
    for path in extra:
        try:
            status = os.stat(path)
        except OSError as problem:
            raise store.unreadable(path, problem) from None
        stamp.append((path, status.st_size, status.st_mtime_ns))
    return Matrix(place, extra, compiled.open_sections(tuple(stamp), lambda: _compile(place, extra)))


def _compile(root: str, overlays: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    from accel_env.matrix.compile import compile_matrix

    return compile_matrix(root, overlays)


class Matrix:
    """Everything that accel-env knows. Values are frozen and read when first asked for."""

    def __init__(self, root: str, overlays: tuple[str, ...], sections: compiled.Sections) -> None:
        self._root, self._overlays, self._sections = root, overlays, sections
        self._kept: dict[str, Any] = {}
        self._parts: dict[int, codec.Parts] = {}
        self.version, self.digest = self._section("head")

    @property
    def root(self) -> str:
        """The folder that the matrix was read from."""
        return self._root

    @property
    def overlays(self) -> tuple[str, ...]:
        """The overlay files, the last one on top."""
        return self._overlays

    def package_names(self) -> frozenset[str]:
        """The distribution names that the matrix models."""
        return frozenset(self._packages())

    def modules(self) -> Mapping[str, str]:
        """Distribution name -> the import name that it owns."""
        return self._made("modules", lambda: {name: info[0] for name, info in self._packages().items()})

    def package(self, name: str) -> PackageInfo:
        """What is said about a package as a whole; InputError where the matrix does not model it."""
        if name not in self._packages():
            raise InputError("package-unknown", f"the matrix has no package `{name}`",
                             hint=f"it has: {', '.join(sorted(self._packages()))}")
        module, summary, absent = self._packages()[name]
        return PackageInfo(name, module, summary, codec.build_all(Absent, absent))

    def platforms(self, name: str) -> tuple[str, ...]:
        """The platforms on which a package has candidates."""
        found: tuple[str, ...] = self._section("platforms").get(name, ())
        return found

    def candidates(self, name: str, platform: str) -> tuple[Candidate, ...]:
        """The builds of a package on a platform, newest release first; empty where there are none."""
        key = f"candidates/{name}/{platform}"
        if key not in self._kept:
            section = self._read(key)
            self._kept[key], both = codec.unpack_candidates(section) if section else ((), {})
            self._parts.update(both)
        found: tuple[Candidate, ...] = self._kept[key]
        return found

    def brought(self, name: str, platform: str) -> tuple[Candidate, ...]:
        """What vendors' images bring of a package, newest first; these are no part of `candidates`."""
        key = f"brought/{name}/{platform}"
        if key not in self._kept:
            section = self._read(key)
            self._kept[key], both = codec.unpack_candidates(section) if section else ((), {})
            self._parts.update(both)
        found: tuple[Candidate, ...] = self._kept[key]
        return found

    def parts(self, candidate: Candidate) -> codec.Parts:
        """The needs of one of `candidates` in two parts: what the host decides, and what other picks decide.

        Equal parts are one object: what is worked out for one holds for all builds that share it.
        """
        return self._parts[id(candidate.needs)]

    def stacks(self) -> Mapping[str, Stack]:
        """Name -> stack."""
        return self._made("stacks built", lambda: {row[0]: _stack(row) for row in self._read("stacks")})

    def stack_release(self, text: str) -> StackRelease | None:
        """The release that `cuda-12.6` names; None for a bare name or an unknown one."""
        name, _, version = text.rpartition("-")
        stack = self.stacks().get(name)
        return next((release for release in stack.releases if release.version == version), None) if stack else None

    def devices(self) -> DeviceTable:
        """The table of products."""
        return DeviceTable(self._section("devices"))

    def pythons(self) -> tuple[PythonRelease, ...]:
        """The Pythons in order of preference."""
        return self._made("pythons built", lambda: codec.build_all(PythonRelease, self._section("pythons")))

    def images(self) -> tuple[Image, ...]:
        """Base, builder and vendor images."""
        return self._made("images built", lambda: codec.build_all(Image, self._section("images")))

    def indexes(self) -> Mapping[str, Index]:
        """Name -> index."""
        return self._made("indexes built", lambda: {row[0]: Index(*row) for row in self._section("indexes")})

    def index_url(self, index: str) -> str:
        """The URL of a build's index (`pytorch:cu126`); `pypi` and `image` stay what they are. InputError where unknown."""
        name, _, path = index.partition(":")
        if name in ("pypi", "image") and name not in self.indexes():
            return name
        if name not in self.indexes():
            raise InputError("index-unknown", f"there is no index `{name}` (of `{index}`) in indexes.yaml",
                             hint=f"it has: {', '.join(sorted(self.indexes()))}")
        url = self.indexes()[name].url.rstrip("/")
        return f"{url}/{path}" if path else url

    def conflicts(self) -> tuple[KnownConflict, ...]:
        """Pairs that must not be together though no metadata says so."""
        return self._made("conflicts built", lambda: codec.build_all(KnownConflict, self._section("conflicts")))

    def clashing(self) -> tuple[str, ...]:
        """The distributions of which some releases exclude releases of others by what both require outside the matrix."""
        found: tuple[str, ...] = self._section("beside")
        return found

    def beside(self, name: str, version: str) -> tuple[tuple[str, str, str, str], ...]:
        """What may be beside a release, where that is less than anything: (distribution, specifier, `present`|`absent`, fact)."""
        found: tuple[tuple[str, str, str, str], ...] = (self._section(f"beside/{name}") or {}).get(version, ())
        return found

    def profiles(self) -> Mapping[str, Profile]:
        """Name -> named host."""
        return {row[0]: Profile(*row) for row in self._section("profiles")}

    def bundles(self) -> Mapping[str, Bundle]:
        """Name -> named set of asks."""
        return {row[0]: _bundle(row) for row in self._section("bundles")}

    def facts(self) -> tuple[Fact, ...]:
        """Every fact, sorted by file."""
        return tuple(Fact(*row) for stem in self._section("facts") for row in self._section(f"facts/{stem}").values())

    def fact(self, id: str) -> Fact:
        """The statement behind a full id (`torch/2.14.1:arch-cu130`); InputError where there is none."""
        stem, _, _ = id.rpartition(":")
        row = (self._section(f"facts/{stem}") or {}).get(id)
        if row is None:
            raise InputError("fact-missing", f"the matrix names the fact `{id}`, but {stem or 'no file'} holds none of that name",
                             hint="`accel-env matrix lint` lists all such places")
        return Fact(*row)

    def document(self, name: str) -> Mapping[str, Any]:
        """The plain mapping of a file that one stage alone reads (`closure`), without its facts; empty where there is none."""
        found: Mapping[str, Any] = self._section(f"documents/{name}") or {}
        return found

    def artifact(self, index: str, filename: str) -> Artifact | None:
        """What is known about a file of an index; None where nobody has seen it."""
        row = (self._section(f"artifacts/{index}") or {}).get(filename)
        return Artifact(*row) if row else None

    def artifact_files(self, index: str) -> Mapping[str, Artifact]:
        """File name -> artifact of one index; empty where none is known."""
        return {name: Artifact(*row) for name, row in (self._section(f"artifacts/{index}") or {}).items()}

    def artifact_indexes(self) -> tuple[str, ...]:
        """The indexes with known files."""
        found: tuple[str, ...] = self._section("artifacts")
        return found

    def inspected(self, name: str) -> Mapping[tuple[str, str, str, str, str], tuple[str, ...]]:
        """(version, build, variant, index, platform) -> the wheel tags whose file was read and agrees; empty where none was."""
        found: Mapping[tuple[str, str, str, str, str], tuple[str, ...]] = self._section(f"inspected/{name}") or {}
        return found

    def _made(self, key: str, make: Callable[[], T]) -> T:
        """A value that is built once: callers must not change it."""
        if key not in self._kept:
            self._kept[key] = make()
        found: T = self._kept[key]
        return found

    def _packages(self) -> dict[str, Any]:
        found: dict[str, Any] = self._section("packages")
        return found

    def _section(self, name: str) -> Any:
        if name not in self._kept:
            self._kept[name] = self._read(name)
        return self._kept[name]

    def _read(self, name: str) -> Any:
        try:
            return self._sections.get(name)
        except compiled.Torn:
            # The cache was damaged or cleared under us: compile again, in memory.
            self._sections = compiled.Sections(blob=compiled.pack(_compile(self._root, self._overlays)[1]))
            return self._sections.get(name)


def _bundle(row: tuple[Any, ...]) -> Bundle:
    name, summary, members, fact = row
    return Bundle(name, summary, tuple(Member(codec.build_all(Choice, choices), *rest) for choices, *rest in members), fact)


def _stack(row: tuple[Any, ...]) -> Stack:
    name, vendor, args, env, fact, rules, aliases, names, releases, drivers, compat, kinds, inbox, answer, note, *rest = row
    over, several, runs, none = rest
    return Stack(
        name, vendor, args, env, fact, codec.build_all(CodeRule, rules), codec.build_all(ArchAlias, aliases),
        codec.build_all(DriverName, names), tuple(_stack_release(release) for release in releases),
        codec.build_all(ArchDriver, drivers), ForwardCompat(*compat) if compat else None, codec.build_all(KindRule, kinds),
        Inbox(inbox[0], inbox[1], codec.build_all(InboxKernel, inbox[2])) if inbox else None,
        Answer(*answer) if answer else None, note, Over(*over) if over else None, several,
        codec.build_all(KindRun, runs), codec.build_all(NoDriver, none),
    )


def _stack_release(row: tuple[Any, ...]) -> StackRelease:
    version, floors, *rest = row
    return StackRelease(version, {system: DriverFloor(*floor) for system, floor in floors.items()}, *rest)
