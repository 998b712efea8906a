"""Report files (`environment`, `error`, `collect_env`) -> Environment; two environments -> one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from accel_env.errors import InputError
from accel_env.judge.book import Book, open_book
from accel_env.judge.collect_packages import CONDA_NAMES
from accel_env.judge.machine import devices_of, driver_of, host_of
from accel_env.judge.types import Container, Environment, Installed
from accel_env.judge.words import installed

if TYPE_CHECKING:
    from accel_env.matrix.load import Matrix
    from accel_env.model import Device, Host

KEYS = ("environment", "error", "collect_env")
_HINT = "a report holds `environment` (a mapping), `error` and `collect_env` (texts); each may be missing"
_HOST_TEXTS = ("os", "arch", "kernel", "libc_family", "libc", "libstdcxx", "python", "engine", "container")
_OWN = frozenset(
    {"os", "kernel", "glibc", "libc", "python", "arch", "driver", "cuda_driver", "gpus", "packages", "container", "env"}
)


def read_report(text: str, matrix: Matrix, origin: str = "report") -> Environment:
    """The environment of a report, YAML or JSON. InputError that names `origin` and the key where it is none."""
    from accel_env.matrix.store import yaml_texts

    report = yaml_texts(text, origin)
    if not isinstance(report, Mapping) or not any(key in report for key in KEYS):
        raise InputError("report-broken", f"{origin} holds none of {', '.join(KEYS)}", hint=_HINT)
    found = read_environment(_mapping(report.get("environment"), origin, "environment"), matrix, origin)
    found = replace(found, texts=_texts(report.get("error"), origin, "error"))
    dump = "\n".join(_texts(report.get("collect_env"), origin, "collect_env"))
    if dump.strip():
        from accel_env.judge.collect import collect

        found = merge(found, collect(dump, matrix, "collect_env"))
    return found


def read_environment(said: Mapping[str, Any], matrix: Matrix, origin: str = "report") -> Environment:
    """The environment in a mapping with the keys of a report's `environment`; keys of its own go to `extra`."""
    book = open_book(matrix)
    texts = {
        key: _text(value, origin, f"environment.{key}")
        for key, value in said.items()
        if key not in ("gpus", "packages", "container", "env")
    }
    rows, system = _packages(said.get("packages"), book, origin)
    devices = devices_of(_list(said.get("gpus"), origin), matrix)
    driver = driver_of(texts.get("driver", ""), devices, texts.get("os", ""))
    devices = tuple(replace(device, driver=driver.version) for device in devices)
    extra = system | {key: value for key, value in texts.items() if key not in _OWN and value} | driver.extra
    container = _container(said.get("container"), origin)
    host = host_of(texts, devices, book)
    return Environment(
        host=host,
        installed=rows,
        cuda_driver=_cuda(texts.get("cuda_driver", "")),
        container=container,
        variables=_variables(said.get("env"), origin),
        extra=extra,
        known=frozenset(key for key, value in texts.items() if value),
    )


def _cuda(text: str) -> str:
    found = re.match(r"\d+(?:\.(?:\d+|x))?", text)
    return found[0] if found else ""


def _packages(value: object, book: Book, origin: str) -> tuple[tuple[Installed, ...], dict[str, str]]:
    """(Python packages, what is no Python package: toolkits, system software)."""
    rows: list[Installed] = []
    system: dict[str, str] = {}
    if isinstance(value, list):
        value = dict(_split(_text(item, origin, "environment.packages")) for item in value)
    for name, text in _mapping(value, origin, "environment.packages").items():
        said = _text(text, origin, f"environment.packages.{name}")
        if book.is_system(str(name)):
            system[str(name).lower().replace("-", "_")] = said
        else:
            rows.append(
                installed(
                    CONDA_NAMES.get(str(name), str(name)),
                    said,
                    "environment.packages",
                    vendor_words=book.vendor_words,
                    vendor_labels=book.vendor_labels,
                )
            )
    return tuple(rows), system


def _split(text: str) -> tuple[str, str]:
    """`torch==2.6.0` in a list of packages."""
    found = re.match(r"\s*([A-Za-z0-9][\w.-]*)\s*(?:==|\s)?\s*(.*)", text)
    return (found[1], found[2].strip()) if found else (text, "")


def _container(value: object, origin: str) -> Container | None:
    if value in (None, ""):
        return None
    if isinstance(value, str):
        return Container(base=value)
    said = {
        str(key): _text(item, origin, f"environment.container.{key}")
        for key, item in _mapping(value, origin, "environment.container").items()
    }
    return Container(said.get("base", said.get("image", "")), said.get("runtime", ""), said.get("args", ""))


def _variables(value: object, origin: str) -> dict[str, str]:
    if isinstance(value, list):
        pairs = (_text(item, origin, "environment.env").partition("=") for item in value)
        return {key.strip(): item.strip() for key, _, item in pairs}
    return {
        str(key): _text(item, origin, f"environment.env.{key}")
        for key, item in _mapping(value, origin, "environment.env").items()
    }


