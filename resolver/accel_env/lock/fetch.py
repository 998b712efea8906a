"""Files that no index hashes: found on the index's page, downloaded once, hashed, and remembered.

Beside the scripts this is the only module that speaks HTTP. Everything is bounded: time between bytes, size, and place on disk
(the file is hashed while it streams into a temporary file, and only its hash is kept).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING
from urllib.parse import unquote, urljoin, urlsplit

from accel_env.errors import ClosureError

if TYPE_CHECKING:
    import requests

_CHUNK = 1 << 20
_PAGE_LIMIT = 32 << 20
_TIMEOUT = (15.0, 60.0)  # seconds to connect, seconds between bytes
_ANCHOR = re.compile(r"<a\s[^>]*?href\s*=\s*[\"']([^\"']+)[\"']", re.IGNORECASE)
_SHA256 = re.compile(r"sha256[=:]([0-9a-f]{64})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Link:
    """A file on an index page; `sha256` is empty where the page gives none."""

    filename: str
    url: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Hashed:
    """A downloaded file: sha256 in hex, size in bytes."""

    sha256: str
    size: int


def list_links(url: str, what: str) -> tuple[Link, ...]:
    """The files on an index page, in page order. ClosureError, which names `what` was looked for, when it cannot be read."""
    from html import unescape

    with _get(url, what) as answer:
        page = b"".join(_bounded(answer.iter_content(_CHUNK), _PAGE_LIMIT, url)).decode("utf-8", "replace")
    links = []
    for href in _ANCHOR.findall(page):
        absolute, _, fragment = urljoin(url, unescape(href)).partition("#")
        found = _SHA256.search(fragment)
        links.append(Link(unquote(urlsplit(absolute).path.rpartition("/")[2]), absolute, found.group(1).lower() if found else ""))
    return tuple(links)


def hash_wheel(
    url: str,
    filename: str,
    *,
    cache: Path | None = None,
    limit: int = 16 << 30,
    expected: str = "",
    progress: Callable[[str], None] = lambda _: None,
) -> Hashed:
    """The hash of the wheel at `url`, downloaded at most once per `cache` folder (None: no memory).

    ClosureError when it is unreachable, larger than `limit` bytes, cut short, no wheel of that name and version, or when its
    hash is not `expected` (empty: any).
    """
    known = _remembered(cache, url)
    if known is None:
        known = _download(url, filename, limit, progress)
        _remember(cache, url, known)
    if expected and known.sha256 != expected:
        raise ClosureError(
            "artifact-hash-mismatch",
            f"{filename} at {url} is not the file that was recorded",
            context=(f"recorded sha256 {expected}", f"found    sha256 {known.sha256}"),
            hint="the file was replaced, or somebody is in between: do not install it before you know why",
        )
    return known


def _download(url: str, filename: str, limit: int, progress: Callable[[str], None]) -> Hashed:
    """Streams the file to a temporary place, hashing; the place is empty again afterwards."""
    import hashlib
    import tempfile

    digest, size = hashlib.sha256(), 0
    try:
        with _get(url, filename) as answer, tempfile.TemporaryFile() as target:
            total = int(answer.headers.get("Content-Length") or 0)
            if total > limit:
                raise _too_large(filename, url, limit)
            progress(f"no index gives a hash of {filename}: downloading it once" + (f" ({total >> 20} MiB)" if total else ""))
            for chunk in _bounded(answer.iter_content(_CHUNK), limit, url):
                digest.update(chunk)
                target.write(chunk)
                size += len(chunk)
                if total and size * 10 // total != (size - len(chunk)) * 10 // total and total > 64 << 20:
                    progress(f"  {filename}: {size * 100 // total} %")
            if total and size != total:
                raise _cut_short(filename, url, f"{size} of {total} bytes came")
            _check_wheel(target, filename, url)
    except OSError as problem:  # the disk; network trouble is worded in _get
        raise ClosureError(
            "cannot-write",
            f"{filename} cannot be stored for hashing: {problem.strerror or problem}",
            hint="it needs free space in the folder for temporary files (TMPDIR)",
        ) from None
    return Hashed(digest.hexdigest(), size)


def _check_wheel(target: IO[bytes], filename: str, url: str) -> None:
    """ClosureError unless the bytes are a whole wheel whose metadata folder says what the file name says."""
    import zipfile

    try:
        with zipfile.ZipFile(target) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, EOFError):
        raise _cut_short(filename, url, "it is no complete zip file") from None
    stems = {name.partition("/")[0] for name in names if name.endswith(".dist-info/METADATA")}
    wanted = _comparable("-".join(filename.split("-")[:2]))
    if wanted not in {_comparable(stem.removesuffix(".dist-info")) for stem in stems}:
        raise ClosureError(
            "artifact-broken",
            f"{filename} at {url} holds another package: {', '.join(sorted(stems)) or 'no metadata'}",
            hint="the index or a proxy serves something else under this name",
        )


def _comparable(stem: str) -> str:
    return re.sub(r"[-_.+]+", "-", stem).lower()


@contextmanager
def _get(url: str, what: str) -> Iterator[requests.Response]:
    """The open answer to a GET; every trouble of the network on the way becomes a ClosureError that names `what` and the URL."""
    import requests

    if urlsplit(url).scheme not in ("http", "https"):
        raise ClosureError("artifact-unreachable", f"{what} lies at {url}, which is no http or https address")
    try:
        with requests.get(url, stream=True, timeout=_TIMEOUT, headers={"Accept-Encoding": "identity"}) as answer:
            if answer.status_code != requests.codes.ok:
                raise ClosureError(
                    "artifact-unreachable",
                    f"{what} cannot be had: {url} answers {answer.status_code} {answer.reason}",
                    hint="the index may have moved or dropped it; a site's own mirror can be named in an overlay",
                )
            yield answer
    except requests.exceptions.ChunkedEncodingError:
        raise _cut_short(what, url, "the connection ended early") from None
    except requests.RequestException as problem:
        raise ClosureError(
            "network-down",
            f"{what} cannot be had: {url} does not answer ({type(problem).__name__})",
            hint="check the network and the proxy; --prefer lockable picks builds whose hashes are known",
        ) from None


def _bounded(chunks: Iterator[bytes], limit: int, url: str) -> Iterator[bytes]:
    """The chunks, as long as they stay under `limit` bytes."""
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > limit:
            raise _too_large(url.rpartition("/")[2], url, limit)
        yield chunk


def _too_large(what: str, url: str, limit: int) -> ClosureError:
    return ClosureError("artifact-too-large", f"{what} at {url} is larger than {limit >> 20} MiB")


def _cut_short(what: str, url: str, detail: str) -> ClosureError:
    return ClosureError(
        "artifact-broken",
        f"{what} at {url} is not complete: {detail}",
        hint="try again; if it stays so, the index serves a damaged file",
    )


def _slot(cache: Path, url: str) -> Path:
    import hashlib

    return cache / "hashes" / f"{hashlib.sha256(url.encode()).hexdigest()}.json"


def _remembered(cache: Path | None, url: str) -> Hashed | None:
    """What an earlier download found; None when there was none or its note is unreadable."""
    if cache is None:
        return None
    try:
        note = json.loads(_slot(cache, url).read_text(encoding="utf-8"))
        return Hashed(str(note["sha256"]), int(note["size"])) if note["url"] == url else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _remember(cache: Path | None, url: str, known: Hashed) -> None:
    """Keeps the hash; a cache that cannot be written only costs another download."""
    if cache is None:
        return
    slot = _slot(cache, url)
    aside = slot.with_suffix(f".{os.getpid()}.tmp")
    try:
        slot.parent.mkdir(parents=True, exist_ok=True)
        aside.write_text(json.dumps({"url": url, "sha256": known.sha256, "size": known.size}), encoding="utf-8")
        os.replace(aside, slot)
    except OSError:
        aside.unlink(missing_ok=True)
