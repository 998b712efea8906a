"""Reading an interpreter's packages: a made-up site-packages, nothing of which is imported."""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from accel_env.errors import UsageError
from accel_env.judge.imports import failures
from accel_env.judge.interpreter import ask, read_interpreter, this
from accel_env.judge.types import Environment
from accel_env.matrix.load import Matrix, open_matrix
from accel_env.system.elf import needed
from accel_env.system.real import RealSystem
from accel_env.system.types import Completed


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return open_matrix()


class Machine(RealSystem):
    """This machine, with an interpreter that answers what a test wants."""

    def __init__(self, said: object = None, **answers: Completed) -> None:
        self._said, self._answers = said, answers

    def env(self, name: str) -> str | None:
        return {"VIRTUAL_ENV": "/opt/env", "LD_LIBRARY_PATH": "/opt/lib"}.get(name)

    def glob(self, pattern: str) -> tuple[str, ...]:
        return () if pattern.startswith(("/usr", "/opt", "/lib")) else super().glob(pattern)

    def run(self, argv: Sequence[str], timeout: float = 1.0) -> Completed:
        words = tuple(argv)
        for part, done in self._answers.items():
            if part in words[-1]:
                return done
        return Completed(words, 0, f"hello from sitecustomize\naccel-env:{json.dumps(self._said)}\n", "")


def dist(site: Path, name: str, version: str, record: str = "", url: dict[str, object] | None = None) -> None:
    folder = site / f"{name}-{version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "RECORD").write_text(record)
    if url:
        (folder / "direct_url.json").write_text(json.dumps(url))


def read(site: Path, matrix: Matrix, *more: Path) -> Environment:
    path = [str(site), *map(str, more)]
    said = {
        "version": [3, 12, 1],
        "path": path,
        "prefix": str(site.parent),
        "free": False,
        "system": "linux",
        "cpu": "x86_64",
    }
    return read_interpreter("/opt/env/bin/python", Machine(said), matrix)


def packages(found: Environment) -> dict[str, str]:
    return {one.name: f"{one.version}+{one.local}" if one.local else one.version for one in found.installed}


def torch_version(site: Path, **values: str | None) -> None:
    (site / "torch").mkdir(parents=True, exist_ok=True)
    lines = [
        f"{key}: Optional[str] = {value!r}" if key != "__version__" else f"{key} = {value!r}" for key, value in values.items()
    ]
    (site / "torch" / "version.py").write_text("from typing import Optional\n\n" + "\n".join(lines) + "\n")


def test_versions_come_from_dist_info_and_torch_says_its_build(tmp_path: Path, matrix: Matrix) -> None:
    site = tmp_path / "site"
    dist(site, "torch", "2.7.1")
    dist(site, "nvidia_cublas_cu12", "12.8.3.14")
    torch_version(site, __version__="2.7.1+cu126", cuda="12.6", hip=None, xpu=None)
    found = read(site, matrix)
    assert packages(found) == {"torch": "2.7.1+cu126", "nvidia-cublas-cu12": "12.8.3.14"}
    assert found.extra["torch_cuda"] == "12.6" and "torch_hip" not in found.extra
    assert (found.host.python, found.host.os, found.host.arch) == ("3.12", "linux", "x86_64")
    assert found.variables == {"VIRTUAL_ENV": "/opt/env", "LD_LIBRARY_PATH": "/opt/lib"}
    assert not found.disagreements and not found.texts


def test_a_build_without_cuda_is_a_cpu_build(tmp_path: Path, matrix: Matrix) -> None:
    dist(tmp_path, "torch", "2.7.1")
    torch_version(tmp_path, __version__="2.7.1", cuda=None, hip=None, xpu=None)
    assert packages(read(tmp_path, matrix)) == {"torch": "2.7.1+cpu"}


def test_a_wheel_s_label_is_in_its_url(tmp_path: Path, matrix: Matrix) -> None:
    name = "flash_attn-2.8.3%2Bcu12torch2.8cxx11abiTRUE-cp312-cp312-linux_x86_64.whl"
    dist(tmp_path, "flash_attn", "2.8.3", url={"url": f"https://example.org/{name}", "archive_info": {}})
    dist(tmp_path, "vllm", "0.9.0", url={"url": "https://example.org/vllm.git", "vcs_info": {"vcs": "git"}})
    found = read(tmp_path, matrix)
    assert packages(found)["flash-attn"] == "2.8.3+cu12torch2.8cxx11abiTRUE"
    assert next(one for one in found.installed if one.name == "vllm").url == "git+https://example.org/vllm.git"


