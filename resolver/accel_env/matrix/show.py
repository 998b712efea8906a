"""Everything that the matrix says about one package, stack or product, or the list of one kind, as plain mappings."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from accel_env.errors import InputError, UsageError
from accel_env.matrix.load import Matrix
from accel_env.matrix.types import DeviceRow, Member, Stack, StackRelease
from accel_env.model import Candidate, Need

SCHEMA = "accel-env/show/1"
LISTS = ("packages", "profiles", "stacks", "bundles")  # words that list a kind


def show(matrix: Matrix, text: str) -> Mapping[str, object]:
    """What is known about `torch`, `torch==2.14.1` or any other requirement, a stack or its release (`cuda`, `cuda-12.6`), a
    product or an architecture (`4090`, `sm_90`), a bundle (`@finetune`), or the list that a word of LISTS names; ready for JSON.

    UsageError where the text can be none of them, InputError where the matrix has no such package, release or product.
    """
    if text in LISTS:
        return _list(matrix, text)
    if text.startswith("@"):
        return _bundle(matrix, text.removeprefix("@"))
    try:
        asked: Requirement | None = Requirement(text)
    except InvalidRequirement:
        asked = None
    if asked is not None and canonicalize_name(asked.name) in matrix.package_names():
        return _package(matrix, asked)
    other = _stack(matrix, text) or _devices(matrix, text)
    if other is not None:
        return other
    if asked is None:
        raise UsageError("requirement-invalid", f"`{text}` is no package, package==version, stack or device",
                         hint=_near(matrix, text))
    raise InputError("package-unknown", f"the matrix has no package `{asked.name}`, and no stack or device of that name",
                     hint=_near(matrix, asked.name))


def _near(matrix: Matrix, text: str) -> str:
    import difflib

    packages = difflib.get_close_matches(text.lower(), [*matrix.package_names(), *matrix.stacks()], 3)
    near = [*packages, *(matrix.devices().nearest(text, 3) if any(letter.isdigit() for letter in text) else ())]
    lists = ", ".join(f"`accel-env matrix show {word}`" for word in LISTS)
    return f"near it are {', '.join(near)}; {lists} list what there is" if near else f"{lists} list what there is"


def _package(matrix: Matrix, asked: Requirement) -> Mapping[str, object]:
    name = canonicalize_name(asked.name)
    package = matrix.package(name)
    every = [item for platform in matrix.platforms(name) for item in matrix.candidates(name, platform)]
    chosen = [item for item in every if asked.specifier.contains(item.version, prereleases=True)]
    if not chosen:
        versions = ", ".join(dict.fromkeys(item.version for item in every))
        raise InputError("release-unknown", f"the matrix has no release of {name} that fits `{asked.specifier}`",
                         hint=f"it has: {versions}" if versions else "")
    ids = [full for item in chosen for full in _fact_ids(item)] + [absent.fact for absent in package.absent]
    return {
        "schema": SCHEMA,
        "package": name,
        "module": package.module,
        "summary": package.summary,
        "releases": list(dict.fromkeys(item.version for item in chosen)),
        "builds": [_build(matrix, item) for item in chosen],
        "absent": [
            {"stack": absent.stack, "archs": list(absent.archs), "text": absent.text, "fact": absent.fact}
            for absent in package.absent
        ],
        "facts": _facts(matrix, ids),
    }


def _list(matrix: Matrix, what: str) -> Mapping[str, object]:
    rows: list[dict[str, str]]
    if what == "profiles":
        rows = [{"name": name, "summary": profile.summary} for name, profile in matrix.profiles().items()]
    elif what == "stacks":
        rows = [{"name": name, "summary": f"{stack.vendor}: {', '.join(r.version for r in stack.releases) or 'no releases'}"}
                for name, stack in matrix.stacks().items()]
    elif what == "bundles":
        rows = [{"name": f"@{name}", "summary": f"{bundle.summary}: {', '.join(map(_member, bundle.members))}"}
                for name, bundle in matrix.bundles().items()]
    else:
        rows = [{"name": name, "summary": matrix.package(name).summary} for name in sorted(matrix.package_names())]
    return {"schema": SCHEMA, "list": what, "rows": rows}


def _member(member: Member) -> str:
    """A member in one word or two: its names, and a question mark where it may be left out."""
    return " | ".join(choice.ask for choice in member.choices) + ("?" if member.optional else "")


def _bundle(matrix: Matrix, name: str) -> Mapping[str, object]:
    bundle = matrix.bundles().get(name)
    if bundle is None:
        import difflib

        near = difflib.get_close_matches(name, matrix.bundles(), 3, 0.5) or list(matrix.bundles())
        listed = ", ".join(f"@{one}" for one in near)
        raise InputError("bundle-unknown", f"there is no bundle @{name}", hint=f"there are: {listed}")
    members = [
        {"any": [{"ask": choice.ask, "stacks": list(choice.stacks)} for choice in member.choices], "optional": member.optional,
         "behind": member.behind, "stands_in": member.stands_in, "fact": member.fact}
        for member in bundle.members
    ]
    ids = [bundle.fact, *(member.fact for member in bundle.members)]
    return {"schema": SCHEMA, "bundle": name, "summary": bundle.summary, "members": members, "facts": _facts(matrix, ids)}


def _stack(matrix: Matrix, text: str) -> Mapping[str, object] | None:
    """A stack, or one release of it; None where the text names none."""
    name, _, version = text.partition("-")
    stack = matrix.stacks().get(name)
    if stack is None:
        return None
    releases = [release for release in stack.releases if version in ("", release.version)]
    if version and not releases:
        raise InputError("release-unknown", f"the matrix has no release {version} of the stack {name}",
                         hint=f"it has: {', '.join(release.version for release in stack.releases)}")
    ids = [stack.run_fact, stack.answer.fact if stack.answer else "", *(rule.fact for rule in stack.arch_drivers)]
    ids += [full for release in releases for full in (release.fact, release.driver_fact)]
    return {
        "schema": SCHEMA, "stack": name, "version": version, "vendor": stack.vendor, "run_args": list(stack.run_args),
        "run_env": dict(stack.run_env), "answer": stack.answer.text if stack.answer else "",
        "arch_drivers": [{"archs": list(rule.archs), "allows": rule.allows, "fact": rule.fact} for rule in stack.arch_drivers],
        "releases": [_stack_release(release) for release in releases],
        "builds": _builds_of(matrix, stack, version), "facts": _facts(matrix, ids),
    }


def _stack_release(release: StackRelease) -> dict[str, object]:
    return {
        "version": release.version, "date": release.date,
        "drivers": {system: {"minor": floor.minor, "full": floor.full} for system, floor in release.driver_floors.items()},
        "driver_allows": list(release.driver_allows), "targets": list(release.targets), "archs": list(release.archs),
        "torch": release.torch, "sycl": release.sycl, "hip": release.hip,
    }


def _builds_of(matrix: Matrix, stack: Stack, version: str) -> dict[str, list[str]]:
    """Package -> its versions with a build for the stack, or for the release of it, newest first."""
    found: dict[str, list[str]] = {}
    for name in sorted(matrix.package_names(), key=lambda name: (name != "torch", name)):
        every = (item for platform in matrix.platforms(name) for item in matrix.candidates(name, platform))
        fitting = [item.version for item in every if item.stack.partition("-")[0] == stack.name
                   and (not version or item.stack == f"{stack.name}-{version}")]
        if fitting:
            found[name] = sorted(set(fitting), key=Version, reverse=True)
    return found


def _devices(matrix: Matrix, text: str) -> Mapping[str, object] | None:
    """The product that the text means, or all of an architecture; None where it is neither."""
    row = matrix.devices().meant(text)
    rows = [row] if row else [row for row in matrix.devices() if row.arch == text.lower()]
    if not rows:
        return None
    return {"schema": SCHEMA, "devices": [_device(matrix, row) for row in rows], "facts": _facts(matrix, [r.fact for r in rows])}


def _device(matrix: Matrix, row: DeviceRow) -> dict[str, object]:
    stacks = [row.stack] if row.stack else [name for name, stack in matrix.stacks().items() if stack.vendor == row.vendor]
    return {
        "name": row.name, "vendor": row.vendor, "arch": row.arch, "aliases": list(row.aliases), "pci": list(row.pci),
        "kind": row.kind, "integrated": row.integrated, "memory_mib": row.memory_mib, "cpu": row.cpu,
        "stacks": [] if row.unsupported else stacks, "unsupported": row.unsupported, "fact": row.fact,
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
    # A need that nobody can tell: `package` of the build's own name is its publication.
    unknown = ["publication" if need.name == item.name else need.subject.value for need in item.needs if need.unknown]
    extra: dict[str, object] = {
        "unknown": unknown, "variant": item.variant, "provides": dict(item.provides), "requires": list(item.requires),
        "rank": item.rank, "tag": item.tag, "note": item.note,
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


def _facts(matrix: Matrix, ids: Iterable[str]) -> list[dict[str, object]]:
    return [_fact(matrix, full) for full in dict.fromkeys(ids) if full]


def _fact(matrix: Matrix, full: str) -> dict[str, object]:
    fact = matrix.fact(full)
    found: dict[str, object] = {
        "id": fact.id, "text": fact.text, "source": fact.source, "grade": fact.grade, "checked": fact.checked,
    }
    return {**found, "doubt": fact.doubt} if fact.doubt else found
