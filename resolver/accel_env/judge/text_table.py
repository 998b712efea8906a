"""The signatures of matrix/signatures.yaml, typed. A faulty file raises InputError with every fault in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from accel_env.judge.text_fill import FILTERS, PLACEHOLDER
from accel_env.judge.text_gate import gates_of
from accel_env.judge.text_pattern import complaint_of
from accel_env.judge.types import FIX_KINDS, SEVERITIES

if TYPE_CHECKING:
    from accel_env.matrix.read import Row

DOCUMENT = "signatures"
FILE = f"{DOCUMENT}.yaml"
_WEIGHTS = range(1, 101)


@dataclass(frozen=True, slots=True)
class Recipe:
    """A fix before its placeholders are filled; the fields are those of `Fix`."""

    kind: str
    fields: Mapping[str, str]
    set: Mapping[str, str]
    unset: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Signature:
    """One kind of error text. `needles`: literals, one of which is in every such text; `unless`: literals of look-alikes.

    `pattern` is searched around a needle. `components`: the first whose placeholders can be filled counts.
    `over`: signatures that say less about the same place. `means`: what such a text tells, where its own words do not.
    """

    id: str
    needles: tuple[str, ...]
    pattern: str
    rule: str
    components: tuple[str, ...]
    severity: str
    weight: int
    proves: Mapping[str, str]
    fixes: tuple[Recipe, ...]
    unless: tuple[str, ...]
    over: frozenset[str]
    fact: str
    means: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """All signatures, by needle, and the look-ups that placeholders use.

    `gates`: word -> the needles that it stands for; `patterns` fills as patterns are first needed.
    """

    signatures: tuple[Signature, ...]
    lookups: Mapping[str, Mapping[str, str]]
    by_needle: Mapping[str, tuple[Signature, ...]]
    gates: Mapping[bytes, tuple[str, ...]]
    patterns: dict[str, re.Pattern[str]] = field(default_factory=dict, compare=False)

    def pattern(self, signature: Signature) -> re.Pattern[str]:
        """The compiled pattern."""
        found = self.patterns.get(signature.id)
        if found is None:
            found = self.patterns[signature.id] = re.compile(signature.pattern, re.IGNORECASE)
        return found


class Documents(Protocol):
    """What this module asks of the matrix."""

    def document(self, name: str) -> Mapping[str, Any]:
        """The plain mapping of a file."""
        ...


def load(matrix: Documents, *, strict: bool = False) -> Table:
    """The signatures of the matrix; none where it has no `signatures.yaml`. InputError (3) for a faulty one.

    `strict` also judges every pattern (linear, compiles), which costs a second: tests do it, readers of texts do not.
    """
    from accel_env.errors import InputError
    from accel_env.matrix.read import Faults, Row

    faults = Faults()
    row = Row(matrix.document(DOCUMENT), faults, FILE, DOCUMENT)
    row.optional("schema")
    lookups = {name: {key: inner.text(key) for key in inner} for name, inner in row.keyed("lookups").items()}
    signatures = tuple(_signature(item, lookups, strict) for item in row.rows("signatures"))
    row.close()
    _check_ids(row, signatures)
    if faults.items:
        first, *others = (str(fault) for fault in faults.items)
        raise InputError("matrix-invalid", first, context=tuple(others), hint="matrix/README.md tells the format")
    by_needle: dict[str, tuple[Signature, ...]] = {}
    for signature in signatures:
        for needle in signature.needles:
            by_needle[needle] = (*by_needle.get(needle, ()), signature)
    return Table(signatures, lookups, by_needle, gates_of(by_needle))


def _signature(row: Row, lookups: Mapping[str, Mapping[str, str]], strict: bool) -> Signature:
    weight = row.whole("weight", required=True) or 0
    if weight not in _WEIGHTS:
        row.fault("weight", f"must be from {_WEIGHTS.start} to {_WEIGHTS.stop - 1}")
    signature = Signature(
        id=row.text("id"),
        needles=row.texts("needles", required=True, check=_needle),
        pattern=row.text("pattern", check=complaint_of if strict else None),
        rule=row.text("rule"),
        components=row.texts("components", required=True),
        severity=row.one_of("severity", SEVERITIES, default=SEVERITIES[0]),
        weight=weight,
        proves=row.pairs("proves"),
        fixes=tuple(_recipe(item) for item in row.rows("fixes")),
        unless=row.texts("unless"),
        over=frozenset(row.texts("over")),
        fact=row.fact(),
        means=row.optional("means"),
    )
    row.close()
    if strict:
        _check_placeholders(row, signature, lookups)
    return signature


def _recipe(row: Row) -> Recipe:
    kind = row.one_of("kind", FIX_KINDS)
    fields = {key: row.optional(key) for key in ("name", "spec", "build", "do", "command")}
    recipe = Recipe(kind, {key: value for key, value in fields.items() if value}, row.pairs("set"), row.texts("unset"))
    row.close()
    return recipe


def _needle(text: str) -> str:
    return "" if text.isascii() and 4 <= len(text) <= 200 else "must be 4 to 200 ASCII characters"


def _check_ids(row: Row, signatures: tuple[Signature, ...]) -> None:
    known: set[str] = set()
    for signature in signatures:
        if signature.id in known:
            row.fault("signatures", f"`{signature.id}` stands there twice")
        known.add(signature.id)
    for signature in signatures:
        for name in sorted(signature.over - known):
            row.fault("signatures", f"`{signature.id}` is over `{name}`, which is none of them")


def _check_placeholders(row: Row, signature: Signature, lookups: Mapping[str, Mapping[str, str]]) -> None:
    try:
        groups = re.compile(signature.pattern).groupindex
    except re.error:
        return
    filled = [*signature.components, *signature.proves.values(), signature.means]
    for recipe in signature.fixes:
        filled += [*recipe.fields.values(), *recipe.set.values(), *recipe.unset]
    for text in filled:
        for names, filters in PLACEHOLDER.findall(text):
            for name in names.split("/"):
                if name not in groups:
                    row.fault("pattern", f"`{{{name}}}` is used and no group of the pattern has that name")
            for word in filters.split("|")[1:]:
                if word not in FILTERS and word not in lookups:
                    row.fault("pattern", f"`{word}` is neither a filter nor a look-up")
