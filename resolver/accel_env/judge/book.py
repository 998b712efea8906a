"""What judging knows beside the needs: matrix/judge.yaml, typed. Every row points at its fact."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import translate
from typing import TYPE_CHECKING, Any, Protocol

from accel_env.judge.book_rows import (
    Distribution,
    KernelModules,
    LostCode,
    OldTorch,
    Override,
    Pairing,
    Refinement,
    Toolkit,
    VendorImage,
    fix_of,
    lost_code_of,
    pairing_of,
    refinement_of,
)
from accel_env.judge.types import Environment, Fix, Installed

if TYPE_CHECKING:
    from accel_env.judge.scene import Scene
    from accel_env.matrix.read import Row

DOCUMENT = "judge"


@dataclass(frozen=True, slots=True)
class Book:
    """All of judge.yaml."""

    system: str
    vendor_words: tuple[str, ...]
    vendor_labels: tuple[str, ...]
    arm: tuple[str, ...]
    vendor_signs: Mapping[str, str]
    text_stacks: Mapping[str, str]
    plugins: tuple[str, ...]
    accelerated: frozenset[str]
    pairs: frozenset[str]
    pins: frozenset[str]
    unjudged: frozenset[str]
    distributions: tuple[Distribution, ...]
    images: tuple[VendorImage, ...]
    overrides: tuple[Override, ...]
    toolkits: tuple[Toolkit, ...]
    torches: tuple[OldTorch, ...]
    refinements: tuple[Refinement, ...]
    pairings: tuple[Pairing, ...]
    recipes: Mapping[str, tuple[Fix, ...]]
    drivers: Mapping[str, tuple[str, str]]
    settings: Mapping[str, str]
    named: Mapping[str, str]
    owners: Mapping[str, str]
    kernel_modules: tuple[KernelModules, ...]
    same_release: Mapping[str, tuple[str, str]]
    board_builds: tuple[str, ...]
    library_variables: Mapping[str, str]
    lost_code: LostCode | None
    notes: Mapping[str, str]

    def is_system(self, name: str) -> bool:
        """True for what is listed beside Python packages but is none: toolkits, drivers, libraries of the system."""
        name = name.lower().replace("_", "-")
        return bool(self.system) and re.match(self.system, name) is not None

    def is_arm(self, device: str) -> bool:
        """True for products that exist with Arm processors only."""
        return any(re.search(pattern, device, re.IGNORECASE) for pattern in self.arm)

    def distribution(self, text: str) -> Distribution | None:
        """The operating system that a text names, None for an unknown one."""
        return next((row for row in self.distributions if re.search(row.match, text, re.IGNORECASE)), None)

    def image(self, base: str) -> VendorImage | None:
        """The family of vendor images that a base belongs to."""
        return next((row for row in self.images if re.search(row.match, base, re.IGNORECASE)), None)

    def override_of(self, arch: str) -> Override | None:
        """What may be set so that a device runs a relative's code; None where nothing is known."""
        return next((row for row in self.overrides if arch in row.archs), None)

    def toolkit(self, version: str) -> Toolkit | None:
        """The old toolkit of that version."""
        return next((row for row in self.toolkits if row.version == version), None)

    def old_torch(self, version: str) -> OldTorch | None:
        """The old torch of that version, or of the newest patch of a minor."""
        for row in self.torches:
            if any(v == version or v.startswith(f"{version}.") for v in row.versions):
                return row
        return None

    def recipe(self, key: str) -> tuple[Fix, ...]:
        """The fixes written under a key."""
        return self.recipes.get(key, ())

    def vendor_image_of(self, release: str, scene: Scene) -> str:
        """The vendor's image of a release of its software; empty where the matrix holds none."""
        for image in scene.matrix.images():
            if image.torch and image.stack.endswith(f"-{release}"):
                return image.ref
        return ""

    def is_board_build(self, row: Installed, environment: Environment) -> bool:
        """True where a torch is said to be the board vendor's own build, or lies in its image."""
        base = environment.container.base if environment.container else ""
        return any(re.search(pattern, f"{row.local} {row.text} {base}", re.IGNORECASE) for pattern in self.board_builds)

    def driver_rule(self, stack: str) -> tuple[str, str]:
        """(rule, component) of a finding about the driver of a stack."""
        return self.drivers.get(stack) or self.drivers.get("", ("driver-userspace-pair-mismatch", "driver"))

    def build_setting(self, vendor: str) -> str:
        """The variable that names the targets of a source build; empty where the vendor has none."""
        return self.settings.get(vendor, "")

    def note(self, key: str) -> str:
        """The full id of a fact that a rule rests on."""
        return self.notes.get(key, "")


