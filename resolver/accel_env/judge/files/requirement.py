"""One requirement: PEP 508 as packaging reads it, the URL and file-name forms besides."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from urllib.parse import unquote

from accel_env.judge.files.values import UNKNOWN, Wanted
from accel_env.solve.problem import normalise

_BARE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_LEADING = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(\[[^\]]*\])?")
_SCHEME = re.compile(r"(?:[a-z+]+)://", re.IGNORECASE)
_WHEEL = re.compile(r"([^-/]+)-([^-/]+)(?:-\d[^-/]*)?-([^-/]+)-([^-/]+)-([^-/]+)\.whl")


def parse(text: str, where: str) -> Wanted | None:
    """The requirement that `text` states; None for paths, repositories and other things without a name and version.

    Raises ValueError with a sentence where it can be nothing of that kind.
    """
    text = text.strip()
    if UNKNOWN in text:
        return _vague(text, where)
    if _BARE.fullmatch(text) and not text.endswith((".txt", ".in", ".whl", ".toml")):
        return Wanted(normalise(text), where=where, text=text)
    if _is_place(text):
        return _file(text, where)
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        found = Requirement(text)
    except InvalidRequirement as error:
        raise ValueError(f"{text[:80]!r} is no requirement: {str(error).splitlines()[0]}") from None
    extras = tuple(sorted(found.extras))
    markers = (str(found.marker),) if found.marker else ()
    if found.url:
        named = _file(found.url, where)
        spec, url = (named.spec, named.url) if named else ("", found.url)
        return Wanted(normalise(found.name), spec, where, text, url, extras=extras, markers=markers, vague=named is None)
    return Wanted(normalise(found.name), str(found.specifier), where, text, extras=extras, markers=markers)


def hashed(wanted: Wanted) -> Wanted:
    """The same with a hash."""
    return replace(wanted, hashed=True)


def _vague(text: str, where: str) -> Wanted | None:
    """A requirement of which a variable is a part: the name counts where it is plain."""
    match = _LEADING.match(text)
    if not match or UNKNOWN in match[1] or _is_place(text):
        return None
    rest = text[match.end() :].lstrip()
    if rest[:1] not in ("=", "<", ">", "!", "~", "@", ";", UNKNOWN, ""):
        return None
    return Wanted(normalise(match[1]), where=where, text=text.replace(UNKNOWN, "..."), vague=True)


def _is_place(text: str) -> bool:
    head = text.split(";", 1)[0].split("@", 1)[0]
    return bool(_SCHEME.match(text) or text.startswith((".", "/", "~", "*")) or "/" in head or head.rstrip().endswith(".whl"))


def _file(text: str, where: str) -> Wanted | None:
    """A wheel named by URL or path."""
    plain, _, fragment = text.partition("#")
    tags = wheel(plain)
    if tags is None:
        return None
    return Wanted(tags[0], f"=={tags[1]}", where, text, text, hashed="sha256=" in fragment or "sha512=" in fragment)


@cache
def exactly(version: str) -> str:
    """The specifier that allows this version only; empty where it is no version."""
    from accel_env.solve.versions import valid_specifier

    spec = f"=={version}"
    return spec if version and not version.endswith("*") and valid_specifier(spec) else ""


@cache
def wheel(url: str) -> tuple[str, str, str, str, str] | None:
    """(name, version, Python tag, ABI tag, platform tag) of a wheel's URL, path or file name; None for anything else."""
    name = unquote(url.partition("#")[0].partition("?")[0]).rpartition("/")[2]
    match = _WHEEL.fullmatch(name)
    if not match or not exactly(match[2]):
        return None
    return normalise(match[1]), match[2], match[3], match[4], match[5]
