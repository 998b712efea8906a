"""The refresh scripts over HTTP: a server on this machine that wants tokens, pages its answers, fails and recovers."""

from __future__ import annotations

import hashlib
import importlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from accel_env.errors import ClosureError

ROOT = Path(__file__).resolve().parents[2]
SITES = ROOT / "tests" / "data" / "refresh" / "sites"
Answer = tuple[int, dict[str, str], bytes]


class Server:
    """Serves `sites/` unless a rule of the test answers first; `asked` are (path, headers)."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.rule: Callable[[str, dict[str, str]], Answer | None] = lambda path, headers: None
        self.url = ""

    def answer(self, path: str, headers: dict[str, str]) -> Answer:
        self.asked.append((path, headers))
        found = self.rule(path, headers)
        if found:
            return found
        place = SITES / unquote(path.replace("?", "@")).strip("/")
        for file in (place, place / "index.json", place / "index.html"):
            if file.is_file():
                kind = "application/vnd.pypi.simple.v1+json" if file.suffix == ".json" else "text/html"
                return 200, {"Content-Type": kind}, file.read_bytes()
        return 404, {}, b"no"


@pytest.fixture
def server() -> Iterator[Server]:
    site = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, body = site.answer(self.path, dict(self.headers))
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        site.url = f"http://127.0.0.1:{http.server_address[1]}"
        threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield site
        http.shutdown()


@pytest.fixture
def source(server: Server, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module("updating.source").Source(server.url, pause=lambda _: None)


def test_pages_of_an_index_in_both_forms(server: Server, source: Any) -> None:
    pages = importlib.import_module("updating.pages")
    assert len(pages.read_files(source.get("https://pypi/simple/numpy/", accept=pages.ACCEPT))) == 15
    html = pages.read_files(source.get("https://download.pytorch.org/whl/cu126/torch/", accept=pages.ACCEPT))
    assert len(html) == 6 and html[0].requires_python == ">=3.11" and "+" in html[-1].name
    assert sum(bool(file.sha256) for file in html) == 5
    assert "vnd.pypi.simple.v1+json" in server.asked[0][1]["Accept"]


def test_a_failing_site_is_asked_again_and_no_token_is_sent(server: Server, source: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    statuses = [503, 429]
    server.rule = lambda path, headers: (statuses.pop(0), {}, b"") if statuses else (200, {}, b"[]")
    assert source.get("https://api.github.com/repos/x/y/releases").body == b"[]"
    assert len(server.asked) == 3
    assert all("Authorization" not in headers for _, headers in server.asked)
    server.rule = lambda path, headers: (500, {}, b"")
    with pytest.raises(ClosureError, match="status 500") as caught:
        source.get("https://api.github.com/repos/x/y/releases")
    assert caught.value.exit_code == 5


def test_what_comes_short_or_cannot_be_reached_is_said(server: Server, source: Any) -> None:
    server.rule = lambda path, headers: (200, {"Content-Length": "10"}, b"12345")
    with pytest.raises(ClosureError, match=r"bytes came|cannot be read"):
        source.get("https://a/b")
    elsewhere = type(source)("http://127.0.0.1:9", pause=lambda _: None)
    with pytest.raises(ClosureError, match="cannot be read"):
        elsewhere.get("https://a/b")


def registry(server: Server, source: Any) -> Any:
    """A registry that wants a token and pages its tags."""

    def rule(path: str, headers: dict[str, str]) -> Answer | None:
        if path.startswith("/auth.docker.io/token"):
            assert "scope=repository:library/python:pull" in path and "service=registry.docker.io" in path
            return 200, {}, b'{"token": "t0"}'
        if headers.get("Authorization") != "Bearer t0":
            return 401, {"WWW-Authenticate": 'Bearer realm="https://auth.docker.io/token",service="registry.docker.io"'}, b""
        if path.endswith("/tags/list?n=1000"):
            return 200, {"Link": '</v2/library/python/tags/list?n=1000&last=b>; rel="next"'}, b'{"tags": ["b", "a"]}'
        if path.endswith("last=b"):
            return 200, {}, b'{"tags": ["c"]}'
        return None

    server.rule = rule
    return importlib.import_module("updating.registry").Registry(source)


def test_registries_with_tokens_and_pages(server: Server, source: Any) -> None:
    api = registry(server, source)
    parse = importlib.import_module("updating.registry").parse_ref
    ref = parse("python:3.12-slim-bookworm", {"docker.io": "registry-1.docker.io"})
    made = api.manifest(ref, details=True)
    assert made.created == "2026-11-20" and made.env["PYTHON_VERSION"] == "3.12.15" and list(made.digests) == ["linux_x86_64"]
    assert api.tags(ref) == ("a", "b", "c")
    assert sum(path.startswith("/auth") for path, _ in server.asked) == 1
    assert api.manifest(parse("python:0.0", {"docker.io": "registry-1.docker.io"})) is None


def test_a_registry_that_contradicts_itself_is_not_believed(server: Server, source: Any) -> None:
    parse = importlib.import_module("updating.registry").parse_ref
    body = json.dumps({"manifests": []}).encode()
    server.rule = lambda path, headers: (200, {"Docker-Content-Digest": "sha256:" + "0" * 64}, body)
    with pytest.raises(ClosureError, match="the registry says"):
        importlib.import_module("updating.registry").Registry(source).manifest(parse("quay.io/a/b:1", {}))
    server.rule = lambda path, headers: (200, {"Docker-Content-Digest": f"sha256:{hashlib.sha256(body).hexdigest()}"}, body)
    assert importlib.import_module("updating.registry").Registry(source).manifest(parse("quay.io/a/b:1", {})).digests == {}


@pytest.mark.parametrize(
    ("text", "host", "repository", "tag"),
    [
        ("python:3.12", "hub", "library/python", "3.12"),
        ("nvidia/cuda:12", "hub", "nvidia/cuda", "12"),
        ("quay.io/ascend/cann:9", "quay.io", "ascend/cann", "9"),
        ("localhost:5000/x:1@sha256:00", "localhost:5000", "x", "1"),
    ],
)
def test_references(text: str, host: str, repository: str, tag: str, source: Any) -> None:
    ref = importlib.import_module("updating.registry").parse_ref(text, {"docker.io": "hub"})
    assert (ref.host, ref.repository, ref.tag) == (host, repository, tag)


def test_releases_of_github_by_the_page(server: Server, source: Any) -> None:
    assets = importlib.import_module("update_assets")

    def rule(path: str, headers: dict[str, str]) -> Answer:
        number = int(path.rpartition("=")[2])
        rows = [{"tag_name": f"v{number}.{one}", "assets": []} for one in range(100 if number == 1 else 3)]
        return 200, {}, json.dumps(rows).encode()

    server.rule = rule
    job = type("Job", (), {"source": source})()
    assert len(list(assets._releases(job, "a/b"))) == 103


def test_whole_script_over_http(server: Server, source: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("update_tables")
    words = ["--matrix", str(ROOT / "tests/data/refresh/matrix"), "--source", server.url, "--check"]
    assert importlib.import_module("updating.run").main(module.__doc__, module.draft, words) == 1


@pytest.mark.network
def test_pypi_for_real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    module = importlib.import_module("update_pypi")
    main = importlib.import_module("updating.run").main
    matrix = shutil.copytree(ROOT / "matrix", tmp_path / "matrix")
    words = ["--matrix", str(matrix), "--package", "numpy", "--package", "triton"]
    # 3: a tag of today that the matrix has no word for yet, which is for people to see to
    assert main(module.__doc__, module.draft, words) in (0, 3)
    assert main(module.__doc__, module.draft, [*words, "--check"]) in (0, 3)
