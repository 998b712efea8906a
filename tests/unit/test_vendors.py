"""Which code runs on what, how driver versions compare, and probes that the recorded machines do not reach."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from accel_env.matrix.load import Matrix, open_matrix
from accel_env.model import Need, Subject
from accel_env.system import Completed, ReplayedSystem
from accel_env.vendors import valid_driver, vendors
from accel_env.vendors.amd import gfx_name
from accel_env.vendors.base import bus_address, numbers


@dataclass(frozen=True)
class Rule:
    device: str
    not_from: tuple[str, ...]
    before: str = ""


@dataclass(frozen=True)
class Alias:
    a: str
    b: str


@dataclass(frozen=True)
class Name:
    match: str
    release: str


@dataclass(frozen=True)
class Stack:
    code_rules: tuple[Rule, ...] = ()
    aliases: tuple[Alias, ...] = ()
    driver_names: tuple[Name, ...] = ()


CUDA = Stack(
    (Rule("sm_87", ("sm_80", "sm_86"), "13.2"), Rule("sm_101", ("sm_100",)), Rule("sm_89", ("sm_87",))),
    (Alias("sm_101", "sm_110"),),
)
ROCM = Stack(driver_names=(Name("6.12.12", "6.4"), Name("6.16.6", "30.20"), Name("6.16.13", "30.30"), Name("6.19.4", "31.30")))
XPU = Stack(aliases=(Alias("ats-m150", "dg2-g10"), Alias("arl-s", "mtl-u")))


def need(*values: str, jit: tuple[str, ...] = (), lacks: tuple[str, ...] = (), unknown: bool = False) -> Need:
    return Need(Subject.ARCH, "fact", values=values, jit=jit, lacks=lacks, unknown=unknown)


@pytest.mark.parametrize(
    ("codes", "arch", "release", "answer"),
    [
        (("sm_70",), "sm_70", "12.6", "native"),
        (("sm_80",), "sm_86", "12.6", "native"),
        (("sm_86",), "sm_80", "12.6", ""),
        (("sm_86",), "sm_89", "12.6", "native"),
        (("sm_90",), "sm_100", "12.8", ""),
        (("sm_100",), "sm_103", "12.9", "native"),
        (("sm_120",), "sm_121", "13.0", "native"),
        (("sm_75", "sm_80"), "sm_70", "13.0", ""),
        (("sm_90a",), "sm_90", "12.6", "native"),
        (("sm_100a",), "sm_103", "12.9", ""),
        (("sm_100f",), "sm_103", "12.9", "native"),
        (("sm_103f",), "sm_100", "12.9", ""),
        (("sm_80", "sm_86"), "sm_87", "12.6", ""),
        (("sm_80", "sm_86"), "sm_87", "13.1", ""),
        (("sm_80", "sm_86"), "sm_87", "13.2", "native"),
        (("sm_80", "sm_86"), "sm_87", "13.10", "native"),
        (("sm_80", "sm_86"), "sm_87", "", ""),
        (("sm_87",), "sm_87", "12.6", "native"),
        (("sm_87",), "sm_89", "12.6", ""),
        (("sm_101",), "sm_110", "13.0", "native"),
        (("sm_110",), "sm_101", "13.0", "native"),
        (("sm_101a",), "sm_110", "13.0", ""),
        (("sm_100",), "sm_110", "13.0", ""),
        (("sm_100",), "sm_101", "12.8", ""),
        (("gfx942",), "sm_90", "12.6", ""),
        (("sm_90",), "", "12.6", ""),
    ],
)
def test_nvidia_machine_code(codes: tuple[str, ...], arch: str, release: str, answer: str) -> None:
    assert vendors()["nvidia"].runs(need(*codes), arch, CUDA, release) == answer


@pytest.mark.parametrize(
    ("texts", "arch", "answer"),
    [
        (("compute_70",), "sm_120", "jit"),
        (("compute_90",), "sm_80", ""),
        (("compute_90",), "sm_90", "jit"),
        (("compute_90a",), "sm_100", ""),
        (("compute_90a",), "sm_90", "jit"),
        (("compute_100f",), "sm_103", "jit"),
        (("compute_100f",), "sm_120", ""),
        (("compute_80",), "sm_87", "jit"),
        (("compute_101",), "sm_110", "jit"),
    ],
)
def test_nvidia_ptx(texts: tuple[str, ...], arch: str, answer: str) -> None:
    assert vendors()["nvidia"].runs(need("sm_50", jit=texts), arch, CUDA, "12.6") == answer


def test_machine_code_counts_before_ptx() -> None:
    assert vendors()["nvidia"].runs(need("sm_80", jit=("compute_80",)), "sm_86", CUDA, "12.6") == "native"


@pytest.mark.parametrize(
    ("codes", "arch", "answer"),
    [
        (("gfx90a", "gfx942"), "gfx942", "native"),
        (("gfx90a:xnack-",), "gfx90a:sramecc+:xnack-", "native"),
        (("gfx1030",), "gfx1031", ""),
        (("gfx1100",), "gfx1101", ""),
        (("gfx11-generic",), "gfx1100", ""),
    ],
)
def test_amd_code_is_exact(codes: tuple[str, ...], arch: str, answer: str) -> None:
    assert vendors()["amd"].runs(need(*codes), arch, ROCM, "6.4") == answer


@pytest.mark.parametrize("vendor", ["nvidia", "amd", "intel", "habana", "huawei"])
def test_lost_library_kernels_and_unknown_lists(vendor: str) -> None:
    """`lacks` is its own need or part of the code list; nobody-knows is never works."""
    arch, other = {"nvidia": ("sm_70", "sm_80")}.get(vendor, ("one-a", "two-b"))
    module = vendors()[vendor]
    assert module.runs(need(arch, lacks=(arch,)), arch, Stack(), "") == ""
    assert module.runs(need(lacks=(arch,)), arch, Stack(), "") == ""
    assert module.runs(need(lacks=(arch,)), other, Stack(), "") == "native"
    assert module.runs(need(arch, unknown=True), arch, Stack(), "") == ""
    assert module.runs(need(), arch, Stack(), "") == ""
    assert module.runs(need(arch), "", Stack(), "") == ""


@pytest.mark.parametrize(
    ("codes", "jit", "arch", "answer"),
    [
        (("dg2-g10",), (), "dg2-g10", "native"),
        (("dg2",), (), "dg2-g12", "native"),
        (("bmg",), (), "bmg-g31", "native"),
        (("bmg-g21",), ("bmg-g31",), "bmg-g31", "jit"),
        (("pvc",), ("pvc-vg",), "pvc-vg", "jit"),
        (("pvc",), (), "pvc-xl", "native"),
        (("ats-m150",), (), "dg2-g10", "native"),
        (("ats-m150",), (), "dg2-g11", ""),
        (("mtl-h",), ("mtl-u",), "arl-s", "jit"),
        (("mtl-h",), (), "mtl-u", ""),
        (("dg2-g10",), (), "dg2", ""),
    ],
)
def test_intel_targets_and_families(codes: tuple[str, ...], jit: tuple[str, ...], arch: str, answer: str) -> None:
    assert vendors()["intel"].runs(need(*codes, jit=jit), arch, XPU, "2025.3") == answer


def test_gaudi_and_cpu() -> None:
    assert vendors()["habana"].runs(need("gaudi2"), "gaudi2", Stack(), "1.23.0") == "native"
    assert vendors()["habana"].runs(need("gaudi2"), "gaudi3", Stack(), "1.23.0") == ""
    assert vendors()["none"].runs(need(), "", Stack(), "") == "native"


@pytest.mark.parametrize(
    ("vendor", "text", "release"),
    [
        ("nvidia", "580.95.05", "580.95.05"),
        ("nvidia", "R580", "580"),
        ("nvidia", "535.161.08 (open)", "535.161.08"),
        ("amd", "6.12.12", "6.4"),
        ("amd", "6.12.12-2187269", "6.4"),
        ("amd", "6.16.13", "30.30"),
        ("amd", "6.16.6.30200100-2255209", "30.20.1"),
        ("amd", "6.16.13.30300000-2278356.24.04", "30.30.0"),
        ("amd", "6.19.14.31400000", "31.40.0"),
        ("amd", "6.8.5.60202-2041575", "6.2.2"),
        ("amd", "6.19.40", "6.19.40"),
        ("amd", "30.20.1", "30.20.1"),
        ("amd", "6.3.3", "6.3.3"),
        ("amd", "inbox 6.8.0-45-generic", "inbox 6.8.0"),
        ("amd", "inbox", "inbox"),
        ("intel", "25.18.33578.15-1146~24.04", "25.18.33578.15"),
        ("habana", "1.22.1-97ec1a4", "1.22.1"),
        ("habana", "1.23.0", "1.23.0"),
        ("huawei", "24.1.1", "24.1.1"),
        ("none", "anything", ""),
    ],
)
def test_driver_becomes_its_release(vendor: str, text: str, release: str) -> None:
    assert vendors()[vendor].normalise_driver(text, ROCM) == release


@pytest.mark.parametrize(
    "text",
    [
        "580",
        "580.95.05",
        "R580",
        "6.12.12",
        "30.20.1",
        "1.22.1-97ec1a4",
        "inbox 6.8.0-45-generic",
        "inbox",
        "24.1.rc3",
        "25.18.33578.15-1146~24.04",
        "6.16.6.30200100-2255209",
    ],
)
def test_driver_versions_are_recognised(text: str) -> None:
    assert valid_driver(text)


@pytest.mark.parametrize("text", ["banana", "", "580.", "latest", "5 80", "cuda-12", "v", ">=580", "580.x"])
def test_other_words_are_no_driver(text: str) -> None:
    assert not valid_driver(text)


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (90402, "gfx942"),
        (90010, "gfx90a"),
        (90012, "gfx90c"),
        (100306, "gfx1036"),
        (110501, "gfx1151"),
        (120001, "gfx1201"),
        (90000, "gfx900"),
        (0, ""),
    ],
)
def test_kfd_number_becomes_a_name(number: int, name: str) -> None:
    assert gfx_name(number) == name


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("00000000:3B:00.0", "0000:3b:00.0"),
        ("0000000F:01:00.0", "000f:01:00.0"),
        ("0000:c1:00.0", "0000:c1:00.0"),
        ("[N/A]", ""),
        ("", ""),
    ],
)
def test_bus_addresses_of_tools(text: str, address: str) -> None:
    assert bus_address(text) == address


def test_versions_compare_as_numbers() -> None:
    assert numbers("7.14") > numbers("7.2")
    assert numbers("") < numbers("1")


# The real data: what the rules of the stacks mean together with the modules.


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return open_matrix()


@pytest.mark.parametrize(
    ("stack", "release", "codes", "arch", "answer"),
    [
        ("cuda", "13.0", ("sm_80", "sm_86"), "sm_87", ""),
        ("cuda", "13.2", ("sm_80", "sm_86"), "sm_87", "native"),
        ("cuda", "13.0", ("sm_120",), "sm_121", "native"),
        ("cuda", "12.8", ("sm_100",), "sm_110", ""),
        ("cuda", "12.6", ("sm_50",), "sm_52", "native"),
        ("cuda", "12.6", ("sm_50",), "sm_53", ""),
        ("rocm", "7.2", ("gfx942",), "gfx942", "native"),
        ("xpu", "2025.3", ("ats-m150",), "dg2-g10", "native"),
        ("gaudi", "1.23.0", ("gaudi2", "gaudi3"), "gaudi3", "native"),
    ],
)
def test_real_stacks(stack: str, release: str, codes: tuple[str, ...], arch: str, answer: str, matrix: Matrix) -> None:
    data = matrix.stacks()[stack]
    assert vendors()[data.vendor].runs(need(*codes), arch, data, release) == answer


def test_every_vendor_of_the_device_files_has_a_module(matrix: Matrix) -> None:
    known = vendors()
    assert set(matrix.devices().vendors()) <= set(known)
    assert {stack.vendor for stack in matrix.stacks().values()} <= set(known)


def test_module_numbers_of_the_real_rocm_stack(matrix: Matrix) -> None:
    amd, rocm = vendors()["amd"], matrix.stacks()["rocm"]
    assert amd.normalise_driver("6.12.12", rocm).startswith("6.4")
    assert amd.normalise_driver("6.16.6", rocm).startswith("30.20")


class Replayed(ReplayedSystem):
    """An empty machine with a few answers."""

    def __init__(self, folder: Path, commands: dict[tuple[str, ...], tuple[int, str]]) -> None:
        super().__init__(folder)
        self._commands = {
            argv: Completed(argv, status, out, "", "" if status == 0 else f"{argv[0]} failed with status {status}: {out.strip()}")
            for argv, (status, out) in commands.items()
        }


SMI = ("nvidia-smi", "--query-gpu=name,compute_cap,driver_version,memory.total,pci.bus_id", "--format=csv")


def test_a_gpu_that_fell_off_the_bus_does_not_hide_the_others(tmp_path: Path, matrix: Matrix) -> None:
    _node(tmp_path, "dev/nvidia0")
    out = (
        "Unable to determine the device handle for GPU 0000:41:00.0: Unknown Error\n"
        "name, compute_cap, driver_version, memory.total [MiB], pci.bus_id\n"
        "NVIDIA L40S, 8.9, 550.54.15, 46068 MiB, 00000000:01:00.0\n"
    )
    found = vendors()["nvidia"].probe(Replayed(tmp_path, {SMI: (1, out)}), matrix.devices())
    assert [(device.name, device.arch, device.driver) for device in found.devices] == [("NVIDIA L40S", "sm_89", "550.54.15")]
    assert any("Unable to determine" in note for note in found.notes)


def test_an_unknown_gpu_is_no_missing_gpu(tmp_path: Path, matrix: Matrix) -> None:
    """A product newer than the table, without a driver: present, its architecture unknown."""
    for name, text in (("vendor", "0x10de"), ("device", "0xfffe"), ("class", "0x030200")):
        _node(tmp_path, f"sys/bus/pci/devices/0000%3A01%3A00.0/{name}", text)
    found = vendors()["nvidia"].probe(Replayed(tmp_path, {}), matrix.devices())
    assert [(device.name, device.arch) for device in found.devices] == [("NVIDIA device 10de:fffe", "")]
    assert found.notes


@pytest.mark.parametrize("vendor", sorted(set(vendors()) - {"apple", "none"}))
def test_nothing_is_found_where_nothing_is(vendor: str, tmp_path: Path, matrix: Matrix) -> None:
    found = vendors()[vendor].probe(ReplayedSystem(tmp_path), matrix.devices())
    assert (found.devices, found.notes) == ((), ())


def _node(root: Path, name: str, text: str = "") -> None:
    path = root / "root" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
