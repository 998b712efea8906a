"""Frozen values of the matrix that are no candidates: packages, stacks, devices, indexes.

Every `fact` is a full id (`stacks/cuda:driver-12.6`); `Matrix.fact` gives the statement behind it.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Absent:
    """Where a package does not exist and what to use instead. `archs` empty: on the whole stack."""

    stack: str
    text: str
    fact: str
    archs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PackageInfo:
    """A modelled distribution. `module` is the import name that it owns."""

    name: str
    module: str
    summary: str
    absent: tuple[Absent, ...] = ()


@dataclass(frozen=True, slots=True)
class DriverFloor:
    """Lowest drivers: `minor` is enough for machine code, `full` also for PTX and every feature (empty: unpublished)."""

    minor: str
    full: str


@dataclass(frozen=True, slots=True)
class CodeRule:
    """Code of `not_from` does not run on `device`, though the plain rule says so, before release `before` (empty: ever)."""

    device: str
    not_from: tuple[str, ...]
    before: str
    fact: str


@dataclass(frozen=True, slots=True)
class ArchAlias:
    """Two names of one architecture."""

    a: str
    b: str
    fact: str


@dataclass(frozen=True, slots=True)
class DriverName:
    """A driver whose version as found matches `match` belongs to the packaged `release`."""

    match: str
    release: str
    fact: str


@dataclass(frozen=True, slots=True)
class ArchDriver:
    """The only drivers that know the devices of these architectures: a specifier."""

    archs: tuple[str, ...]
    allows: str
    fact: str


@dataclass(frozen=True, slots=True)
class ForwardCompat:
    """Kinds of device on which the vendor's compat package lets these older driver branches run a newer toolkit."""

    kinds: tuple[str, ...]
    branches: tuple[str, ...]
    fact: str


@dataclass(frozen=True, slots=True)
class KindRule:
    """Devices of a kind that builds from the indexes do not serve; `archs` limits the rule, empty: all of the kind."""

    kind: str
    archs: tuple[str, ...]
    text: str
    fact: str


@dataclass(frozen=True, slots=True)
class KindRun:
    """The words of `docker run` for devices of a kind, in place of the stack's own."""

    kind: str
    args: tuple[str, ...]
    fact: str


@dataclass(frozen=True, slots=True)
class NoDriver:
    """Numbers that are told of devices of a kind and are no driver's: a specifier, and what they are."""

    kind: str
    allows: str
    text: str
    fact: str


@dataclass(frozen=True, slots=True)
class InboxKernel:
    """The kernels whose own driver serves these architectures."""

    archs: tuple[str, ...]
    allows: str
    fact: str


@dataclass(frozen=True, slots=True)
class Inbox:
    """What holds for the kernel's own driver, which shows the kernel's version."""

    text: str
    fact: str
    kernels: tuple[InboxKernel, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """What to say where the matrix holds no build for a stack."""

    text: str
    fact: str


@dataclass(frozen=True, slots=True)
class Over:
    """A stack whose torch is another stack's build beneath a plugin: that stack, and the packages that make it one."""

    stack: str
    beneath: tuple[str, ...]
    fact: str


@dataclass(frozen=True, slots=True)
class StackRelease:
    """One release of a stack. `driver_floors`: os -> floors; `driver_allows`: one of these must hold; both empty: no rule."""

    version: str
    driver_floors: Mapping[str, DriverFloor] = field(default_factory=dict)
    driver_allows: tuple[str, ...] = ()
    driver_fact: str = ""
    targets: tuple[str, ...] = ()
    archs: tuple[str, ...] = ()
    torch: str = ""
    sycl: str = ""
    hip: str = ""
    fact: str = ""
    date: str = ""


@dataclass(frozen=True, slots=True)
class Stack:
    """A software stack of one vendor; releases newest first. `run_several`: words of `docker run` where devices are several."""

    name: str
    vendor: str
    run_args: tuple[str, ...] = ()
    run_env: Mapping[str, str] = field(default_factory=dict)
    run_fact: str = ""
    code_rules: tuple[CodeRule, ...] = ()
    aliases: tuple[ArchAlias, ...] = ()
    driver_names: tuple[DriverName, ...] = ()
    releases: tuple[StackRelease, ...] = ()
    arch_drivers: tuple[ArchDriver, ...] = ()
    forward_compat: ForwardCompat | None = None
    kind_rules: tuple[KindRule, ...] = ()
    inbox: Inbox | None = None
    answer: Answer | None = None
    run_note: str = ""
    over: Over | None = None
    run_several: tuple[str, ...] = ()
    run_kinds: tuple[KindRun, ...] = ()
    no_drivers: tuple[NoDriver, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """A product.

    `stack`: the one that serves it where the vendor has several; `unsupported`: why none does; `cpu`: the only one it comes with.
    """

    vendor: str
    name: str
    arch: str
    aliases: tuple[str, ...] = ()
    pci: tuple[str, ...] = ()
    integrated: bool = False
    kind: str = ""
    memory_mib: int | None = None
    stack: str = ""
    unsupported: str = ""
    fact: str = ""
    cpu: str = ""


@dataclass(frozen=True, slots=True)
class PythonRelease:
    """A CPython minor release (`3.12`, `3.14t`)."""

    version: str
    status: str
    fact: str


@dataclass(frozen=True, slots=True)
class Index:
    """Where files come from. `kind`: `simple`, `flat` or `asset` (`url` then holds `{tag}` and `{file}`)."""

    name: str
    url: str
    kind: str
    fact: str = ""


@dataclass(frozen=True, slots=True)
class KnownConflict:
    """Two packages, as (name, specifier), that must not be together though no metadata says so."""

    id: str
    a: tuple[str, str]
    b: tuple[str, str]
    why: str
    fact: str


@dataclass(frozen=True, slots=True)
class Profile:
    """A named host: `host` has the keys of a host file, devices with name, driver and count."""

    name: str
    summary: str
    host: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Artifact:
    """A known file. `sha256` is empty where nobody has published it, or where sources disagree (`conflict`: hash -> who says so).

    `size` in bytes, None when nobody said; `seen` counts independent sources; `tag` is the release tag for an index
    whose url holds `{tag}`.
    """

    sha256: str
    size: int | None
    seen: int
    grade: str
    sources: tuple[str, ...]
    tag: str = ""
    conflict: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to have a member of a bundle: a requirement, on these stacks or releases of them (empty: everywhere), for devices
    of these architectures alone (empty: for all)."""

    ask: str
    stacks: tuple[str, ...] = ()
    archs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a bundle: the first of its choices that can be had.

    `optional`: left out where it cannot, or where torch would be more than `behind` minor releases older on its account;
    `stands_in`: what does its work then.
    """

    choices: tuple[Choice, ...]
    optional: bool = False
    behind: int = 0
    stands_in: str = ""
    fact: str = ""


@dataclass(frozen=True, slots=True)
class Bundle:
    """A named set of asks."""

    name: str
    summary: str
    members: tuple[Member, ...]
    fact: str = ""
