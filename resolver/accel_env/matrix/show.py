"""Everything that the matrix says about one package, or one release of it, as plain mappings."""
from __future__ import annotations

from collections.abc import Iterator, Mapping

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from accel_env.errors import InputError, UsageError
from accel_env.matrix.load import Matrix
from accel_env.model import Candidate, Need


def show(matrix: Matrix, text: str) -> Mapping[str, object]:
    """What is known about `torch`, `torch==2.14.1` or any other requirement, ready for JSON.

    UsageError where the text does not parse, InputError where the matrix has no such package or release.
    """
    try:
        asked = Requirement(text)
    except InvalidRequirement:
        raise UsageError("requirement-invalid", f"`{text}` is no package or package==version",
                         hint="try `accel-env matrix show torch`") from None
    name = canonicalize_name(asked.name)
    package = matrix.package(name)
    every = [item for platform in matrix.platforms(name) for item in matrix.candidates(name, platform)]
    chosen = [item for item in every if asked.specifier.contains(item.version, prereleases=True)]
    if not chosen:
        versions = ", ".join(dict.fromkeys(item.version for item in every))
        raise InputError("release-unknown", f"the matrix has no release of {name} that fits `{asked.specifier}`",
                         hint=f"it has: {versions}" if versions else "")
    ids = dict.fromkeys(full for item in chosen for full in _fact_ids(item))
    ids.update(dict.fromkeys(absent.fact for absent in package.absent))
    return {
        "schema": "accel-env/show/1",
        "package": name,
        "module": package.module,
        "summary": package.summary,
        "releases": list(dict.fromkeys(item.version for item in chosen)),
        "builds": [_build(matrix, item) for item in chosen],
        "absent": [
            {"stack": absent.stack, "archs": list(absent.archs), "text": absent.text, "fact": absent.fact}
            for absent in package.absent
        ],
        "facts": [_fact(matrix, full) for full in ids],
    }


def _fact_ids(item: Candidate) -> Iterator[str]:
    yield item.fact
    for need in item.needs:
        yield need.fact


def _build(matrix: Matrix, item: Candidate) -> dict[str, object]:
    found: dict[str, object] = {
        "version": item.version, "build": item.build, "platform": item.platform, "stack": item.stack,
        "tags": list(item.tags), "hashed": list(item.hashed), "index": matrix.index_url(item.index),
        "needs": [_need(need) for need in item.needs], "fact": item.fact,
    }
    extra: dict[str, object] = {
        "variant": item.variant, "provides": dict(item.provides), "requires": list(item.requires), "rank": item.rank,
        "tag": item.tag, "note": item.note,
    }
    return {**found, **{key: value for key, value in extra.items() if value}}


def _need(need: Need) -> dict[str, object]:
    found: dict[str, object] = {"need": need.subject.value, "fact": need.fact}
    extra: dict[str, object] = {
        "name": need.name, "allows": need.allows, "values": list(need.values), "jit": list(need.jit), "lacks": list(need.lacks),
        "abi": dict(need.abi), "when": need.when if need.when != "always" else "", "soft": need.soft, "unknown": need.unknown,
        "marker": need.marker,
    }
    return {**found, **{key: value for key, value in extra.items() if value}}


def _fact(matrix: Matrix, full: str) -> dict[str, object]:
    fact = matrix.fact(full)
    found: dict[str, object] = {
        "id": fact.id, "text": fact.text, "source": fact.source, "grade": fact.grade, "checked": fact.checked,
    }
    return {**found, "doubt": fact.doubt} if fact.doubt else found