def test_a_replaced_torch_is_said(tmp_path: Path, matrix: Matrix) -> None:
    dist(tmp_path, "torch", "2.6.0")
    torch_version(tmp_path, __version__="2.7.0a0+gitabcdef1", cuda="12.8", hip=None)
    found = read(tmp_path, matrix)
    torch = next(one for one in found.installed if one.name == "torch")
    assert (torch.version, torch.vendor) == ("2.7.0a0", True)
    assert found.disagreements[0].startswith("torch: 2.7.0a0 (") and "against 2.6.0" in found.disagreements[0]


def test_copies_are_kept(tmp_path: Path, matrix: Matrix) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    dist(one, "torch", "2.6.0")
    dist(one, "torch", "2.5.1")
    dist(other, "triton", "3.2.0")
    dist(one, "triton", "3.2.0")
    found = read(one, matrix, other)
    rows = [(row.version, row.origin) for row in found.installed if row.name == "torch"]
    assert len(rows) == 2 and {version for version, _ in rows} == {"2.6.0", "2.5.1"}
    assert [row.name for row in found.installed].count("triton") == 1, "the same version further down the path shadows nothing"


def test_conda_s_builds_are_its_own(tmp_path: Path, matrix: Matrix) -> None:
    site = tmp_path / "lib"
    dist(site, "torch", "2.3.1")
    meta = tmp_path / "conda-meta"
    meta.mkdir()
    for name in ("pytorch-2.3.1-py3.12_cuda12.1_cudnn8.9.2_0.json", "python-3.12.3-h1234567_0.json", "history"):
        (meta / name).write_text("{}")
    found = read(site, matrix)
    torch = next(one for one in found.installed if one.name == "torch")
    assert (torch.version, torch.local, torch.vendor) == ("2.3.1", "cu121", True)
    assert "python" not in packages(found)


def elf(names: Sequence[str]) -> bytes:
    """A minimal 64-bit shared object that asks for libraries."""
    strings = b"\0" + b"\0".join(name.encode() for name in names) + b"\0"
    offsets = [strings.index(b"\0" + name.encode() + b"\0") + 1 for name in names]
    start, base = 64 + 2 * 56, 0x1000
    tags = [(1, offset) for offset in offsets] + [(5, base + start + 16 * (len(names) + 3)), (10, len(strings)), (0, 0)]
    dynamic = b"".join(struct.pack("<QQ", *tag) for tag in tags)
    size = start + len(dynamic) + len(strings)
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, size, size, 4096)
    segment = struct.pack("<IIQQQQQQ", 2, 6, start, base + start, base + start, len(dynamic), len(dynamic), 8)
    return head + load + segment + dynamic + strings


def test_elf_needs_are_read(tmp_path: Path) -> None:
    file = tmp_path / "x.so"
    file.write_bytes(elf(["libcudart.so.12", "libc10.so", "libc.so.6"]))
    assert needed(str(file)) == ("libcudart.so.12", "libc10.so", "libc.so.6")


@pytest.mark.parametrize("cut", range(0, 330, 11))
def test_a_broken_elf_is_no_error(tmp_path: Path, cut: int) -> None:
    file = tmp_path / "x.so"
    file.write_bytes(elf(["libcudart.so.12"])[:cut])
    assert needed(str(file)) in ((), ("libcudart.so.12",))
    assert needed(str(tmp_path / "missing")) == () and needed(str(tmp_path)) == ()


def test_native_libraries_are_looked_at(tmp_path: Path, matrix: Matrix) -> None:
    dist(
        tmp_path,
        "flash_attn",
        "2.8.3",
        "flash_attn_2_cuda.cpython-312-x86_64-linux-gnu.so,sha256=x,1\nflash_attn/__init__.py,,\n",
    )
    (tmp_path / "flash_attn_2_cuda.cpython-312-x86_64-linux-gnu.so").write_bytes(
        elf(["libcudart.so.12", "libc10.so", "libm.so.6"])
    )
    names = ("cpu", "cuda118", "cuda128")
    dist(tmp_path, "bitsandbytes", "0.46.0", "".join(f"bitsandbytes/libbitsandbytes_{n}.so,,\n" for n in names))
    found = read(tmp_path, matrix)
    assert found.extra["needs:flash-attn"] == "libc10.so, libcudart.so.12"
    assert found.extra["libraries:bitsandbytes"] == "cpu, cuda118, cuda128"


