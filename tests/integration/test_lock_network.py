"""Locks over the real PyPI: whole, hashed, and the same bytes twice. Run with --network; no wheel is downloaded."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.integration.samples import Tables, candidate, solution

from accel_env.lock.close import LockOptions, close
from accel_env.lock.rules import Rules, load_rules
from accel_env.lock.uv import UvCloser
from accel_env.lock.write import lock_files
from accel_env.matrix.read import Faults
from accel_env.matrix.store import parse_yaml
from accel_env.matrix.types import Index
from accel_env.model import Candidate, Host, Lock

pytestmark = pytest.mark.network
CUT_OFF = "2026-11-30T00:00:00Z"
TORCH_CPU = "torch-2.14.1+cpu-cp312-cp312-manylinux_2_28_x86_64.whl"
CPU_REQUIRES = (
    "filelock",
    "typing-extensions>=4.10.0",
    "setuptools>=77.0.3",
    "sympy>=1.13.3",
    "networkx>=2.5.1",
    "jinja2",
    "fsspec>=0.8.5",
)


class ClosureFile:
    """The repository's closure.yaml alone."""

    def document(self, name: str) -> dict[str, object]:
        """See Matrix."""
        path = Path(__file__).parents[2] / "matrix" / f"{name}.yaml"
        document = parse_yaml(path.read_bytes(), path.name, Faults())
        return {key: value for key, value in document.items() if key not in ("schema", "facts")}


def rules() -> Rules:
    return load_rules(ClosureFile())


def tables() -> Tables:
    made = Tables(
        indexes_={"pytorch": Index("pytorch", "https://download.pytorch.org/whl", "simple")},
        modules_={name: name.partition("-")[0] for name in ("torch", "triton", "triton-rocm", "triton-xpu", "bitsandbytes")},
        builds={"torch": (), "triton": (), "bitsandbytes": (), "numpy": (candidate("numpy", "2.5.5"),)},
    )
    made.know("pytorch:cpu", TORCH_CPU, size=1)
    return made


def cuda(machine: str) -> tuple[Candidate, ...]:
    platform = f"linux_{machine}"
    return (
        candidate("torch", "2.14.1", "cu130", stack="cuda-13.0", platform=platform),
        candidate("triton", "3.8.0", "any", platform=platform),
        candidate("bitsandbytes", "0.50.2", "any", platform=platform),
    )


@pytest.mark.parametrize("name", ["cuda-x86_64", "cuda-aarch64", "cpu"])
def test_a_complete_hashed_closure_twice_the_same(name: str) -> None:
    stack, machine = ("cpu", "x86_64") if name == "cpu" else ("cuda-13.0", name.removeprefix("cuda-"))
    cpu = (
        candidate("torch", "2.14.1", "cpu", "pytorch:cpu", stack="cpu", requires=CPU_REQUIRES),
        candidate("bitsandbytes", "0.50.2"),
    )
    picks = cpu if name == "cpu" else cuda(machine)
    found = solution(*picks, outside=("transformers", "peft"), stack=stack, host=Host(arch=machine))
    locks = [close(found, tables(), rules(), UvCloser(), LockOptions(CUT_OFF)) for _ in range(2)]
    first, second = locks
    assert isinstance(first, Lock) and isinstance(second, Lock), locks
    assert lock_files(first) == lock_files(second)
    names = {file.name for file in first.files}
    assert {"torch", "bitsandbytes", "transformers", "peft", "numpy", "sympy"} <= names
    assert all(len(file.sha256) == 64 and file.filename.endswith(".whl") and file.url for file in first.files)
    others = {"x86_64": "aarch64", "aarch64": "x86_64"}[machine]
    assert not any(others in file.filename for file in first.files)
    assert ("nvidia-cudnn-cu13" in names) == (stack != "cpu")
    torch = next(file for file in first.files if file.name == "torch")
    assert torch.filename == (TORCH_CPU if stack == "cpu" else f"torch-2.14.1-cp312-cp312-manylinux_2_28_{machine}.whl")


@pytest.mark.parametrize(
    ("host", "stack", "filename"),
    [
        ("rtx5090-r580", "cuda-13.0", "torch-2.14.1-cp312-cp312-manylinux_2_28_x86_64.whl"),
        ("gb10", "cuda-13.0", "torch-2.14.1-cp312-cp312-manylinux_2_28_aarch64.whl"),
        ("cpu-x86_64", "cpu", TORCH_CPU),
    ],
)
def test_the_verb_with_the_real_matrix(tmp_path: Path, host: str, stack: str, filename: str) -> None:
    from accel_env import app

    request = app.Request(asks=("torch==2.14.1", "bitsandbytes", "transformers"), host=host, python="3.12")
    for name in ("one", "two"):
        answer = app.lock(request, str(tmp_path / name))
        assert stack.startswith(answer["plan"]["stack"]["name"])
    assert f"# stack {stack}, Python 3.12, linux_" in (tmp_path / "one" / "requirements.lock").read_text()
    folders = [{path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("one", "two")]
    assert folders[0] == folders[1] and set(folders[0]) == {"requirements.lock", "pylock.toml", "plan.json"}
    assert f'name = "{filename}"' in folders[0]["pylock.toml"].decode()
    lines = [line for line in folders[0]["requirements.lock"].decode().splitlines() if not line.startswith("#")]
    assert len(lines) > 20 and all(line.startswith("    --hash=sha256:") for line in lines[1::2])
