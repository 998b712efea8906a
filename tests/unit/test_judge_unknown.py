"""Ways out where little is known: nothing is verified without a torch, nothing is installed that is no package."""

from __future__ import annotations

import pytest

from accel_env.judge.doctor import judge
from accel_env.judge.findings import fix_mapping, fix_text
from accel_env.judge.signatures import read
from accel_env.judge.types import Environment, Finding
from accel_env.matrix.load import Matrix, open_matrix


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return open_matrix()


def judged(matrix: Matrix, text: str) -> tuple[Finding, ...]:
    return judge(Environment(texts=(text,)), read((text,), matrix), matrix)


def test_builds_for_the_blamed_torch_are_no_way_out_and_none_is_verified(matrix: Matrix) -> None:
    library = "flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so"
    found = judged(matrix, f"ImportError: /x/{library}: undefined symbol: _ZN3c104cuda9SetDeviceEi")
    fixes = [fix for f in found for fix in f.fixes]
    assert found[0].component == "flash-attn" and fixes
    assert not any(fix.verified for fix in fixes)
    assert not any(word in f"{fix.build} {fix.do}" for fix in fixes for word in ("torch2.0", "torch2.1", "torch2.2"))


def test_a_library_of_the_system_is_no_package(matrix: Matrix) -> None:
    found = judged(matrix, "/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.32' not found")
    assert found
    assert not [fix for f in found for fix in f.fixes if fix.kind in ("package", "build") and fix.name == "glibc"]


def test_an_own_build_of_a_library_says_what_to_do(matrix: Matrix) -> None:
    text = "rocBLAS error: Cannot read /opt/rocm/lib/rocblas/library/TensileLibrary.dat: Illegal seek for GPU arch : gfx1031"
    fixes = [fix for f in judged(matrix, text) for fix in f.fixes if fix.name == "rocblas"]
    assert fixes and all(fix.kind == "build" for fix in fixes)
    assert all("from source" in fix_text(fix_mapping(fix)) for fix in fixes)
