"""The reader of wheels against files that NVIDIA's and LLVM's tools made, and against damaged ones."""

from __future__ import annotations

import io
import random
import re
import sys
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from accel_env.errors import ClosureError, UsageError
from accel_env.inspect import bundle, fatbin, sycl
from accel_env.inspect.elf import dynamic_symbols, read_elf
from accel_env.inspect.fatbin import DeviceCode
from accel_env.inspect.symbols import is_torch, torch_use
from accel_env.inspect.wheel import Wheel, inspect_wheel, kernel_arch

DATA = Path(__file__).parents[1] / "data" / "inspect"
NAME = "thing-1.0-cp312-cp312-linux_x86_64.whl"
LIBRARY = (DATA / "libextension.so").read_bytes()


def wheel_bytes(members: dict[str, bytes], how: int = zipfile.ZIP_DEFLATED) -> bytes:
    said = {
        "thing-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: thing\nVersion: 1.0\nRequires-Python: >=3.10\n"
        b"Requires-Dist: torch==2.8.0\n",
        "thing-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nTag: cp312-cp312-linux_x86_64\n",
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", how) as archive:
        for name, content in {**members, **said}.items():
            archive.writestr(name, content)
    return out.getvalue()


def read(content: bytes) -> Wheel:
    return inspect_wheel(io.BytesIO(content), NAME)


def cuobjdump(text: str) -> tuple[set[str], set[str]]:
    """What cuobjdump lists: machine code, PTX."""
    code = set(re.findall(r"^ELF file.*\.(sm_\w+)\.cubin$", text, re.M))
    return code, {found.replace("sm_", "compute_") for found in re.findall(r"^PTX file.*\.(sm_\w+)\.ptx$", text, re.M)}


def test_fat_binary_agrees_with_cuobjdump() -> None:
    data, found = (DATA / "kernels.fatbin").read_bytes(), DeviceCode()
    fatbin.read_section(io.BytesIO(data), 0, len(data), found)
    code, ptx = cuobjdump((DATA / "kernels.cuobjdump.txt").read_text())
    assert {name.removesuffix("f") for name in found.code} == code == {"sm_75", "sm_90", "sm_90a", "sm_100"}
    assert set(found.ptx) == ptx == {"compute_90", "compute_120f"}
    assert found.code["sm_100f"] == 1
    assert found.containers == 1


def test_several_fat_binaries_with_padding() -> None:
    data, found = (DATA / "kernels.fatbin").read_bytes(), DeviceCode()
    section = b"junk" * 3 + data + bytes(40) + data + data + bytes(4)
    fatbin.read_section(io.BytesIO(b"before" + section), 6, len(section), found)
    assert found.containers == 3
    assert found.code["sm_75"] == 3


def test_fat_binaries_and_cubins_among_other_data() -> None:
    data, found = (DATA / "kernels.fatbin").read_bytes(), DeviceCode()
    cubin = (DATA / "kernel.sm_90a.cubin").read_bytes()
    mixed = fatbin.MAGIC + b"\xff" * 90 + data + b"\x7fELF\x02\x01\x01 no cubin" + bytes(99) + cubin
    fatbin.find_loose(io.BytesIO(mixed), 0, len(mixed), found)
    assert found.code["sm_90"] == 2  # the cubin's own header knows no `a`
    assert found.ptx["compute_90"] == 1


@pytest.mark.parametrize("name", ["targets.hipfb", "targets.zstd.hipfb"])
def test_offload_bundles_agree_with_the_bundler(name: str) -> None:
    listed = (DATA / "targets.bundler.txt").read_text().split()
    data, found = (DATA / name).read_bytes(), Counter[str]()
    section = data + bytes(4096 - len(data)) + data
    assert bundle.read_section(io.BytesIO(section), 0, len(section), found) == 2
    assert set(found) == bundle.targets_of(listed) == {"gfx90a", "gfx1100", "gfx9-4-generic"}
    assert set(found.values()) == {2}


def test_library() -> None:
    stream = io.BytesIO(LIBRARY)
    elf = read_elf(stream, len(LIBRARY))
    assert (elf.soname, elf.needed) == ("libextension.so", ("libc10_cuda.so", "libc.so.6"))
    assert elf.versions == (("libc.so.6", "GLIBC_2.14"),)
    names = {name.decode(): here for name, here, _ in dynamic_symbols(stream, elf)}
    assert names["entry"]
    assert not names["_ZN3c104cuda9SetDeviceEab"]


def test_wheel() -> None:
    found = read(wheel_bytes({"thing/lib.so": LIBRARY, "thing/notes.so": b"INPUT(-lthing)", "thing/x.py": b""}))
    assert dict(found.metadata)["Requires-Dist"] == "torch==2.8.0"
    assert found.tags == ("cp312-cp312-linux_x86_64",)
    (library,) = found.libraries
    assert set(library.cuda.code) == {"sm_75", "sm_90", "sm_90a", "sm_100f"}
    assert set(library.gfx) == {"gfx90a", "gfx1100", "gfx9-4-generic"}
    assert library.sycl.targets == {"spir64"}
    assert library.sycl.spirv
    assert found.torch is not None
    assert len(found.torch.wanted) == 3
    assert (found.torch.stable, found.torch.cxx11) == (False, True)


def test_options_of_code_that_was_compiled_ahead() -> None:
    images = sycl.Images(set(), set())
    sycl.scan(io.BytesIO(LIBRARY), 0, len(LIBRARY), images)
    assert images.targets >= {"spir64_gen"}
    assert images.devices == {"pvc", "bmg-g21"}


@pytest.mark.parametrize(
    ("name", "torch"),
    [
        (b"_ZN3c104cuda9SetDeviceEab", True),
        (b"_ZNK2at6Tensor8data_ptrIfEEPT_v", True),
        (b"_ZN5torch8autograd4NodeD2Ev", True),
        (b"_Z15THPVariable_WrapN2at10TensorBaseE", True),
        (b"aoti_torch_get_device_index", True),
        (b"_ZTIN3c105ErrorE", True),
        (b"_ZN6at_npu6native9from_blobEPvN3c108ArrayRefIlEE", False),
        (b"_ZN3foo12attachEv", False),
        (b"_ZN7flutter3fooEv", False),
        (b"memcpy", False),
    ],
)
def test_names_of_torch(name: bytes, torch: bool) -> None:
    assert is_torch(name) is torch


def test_own_symbols_are_not_wanted() -> None:
    assert torch_use([b"_ZN2at1aEv"], [b"_ZN2at1aEv"]) is None
    used = torch_use([b"aoti_torch_a", b"torch_call_dispatcher"], [])
    assert used is not None
    assert used.stable
    assert used.cxx11 is None
    old = torch_use([b"_ZN3c106detail14torchCheckFailEPKcS2_jRKSs"], [])
    assert old is not None
    assert old.cxx11 is False


@pytest.mark.parametrize(
    ("path", "arch"),
    [
        ("_rocm_sdk/lib/rocblas/library/Kernels.so-000-gfx90a-xnack-.hsaco", "gfx90a"),
        ("lib/rocblas/library/TensileLibrary_Type_HH_Contraction_gfx1100.dat", "gfx1100"),
        ("torch/lib/hipblaslt/library/extop_gfx942.co", "gfx942"),
        ("torch/gfx942.py", ""),
    ],
)
def test_library_kernels_by_name(path: str, arch: str) -> None:
    assert kernel_arch(path) == arch


def test_damaged_wheels_are_refused_in_words() -> None:
    """Cut off anywhere, or with bytes turned over: a reading or a ClosureError, never anything else."""
    whole = wheel_bytes({"thing/lib.so": LIBRARY}, zipfile.ZIP_STORED)
    dice, refused = random.Random(4), 0
    cases = [whole[:size] for size in range(0, len(whole), 997)]
    for _ in range(120):
        bad = bytearray(whole)
        for _ in range(dice.randrange(1, 6)):
            bad[dice.randrange(len(bad))] = dice.randrange(256)
        cases.append(bytes(bad))
    for case in cases:
        try:
            read(case)
        except ClosureError as error:
            refused += 1
            assert error.reference == "wheel-broken"
            assert error.message.startswith(NAME)
    assert refused > 50


def test_damaged_libraries_are_refused_in_words() -> None:
    """The same below the checksum of the zip file: ELF, fat binaries, bundles."""
    dice = random.Random(5)
    for _ in range(150):
        bad = bytearray(LIBRARY)
        for _ in range(dice.randrange(1, 8)):
            bad[dice.randrange(len(bad))] = dice.randrange(256)
        size = dice.choice([len(bad), dice.randrange(len(bad))])
        try:
            read(wheel_bytes({"thing/lib.so": bytes(bad[:size])}, zipfile.ZIP_STORED))
        except ClosureError as error:
            assert error.message.startswith(f"{NAME}: thing/lib.so: ")


@pytest.mark.parametrize(("module", "name"), [("elftools.elf.elffile", "pyelftools"), ("zstandard", "zstandard")])
def test_without_the_extra(monkeypatch: pytest.MonkeyPatch, module: str, name: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UsageError, match=f"reading wheels needs {name}"):
        read(wheel_bytes({"thing/lib.so": LIBRARY}))


def test_wheel_of_another_name() -> None:
    with pytest.raises(ClosureError, match=r"its metadata is of thing-1\.0\.dist-info"):
        inspect_wheel(io.BytesIO(wheel_bytes({})), "other-1.0-py3-none-any.whl")
