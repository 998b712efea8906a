"""Cached comparison of versions and specifiers; parsing them again and again dominated the search otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

_DIGITS = re.compile(r"\d+")


@cache
def parse(text: str) -> Version:
    """The version that `text` means; words that are no PEP 440 version compare by their leading numbers."""
    try:
        return Version(text)
    except InvalidVersion:
        numbers = _DIGITS.findall(text.split("-", 1)[0]) or ["0"]
        return Version(".".join(numbers))


@cache
def specifiers(text: str) -> SpecifierSet:
    """The specifier set; raises packaging's InvalidSpecifier."""
    return SpecifierSet(text)


@cache
def allows(spec: str, version: str) -> bool:
    """True when `version` satisfies `spec`; an empty spec allows everything, pre-releases included."""
    if not spec:
        return True
    return specifiers(spec).contains(parse(version), prereleases=True)


def narrowed(specs: Iterable[str]) -> str:
    """The clauses of all specifiers together, without the bounds that another one implies."""
    clauses = list(dict.fromkeys(clause.strip() for spec in specs for clause in spec.split(",") if clause.strip()))
    for sign, tightest in ((">=", max), ("<", min)):
        bounds = [c for c in clauses if c.startswith(sign) and (c[len(sign) :][:1].isdigit())]
        if len(bounds) > 1:
            kept = tightest(bounds, key=lambda c: parse(c.lstrip("<>=")))
            clauses = [c for c in clauses if c not in bounds or c == kept]
    return ",".join(clauses)


def valid_specifier(text: str) -> bool:
    """True when `text` parses as a specifier set."""
    try:
        specifiers(text)
    except InvalidSpecifier:
        return False
    return True


@cache
def minor(version: str) -> tuple[int, int]:
    """(major, minor) of a version."""
    parsed = parse(version)
    return parsed.major, parsed.minor


@cache
def split_stack(text: str) -> tuple[str, str]:
    """`cuda-12.6` -> (`cuda`, `12.6`); a bare name has an empty version."""
    name, _, version = text.partition("-")
    return name, version


@cache
def stack_fits(wanted: str, stack: str) -> bool:
    """True when `stack` is the wanted one; `rocm-7` fits `rocm-7.2`, `cuda` fits every CUDA."""
    name, version = split_stack(wanted)
    have_name, have_version = split_stack(stack)
    if name != have_name:
        return False
    if not version or not have_version:
        return True
    want = version.split(".")
    return have_version.split(".")[: len(want)] == want


@cache
def tag_fits(tag: str, python: str) -> bool:
    """True when a wheel tag (`cp312`, `cp314t`, `cp39-abi3`, `py3`, `py39`) runs on a Python (`3.12`, `3.14t`)."""
    threaded = python.endswith("t")
    have = tuple(int(n) for n in python.rstrip("t").split(".")[:2])
    head, _, abi = tag.partition("-")
    if head.startswith("py"):
        digits = head.split(".")[-1][2:]
        return have[0] == int(digits[0]) and (len(digits) == 1 or have >= (int(digits[0]), int(digits[1:])))
    free = head.endswith("t") or abi.endswith("t")
    digits = head[2:].rstrip("t")
    if not digits.isdigit() or len(digits) < 2 or not head.startswith("cp"):
        return False
    want = (int(digits[0]), int(digits[1:]))
    if abi.startswith("abi3"):
        return have >= want and not threaded
    return have == want and free == threaded


def best_tag(tags: tuple[str, ...], python: str) -> str:
    """The most specific of `tags` that runs on `python`, or an empty string."""
    fitting = [t for t in tags if tag_fits(t, python)]
    return max(fitting, key=lambda t: (t.startswith("cp"), "abi3" not in t, t)) if fitting else ""
