"""Packages of the operating system and compiled packages in a real image; Debian's packages come over the network."""

from __future__ import annotations

import io
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.engine.conftest import Fill, Home, secrets, sha256
from tests.integration.samples import locked

from accel_env import app_build
from accel_env.app_build import BuildWords
from accel_env.build.docker import DockerEngine
from accel_env.build.engine import Event, RunRequest, StepLog
from accel_env.errors import BuildError
from accel_env.render import RenderOptions
from accel_env.render.source import Devel

pytestmark = [pytest.mark.docker, pytest.mark.network, pytest.mark.xdist_group("engine")]
PACKAGES = ("g++", "gcc", "libc6-dev")
# A build backend in a few lines: it compiles a library, and tells how it was told to. No package of the index is needed for it.
BACKEND = """
import os, subprocess, zipfile

def build_wheel(folder, settings=None, metadata=None):
    name = "compiled-1.0-py3-none-any.whl"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "compiled.so", "compiled.c"], check=True)
    told = {key: os.environ.get(key, "") for key in ("MAX_JOBS", "TORCH_CUDA_ARCH_LIST")}
    parts = {
        "compiled/__init__.py": f"told = {told!r}\\nimport ctypes, os\\n"
        "answer = ctypes.CDLL(os.path.join(os.path.dirname(__file__), 'compiled.so')).answer\\n",
        "compiled-1.0.dist-info/METADATA": "Metadata-Version: 2.1\\nName: compiled\\nVersion: 1.0\\n",
        "compiled-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
        "compiled-1.0.dist-info/RECORD": "",
    }
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        for path, text in parts.items():
            wheel.writestr(zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0)), text)
        wheel.writestr(zipfile.ZipInfo("compiled/compiled.so", (1980, 1, 1, 0, 0, 0)), open("compiled.so", "rb").read())
    return name
"""
SOURCE = {
    "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
    "backend.py": BACKEND,
    "compiled.c": "int answer(void) { return 42; }\n",
    "PKG-INFO": "Metadata-Version: 2.1\nName: compiled\nVersion: 1.0\n",
}


def source(folder: Path) -> Path:
    """A source distribution."""
    path = folder / "compiled-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, text in SOURCE.items():
            info = tarfile.TarInfo(f"compiled-1.0/{name}")
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return path


def test_a_compiler_and_a_compiled_package(engine: DockerEngine, rendered: Fill, home: Home, tmp_path: Path) -> None:
    path = source(tmp_path / "site" / "simple")
    file = replace(locked("compiled", "1.0", filename=path.name), sha256=sha256(path))
    options = RenderOptions(
        packages=PACKAGES, compiler=True, headers="python3-dev",
        devel=Devel((), env={"TORCH_CUDA_ARCH_LIST": "7.0;9.0"}, memory_gib=1),
    )  # fmt: skip
    folder = rendered(options=options, files=(file,))
    asked = BuildWords(str(folder), network="host", secrets=(*secrets(folder), f"id=apt,src={home.folder / 'apt.list'}"))
    built = app_build.build(asked)

    code = "import compiled; print(compiled.answer(), compiled.told)"
    ran = engine.run(RunRequest(built["image"], ("python3", "-c", code)))
    assert ran.status == 0, ran.stderr
    assert ran.stdout.startswith("42 {'MAX_JOBS': '") and "'TORCH_CUDA_ARCH_LIST': '7.0;9.0'" in ran.stdout
    compile_it = "cd /tmp && echo 'int main(void) { return 7; }' > a.c && gcc a.c -o a && ./a"
    assert engine.run(RunRequest(built["image"], ("sh", "-c", compile_it), read_only=True)).status == 7
    # What torch.compile and Triton compile when they run includes Python.h; this base's Python is the distribution's.
    python_h = "cd /tmp && echo '#include <Python.h>' > b.c && gcc -fsyntax-only $(python3-config --includes) b.c"
    included = engine.run(RunRequest(built["image"], ("sh", "-c", python_h), read_only=True))
    assert included.status == 0, included.stderr
    whole = "dpkg --verify && dpkg --audit && ! ls /var/lib/apt/lists/*Packages* 2>/dev/null && stat -c %a /root /tmp"
    checked = engine.run(RunRequest(built["image"], ("sh", "-c", whole), user="0"))
    assert (checked.status, checked.stdout) == (0, "700\n1777\n"), checked.stdout + checked.stderr


def test_a_base_without_a_snapshot_needs_sources(engine: DockerEngine, rendered: Fill) -> None:
    # Other packages than above: secrets are no part of what the cache goes by.
    folder = rendered(options=RenderOptions(packages=("libc6-dev",)))
    lines: list[str] = []

    def watch(event: Event) -> None:
        lines.extend([event.text] if isinstance(event, StepLog) else [])

    with pytest.raises(BuildError) as caught:
        app_build.build(BuildWords(str(folder), network="host", secrets=secrets(folder)), watch)
    assert caught.value.reference == "step-failed"
    assert "this base names no dated snapshot of its packages: give one with --secret id=apt,src=SOURCES" in caught.value.context
