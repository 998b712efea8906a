"""The packages of several lists -> one: what was imported before what is listed, with the build that the dump tells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from accel_env.judge.book import Book
from accel_env.judge.parse_base import Facts, Listed
from accel_env.judge.parse_packages import normal
from accel_env.judge.parse_torch import ABSENT
from accel_env.judge.types import Installed
from accel_env.judge.words import installed

CONDA_NAMES = {"pytorch": "torch", "pytorch-cpu": "torch", "pytorch-gpu": "torch"}
_CONDA_CUDA = re.compile(r"(?:^|_)cuda_?(\d{2})\.?(\d)|_cu(\d{2})(\d)(?:_|$)")
_INDEX_CHANNELS = ("pypi",)


def installed_of(
    facts: Facts, values: Mapping[str, str], book: Book, told: list[str]
) -> tuple[tuple[Installed, ...], dict[str, str]]:
    """(Python packages by name, what is listed beside them and is none: toolkits, system software)."""
    system: dict[str, str] = {}
    groups: dict[str, list[tuple[int, Installed]]] = {}
    kinds: dict[str, bool] = {}
    for row in dict.fromkeys(facts.packages):  # logs print one list many times
        name = _name(row)
        if row.name.startswith("_") or name == "python":
            continue  # conda's own markers; the Python is no package of it
        if name not in kinds:
            kinds[name] = book.is_system(name)
        if kinds[name]:
            system.setdefault(name.replace("-", "_"), row.text)
        else:
            groups.setdefault(name, []).append((row.rank, _read(name, row, book)))
    found = [_best(group, told) for group in groups.values()]
    return tuple(_with_runtime(one, values, told) if one.name == "torch" else one for one in found), system


def _name(row: Listed) -> str:
    name = normal(row.name)
    return CONDA_NAMES.get(name, name) if _from_conda(row) else name


def _from_conda(row: Listed) -> bool:
    """Whether conda built it: conda also lists what pip has installed."""
    return bool(row.build) and not row.build.startswith("pypi") and row.channel not in _INDEX_CHANNELS


def _read(name: str, row: Listed, book: Book) -> Installed:
    text = row.text
    if _from_conda(row):
        cuda = _CONDA_CUDA.search(row.build)
        runtime = f"CUDA {cuda[1] or cuda[3]}.{cuda[2] or cuda[4]}" if cuda else "cpu" if "cpu" in row.build else ""
        if runtime or name == "torch":
            # what runs on no accelerator is the same everywhere; the others' architecture lists are conda's own
            text = f"{row.text} (conda{', ' if runtime else ''}{runtime})"
    elif row.url and not row.text:
        text = f"(source: {row.url})" if "git+" in row.url or row.url.startswith("file:") else f"({row.url})"
    one = installed(name, text, row.by, vendor_words=book.vendor_words, vendor_labels=book.vendor_labels)
    return replace(one, url=row.url, text=row.text or text)


def _best(group: Iterable[tuple[int, Installed]], told: list[str]) -> Installed:
    """The best witness's version; the others complete it where they mean the same one, else `told` gets a sentence."""
    ordered = [one for _, one in sorted(group, key=lambda pair: (-pair[0], not pair[1].version, not pair[1].local))]
    best = ordered[0]
    others = [one for one in ordered[1:] if one.version and best.version and one.version != best.version]
    for one in ordered[1:]:
        if one.version == best.version or not best.version:
            best = _completed(best, one)
    if others:
        against = ", ".join(dict.fromkeys(f"{one.version} ({one.origin})" for one in others))
        told.append(f"{best.name}: {best.version} ({best.origin}) against {against}; reasoned from {best.version}")
    return best


def _completed(one: Installed, other: Installed) -> Installed:
    return replace(
        one,
        version=one.version or other.version,
        local=one.local or other.local,
        vendor=one.vendor or other.vendor,
        nightly=one.nightly or other.nightly,
        url=one.url or other.url,
    )


def _with_runtime(torch: Installed, values: Mapping[str, str], told: list[str]) -> Installed:
    """torch with the label that its runtime tells: `CUDA used to build PyTorch: 12.1` is cu121, none at all is a CPU build.

    The HIP that a ROCm build reports is not its ROCm, so no label follows from it.
    """
    cuda = values.get("torch_cuda", "")
    numbers = re.match(r"(\d{1,2})\.(\d)", cuda)
    if numbers:
        label = f"cu{numbers[1]}{numbers[2]}"
        if torch.local and re.match(r"cu\d|cpu$", torch.local) and torch.local != label:
            told.append(f"torch: build {torch.local} ({torch.origin}) against CUDA {cuda} (what torch says it was built with)")
        return replace(torch, local=torch.local or label)
    other = any(values.get(key) for key in ("torch_hip", "torch_xpu"))
    if cuda == ABSENT and not other and not torch.local and not torch.vendor and values.get("os", "linux") != "macos":
        return replace(torch, local="cpu")
    return torch
