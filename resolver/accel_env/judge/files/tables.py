"""What `check` knows of words in files: matrix/files.yaml, typed. Every row points at its fact."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accel_env.matrix.load import Matrix
    from accel_env.matrix.read import Row

DOCUMENT = "files"


@dataclass(frozen=True, slots=True)
class Family:
    """A family of images. `compiler` None: whether the tags hold a compiler is not known."""

    name: str
    repository: str
    tag: str
    torch: str
    label: str
    stack: str
    python: str
    compiler: str | None
    constraints: str
    unsure: str
    requires: bool
    needs_torch: bool
    brings: tuple[str, ...]
    fact: str


@dataclass(frozen=True, slots=True)
class Release:
    """What one release of a family holds."""

    image: str
    release: str
    cuda: str
    torch: str
    python: str
    fact: str


@dataclass(frozen=True, slots=True)
class Demand:
    """What NVIDIA_REQUIRE_CUDA of images of these CUDA releases accepts besides a driver that offers it."""

    cuda: tuple[str, ...]
    branches: tuple[str, ...]
    refused: tuple[str, ...]
    fact: str


@dataclass(frozen=True, slots=True)
class Toolchain:
    """What shows that a stack's compiler is there."""

    stack: str
    component: str
    found: str
    image: str
    variables: tuple[str, ...]
    fact: str


@dataclass(frozen=True, slots=True)
class Source:
    """A package that pip compiles. `skip`: variables under which nothing is compiled."""

    name: str
    stack: str
    skip: tuple[str, ...]
    fact: str


@dataclass(frozen=True, slots=True)
class Guess:
    """The wheel that a setup.py asks for where that is another than torch's CUDA major says."""

    name: str
    allows: str
    index: str
    prefix: str
    instead_of: str
    fact: str


@dataclass(frozen=True, slots=True)
class Libraries:
    """A package whose wheels load CUDA libraries of one major that they do not bring, unless an extra does."""

    name: str
    allows: str
    major: str
    extras: tuple[str, ...]
    fact: str


@dataclass(frozen=True, slots=True)
class Wants:
    """A package outside the matrix that requires torch."""

    name: str
    requires: str
    fact: str


@dataclass(frozen=True, slots=True)
class Access:
    """How a container gets the devices of a vendor."""

    vendor: str
    runtime: str
    gpus: bool
    devices: tuple[str, ...]
    rule: str
    severity: str
    do: str
    fact: str


@dataclass(frozen=True, slots=True)
class Tables:
    """All of files.yaml."""

    images: tuple[Family, ...]
    releases: tuple[Release, ...]
    demands: tuple[Demand, ...]
    brands: Mapping[str, tuple[str, ...]]
    require: str
    disable: str
    require_fact: str
    toolchains: tuple[Toolchain, ...]
    sources: tuple[Source, ...]
    guesses: tuple[Guess, ...]
    libraries: tuple[Libraries, ...]
    wants: tuple[Wants, ...]
    access: tuple[Access, ...]
    backend_auto: tuple[str, str]
    conda_names: Mapping[str, str]
    conda_cpu: tuple[str, ...]
    conda_cuda: tuple[str, ...]
    conda_last: tuple[str, str, str, str]
    conda_beside: tuple[str, ...]
    conda_fact: str
    pythons: tuple[tuple[str, str], ...]
    mutable: tuple[str, ...]
    notes: Mapping[str, str]

    def family(self, repository: str) -> tuple[Family, re.Match[str]] | None:
        """The family that an image belongs to, with the match of its name."""
        for row in self.images:
            match = re.fullmatch(row.repository, repository)
            if match:
                return row, match
        return None

    def toolchain(self, stack: str) -> Toolchain | None:
        """The compiler of a stack."""
        return next((row for row in self.toolchains if row.stack == stack), None)

    def system_python(self, system: str) -> str:
        """The version of a distribution's python3; empty for one that is not known."""
        return next((python for pattern, python in self.pythons if re.search(pattern, system, re.IGNORECASE)), "")

    def note(self, key: str) -> str:
        """The full id of a fact that a rule rests on."""
        return self.notes.get(key, "")


