"""A solution and a closer -> a lock, or why the picks cannot be locked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from accel_env.errors import ClosureError, InputError
from accel_env.lock import checks
from accel_env.lock.artifacts import IMAGE, PYPI, Chosen, Shelf, best_file, choose, normalise, version_of
from accel_env.lock.closer import Closer, Closure, Found, Refusal
from accel_env.lock.question import make_question, target_of
from accel_env.lock.rules import Rules
from accel_env.model import Lock, LockedFile

if TYPE_CHECKING:
    from accel_env.lock.fetch import Link
    from accel_env.matrix.types import Artifact
    from accel_env.model import Pick, Solution


class Facts(Shelf, checks.Knowledge, Protocol):
    """What locking asks of the matrix; `matrix.load.Matrix` has it all."""

    @property
    def version(self) -> str:
        """The matrix's date."""
        ...

    @property
    def digest(self) -> str:
        """`sha256:...` over the matrix."""
        ...

    def artifact(self, index: str, filename: str) -> Artifact | None:
        """What is known of one file of an index."""
        ...


@dataclass(frozen=True, slots=True)
class LockOptions:
    """`exclude_newer`: the cut-off for PyPI (see `cutoff`; empty: none). `cache`: a folder that remembers hashes of downloads."""

    exclude_newer: str
    offline: bool = False
    cache: Path | None = None
    progress: Callable[[str], None] = lambda _: None


def cutoff(matrix_version: str) -> str:
    """The first moment of the matrix's date (`2026.11.30` -> `2026-11-30T00:00:00Z`): the cut-off when nobody names one."""
    import datetime

    try:
        return f"{datetime.date(*map(int, matrix_version.split('.')[:3])).isoformat()}T00:00:00Z"
    except (TypeError, ValueError):
        raise InputError(
            "matrix-version",
            f"the version of the matrix is no date: {matrix_version!r}",
            hint='matrix.yaml: version: "YYYY.MM.DD"',
        ) from None


def close(solution: Solution, matrix: Facts, rules: Rules, closer: Closer, options: LockOptions) -> Lock | Refusal:
    """The lock of a solution, or a Refusal that the solver can learn from. ClosureError (5) when a file or tool fails."""
    target = target_of(solution)
    chosen = {
        pick.candidate.name: choose(pick, target.libc, matrix)
        for pick in solution.picks
        if pick.candidate.index not in (PYPI, IMAGE)
    }
    if options.offline:
        _refuse_unhashed(solution, chosen)
    answer = closer.close(make_question(solution, chosen, options.exclude_newer, options.offline))
    pins = tuple((pick.candidate.name, pick.candidate.version, pick.candidate.build) for pick in solution.picks)
    if isinstance(answer, Refusal):
        return replace(answer, picks=_named(pins, answer.reason))
    if also := checks.needed_but_unpicked(solution, (found.name for found in answer.files), matrix):
        return Refusal(f"the closure needs {', '.join(also)}, whose build must fit torch and the device", pins, also)
    files = _sorted((*_outside(answer, matrix, options), *_picked(solution, chosen, target.libc, options)))
    if broken := checks.broken_rules(solution, files, matrix, rules):
        return Refusal("\n".join(broken), pins)
    if missing := checks.unhashed(files):
        raise ClosureError("artifact-unhashed", f"no sha256 is known of {', '.join(missing)}")
    tools = {**answer.tools, "matrix": matrix.version, "matrix_digest": matrix.digest}
    return Lock(solution, files, options.exclude_newer, tools, _notes(solution, chosen, rules))


def _named(pins: tuple[tuple[str, str, str], ...], reason: str) -> tuple[tuple[str, str, str], ...]:
    """The picks that a refusal speaks of, all where it speaks of none: a closer names every requirement that its reason rests
    on, and what it does not name would be refused in any other company as well."""
    words = {normalise(word) for word in re.findall(r"[\w.-]*\w", reason.replace("==", " "))}
    return tuple(pin for pin in pins if normalise(pin[0]) in words) or pins


def _sorted(files: tuple[LockedFile, ...]) -> tuple[LockedFile, ...]:
    return tuple(sorted(files, key=lambda file: (normalise(file.name), file.version, file.filename)))


def _refuse_unhashed(solution: Solution, chosen: Mapping[str, Chosen]) -> None:
    """Offline, a file without a known hash ends the work before it begins."""
    missing = [
        (pick, chosen[pick.candidate.name])
        for pick in solution.picks
        if pick.candidate.name in chosen and not chosen[pick.candidate.name].sha256
    ]
    if missing:
        raise ClosureError(
            "artifact-unhashed",
            f"no sha256 is known of {', '.join(pick.candidate.label for pick, _ in missing)}",
            context=tuple(
                f"{file.filename} at {file.url}" if file.known or file.asset else f"it lies on {file.url.rpartition('/')[0]}/"
                for _, file in missing
            ),
            hint="without --offline it is downloaded once and hashed; --prefer lockable picks builds whose hashes are known",
        )


