"""Pasted dumps -> Environment: recognises the parts of one text and weighs what they say against each other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from accel_env.judge import (
    collect_devices,
    collect_packages,
    parse_accel,
    parse_amd,
    parse_nvidia,
    parse_packages,
    parse_reports,
    parse_system,
    parse_torch,
)
from accel_env.judge.book import Book, open_book
from accel_env.judge.machine import host_of
from accel_env.judge.parse_base import TEXT_LIMIT, Facts, Said, lines_of
from accel_env.judge.types import Environment

if TYPE_CHECKING:
    from accel_env.matrix.load import Matrix
    from accel_env.model import Device, Host

# Fields of the environment itself; every other statement goes to `extra` under its own name.
_HOST = ("os", "os_name", "arch", "kernel", "glibc", "musl", "libstdcxx", "python", "cuda_driver")
_CPUS = {"amd64": "x86_64", "arm64": "aarch64"}
_TOLD = {"os_name": "operating system", "arch": "processor", "cuda_driver": "CUDA of the driver", "cuda_toolkit": "CUDA toolkit"}
# Two witnesses may well differ here: several toolkits, several cuDNNs and several runtimes are usual.
_UNCOMPARED = frozenset(
    {"cudnn", "gcc", "clang", "kernel", "hip_runtime", "level_zero_driver", "level_zero_loader", "intel_driver"}
)
# fmt: off
_TROUBLE = (
    "error", "exception", "traceback", "warning:", "undefined symbol", "shared object", "failed", "mismatch", "no kernel image",
    "no module named", "not compatible", "cannot import", "incompatible", "not available", "insufficient", "too old",
)
# fmt: on
_TROUBLE_LINES = 400


def collect(text: str, matrix: Matrix, origin: str = "collect_env") -> Environment:
    """What the dumps in `text` say (any of them, in any order, pasted together); an empty Environment for anything else.

    Never raises. `origin` names the text in the provenance of the host. Lines that speak of trouble go to `texts`.
    """
    lines = lines_of(text)
    facts = parsed(lines, matrix.package_names())
    told: list[str] = []
    values = _chosen(facts.said, told)
    book = open_book(matrix)
    devices = collect_devices.devices(facts, values, matrix, told)
    installed, system = collect_packages.installed_of(facts, values, book, told)
    known = frozenset(_KNOWN.get(key, key.partition(":")[0]) for key in values if key in _HOST or key.startswith("driver:"))
    return Environment(
        host=replace(_host(values, devices, book, origin, facts.said), notes=_notes(text, origin)),
        installed=installed,
        cuda_driver=values.get("cuda_driver", ""),
        variables=dict(facts.variables),
        extra={**system, **_extra(values)},
        texts=_trouble(lines, matrix),
        disagreements=tuple(told),
        known=known,
    )


def parsed(lines: Sequence[str], names: frozenset[str]) -> Facts:
    """What all parsers found; `names` are the distribution names that the matrix models."""
    parts = [parser.parse(lines) for parser in (parse_torch, parse_nvidia, parse_amd, parse_accel, parse_system)]
    parts += [parse_packages.parse(lines, names), parse_reports.parse(lines, names)]
    return Facts(
        said=tuple(said for part in parts for said in part.said),
        devices=tuple(row for part in parts for row in part.devices),
        packages=tuple(row for part in parts for row in part.packages),
        variables=tuple(pair for part in parts for pair in part.variables),
    )


def _chosen(said: Iterable[Said], told: list[str]) -> dict[str, str]:
    """Field -> the value of its best witness; of several C libraries the newest, since a file may ask for less than there is."""
    groups: dict[str, list[Said]] = {}
    for one in said:
        groups.setdefault(one.field, []).append(replace(one, value=_plain(one.field, one.value)))
    values = {}
    for field, group in groups.items():
        key = (lambda one: _numbers(one.value)) if field == "glibc" else (lambda one: one.rank)
        best = max(group, key=key)
        # A longer text that begins with the best one says the same more precisely.
        finer = [one for one in group if one.rank == best.rank and one.value.startswith(f"{best.value}.")]
        best = finer[0] if finer else best
        values[field] = best.value
        others = [one for one in group if not _agree(one.value, best.value)]
        if others and field not in _UNCOMPARED:
            told.append(_told(field, best, others))
    return values


def _plain(field: str, value: str) -> str:
    return _CPUS.get(value.lower(), value) if field == "arch" else value


def _told(field: str, best: Said, others: Sequence[Said]) -> str:
    named = _TOLD.get(field, field.replace("driver:", "driver of ").replace("torch_", "torch's "))
    against = ", ".join(dict.fromkeys(f"{one.value} ({one.by})" for one in others))
    return f"{named}: {best.value} ({best.by}) against {against}; reasoned from {best.value}"


def _agree(one: str, other: str) -> bool:
    """True for the same value, said more or less precisely."""
    short, long = sorted((one.casefold(), other.casefold()), key=len)
    return long.startswith(short) and not long[len(short) : len(short) + 1].isdigit()


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d{1,9}", text)[:4])


def _host(values: Mapping[str, str], devices: tuple[Device, ...], book: Book, origin: str, said: Sequence[Said]) -> Host:
    system = values.get("os", "")
    named = values.get("os_name", "")
    texts = {key: values[key] for key in ("arch", "kernel", "glibc", "python") if values.get(key)}
    # host_of reads the system from its name: a name of a distribution alone (`Ubuntu 22.04`) is Linux
    texts["os"] = named if system in ("", "linux") or system in named.casefold() else f"{system} {named}"
    host = host_of(texts, devices, book)
    if "musl" in values:
        host = replace(host, libc_family="musl", libc=values["musl"])
    witnesses = {one.field: one.by for one in sorted(said, key=lambda one: one.rank) if values.get(one.field) == one.value}
    provenance = {_FIELDS.get(key, key): f"{origin}: {witnesses[key]}" for key in _HOST if key in witnesses}
    return replace(host, libstdcxx=values.get("libstdcxx") or host.libstdcxx, provenance=provenance)


def _notes(text: str, origin: str) -> tuple[str, ...]:
    short = f"{origin}: the first {TEXT_LIMIT >> 20} MiB were read, not the rest; --log reads texts of any length"
    return (short,) if len(text) > TEXT_LIMIT else ()


_FIELDS = {"glibc": "libc", "musl": "libc", "os_name": "os"}
_KNOWN = {"os_name": "os"}


def _extra(values: Mapping[str, str]) -> dict[str, str]:
    drivers = {key: value for key, value in values.items() if key.startswith("driver:")}
    extra = {key: value for key, value in values.items() if key not in _HOST and key not in drivers}
    if "driver" not in extra and len(drivers) == 1:
        extra["driver"] = next(iter(drivers.values()))
    if "os_name" in values:
        extra["os_name"] = values["os_name"]
    return extra


def _trouble(lines: Sequence[str], matrix: Matrix) -> tuple[str, ...]:
    """The lines that a signature knows: dumps are often pasted with the error that led to them. Mere warnings are not kept,
    since a text makes the judge think that somebody complains."""
    from accel_env.judge.signatures import read

    found = [line for line in lines if _speaks_of_trouble(line)][:_TROUBLE_LINES]
    clues = read(("\n".join(found),), matrix) if found else ()
    return tuple(dict.fromkeys(clue.line for clue in clues if clue.line))


def _speaks_of_trouble(line: str) -> bool:
    """Plain words, each sought by itself: one pattern of all is seven times slower on long logs."""
    folded = line.lower()
    return any(word in folded for word in _TROUBLE)
