"""Which published builds a requirement can mean, given where an installer is told to look."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from accel_env.judge.files import requirement
from accel_env.judge.files.values import UNKNOWN, Install, Wanted
from accel_env.model import Candidate, Subject
from accel_env.solve.versions import allows, parse, tag_fits

if TYPE_CHECKING:
    from accel_env.matrix.load import Matrix

PYPI, ELSEWHERE, ANY_PATH = "pypi", "?", "*"
_LABEL = re.compile(r"cu\d{2,3}|rocm\d[\d.]*|xpu|cpu")
_PAGE = re.compile(r"/?(?:torch_stable|index)\.html?$|/?simple/?$")
NIGHTLY = "nightly"


@dataclass(frozen=True, slots=True)
class Places:
    """Where an installer looks, as keys of the matrix's indexes. `unknown`: also somewhere that the matrix does not know.

    `ordered`: the first place that has a name wins; else the highest version of all. `nightly`: one of them serves nightlies.
    """

    keys: tuple[str, ...]
    unknown: bool = False
    ordered: bool = False
    nightly: bool = False


def index_key(url: str, matrix: Matrix) -> str:
    """The key of an index by its URL: `pypi`, `pytorch:cu126`, `pytorch:nightly/cu128`, `pytorch:*` for a page of all, or `?`."""
    plain = _PAGE.sub("", re.sub(r"//[^/@]*@", "//", url).split("?", 1)[0].rstrip("/")).rstrip("/")
    if UNKNOWN in plain:
        return ELSEWHERE
    for name, index in matrix.indexes().items():
        root = index.url.partition("{")[0].rstrip("/")
        if plain == root or plain.startswith(root + "/"):
            path = plain[len(root) :].strip("/")
            return f"{name}:{path}" if path else f"{name}:{ANY_PATH}" if _has_paths(name, matrix) else name
    last = plain.rpartition("/")[2]
    if _LABEL.fullmatch(last) and re.search(r"torch|whl", plain):  # a mirror of the project's own index
        return f"{_torch_index(matrix)}:{last}"
    return PYPI if "pypi" in url else ELSEWHERE


def _has_paths(name: str, matrix: Matrix) -> bool:
    return any(key.startswith(f"{name}:") for key in _torch_keys(matrix))


def _torch_index(matrix: Matrix) -> str:
    return next((key.partition(":")[0] for key in _torch_keys(matrix) if _LABEL.fullmatch(key.partition(":")[2])), ELSEWHERE)


def home_of(name: str, label: str, matrix: Matrix, platform: str) -> str:
    """The key of the index that serves a package with a label; `?` where no build of it has the label."""
    rows = [c for c in matrix.candidates(name, platform) if c.build == label]
    keys = [c.index for c in rows if c.index.endswith(f":{label}")] + [f"{_torch_index(matrix)}:{label}" for _ in rows[:1]]
    return next(iter(keys), ELSEWHERE)


def _torch_keys(matrix: Matrix) -> tuple[str, ...]:
    return tuple(dict.fromkeys(c.index for c in matrix.candidates("torch", "linux_x86_64")))


def places(wanted: Wanted, install: Install, matrix: Matrix) -> Places:
    """Where the installer looks for one requirement."""
    if wanted.index:
        return _placed([index_key(wanted.index, matrix)], ordered=True)
    label = install.backend if install.tool == "uv" else ""
    if label and label != "auto" and _LABEL.fullmatch(label) and _on_torch_index(wanted.name, matrix):
        return _placed([f"{_torch_index(matrix)}:{label}"], ordered=True)
    keys = [index_key(url, matrix) for url in (*install.extras, *install.links)]
    keys.append(index_key(install.index, matrix) if install.index else PYPI)
    return _placed(keys, ordered=install.first_index)


def _placed(keys: Sequence[str], *, ordered: bool) -> Places:
    nightly = any(f":{NIGHTLY}" in key or key.endswith(f"-{NIGHTLY}") for key in keys)
    known = tuple(dict.fromkeys(key for key in keys if key != ELSEWHERE))
    return Places(known, ELSEWHERE in keys, ordered, nightly)


def _on_torch_index(name: str, matrix: Matrix) -> bool:
    return any(c.index.startswith(f"{_torch_index(matrix)}:") for c in matrix.candidates(name, "linux_x86_64"))


@dataclass(frozen=True, slots=True)
class Offer:
    """A build as a place offers it. `version` is what the file name there says: on PyPI it has no label."""

    candidate: Candidate
    key: str
    version: str

    @property
    def order(self) -> tuple[object, ...]:
        """What pip prefers: the higher version, a label counting as higher than none."""
        return (parse(self.version), -self.candidate.rank, self.candidate.build, self.candidate.variant)


def pool(wanted: Wanted, where: Places, matrix: Matrix, platform: str) -> tuple[Offer, ...]:
    """The builds that the places offer under the requirement's name and version, whatever the Python; newest first."""
    every = [c for c in matrix.candidates(wanted.name, platform) if c.index != "image" and not doubtful(c)]
    if wanted.url:
        return tuple(_by_file(requirement.wheel(wanted.url), wanted.url, every, matrix))
    shared = _on_torch_index(wanted.name, matrix)
    keys = (*where.keys, PYPI, f"{_torch_index(matrix)}:{ANY_PATH}") if wanted.locked and where.unknown else where.keys
    offered = [o for key in dict.fromkeys(keys) for c in every if (o := _offer(c, key, matrix, shared)) is not None]
    if where.ordered and not wanted.locked:
        first = next((key for key in where.keys if any(o.key == key for o in offered)), "")
        offered = [o for o in offered if o.key == first]
    fitting = [o for o in offered if allows(wanted.spec, o.version)]
    return tuple(sorted(fitting, key=lambda o: o.order, reverse=True))


