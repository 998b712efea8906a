"""Lock files: every package with its version, index, hash and line; and compose files with what they start."""

from __future__ import annotations

from pathlib import Path

import pytest

from accel_env.judge.files.load import load
from accel_env.judge.files.values import Document, Install, Wanted

CU128 = "https://download.pytorch.org/whl/cu128"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(name: str, text: str) -> Document:
    Path(name).write_text(text, encoding="utf-8")
    return load(name)


def locked(name: str, text: str) -> list[Wanted]:
    scene = read(name, text).scenes[0]
    assert scene.kind == "lock"
    return [w for step in scene.steps if isinstance(step, Install) for w in step.wanted]


def test_pylock() -> None:
    torch, numpy = locked(
        "pylock.gpu.toml",
        f"""lock-version = "1.0"
requires-python = ">=3.12"
[[packages]]
name = "torch"
version = "2.9.1+cu128"
index = "{CU128}"
[[packages.wheels]]
url = "{CU128}/torch-2.9.1%2Bcu128-cp312-cp312-manylinux_2_28_x86_64.whl"
hashes = {{ sha256 = "aa" }}
[[packages]]
name = "numpy"
marker = "python_version < '3.13'"
""",
    )
    assert (torch.spec, torch.index, torch.where) == ("==2.9.1+cu128", CU128, "pylock.gpu.toml:3")
    assert torch.hashed and torch.locked and torch.files == ("torch-2.9.1+cu128-cp312-cp312-manylinux_2_28_x86_64.whl",)
    assert (numpy.spec, numpy.markers, numpy.where) == ("", ("python_version < '3.13'",), "pylock.gpu.toml:10")


def test_uv_lock() -> None:
    rows = locked(
        "uv.lock",
        f"""version = 1
requires-python = ">=3.11"
[[package]]
name = "mine"
version = "0.1"
source = {{ editable = "." }}
[[package]]
name = "torch"
version = "2.9.1"
source = {{ registry = "https://index.example/simple" }}
resolution-markers = ["sys_platform == 'darwin'"]
wheels = [{{ url = "https://x/torch-2.9.1-cp312-none-macosx_11_0_arm64.whl", hash = "sha256:aa" }}]
[[package]]
name = "torch"
version = "2.9.1+cu128"
source = {{ registry = "{CU128}" }}
resolution-markers = ["sys_platform != 'darwin'"]
[[package]]
name = "flash-attn"
version = "2.8.3"
source = {{ git = "https://g" }}
""",
    )
    assert [(w.name, w.spec, w.where.rpartition(":")[2]) for w in rows] == [
        ("torch", "==2.9.1", "7"),
        ("torch", "==2.9.1+cu128", "13"),
        ("flash-attn", "==2.8.3", "18"),
    ]
    assert rows[1].index == CU128 and rows[1].markers == ("sys_platform != 'darwin'",) and rows[2].vague


def test_poetry_lock() -> None:
    (torch,) = locked(
        "poetry.lock",
        f"""[[package]]
name = "torch"
version = "2.9.1+cu128"
files = [{{ file = "torch-2.9.1+cu128-cp312-cp312-linux_x86_64.whl", hash = "sha256:aa" }}]
[package.source]
type = "legacy"
url = "{CU128}"
reference = "pt"
[metadata]
python-versions = "^3.12"
""",
    )
    assert (torch.spec, torch.index, torch.hashed, torch.where) == ("==2.9.1+cu128", CU128, True, "poetry.lock:1")


@pytest.mark.parametrize("version", ["", "not a version", "1.*"])
def test_a_version_that_is_none_says_nothing(version: str) -> None:
    (torch,) = locked("uv.lock", f'version = 1\n[[package]]\nname = "torch"\nversion = "{version}"\n')
    assert torch.spec == ""


def test_compose() -> None:
    Path("app").mkdir()
    Path("app/Dockerfile").write_text("ARG T=1\nFROM python:${T} AS a\nRUN pip install torch\nFROM a AS b\n")
    document = read(
        "compose.yaml",
        """services:
  model:
    image: ${IMAGE:-nvidia/cuda:12.8.0-base-ubuntu22.04}
    runtime: nvidia
    environment: {NVIDIA_VISIBLE_DEVICES: all}
  app:
    build: {context: app, target: a, args: {T: "3.12"}}
    environment: ["A=1"]
    deploy: {resources: {reservations: {devices: [{driver: nvidia, capabilities: [gpu]}]}}}
  amd:
    image: rocm/pytorch:latest
    devices: [/dev/kfd, "/dev/dri:/dev/dri"]
    group_add: [video]
""",
    )
    model, app, amd = document.scenes
    assert model.base is not None and (model.base.repository, model.base.where) == ("nvidia/cuda", "compose.yaml:3")
    assert model.service is not None and model.service.runtime == "nvidia"
    assert model.service.variables[0].where == "compose.yaml:5"
    assert app.base is not None and app.base.ref == "python:3.12" and app.service is not None and app.service.gpus
    assert (app.file, document.also) == ("app/Dockerfile", ("app/Dockerfile",))
    assert amd.service is not None and amd.service.devices[0] == "/dev/kfd" and amd.service.groups == ("video",)
