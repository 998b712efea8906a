"""The building verbs: a rendered folder becomes an image, and is proved to come out the same twice."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accel_env.errors import BuildError, UsageError, VerifyError

if TYPE_CHECKING:
    from accel_env.build.compare import Comparison
    from accel_env.build.engine import BuildRequest, Built, Engine, EngineInfo, Event, ImageDetails
    from accel_env.build.folder import Folder, Record

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class BuildWords:
    """What was typed. `engine`: `docker`, `podman`, or empty for the one that is there."""

    folder: str
    tag: str = ""
    push: str = ""
    platform: str = ""
    builder: str = ""
    network: str = ""
    secrets: tuple[str, ...] = ()
    engine: str = ""
    no_cache: bool = False


def _silent(_: object) -> None:
    return None


def build(words: BuildWords, watch: Callable[[Event], None] = _silent) -> Json:
    """Build the folder; the digests of the image go to `image.json` in it. BuildError (6) when the engine fails."""
    from accel_env.build.find import find_engine
    from accel_env.build.folder import read_folder, read_record

    _complete(words.folder)
    folder = read_folder(words.folder)
    record = read_record(folder)
    _check_secrets(words.secrets)
    engine = find_engine(words.engine)
    info = engine.info()
    began = time.monotonic()
    built = engine.build(_request(words, folder, info), watch)
    seconds = time.monotonic() - began
    image = engine.inspect(built.ref)
    now = _record(folder, built, image, info)
    notes = [*built.notes, *_against(record, now)]
    written = _write_record(folder, now, notes) if _worth_keeping(record, now) else []
    return {"schema": "accel-env/built/1", **_told(folder, now, built, info), "seconds": round(seconds, 1), "notes": notes,
            "written": written}  # fmt: skip


def verify(words: BuildWords, watch: Callable[[Event], None] = _silent, say: Callable[[str], None] = _silent) -> Json:
    """Build the folder, build it again without the cache, compare. VerifyError (7) names the first file that differs."""
    from accel_env.build.find import find_engine
    from accel_env.build.folder import read_folder, read_record

    _complete(words.folder)
    folder = read_folder(words.folder)
    record = read_record(folder)
    _check_secrets(words.secrets)
    engine = find_engine(words.engine)
    info = engine.info()
    request = _request(words, folder, info)
    again = replace(request, tag=f"accel-env/verify:{os.urandom(6).hex()}", no_cache=True)
    seconds = []
    try:
        results = []
        for place, asked in enumerate((request, again)):
            say(("building", "building again, without the cache")[place])
            began = time.monotonic()
            results.append(engine.build(asked, watch))
            seconds.append(round(time.monotonic() - began, 1))
        one, other = (_record(folder, built, engine.inspect(built.ref), info) for built in results)
        if (one.config, one.layers) != (other.config, other.layers):
            say("comparing the two images")
            raise _differ(engine, words.folder, (one, other), tuple(built.ref for built in results))
    finally:
        with contextlib.suppress(BuildError):  # what went wrong before counts more
            engine.remove(again.tag)
    if record is not None and record.recipe == one.recipe:
        _check_record(words.folder, record, one)
    notes = list(dict.fromkeys(note for built in results for note in built.notes))
    written = _write_record(folder, one, notes) if _worth_keeping(record, one) else []
    return {"schema": "accel-env/verified/1", "status": "identical", **_told(folder, one, results[0], info), "seconds": seconds,
            "recorded": bool(record), "notes": notes, "written": written}  # fmt: skip


def _complete(place: str) -> None:
    """Puts the smoke checks into a folder whose Dockerfile copies them and that is kept without, as those of dockerfiles/ are."""
    from accel_env.lock.write import write_files
    from accel_env.smoke.checks import program
    from accel_env.smoke.local import PROGRAM

    folder = Path(place)
    try:
        recipe = (folder / "Dockerfile").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return  # who reads the folder says what is wrong with it
    copied = any(line.startswith("COPY ") and PROGRAM in line.split() for line in recipe.splitlines())
    if copied and not (folder / PROGRAM).exists():
        write_files(folder, {PROGRAM: program()})


def _request(words: BuildWords, folder: Folder, info: EngineInfo) -> BuildRequest:
    """The words as a request; a plan for another architecture than the engine's asks for its platform by itself."""
    from accel_env.build.engine import BuildRequest

    foreign = folder.platform if folder.platform.partition("/")[2] != info.architecture else ""
    return BuildRequest(
        str(folder.path),
        words.tag or folder.tag,
        folder.epoch,
        words.no_cache,
        words.platform or (foreign if info.architecture else ""),
        words.builder,
        words.network,
        words.push,
        words.secrets,
    )


