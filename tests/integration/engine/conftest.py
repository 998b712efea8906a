"""A real container engine for the tests: the one that `scripts/engine` brought up, or one of our own for the session."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.integration.loopback import serving
from tests.integration.samples import candidate, lock_of, locked, make_wheel, solution

from accel_env.build.docker import DockerEngine
from accel_env.lock.write import lock_files, write_files
from accel_env.model import Host, Image, Lock, LockedFile
from accel_env.render import RenderOptions, render

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "scripts" / "engine"
# Before any test closes the way out: fetching the engine needs the network, the tests do not.
OPEN = dict(os.environ)
# Another content than that of earlier runs, whose steps the engine has in its cache.
OF_THIS_RUN = f"# {uuid.uuid4()}\n".encode()
REF = "python:3.11-slim-bookworm"


@dataclass(frozen=True)
class Home:
    """The folder of an engine, and what to set to talk to it."""

    folder: Path
    settings: dict[str, str]

    def script(self, verb: str, *words: str) -> None:
        """Calls `scripts/engine` for this folder."""
        subprocess.run([str(SCRIPT), verb, str(self.folder), *words], check=True, env=OPEN)

    @property
    def digest(self) -> str:
        """The base image's."""
        return (self.folder / "base.digest").read_text().strip()

    @property
    def registry(self) -> str:
        """Address of the registry."""
        return f"127.0.0.1:{(self.folder / 'registry.port').read_text().strip()}"


def home_of(folder: Path) -> Home:
    """The engine in a folder, as `scripts/engine env` tells it."""
    done = subprocess.run(
        ["bash", "-c", f'eval "$({SCRIPT} env {folder})"; env -0'], check=True, capture_output=True, text=True, env=OPEN
    )
    told = dict(line.partition("=")[::2] for line in done.stdout.split("\0") if "=" in line)
    return Home(folder, {name: told[name] for name in ("PATH", "DOCKER_HOST", "DOCKER_CONFIG")})


def brought_up(folder: Path, *words: str) -> Home:
    """An engine that runs in the folder now."""
    subprocess.run([str(SCRIPT), "up", str(folder), *words], check=True, env=OPEN)
    return home_of(folder)


@pytest.fixture(scope="session")
def home() -> Generator[Home]:
    """The engine of ACCEL_ENV_ENGINE, which stays up; else one that goes down at the end (its downloads stay in TMPDIR)."""
    given = OPEN.get("ACCEL_ENV_ENGINE")
    if given:
        yield home_of(Path(given))
        return
    found = brought_up(Path(tempfile.gettempdir()) / f"accel-env-engine-{os.getuid()}", "--disk", "20G")
    yield found
    found.script("down")


@pytest.fixture
def engine(home: Home, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> DockerEngine:
    """The Docker backend on the engine; child processes find it too."""
    # A pytest that pytest-xdist does not fit lets go of the groups without a word, and then the tests count each other's images.
    if os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1") != "1" and "@engine" not in request.node.nodeid:
        pytest.fail("tests of one engine are on several workers: run them with --dist loadgroup, or with -n 0")
    for name, value in home.settings.items():
        monkeypatch.setenv(name, value)
    return DockerEngine()


Fill = Callable[..., Path]


@pytest.fixture
def rendered(home: Home, tmp_path: Path) -> Generator[Fill]:
    """Writes a rendered folder of small wheels that a loopback index serves; a site's pip.conf (a secret) names the index."""
    with serving(tmp_path / "site") as site:
        (tmp_path / "pip.conf").write_text(f"[global]\nindex-url = {site.url}/simple\n")

        def fill(name: str = "cell", options: RenderOptions | None = None, files: tuple[LockedFile, ...] = ()) -> Path:
            wheels = [make_wheel(site.simple, part, "1.0", payload=OF_THIS_RUN) for part in ("smallpart", "otherpart")]
            parts = [
                replace(locked(wheel.name.partition("-")[0], "1.0", filename=wheel.name), sha256=sha256(wheel))
                for wheel in wheels
            ]
            return write(tmp_path / name, lock((*parts, *files), home.digest), options)

        yield fill


@pytest.fixture
def spare(home: Home) -> Generator[Callable[..., Home]]:
    """Brings up another engine with the base image of the first, for tests that break it; all goes down and away afterwards."""
    # Not tmp_path: names of sockets must be short.
    folder = Path(tempfile.mkdtemp(prefix="accel-env-"))

    def bring(*words: str) -> Home:
        shutil.copytree(home.folder / "registry", folder / "registry")
        shutil.copy(home.folder / "base.digest", folder / "base.digest")
        if "--suite" not in words:
            (folder / "root").symlink_to(home.folder / "root")
        # On a disk of its own, which goes as one file.
        return brought_up(folder, *words, *(() if "--disk" in words else ("--disk", "8G")))

    yield bring
    subprocess.run([str(SCRIPT), "down", str(folder)], check=True, env=OPEN)
    shutil.rmtree(folder)


def sha256(path: Path) -> str:
    """The hash of a file."""
    import hashlib

    return hashlib.sha256(path.read_bytes()).hexdigest()


def lock(files: tuple[LockedFile, ...], digest: str) -> Lock:
    """A lock for the CPU over the stand-in base."""
    found = solution(
        *(candidate(file.name, file.version) for file in files), stack="cpu", python="3.11", image=Image(REF, digest),
        host=Host(arch=os.uname().machine),
    )  # fmt: skip
    return lock_of(found, *files)


def write(folder: Path, closed: Lock, options: RenderOptions | None = None) -> Path:
    """Renders a lock into a folder."""
    write_files(folder, render(closed.solution, closed, lock_files(closed), b"{}", options or RenderOptions()))
    return folder


def edit(folder: Path, before: str, after: str) -> Path:
    """Changes the Dockerfile."""
    path = folder / "Dockerfile"
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))
    return folder


def secrets(folder: Path) -> tuple[str, ...]:
    """The secrets of the loopback site."""
    return (f"id=pip,src={folder.parent / 'pip.conf'}",)
