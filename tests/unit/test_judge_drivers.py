"""What a device asks of the driver, whatever the build: doctor says what resolve says."""

from __future__ import annotations

import pytest

from accel_env.judge.doctor import judge
from accel_env.judge.types import Environment, Finding, Installed
from accel_env.matrix.load import Matrix, open_matrix
from accel_env.model import Device, Host

RULE = "driver-too-old-for-cuda-runtime"


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return open_matrix()


def judged(matrix: Matrix, driver: str, build: str, version: str) -> tuple[Finding, ...]:
    device = Device("nvidia", "GeForce RTX 5090", "sm_120", driver, kind="geforce")
    return judge(Environment(host=Host(devices=(device,)), installed=(Installed("torch", version, build),)), (), matrix)


@pytest.mark.parametrize("driver", ["470.82.01", "525.60.13"])
def test_a_driver_of_before_the_device_is_too_old_and_none_such_is_offered(matrix: Matrix, driver: str) -> None:
    found = judged(matrix, driver, "cu121", "2.3.0")
    mine = [f for f in found if f.rule == RULE and f.severity == "error"]
    assert mine and "does not know" in " ".join(b.text for f in mine for b in f.because)
    specs = [fix.spec for f in found for fix in f.fixes if fix.kind == "driver"]
    assert specs and all(spec.startswith(("==6", "==5", ">=570")) and spec[2:5] >= "570" for spec in specs)
    assert not any(fix.verified for f in found for fix in f.fixes if fix.kind == "package")


def test_the_devices_first_driver_is_verified_for_a_build_that_serves_it(matrix: Matrix) -> None:
    found = judged(matrix, "525.60.13", "cu128", "2.7.1")
    fixes = [fix for f in found for fix in f.fixes if fix.kind == "driver"]
    assert any(fix.spec == ">=570" and fix.verified for fix in fixes), fixes


def test_a_driver_that_knows_the_device_is_fine(matrix: Matrix) -> None:
    assert not [f for f in judged(matrix, "570.86.10", "cu128", "2.7.1") if f.severity == "error"]
