"""Needs run on a given environment: what fails, how it is named, what helps, in which order."""

from __future__ import annotations

from dataclasses import replace

import pytest

from accel_env.judge.builds import cuda_of, hip_of, possible
from accel_env.judge.doctor import judge
from accel_env.judge.drivers import Driver, by_cuda
from accel_env.judge.live import Run, choose
from accel_env.judge.order import ordered
from accel_env.judge.scene import Scene
from accel_env.judge.types import Clue, Container, Environment, Finding, Fix, Installed
from accel_env.matrix.load import Matrix, open_matrix
from accel_env.model import Because, Device, Host

REASON = (Because("x", "why", "f", "source", "vendor"),)


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return open_matrix()


def env(*rows: Installed, device: Device | None = None, **host: str) -> Environment:
    return Environment(host=Host(devices=(device,) if device else (), **host), installed=rows)


def rules(environment: Environment, matrix: Matrix, severity: str = "error") -> list[tuple[str, str]]:
    return [(f.rule, f.component) for f in judge(environment, (), matrix) if f.severity == severity]


V100 = Device("nvidia", "Tesla V100", "sm_70", "580.95.05", kind="datacenter")
RTX5090 = Device("nvidia", "GeForce RTX 5090", "sm_120", "580.95.05", kind="geforce")


# --- builds


def test_a_label_names_the_build_and_pypi_is_the_default(matrix: Matrix) -> None:
    labelled = possible(Installed("torch", "2.7.1", "cu128"), matrix, "linux_x86_64")
    assert labelled is not None and {c.build for c in labelled.candidates} == {"cu128"} and labelled.certain
    bare = possible(Installed("torch", "2.7.1"), matrix, "linux_x86_64")
    assert bare is not None and {c.index for c in bare.default} == {"pypi"} and not bare.certain


def test_a_major_alone_is_any_build_of_it(matrix: Matrix) -> None:
    found = possible(Installed("torch", "", "cu13"), matrix, "linux_x86_64")
    assert found is not None and len({c.build for c in found.candidates}) > 1
    assert all(c.build.startswith("cu13") for c in found.candidates)


def test_what_no_index_serves_is_unknown(matrix: Matrix) -> None:
    assert possible(Installed("torch", "2.7.1", vendor=True), matrix, "linux_x86_64") is None
    odd = possible(Installed("torch", "2.7.1", "somewhere"), matrix, "linux_x86_64")
    assert odd is not None and not odd.candidates
    assert possible(Installed("left-pad", "1.0"), matrix, "linux_x86_64") is None


def test_a_nightly_stands_on_the_release_before_it(matrix: Matrix) -> None:
    row = Installed("torch", "2.6.0.dev20241112", "cu121", nightly=True)
    found = possible(row, matrix, "linux_x86_64")
    assert found is not None and not found.exact and {c.build for c in found.candidates} == {"cu121"}


def test_versions_in_labels() -> None:
    assert [cuda_of(label) for label in ("cu126", "cu92", "cu13", "cpu", "cu101")] == ["12.6", "9.2", "13", "", "10.1"]
    assert hip_of("rocm6.3") == "6.3" and hip_of("cu126") == ""


# --- drivers


@pytest.mark.parametrize(
    ("driver", "floor", "fails"),
    [
        (Driver("550.54.14", "", "x"), ">=525.60.13", False),
        (Driver("470.57.02", "", "x"), ">=525.60.13", True),
        (Driver("525", "526", "branch"), ">=525.60.13", False),
        (Driver("", "450", "<450"), ">=450.80.02", True),
        (Driver("580", "", ">=580"), ">=580.65.06", True),
        (Driver(), ">=525", False),
    ],
)
def test_bounds_of_a_driver(driver: Driver, floor: str, fails: bool) -> None:
    assert driver.fails(floor) is fails


def test_the_cuda_version_of_a_driver_bounds_it(matrix: Matrix) -> None:
    from accel_env.judge.book import open_book

    book = open_book(matrix)
    eleven = by_cuda("11.6", Host(), matrix, book)
    assert eleven.fails(">=525.60.13") and not eleven.fails(">=450.80.02")
    twelve = by_cuda("12.8", Host(), matrix, book)
    assert twelve.fails(">=580") and not twelve.fails(">=525.60.13")


# --- host


def test_a_missing_architecture_and_its_ways_out(matrix: Matrix) -> None:
    (first, *_) = judge(env(Installed("torch", "2.7.1", "cu128"), device=V100), (), matrix)
    assert (first.rule, first.component, first.severity) == ("gpu-arch-not-in-wheel", "torch", "error")
    assert any(fix.spec == "==2.7.1" and fix.build == "cu126" and fix.verified for fix in first.fixes)
    assert any(fix.kind == "build" and "7.0" in fix.set.values() for fix in first.fixes)
    assert first.fixes[-1].kind == "hardware"