def _outside(answer: Closure, matrix: Facts, options: LockOptions) -> list[LockedFile]:
    """The closer's files, checked against what the matrix knows of them."""
    grouped: dict[tuple[str, str], list[Found]] = {}
    for found in answer.files:
        grouped.setdefault((found.name, found.version), []).append(_hashed(found, matrix, options))
    return [
        LockedFile(
            name,
            version,
            files[0].filename,
            files[0].sha256,
            PYPI,
            files[0].url,
            files[0].size,
            extra_files=tuple((file.filename, file.sha256) for file in files[1:]),
        )
        for (name, version), files in grouped.items()
    ]


def _hashed(found: Found, matrix: Facts, options: LockOptions) -> Found:
    """The file with its hash. ClosureError when it is no wheel, nobody hashes it, or the matrix knows another hash."""
    if not found.filename:
        raise ClosureError(
            "artifact-unhashed",
            f"{found.name} {found.version} comes from a place without files, so that no hash can be locked",
            hint="ask for a published release instead of a version control address",
        )
    known = matrix.artifact(PYPI, found.filename)
    if not found.sha256:
        if known is not None:
            return replace(found, sha256=known.sha256, size=known.size)
        return _downloaded(found, options)
    if known is not None and known.sha256 != found.sha256:
        raise ClosureError(
            "artifact-hash-mismatch",
            f"{found.filename} on the package index is not the file that the matrix knows",
            context=(f"matrix sha256 {known.sha256}", f"index  sha256 {found.sha256}", *known.sources[:3]),
            hint="the file was replaced, or a mirror serves another: do not install it before you know why",
        )
    return found


def _downloaded(found: Found, options: LockOptions) -> Found:
    """The file with the hash of a download."""
    if options.offline:
        raise ClosureError(
            "artifact-unhashed",
            f"no sha256 is known of {found.filename}",
            context=(f"{found.filename} at {found.url}",),
            hint="without --offline it is downloaded once and hashed",
        )
    from accel_env.lock.fetch import hash_wheel

    hashed = hash_wheel(found.url, found.filename, cache=options.cache, progress=options.progress)
    return replace(found, sha256=hashed.sha256, size=hashed.size)


def _picked(solution: Solution, chosen: Mapping[str, Chosen], libc: str, options: LockOptions) -> list[LockedFile]:
    """The files of the picks that came in as stand-ins."""
    files = []
    for pick in solution.picks:
        candidate = pick.candidate
        if candidate.name not in chosen:
            continue
        file = chosen[candidate.name]
        if not file.sha256:
            file = _find_and_hash(pick, file, libc, options)
        files.append(
            LockedFile(
                candidate.name,
                file.version,
                file.filename,
                file.sha256,
                candidate.index,
                file.url,
                file.size,
                requires=candidate.requires,
            )
        )
    return files


def _find_and_hash(pick: Pick, file: Chosen, libc: str, options: LockOptions) -> Chosen:
    """The pick's file as its index has it: with the hash of the index page, else of a download."""
    from accel_env.lock.fetch import hash_wheel

    if not file.asset:
        file = _on_its_page(pick, file, libc)
    if file.sha256:
        return file
    hashed = hash_wheel(file.url, file.filename, cache=options.cache, progress=options.progress)
    return replace(file, sha256=hashed.sha256, size=hashed.size)


def _on_its_page(pick: Pick, file: Chosen, libc: str) -> Chosen:
    """The file with the address (and the hash, if any) that the index page gives; a page per project or one for all."""
    root, name = file.url.rpartition("/")[0], normalise(pick.candidate.name)
    pages = (f"{root}/{name}/", f"{root}/")
    for page in pages:
        links = {link.filename: link for link in _page(page, pick)}
        if best := best_file(pick, links, libc):
            link = links[best]
            return replace(file, filename=best, version=version_of(best), url=link.url, sha256=link.sha256, size=None, known=True)
    if file.known:
        return file
    raise ClosureError(
        "artifact-missing",
        f"the index has no file of {pick.candidate.label} for {pick.tag} on {pick.candidate.platform}",
        context=tuple(f"looked at {page}" for page in pages),
        hint="--prefer lockable picks builds whose files and hashes are known",
    )


def _page(url: str, pick: Pick) -> tuple[Link, ...]:
    """The links of a page; none where there is no such page. ClosureError when nothing answers at all."""
    from accel_env.lock.fetch import list_links

    try:
        return list_links(url, f"the file of {pick.candidate.label}")
    except ClosureError as problem:
        if problem.reference != "artifact-unreachable":
            raise
        return ()


def _notes(solution: Solution, chosen: Mapping[str, Chosen], rules: Rules) -> tuple[str, ...]:
    """What a reader of the lock should know."""
    notes = [
        f"the sha256 of {file.filename} is known from public lock files ({file.seen}), not from the index itself"
        for _, file in sorted(chosen.items())
        if file.grade == "community"
    ]
    stack = solution.stack.partition("-")[0]
    plain = solution.image is not None and not solution.image.stack
    if solution.problem.policy.target == "container" and plain:
        notes += [
            f"not in this image, because no dated package snapshot is known to pin it: {', '.join(need.packages)} ({need.why})"
            for need in rules.user_space
            if need.stack == stack
        ]
    notes += [
        f"the image brings {pick.candidate.name} {pick.candidate.version}; it is not in the lock and must not be replaced"
        for pick in solution.picks
        if pick.candidate.index == IMAGE
    ]
    return tuple(notes)
