"""What of a user's configuration a lock follows: where the package index is and how it is reached, nothing that bends a choice.

uv reads its own files and no file of pip's; here both count, uv's first, because the lock is installed by either.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from accel_env.errors import ClosureError
from accel_env.lock.answer import load_toml

if TYPE_CHECKING:
    from accel_env.system.types import System

# Of the variables that start with UV_ only these reach uv, and the users and passwords of named indexes.
_HARMLESS = re.compile(
    "UV_(CACHE_DIR|NO_CACHE|DEFAULT_INDEX|INDEX_URL|INDEX_[A-Z0-9_]+_(USERNAME|PASSWORD)|((HTTP_)?(CONNECT_|REQUEST_)?TIMEOUT)"
    "|HTTP_RETRIES|NATIVE_TLS|SYSTEM_CERTS|INSECURE_HOST|KEYRING_PROVIDER|CREDENTIALS_DIR|LINK_MODE|LOCK_TIMEOUT"
    "|CONCURRENT_DOWNLOADS)"
)
_CONNECTION = (
    "native-tls",
    "system-certs",
    "allow-insecure-host",
    "keyring-provider",
    "cache-dir",
    "http-proxy",
    "https-proxy",
    "no-proxy",
    "concurrent-downloads",
    "link-mode",
)
_INDEX = ("name", "url", "default", "format", "authenticate")
_NAMED_BY_UV = ("UV_DEFAULT_INDEX", "UV_INDEX_URL")


def environment(given: Mapping[str, str], default_index: str = "", os_floor: str = "") -> dict[str, str]:
    """The environment for uv. `default_index`: instead of the user's; `os_floor`: the oldest macOS to lock for (empty: uv's)."""
    # an empty variable says nothing, but uv wants a value
    kept = {key: value for key, value in given.items() if not key.startswith("UV_") or (value and _HARMLESS.fullmatch(key))}
    kept.pop("MACOSX_DEPLOYMENT_TARGET", None)
    if os_floor:
        kept["MACOSX_DEPLOYMENT_TARGET"] = os_floor
    if default_index:
        kept.pop("UV_INDEX_URL", None)
        kept["UV_DEFAULT_INDEX"] = default_index  # not on the command line, which everybody on the machine can read
    return kept


def asks_offline(system: System) -> bool:
    """Whether the user's environment keeps uv from the network."""
    return _is_on(system, "UV_OFFLINE")


def _is_on(system: System, name: str) -> bool:
    return (system.env(name) or "").lower() in ("1", "true", "yes", "on", "y", "t")


def settings(system: System) -> str:
    """The text of a uv.toml with the user's default index and connection. ClosureError for a file that is no TOML."""
    tables = list(_uv_tables(system))
    lines = []
    for key in _CONNECTION:
        lines += [f"{key} = {value}" for table in tables if (value := _value(table.get(key)))][:1]
    if not any(system.env(name) for name in _NAMED_BY_UV):
        named = [index for table in tables if (index := _index_of(table))]
        lines += named[0] if named else _line(_pip_index(system))
    return "".join(f"{line}\n" for line in lines)


def _uv_tables(system: System) -> Iterator[Mapping[str, Any]]:
    """uv's own files, the user's before the machine's; a single one where UV_CONFIG_FILE names it."""
    if _is_on(system, "UV_NO_CONFIG"):
        return
    named = system.env("UV_CONFIG_FILE")
    for path in [named] if named else _places(system, "uv", "uv.toml"):
        text = system.read_text(path)
        if text is None:
            continue
        try:
            yield load_toml(text)
        except ValueError as problem:
            raise ClosureError(
                "uv-settings", f"{path} is no TOML: {problem}", hint="mend the file, or set UV_NO_CONFIG=1 to leave it out"
            ) from None


def _index_of(table: Mapping[str, Any]) -> list[str]:
    """The lines that name the default index of a uv.toml; none where it names none."""
    pip = table.get("pip")
    if isinstance(pip, Mapping) and isinstance(pip.get("index-url"), str):
        return _line(pip["index-url"])
    indexes = table.get("index")
    for index in indexes if isinstance(indexes, list) else []:
        if isinstance(index, Mapping) and index.get("default") is True:
            return ["[[index]]", *(f"{key} = {value}" for key in _INDEX if (value := _value(index.get(key))))]
    return _line(table.get("index-url"))


def _line(url: object) -> list[str]:
    return [f"index-url = {_value(url)}"] if isinstance(url, str) and url else []


def _pip_index(system: System) -> str:
    """The index that pip is told to use by its variable or its files; empty where nobody told."""
    import configparser
    import os

    if url := system.env("PIP_INDEX_URL"):
        return url
    named = system.env("PIP_CONFIG_FILE")
    if named == os.devnull:
        return ""
    home = system.env("HOME") or ""
    paths = [*([named] if named else []), *_places(system, "pip", "pip.conf"), f"{home}/.pip/pip.conf", "/etc/pip.conf"]
    for path in paths:
        parser = configparser.RawConfigParser(strict=False)
        try:
            parser.read_string(system.read_text(path) or "")
        except configparser.Error:
            continue  # pip itself says so
        for section in ("install", "global"):
            if parser.has_section(section) and (url := parser.get(section, "index-url", fallback="").strip()):
                return url
    return ""


def _places(system: System, folder: str, file: str) -> Iterable[str]:
    """Where a tool's configuration lies: the user's, then the machine's."""
    home, kind = system.env("HOME") or "", system.machine().os
    if kind == "windows":
        file = file.replace("pip.conf", "pip.ini")
        return [f"{root}\\{folder}\\{file}" for name in ("APPDATA", "PROGRAMDATA") if (root := system.env(name))]
    roots = [system.env("XDG_CONFIG_HOME") or f"{home}/.config"]
    if kind == "macos":
        roots.append(f"{home}/Library/Application Support")
    roots += [root for root in (system.env("XDG_CONFIG_DIRS") or "/etc/xdg").split(":") if root]
    return [f"{root}/{folder}/{file}" for root in (*roots, "/etc")]


def _value(value: object) -> str:
    """A TOML value of a text, a flag, a number or a list of texts; empty for anything else."""
    import json

    simple = isinstance(value, (str, bool, int)) or (isinstance(value, list) and all(isinstance(item, str) for item in value))
    # JSON's escapes are TOML's, except that TOML wants DEL escaped as well
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f") if simple else ""
