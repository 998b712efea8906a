"""What changes for users between two states of the matrix: what they hold, and which plans of which machines move."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accel_env.errors import AccelEnvError, InputError, UsageError

if TYPE_CHECKING:
    from accel_env.matrix.load import Matrix

Json = dict[str, Any]
WORDS = ("packaged", "installed", "previous", "used")
_FOLDER = "matrix"
_EVERY = 8  # profiles between two words about progress


@dataclass(frozen=True, slots=True)
class DiffWords:
    """What was typed. `a`, `b`: states, `b` empty for the one in use; `profiles`, `asks`: empty for all; `plans`: solve too."""

    a: str
    b: str = ""
    profiles: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    plans: bool = True


def diff(words: DiffWords, progress: Callable[[str], None]) -> Json:
    """The whole comparison. InputError for a state that cannot be found or read."""
    import tempfile

    from accel_env.matrix.compare import compare

    with tempfile.TemporaryDirectory(prefix="accel-env-") as scratch:
        a = open_state(words.a, Path(scratch) / "a", progress)
        b = open_state(words.b or "used", Path(scratch) / "b", progress)
        _check_asks(words.asks, a, b)
        data = compare(a, b) if a.digest != b.digest else {}
        plans = moves(a, b, words, progress) if words.plans and data else {}
    return {
        "schema": "accel-env/diff/1",
        "a": {"state": words.a, "version": a.version, "digest": a.digest},
        "b": {"state": words.b or "used", "version": b.version, "digest": b.digest},
        "same": not data,
        "data": data,
        "plans": plans,
    }


def open_state(spec: str, scratch: Path, progress: Callable[[str], None]) -> Matrix:
    """The matrix that a word means: one of WORDS, a folder, an overlay (over the one in use), an archive, or a git revision."""
    from accel_env.app import matrix_of
    from accel_env.matrix.load import open_matrix

    if spec == "used":
        return matrix_of()
    if spec in WORDS:
        return open_matrix(_known(spec))
    path = Path(spec)
    if path.is_dir():
        return open_matrix(path if (path / "matrix.yaml").is_file() or not (path / _FOLDER).is_dir() else path / _FOLDER)
    if path.is_file():
        if path.suffix in (".yaml", ".yml"):
            return matrix_of((spec,))
        return open_matrix(_unpacked(path, scratch, progress))
    return open_matrix(_revision(spec, scratch))


def _known(word: str) -> Path:
    from accel_env.matrix import installed, store

    if word == "packaged":
        return Path(store.packaged())
    folder = installed.data_folder()
    rows = installed.history(folder) if folder else ()
    place = 0 if word == "installed" else 1
    if len(rows) <= place:
        raise InputError("nothing-installed", f"there is no {word} matrix", hint="`accel-env matrix update --status` lists them")
    return Path(folder) / rows[place][0]


def _unpacked(path: Path, scratch: Path, progress: Callable[[str], None]) -> Path:
    """An archive, only to be looked at: what its signature is worth is said, and keeps nobody from looking."""
    from accel_env.update import fetch
    from accel_env.update.archive import read_archive
    from accel_env.update.keys import signature_state

    content = fetch.read(str(path))
    progress(f"{path.name}: only looked at; {signature_state(str(path), content)}")
    return _put(scratch, read_archive(content, path.name))


def _put(scratch: Path, files: Mapping[str, bytes]) -> Path:
    for name, content in files.items():
        target = scratch / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return scratch


def _revision(spec: str, scratch: Path) -> Path:
    """The folder `matrix` of a revision of the checkout here, or of the one that this program runs from."""
    from accel_env.matrix import store
    from accel_env.system.real import RealSystem

    system = RealSystem()
    scratch.mkdir(parents=True)
    archive = scratch.parent / f"{scratch.name}.tar"
    if not spec.startswith("-"):
        for place in (os.getcwd(), os.path.dirname(store.packaged())):
            top = system.run(("git", "-C", place, "rev-parse", "--show-toplevel"))
            commit = system.run(("git", "-C", place, "rev-parse", "--verify", "--quiet", f"{spec}^{{commit}}"))
            if top.status == 0 and commit.status == 0:
                argv = ("git", "-C", top.stdout.strip(), "archive", f"--output={archive}", commit.stdout.strip(), _FOLDER)
                if system.run(argv, timeout=60).status == 0:
                    return _put(scratch, dict(_members(archive)))
    raise InputError(
        "state-unknown",
        f"`{spec}` is no state of the matrix",
        hint=f"name a folder, an overlay, an archive, a git revision, or one of: {', '.join(WORDS)}",
    )


def _members(archive: Path) -> Iterator[tuple[str, bytes]]:
    """The files of the matrix in an archive of git."""
    import tarfile

    with tarfile.open(archive) as files:
        for member in files:
            name = member.name.removeprefix(f"{_FOLDER}/")
            stream = files.extractfile(member) if member.isreg() else None
            if stream is not None and ".." not in name.split("/") and not name.startswith("/"):
                yield name, stream.read()


def moves(a: Matrix, b: Matrix, words: DiffWords, progress: Callable[[str], None]) -> Json:
    """The plans of every profile and ask that both states can be asked about, and those that differ."""
    profiles = [name for name in words.profiles or b.profiles() if name in a.profiles() and name in b.profiles()]
    if strange := [name for name in words.profiles if name not in profiles]:
        raise InputError(
            "profile-unknown",
            f"not both states have the profile {', '.join(strange)}",
            hint="`accel-env matrix show profiles` lists them",
        )
    asks = words.asks or tuple(f"@{name}" for name in b.bundles()) or tuple(b.document("cells").get("lists", {}))
    lists: Mapping[str, Any] = b.document("cells").get("lists", {})
    moved: list[Json] = []
    for number, profile in enumerate(profiles):
        if number % _EVERY == 0:
            progress(f"plans: {number} of {len(profiles)} machines, {len(moved)} moved")
        for ask in asks:
            wanted = tuple(lists[ask]) if ask in lists else tuple(ask.split())
            before, after = (_plan(wanted, profile, matrix) for matrix in (a, b))
            if before != after:
                moved.append(
                    {"profile": profile, "asks": ask, "before": before, "after": after, "changes": _changes(before, after)}
                )
    return {"profiles": len(profiles), "asks": list(asks), "compared": len(profiles) * len(asks), "moved": moved}


def _check_asks(asks: tuple[str, ...], a: Matrix, b: Matrix) -> None:
    """UsageError for asks that are none, or for a bundle or list that neither state has: no plan could move."""
    from accel_env.asks import read_asks
    from accel_env.system.real import RealSystem

    for text in asks:
        if text in b.document("cells").get("lists", {}):
            continue
        read, _ = read_asks(text.split(), (), RealSystem())
        if strange := [ask.name for ask in read if ask.name[:1] == "@" and ask.name[1:] not in {*a.bundles(), *b.bundles()}]:
            raise UsageError(
                "unknown-bundle", f"neither state has the bundle {', '.join(strange)}",
                hint="`accel-env matrix show bundles` lists them",
            )  # fmt: skip


def _plan(asks: tuple[str, ...], profile: str, matrix: Matrix) -> dict[str, str]:
    """What a machine gets, name -> text; a refusal or a word that a state does not know is one row."""
    from accel_env.app import Request, problem_of
    from accel_env.app_close import answer_of
    from accel_env.model import Solution

    try:
        problem, _ = problem_of(Request(asks=asks, host=profile), matrix)
        found = answer_of(problem, matrix)
    except AccelEnvError as error:
        return {"refused": f"{error.reference}: {error.message}"}
    if not isinstance(found, Solution):
        return {"refused": "; ".join(dict.fromkeys(item.text for item in found.core))}
    picks = {pick.candidate.name: pick.candidate.label.partition(" ")[2] for pick in found.picks}
    image = {"image": "@".join(filter(None, (found.image.ref, found.image.digest[:19])))} if found.image else {}
    return {**picks, "python": found.python, "stack": found.stack, **image}


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """`torch 1 -> 2` for every row that differs; `+` and `-` for what came and went."""
    if "refused" in before or "refused" in after:
        words = [f"refused ({row['refused']})" if "refused" in row else ", ".join(f"{k} {v}" for k, v in list(row.items())[:3])
                 for row in (before, after)]  # fmt: skip
        return [f"{words[0]} -> {words[1]}"]
    rows = [f"{name} {old} -> {after[name]}" for name, old in before.items() if name in after and after[name] != old]
    rows += [f"+ {name} {new}" for name, new in after.items() if name not in before]
    return rows + [f"- {name} {old}" for name, old in before.items() if name not in after]
