"""Which file a pick is, and where it lies: by index and file name, from the hashes that the matrix holds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote

if TYPE_CHECKING:
    from packaging.version import Version

    from accel_env.matrix.types import Artifact, Index
    from accel_env.model import Candidate, Pick

PYPI = "pypi"
IMAGE = "image"
_MACHINES = {"x86_64": ("x86_64", "amd64", "intel", "universal2"), "aarch64": ("aarch64", "arm64", "universal2")}
_SYSTEMS = {"linux": ("manylinux", "linux"), "windows": ("win",), "macos": ("macosx",)}


class Shelf(Protocol):
    """What this module asks of the matrix."""

    def artifact_files(self, index: str) -> Mapping[str, Artifact]:
        """File name -> what is known of it, for one index."""
        ...

    def indexes(self) -> Mapping[str, Index]:
        """The indexes by name."""
        ...

    def index_url(self, index: str) -> str:
        """The URL of `<index>:<path>`."""
        ...


@dataclass(frozen=True, slots=True)
class Chosen:
    """The file of a pick. `version` has the local label; `sha256` and `size` are empty and None when nobody told.

    `known`: the file name was seen; else it is what such a file is usually called. `asset`: it lies on no index page.
    """

    filename: str
    version: str
    url: str
    sha256: str = ""
    size: int | None = None
    known: bool = False
    asset: bool = False
    grade: str = ""
    seen: int = 0


def choose(pick: Pick, libc: str, shelf: Shelf) -> Chosen:
    """The file of a pick that comes from neither PyPI nor an image."""
    candidate = pick.candidate
    files = shelf.artifact_files(candidate.index)
    name = best_file(pick, files, libc)
    if not name:
        return guess(pick, shelf)
    artifact = files[name]
    return Chosen(
        name,
        version_of(name),
        file_url(candidate, name, shelf, artifact.tag),
        artifact.sha256,
        artifact.size,
        True,
        _is_asset(candidate, shelf),
        artifact.grade,
        artifact.seen,
    )


def best_file(pick: Pick, names: Iterable[str], libc: str) -> str:
    """The name among `names` that holds the pick for its platform and tag; empty when none does.

    Of several the one with the closest label wins, then the highest manylinux level that `libc` (empty: unknown) allows.
    """
    prefix = f"{normalise(pick.candidate.name).replace('-', '_')}-"
    ranked = []
    for name in names:
        if not normalise(name).replace("-", "_").startswith(prefix.replace("-", "_")):
            continue
        rank = _rank(pick, name, libc)
        if rank is not None:
            ranked.append((rank, name))
    return min(ranked)[1] if ranked else ""


def _rank(pick: Pick, filename: str, libc: str) -> tuple[int, int, int, int] | None:
    """How well a file fits (smaller is better), None when it is something else."""
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    try:
        name, version, build, tags = parse_wheel_filename(filename)
    except InvalidWheelFilename:
        return None
    label = _label_distance(pick.candidate, version)
    if label is None or normalise(name) != normalise(pick.candidate.name):
        return None
    if not any(_tag_fits(pick.tag, tag.interpreter, tag.abi) for tag in tags):
        return None
    levels = [_platform_level(tag.platform, pick.candidate.platform) for tag in tags]
    fitting = [level for level in levels if level is not None]
    if not fitting:
        return None
    level = min(fitting)
    roof = tuple(int(part) for part in libc.split(".")[:2]) if re.fullmatch(r"\d+(\.\d+)+", libc) else (99, 0)
    return (label, int(level > roof), -level[0] * 1000 - level[1], -(build[0] if build else 0))


def _label_distance(candidate: Candidate, version: Version) -> int | None:
    """0: exactly the pick; 1: the file has no label; 2: its label goes on where the build's ends; None: another version."""
    from packaging.version import Version

    wanted = Version(with_label(candidate))
    if Version(version.public) != Version(wanted.public):
        return None
    if version.local == wanted.local:
        return 0
    if version.local is None:
        return 1
    return 2 if wanted.local and version.local.startswith(f"{wanted.local}.") else None


def _tag_fits(wanted: str, interpreter: str, abi: str) -> bool:
    """Whether a file's interpreter and ABI are what the matrix calls `wanted` (`cp312`, `cp314t`, `cp39-abi3`, `py3`)."""
    if "-" in wanted:
        return f"{interpreter}-{abi}" == wanted
    if wanted.startswith("py"):
        return interpreter == wanted and abi == "none"
    return interpreter == wanted.rstrip("t") and abi in (wanted, f"{wanted}m")


def _platform_level(tag: str, platform: str) -> tuple[int, int] | None:
    """The libc level of a platform tag, (0, 0) where it has none; None when it is for another platform."""
    if tag == "any":
        return (0, 0)
    system, _, machine = platform.partition("_")
    if not tag.startswith(_SYSTEMS.get(system, (system,))) or not tag.endswith(_MACHINES.get(machine, (machine,))):
        return None
    found = re.match(r"manylinux_(\d+)_(\d+)_", tag)
    return (int(found.group(1)), int(found.group(2))) if found else (0, 0)


def guess(pick: Pick, shelf: Shelf) -> Chosen:
    """The file as it is usually called, where no name is known: good for a stand-in and for a release asset."""
    candidate = pick.candidate
    stem = normalise(candidate.name).replace("-", "_")
    local = "" if candidate.build in ("", "any") else f"+{candidate.build}"
    system, _, machine = candidate.platform.partition("_")
    platform = {
        "windows": "win_amd64" if machine == "x86_64" else "win_arm64",
        "macos": f"macosx_11_0_{'arm64' if machine == 'aarch64' else machine}",
    }.get(system, candidate.platform)
    filename = f"{stem}-{candidate.version}{local}-{_full_tag(pick.tag)}-{'any' if pick.tag.startswith('py') else platform}.whl"
    return Chosen(filename, with_label(candidate), file_url(candidate, filename, shelf), asset=_is_asset(candidate, shelf))


def _full_tag(tag: str) -> str:
    """`cp312` -> `cp312-cp312`, `py3` -> `py3-none`; a tag with an ABI stays."""
    if "-" in tag:
        return tag
    return f"{tag}-none" if tag.startswith("py") else f"{tag.rstrip('t')}-{tag}"


def file_url(candidate: Candidate, filename: str, shelf: Shelf, tag: str = "") -> str:
    """The absolute URL of a file of the candidate's index; `+` is written `%2B`. `tag`: the file's own release tag, if known."""
    url, quoted = shelf.index_url(candidate.index), quote(filename, safe="")
    if _is_asset(candidate, shelf):
        return url.replace("{tag}", tag or candidate.tag).replace("{file}", quoted)
    return f"{url.rstrip('/')}/{quoted}"


def _is_asset(candidate: Candidate, shelf: Shelf) -> bool:
    index = shelf.indexes().get(candidate.index.partition(":")[0])
    return index is not None and index.kind == "asset"


def with_label(candidate: Candidate) -> str:
    """The version with the local label of the build, as PEP 440 spells it."""
    from packaging.version import Version

    if candidate.build in ("", "any") or "+" in candidate.version:
        return str(Version(candidate.version))
    return str(Version(f"{candidate.version}+{candidate.build}"))


def version_of(filename: str) -> str:
    """The version in a wheel's file name."""
    from packaging.utils import parse_wheel_filename

    return str(parse_wheel_filename(filename)[1])


def normalise(name: str) -> str:
    """A distribution name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()
