"""The files that an index lists, by the simple API (JSON or HTML), and which index is the user's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urljoin, urlsplit

from accel_env.errors import ClosureError
from accel_env.inspect.source import fetch

_JSON = "application/vnd.pypi.simple.v1+json"
_ACCEPT = f"{_JSON}, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
_ANCHOR = re.compile(r"<a\s[^>]*?href\s*=\s*[\"']([^\"']+)[\"']", re.IGNORECASE)
_SHA256 = re.compile(r"sha256[=:]([0-9a-f]{64})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class File:
    """A listed file; `sha256` is empty where the index gives none."""

    name: str
    url: str
    sha256: str


def list_files(index: str, package: str) -> tuple[File, ...]:
    """The files of a package on the index at a URL. ClosureError where it does not answer or answers something else."""
    page = f"{index.rstrip('/')}/{package}/"
    content, kind = fetch(page, _ACCEPT)
    try:
        return _of_json(content, page) if kind.startswith(_JSON) else _of_html(content.decode("utf-8", "replace"), page)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ClosureError("index-broken", f"{page} is no list of files", hint="name an index of the simple API") from None


def _of_json(content: bytes, page: str) -> tuple[File, ...]:
    import json

    rows = [(row["filename"], row["url"], row.get("hashes", {})) for row in json.loads(content)["files"]]
    return tuple(File(str(name), urljoin(page, str(url)), str(hashes.get("sha256", ""))) for name, url, hashes in rows)


def _of_html(text: str, page: str) -> tuple[File, ...]:
    from html import unescape

    found = []
    for href in _ANCHOR.findall(text):
        url, _, fragment = urljoin(page, unescape(href)).partition("#")
        digest = _SHA256.search(fragment)
        found.append(File(unquote(urlsplit(url).path.rpartition("/")[2]), url, digest[1].lower() if digest else ""))
    return tuple(found)


def default_index(environment: Mapping[str, str], config: str = "") -> str:
    """The URL of the package index that uv takes; `config`: the path of a uv.toml with the user's settings."""
    import subprocess

    from uv import find_uv_bin

    words = [find_uv_bin(), *(["--config-file", config] if config else []), "--no-python-downloads", "pip", "compile"]
    words += ["--quiet", "--no-deps", "--no-header", "--emit-index-url", "-"]
    done = subprocess.run(words, input="", text=True, capture_output=True, env=dict(environment), check=False, timeout=60)
    found = re.search(r"^--index-url (\S+)$", done.stdout, re.MULTILINE)
    if found is None:
        raise ClosureError(
            "index-unknown", "uv does not say which package index it takes", context=tuple(done.stderr.splitlines()[:5]),
            hint="name one with --index",
        )
    return found[1]
