"""What a single value of a matrix file must look like; each check returns what is wrong, or nothing."""
from __future__ import annotations

import re
from functools import cache

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

OSES = ("linux", "windows", "macos")
CPUS = ("x86_64", "aarch64")
_PLATFORMS = frozenset(f"{system}_{cpu}" for system in OSES for cpu in CPUS)
_TAG = re.compile(r"(cp|pp|py)\d+t?(-abi3t?)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_HEX4 = re.compile(r"[0-9a-f]{4}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_ARCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
_PYTHON = re.compile(r"\d+\.\d+t?")


def version(value: str) -> str:
    """A PEP 440 version."""
    try:
        Version(value)
    except InvalidVersion:
        return f"`{value}` is no version"
    return ""


@cache
def specifier(value: str) -> str:
    """A PEP 440 specifier set."""
    try:
        SpecifierSet(value)
    except InvalidSpecifier:
        return f"`{value}` is no version specifier such as `>=2.4,<3`"
    return ""


def specifier_or_version(value: str) -> str:
    """A specifier set, or a plain word or version that must be equal."""
    return specifier(value) if value[:1] in "<>=!~" else ""


@cache
def requirement(value: str) -> str:
    """A PEP 508 requirement; releases repeat those of the one before, hence the cache."""
    try:
        Requirement(value)
    except InvalidRequirement as problem:
        return f"`{value}` is no requirement: {str(problem).splitlines()[0]}"
    return ""


def distribution(value: str) -> str:
    """A normalised distribution name."""
    return "" if _NAME.fullmatch(value) else f"`{value}` is no normalised package name (lower case, `-` between words)"


def platform(value: str) -> str:
    """`<os>_<cpu>`."""
    return "" if value in _PLATFORMS else f"`{value}` is no platform; they are: {', '.join(sorted(_PLATFORMS))}"


def tag(value: str) -> str:
    """A short wheel tag."""
    return "" if _TAG.fullmatch(value) else f"`{value}` is no wheel tag such as cp312, cp314t, cp39-abi3, py3"


def date(value: str) -> str:
    """`YYYY-MM-DD`."""
    return "" if _DATE.fullmatch(value) else f"`{value}` is no date such as 2026-11-30"


def pci(value: str) -> str:
    """Four lower-case hex digits."""
    return "" if _HEX4.fullmatch(value) else f"`{value}` is no PCI id: four hex digits, lower case"


def sha256(value: str) -> str:
    """64 lower-case hex digits."""
    return "" if _SHA256.fullmatch(value) else f"`{value}` is no sha256: 64 hex digits, lower case"


def image_digest(value: str) -> str:
    """`sha256:` and 64 hex digits."""
    return "" if value.startswith("sha256:") and not sha256(value[7:]) else f"`{value}` is no digest: sha256: and 64 hex digits"


def arch(value: str) -> str:
    """An architecture's name."""
    return "" if _ARCH.fullmatch(value) else f"`{value}` is no architecture name"


def python(value: str) -> str:
    """`X.Y` or `X.Yt`."""
    return "" if _PYTHON.fullmatch(value) else f"`{value}` is no Python such as 3.12 or 3.14t"


def registry(value: str) -> str:
    """`host[:port][/path]` of an image registry, as references of images begin."""
    known = re.fullmatch(r"[A-Za-z0-9.-]+(:\d+)?(/[a-z0-9][a-z0-9._/-]*)?", value)
    is_host = "." in value or ":" in value or value == "localhost"
    return "" if known and is_host else f"`{value}` is no registry such as docker.io"


def url(value: str) -> str:
    """An absolute URL without a user and password."""
    known = value.startswith(("https://", "http://", "file://"))
    if "@" in value.partition("://")[2].partition("/")[0]:  # not shown: plans and locks would carry it on
        return "holds a user or password, which belongs into netrc, or into the settings of pip and uv"
    return "" if known and " " not in value else f"`{value}` is no https, http or file URL"
