"""A package index on this machine: PEP 691 pages with upload times under /simple/, and plain pages without hashes under /whl/."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, unquote

from accel_env.lock.artifacts import normalise

OLD, NEW = "2026-01-01T00:00:00Z", "2026-12-24T00:00:00Z"


class Site:
    """What is served. `hits` counts the requests of each path; `newer` names files uploaded after the cut-off of the tests."""

    def __init__(self, folder: Path) -> None:
        self.simple, self.wheels = folder / "simple", folder / "whl"
        self.hits: Counter[str] = Counter()
        self.newer: set[str] = set()
        self.hashes_on_pages = False
        self.cut = 0  # bytes that are missing at the end of a wheel, though its length is announced
        self.hide_length = False
        self.url = ""
        for place in (self.simple, self.wheels):
            place.mkdir(parents=True)

    def page(self, path: str) -> tuple[int, str, bytes]:
        """Status, content type and body of a path."""
        parts = [unquote(part) for part in path.strip("/").split("/")]
        if parts[0] == "simple" and len(parts) == 2:
            return self._json(parts[1])
        if parts[0] == "whl" and path.endswith("/"):
            return self._links(parts[1:])
        file = {"files": self.simple, "whl": self.wheels}.get(parts[0], self.wheels).joinpath(*parts[1:])
        if file.is_file():
            return 200, "application/octet-stream", file.read_bytes()
        return 404, "text/plain", b"no"

    def _json(self, name: str) -> tuple[int, str, bytes]:
        found = [file for file in sorted(self.simple.iterdir()) if normalise(file.name.split("-")[0]) == name]
        files = [
            {
                "filename": file.name,
                "url": f"/files/{quote(file.name)}",
                "hashes": {"sha256": hashlib.sha256(file.read_bytes()).hexdigest()},
                "upload-time": NEW if file.name in self.newer else OLD,
                "size": file.stat().st_size,
            }
            for file in found
        ]
        body = json.dumps({"meta": {"api-version": "1.1"}, "name": name, "files": files}).encode()
        return (200, "application/vnd.pypi.simple.v1+json", body) if files else (404, "text/plain", b"no")

    def _links(self, parts: list[str]) -> tuple[int, str, bytes]:
        """The page of one project of a torch-like index: relative links, no hash unless `hashes_on_pages`."""
        folder = self.wheels / parts[0]
        links = []
        for file in sorted(folder.iterdir()) if folder.is_dir() else []:
            mark = f"#sha256={hashlib.sha256(file.read_bytes()).hexdigest()}" if self.hashes_on_pages else ""
            if len(parts) == 2 and normalise(file.name.split("-")[0]) == parts[1]:
                links.append(f'<a href="/whl/{parts[0]}/{quote(file.name)}{mark}">{file.name}</a><br/>')
        return (200, "text/html", "\n".join(links).encode()) if links else (404, "text/plain", b"no")


@contextmanager
def serving(folder: Path) -> Iterator[Site]:
    """A site on a free port of this machine, for the length of the block."""
    site = Site(folder)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Answers with the page."""
            site.hits[unquote(self.path)] += 1
            body = self.head()
            wheel = self.path.startswith("/whl/") and self.path.endswith(".whl")
            self.wfile.write(body[: len(body) - site.cut] if wheel else body)

        def do_HEAD(self) -> None:
            """Answers without the body."""
            self.head()

        def head(self) -> bytes:
            """Sends status and headers; the body that goes with them."""
            status, kind, body = site.page(self.path)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            if not (site.hide_length and self.path.endswith(".whl")):
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.close_connection = True
            return body

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    site.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