def _check_secrets(secrets: tuple[str, ...]) -> None:
    """Refuses a secret that names no id or no file: builders say so late, or take an empty one."""
    for secret in secrets:
        parts = dict(part.partition("=")[::2] for part in secret.split(","))
        if not parts.get("id"):
            raise UsageError("bad-secret", f"--secret {secret} names no id", hint="--secret id=ca,src=FILE")
        path = parts.get("src") or parts.get("source") or ""
        if path and not os.access(path, os.R_OK):
            raise UsageError("bad-secret", f"--secret {secret}: {path} cannot be read", hint="--secret id=ca,src=FILE")


def _record(folder: Folder, built: Built, image: ImageDetails | None, info: EngineInfo) -> Record:
    from accel_env.build.folder import Record

    layers, size, platform = (image.layers, image.size, image.platform) if image else ((), 0, "")
    return Record(
        folder.recipe, built.config, layers, built.manifest, size, platform, folder.epoch, info.name, info.version
    )  # fmt: skip


def _told(folder: Folder, record: Record, built: Built, info: EngineInfo) -> Json:
    return {
        "image": built.ref,
        "config": record.config,
        "manifest": record.manifest,
        "layers": list(record.layers),
        "size": record.size,
        "platform": record.platform,
        "epoch": record.epoch,
        "engine": {"name": info.name, "version": info.version, "client": info.client},
        "run": [info.name, "run", "--rm", *folder.run_args, built.ref],
    }


def _worth_keeping(before: Record | None, now: Record) -> bool:
    """A record of the same recipe is a promise: it stays, whatever was built now."""
    return bool(now.layers) and (before is None or before.recipe != now.recipe)


def _against(before: Record | None, now: Record) -> list[str]:
    """What to say when the image is not the one that was promised."""
    if before is None or before.recipe != now.recipe or not now.layers or before.config == now.config:
        return []
    if before.engine != now.engine and before.layers == now.layers:
        return [f"the layers are those of image.json; {before.engine} writes another configuration than {now.engine}"]
    return [f"this is not the image of image.json ({before.config}, by {before.engine} {before.version}): see `accel-env verify`"]


def _write_record(folder: Folder, record: Record, notes: list[str]) -> list[str]:
    """Writes image.json. A folder that cannot be written is no reason to lose a finished build: it becomes a note."""
    from accel_env.build.folder import RECORD, record_text
    from accel_env.system.files import write_file

    path = folder.path / RECORD
    try:
        write_file(path, record_text(record))
    except UsageError as problem:
        notes.append(f"the record was not written: {problem.message}")
        return []
    return [str(path)]


def _check_record(folder: str, promised: Record, now: Record) -> None:
    """Refuses an image that is built the same twice here, but is not the one that was recorded."""
    from accel_env.build.compare import first_layer

    number = first_layer(promised.layers, now.layers)
    if not number and (promised.config == now.config or promised.engine != now.engine):
        return
    what = f"layer {number}" if number else "the configuration"
    raise VerifyError(
        "differs-from-record",
        f"{folder} builds the same image twice here, but not the one in its image.json: {what} differs",
        context=(
            f"recorded  {promised.config} by {promised.engine} {promised.version}",
            f"built     {now.config} by {now.engine} {now.version}",
        ),
        hint="delete image.json if the record is of an engine that you no longer use; else find out what changed",
    )


def _differ(engine: Engine, folder: str, pair: tuple[Record, Record], refs: tuple[str, ...]) -> VerifyError:
    """What differs, from the archives of both images."""
    from accel_env.build.archive import read_archive
    from accel_env.build.compare import compare_configs, compare_layers, first_layer

    one, other = pair
    number = first_layer(one.layers, other.layers)
    # Layers that both have are the same files: nobody needs to know what is in them.
    skip = set(one.layers) & set(other.layers)
    # By name: a store may know an image by the digest of its manifest alone.
    archives = [read_archive(engine.save(ref), skip) for ref in refs]
    if number:
        found = compare_layers(one.layers, other.layers, archives[0], archives[1])
    else:
        texts = [archive.documents.get(record.config, b"{}") for archive, record in zip(archives, pair, strict=True)]
        found = compare_configs(texts[0], texts[1])
    return _difference(folder, one, other, found)


def _difference(folder: str, one: Record, other: Record, found: Comparison) -> VerifyError:
    where = f"layer {found.layer} of {len(one.layers)}" if found.layer else "the configuration"
    lines = [f"first   {one.config}", f"second  {other.config}"]
    lines += [f"{'/' if found.layer else ''}{difference.where}: {difference.what}" for difference in found.differences]
    lines += [f"and {found.more} more"] if found.more else []
    return VerifyError(
        "not-reproducible",
        f"two builds of {folder} differ in {where}",
        context=tuple(lines),
        hint="a step writes something of the moment (a time, a random name, an unsorted list): the first path shows which",
    )
