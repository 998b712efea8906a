"""Packages without compiled code that do not go with each other: how that is named, and which way out comes first."""

from __future__ import annotations

import pytest

from accel_env.judge.doctor import judge
from accel_env.judge.types import Environment, Finding, Installed
from accel_env.matrix.load import Matrix, open_matrix
from accel_env.model import Device, Host

H100 = Device("nvidia", "H100", "sm_90", "580.65.06", kind="datacenter")


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return open_matrix()


def judged(matrix: Matrix, **versions: str) -> list[Finding]:
    rows = tuple(Installed(name.replace("_", "-"), *version.partition("+")[::2]) for name, version in versions.items())
    environment = Environment(host=Host(devices=(H100,), python="3.11"), installed=rows)
    return [finding for finding in judge(environment, (), matrix) if finding.severity in ("error", "warning")]


def ways(finding: Finding) -> list[tuple[str, str]]:
    return [(fix.name, fix.spec) for fix in finding.fixes]


def test_a_floor_of_another_package_is_met_by_that_package(matrix: Matrix) -> None:
    (found,) = judged(matrix, torch="2.10.0+cu128", transformers="5.4.0", bitsandbytes="0.45.5")[:1]
    assert (found.rule, found.component) == ("package-pin-conflict", "transformers")
    assert ways(found)[:2] == [("bitsandbytes", ">=0.46.1"), ("transformers", "==4.57.6")]


def test_pure_python_is_never_built_for_another_torch(matrix: Matrix) -> None:
    found = judged(matrix, torch="2.5.1+cu124", transformers="5.24.0")
    assert [(f.rule, f.component) for f in found] == [("package-pin-conflict", "transformers")]


def test_releases_that_do_not_go_together_are_no_duplicates(matrix: Matrix) -> None:
    found = judged(matrix, torch="2.10.0+cu128", transformers="5.4.0", peft="0.17.1")
    assert [(f.rule, f.component) for f in found] == [("package-pair-mismatch", "peft")]
    (peft, version), (other, older) = ways(found[0])[:2]
    assert peft == "peft" and version > "==0.18" and other == "transformers" and older == "==4.57.6"
    assert not judged(matrix, torch="2.10.0+cu128", transformers="5.4.0", peft="0.18.1")


def test_packages_that_own_the_same_files_still_are(matrix: Matrix) -> None:
    found = judged(matrix, torch="2.8.0+cu128", flash_attn="2.8.3", flash_attn_4="4.0.0b36")
    assert ("duplicate-install", "flash-attn-4") in [(f.rule, f.component) for f in found]


def test_what_works_is_not_condemned(matrix: Matrix) -> None:
    assert not judged(
        matrix, torch="2.8.0+cu128", transformers="4.57.1", peft="0.17.1", trl="0.24.0", accelerate="1.11.0",
        bitsandbytes="0.48.2", deepspeed="0.17.6", diffusers="0.35.2", triton="3.4.0",
    )
