"""What `check` says of packages that are asked for and that nobody has built for the device: the errors of `resolve -r`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from accel_env.hostfile import read
from accel_env.judge.files.check import judge_files, know
from accel_env.judge.files.load import load
from accel_env.judge.files.scope import Knowledge
from accel_env.judge.types import Finding
from accel_env.matrix.load import open_matrix
from accel_env.model import Device, Host


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return know(open_matrix())


def errors(folder: Path, knowledge: Knowledge, host: Host, *lines: str) -> list[Finding]:
    file = folder / "requirements.txt"
    file.write_text("".join(f"{line}\n" for line in lines))
    found = judge_files([load(str(file), host.arch)], host, knowledge)
    return [finding for finding in found if finding.severity == "error"]


T4 = Host(devices=(Device("nvidia", "Tesla T4", "sm_75", driver="535.183.01"),))
ARC = Host(devices=(Device("intel", "Arc A770", "dg2-g10"),))


def test_a_source_build_without_code_for_the_device_is_an_error(tmp_path: Path, knowledge: Knowledge) -> None:
    found = errors(tmp_path, knowledge, T4, "flash-attn==2.8.3", "torch==2.10.0")
    assert [(f.rule, f.component) for f in found] == [("gpu-arch-unsupported-by-package", "flash-attn")]
    assert any("scaled_dot_product_attention" in fix.do for fix in found[0].fixes)


def test_doubtful_wheels_do_not_hide_what_the_maker_says(tmp_path: Path, knowledge: Knowledge) -> None:
    url = "https://github.com/mjun0812/flash-attention-prebuild-wheels/releases/download/v0.7.0/"
    wheel = f"flash-attn @ {url}flash_attn-2.8.3+cu126torch2.10-cp312-cp312-linux_x86_64.whl"
    found = errors(tmp_path, knowledge, T4, wheel, "torch==2.10.0")
    assert "gpu-arch-unsupported-by-package" in {f.rule for f in found if f.component == "flash-attn"}


def test_an_open_version_is_an_error_where_no_release_serves_the_device(tmp_path: Path, knowledge: Knowledge) -> None:
    assert {f.component for f in errors(tmp_path, knowledge, T4, "flash-attn>=2.7.3", "torch==2.8.0")} == {"flash-attn"}


def test_a_package_of_other_vendors_is_an_error(tmp_path: Path, knowledge: Knowledge) -> None:
    extra = "--extra-index-url https://download.pytorch.org/whl/xpu"
    found = errors(tmp_path, knowledge, ARC, extra, "torch==2.8.0+xpu", "flash-attn==2.8.3")
    assert [(f.rule, f.component) for f in found] == [("backend-unsupported-by-package", "flash-attn")]
    assert "cuda and rocm" in found[0].message


def test_what_serves_the_device_is_none(tmp_path: Path, knowledge: Knowledge) -> None:
    assert not errors(tmp_path, knowledge, read("h100-r580", knowledge.matrix), "flash-attn==2.8.3", "torch==2.8.0")
    assert not errors(tmp_path, knowledge, T4, "bitsandbytes", "numpy", "torch==2.8.0")


def test_a_companion_of_another_release_gets_that_of_the_pinned_torch(tmp_path: Path, knowledge: Knowledge) -> None:
    found = errors(tmp_path, knowledge, T4, "torch==2.4.0", "torchvision==0.18.1")
    assert [f.rule for f in found] == ["package-pair-mismatch"]
    assert (found[0].fixes[0].name, found[0].fixes[0].spec) == ("torchvision", "==0.19.0")


def found_in(folder: Path, knowledge: Knowledge, host: Host, *lines: str) -> list[Finding]:
    file = folder / "requirements.txt"
    file.write_text("".join(f"{line}\n" for line in lines))
    return list(judge_files([load(str(file), host.arch)], host, knowledge))


def test_an_index_that_surely_lacks_the_pin_is_an_error(tmp_path: Path, knowledge: Knowledge) -> None:
    index = "--index-url https://download.pytorch.org/whl/"
    assert [f.rule for f in errors(tmp_path, knowledge, T4, f"{index}cu121", "torch==2.6.0")] == ["pinned-version-unavailable"]
    assert not errors(tmp_path, knowledge, T4, f"{index}cu124", "torch==2.6.0")
    # nobody listed what lies there
    assert not errors(tmp_path, knowledge, T4, f"{index}cu155", "torch==2.6.0")


def test_an_index_is_not_offered_for_a_build_that_nobody_published(tmp_path: Path, knowledge: Knowledge) -> None:
    found = [f for f in found_in(tmp_path, knowledge, T4, "torch==2.15.0+cu126") if f.rule == "wrong-index"]
    assert "nobody has published" in found[0].message and "cu126" not in {fix.name for fix in found[0].fixes}
    found = [f for f in found_in(tmp_path, knowledge, T4, "torch==2.8.0+cu126") if f.rule == "wrong-index"]
    assert [fix.name for fix in found[0].fixes] == ["cu126"]


def test_a_package_for_newer_pythons_asks_for_the_first_of_them(tmp_path: Path, knowledge: Knowledge) -> None:
    host = replace(T4, python="3.9")
    found = [f for f in errors(tmp_path, knowledge, host, "torch==2.10.0") if f.rule == "python-no-wheel"]
    assert [fix.spec for fix in found[0].fixes if fix.kind == "python"] == [">=3.10"]


def test_an_index_behind_a_requirement_counts_for_nothing(tmp_path: Path, knowledge: Knowledge) -> None:
    found = found_in(tmp_path, knowledge, T4, "numpy", "torch==2.6.0 --index-url https://download.pytorch.org/whl/cu121")
    assert [(f.rule, f.where.rpartition(":")[2]) for f in found if f.component == "pip"] == [("wrong-index", "2")]
    assert "torch" in {f.component for f in found}  # the requirement itself is judged
