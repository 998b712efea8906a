"""A site's mirrors: the beginnings of index URLs and the registries of images, put in place of the public ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from accel_env.matrix.types import Index
from accel_env.model import Image

_HUB = "docker.io"


def moved_indexes(indexes: Mapping[str, Index], mirrors: Mapping[str, str]) -> dict[str, Index]:
    """The indexes that lie under a mirrored URL, by name, with their new URLs; the longest beginning counts."""
    found: dict[str, Index] = {}
    for name, index in indexes.items():
        start = _under(index.url, mirrors)
        if start:
            found[name] = replace(index, url=mirrors[start].rstrip("/") + index.url[len(start.rstrip("/")) :])
    return found


def _under(url: str, mirrors: Iterable[str]) -> str:
    """The longest of the beginnings under which the URL lies; a beginning ends where a part of the path does."""
    fits = [start for start in mirrors if url == start or url.startswith(f"{start.rstrip('/')}/")]
    return max(fits, key=len, default="")


def moved_images(images: Iterable[Image], registries: Mapping[str, str]) -> dict[str, Image]:
    """The images of mirrored registries, by the reference that the matrix has; digests stay, a mirror serves the same bytes."""
    found: dict[str, Image] = {}
    for image in images:
        registry, repository = split_registry(image.ref)
        if registry in registries:
            found[image.ref] = replace(image, ref=f"{registries[registry].rstrip('/')}/{repository}")
    return found


def split_registry(ref: str) -> tuple[str, str]:
    """(registry, repository with tag): `python:3.12` is `library/python:3.12` of Docker Hub."""
    first, slash, rest = ref.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return first, rest
    return _HUB, ref if slash else f"library/{ref}"
