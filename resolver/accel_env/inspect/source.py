"""Bytes of a wheel wherever it lies: a local file, or an HTTP server that is asked for ranges.

A server that answers a range with the whole file is read once, into a temporary file, and that is said. Memory stays small.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any

from accel_env.errors import ClosureError

if TYPE_CHECKING:
    from http.client import HTTPResponse

Say = Callable[[str], None]
_TIMEOUT = 60.0  # seconds to connect, and between bytes
_TAIL = 256 << 10  # bytes of the end that hold the central directory of most wheels
_SKIP = 2 << 20  # bytes that are cheaper to read past than to ask anew for
_CHUNK = 1 << 20
_TRIES = 3
LIMIT = 16 << 30
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")


def open_wheel(place: str, say: Say = lambda _: None) -> IO[bytes]:
    """A seekable file of the wheel at a path or an http(s) URL. ClosureError where it cannot be had."""
    if "://" not in place:
        try:
            return open(place, "rb")
        except (OSError, ValueError) as problem:
            raise _unreachable(place, getattr(problem, "strerror", None) or str(problem)) from None
    return _Ranged(place).checked(say)


def download(url: str, target: IO[bytes]) -> str:
    """Writes the whole file at `url` to `target`; gives its sha256 in hex. ClosureError where it is cut short or too large."""
    import hashlib

    digest, size = hashlib.sha256(), 0
    with _ask(url, {}) as answer:
        total = int(answer.headers.get("Content-Length") or 0)
        while chunk := _read(answer, _CHUNK, url):
            digest.update(chunk)
            size += len(chunk)
            if size > LIMIT:
                raise ClosureError("artifact-too-large", f"{url} is larger than {LIMIT >> 30} GiB")
            _write(target, chunk)
    if total and size != total:
        raise _cut(url, f"{size} of {total} bytes came")
    return digest.hexdigest()


def fetch(url: str, accept: str = "*/*", limit: int = 64 << 20) -> tuple[bytes, str]:
    """(content, content type) of a page. ClosureError where it cannot be had or is longer than `limit` bytes."""
    with _ask(url, {"Accept": accept}) as answer:
        content = _read(answer, limit + 1, url)
        if len(content) > limit:
            raise ClosureError("artifact-too-large", f"{url} is larger than {limit >> 20} MiB")
        return content, answer.headers.get("Content-Type", "")


class _Ranged(io.RawIOBase):
    """A file on a server. One answer stays open while reading goes forward; jumps ask for a new range."""

    def __init__(self, url: str) -> None:
        self._url, self._place, self._size = url, 0, 0
        self._answer: HTTPResponse | None = None
        self._at = 0
        self._tail, self._tail_at = b"", 0

    def checked(self, say: Say) -> IO[bytes]:
        """This file once its end was read, or a temporary file with everything where the server knows no ranges."""
        answer = _ask(self._url, {"Range": f"bytes=-{_TAIL}"})
        if answer.status != 206:
            answer.close()
            return self._whole(say)
        with answer:
            found = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
            self._tail = _read(answer, _TAIL, self._url)
        if not found or int(found[2]) - int(found[1]) + 1 != len(self._tail) or int(found[2]) + 1 != int(found[3]):
            raise _cut(self._url, "the server's answer to a range makes no sense")
        self._tail_at, self._size = int(found[1]), int(found[3])
        return io.BufferedReader(self, 64 << 10)

    def _whole(self, say: Say) -> IO[bytes]:
        import tempfile

        say(f"{self._url}: the server knows no ranges; downloading the whole file")
        target = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
        try:
            download(self._url, target)
        except BaseException:
            target.close()
            raise
        target.seek(0)
        return target

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = 0) -> int:
        place = offset + (0, self._place, self._size)[whence]
        if place < 0:
            raise ValueError("a place before the beginning")
        self._place = place
        return place

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        wanted = min(len(view), max(self._size - self._place, 0))
        if not wanted:
            return 0
        if self._place >= self._tail_at:
            start = self._place - self._tail_at
            data = self._tail[start : start + wanted]
        else:
            data = self._ranged(wanted)
        view[: len(data)] = data
        self._place += len(data)
        return len(data)

    def _ranged(self, wanted: int) -> bytes:
        for attempt in range(_TRIES):
            try:
                return self._once(wanted)
            except ClosureError:
                self._drop()
                if attempt == _TRIES - 1:
                    raise
        return b""

    def _once(self, wanted: int) -> bytes:
        gap = self._place - self._at
        if self._answer is None or not 0 <= gap <= _SKIP:
            self._drop()
            self._answer = _ask(self._url, {"Range": f"bytes={self._place}-{self._size - 1}"})
            given = self._answer.headers.get("Content-Range", "")
            if self._answer.status != 206 or not given.startswith(f"bytes {self._place}-"):
                raise _cut(self._url, "the server forgot how to serve ranges")
            self._at = self._place
        elif gap:
            self._at += len(_read(self._answer, gap, self._url))
        data = _read(self._answer, wanted, self._url)
        if not data:
            raise _cut(self._url, "the connection ended early")
        self._at += len(data)
        return data

    def _drop(self) -> None:
        if self._answer is not None:
            self._answer.close()
            self._answer = None

    def close(self) -> None:
        self._drop()
        super().close()


def _ask(url: str, headers: dict[str, str]) -> HTTPResponse:
    """The open answer to a GET; whatever goes wrong on the way is a ClosureError that names the URL."""
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    if not url.startswith(("http://", "https://")):
        raise _unreachable(url, "no http or https address")
    try:
        request = Request(url, headers={"Accept-Encoding": "identity", "User-Agent": "accel-env", **headers})
    except ValueError as problem:
        raise _unreachable(url, str(problem)) from None
    for attempt in range(_TRIES):
        try:
            answer: HTTPResponse = urlopen(request, timeout=_TIMEOUT)
            return answer
        except HTTPError as problem:
            problem.close()
            if problem.code < 500 or attempt == _TRIES - 1:
                raise _unreachable(url, f"the server answers {problem.code} {problem.reason}") from None
        except (OSError, HTTPException, ValueError) as problem:
            if attempt == _TRIES - 1:
                raise _unreachable(url, f"no answer ({getattr(problem, 'reason', None) or problem})") from None
    raise _unreachable(url, "no answer")


def _read(answer: HTTPResponse, wanted: int, url: str) -> bytes:
    from http.client import HTTPException

    try:
        return answer.read(wanted)
    except (OSError, HTTPException, ValueError) as problem:
        raise _cut(url, f"the connection ended early ({type(problem).__name__})") from None


def _write(target: IO[bytes], chunk: bytes) -> None:
    try:
        target.write(chunk)
    except OSError as problem:
        raise ClosureError(
            "cannot-write",
            f"there is no room for a download: {problem.strerror or problem}",
            hint="it needs free space in the folder for temporary files (TMPDIR)",
        ) from None


def _unreachable(place: str, why: str) -> ClosureError:
    message = f"{place} cannot be read: {why}"
    return ClosureError("artifact-unreachable", message, hint="check the path or the index, and the network")


def _cut(url: str, detail: str) -> ClosureError:
    return ClosureError(
        "artifact-broken", f"{url} is not complete: {detail}", hint="try again; if it stays so, the server holds a damaged file"
    )
