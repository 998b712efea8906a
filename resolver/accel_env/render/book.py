"""What the matrix says an image needs beside the files of a lock (`recipe.yaml`), typed, and what it means for one solution."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from accel_env.matrix.read import Row
    from accel_env.matrix.types import StackRelease
    from accel_env.model import Solution

DOCUMENT = "recipe"
FILE = f"{DOCUMENT}.yaml"
FORWARD = "forward-compat"  # the warning of a plan that runs by the vendor's package for older drivers


@dataclass(frozen=True, slots=True)
class Demand:
    """A variable that makes a vendor's runtime refuse a driver below the floor; `form` holds `{driver}`."""

    stack: str
    variable: str
    form: str
    fact: str


@dataclass(frozen=True, slots=True)
class Addition:
    """A word that packages add to a variable of the image which is a list, its words parted by `joint`."""

    stack: str
    packages: tuple[str, ...]
    variable: str
    word: str
    joint: str
    fact: str


@dataclass(frozen=True, slots=True)
class SourceRule:
    """How packages without a wheel are compiled on a stack. `toolkit`: a folder out of the stack's builder image, empty for none.

    `variable`, `match`, `form`, `joint`: how the architectures are named to the build. `memory_gib`: of one compiler.
    """

    stack: str
    memory_gib: int
    fact: str
    toolkit: str = ""
    variable: str = ""
    match: str = ""
    form: str = ""
    joint: str = ""
    env: Mapping[str, str] = field(default_factory=dict)

    def archs(self, archs: tuple[str, ...]) -> str:
        """The architectures as the variable wants them, each once; those that do not fit `match` are left out."""
        found = (re.fullmatch(self.match, arch) for arch in dict.fromkeys(archs))
        return self.joint.join(sorted(each.expand(self.form) for each in found if each))


@dataclass(frozen=True, slots=True)
class RecipeBook:
    """Everything in `recipe.yaml`. `compiler`: packages of the operating system; `headers`: the one with Python.h; `answers`: how
    notes of packages end that ask for no more than it."""

    compiler: tuple[str, ...] = ()
    headers: str = ""
    demands: tuple[Demand, ...] = ()
    additions: tuple[Addition, ...] = ()
    sources: tuple[SourceRule, ...] = ()
    answers: tuple[str, ...] = ()

    def source_rule(self, stack: str) -> SourceRule | None:
        """The rule of a stack (`cuda-12.6` or `cuda`); None where nobody wrote one."""
        name = stack.partition("-")[0]
        return next((rule for rule in self.sources if rule.stack == name), None)


class Documents(Protocol):
    """What this module asks of the matrix."""

    def document(self, name: str) -> Mapping[str, Any]:
        """The plain mapping of a file."""
        ...


class Releases(Protocol):
    """What `demanded` asks of the matrix."""

    def stack_release(self, stack: str) -> StackRelease | None:
        """One release of a stack, `cuda-12.6`."""
        ...


def load_book(matrix: Documents) -> RecipeBook:
    """The rules of the matrix; none where it has no `recipe.yaml`. InputError (3) for a faulty one."""
    from accel_env.errors import InputError
    from accel_env.matrix.read import Faults, Row

    faults = Faults()
    row = Row(matrix.document(DOCUMENT), faults, FILE, DOCUMENT)
    row.optional("schema")
    compiler = row.maybe("compiler")
    book = RecipeBook(
        compiler.texts("packages", required=True) if compiler else (),
        compiler.optional("headers") if compiler else "",
        tuple(_demand(item) for item in row.rows("demands")),
        tuple(_addition(item) for item in row.rows("additions")),
        tuple(_source(item) for item in row.rows("sources")),
        compiler.texts("answers") if compiler else (),
    )
    if compiler:
        compiler.fact()
        compiler.close()
    row.close()
    if faults.items:
        first, *others = (str(fault) for fault in faults.items)
        raise InputError("matrix-invalid", first, context=tuple(others), hint="see the comments in recipe.yaml")
    return book


def _demand(row: Row) -> Demand:
    rule = Demand(row.text("stack"), row.text("variable"), row.text("form"), row.fact())
    row.close()
    return rule


def _addition(row: Row) -> Addition:
    packages, keys = row.texts("packages", required=True), ("stack", "variable", "word", "joint")
    stack, variable, word, joint = (row.text(key) for key in keys)
    rule = Addition(stack, packages, variable, word, joint, row.fact())
    row.close()
    return rule


def _source(row: Row) -> SourceRule:
    archs = row.maybe("archs")
    keys = ("variable", "match", "form", "joint")
    variable, match, form, joint = (archs.text(key) if archs else "" for key in keys)
    if archs:
        archs.close()
    memory, env = row.whole("memory_gib", required=True) or 1, row.pairs("env")
    rule = SourceRule(row.text("stack"), memory, row.fact(), row.optional("toolkit"), variable, match, form, joint, env)
    row.close()
    return rule


def demanded(solution: Solution, book: RecipeBook, matrix: Releases) -> dict[str, str]:
    """The variables of the image that say which driver it needs: the floor that the resolver itself held the host to.

    The higher floor counts where something is compiled from intermediate code when it runs. Nothing is demanded where the image
    runs by the vendor's forward compatibility package: there the driver is below the floor, and the container must start.
    """
    if any(warned.rule == FORWARD for warned in solution.warnings):
        return {}
    name = solution.stack.partition("-")[0]
    release = matrix.stack_release(solution.stack) if "-" in solution.stack else None
    floor = release.driver_floors.get(solution.problem.host.os) if release else None
    if floor is None:
        return {}
    jit = any(warned.rule == "jit-first-run" for warned in solution.warnings)
    driver = (floor.full or floor.minor) if jit else floor.minor
    if not driver:
        return {}
    return {rule.variable: rule.form.replace("{driver}", driver) for rule in book.demands if rule.stack == name}


def added(solution: Solution, names: Collection[str], book: RecipeBook) -> dict[str, str]:
    """The plan's variables to which packages of the lock, by name, add a word that is not there yet."""
    stack, found = solution.stack.partition("-")[0], dict(solution.env)
    for rule in book.additions:
        words = [word for word in found.get(rule.variable, "").split(rule.joint) if word]
        if rule.stack == stack and rule.word not in words and not set(rule.packages).isdisjoint(names):
            found[rule.variable] = rule.joint.join([*words, rule.word])
    return {name: value for name, value in found.items() if solution.env.get(name) != value}
