"""Pages of package indexes: PEP 691 JSON, PEP 503 HTML, and flat pages of links."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from accel_env.errors import ClosureError
from updating.source import Page, shown

ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
_FRAGMENT = re.compile(r"(?:^|&)sha256=([0-9a-f]{64})(?:&|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class File:
    """A file of an index. Empty where the page does not say; `metadata`: sha256 of the PEP 658 file, `-` for one without hash."""

    name: str
    url: str
    sha256: str = ""
    size: int | None = None
    requires_python: str = ""
    metadata: str = ""
    uploaded: str = ""
    yanked: str = ""


def read_files(page: Page) -> tuple[File, ...]:
    """The files of a project's page, sorted by name. ClosureError for a page that is neither form."""
    if "json" in page.headers.get("content-type", "") or page.body[:1] == b"{":
        files = _json(page)
    else:
        parser = _Links(page.url)
        parser.feed(page.text)
        files = parser.files
    known: dict[str, File] = {}
    for file in files:
        twin = known.get(file.name)
        if twin and twin.sha256 and file.sha256 and twin.sha256 != file.sha256:
            raise ClosureError(
                "index-contradicts", f"{shown(page.url)} lists {file.name} with two hashes", hint="look at the page"
            )
        known[file.name] = twin if twin and twin.sha256 else file
    return tuple(sorted(known.values(), key=lambda file: file.name))


def _json(page: Page) -> list[File]:
    try:
        found = json.loads(page.body)
        major = str(found["meta"]["api-version"]).partition(".")[0]
        rows: list[Mapping[str, Any]] = found["files"]
        if major != "1":
            raise ValueError(f"api-version {major}")
        return [_file(row, page.url) for row in rows]
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise ClosureError(
            "index-unreadable",
            f"{shown(page.url)} is no page of a package index: {problem!r}",
            hint="look at the page: a proxy may have answered in its place",
        ) from None


def _file(row: Mapping[str, Any], base: str) -> File:
    metadata = row.get("core-metadata", row.get("dist-info-metadata")) or ""
    hashed = metadata.get("sha256", "-") if isinstance(metadata, dict) else "-" if metadata else ""
    yanked = row.get("yanked") or ""
    return File(
        name=str(row["filename"]),
        url=urljoin(base, str(row["url"])),
        sha256=str(row["hashes"].get("sha256", "")).lower(),
        size=row.get("size"),
        requires_python=str(row.get("requires-python") or ""),
        metadata=str(hashed),
        uploaded=str(row.get("upload-time") or "")[:10],
        yanked="yanked" if yanked is True else str(yanked),
    )


class _Links(HTMLParser):
    """The anchors of a page that lead to wheels and source archives."""

    def __init__(self, base: str) -> None:
        super().__init__()
        self._base = base
        self.files: list[File] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """One anchor."""
        said = {name: value or "" for name, value in attrs}
        if tag == "base" and said.get("href"):
            self._base = urljoin(self._base, said["href"])
        if tag != "a" or not said.get("href"):
            return
        url, _, fragment = urljoin(self._base, said["href"]).partition("#")
        name = unquote(urlsplit(url).path.rpartition("/")[2])
        if not name.endswith((".whl", ".tar.gz", ".zip")):
            return
        metadata = said.get("data-core-metadata", said.get("data-dist-info-metadata", ""))
        found = _FRAGMENT.search(fragment)
        hashed = metadata.removeprefix("sha256=") if metadata.startswith("sha256=") else "-" if metadata else ""
        self.files.append(
            File(
                name,
                url,
                found.group(1).lower() if found else "",
                None,
                said.get("data-requires-python", ""),
                hashed,
                "",
                (said["data-yanked"] or "yanked") if "data-yanked" in said else "",
            )
        )
