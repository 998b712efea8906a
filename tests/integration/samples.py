"""Small solutions, a matrix made of plain tables, and wheels, for the tests of locking and rendering."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from accel_env.lock.rules import Exact, Forbid, OneMajor, OsFloor, Rules, StandsFor, Stub, UserSpace
from accel_env.matrix.codec import Parts, split
from accel_env.matrix.types import Absent, Artifact, Index, KnownConflict, PackageInfo
from accel_env.model import Ask, Candidate, Fact, Host, Image, Lock, LockedFile, Need, Pick, Policy, Problem, Solution, Subject

DIGEST = "sha256:" + "ab" * 32
SLIM = Image("python:3.12-slim-bookworm", DIGEST, python="3.12", libc="2.36", default=True)
RULES = Rules(
    (
        Forbid(("rocm", "xpu"), ("nvidia-*", "cuda-toolkit"), ("nvidia-ml-py",), "another vendor's user space", "closure:a"),
    ),
    (OneMajor("cuda", ("nvidia-*-cu{major}",), ("cuda-toolkit",), "two majors do not mix", "closure:c"),),
    (UserSpace("xpu", ("libze1",), "the loader is in no wheel", "closure:d"),),
    (Stub(("rocm", "rocm-sdk-*"), "a placeholder", "the house has it", "closure:b"),),
    (Exact(("torch-npu",), "its suffix means something", "closure:e"),),
    (StandsFor(("triton-house",), "triton", "it owns the module", "closure:f"),),
    (OsFloor("macos_aarch64", "macOS", "14.0", "closure:g"),),
)


def candidate(
    name: str,
    version: str,
    build: str = "any",
    index: str = "pypi",
    *,
    stack: str = "",
    platform: str = "linux_x86_64",
    requires: tuple[str, ...] = (),
    needs: tuple[Need, ...] = (),
    module: str = "",
    tag: str = "",
) -> Candidate:
    """A candidate with the fields that locking looks at."""
    return Candidate(
        name, module or name, version, build, "", index, platform, stack, ("cp312",), needs, requires, (), (), "f:x", tag=tag
    )


def beside(name: str, allows: str, when: str = "present", soft: bool = False) -> Need:
    """A need on another package."""
    return Need(Subject.PACKAGE, "f:x", allows, name, when=when, soft=soft)


def solution(
    *picks: Candidate,
    outside: tuple[str, ...] = (),
    asks: tuple[Ask, ...] = (),
    stack: str = "cuda-12.6",
    python: str = "3.12",
    image: Image | None = SLIM,
    env: Mapping[str, str] | None = None,
    host: Host | None = None,
    run_args: tuple[str, ...] = (),
    tags: Mapping[str, str] | None = None,
) -> Solution:
    """A solution that picks these candidates; `tags`: name -> wheel tag where it is not the Python's own."""
    own = f"cp{python.replace('.', '')}"
    problem = Problem(host or Host(libc_family="glibc", libc="2.39"), (), asks, Policy())
    chosen = tuple(Pick(item, (tags or {}).get(item.name, own)) for item in picks)
    others = tuple(Ask(text.split("=")[0].split("<")[0].split(">")[0].split("@")[0].strip(), "", text=text) for text in outside)
    return Solution(problem, stack, python, chosen, others, image, env or {}, run_args, (), True)


