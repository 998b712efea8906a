"""The frozen values that the stages hand to each other; no logic beyond ordering and small look-ups.

Flow: System -> Host -> Problem -> Field -> Solution | Conflict -> Lock | Nogood -> Recipe -> files.
Every version is a string as published; compare with `accel_env.solve.versions`, never as text.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

GRADES = ("vendor", "measured", "community")
EVIDENCE = ("metadata", "inspected", "imported", "ran")


class Subject(str, Enum):
    """What a need is about: the closed vocabulary of the matrix."""

    DRIVER = "driver"
    ARCH = "arch"
    OS = "os"
    CPU = "cpu"
    LIBC = "libc"
    LIBSTDCXX = "libstdcxx"
    KERNEL = "kernel"
    PYTHON = "python"
    STACK = "stack"
    TORCH = "torch"
    PACKAGE = "package"


@dataclass(frozen=True, slots=True)
class Fact:
    """One published statement. `doubt` says why it may be wrong; empty when nothing speaks against it."""

    id: str
    text: str
    source: str
    grade: str
    checked: str
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class Need:
    """One condition of a candidate, with the fact behind it. Which fields count depends on `subject`.

    driver, libc, libstdcxx, kernel, python, package, torch: `allows`, a PEP 440 specifier set, empty for any. A driver need with
    a `name` is that of an architecture, whatever the build.
    arch: `values` (machine code), `jit` (PTX, or targets that run by just-in-time compilation),
    `lacks` (architectures whose library kernels are missing although the code list names them).
    os, cpu, stack: `values`. python: `values` are wheel tags (`cp312`, `cp39-abi3`, `py3`, `cp314t`).
    torch: `values` are build labels, `abi` pairs of a property that the torch build provides and what it must be.
    package, torch: `when` is `always` (it must be there), `present` (only if it is there) or, of a package, `absent`.
    package: `name`.
    `soft`: a failure is a warning and makes the candidate second choice. `unknown`: nobody has published the value.
    `marker`: the need counts only where this PEP 508 marker holds; empty for everywhere on the candidate's platform.
    One candidate may have several needs on arch: the code list, and per loss of library kernels the same lists with `lacks` and
    the name `libraries`, so that each names its own fact. An `unknown` package need on the candidate itself: its existence is
    doubtful, or an overlay forbids it.
    """

    subject: Subject
    fact: str
    allows: str = ""
    name: str = ""
    values: tuple[str, ...] = ()
    jit: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    abi: tuple[tuple[str, str], ...] = ()
    when: str = "always"
    soft: bool = False
    unknown: bool = False
    marker: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One published build of one package release on one platform (or one library inside a wheel: `variant`).

    `module` is the import name it owns: at most one candidate of a module is in an environment.
    `index` is `pypi`, `<index>:<path>` of indexes.yaml, or `image` for what a vendor image brings.
    `platform` is `<os>_<cpu>`; `stack` is `<name>-<version>`, a bare stack name, or empty for any stack.
    `provides`: what extensions ask of a torch build (`cuda`, `hip`, `sycl`, `cxx11abi`).
    `hashed`: the wheel tags whose file has a known sha256. `rank` 0: the first choice; 1: a third party's build;
    2: a marked fallback. `extras`: those of the release's extras that make the build; it is installed with them.
    """

    name: str
    module: str
    version: str
    build: str
    variant: str
    index: str
    platform: str
    stack: str
    tags: tuple[str, ...]
    needs: tuple[Need, ...]
    requires: tuple[str, ...]
    provides: tuple[tuple[str, str], ...]
    hashed: tuple[str, ...]
    fact: str
    evidence: str = "metadata"
    rank: int = 0
    tag: str = ""
    note: str = ""
    extras: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """`name version+build`, as people write it."""
        local = "" if self.build in ("", "any") else f"+{self.build}"
        return f"{self.name} {self.version}{local}"


@dataclass(frozen=True, slots=True)
class Device:
    """An accelerator. `driver` is the version text as found; empty when nobody said."""

    vendor: str
    name: str
    arch: str
    driver: str = ""
    memory_mib: int | None = None
    pci_id: str = ""
    integrated: bool = False
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Host:
    """A machine. An empty string means unknown. `provenance`: field name -> the probe that gave it."""

    os: str = "linux"
    arch: str = "x86_64"
    kernel: str = ""
    libc_family: str = ""
    libc: str = ""
    libstdcxx: str = ""
    python: str = ""
    pythons: tuple[str, ...] = ()
    devices: tuple[Device, ...] = ()
    engine: str = ""
    container: str = ""
    wsl: bool = False
    notes: tuple[str, ...] = ()
    provenance: Mapping[str, str] = field(default_factory=dict)

    @property
    def platform(self) -> str:
        """`<os>_<cpu>`, the key of builds in the matrix."""
        return f"{self.os}_{self.arch}"


@dataclass(frozen=True, slots=True)
class Ask:
    """One PEP 508 requirement of the user and where it was written (`argument 2`, `requirements.txt:7`)."""

    name: str
    specifier: str
    extras: tuple[str, ...] = ()
    text: str = ""
    origin: str = ""
    marker: str = ""


