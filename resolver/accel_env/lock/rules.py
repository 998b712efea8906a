"""The matrix's rules for a closure (`closure.yaml`), typed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import translate
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from accel_env.matrix.read import Row

DOCUMENT = "closure"
FILE = f"{DOCUMENT}.yaml"


@dataclass(frozen=True, slots=True)
class Forbid:
    """Names (patterns with `*`) that must not be installed from PyPI on the stacks; `stacks` empty: on any stack."""

    stacks: tuple[str, ...]
    names: tuple[str, ...]
    but: tuple[str, ...]
    why: str
    fact: str

    def hits(self, name: str, stack: str) -> bool:
        """Whether the package `name` is out of place on `stack`."""
        return (not self.stacks or stack in self.stacks) and name not in self.but and _named(name, self.names)


@dataclass(frozen=True, slots=True)
class Stub:
    """Names (patterns with `*`) under which PyPI holds nothing of use; `real` says where the real one is."""

    names: tuple[str, ...]
    why: str
    real: str
    fact: str

    def hits(self, name: str) -> bool:
        """Whether the package `name` is one."""
        return _named(name, self.names)


@dataclass(frozen=True, slots=True)
class Exact:
    """Packages that the asker must pin to one version."""

    names: tuple[str, ...]
    why: str
    fact: str


@dataclass(frozen=True, slots=True)
class StandsFor:
    """Packages that own the import name of `provides`: a pick of theirs is what a requirement on `provides` gets."""

    names: tuple[str, ...]
    provides: str
    why: str
    fact: str


@dataclass(frozen=True, slots=True)
class OsFloor:
    """The oldest release of an operating system that the wheels of a platform are for; `os` is its name for people."""

    platform: str
    os: str
    release: str
    fact: str


@dataclass(frozen=True, slots=True)
class Bound:
    """A requirement on a package that nobody asked for: releases outside it fit no other package here."""

    requirement: str
    why: str
    fact: str


@dataclass(frozen=True, slots=True)
class OneMajor:
    """Packages that tell the stack's major: by a number in the name, or by their own version; those in `but` tell nothing."""

    stack: str
    suffixed: tuple[str, ...]
    versioned: tuple[str, ...]
    why: str
    fact: str
    but: tuple[str, ...] = ()

    def major_of(self, name: str, version: str) -> str:
        """The major that a package stands for; empty when it tells none."""
        if any(re.fullmatch(translate(pattern), name) for pattern in self.but):
            return ""
        for pattern in self.suffixed:
            left, _, right = pattern.partition("{major}")
            expression = re.escape(left).replace(r"\*", ".*") + r"(\d+)" + re.escape(right).replace(r"\*", ".*")
            if found := re.fullmatch(expression, name):
                return str(found.group(1))
        return version.partition(".")[0] if name in self.versioned else ""


@dataclass(frozen=True, slots=True)
class UserSpace:
    """Packages of the operating system that the stack needs in the image and no wheel brings."""

    stack: str
    packages: tuple[str, ...]
    why: str
    fact: str


@dataclass(frozen=True, slots=True)
class SourceOnly:
    """Packages of which PyPI has source archives alone, so that no lock of wheels can hold them."""

    names: tuple[str, ...]
    why: str
    fact: str


@dataclass(frozen=True, slots=True)
class Stays:
    """Packages that an image (patterns with `*` on its reference) brings in a version that nobody knows: they stay its own."""

    images: tuple[str, ...]
    names: tuple[str, ...]
    why: str
    fact: str

    def holds(self, ref: str) -> bool:
        """Whether the image `ref` is one."""
        return _named(ref, self.images)


@dataclass(frozen=True, slots=True)
class Rules:
    """Everything in `closure.yaml`."""

    forbid: tuple[Forbid, ...] = ()
    majors: tuple[OneMajor, ...] = ()
    user_space: tuple[UserSpace, ...] = ()
    stubs: tuple[Stub, ...] = ()
    exact: tuple[Exact, ...] = ()
    stands_for: tuple[StandsFor, ...] = ()
    os_floors: tuple[OsFloor, ...] = ()
    bounds: tuple[Bound, ...] = ()
    source_only: tuple[SourceOnly, ...] = ()
    stays: tuple[Stays, ...] = ()


class Documents(Protocol):
    """What this module asks of the matrix."""

    def document(self, name: str) -> Mapping[str, Any]:
        """The plain mapping of a file."""
        ...


def load_rules(matrix: Documents) -> Rules:
    """The rules of the matrix; none where it has no `closure.yaml`. InputError (3) for a faulty one."""
    from accel_env.errors import InputError
    from accel_env.matrix.read import Faults, Row

    document = matrix.document(DOCUMENT)
    faults = Faults()
    row = Row(document, faults, FILE, DOCUMENT)
    row.optional("schema")
    rules = Rules(
        tuple(_forbid(item) for item in row.rows("forbid")),
        tuple(_major(item) for item in row.rows("majors")),
        tuple(_user_space(item) for item in row.rows("user_space")),
        tuple(_stub(item) for item in row.rows("stubs")),
        tuple(_exact(item) for item in row.rows("exact")),
        tuple(_stands_for(item) for item in row.rows("stands_for")),
        tuple(_os_floor(item) for item in row.rows("os_floors")),
        tuple(_bound(item) for item in row.rows("bounds")),
        tuple(_source_only(item) for item in row.rows("source_only")),
        tuple(_stays(item) for item in row.rows("stays")),
    )
    row.close()
    if faults.items:
        first, *others = (str(fault) for fault in faults.items)
        raise InputError("matrix-invalid", first, context=tuple(others), hint="matrix/README.md tells the format")
    return rules


def _forbid(row: Row) -> Forbid:
    rule = Forbid(row.texts("stacks"), row.texts("names", required=True), row.texts("except"), row.text("why"), row.fact())
    row.close()
    return rule


def _major(row: Row) -> OneMajor:
    names = row.texts("suffixed"), row.texts("versioned")
    rule = OneMajor(row.text("stack"), *names, row.text("why"), row.fact(), row.texts("except"))
    row.close()
    return rule


def _user_space(row: Row) -> UserSpace:
    rule = UserSpace(row.text("stack"), row.texts("packages", required=True), row.text("why"), row.fact())
    row.close()
    return rule


def _stub(row: Row) -> Stub:
    rule = Stub(row.texts("names", required=True), row.text("why"), row.text("real"), row.fact())
    row.close()
    return rule


def _exact(row: Row) -> Exact:
    rule = Exact(row.texts("names", required=True), row.text("why"), row.fact())
    row.close()
    return rule


def _stands_for(row: Row) -> StandsFor:
    rule = StandsFor(row.texts("names", required=True), row.text("provides"), row.text("why"), row.fact())
    row.close()
    return rule


def _os_floor(row: Row) -> OsFloor:
    rule = OsFloor(row.text("platform"), row.text("os"), row.text("release"), row.fact())
    row.close()
    return rule


def _bound(row: Row) -> Bound:
    rule = Bound(row.text("requirement"), row.text("why"), row.fact())
    row.close()
    return rule


def _source_only(row: Row) -> SourceOnly:
    rule = SourceOnly(row.texts("names", required=True), row.text("why"), row.fact())
    row.close()
    return rule


def _stays(row: Row) -> Stays:
    rule = Stays(row.texts("images", required=True), row.texts("names", required=True), row.text("why"), row.fact())
    row.close()
    return rule


def _named(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether a normalised name is one of the patterns."""
    return any(re.fullmatch(translate(pattern), name) for pattern in patterns)
