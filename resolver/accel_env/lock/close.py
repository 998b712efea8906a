"""A solution and a closer -> a lock, or why the picks cannot be locked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from accel_env.errors import ClosureError, InputError
from accel_env.lock import checks
from accel_env.lock.answer import names_in
from accel_env.lock.artifacts import IMAGE, PYPI, Chosen, Shelf, best_file, choose, normalise, version_of
from accel_env.lock.closer import Closer, Closure, Found, Refusal
from accel_env.lock.foreseen import staying
from accel_env.lock.notes import notes_of
from accel_env.lock.question import make_question, substitutes, target_of, torch_question
from accel_env.lock.rules import Rules
from accel_env.lock.words import words_of
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
    checks.refuse_asks(solution, matrix, rules)
    libc = target_of(solution).libc
    chosen = {
        pick.candidate.name: choose(pick, libc, matrix) for pick in solution.picks if pick.candidate.index not in (PYPI, IMAGE)
    }
    if options.offline:
        _refuse_unhashed(solution, chosen)
    answer = closer.close(make_question(solution, chosen, rules, options.exclude_newer, options.offline))
    if isinstance(answer, Refusal):
        return _blame(answer, solution, rules)
    answer, kept = _without(answer, solution, rules)
    names = [found.name for found in answer.files]
    also, left = checks.unpicked(solution, names, matrix)
    if also:
        return Refusal(f"the closure needs {', '.join(also)}, whose build must fit torch and the device", also=also)
    for name in names:
        checks.refuse_stub(normalise(name), matrix, rules)
    files = _sorted((*_outside(answer, matrix, options), *_picked(solution, chosen, libc, options)))
    if wrong := checks.misplaced(solution, files, matrix, rules):
        return Refusal("\n".join(wrong))
    if broken := checks.broken_rules(solution, files, matrix, rules):
        return Refusal("\n".join(broken), tuple(map(_pin, solution.picks)))
    if missing := checks.unhashed(files):
        raise ClosureError("artifact-unhashed", f"no sha256 is known of {', '.join(missing)}")
    tools = {**answer.tools, "matrix": matrix.version, "matrix_digest": matrix.digest}
    if words := words_of(solution):
        tools["made_by"] = f"accel-env {words}"
    return Lock(solution, files, options.exclude_newer, tools, (*notes_of(solution, chosen, answer, left, rules), *kept))


def _without(answer: Closure, solution: Solution, rules: Rules) -> tuple[Closure, tuple[str, ...]]:
    """The closure without what stays as the image brings it, and a note about each of these."""
    own = {normalise(name): rule for name, rule in staying(solution, rules)}
    kept = [found for found in answer.files if normalise(found.name) in own]
    notes = [f"{found.name} stays the image's own and is not in the lock: {own[normalise(found.name)].why}" for found in kept]
    return replace(answer, files=tuple(found for found in answer.files if found not in kept)), tuple(dict.fromkeys(notes))


def _pin(pick: Pick) -> tuple[str, str, str]:
    return (pick.candidate.name, pick.candidate.version, pick.candidate.build)


def _blame(refusal: Refusal, solution: Solution, rules: Rules) -> Refusal:
    """The refusal with the picks that it speaks of: a closer names every requirement that its reason rests on, and what it does
    not name would be refused in any other company as well."""
    named = names_in(refusal.reason)
    others = {pick: rule for pick, rule in substitutes(solution, rules) if normalise(rule.provides) in named}
    told = [f"{rule.provides} is {pick.candidate.label} here: {rule.why}" for pick, rule in others.items()]
    picks = [pick for pick in solution.picks if pick in others or normalise(pick.candidate.name) in named]
    return Refusal("\n".join([refusal.reason, *told]), tuple(map(_pin, picks)))


def look_into(
    refusal: Refusal, solution: Solution, matrix: Facts, rules: Rules, closer: Closer, options: LockOptions
) -> Refusal:
    """A refusal of torch with what is behind it, because walking down release by release finds it late or never.

    What is outside the matrix is closed with torch left free. That gives the release that would do (`torch`), or a reason that no
    torch changes: then the refusal is that reason and rests on no pick.
    """
    from packaging.version import Version

    pinned = [version for name, version, _ in refusal.picks if normalise(name) == "torch"]
    if not pinned or not solution.outside:
        return refusal
    answer = closer.close(torch_question(solution, rules, options.exclude_newer, options.offline))
    if isinstance(answer, Refusal):
        # a package of the matrix may be on another index than the one that was asked
        modelled = names_in(answer.reason) & {normalise(name) for name in matrix.package_names()}
        return refusal if modelled else answer
    found = [Version(found.version) for found in answer.files if normalise(found.name) == "torch"]
    older = [version.public for version in found if version < Version(Version(pinned[0]).public)]
    return replace(refusal, torch="".join(older[:1]))


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
