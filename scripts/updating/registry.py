"""Image registries by the distribution API: manifests with their digests, tags, and anonymous tokens."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin

from accel_env.errors import ClosureError
from updating.source import Page, Source

_MANIFESTS = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
_CPUS = {"amd64": "x86_64", "arm64": "aarch64"}
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')
_PAGES = 100


@dataclass(frozen=True, slots=True)
class Ref:
    """`registry/repository:tag` as the distribution API wants it; `shown` as it was written."""

    shown: str
    host: str
    repository: str
    tag: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """`digest` of what the tag names; `digests`: platform -> digest, empty for one manifest; `created`, `env` of its image."""

    digest: str
    digests: Mapping[str, str] = field(default_factory=dict)
    created: str = ""
    env: Mapping[str, str] = field(default_factory=dict)


def parse_ref(text: str, hosts: Mapping[str, str]) -> Ref:
    """`python:3.12` is a repository of Docker Hub's `library`; `hosts` maps a registry to the host that serves its API."""
    name, _, tag = text.partition("@")[0].rpartition(":")
    first, slash, rest = name.partition("/")
    if slash and ("." in first or ":" in first):
        return Ref(text, hosts.get(first, first), rest, tag)
    return Ref(text, hosts.get("docker.io", "docker.io"), name if slash else f"library/{name}", tag)


class Registry:
    """The API of registries, with one anonymous token per repository."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._tokens: dict[tuple[str, str], str] = {}

    def manifest(self, ref: Ref, *, details: bool = False) -> Manifest | None:
        """What a tag names today; None where there is no such tag. `details` also reads when the image was made."""
        page = self._get(ref, f"manifests/{ref.tag}", _MANIFESTS, also=(404,))
        if page.status == 404:
            return None
        row = _json(page)
        digest = _digest(page)
        digests: dict[str, str] = {}
        for item in row.get("manifests", ()):
            platform = item.get("platform", {})
            cpu = _CPUS.get(str(platform.get("architecture")), "")
            if platform.get("os") == "linux" and cpu:
                digests.setdefault(f"linux_{cpu}", str(item["digest"]))
        if not details:
            return Manifest(digest, digests)
        one = digests.get("linux_x86_64") or next(iter(digests.values()), "")
        inner = _json(self._checked(ref, f"manifests/{one}", one)) if one else row
        config = str(inner.get("config", {}).get("digest", ""))
        made = _json(self._checked(ref, f"blobs/{config}", config)) if config else {}
        env = dict(text.partition("=")[::2] for text in made.get("config", {}).get("Env") or ())
        return Manifest(digest, digests, str(made.get("created", ""))[:10], env)

    def tags(self, ref: Ref) -> tuple[str, ...]:
        """All tags of a repository, sorted."""
        found: set[str] = set()
        path = "tags/list?n=1000"
        for _ in range(_PAGES):
            page = self._get(ref, path, "application/json")
            found.update(map(str, _json(page).get("tags") or ()))
            link = re.search(r'<([^>]+)>\s*;\s*rel="?next', page.headers.get("link", ""))
            if not link:
                return tuple(sorted(found))
            path = urljoin(page.url, link[1]).partition(f"/{ref.repository}/")[2]
        raise ClosureError("source-endless", f"{ref.host} has no end of tags of {ref.repository}", hint="look at it by hand")

    def _checked(self, ref: Ref, path: str, digest: str) -> Page:
        page = self._get(ref, path, _MANIFESTS)
        if f"sha256:{hashlib.sha256(page.body).hexdigest()}" != digest:
            raise ClosureError("source-changed", f"{page.url} does not have the digest that it is named by", hint="try again")
        return page

    def _get(self, ref: Ref, path: str, accept: str, also: tuple[int, ...] = ()) -> Page:
        url = f"https://{ref.host}/v2/{ref.repository}/{path}"
        key = (ref.host, ref.repository)
        headers = {"Authorization": f"Bearer {self._tokens[key]}"} if key in self._tokens else {}
        page = self._source.get(url, accept=accept, headers=headers, also=(*also, 401))
        if page.status == 401 and not headers:
            self._tokens[key] = self._token(page, ref)
            headers = {"Authorization": f"Bearer {self._tokens[key]}"}
            page = self._source.get(url, accept=accept, headers=headers, also=also)
        elif page.status == 401:
            raise ClosureError("source-refused", f"{url} takes no anonymous token", hint="the image is not public")
        return page

    def _token(self, page: Page, ref: Ref) -> str:
        """An anonymous token from where the registry sends us."""
        said = dict(_CHALLENGE.findall(page.headers.get("www-authenticate", "")))
        realm = said.get("realm", "")
        if not realm.startswith("https://"):
            raise ClosureError(
                "source-refused", f"{ref.host} wants a login and names no place for tokens", hint="look at it by hand"
            )
        url = f"{realm}?service={said.get('service', '')}&scope=repository:{ref.repository}:pull"
        found = _json(self._source.get(url))
        return str(found.get("token") or found.get("access_token") or "")


def _json(page: Page) -> dict[str, Any]:
    try:
        found = json.loads(page.body)
        if not isinstance(found, dict):
            raise ValueError("no mapping")
    except ValueError as problem:
        raise ClosureError(
            "source-unreadable", f"{page.url} is no JSON of a registry: {problem}", hint="look at the answer"
        ) from None
    return found


def _digest(page: Page) -> str:
    """The digest of the bytes; ClosureError where the registry says another one."""
    found = f"sha256:{hashlib.sha256(page.body).hexdigest()}"
    said = page.headers.get("docker-content-digest", found)
    if said != found:
        raise ClosureError(
            "source-changed",
            f"{page.url}: the bytes have the digest {found}, the registry says {said}",
            hint="try again; where it stays so, somebody is in between",
        )
    return found
