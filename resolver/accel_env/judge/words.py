"""What people write behind a package's name: `2.6.0+cu126`, `cu128 build`, `>=0.43.3 (wanted)`, `2.0.1 (conda, CUDA 11.8)`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from accel_env.judge.types import Installed
from accel_env.solve.problem import normalise
from accel_env.solve.versions import valid_specifier

_REMARK = re.compile(r"\(([^()]{0,400})\)")
_RELEASE = r"\d+(?:\.\d+)*(?:(?:a|b|rc|\.?post|\.?dev)\d*)*"
_VERSION = re.compile(rf"[vV]?({_RELEASE})(?:\+([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?))?(?=$|[\s,;:])")
_BOUND = re.compile(rf"(==|~=|>=|<=|!=|<|>)\s*v?({_RELEASE}(?:\.\*)?)(?:\+([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?))?")
_SERIES = re.compile(r"(\d+(?:\.\d+)*)\.[xX*](?=$|[\s,;])")
_BELOW = re.compile(rf"(?:older than|below|before) ({_RELEASE})(?=$|[\s,;])")
_CUED = (
    re.compile(rf"({_RELEASE}) generation"),
    re.compile(rf"\bi\.e\. ({_RELEASE})(?=$|[\s,;])"),
)
_LABEL = re.compile(r"\b(cu\d{2,3}|rocm ?\d+(?:\.\d+)*|xpu|cpu)\b", re.IGNORECASE)
_TOOLKIT = re.compile(r"\bcuda[ -]?v?(\d{1,2})(?:\.(\d{1,2}))?\b", re.IGNORECASE)
_NIGHTLY = re.compile(r"\b(?:nightly|nightlies|development build)\b|\.dev\d", re.IGNORECASE)
_WANTED = re.compile(r"\bwanted\b|\bto be installed\b|\brequested\b", re.IGNORECASE)
_BUILT_FOR = re.compile(r"\bbuilt (?:for|with|against)\b", re.IGNORECASE)
_PRE = re.compile(r"\d(?:a|b|rc)0?(?:$|\+)")


def installed(
    name: str, text: str, origin: str, *, vendor_words: Iterable[str] = (), vendor_labels: Iterable[str] = ()
) -> Installed:
    """One package as somebody wrote it; what the text does not say stays empty.

    `vendor_words` and `vendor_labels` are patterns of remarks and local labels of builds that no index serves.
    """
    text = " ".join(text.split())
    remarks = " ".join(_REMARK.findall(text))
    plain = _REMARK.sub(" ", text).strip()
    version, local, spec, pinned = _what(plain, remarks)
    local = local or _label(plain, remarks)
    vendor = _vendor(version, local, remarks or plain, vendor_words, vendor_labels)
    nightly = bool(_NIGHTLY.search(f"{plain} {remarks}"))
    wanted = bool(_WANTED.search(text)) or (pinned and not version)
    return Installed(
        normalise(name), version, local, spec, text, origin, wanted=wanted, vendor=vendor and not nightly, nightly=nightly
    )


def _what(plain: str, remarks: str) -> tuple[str, str, str, bool]:
    """(version, label, specifier, whether it is a requirement)."""
    bounds = _BOUND.findall(plain) if plain[:1] in "=~><!" else []
    if bounds:
        return _bounded(plain, bounds)
    found = _VERSION.match(plain)
    if found:
        return found[1], found[2] or "", "", False
    series = _SERIES.match(plain)
    if series:
        return "", "", f"=={series[1]}.*", False
    if _BUILT_FOR.match(plain):
        return "", "", "", False
    for cue in _CUED:
        for part in (remarks, plain):
            cued = cue.search(part)
            if cued:
                return cued[1], "", "", False
    below = _BELOW.match(plain)
    if below:
        return "", "", f"<{below[1]}", False
    # `stable of November 2025 (2.9.1) from PyPI`
    inner = _VERSION.fullmatch(remarks) if plain[:6] in ("stable", "releas", "latest") else None
    return (inner[1], inner[2] or "", "", False) if inner else ("", "", "", False)


def _bounded(plain: str, bounds: list[tuple[str, str, str]]) -> tuple[str, str, str, bool]:
    """A requirement; one exact pin is also a version. Of several alternatives (`==2.5.1 wanted by a, ==2.4.0 by b`) none is."""
    exact = [(version, label) for operator, version, label in bounds if operator == "==" and not version.endswith("*")]
    if len({version for version, _ in exact}) > 1:
        return "", "", "", True
    spec = ",".join(f"{operator}{version}" for operator, version, _ in bounds)
    if not valid_specifier(spec):
        spec = ""
    if exact:
        return exact[0][0], exact[0][1], spec, True
    return "", "", spec, not plain.startswith("<")


def _label(plain: str, remarks: str) -> str:
    """The build label that the words name; `cu13` where only the major is said."""
    for part in (plain, remarks):
        found = _LABEL.search(part)
        if found:
            return found[1].lower().replace(" ", "")
        toolkit = _TOOLKIT.search(part)
        if toolkit and not _BUILT_FOR.search(part[: toolkit.start()]):
            return f"cu{toolkit[1]}{toolkit[2] or ''}"
    return ""


def _vendor(version: str, local: str, remark: str, words: Iterable[str], labels: Iterable[str]) -> bool:
    if any(re.search(pattern, local) for pattern in labels if local):
        return True
    if _PRE.search(version) and ".dev" not in version:
        return True
    return any(re.search(pattern, remark, re.IGNORECASE) for pattern in words if remark)


def built_for(text: str) -> tuple[str, str]:
    """(version, label) of the torch that a build says it is for: `built for 2.1.2+cu121`; empty where it does not say."""
    found = re.search(rf"\bbuilt (?:for|with|against) (?:torch |pytorch )?({_RELEASE})(?:\+([a-z0-9.]+))?", text, re.IGNORECASE)
    if found and "." in found[1]:
        return found[1], found[2] or ""
    found = re.search(r"\bbuilt (?:for|with|against) (?:the )?(cu\d{2,3}|cpu|rocm\d[\d.]*)\b", text, re.IGNORECASE)
    return ("", found[1].lower()) if found else ("", "")
