"""What a base image is and holds, by the words of its reference."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accel_env.judge.files.values import UNKNOWN, Base

if TYPE_CHECKING:
    from accel_env.judge.book import Book
    from accel_env.judge.files.tables import Family, Tables

# Where a family does not name its stack, the group of the tag does.
_STACKS = ("cuda", "rocm", "xpu", "gaudi")


@dataclass(frozen=True, slots=True)
class Known:
    """A base image as far as it is known; empty and None for what is not.

    `stack` is `cuda-12.8`, or the stack's bare name. `torch` and `label` are what it brings; `vendor`: a build of its own.
    `brings` are further packages with their versions. `constrained`: pip keeps what it ships; `unsure`: that is not certain.
    """

    base: Base
    family: Family | None = None
    stack: str = ""
    torch: str = ""
    label: str = ""
    python: str = ""
    os: str = ""
    libc: str = ""
    libstdcxx: str = ""
    compiler: bool | None = None
    constrained: bool = False
    unsure: bool = False
    brings: tuple[tuple[str, str], ...] = ()
    fact: str = ""

    @property
    def vendor(self) -> bool:
        """Whether its torch is the vendor's own build."""
        return self.family is not None and self.family.torch == "vendor"

    @property
    def stack_name(self) -> str:
        """`cuda` of `cuda-12.8`."""
        return self.stack.partition("-")[0]

    @property
    def release(self) -> str:
        """`12.8` of `cuda-12.8`."""
        return self.stack.partition("-")[2]


def known(base: Base, tables: Tables, book: Book) -> Known:
    """What the reference of an image tells."""
    found = tables.family(base.repository) if base.repository else None
    if found is None:
        return Known(base)
    family, match = found
    tag = re.search(family.tag, base.tag) if family.tag and base.tag else None
    said = {key: value for m in (match, tag) if m for key, value in m.groupdict().items() if value}
    release = next((r for r in tables.releases if r.image == family.name and r.release == said.get("release")), None)
    if release is not None:
        said = {"cuda": release.cuda, "torch": release.torch, "python": release.python} | said
    system = said.get("os", "") or _system(base)
    distribution = book.distribution(system) if system else None
    return Known(
        base=base,
        family=family,
        stack=_stack(family, said),
        torch=said.get("torch", ""),
        label=family.label.format(cuda=said.get("cuda", "").replace(".", "")) if family.label and "cuda" in said else "",
        python=said.get("python", "") or family.python,
        os=system,
        libc=distribution.libc if distribution and distribution.family == "glibc" else "",
        libstdcxx=distribution.libstdcxx if distribution else "",
        compiler=_compiler(family, base),
        constrained=bool(family.constraints and re.search(family.constraints, base.tag)),
        unsure=bool(family.unsure and re.search(family.unsure, base.tag)),
        brings=tuple((name, said.get(name, "")) for name in family.brings),
        fact=release.fact if release else family.fact,
    )


def _stack(family: Family, said: dict[str, str]) -> str:
    for name in _STACKS:
        if name in said:
            return f"{name}-{said[name]}"
    return family.stack


def _system(base: Base) -> str:
    """The distribution where the image is one (`ubuntu:22.04`) or names it in the tag (`3.12-slim-bookworm`)."""
    name = base.repository.rpartition("/")[2]
    if UNKNOWN in base.ref:
        return ""
    return f"{name} {base.tag}" if base.tag else ""


def _compiler(family: Family, base: Base) -> bool | None:
    if family.compiler is None or (family.compiler and not base.tag):
        return None
    return bool(family.compiler) and re.search(family.compiler, base.tag) is not None
