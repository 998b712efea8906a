"""What `doctor` answers to an error text alone: ways out that the text allows, the likeliest first."""

from __future__ import annotations

import pytest

from accel_env.judge.doctor import judge
from accel_env.judge.findings import fix_mapping, fix_text
from accel_env.judge.signatures import Table, load, read
from accel_env.judge.types import Environment, Finding, Installed
from accel_env.matrix.load import Matrix, open_matrix
from accel_env.model import Device, Host


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return open_matrix()


@pytest.fixture(scope="module")
def table(matrix: Matrix) -> Table:
    return load(matrix)


def answer(text: str, matrix: Matrix, table: Table) -> Finding:
    found = judge(Environment(texts=(text,)), read((text,), matrix, table), matrix)
    assert found, text
    return found[0]


@pytest.mark.parametrize("text", ["HIP error: invalid device function", "hipErrorNoBinaryForGpu: Unable to find code object"])
def test_a_text_of_hip_gets_builds_for_rocm(text: str, matrix: Matrix, table: Table) -> None:
    builds = [fix.build for fix in answer(text, matrix, table).fixes if fix.kind == "package" and fix.build]
    assert builds and all(build.startswith("rocm") for build in builds)


def test_a_torch_without_xpu_gets_builds_for_xpu(matrix: Matrix, table: Table) -> None:
    fixes = answer("AssertionError: Torch not compiled with XPU enabled", matrix, table).fixes
    assert {fix.build for fix in fixes if fix.kind == "package"} == {"xpu"}


def test_a_torch_without_cuda_gets_builds_that_still_come_out_first(matrix: Matrix, table: Table) -> None:
    fixes = answer("AssertionError: Torch not compiled with CUDA enabled", matrix, table).fixes
    assert fixes[0].build.startswith("cu") and fixes[0].build != "cu118"


def test_pip_is_told_to_replace_another_build_of_the_same_release(matrix: Matrix) -> None:
    host = Host(devices=(Device("nvidia", "Tesla T4", "sm_75", driver="535.183.01"),), python="3.11")
    rows = (Installed("torch", "2.6.0", "cpu"), Installed("flash-attn", "2.7.4.post1"))
    found = judge(Environment(host=host, installed=rows), (), matrix)
    same = [fix for fix in found[0].fixes if fix.spec == "==2.6.0"]
    assert same and all("--force-reinstall" in fix.command for fix in same)
    assert any("--force-reinstall" not in fix.command for fix in found[0].fixes if fix.command.startswith("pip"))
    # what stands beside it cannot use the device either, with any torch
    assert ("gpu-arch-unsupported-by-package", "flash-attn") in {(f.rule, f.component) for f in found}


def first(text: str, matrix: Matrix, table: Table) -> str:
    return fix_text(fix_mapping(answer(text, matrix, table).fixes[0]))


def test_the_likeliest_way_out_stands_first(matrix: Matrix, table: Table) -> None:
    assert "scaled_dot_product_attention" in first("FlashAttention only supports Ampere GPUs or newer.", matrix, table)
    assert "of the installed torch" in first("RuntimeError: operator torchvision::nms does not exist", matrix, table)
    assert "asks for it" in first("ImportError: libcudart.so.11.0: cannot open shared object file", matrix, table)
    assert "--gpus all" in first("OSError: libcuda.so: cannot open shared object file", matrix, table)


def test_a_library_of_another_cuda_gets_builds_that_exist(matrix: Matrix, table: Table) -> None:
    fixes = answer("ImportError: libcudart.so.11.0: cannot open shared object file", matrix, table).fixes
    assert next(fix.build for fix in fixes if fix.build) == "cu118"


def test_a_variable_is_said_with_its_condition(matrix: Matrix, table: Table) -> None:
    fixes = answer("OSError: libcuda.so: cannot open shared object file", matrix, table).fixes
    assert any(fix_text(fix_mapping(fix)).endswith("/usr/lib/wsl/lib: under WSL2 alone") for fix in fixes)


def test_a_missing_compiler_names_the_option_that_brings_it(matrix: Matrix, table: Table) -> None:
    fixes = answer("RuntimeError: Failed to find C compiler.", matrix, table).fixes
    assert any("render --compiler" in fix.do for fix in fixes)


def test_a_code_of_sycl_is_known_and_its_cause_is_not(matrix: Matrix, table: Table) -> None:
    found = answer("RuntimeError: Native API failed. Native API returns: -30 (PI_ERROR_INVALID_VALUE)", matrix, table)
    assert "not its cause" in found.message and found.because[0].doubt
