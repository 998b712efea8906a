"""What is installed for an interpreter, read from its files: nothing of it is imported."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from accel_env.judge.book import open_book
from accel_env.judge.collect_packages import installed_of
from accel_env.judge.native import native
from accel_env.judge.parse_base import RUNNING, Facts, Listed, Said
from accel_env.judge.parse_packages import normal, version_in
from accel_env.judge.parse_system import variables_of
from accel_env.judge.parse_torch import ABSENT
from accel_env.judge.types import Environment, Installed
from accel_env.model import Host

if TYPE_CHECKING:
    from accel_env.matrix.load import Matrix
    from accel_env.system.types import System

ASK_SECONDS = 20.0
_MARK = "accel-env:"
_ASK = (
    "import json, platform, sys; print({mark!r} + json.dumps(dict(version=list(sys.version_info[:3]), path=[p for p in sys.path "
    "if p], prefix=sys.prefix, free='t' in getattr(sys, 'abiflags', ''), system=sys.platform, cpu=platform.machine())))"
)
_DIST = re.compile(r"([A-Za-z0-9][\w.]{0,100}?)-(\d[\w.!+]{0,80})(?:-py\d[\d.]{0,6})?\.(dist|egg)-info$")
_CONDA_META = re.compile(r"([a-z_][\w.-]{0,100})-(\d[\w.!+]{0,60})-(\w[\w.+]{0,100})\.json$")
_ASSIGNED = re.compile(r"(__version__|cuda|hip|xpu)(?:: .{1,60})? = (?:None|['\"]([^'\"]{1,80})['\"])")
_SYSTEMS = {"linux": "linux", "darwin": "macos", "win32": "windows", "cygwin": "windows"}


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An interpreter as it describes itself. `path` are the folders that imports look into, in order."""

    program: str
    version: str
    path: tuple[str, ...]
    prefix: str
    system: str
    cpu: str


def read_interpreter(python: str, system: System, matrix: Matrix, *, imports: bool = False) -> Environment:
    """The packages of an interpreter (empty: this one), without the machine's devices.

    `texts` are what the loader would say of libraries that are nowhere. `imports` also imports the modelled packages, each in
    a child process with a time limit, and adds what those that fail print. UsageError where `python` is no interpreter.
    """
    which = ask(python, system) if python else this()
    names = matrix.package_names()
    dists = list(_distributions(which, system, names))
    facts, torch_said = _facts(which, dists, system)
    told: list[str] = []
    values = {one.field: one.value for one in torch_said}
    installed, beside = installed_of(facts, {**values, "os": which.system}, open_book(matrix), told)
    found = native(
        ((dist.name, dist.site, dist.record) for dist in dists if dist.name in names), which.path, which.prefix, system
    )
    extra = {**beside, **{key: value for key, value in values.items() if value}, **found.extra}
    texts = found.missing
    if imports:
        from accel_env.judge.imports import failures

        texts += failures(which.program, [one.name for one in installed if one.name in names], matrix.modules(), system)
    return Environment(
        host=Host(os=which.system, arch=which.cpu, python=which.version, provenance={"python": which.program}),
        installed=(*installed, *_copies(dists, installed)),
        variables=variables_of(system),
        extra=extra,
        texts=texts,
        disagreements=tuple(told),
        known=frozenset({"os", "arch", "python"}),
    )


def this() -> Interpreter:
    """The interpreter that runs this."""
    from accel_env.probe import CPUS
    from accel_env.system.real import RealSystem

    machine = RealSystem().machine()
    path = tuple(folder for folder in sys.path if folder and os.path.isdir(folder))
    return Interpreter(sys.executable, machine.python, path, sys.prefix, machine.os, CPUS.get(machine.cpu.lower(), machine.cpu))


