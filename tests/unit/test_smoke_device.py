"""Level device without a device: what is seen, chosen and said. What is computed is in tests/smoke."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.smoke_site import install

from accel_env.smoke import device, kernels
from accel_env.smoke.verdict import Context, FailedError, SkippedError


class Part:
    """torch.cuda or torch.xpu of a made-up machine."""

    def __init__(self, count: int = 0, says: str = "", **properties: Any) -> None:
        self.count, self.says, self.properties = count, says, SimpleNamespace(**properties)

    def is_available(self) -> bool:
        return self.count > 0

    def init(self) -> None:
        if self.says:
            raise RuntimeError(self.says)

    def device_count(self) -> int:
        return self.count

    def get_device_properties(self, number: int) -> Any:
        return self.properties

    def get_device_name(self, number: int) -> str:
        return "a name"

    def get_device_capability(self) -> tuple[int, int]:
        return self.properties.major, self.properties.minor


def torch_with(monkeypatch: pytest.MonkeyPatch, hip: str | None = None, **parts: Part) -> Any:
    torch = SimpleNamespace(
        __version__="9.9", version=SimpleNamespace(hip=hip), float16="half", bfloat16="brain", **{"cuda": Part(), **parts}
    )
    for module in (device, kernels):
        monkeypatch.setattr(module, "load_torch", lambda: torch, raising=False)
    return torch


def test_no_device_fails_with_the_words_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    torch_with(monkeypatch, cuda=Part(says="Found no NVIDIA driver on your system"))
    with pytest.raises(FailedError, match=r"torch 9\.9 sees no device \(cuda or xpu or hpu\): Found no NVIDIA driver"):
        device.driver(Context({}))
    with pytest.raises(FailedError, match=r"sees no device \(xpu\)"):
        device.driver(Context({}, "xpu"))


def test_the_first_device_is_taken_and_the_cpu_only_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = torch_with(monkeypatch, cuda=Part(), xpu=Part(2))
    assert device.device_of(Context({})) == (torch, "xpu")
    assert device.device_of(Context({}, "cpu")) == (torch, "cpu")
    assert (device.count_of(torch, "xpu"), device.count_of(torch, "cpu")) == (2, 1)


def test_what_the_device_is_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    torch_with(monkeypatch, cuda=Part(2, name="H200", major=9, minor=0, total_memory=150 << 30))
    monkeypatch.setattr(device, "_driver_text", lambda: "580.95.05")
    text, facts = device.driver(Context({"devices": ["sm_90", "sm_90"]}))
    assert text == "2 x H200 (sm_90), driver 580.95.05"
    assert facts["memory_mib"] == 150 << 10
    with pytest.raises(FailedError, match=r"the device is H200 \(sm_90\), the plan is for sm_80"):
        device.driver(Context({"devices": ["sm_80"]}))


def test_amd_and_intel_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    amd = Part(1, name="MI300X", gcnArchName="gfx942:sramecc+:xnack-", major=9, minor=4)
    torch = torch_with(monkeypatch, hip="7.2", cuda=amd)
    assert device.arch_of(torch, "cuda", amd.properties) == "gfx942"
    assert device.half_of(torch, "cuda") == "brain"
    xpu = Part(1, name="B580", driver_version="1.6.2")
    torch_with(monkeypatch, xpu=xpu)
    assert device.driver(Context({"devices": ["bmg-g21"]}, "xpu"))[0] == "1 x B580 (xpu), driver 1.6.2"


@pytest.mark.parametrize(("major", "half"), [(7, "half"), (8, "brain"), (12, "brain")])
def test_old_devices_compute_in_float16(monkeypatch: pytest.MonkeyPatch, major: int, half: str) -> None:
    torch = torch_with(monkeypatch, cuda=Part(1, major=major, minor=0))
    assert device.half_of(torch, "cuda") == half


def test_the_driver_is_read_from_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nvidia, amd = tmp_path / "nvidia", tmp_path / "amd"
    nvidia.write_text("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (root)\nGCC\n")
    amd.write_text("6.16.13\n")
    monkeypatch.setattr(device, "_DRIVERS", (str(tmp_path / "none"), str(nvidia)))
    assert device._driver_text() == "580.95.05"
    monkeypatch.setattr(device, "_DRIVERS", (str(amd),))
    assert device._driver_text() == "6.16.13"
    monkeypatch.setattr(device, "_DRIVERS", ())
    assert device._driver_text() == ""


def test_without_a_compiler_compiling_is_left_out_unless_the_plan_counts_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    torch_with(monkeypatch, cuda=Part(1))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(SkippedError, match="needs a C compiler, and there is none"):
        device.compiled(Context({}))
    with pytest.raises(SkippedError, match=r"needs a C\+\+ compiler"):
        device.compiled(Context({}, "cpu"))
    with pytest.raises(FailedError, match="what the plan picks needs a C compiler"):
        device.compiled(Context({"compiles": True}))


def test_kernels_that_do_not_apply_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch_with(monkeypatch, cuda=Part(1))
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    cpu, cuda = Context({}, "cpu"), Context({})
    with pytest.raises(SkippedError, match="no Triton for cpu"):
        kernels.triton_kernel(cpu)
    with pytest.raises(SkippedError, match="triton is not installed"):
        kernels.triton_kernel(cuda)
    install(tmp_path, "triton-rocm")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SkippedError, match="with a C compiler"):
        kernels.triton_kernel(cuda)
    with pytest.raises(SkippedError, match="flash-attn is not installed"):
        kernels.flash_attention(cuda)
    install(tmp_path, "flash-attn")
    with pytest.raises(SkippedError, match="does not run on cpu"):
        kernels.flash_attention(cpu)
    for check in (kernels.quant_eight, kernels.quant_four, kernels.quant_optimizer):
        with pytest.raises(SkippedError, match="bitsandbytes is not installed"):
            check(cuda)
    with pytest.raises(SkippedError, match="one device alone"):
        kernels.all_reduce(cuda)


def test_a_rank_that_fails_fails_the_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    torch_with(monkeypatch, cuda=Part(3))
    monkeypatch.setattr(kernels, "WORKER", "import sys\nsys.exit('NCCL error' if sys.argv[1] == '1' else 0)")
    with pytest.raises(FailedError, match="1 of 3 ranks failed: rank 1: NCCL error"):
        kernels.all_reduce(Context({}))
    monkeypatch.setattr(kernels, "WORKER", "")
    assert kernels.all_reduce(Context({}))[0] == "3 ranks added up"


def test_the_strings_that_others_run_are_programs() -> None:
    for text in (kernels.KERNEL, kernels.WORKER):
        compile(text, "<text>", "exec")


def test_torch_that_is_missing_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    importlib.invalidate_caches()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    for check in (
        device.driver,
        device.tensor,
        device.matmul_single,
        device.matmul_half,
        device.backward,
        device.memory,
        kernels.sdpa,
    ):
        with pytest.raises(SkippedError, match="torch is not installed"):
            check(Context({}))