@dataclass(frozen=True, slots=True)
class Policy:
    """How to choose. `stack`: `name` or `name-version`; `python`: `X.Y` or `X.Yt`; both empty for free choice.

    `base`: what torch comes in: `vendor` for any image of the vendor's, the reference of one; empty: wheels, where there are any.
    `base_digest`: the digest that was named with it.
    """

    prefer: str = "default"
    target: str = "container"
    stack: str = ""
    python: str = ""
    source_builds: bool = False
    base: str = ""
    base_digest: str = ""


@dataclass(frozen=True, slots=True)
class Nogood:
    """A set of picks that the closure refused, with the closer's own words."""

    picks: tuple[tuple[str, str, str], ...]
    reason: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An optional member of a bundle that is not in the plan: why, and what does its work here; other texts may be empty."""

    name: str
    bundle: str
    why: str
    fact: str = ""
    stands_in: str = ""
    stands_in_fact: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is to be solved. `devices` is the chosen set (one vendor); `ignored` are devices left out, with the reason.

    `bundles`: what was asked for by name, whose members are among the asks; `optional`: the names of those that may go,
    `left_out`: those that went, `missing`: those that must not and have no name here; `remarks`: what choosing has to say.
    `left`: packages of the matrix that the closer is to choose, because it would not have the release that was picked.
    """

    host: Host
    devices: tuple[Device, ...]
    asks: tuple[Ask, ...]
    policy: Policy
    ignored: tuple[tuple[Device, str], ...] = ()
    nogoods: tuple[Nogood, ...] = ()
    bundles: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    missing: tuple[LeftOut, ...] = ()
    remarks: tuple[Warned, ...] = ()
    left: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a candidate is out: the need that fails and what it met instead."""

    candidate: Candidate
    need: Need
    met: str


@dataclass(frozen=True, slots=True)
class Warned:
    """A warning of a plan: `rule` is a slug of cases' vocabulary or ours, `fact` may be empty."""

    rule: str
    message: str
    fact: str = ""


@dataclass(frozen=True, slots=True)
class Because:
    """One reason, ready to show."""

    need: str
    text: str
    fact: str
    source: str
    grade: str
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class Image:
    """A base or vendor image. `digest` empty: unpinned. `digests`: platform -> digest of that platform.

    `archs`: the devices that its toolkit is for; empty for all of the stack. `brings`: package -> version of what is in it, on
    `platforms`; `code`: package -> the list of its machine code. `compat`: it holds the vendor's package for older drivers;
    `requires`: it refuses to start below the driver of its toolkit; `environment`: the virtual environment that torch is in;
    `purpose`: the package that it is made for, so that it is no first choice for another.
    """

    ref: str
    digest: str = ""
    digests: Mapping[str, str] = field(default_factory=dict)
    python: str = ""
    libc: str = ""
    libstdcxx: str = ""
    stack: str = ""
    torch: str = ""
    os: str = ""
    default: bool = False
    fact: str = ""
    archs: tuple[str, ...] = ()
    brings: Mapping[str, str] = field(default_factory=dict)
    platforms: tuple[str, ...] = ()
    code: Mapping[str, str] = field(default_factory=dict)
    compat: bool = False
    requires: bool = False
    environment: str = ""
    note: str = ""
    purpose: str = ""

    def digest_on(self, platform: str) -> str:
        """What pins the image on a platform: the digest of the index if known, else that of the platform, else nothing."""
        return self.digest or self.digests.get(platform, "")


@dataclass(frozen=True, slots=True)
class Pick:
    """A chosen candidate and the reasons, with the tag of the file that the chosen Python takes."""

    candidate: Candidate
    tag: str
    because: tuple[Because, ...] = ()
    evidence: str = "metadata"


@dataclass(frozen=True, slots=True)
class Solution:
    """A working combination. `outside`: asks that the matrix does not model. `lockable`: every file's hash is known."""

    problem: Problem
    stack: str
    python: str
    picks: tuple[Pick, ...]
    outside: tuple[Ask, ...]
    image: Image | None
    env: Mapping[str, str]
    run_args: tuple[str, ...]
    warnings: tuple[Warned, ...]
    lockable: bool


@dataclass(frozen=True, slots=True)
class Change:
    """One edit that would help: kind is `driver`, `package`, `python`, `drop`, `stack`, `libc` or `device`."""

    kind: str
    name: str
    spec: str


@dataclass(frozen=True, slots=True)
class Relaxation:
    """Changes that make the problem solvable, and what the solver then picks (`name` -> `version+build`)."""

    change: tuple[Change, ...]
    gives: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CoreItem:
    """A member of the minimal core: `ask` or `host`."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """Nothing works. `core` is minimal: without any one member there is a solution."""

    problem: Problem
    core: tuple[CoreItem, ...]
    because: tuple[Because, ...]
    relaxations: tuple[Relaxation, ...]
    warnings: tuple[Warned, ...] = ()


@dataclass(frozen=True, slots=True)
class LockedFile:
    """One file to install. `index` names the index; `url` is absolute, or empty where the index is the user's PyPI."""

    name: str
    version: str
    filename: str
    sha256: str
    index: str
    url: str = ""
    size: int | None = None
    marker: str = ""
    extra_files: tuple[tuple[str, str], ...] = ()
    requires: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Lock:
    """The whole closure of a solution: everything to install, each file with its hash."""

    solution: Solution
    files: tuple[LockedFile, ...]
    exclude_newer: str
    tools: Mapping[str, str]
    notes: tuple[str, ...] = ()
