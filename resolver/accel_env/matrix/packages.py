"""A package file as typed values: one document, its releases and builds, before they are spread over platforms."""
from __future__ import annotations

from dataclasses import dataclass

from accel_env.matrix import checks
from accel_env.matrix.read import Row
from accel_env.matrix.types import Absent
from accel_env.model import Need, Subject

_WHEN = ("always", "present", "absent")


@dataclass(frozen=True, slots=True)
class Build:
    """One build of a release; `requires` None: the release's list."""

    build: str
    variant: str
    index: str
    platforms: tuple[str, ...]
    stack: str
    tags: tuple[str, ...]
    requires: tuple[str, ...] | None
    provides: tuple[tuple[str, str], ...]
    rank: int
    tag: str
    note: str
    extras: tuple[str, ...]
    needs: tuple[Need, ...]
    fact: str
    path: str


@dataclass(frozen=True, slots=True)
class Release:
    """One release; `fact` stands behind date, requires_python and requires."""

    version: str
    date: str
    requires_python: str
    requires: tuple[str, ...]
    fact: str
    builds: tuple[Build, ...]
    path: str


@dataclass(frozen=True, slots=True)
class Package:
    """One package file. `file` is its path in the matrix, or of the overlay that holds it."""

    name: str
    module: str
    summary: str
    absent: tuple[Absent, ...]
    releases: tuple[Release, ...]
    file: str
    overlay: bool = False


def parse_package(row: Row, *, overlay: bool = False) -> Package:
    """The package in a document whose `schema` and `facts` were read already."""
    name = row.text("package", check=checks.distribution)
    module = row.text("module")
    summary = row.text("summary")
    absent = tuple(_absent(item) for item in row.rows("absent"))
    releases = tuple(_release(item, name) for item in row.rows("releases", required=True))
    row.close()
    return Package(name, module, summary, absent, releases, row.file, overlay)


def _absent(row: Row) -> Absent:
    found = Absent(row.text("stack"), row.text("text"), row.fact(), row.texts("archs", check=checks.arch))
    row.close()
    return found


def _release(row: Row, name: str) -> Release:
    found = Release(
        version=row.text("version", check=checks.version),
        date=row.optional("date", checks.date),
        requires_python=row.optional("requires_python", checks.specifier),
        requires=row.texts("requires", check=checks.requirement),
        fact=row.fact(),
        builds=tuple(_build(item, name) for item in row.rows("builds", required=True)),
        path=row.path,
    )
    row.close()
    return found


def _build(row: Row, name: str) -> Build:
    needs = row.maybe("needs")
    platforms = row.texts("platforms", required=True, check=checks.platform)
    tags = row.texts("tags", required=True, check=checks.tag)
    for key, value in (("platforms", platforms), ("tags", tags)):
        if key in row and not value:
            row.fault(key, "must name at least one")
    found = Build(
        build=row.text("build"),
        variant=row.optional("variant"),
        index=row.text("index"),
        platforms=platforms,
        stack=row.optional("stack"),
        tags=tags,
        requires=row.texts("requires", check=checks.requirement) if "requires" in row else None,
        provides=tuple(sorted(row.pairs("provides").items())),
        rank=row.whole("rank") or 0,
        tag=row.optional("tag"),
        note=row.optional("note"),
        extras=row.texts("extras", check=checks.distribution),
        needs=_needs(needs, name) if needs else (),
        fact=row.fact(),
        path=row.path,
    )
    row.close()
    return found


def _needs(row: Row, name: str) -> tuple[Need, ...]:
    found: list[Need] = []
    if published := row.maybe("published"):
        found.append(_published(published, name))
    arch = row.maybe("arch")
    code = _arch(arch) if arch else None
    if code:
        found.append(code)
    if "libraries" in row and code is None:
        row.fault("", "`libraries` stands beside `arch`, which is missing")
    found.extend(_libraries(item, code) for item in row.one_or_more("libraries"))
    for subject, key in ((Subject.LIBC, "libc"), (Subject.LIBSTDCXX, "libstdcxx")):
        if inner := row.maybe(key):
            found.append(_floor(inner, subject))
    for subject, key in ((Subject.KERNEL, "kernel"), (Subject.DRIVER, "driver")):
        if inner := row.maybe(key):
            found.append(_allows(inner, subject))
    if torch := row.maybe("torch"):
        found.append(_torch(torch))
    found.extend(_package(item) for item in row.rows("packages"))
    row.close()
    return tuple(found)


def _published(row: Row, name: str) -> Need:
    """Doubtful existence is a need on the package itself that nobody can vouch for."""
    if not row.flag("unknown"):
        row.fault("unknown" if "unknown" in row else "", "says nothing: write `unknown: true`, or leave it all out")
    found = Need(Subject.PACKAGE, row.fact(), name=name, unknown=True)
    row.close()
    return found


def _arch(row: Row) -> Need:
    unknown = row.flag("unknown")
    code = row.texts("code", check=checks.arch)
    jit = row.texts("ptx", check=checks.arch) + row.texts("jit", check=checks.arch)
    if unknown == bool(code or jit):
        row.fault("", "needs either lists (`code`, `ptx`, `jit`) or `unknown: true`")
    found = Need(Subject.ARCH, row.fact(), values=code, jit=jit, soft=row.flag("soft"), unknown=unknown)
    row.close()
    return found


def _libraries(row: Row, arch: Need | None) -> Need:
    """A second need on the architecture: the same lists less `lacks`, so that a refusal names the libraries' fact."""
    lacks = row.texts("lacks", required=True, check=checks.arch)
    fact, soft = row.fact(), row.flag("soft")
    row.close()
    lists = arch or Need(Subject.ARCH, fact)
    return Need(Subject.ARCH, fact, name="libraries", values=lists.values, jit=lists.jit, lacks=lacks, soft=soft,
                unknown=lists.unknown)


def _floor(row: Row, subject: Subject) -> Need:
    """`{glibc: "2.28"}` is at least that version of that family."""
    families = ("glibc", "musl") if subject is Subject.LIBC else ("glibcxx",)
    named = [(family, row.optional(family, checks.version)) for family in families if family in row]
    unknown = row.flag("unknown")
    if len(named) + unknown != 1:
        row.fault("", f"must hold one of: {', '.join(families)}, unknown")
    family, floor = named[0] if named else (families[0], "")
    found = Need(subject, row.fact(), allows=f">={floor}" if floor else "", name=family, soft=row.flag("soft"), unknown=unknown)
    row.close()
    return found


def _allows(row: Row, subject: Subject) -> Need:
    unknown = row.flag("unknown")
    allows = row.text("allows", required=not unknown, check=checks.specifier)
    found = Need(subject, row.fact(), allows=allows, soft=row.flag("soft"), unknown=unknown)
    row.close()
    return found


def _torch(row: Row) -> Need:
    unknown = row.flag("unknown")
    found = Need(
        Subject.TORCH, row.fact(), name="torch",
        allows=row.optional("allows", checks.specifier),
        values=row.texts("builds"),
        abi=tuple(sorted(row.pairs("abi", check=checks.specifier_or_version).items())),
        when=row.one_of("when", _WHEN[:2], default="always"),
        soft=row.flag("soft"), unknown=unknown,
    )
    row.close()
    return found


def _package(row: Row) -> Need:
    found = Need(
        Subject.PACKAGE, row.fact(),
        name=row.text("name", check=checks.distribution),
        allows=row.optional("allows", checks.specifier),
        when=row.one_of("when", _WHEN, default="always"),
        soft=row.flag("soft"), unknown=row.flag("unknown"),
    )
    row.close()
    return found
