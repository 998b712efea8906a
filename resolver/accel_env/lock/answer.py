"""What uv answers: a lock file of its own, read into wheels; and what its refusals speak of."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import unquote

from accel_env.errors import ClosureError
from accel_env.lock.artifacts import normalise
from accel_env.lock.closer import Found


def read_pylock(text: str, stand_ins: Collection[str]) -> tuple[tuple[Found, ...], frozenset[str]]:
    """(the wheels in uv's answer without those of the normalised names `stand_ins`, which of `stand_ins` are in the answer).

    ClosureError when it is no lock file.
    """
    try:
        packages = [(normalise(str(package["name"])), package) for package in _rows(load_toml(text).get("packages"))]
        found = tuple(found for name, package in packages if name not in stand_ins for found in _wheels(package))
        return found, frozenset(name for name, _ in packages if name in stand_ins)
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise ClosureError(
            "uv-output",
            f"uv's answer is not the lock file that was expected: {problem!r}",
            hint="install a version of uv that this release of accel-env names",
        ) from None


def _wheels(package: Mapping[str, Any]) -> list[Found]:
    """The wheels of one entry; an entry that has none (a version control URL) comes back as one Found without a file name."""
    name, version = str(package["name"]), str(package["version"])
    archive = package.get("archive")
    found = []
    for wheel in [*_rows(package.get("wheels")), *([archive] if archive else [])]:
        # a mirror's user and password are nobody's business but its own
        url = re.sub(r"^(https?://)[^/@]*@", r"\1", str(wheel.get("url") or wheel.get("path")))
        filename = str(wheel.get("name") or unquote(url.partition("#")[0].rpartition("/")[2]))
        size = wheel.get("size")
        found.append(
            Found(
                name,
                version,
                filename,
                url,
                str((wheel.get("hashes") or {}).get("sha256", "")),
                size if isinstance(size, int) else None,
            )
        )
    return found or [Found(name, version, "", "", "")]


def _rows(value: object) -> list[Mapping[str, Any]]:
    """A list of tables, empty where there is none; TypeError for anything else."""
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise TypeError(f"a list of tables was expected, not {type(value).__name__}")
    return value


def load_toml(text: str) -> dict[str, Any]:
    """The mapping in a TOML text, ValueError for another text; the standard library reads it from Python 3.11 on."""
    import importlib

    toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    loaded = toml.loads(text)
    return loaded if isinstance(loaded, dict) else {}


def names_in(words: str) -> frozenset[str]:
    """The normalised names in a refusal, other words among them; its hints, which come after the reason, do not count."""
    reason = words.partition("\nhint:")[0].replace("==", " ")
    return frozenset(normalise(word) for word in re.findall(r"[\w.-]*\w", reason))


def without_wheel(words: str) -> tuple[str, ...]:
    """The packages of which a refusal says that no wheel of theirs can be used here."""
    found = re.findall(r"([a-z0-9][a-z0-9-]*)\S* (?:has|have) no (?:usable )?wheels", words.partition("\nhint:")[0])
    return tuple(dict.fromkeys(found))
