"""Rules about bundles: what they name must be there, and every name must have its turn."""
from __future__ import annotations

from collections.abc import Callable, Iterator

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from accel_env.matrix.compile import Model
from accel_env.matrix.findings import LintProblem, error

FILE = "bundles.yaml"


def rules() -> tuple[Callable[[Model], Iterator[LintProblem]], ...]:
    """All rules of this file."""
    return (stacks_exist, names_have_their_turn)


def _members(model: Model) -> Iterator[tuple[str, tuple[tuple[str, tuple[str, ...]], ...]]]:
    """(dotted path, the names of a member with their stacks)."""
    for bundle in model.bundles.values():
        for place, member in enumerate(bundle.members):
            yield f"bundles.{bundle.name}.members[{place}]", tuple((choice.ask, choice.stacks) for choice in member.choices)


def stacks_exist(model: Model) -> Iterator[LintProblem]:
    """A name is for stacks, or for the beginnings of their releases, that there are."""
    for path, choices in _members(model):
        for ask, stacks in choices:
            for one in stacks:
                name, _, version = one.partition("-")
                stack = model.stacks.get(name)
                releases = [release.version for release in stack.releases] if stack else []
                if stack is None or (version and not any(f"{release}.".startswith(f"{version}.") for release in releases)):
                    known = ", ".join(releases if stack else model.stacks)
                    yield error("bundle-stack", FILE, path, f"{ask} is for `{one}`, which no stack is", f"there are: {known}")


def names_have_their_turn(model: Model) -> Iterator[LintProblem]:
    """No name comes after one that is for every stack, and no distribution stands twice for one stack."""
    for path, choices in _members(model):
        open_to_all = next((place for place, (_, stacks) in enumerate(choices) if not stacks), len(choices))
        for ask, _ in choices[open_to_all + 1:]:
            yield error("bundle-order", FILE, path, f"{ask} is never reached: {choices[open_to_all][0]} is for every stack")
    for bundle in model.bundles.values():
        names = [_name(member.choices[0].ask) for member in bundle.members if member.choices]
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield error("bundle-twice", FILE, f"bundles.{bundle.name}.members", f"{name} stands there twice")


def _name(ask: str) -> str:
    try:
        return canonicalize_name(Requirement(ask).name)
    except InvalidRequirement:
        return ask
