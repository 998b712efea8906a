"""The rows of matrix/judge.yaml, typed, and how each is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accel_env.judge.types import FIX_KINDS, Fix

if TYPE_CHECKING:
    from accel_env.matrix.read import Row


@dataclass(frozen=True, slots=True)
class Distribution:
    """An operating system and the C libraries that it ships. Empty: not known."""

    match: str
    family: str
    libc: str
    libstdcxx: str
    fact: str


@dataclass(frozen=True, slots=True)
class VendorImage:
    """A family of images whose torch is the vendor's own build. `stack`: version in the tag, by the group of `match`."""

    match: str
    component: str
    stack: str
    fact: str


@dataclass(frozen=True, slots=True)
class Override:
    """`value` makes the devices of `archs` run code of `target`."""

    archs: tuple[str, ...]
    value: str
    target: str
    fact: str


@dataclass(frozen=True, slots=True)
class Toolkit:
    """A toolkit of before the matrix's stacks: floors by os, and the newest architecture that it can build for."""

    version: str
    drivers: Mapping[str, str]
    newest: str
    fact: str


@dataclass(frozen=True, slots=True)
class OldTorch:
    """A torch of before the matrix's releases. `default`: the build that PyPI serves on Linux; `builds`: all labels."""

    versions: tuple[str, ...]
    default: str
    builds: tuple[str, ...]
    pythons: str
    fact: str


@dataclass(frozen=True, slots=True)
class Refinement:
    """What a finding of `rule` really is where `when` holds: another rule, component, or further fixes."""

    rule: str
    when: Mapping[str, str]
    becomes: str
    component: str
    fixes: tuple[Fix, ...]
    fact: str


@dataclass(frozen=True, slots=True)
class KernelModules:
    """Devices of `archs` work with one kind of kernel module only: `needs` is `open` or `proprietary`."""

    archs: tuple[str, ...]
    needs: str
    fact: str


@dataclass(frozen=True, slots=True)
class LostCode:
    """A fault of a runtime (versions inside `allows`) that does not find code which is there."""

    rule: str
    component: str
    allows: str
    text: str
    fixes: tuple[Fix, ...]
    fact: str


@dataclass(frozen=True, slots=True)
class Pairing:
    """Two releases that belong together: `other` is what a release of `name` inside `allows` needs.

    `label`: only builds whose label begins so; `vendor`: no index's build of `other` will do; `rule` names the finding.
    """

    name: str
    allows: str
    other: str
    wants: str
    label: str
    vendor: bool
    rule: str
    fixes: tuple[Fix, ...]
    fact: str


def pairing_of(row: Row) -> Pairing:
    return Pairing(
        row.text("name"),
        row.optional("allows"),
        row.text("other"),
        row.text("wants"),
        row.optional("label"),
        row.flag("vendor"),
        row.optional("rule"),
        tuple(fix_of(item) for item in row.rows("fixes")),
        row.fact(),
    )


def lost_code_of(row: Row | None) -> LostCode | None:
    if row is None:
        return None
    fixes = tuple(fix_of(item) for item in row.rows("fixes"))
    return LostCode(row.text("rule"), row.text("component"), row.text("allows"), row.text("text"), fixes, row.fact())


def refinement_of(row: Row) -> Refinement:
    return Refinement(
        row.text("rule"),
        row.pairs("when"),
        row.optional("becomes"),
        row.optional("component"),
        tuple(fix_of(item) for item in row.rows("fixes")),
        row.fact(),
    )


def fix_of(row: Row) -> Fix:
    """A fix as it is written in a file."""
    return Fix(
        kind=row.one_of("kind", FIX_KINDS),
        name=row.optional("name"),
        spec=row.optional("spec"),
        build=row.optional("build"),
        set=row.pairs("set"),
        unset=row.texts("unset"),
        do=row.optional("do"),
        command=row.optional("command"),
    )
