"""The bytes of an archive and of its signature, from a file or an https URL."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from accel_env.errors import ClosureError, InputError, UsageError

_LIMIT = 64 << 20
_TIMEOUT = 60.0  # seconds between bytes


def read(place: str, limit: int = _LIMIT) -> bytes:
    """The content of a file or URL. InputError for a file, ClosureError for a URL that cannot be read."""
    return _download(place, limit) if "://" in place else _read(place, limit)


def _read(path: str, limit: int) -> bytes:
    from accel_env.system.files import check_file

    check_file(path)
    try:
        with open(path, "rb") as stream:
            found = stream.read(limit + 1)
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or str(problem)
        raise InputError(
            "archive-unreadable", f"{path} cannot be read: {why}", hint="name an archive, with its .minisig beside it"
        ) from None
    if len(found) > limit:
        raise InputError("archive-too-large", f"{path} is larger than {limit >> 20} MiB", hint="name an archive of the matrix")
    return found


def _host(url: str) -> tuple[str, str]:
    """(scheme, host) of a URL. UsageError where it is none."""
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname or ""
    except ValueError as problem:
        raise UsageError("url-scheme", f"{url} is no URL: {problem}", hint="name an https URL or a file") from None


def _download(url: str, limit: int) -> bytes:
    import urllib.error
    import urllib.request

    scheme, host = _host(url)
    local = host in ("127.0.0.1", "localhost", "::1")
    if scheme != "https" and not (scheme == "http" and local):
        raise UsageError("url-scheme", f"{url} is no https URL", hint="name an https URL or a file")
    try:
        request = urllib.request.Request(url, headers={"User-Agent": "accel-env", "Accept": "*/*"})
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
            if urlsplit(answer.url).scheme != "https" and not local:
                raise ClosureError(
                    "archive-unreachable", f"{url} leads to {answer.url}, which is not https", hint="name another URL"
                )
            found: bytes = answer.read(limit + 1)
    except (urllib.error.URLError, OSError, ValueError) as problem:
        why = getattr(problem, "reason", None) or problem
        raise ClosureError(
            "archive-unreachable", f"{url} cannot be read: {why}", hint="check the URL, the network and the proxy"
        ) from None
    if len(found) > limit:
        raise ClosureError("archive-too-large", f"{url} is larger than {limit >> 20} MiB", hint="name an archive of the matrix")
    return found


def signature_of(place: str) -> str:
    """Where the signature of an archive lies."""
    path, mark, query = place.partition("?") if "://" in place else (place, "", "")
    return f"{path}.minisig{mark}{query}"


def name_of(place: str) -> str:
    """The file name of an archive, for people."""
    if "://" not in place:
        return os.path.basename(place) or place
    _host(place)
    return os.path.basename(urlsplit(place).path) or place
