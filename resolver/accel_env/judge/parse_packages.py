"""Lists of packages: pip list, freeze and show, uv, conda list and conda env export."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from accel_env.judge.parse_base import Facts, Listed, Said

_VERSION = r"\d[\w.!+~-]{0,60}"
_NAME = r"[A-Za-z0-9](?:[\w.-]{0,100}[A-Za-z0-9])?"
_HEAD = re.compile(r"Package\s{1,200}Version\b")
_RULE = re.compile(r"[-─━]{3,}")
_ROW = re.compile(rf"({_NAME})\s{{1,200}}({_VERSION})(?:\s{{1,200}}(\S.{{0,300}}))?$")
_FROZEN = re.compile(rf"({_NAME})={{2,3}}({_VERSION})(?:\s{{0,4}}(?:[;#\\].*)?)?$")
_DIRECT = re.compile(rf"({_NAME}) @ ((?:\w{{1,10}}\+)?\w{{1,10}}:/\S{{1,1000}})$")
_EDITABLE = re.compile(r"-e (\S{1,500})[#&]egg=([\w.-]{1,100})")
_TREE = re.compile(rf"[│├└─ ]{{0,40}}({_NAME}) v({_VERSION})(?: .{{0,200}})?$")
_CONDA_HEAD = re.compile(r"(?:#\s{1,4})?\s{0,4}Name\s{1,100}Version\s{1,100}Build\b")
_CONDA_ROW = re.compile(
    rf"\s{{0,4}}([A-Za-z_][\w.-]{{0,100}})\s{{1,100}}({_VERSION})\s{{1,100}}(\w[\w.+-]{{0,100}})(?:\s{{1,100}}(\S{{1,200}}))?$"
)
_CONDA_SPEC = re.compile(rf"(?:\s{{0,8}}- )?([a-z_][\w.-]{{0,100}})=({_VERSION})=(\w[\w.+-]{{0,100}})$")
_YAML_PIP = re.compile(rf"\s{{1,12}}- ({_NAME})==({_VERSION})$")
_CONDA_BUILD = re.compile(r"(?:py\d|pypi_|h[0-9a-f]{6,8}_|cuda|cpu_|\d{1,4}$)")

# What makes a bare row (of `pip list | grep`) a package and not prose, besides the names that the matrix models.
# fmt: off
_FAMILIES = (
    "torch", "pytorch", "triton", "nvidia-", "cuda-", "flash", "vllm", "intel-", "onnx", "xformers", "bitsandbytes",
    "transformers", "accelerate", "peft", "diffusers", "deepspeed", "jax", "tensorflow", "auto", "optimum", "sgl", "apex",
)
# fmt: on


def parse(lines: Sequence[str], names: frozenset[str]) -> Facts:
    """The packages of every list. `names`: distribution names that are taken without the head of a table."""
    packages = (*_tables(lines, names), *_plain(lines, names), *_shown(lines))
    pythons = (Said("python", row.text, row.by) for row in packages if row.name == "python" and row.build)
    return Facts(tuple(pythons), packages=packages)


def _tables(lines: Sequence[str], names: frozenset[str]) -> Iterator[Listed]:
    """Rows below the head of `pip list` or `conda list`, until a line that is no row; bare rows of known packages elsewhere."""
    inside = ""
    for number, line in enumerate(lines):
        if _HEAD.match(line):
            inside = "pip list"
        elif _CONDA_HEAD.match(line):
            inside = "conda list"
        elif inside and _RULE.match(line.strip()):
            continue
        else:
            kind = inside or _bare(line, names)
            row = _row(kind, line) if kind else None
            if row:
                yield row
            elif line.strip() or (number and not _RULE.match(lines[number - 1].strip())):
                inside = ""


def _row(kind: str, line: str) -> Listed | None:
    if kind == "conda list":
        found = _CONDA_ROW.match(line)
        return Listed(found[1], found[2], kind, build=found[3], channel=found[4] or "") if found else None
    found = _ROW.match(line)
    return Listed(found[1], found[2], kind, url=_local(found[3])) if found else None


def _local(more: str | None) -> str:
    """The folder of an editable install; other third columns (the installer) say nothing here."""
    return f"file://{more}" if more and more.startswith("/") else ""


def _bare(line: str, names: frozenset[str]) -> str:
    """Which list a row without a head is from; empty where it is none."""
    words = line.split()
    if not 2 <= len(words) <= 4 or line[:1].isspace() or not words[1][:1].isdigit() or not _known(words[0], names):
        return ""
    if len(words) == 2:
        return "pip list"
    return "conda list" if _CONDA_BUILD.match(words[2]) else ""


def _known(name: str, names: frozenset[str]) -> bool:
    folded = normal(name)
    return folded in names or folded.startswith(_FAMILIES)


def normal(name: str) -> str:
    """A distribution's normalised name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _plain(lines: Sequence[str], names: frozenset[str]) -> Iterator[Listed]:
    """Lines that say a version by themselves: freeze, direct references, trees, conda exports."""
    for line in lines:
        if found := _FROZEN.match(line):
            yield Listed(found[1], found[2], "pip freeze")
        elif found := _DIRECT.match(line):
            yield Listed(found[1], version_in(found[2]), "pip freeze", url=found[2])
        elif found := _EDITABLE.match(line):
            yield Listed(found[2], "", "pip freeze", url=found[1])
        elif found := _YAML_PIP.match(line):
            yield Listed(found[1], found[2], "conda env export")
        elif found := _CONDA_SPEC.match(line):
            yield Listed(found[1], found[2], "conda env export", build=found[3])
        elif (found := _TREE.match(line)) and _known(found[1], names):
            yield Listed(found[1], found[2], "uv tree")


def version_in(url: str) -> str:
    """The version in the name of a wheel, empty for other URLs."""
    file = re.split(r"[?#]", url)[0].rpartition("/")[2]
    parts = file.removesuffix(".whl").split("-")
    return parts[1].replace("%2B", "+").replace("%2b", "+") if file.endswith(".whl") and len(parts) >= 5 else ""


def _shown(lines: Sequence[str]) -> Iterator[Listed]:
    """`pip show`: a line Name and right below it a line Version."""
    for number, line in enumerate(lines[:-1]):
        below = lines[number + 1]
        if line.startswith("Name: ") and below.startswith("Version: "):
            name, version = line[6:].strip(), below[9:].strip()
            if re.fullmatch(_NAME, name) and re.fullmatch(_VERSION, version):
                yield Listed(name, version, "pip show")