def ask(python: str, system: System) -> Interpreter:
    """The interpreter of that path (a program, or the folder of a virtual environment), asked in a child process."""
    from accel_env.errors import UsageError
    from accel_env.probe import CPUS

    program = next((path for path in (f"{python}/bin/python", f"{python}/Scripts/python.exe") if os.path.isfile(path)), python)
    done = system.run((program, "-c", _ASK.format(mark=_MARK)), ASK_SECONDS)
    line = next((line for line in done.stdout.splitlines() if line.startswith(_MARK)), "")
    try:
        said = json.loads(line[len(_MARK) :])
        version = f"{said['version'][0]}.{said['version'][1]}{'t' if said['free'] else ''}"
        path, cpu = tuple(map(str, said["path"])), str(said["cpu"])
        return Interpreter(
            program, version, path, str(said["prefix"]), _SYSTEMS.get(said["system"], said["system"]), CPUS.get(cpu.lower(), cpu)
        )
    except (ValueError, LookupError, TypeError):
        why = "there is no such program" if done.missing else done.problem or "it answers as no Python does"
        hint = "name the program, as in --python .venv/bin/python, or the folder of a virtual environment"
        raise UsageError("not-an-interpreter", f"--python {python} cannot be asked: {why}", hint=hint) from None


@dataclass(frozen=True, slots=True)
class Dist:
    """One dist-info folder. `url` tells a direct reference; `record` are the native libraries that it owns."""

    name: str
    version: str
    folder: str
    site: str
    url: str = ""
    record: tuple[str, ...] = ()


def _distributions(which: Interpreter, system: System, names: frozenset[str]) -> Iterator[Dist]:
    """Every distribution in the order of imports; more is read of those that the matrix models."""
    for site in dict.fromkeys(which.path):
        for entry in system.listdir(site):
            found = _DIST.match(entry)
            if not found:
                continue
            name, folder = normal(found[1]), f"{site}/{entry}"
            url = _direct_url(system.read_text(f"{folder}/direct_url.json") or "")
            record = _libraries(system.read_text(f"{folder}/RECORD") or "") if name in names else ()
            yield Dist(name, found[2], folder, site, url, record)


def _direct_url(text: str) -> str:
    try:
        said = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return ""
    url = str(said.get("url", "")) if isinstance(said, dict) else ""
    return f"git+{url}" if url and "vcs_info" in said else url


def _libraries(record: str) -> tuple[str, ...]:
    """The native libraries in a RECORD."""
    paths = (line.partition(",")[0] for line in record.splitlines())
    return tuple(path for path in paths if path.endswith((".so", ".pyd", ".dll")) or ".so." in path)


def _facts(which: Interpreter, dists: Sequence[Dist], system: System) -> tuple[Facts, list[Said]]:
    """The packages as listed, and what torch's own version file says."""
    packages = []
    for dist in dists:
        version = (version_in(dist.url) if dist.url else "") or dist.version
        # A wheel's label often stands in the name of its file alone.
        text = version if version.startswith(dist.version) else dist.version
        packages.append(Listed(dist.name, text, dist.folder, url=dist.url))
    for entry in system.listdir(f"{which.prefix}/conda-meta"):
        found = _CONDA_META.match(entry)
        if found:
            packages.append(Listed(found[1], found[2], f"conda-meta/{entry}", build=found[3], channel="conda"))
    site = next((site for site in dict.fromkeys(which.path) if system.access(f"{site}/torch/version.py") == "ok"), "")
    own = f"{site}/torch/version.py"
    said = {found[1]: found[2] or "" for line in (system.read_text(own) or "").splitlines() if (found := _ASSIGNED.match(line))}
    if said.get("__version__"):
        packages.append(Listed("torch", said["__version__"], own, RUNNING))
    cuda = said.get("cuda") or (ABSENT if "cuda" in said else "")
    torch = [("torch_cuda", cuda), ("torch_hip", said.get("hip", "")), ("torch_xpu", said.get("xpu", ""))]
    return Facts(packages=tuple(packages)), [Said(field, value, own, RUNNING) for field, value in torch]


def _copies(dists: Sequence[Dist], installed: Sequence[Installed]) -> Iterator[Installed]:
    """The further copies of a package: one interpreter should have one dist-info of a name."""
    first: dict[str, Dist] = {}
    for dist in dists:
        other = first.setdefault(dist.name, dist)
        if other is not dist and (dist.version != other.version or dist.site == other.site):
            known = next((one for one in installed if one.name == dist.name), None)
            if known is not None:
                yield replace(known, version=dist.version, local="", text=dist.version, origin=dist.folder)
