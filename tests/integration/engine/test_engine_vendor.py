"""A base as Gaudi's makers ship it: torch is in the image and nowhere else, and no step of pip may replace it.

The stand-in carries a distribution that is called torch, with the files that pip and the checks look at; it computes nothing.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.engine.conftest import Fill, Home, secrets, sha256, write
from tests.integration.samples import candidate, lock_of, locked, make_wheel, solution

from accel_env import app_build
from accel_env.app_build import BuildWords
from accel_env.app_scene import SmokeWords
from accel_env.app_smoke import smoke
from accel_env.build.docker import DockerEngine
from accel_env.build.engine import Event, RunRequest, StepLog
from accel_env.errors import BuildError
from accel_env.model import Image, LockedFile
from accel_env.render import RenderOptions
from accel_env.smoke.checks import program

pytestmark = [pytest.mark.docker, pytest.mark.xdist_group("engine")]
BROUGHT = "9.1.0+hpu.1"
VENDOR = f"""FROM {{base}}
RUN place=/usr/lib/python3/dist-packages && mkdir -p "$place/torch-{BROUGHT}.dist-info" "$place/torch" && \\
    printf '__version__ = "{BROUGHT}"\\n' > "$place/torch/__init__.py" && \\
    printf 'Metadata-Version: 2.1\\nName: torch\\nVersion: {BROUGHT}\\n' > "$place/torch-{BROUGHT}.dist-info/METADATA" && \\
    printf 'vendor\\n' > "$place/torch-{BROUGHT}.dist-info/INSTALLER"
"""
Vendor = Callable[..., Path]


@pytest.fixture
def vendor(engine: DockerEngine, home: Home, rendered: Fill, tmp_path: Path) -> Vendor:
    """Writes a folder for a stack whose torch comes in the base; `torch` is the plan's, `more` further locked files."""
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "Dockerfile").write_text(VENDOR.format(base=f"python:3.11-slim-bookworm@{home.digest}"))
    ref = f"{home.registry}/gaudi/pytorch-installer:9.1.0"
    line = ["docker", "buildx", "build", "--quiet", "--provenance=false", "--network", "host", "--tag", ref]
    subprocess.run([*line, str(tmp_path / "base")], check=True, capture_output=True)
    subprocess.run(["docker", "push", "--quiet", ref], check=True, capture_output=True)
    shown = subprocess.run(["docker", "image", "inspect", ref], check=True, capture_output=True, text=True).stdout
    digests = [text for text in json.loads(shown)[0]["RepoDigests"] if text.startswith(f"{ref.rpartition(':')[0]}@")]
    image = Image(ref, digests[0].rpartition("@")[2], stack="gaudi-1.0", torch="9.1.0")
    rendered("plain")  # the small wheels are on the loopback index from here on

    def fill(torch: str = "9.1.0", more: tuple[LockedFile, ...] = ()) -> Path:
        picks = (candidate("torch", torch, "hpu", "image"), candidate("smallpart", "1.0"))
        found = solution(*picks, stack="gaudi-1.0", python="3.11", image=image)
        wheel = next((tmp_path / "site" / "simple").glob("smallpart-*"))
        small = replace(locked("smallpart", "1.0", filename=wheel.name), sha256=sha256(wheel))
        options = RenderOptions(programs={"checks.py": program()}, labels={"accel-env.checks": "/opt/accel-env/checks.py"})
        folder = write(tmp_path / "vendor", lock_of(found, small, *more), options)
        plan = {
            "status": "ok", "python": "3.11", "host": {"os": "linux", "arch": "x86_64", "devices": []}, "run_args": [],
            "picks": {
                "torch": {"version": torch, "build": "hpu", "index": "image", "tag": "cp311"},
                "smallpart": {"version": "1.0", "build": "any", "index": "pypi", "tag": "py3"},
            },
        }  # fmt: skip
        (folder / "plan.json").write_text(json.dumps(plan))
        return folder

    return fill


def other_torch(folder: Path, version: str) -> LockedFile:
    """A torch on the loopback index."""
    wheel = make_wheel(folder / "site" / "simple", "torch", version)
    return replace(locked("torch", version, filename=wheel.name), sha256=sha256(wheel))


def words(folder: Path) -> BuildWords:
    return BuildWords(str(folder), network="host", secrets=secrets(folder))


def refused(folder: Path) -> str:
    """What the failing step printed."""
    lines: list[str] = []

    def watch(event: Event) -> None:
        lines.extend([event.text] if isinstance(event, StepLog) else [])

    with pytest.raises(BuildError) as caught:
        app_build.build(words(folder), watch)
    assert caught.value.reference == "step-failed"
    return "\n".join(lines)


def test_the_torch_of_the_image_stays(engine: DockerEngine, vendor: Vendor, tmp_path: Path) -> None:
    built = app_build.build(words(vendor()))
    code = "import smallpart, torch; print(torch.__version__, torch.__file__)"
    ran = engine.run(RunRequest(built["image"], ("python3", "-c", code), read_only=True))
    assert ran.stdout == f"{BROUGHT} /usr/lib/python3/dist-packages/torch/__init__.py\n", ran.stderr
    answer = smoke(SmokeWords(str(tmp_path / "vendor"), level="static"), lambda _: None)
    found = {check["name"]: (check["verdict"], check["detail"]) for check in answer["checks"]}
    assert answer["status"] == "pass" and found["packages as planned"][0] == "pass", found


def test_a_lock_with_another_torch_is_not_installed(vendor: Vendor, tmp_path: Path) -> None:
    said = refused(vendor(more=(other_torch(tmp_path, "9.9.0"),)))
    assert "torch==9.1.0" in said and "constraint" in said


def test_a_lock_with_the_same_torch_replaces_nothing(engine: DockerEngine, vendor: Vendor, tmp_path: Path) -> None:
    built = app_build.build(words(vendor(more=(other_torch(tmp_path, "9.1.0"),))))
    ran = engine.run(RunRequest(built["image"], ("python3", "-c", "import torch; print(torch.__version__)")))
    assert ran.stdout == f"{BROUGHT}\n", ran.stderr


def test_an_image_that_brings_another_torch_than_planned(vendor: Vendor) -> None:
    assert f"the image brings torch {BROUGHT}" in refused(vendor(torch="9.2.0"))
