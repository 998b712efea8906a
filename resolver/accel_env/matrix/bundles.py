"""Bundles: the named sets of asks that people mean when they say a word."""
from __future__ import annotations

from accel_env.matrix import checks
from accel_env.matrix.read import Row
from accel_env.matrix.types import Bundle, Choice, Member


def parse_bundles(row: Row) -> dict[str, Bundle]:
    """Name -> bundle, of a `bundles` mapping. `behind` at its side is what holds for members that do not say it themselves."""
    behind = row.whole("behind") or 0
    found: dict[str, Bundle] = {}
    for name, item in row.keyed("bundles").items():
        if wrong := checks.distribution(name):
            item.fault("", wrong)
        members = tuple(_member(one, behind) for one in item.rows("members", required=True, word="ask"))
        if not members:
            item.fault("members", "a bundle has members")
        elif all(member.optional for member in members):
            item.fault("members", "one of them must not be optional, or the bundle may come to nothing")
        found[name] = Bundle(name, item.text("summary"), members, item.fact())
        item.close()
    return found


def _member(row: Row, behind: int) -> Member:
    several = "any" in row
    choices = tuple(_alone(one) for one in row.rows("any", word="ask")) if several else (_choice(row),)
    if not choices:
        row.fault("any", "must name a requirement")
    optional = row.flag("optional")
    own = row.whole("behind")
    if own is not None and not optional:
        row.fault("behind", "only what is `optional` can be left out for the sake of torch")
    bound = (behind if own is None else own) if optional else 0
    found = Member(choices, optional, bound, row.optional("stands_in"), row.fact(required="stands_in" in row))
    row.close()
    return found


def _alone(row: Row) -> Choice:
    found = _choice(row)
    row.close()
    return found


def _choice(row: Row) -> Choice:
    return Choice(row.text("ask", check=_ask), row.texts("stacks"), row.texts("archs"))


def _ask(text: str) -> str:
    return checks.requirement(text) or ("a member names no URL" if "@" in text else "")
