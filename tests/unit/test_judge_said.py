"""What findings say: inferred labels, drivers that dropped a device, texts that do not tell the cause, full devices."""

from __future__ import annotations

import pytest

from accel_env.judge.doctor import judge
from accel_env.judge.report import read_report
from accel_env.judge.signatures import Table, load, read
from accel_env.judge.types import Finding
from accel_env.matrix.load import Matrix, open_matrix


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return open_matrix()


@pytest.fixture(scope="module")
def table(matrix: Matrix) -> Table:
    return load(matrix)


def found(text: str, matrix: Matrix, table: Table) -> tuple[Finding, ...]:
    environment = read_report(text, matrix)
    return judge(environment, read(environment.texts, matrix, table), matrix)


def test_a_label_that_nobody_said_is_called_inferred(matrix: Matrix, table: Table) -> None:
    rows = found("environment: {packages: {torch: 2.6.0+cu118, torchvision: 0.21.0}}", matrix, table)
    said = [row.message for row in rows if row.component == "torchvision"]
    assert said and "0.21.0 (inferred: build cu124)" in said[0] and "0.21.0+cu124" not in said[0]
    rows = found("environment: {packages: {torch: 2.6.0+cu118, torchvision: 0.21.0+cu124}}", matrix, table)
    assert any("torchvision 0.21.0+cu124 needs" in row.message for row in rows)


def test_a_driver_that_dropped_the_device(matrix: Matrix, table: Table) -> None:
    report = "environment: {{driver: {}, gpus: [{{name: Tesla V100-SXM2-16GB}}], packages: {{torch: 2.6.0+cu126}}}}"
    rows = found(report.format("595.45.04"), matrix, table)
    assert [(row.rule, row.component, row.severity) for row in rows] == [
        ("gpu-arch-unsupported-by-package", "nvidia-driver", "error")
    ]
    assert [fix.kind for fix in rows[0].fixes] == ["driver"]
    assert not found(report.format("580.95.05"), matrix, table)


def test_a_text_that_does_not_tell_the_cause_says_so(matrix: Matrix, table: Table) -> None:
    rows = found("error: 'RuntimeError: No HIP GPUs are available'", matrix, table)
    assert "the text alone does not tell why" in rows[0].message and len({fix.kind for fix in rows[0].fixes}) > 2


def test_a_full_device_is_no_complaint_about_the_environment(matrix: Matrix, table: Table) -> None:
    environment = "environment: {packages: {torch: 2.6.0+cu118, torchvision: 0.21.0}}"
    rows = found(f"{environment}\nerror: 'CUDA out of memory. Tried to allocate 2 GiB.'", matrix, table)
    assert {row.severity for row in rows} == {"warning", "note"}


def test_numpy_2_beside_windows_torch_2_3_is_a_warning(matrix: Matrix, table: Table) -> None:
    report = "environment: {{os: {}, python: '3.11', packages: {{torch: 2.3.0, numpy: 2.0.1}}}}"
    rows = found(report.format("Windows 11"), matrix, table)
    assert [(row.rule, row.severity) for row in rows] == [("numpy-abi", "warning")]
    assert not found(report.format("Ubuntu 22.04"), matrix, table)


def test_a_release_of_torch_apart_is_a_pair_and_no_missing_library(matrix: Matrix, table: Table) -> None:
    rows = found("environment: {packages: {torch: 2.6.0+cu126, torchao: 0.14.0}}", matrix, table)
    assert [(row.rule, row.component) for row in rows] == [("package-pair-mismatch", "torchao")]
