"""Where the documents of an update come from: the sites themselves, or a copy of them (a loopback server or a folder).

Documents are named by logical URLs. `https://pypi/simple/NAME/` means the index that pip is configured to use by default. In a
copy, `https://HOST/PATH?QUERY` lies under `HOST/PATH` (served) or in the file `HOST/PATH@QUERY` (folder), where a path that ends
with `/` means `index.json` or `index.html`.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from accel_env.errors import ClosureError

if TYPE_CHECKING:
    import requests

PYPI = "https://pypi/simple/"
_TIMEOUT = (15.0, 60.0)  # seconds to connect, seconds between bytes
_LIMIT = 64 << 20
_TRIES = 3
_TOKENS = {"api.github.com": "GITHUB_TOKEN"}


@dataclass(frozen=True, slots=True)
class Page:
    """A document: logical URL, HTTP status, headers with lower-case names, body."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode("utf-8", "replace")


@dataclass(slots=True)
class Source:
    """`copy`: empty for the sites themselves, else the URL or folder of a copy. `pause` sleeps so many seconds between tries."""

    copy: str = ""
    pause: Callable[[float], None] = time.sleep
    asked: int = 0
    _session: requests.Session | None = None
    _index: str = field(default="", repr=False)

    def get(self, url: str, *, accept: str = "*/*", headers: Mapping[str, str] | None = None, also: tuple[int, ...] = ()) -> Page:
        """The document of a logical URL. ClosureError where it cannot be had; statuses in `also` are handed back."""
        self.asked += 1
        if self.copy and "://" not in self.copy:
            page = self._read(url)
        else:
            page = self._fetch(url, {"Accept": accept, **(headers or {})})
        if page.status != 200 and page.status not in also:
            raise ClosureError("source-refused", f"{shown(url)} answers with status {page.status}", hint=_hint(page.status))
        return page

    def check(self, url: str, sha256: str) -> Page:
        """The document, whose bytes must have this sha256. ClosureError otherwise."""
        page = self.get(url)
        found = hashlib.sha256(page.body).hexdigest()
        if found != sha256:
            raise ClosureError(
                "source-changed",
                f"{shown(url)} has the sha256 {found}, its index says {sha256}",
                hint="try again; where it stays so, somebody is in between",
            )
        return page

    def place(self, url: str) -> str:
        """Where a file of a logical URL really is: a URL, or a path in the folder of a copy."""
        if self.copy and "://" not in self.copy:
            parts = urlsplit(url)
            return str(Path(self.copy) / parts.netloc / parts.path.lstrip("/"))
        return self._real(url)

    def _read(self, url: str) -> Page:
        parts = urlsplit(url)
        place = Path(self.place(url))
        if parts.query:
            place = place.with_name(f"{place.name}@{parts.query}")
        candidates = [place / "index.json", place / "index.html"] if url.endswith("/") or place.is_dir() else [place]
        for path in candidates:
            if path.is_file():
                kind = "application/json" if path.suffix == ".json" else "text/html"
                return Page(url, 200, {"content-type": kind}, path.read_bytes())
        return Page(url, 404, {}, b"")

    def _fetch(self, url: str, headers: dict[str, str]) -> Page:
        import requests

        if self._session is None:
            self._session = requests.Session()
            self._session.headers["User-Agent"] = "accel-env-update"
        host = urlsplit(url).netloc
        token = os.environ.get(_TOKENS.get(host, ""), "") if not self.copy else ""
        if token:
            headers["Authorization"] = f"Bearer {token}"
        said = ""
        for attempt in range(_TRIES):
            if attempt:
                self.pause(2.0**attempt)
            try:
                with self._session.get(self._real(url), headers=headers, timeout=_TIMEOUT, stream=True) as answer:
                    if answer.status_code in (429, 500, 502, 503, 504) and attempt + 1 < _TRIES:
                        continue
                    named = {name.lower(): value for name, value in answer.headers.items()}
                    return Page(url, answer.status_code, named, _bounded(answer, url))
            except requests.RequestException as problem:
                said = type(problem).__name__
        raise ClosureError("source-unreachable", f"{shown(url)} cannot be read: {said}", hint="check the network and the proxy")

    def _real(self, url: str) -> str:
        if self.copy:
            parts = urlsplit(url)
            return f"{self.copy.rstrip('/')}/{parts.netloc}{parts.path}" + (f"?{parts.query}" if parts.query else "")
        if url.startswith(PYPI):
            self._index = self._index or default_index()
            return f"{self._index.rstrip('/')}/{url.removeprefix(PYPI)}"
        return url


def _bounded(answer: requests.Response, url: str) -> bytes:
    body = bytearray()
    for chunk in answer.iter_content(1 << 16):
        body += chunk
        if len(body) > _LIMIT:
            raise ClosureError("source-too-large", f"{shown(url)} is larger than {_LIMIT >> 20} MiB", hint="look at it by hand")
    wanted = answer.headers.get("Content-Length", "")
    if wanted.isdigit() and not answer.headers.get("Content-Encoding") and int(wanted) != len(body):
        raise ClosureError("source-cut-short", f"{shown(url)}: {len(body)} of {wanted} bytes came", hint="try again")
    return bytes(body)


def default_index() -> str:
    """The URL of the package index that pip uses here when nothing else is said."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True, check=False
    )
    named = os.environ.get("PIP_INDEX_URL") or done.stdout.strip()
    if named:
        return named
    from pip._internal.models.index import PyPI

    return str(PyPI.simple_url)


def shown(url: str) -> str:
    """A logical URL for people."""
    return f"PyPI's page of {url.removeprefix(PYPI).strip('/')}" if url.startswith(PYPI) else url


def _hint(status: int) -> str:
    if status in (401, 403, 429):
        return "the site wants a token or fewer requests: for GitHub, set GITHUB_TOKEN"
    return "look whether the address still holds" if status == 404 else "try again later"