@dataclass
class Tables:
    """A matrix made of plain tables, with what locking asks of one."""

    indexes_: dict[str, Index] = field(
        default_factory=lambda: {
            "house": Index("house", "https://wheels.example/whl", "simple"),
            "assets": Index("assets", "https://assets.example/{tag}/{file}", "asset"),
        }
    )
    artifacts: dict[str, dict[str, Artifact]] = field(default_factory=dict)
    modules_: dict[str, str] = field(default_factory=dict)
    builds: dict[str, tuple[Candidate, ...]] = field(default_factory=dict)
    parts_: dict[int, Parts] = field(default_factory=dict)
    absent: dict[str, tuple[Absent, ...]] = field(default_factory=dict)
    conflicts_: tuple[KnownConflict, ...] = ()
    version: str = "2026.11.30"
    digest: str = "sha256:" + "cd" * 32

    def artifact_files(self, index: str) -> Mapping[str, Artifact]:
        """See Matrix."""
        return self.artifacts.get(index, {})

    def artifact(self, index: str, filename: str) -> Artifact | None:
        """See Matrix."""
        return self.artifacts.get(index, {}).get(filename)

    def indexes(self) -> Mapping[str, Index]:
        """See Matrix."""
        return self.indexes_

    def index_url(self, index: str) -> str:
        """See Matrix."""
        name, _, path = index.partition(":")
        return f"{self.indexes_[name].url}/{path}" if path else self.indexes_[name].url

    def modules(self) -> Mapping[str, str]:
        """See Matrix."""
        return self.modules_

    def package_names(self) -> frozenset[str]:
        """See Matrix."""
        return frozenset(self.builds)

    def candidates(self, name: str, platform: str) -> tuple[Candidate, ...]:
        """See Matrix."""
        return tuple(build for build in self.builds.get(name, ()) if build.platform == platform)

    def parts(self, candidate: Candidate) -> Parts:
        """See Matrix."""
        return self.parts_.setdefault(id(candidate.needs), split(candidate.needs))

    def package(self, name: str) -> PackageInfo:
        """See Matrix."""
        return PackageInfo(name, self.modules_.get(name, name), "", self.absent.get(name, ()))

    def conflicts(self) -> tuple[KnownConflict, ...]:
        """See Matrix."""
        return self.conflicts_

    def fact(self, id: str) -> Fact:
        """See Matrix."""
        return Fact(id, "it is so", f"source of {id}", "vendor", "2026-11-30")

    def know(
        self, index: str, *names: str, sha256: str = "", size: int | None = None, grade: str = "vendor", tag: str = ""
    ) -> None:
        """Puts files on an index; each has its own made-up hash unless one is given."""
        for name in names:
            digest = sha256 or hashlib.sha256(name.encode()).hexdigest()
            row = Artifact("" if sha256 == "none" else digest, size, 1, grade, ("owner/repo:uv.lock@0",), tag)
            self.artifacts.setdefault(index, {})[name] = row


def locked(name: str, version: str, index: str = "pypi", url: str = "", filename: str = "") -> LockedFile:
    """A locked file with a made-up hash."""
    filename = filename or f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    return LockedFile(
        name,
        version,
        filename,
        hashlib.sha256(filename.encode()).hexdigest(),
        index,
        url or f"https://files.example/{filename}",
        7,
    )


def lock_of(found: Solution, *files: LockedFile, notes: tuple[str, ...] = ()) -> Lock:
    """A lock of a solution with these files."""
    tools = {"uv": "0.1", "matrix": "2026.11.30", "matrix_digest": "sha256:" + "cd" * 32}
    return Lock(found, files, "2026-11-30T00:00:00Z", tools, notes)


def make_wheel(
    folder: Path, name: str, version: str, requires: tuple[str, ...] = (), tag: str = "py3-none-any", payload: bytes = b""
) -> Path:
    """A small wheel that pip can install: one module, valid metadata and record."""
    stem = f"{name.replace('-', '_')}-{version}"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *(f"Requires-Dist: {line}" for line in requires)]
    members = {
        f"{name.replace('-', '_')}.py": f"version = {version!r}\n".encode() + payload,
        f"{stem}.dist-info/METADATA": ("\n".join(lines) + "\n").encode(),
        f"{stem}.dist-info/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n".encode(),
    }
    record = [
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}"
        for path, data in members.items()
    ]
    members[f"{stem}.dist-info/RECORD"] = "\n".join([*record, f"{stem}.dist-info/RECORD,,"]).encode()
    path = folder / f"{stem}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member, data in members.items():
            archive.writestr(zipfile.ZipInfo(member, (1980, 1, 1, 0, 0, 0)), data)
    return path
