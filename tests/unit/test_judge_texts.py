"""What `doctor` answers to an error text alone: ways out that the text allows, the likeliest first."""

from __future__ import annotations

import pytest

from accel_env.judge.doctor import judge
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