def test_an_assumed_build_is_an_error_only_where_somebody_complains(matrix: Matrix) -> None:
    quiet = env(Installed("torch", "2.7.0"), device=RTX5090)  # PyPI: cu126, the index has cu128
    assert rules(quiet, matrix) == []
    assert ("gpu-arch-not-in-wheel", "torch") in rules(quiet, matrix, "warning")
    loud = replace(quiet, texts=("it does not work",))
    assert ("gpu-arch-not-in-wheel", "torch") in rules(loud, matrix)


def test_minor_version_drivers_are_fine(matrix: Matrix) -> None:
    old = replace(RTX5090, name="NVIDIA A100", arch="sm_80", driver="525.105.17")
    assert rules(env(Installed("torch", "2.8.0", "cu128"), device=old), matrix) == []
    older = replace(old, driver="470.57.02")
    assert ("driver-too-old-for-cuda-runtime", "nvidia-driver") in rules(
        env(Installed("torch", "2.8.0", "cu128"), device=older), matrix
    )


def test_a_cpu_build_beside_a_device(matrix: Matrix) -> None:
    assert rules(env(Installed("torch", "2.8.0", "cpu"), device=V100), matrix) == [("cpu-only-build", "torch")]
    arm = env(Installed("torch", "2.9.1", "cpu"), device=replace(V100, name="GB200", arch="sm_100"), arch="aarch64")
    assert rules(arm, matrix) == [("platform-no-wheel", "torch")]
    plugin = env(
        Installed("torch", "2.7.1", "cpu"), Installed("torch-npu", "2.7.1"), device=Device("huawei", "910B", "ascend910b")
    )
    assert rules(plugin, matrix) == []


def test_another_vendors_torch(matrix: Matrix) -> None:
    amd = Device("amd", "AMD Radeon RX 7900 XTX", "gfx1100")
    assert rules(env(Installed("torch", "2.8.0", "cu128"), device=amd), matrix) == [("wrong-index", "torch")]


def test_an_override_runs_a_relatives_code_or_is_wrong(matrix: Matrix) -> None:
    amd = Device("amd", "AMD Radeon RX 6700 XT", "gfx1031")
    bare = env(Installed("torch", "2.6.0", "rocm6.2.4"), device=amd)
    assert rules(bare, matrix) == [("gfx-not-in-wheel", "torch")]
    (finding,) = [f for f in judge(bare, (), matrix) if f.severity == "error"]
    assert any(fix.set and fix.verified for fix in finding.fixes)
    right = replace(bare, variables={"HSA_OVERRIDE_GFX_VERSION": "10.3.0"})
    assert rules(right, matrix) == []
    wrong = replace(bare, variables={"HSA_OVERRIDE_GFX_VERSION": "11.0.0"}, texts=("Memory access fault",))
    assert ("wrong-isa-override", "HSA_OVERRIDE_GFX_VERSION") in rules(wrong, matrix)


def test_the_c_library_of_the_library_that_torch_loads(matrix: Matrix) -> None:
    rows = (Installed("torch", "2.7.1", "cu126"), Installed("bitsandbytes", "0.45.3"))
    assert ("glibc-too-old", "bitsandbytes") in rules(env(*rows, libc="2.31", libc_family="glibc"), matrix)
    assert ("glibc-too-old", "bitsandbytes") not in rules(env(*rows, libc="2.35", libc_family="glibc"), matrix)


# --- pairs


@pytest.mark.parametrize(
    ("rows", "rule", "component"),
    [
        ((("torch", "2.4.0", "cu121"), ("torchvision", "0.20.1", "cu124")), "package-pair-mismatch", "torchvision"),
        ((("torch", "2.6.0", "cu124"), ("triton", "3.3.0", "")), "package-pair-mismatch", "triton"),
        ((("torch", "2.2.2", "cu121"), ("numpy", "2.0.0", "")), "numpy-abi", "torch"),
        ((("torch", "2.9.1", "cu130"), ("bitsandbytes", "0.47.0", "")), "native-lib-missing-for-runtime", "bitsandbytes"),
        ((("torch", "2.1.1", "cu121"), ("vllm", "0.5.5", "")), "package-pin-conflict", "vllm"),
        (
            (("torch", "2.7.1", ""), ("intel-extension-for-pytorch", "2.8.0", "")),
            "package-pair-mismatch",
            "intel-extension-for-pytorch",
        ),
    ],
)
def test_what_does_not_go_together(matrix: Matrix, rows: tuple[tuple[str, str, str], ...], rule: str, component: str) -> None:
    found = rules(env(*(Installed(*row) for row in rows), python="3.12"), matrix)
    assert (rule, component) in found


@pytest.mark.parametrize(
    "rows",
    [
        (("torch", "2.7.1", "cu126"), ("flash-attn", "2.7.4.post1", "cu12torch2.6cxx11abiTRUE")),
        (("torch", "2.9.1", "cu128"), ("flash-attn", "2.8.3", "cu12torch2.9cxx11abiFALSE")),
        (("torch", "2.7.0", "cpu"), ("triton", "3.2.0", "")),
        (("torch", "2.8.0", "xpu"), ("vllm", "0.10.0", "")),
        (("torch", "2.13.0", "cu130"), ("bitsandbytes", "0.50.0", "")),
        (("torch", "2.6.0", "cu124"), ("flash-attn", "2.7.4.post1", "")),
    ],
)
def test_what_is_no_fault(matrix: Matrix, rows: tuple[tuple[str, str, str], ...]) -> None:
    assert rules(env(*(Installed(*row) for row in rows), python="3.12"), matrix) == []