def _mapping(value: object, origin: str, key: str) -> Mapping[str, Any]:
    if value in (None, ""):
        return {}
    if not isinstance(value, Mapping):
        raise InputError("report-broken", f"{origin}: {key} must be a mapping", hint=_HINT)
    return {str(name): item for name, item in value.items()}


def _list(value: object, origin: str) -> list[Any]:
    if value in (None, ""):
        return []
    if isinstance(value, (str, Mapping)):
        return [value]
    if not isinstance(value, list) or not all(isinstance(item, (str, Mapping)) for item in value):
        raise InputError("report-broken", f"{origin}: environment.gpus must be a list of mappings or names", hint=_HINT)
    return value


def _text(value: object, origin: str, key: str) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    raise InputError("report-broken", f"{origin}: {key} must be a text", hint=_HINT)


def _texts(value: object, origin: str, key: str) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(_text(item, origin, key) for item in value)
    said = _text(value, origin, key)
    return (said,) if said else ()


def merge(first: Environment, second: Environment) -> Environment:
    """Both; where they contradict each other the first has the word, and `disagreements` says so."""
    told: list[str] = [*first.disagreements, *second.disagreements]
    host = _merged_host(first, second, told)
    rows = _merged_packages(first.installed, second.installed, told)
    if first.cuda_driver and second.cuda_driver and first.cuda_driver != second.cuda_driver:
        told.append(f"CUDA of the driver: {first.cuda_driver} and {second.cuda_driver}")
    return Environment(
        host=host,
        installed=rows,
        cuda_driver=first.cuda_driver or second.cuda_driver,
        container=_merged_container(first.container, second.container),
        variables={**second.variables, **first.variables},
        extra={**second.extra, **first.extra},
        texts=tuple(dict.fromkeys((*first.texts, *second.texts))),
        disagreements=tuple(dict.fromkeys(told)),
        known=first.known | second.known,
    )


def _merged_container(first: Container | None, second: Container | None) -> Container | None:
    if first is None or second is None:
        return first or second
    return Container(first.base or second.base, first.runtime or second.runtime, first.args or second.args)


def _merged_host(first: Environment, second: Environment, told: list[str]) -> Host:
    values: dict[str, Any] = {}
    for key in _HOST_TEXTS:
        mine, other = getattr(first.host, key), getattr(second.host, key)
        # `os` and `arch` have defaults: what was said counts before what was not
        known = key not in ("os", "arch") or key in first.known
        values[key] = (
            (mine if known else "") or (other if key not in ("os", "arch") or key in second.known else "") or mine or other
        )
        if key in first.known and key in second.known and mine and other and not _same(mine, other):
            told.append(f"{key}: {mine} and {other}")
    devices = _merged_devices(first.host.devices, second.host.devices, told)
    return replace(
        first.host,
        **values,
        devices=devices,
        pythons=first.host.pythons or second.host.pythons,
        wsl=first.host.wsl or second.host.wsl,
        notes=tuple(dict.fromkeys((*first.host.notes, *second.host.notes))),
        provenance={**second.host.provenance, **first.host.provenance},
    )


def _same(one: str, other: str) -> bool:
    """True where one statement is the other, less precise."""
    return one == other or one.startswith(other) or other.startswith(one)


def _merged_devices(first: tuple[Device, ...], second: tuple[Device, ...], told: list[str]) -> tuple[Device, ...]:
    if not first or not second:
        return first or second
    drivers = {d.driver for d in first if d.driver}, {d.driver for d in second if d.driver}
    if all(drivers) and not any(_same(a, b) for a in drivers[0] for b in drivers[1]):
        told.append(f"driver: {', '.join(sorted(drivers[0]))} and {', '.join(sorted(drivers[1]))}")
    driver = next((d.driver for d in (*first, *second) if d.driver), "")
    if any(d.arch for d in second) and not any(d.arch for d in first):
        first = second
    return tuple(device if device.driver else replace(device, driver=driver) for device in first)


def _merged_packages(first: tuple[Installed, ...], second: tuple[Installed, ...], told: list[str]) -> tuple[Installed, ...]:
    """By name: what the first says, completed by the second where both mean one version."""
    others: dict[str, list[Installed]] = {}
    for row in second:
        others.setdefault(row.name, []).append(row)
    rows = []
    for row in first:
        twins = others.pop(row.name, [])
        rows.append(_completed(row, twins[0], told) if len(twins) == 1 else row)
    return (*rows, *(row for group in others.values() for row in group))


def _completed(row: Installed, twin: Installed, told: list[str]) -> Installed:
    if row.version and twin.version and not _same(row.version, twin.version):
        told.append(f"{row.name}: {row.version} ({row.origin}) and {twin.version} ({twin.origin})")
        return row
    if row.local and twin.local and row.local != twin.local:
        told.append(f"{row.name}: build {row.local} ({row.origin}) and {twin.local} ({twin.origin})")
    longer = max((row.version, twin.version), key=len)
    return replace(
        row,
        version=longer,
        local=row.local or twin.local,
        vendor=row.vendor or twin.vendor,
        nightly=row.nightly or twin.nightly,
        wanted=row.wanted and twin.wanted,
    )