def open_tables(matrix: Matrix) -> Tables:
    """The tables of a matrix; empty where it has none. InputError (3) with all faults for broken ones."""
    from accel_env.errors import InputError
    from accel_env.matrix.read import Faults, Row

    faults = Faults()
    tables = _tables(Row(matrix.document(DOCUMENT), faults, f"{DOCUMENT}.yaml", DOCUMENT))
    if faults.items:
        first, *others = (str(fault) for fault in faults.items)
        raise InputError("matrix-invalid", first, context=tuple(others), hint="matrix/README.md tells the format")
    return tables


def _tables(row: Row) -> Tables:
    require, auto, conda, brands = (row.maybe(key) for key in ("require", "backends", "conda", "brands"))
    last = conda.maybe("last") if conda else None
    return Tables(
        images=tuple(_family(r) for r in row.rows("images")),
        releases=tuple(
            Release(r.text("image"), r.text("release"), r.text("cuda"), r.text("torch"), r.optional("python"), r.fact())
            for r in row.rows("releases")
        ),
        demands=tuple(
            Demand(r.texts("cuda"), r.texts("branches"), r.texts("except"), r.fact()) for r in row.rows("requirements")
        ),
        brands={key: brands.texts(key) for key in brands} if brands else {},
        require=require.text("variable") if require else "",
        disable=require.text("disable") if require else "",
        require_fact=require.fact() if require else "",
        toolchains=tuple(_toolchain(r) for r in row.rows("toolchains")),
        sources=tuple(Source(r.text("name"), r.text("stack"), r.texts("skip"), r.fact()) for r in row.rows("source_only")),
        guesses=tuple(
            Guess(r.text("name"), r.text("allows"), r.text("index"), r.text("prefix"), r.text("instead_of"), r.fact())
            for r in row.rows("wheel_guess")
        ),
        libraries=tuple(
            Libraries(r.text("name"), r.optional("allows"), r.text("major"), r.texts("extras"), r.fact())
            for r in row.rows("system_libraries")
        ),
        wants=tuple(Wants(r.text("name"), r.optional("requires", empty=True), r.fact()) for r in row.rows("wants_torch")),
        access=tuple(_access(r) for r in row.rows("access")),
        backend_auto=(auto.text("auto"), auto.fact()) if auto else ("", ""),
        conda_names=conda.pairs("names") if conda else {},
        conda_cpu=conda.texts("cpu") if conda else (),
        conda_cuda=conda.texts("cuda") if conda else (),
        conda_last=(last.text("channel"), last.text("name"), last.text("version"), last.fact()) if last else ("", "", "", ""),
        conda_beside=last.texts("beside") if last else (),
        conda_fact=conda.fact() if conda else "",
        pythons=tuple((r.text("os"), r.text("python")) for r in row.rows("system_pythons") if r.fact()),
        mutable=row.texts("mutable"),
        notes={key: inner.fact() for key, inner in row.keyed("notes").items()},
    )


def _family(row: Row) -> Family:
    return Family(
        name=row.text("name"),
        repository=row.text("repository"),
        tag=row.optional("tag"),
        torch=row.one_of("torch", ("vendor", "index", "none")),
        label=row.optional("label"),
        stack=row.optional("stack"),
        python=row.optional("python"),
        compiler=row.optional("compiler", empty=True) if "compiler" in row else None,
        constraints=row.optional("constraints"),
        unsure=row.optional("unsure"),
        requires=row.flag("requires"),
        needs_torch=row.flag("needs_torch"),
        brings=row.texts("brings"),
        fact=row.fact(),
    )


def _toolchain(row: Row) -> Toolchain:
    return Toolchain(
        row.text("stack"), row.text("component"), row.text("found"), row.text("image"), row.texts("variables"), row.fact()
    )


def _access(row: Row) -> Access:
    return Access(
        row.text("vendor"),
        row.optional("runtime"),
        row.flag("gpus"),
        row.texts("devices"),
        row.text("rule"),
        row.one_of("severity", ("error", "warning", "note")),
        row.text("do"),
        row.fact(),
    )