def test_two_owners_of_one_module_are_told(matrix: Matrix) -> None:
    rows = env(Installed("torch", "2.9.1", "xpu"), Installed("triton-xpu", "3.5.0"), Installed("triton", "3.5.0"))
    assert ("duplicate-install", "triton") in rules(rows, matrix, "warning")
    twice = env(Installed("torch", "2.9.1", origin="a"), Installed("torch", "2.8.0", origin="b"))
    assert ("duplicate-install", "torch") in rules(twice, matrix, "warning")


def test_the_torch_of_a_vendors_image_is_the_vendors(matrix: Matrix) -> None:
    image = Container("rocm/pytorch:rocm5.6_ubuntu20.04_py3.8_pytorch_2.0.1")
    environment = replace(env(Installed("torch", "2.0.1"), device=Device("amd", "MI210", "gfx90a")), container=image)
    assert rules(environment, matrix) == []
    assert Scene(environment, (), matrix).possible("torch") is None


# --- machine


def test_two_halves_of_a_driver(matrix: Matrix) -> None:
    halves = Environment(extra={"driver": "x", "driver_kernel": "520.56.06", "driver_userspace": "525.85.12-1"})
    assert rules(halves, matrix) == [("driver-userspace-kernel-mismatch", "nvidia-driver")]
    whole = Environment(extra={"driver": "x", "driver_kernel": "525.85.12", "driver_userspace": "525.85.12-1"})
    assert rules(whole, matrix) == []


def test_gaudi_is_one_release(matrix: Matrix) -> None:
    device = Device("habana", "Gaudi 2", "gaudi2", "1.16.1")
    image = Container("vault.habana.ai/gaudi-docker/1.16.0/ubuntu22.04/habanalabs/pytorch-installer-2.2.2:latest")
    apart = replace(env(device=device), container=image)
    assert rules(apart, matrix) == [("vendor-stack-version-mismatch", "synapseai")]
    assert rules(replace(apart, container=Container(image.base.replace("1.16.0", "1.16.1"))), matrix) == []


# --- clues


def test_the_list_in_a_message_can_refute_it(matrix: Matrix) -> None:
    clue = Clue(
        "x",
        "gpu-arch-not-in-wheel",
        "torch",
        "line",
        {"capability_low": "8.0", "capability_top": "12.0"},
        fact="stacks/cuda:code-rule",
    )
    spark = env(Installed("torch", "2.9.1"), device=Device("nvidia", "NVIDIA GB10", "sm_121"), arch="aarch64")
    found = judge(replace(spark, texts=("x",)), (clue,), matrix)
    assert found[0].rule == "false-positive-warning"


def test_where_torch_has_the_code_another_package_lacks_it(matrix: Matrix) -> None:
    clue = Clue("x", "gpu-arch-not-in-wheel", "torch", "line", {}, fact="stacks/cuda:code-rule")
    rows = env(Installed("torch", "2.7.0", "cu128"), Installed("flash-attn", "2.7.4.post1"), device=RTX5090)
    found = judge(replace(rows, texts=("x",)), (clue,), matrix)
    assert (found[0].rule, found[0].component) == ("gpu-arch-unsupported-by-package", "flash-attn")


# --- order and choice


def test_one_finding_per_cause_the_root_first() -> None:
    follower = Finding("extension-abi-mismatch", "xformers", "error", "b", REASON)
    warning = Finding("duplicate-install", "triton", "warning", "c", REASON)
    root = Finding("cpu-only-build", "torch", "error", "a", REASON, (Fix("package", "torch", "==2.1.2"),))
    again = replace(root, message="z", fixes=(Fix("driver", spec=">=525"),))
    found = ordered([warning, follower, root, again])
    assert [f.rule for f in found] == ["cpu-only-build", "extension-abi-mismatch", "duplicate-install"]
    assert found[1].consequence_of == "cpu-only-build"
    assert [fix.kind for fix in found[0].fixes] == ["package", "driver"]


def test_the_smallest_change_comes_first() -> None:
    runs = [
        Run("a118", "i", "cuda-11.8", ("2.6.0", "2.7.1"), False),
        Run("a126", "i", "cuda-12.6", ("2.7.1", "2.8.0"), True),
        Run("a128", "i", "cuda-12.8", ("2.8.0", "2.9.0"), False),
    ]
    picked = choose(runs, "2.7.1", "a128")
    assert picked[0].label == "a126" and {run.label for run in picked} == {"a118", "a126", "a128"}
    assert runs[1].spec == ">=2.7.1" and runs[2].spec == ">=2.8.0,<=2.9.0"
