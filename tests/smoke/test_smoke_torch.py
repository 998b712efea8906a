"""The checks on a real torch: all pass on the CPU, and each fails when what it checks is spoiled.

No accelerator is needed: level `device` runs on the CPU device. What it says of a GPU is not tested here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from accel_env.smoke.checks import program

# One worker runs them all, so that torch is installed once.
pytestmark = [pytest.mark.network, pytest.mark.xdist_group("torch")]
# The smallest torch that a machine is likely to have at hand; elsewhere this is the default build of PyPI.
TORCH = "torch==2.13.0"

# Check -> what spoils it, as Python run with torch, bitsandbytes and the checks loaded.
FUNCTIONAL, LOW = "bitsandbytes.functional", "torch.nn.functional"
SPOILED = {
    "torch maths": "patch(T, '__matmul__', lambda a, b: torch.matmul(a, b) + 1e-3)",
    "numpy bridge": "patch(torch, 'from_numpy', lambda a: torch.zeros(a.shape))",
    "bitsandbytes on the CPU": f"patch({FUNCTIONAL}, 'dequantize_4bit', lambda packed, state: torch.zeros(state.shape))",
    "tokenizers": "patch(tokenizers.decoders, 'ByteLevel', tokenizers.decoders.Fuse)",
    "transformers": f"patch({LOW}, 'silu', lambda x, inplace=False: x * float('nan'))",
    "tensor": "patch(torch, 'arange', lambda n, dtype=None: torch.tensor(list(range(n - 1)) + [7], dtype=dtype))",
    "matmul in 32 bits": "patch(T, '__matmul__', lambda a, b: torch.matmul(a, b) * 1.001 ** (a.dtype == torch.float32))",
    "matmul in 16 bits": "patch(T, '__matmul__', lambda a, b: torch.matmul(a, b) * 1.05 ** (a.dtype != torch.float64))",
    "backward": f"patch({LOW}, 'gelu', lambda x, approximate='none': x if x.dtype == torch.float32 else torch.relu(x))",
    "torch.compile": "patch(torch, 'compile', lambda f: lambda x: f(x) + 1)",
    "attention": f"patch({LOW}, 'scaled_dot_product_attention', lambda q, k, v, is_causal: (q @ k.mT / 8).softmax(-1) @ v)",
    "bitsandbytes 8 bits": f"patch({FUNCTIONAL}, 'dequantize_blockwise', lambda packed, state: packed.float() * 0)",
    "bitsandbytes 4 bits": f"patch({FUNCTIONAL}, 'dequantize_4bit', lambda packed, state: state.absmax.mean() / torch.zeros(1))",
    "bitsandbytes optimizer": "patch(bitsandbytes.optim, 'Adam8bit', torch.optim.SGD)",
    "memory": "patch(torch, 'full', lambda shape, value, dtype=None, device=None: torch.ones(shape, dtype=dtype))",
    "all-reduce": "patch(checks, 'WORKER', checks.WORKER.replace('dist.all_reduce(x)', 'x += 1'))",
}
RUNNER = """
import json, sys, unittest.mock
sys.path.insert(0, sys.argv[1])
import bitsandbytes, checks, tokenizers, tokenizers.decoders, torch, transformers
T = torch.Tensor
patch = lambda where, name, to: unittest.mock.patch.object(where, name, to)
found = {}
for name, text in json.loads(sys.argv[2]).items():
    (check,) = [check for check in checks.fixed_checks() if check.name == name]
    with eval(text):
        found[name] = checks.run_one(check, checks.Context({}, "cpu")).row()
print(json.dumps(found))
"""


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with a CPU torch and what is checked beside it, and the program in it."""
    folder = tmp_path_factory.mktemp("smoke")
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    pip = [str(folder / "venv" / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, TORCH, "numpy", "transformers"], check=True)
    # Without what it requires: a torch that is not the one above.
    subprocess.run([*pip, "--no-deps", "bitsandbytes"], check=True)
    (folder / "checks.py").write_bytes(program())
    return folder


def run(environment: Path, *words: str) -> dict[str, Any]:
    python = environment / "venv" / "bin" / "python"
    done = subprocess.run(
        [str(python), str(environment / "checks.py"), *words], capture_output=True, text=True, check=False,
        env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(environment / "cache")},
    )  # fmt: skip
    report: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == (7 if report["summary"]["fail"] else 0)
    return report


def test_everything_passes_on_the_cpu(environment: Path) -> None:
    report = run(environment, "--levels", "static,import,device", "--device", "cpu", "--patience", "3")
    verdicts = {f"{check['level']} {check['name']}": (check["verdict"], check["detail"]) for check in report["checks"]}
    assert not {name: detail for name, (verdict, detail) in verdicts.items() if verdict == "fail"}
    passed = {name for name, (verdict, _) in verdicts.items() if verdict == "pass"}
    # A machine without a C++ compiler leaves torch.compile out, and says so.
    assert passed | {"device torch.compile"} >= {
        "static libraries found", "static requirements met", "static one owner per module",
        "import import torch", "import torch maths",
        "import numpy bridge", "import bitsandbytes on the CPU", "import tokenizers", "import transformers", "device tensor",
        "device matmul in 32 bits", "device matmul in 16 bits", "device backward", "device torch.compile", "device attention",
        "device bitsandbytes 8 bits", "device bitsandbytes 4 bits", "device memory", "device all-reduce",
    }  # fmt: skip


def test_without_a_device_the_level_device_fails(environment: Path) -> None:
    report = run(environment, "--levels", "device", "--only", "driver", "--device", "cuda")
    (check,) = report["checks"]
    if os.path.exists("/dev/nvidiactl"):
        assert check["verdict"] == "pass"
    else:
        assert (check["verdict"], "sees no device" in check["detail"]) == ("fail", True)


def test_every_spoiled_thing_fails(environment: Path) -> None:
    python = environment / "venv" / "bin" / "python"
    done = subprocess.run(
        [str(python), "-c", RUNNER, str(environment), json.dumps(SPOILED)], capture_output=True, text=True, check=False,
        env={**os.environ, "CXX": "true"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found.keys() == SPOILED.keys()
    assert not {name: row["detail"] for name, row in found.items() if row["verdict"] != "fail"}
    # Each for its own reason: a slip in the spoiling would fail, too.
    errors = ("AttributeError", "NameError", "TypeError", "ModuleNotFoundError", "ImportError")
    assert not {name: row["detail"] for name, row in found.items() if row["detail"].startswith(errors)}