def test_a_library_that_is_nowhere_is_told_as_the_loader_would(tmp_path: Path, matrix: Matrix) -> None:
    file = "flash_attn_2_cuda.cpython-312-x86_64-linux-gnu.so"
    dist(tmp_path, "flash_attn", "2.8.3", f"{file},,\n")
    (tmp_path / file).write_bytes(elf(["libcudart.so.77", "libc10.so"]))
    assert read(tmp_path, matrix).texts == (f"{file}: libcudart.so.77 => not found",)
    brought = tmp_path / "nvidia" / "cuda_runtime" / "lib"
    brought.mkdir(parents=True)
    (brought / "libcudart.so.77").write_text("")
    assert not read(tmp_path, matrix).texts


def test_a_missing_runtime_is_a_finding(tmp_path: Path, matrix: Matrix) -> None:
    from accel_env.judge.doctor import judge
    from accel_env.judge.signatures import read as read_signatures

    file = "flash_attn_2_cuda.cpython-312-x86_64-linux-gnu.so"
    dist(tmp_path, "flash_attn", "2.8.3", f"{file},,\n")
    dist(tmp_path, "torch", "2.9.1")
    torch_version(tmp_path, __version__="2.9.1+cu130", cuda="13.0", hip=None, xpu=None)
    (tmp_path / file).write_bytes(elf(["libcudart.so.12", "libc10.so"]))
    found = read(tmp_path, matrix)
    errors = [one for one in judge(found, read_signatures(found.texts, matrix), matrix) if one.severity == "error"]
    assert ("extension-cuda-major-mismatch", "flash-attn") in {(one.rule, one.component) for one in errors}


@pytest.mark.parametrize("broken", ["", "accel-env:", "accel-env:[]", "accel-env:{", 'accel-env:{"version": [3]}', "Python 3"])
def test_what_is_no_python_is_said(broken: str) -> None:
    with pytest.raises(UsageError, match="cannot be asked"):
        ask("/opt/x", Machine(sys=Completed(("x",), 0, broken, "")))


def test_a_missing_program_is_said() -> None:
    with pytest.raises(UsageError, match="there is no such program"):
        ask("/nonexistent/python", RealSystem())


def test_this_interpreter_and_its_own_word_agree() -> None:
    mine, asked = this(), ask(sys.executable, RealSystem())
    assert (mine.version, mine.system, mine.cpu, mine.prefix) == (asked.version, asked.system, asked.cpu, asked.prefix)
    assert any(path in mine.path for path in asked.path)
    # the folder of a virtual environment stands for its interpreter
    assert ask(sys.prefix, RealSystem()).version == mine.version


def test_this_interpreter_is_read(matrix: Matrix) -> None:
    found = read_interpreter("", RealSystem(), matrix)
    assert {"pytest", "hypothesis"} <= set(packages(found))


def test_imports_fail_in_a_child_and_tell_why() -> None:
    bad = Completed(
        ("x",), 1, "", "Traceback (most recent call last):\nImportError: libcudart.so.12: cannot open shared object file"
    )
    good = Completed(("x",), 0, "", "")
    machine = Machine(torch=good, vllm=bad)
    assert failures("python", ["vllm", "torch"], {"vllm": "vllm"}, machine) == (bad.stderr,)
    broken = Machine(torch=bad, vllm=good)
    assert failures("python", ["vllm", "torch"], {}, broken) == (bad.stderr,), "nothing else is tried without torch"
    slow = Machine(torch=Completed(("x",), None, "", "", "python did not answer within 60 s and was stopped"))
    assert failures("python", ["torch"], {}, slow)[0].endswith("did not answer within 60 s and was stopped")
    warned = Machine(torch=Completed(("x",), 0, "", "UserWarning: CUDA initialization: The NVIDIA driver is too old"))
    assert "too old" in failures("python", ["torch"], {}, warned)[0]
