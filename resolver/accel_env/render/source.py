"""Packages without a wheel, compiled in the first stage: the toolkit from a builder image, the compiler from the base's packages.

The base stays the one of the image, so that what is compiled fits its Python and its libraries.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from accel_env.errors import UsageError
from accel_env.render.recipe import Copy, Instruction, Mount, Run

SOURCES, WHEELS = "sources.lock", "wheels.lock"
_VALUE = re.compile(r"[A-Za-z0-9._;/+-]*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Devel:
    """How to compile. `image`: `ref@digest` that `toolkit` (a folder) comes from, both empty where the compiler is enough.

    `env`: variables of the compilation. `memory_gib`: of one compiler; the jobs follow from the memory of the builder.
    """

    packages: tuple[str, ...]
    image: str = ""
    toolkit: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    memory_gib: int = 4


def split_lock(text: str, compiled: Collection[str]) -> tuple[str, str]:
    """`requirements.lock` in two: all but the packages named `compiled`, and those."""
    parts: tuple[list[str], list[str]] = ([], [])
    for block in re.split(r"\n(?=[^\s#])", text):
        name = re.match(r"[A-Za-z0-9._-]*", block)
        parts[bool(name and name.group() in compiled)].append(block.rstrip("\n"))
    wheels, sources = ("\n".join(part) + "\n" for part in parts)
    return wheels, sources


def toolkit_steps(devel: Devel) -> tuple[Instruction, ...]:
    """The toolkit out of its image."""
    return (Copy((f"{devel.toolkit}/",), f"{devel.toolkit}/", devel.image),) if devel.image else ()


def compile_step(devel: Devel, install: str, preparation: tuple[str, ...], mounts: tuple[Mount, ...]) -> Run:
    """Compiles and installs what `sources.lock` names, in the environment that holds all the wheels by now."""
    for name, value in devel.env.items():
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise UsageError("bad-variable", f"{name}={value} cannot be given to a compilation")
    memory = devel.memory_gib * 1024 * 1024
    # Parentheses: to awk a bare > behind `print` is a file to write to.
    count = f"{{n = int($2 / {memory}); print (n < 1 ? 1 : (n > most ? most : n))}}"
    jobs = f"awk -v most=\"$(nproc)\" '/^MemAvailable/ {count}' /proc/meminfo"
    settings = [f"export {name}='{value}'" for name, value in sorted(devel.env.items())]
    paths = [f'export PATH={devel.toolkit}/bin:"$PATH"'] if devel.toolkit else []
    return Run((*preparation, f'MAX_JOBS="$({jobs})"', "export MAX_JOBS", *settings, *paths, install), mounts)
