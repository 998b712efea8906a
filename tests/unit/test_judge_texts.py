"""What `doctor` answers to an error text alone: ways out that the text allows, the likeliest first."""

from __future__ import annotations

import pytest

from accel_env.judge.doctor import judge
from accel_env.judge.signatures import Table, load, read
from accel_env.judge.types import Environment, Finding
from accel_env.matrix.load import Matrix, open_matrix


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