class Documents(Protocol):
    """What this module asks of the matrix."""

    def document(self, name: str) -> Mapping[str, Any]:
        """The plain mapping of a file."""
        ...


def open_book(matrix: Documents) -> Book:
    """The book of a matrix; empty where it has none. InputError (3) with all faults for a broken one."""
    from accel_env.errors import InputError
    from accel_env.matrix.read import Faults, Row

    faults = Faults()
    row = Row(matrix.document(DOCUMENT), faults, f"{DOCUMENT}.yaml", DOCUMENT)
    book = Book(**_words(row), **_rows(row), **_tables(row))
    row.close()
    if faults.items:
        first, *others = (str(fault) for fault in faults.items)
        raise InputError("matrix-invalid", first, context=tuple(others), hint="matrix/README.md tells the format")
    return book


def _words(row: Row) -> dict[str, Any]:
    """Lists of names and patterns."""
    return {
        "system": "|".join(translate(name) for name in row.texts("system")),
        "vendor_words": _joined(row.texts("vendor_words")),
        "vendor_labels": _joined(row.texts("vendor_labels")),
        "arm": row.texts("arm"),
        "vendor_signs": row.pairs("vendor_signs"),
        "text_stacks": row.pairs("text_stacks"),
        "plugins": row.texts("plugins"),
        "accelerated": frozenset(row.texts("accelerated")),
        "pairs": frozenset(row.texts("pairs")),
        "pins": frozenset(row.texts("pins")),
        "unjudged": frozenset(row.texts("unjudged")),
    }


def _joined(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """The patterns as one: long lists of packages ask for each row."""
    return ("|".join(f"(?:{pattern})" for pattern in patterns),) if patterns else ()


def _rows(row: Row) -> dict[str, Any]:
    """Rows with a fact each."""
    return {
        "distributions": tuple(
            Distribution(r.text("match"), r.text("family"), r.optional("libc"), r.optional("libstdcxx"), r.fact())
            for r in row.rows("distributions")
        ),
        "images": tuple(
            VendorImage(r.text("match"), r.optional("component"), r.optional("stack"), r.fact()) for r in row.rows("images")
        ),
        "overrides": tuple(
            Override(r.texts("archs"), r.text("value"), r.text("target"), r.fact()) for r in row.rows("overrides")
        ),
        "toolkits": tuple(
            Toolkit(r.text("version"), r.pairs("drivers"), r.optional("newest"), r.fact()) for r in row.rows("toolkits")
        ),
        "torches": tuple(
            OldTorch(r.texts("versions"), r.text("default"), r.texts("builds"), r.optional("pythons"), r.fact())
            for r in row.rows("torches")
        ),
        "refinements": tuple(refinement_of(r) for r in row.rows("refinements")),
        "pairings": tuple(pairing_of(r) for r in row.rows("pairings")),
    }


def _tables(row: Row) -> dict[str, Any]:
    """What is looked up by a name."""
    return {
        "recipes": {key: tuple(fix_of(r) for r in inner.rows("fixes")) for key, inner in row.keyed("recipes").items()},
        "drivers": {key: (inner.text("rule"), inner.text("component")) for key, inner in row.keyed("drivers").items()},
        "settings": row.pairs("build_settings"),
        "named": row.pairs("named"),
        "owners": row.pairs("owners"),
        "kernel_modules": tuple(KernelModules(r.texts("archs"), r.text("needs"), r.fact()) for r in row.rows("kernel_modules")),
        "board_builds": row.texts("board_builds"),
        "library_variables": row.pairs("library_variables"),
        "lost_code": lost_code_of(row.maybe("lost_code")),
        "same_release": {key: (inner.text("component"), inner.fact()) for key, inner in row.keyed("same_release").items()},
        "notes": {key: inner.fact() for key, inner in row.keyed("notes").items()},
    }
