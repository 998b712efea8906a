"""Rules that no single file can keep alone: what one names, another must hold."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date

from accel_env.matrix import lint_bundles, lint_hardware, lint_images, lint_inspected, lint_packages
from accel_env.matrix.compile import Model, fact_uses, read_model, stem_of
from accel_env.matrix.findings import ERROR, LintProblem, error, note
from accel_env.matrix.load import Matrix

Rule = Callable[[Model], Iterator[LintProblem]]


def lint(matrix: Matrix, root: str | None = None) -> tuple[LintProblem, ...]:
    """Everything that breaks a rule, errors first. `root`: another folder than the one that the matrix came from.

    InputError where a file breaks a rule of its own: then there is nothing to compare.
    """
    model = read_model(root or matrix.root, matrix.overlays)
    found = [problem for rule in rules() for problem in rule(model)]
    return tuple(sorted(found, key=lambda item: (item.severity != ERROR, item.rule, item.file, item.path)))


def rules() -> tuple[Rule, ...]:
    """All rules."""
    return (
        nothing_is_missing, facts_exist, facts_are_used, facts_are_dated, conflicts_name_packages,
        *lint_packages.rules(), *lint_hardware.rules(), *lint_inspected.rules(), *lint_bundles.rules(),
        *lint_images.rules(),
    )


def _full(file: str, written: str) -> str:
    return written if ":" in written else f"{stem_of(file)}:{written}"


def nothing_is_missing(model: Model) -> Iterator[LintProblem]:
    """What every plan rests on is there: without it no question has an answer."""
    held = {
        "python.yaml": model.pythons, "packages/": model.packages, "stacks/": model.stacks, "devices/": model.vendors,
        "indexes.yaml": model.indexes, "images.yaml": model.images,
    }  # fmt: skip
    for file, rows in held.items():
        if not rows:
            yield error("matrix-empty", file, "", "there is none: a matrix without is none", "restore what was removed")


def facts_exist(model: Model) -> Iterator[LintProblem]:
    """Every value points at a fact that is there."""
    for file, plain in model.raw.items():
        for path, written in fact_uses(plain):
            if _full(file, written) not in model.facts:
                yield error("fact-missing", file, path, f"there is no fact `{written}`",
                            "write it under `facts`, or correct the id")


def facts_are_used(model: Model) -> Iterator[LintProblem]:
    """A fact that stands behind no value is for readers only, or the value lost its source."""
    used = {_full(file, written) for file, plain in model.raw.items() for _, written in fact_uses(plain)}
    for full in model.facts:
        stem, _, name = full.rpartition(":")
        if full not in used and not name.startswith("forbid["):
            yield note("fact-unused", f"{stem}.yaml", f"facts.{name}", "nothing rests on this fact",
                        "name it where it belongs, or remove it")


def facts_are_dated(model: Model) -> Iterator[LintProblem]:
    """The day of the check is a day of the calendar."""
    for full, fact in model.facts.items():
        stem, _, name = full.rpartition(":")
        try:
            date.fromisoformat(fact.checked or "2000-01-01")
        except ValueError:
            yield error("fact-date", f"{stem}.yaml", f"facts.{name}.checked", f"{fact.checked} is no day")


def conflicts_name_packages(model: Model) -> Iterator[LintProblem]:
    """A known-bad pair is of two packages that the matrix models, and has an id of its own."""
    names, seen = set(model.names()), set[str]()
    for conflict in model.conflicts:
        for name, _ in (conflict.a, conflict.b):
            if name not in names:
                yield error("conflict-package", "conflicts.yaml", conflict.id, f"the matrix has no package `{name}`",
                            "add the package, or remove the pair: it can never count")
        if conflict.id in seen:
            yield error("conflict-twice", "conflicts.yaml", conflict.id, "the id stands there twice")
        seen.add(conflict.id)