def _offer(candidate: Candidate, key: str, matrix: Matrix, shared: bool) -> Offer | None:
    label = label_of(candidate)
    labelled = f"{candidate.version}+{label}" if label else candidate.version
    if candidate.index == PYPI:
        if key == PYPI:
            return Offer(candidate, key, candidate.version)
        # the project's index has PyPI's build too, under its label
        home = f"{_torch_index(matrix)}:{label}"
        return Offer(candidate, key, labelled) if shared and label and _serves(key, home) else None
    return Offer(candidate, key, labelled) if _serves(key, candidate.index) else None


def _by_file(tags: tuple[str, str, str, str, str] | None, url: str, every: Iterable[Candidate], matrix: Matrix) -> list[Offer]:
    """The builds that a wheel's file name names."""
    if tags is None:
        return []
    version, _, label = tags[1].partition("+")
    mine = [c for c in every if parse(c.version) == parse(version)]
    key = index_key(url, matrix)
    if label:
        mine = [c for c in mine if _dotted(c.build) == _dotted(label)]
    else:
        mine = [c for c in mine if _serves(key, c.index)] or [c for c in mine if c.index == PYPI]
    return [Offer(c, key, tags[1]) for c in mine]


def _dotted(label: str) -> str:
    return label.lower().replace("-", ".").replace("_", ".")


def _serves(key: str, index: str) -> bool:
    if key.endswith(f":{ANY_PATH}"):
        return index.startswith(key[: -len(ANY_PATH)])
    return key == index


def doubtful(candidate: Candidate) -> bool:
    """True for a build whose very existence nobody has published."""
    return any(n.unknown and n.subject is Subject.PACKAGE and n.name == candidate.name for n in candidate.needs)


def too_new(candidate: Candidate, python: str) -> bool:
    """True where every file of a build is for Pythons above one: its older releases, which nobody listed, may be for it."""
    tags = next((n.values for n in candidate.needs if n.subject is Subject.PYTHON), ()) or candidate.tags
    minors = [int(found[1]) for tag in tags if (found := re.match(r"cp3(\d+)", tag))]
    return bool(python and minors) and int(python.rstrip("t").partition(".")[2]) < min(minors)


def runs_on(candidate: Candidate, python: str) -> bool:
    """True where a build has a file for a Python (`3.12`); always where the Python is unknown."""
    if not python:
        return True
    need = next((n for n in candidate.needs if n.subject is Subject.PYTHON), None)
    tags, requires = (need.values, need.allows) if need else (candidate.tags, "")
    return (not tags or any(tag_fits(tag, python) for tag in tags)) and allows(requires, python.rstrip("t") + ".99")


@cache
def requires_of(requires: tuple[str, ...], platform: str, python: str) -> tuple[tuple[str, str], ...]:
    """(name, specifier) of the requirements that hold on a platform and a Python, extras left out."""
    from packaging.requirements import InvalidRequirement, Requirement

    from accel_env.matrix.markers import marker_environment
    from accel_env.solve.problem import normalise

    found = []
    for text in requires:
        try:
            one = Requirement(text)
        except InvalidRequirement:
            continue
        if one.marker is None or one.marker.evaluate({**marker_environment(platform, python or "3.12"), "extra": ""}):
            found.append((normalise(one.name), str(one.specifier)))
    return tuple(found)


def label_of(candidate: Candidate) -> str:
    """The label that the build carries inside, empty for none."""
    return "" if candidate.build in ("", "any", "source") else candidate.build
