"""Level static: each verdict, on libraries and packages written for it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.smoke_site import install, library

from accel_env.smoke import static
from accel_env.smoke.elf import Elf, read_library
from accel_env.smoke.folders import _configured
from accel_env.smoke.static import archs, built_for, covers, majors, needed, symbols, system_versions, take_stock
from accel_env.smoke.verdict import Answer, Context, FailedError, SkippedError

MODULE = "PyInit__C"
DEVICE_OLD, DEVICE_NEW = "_ZN3c104cuda9SetDeviceEi", "_ZN3c104cuda9SetDeviceEab"
Run = Callable[..., Answer]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty site-packages that is the whole path, on a system with one folder of libraries."""
    place = tmp_path / "site-packages"
    place.mkdir()
    (tmp_path / "system").mkdir()
    monkeypatch.setattr(sys, "path", [str(place), *(part for part in sys.path if not part.endswith("-packages"))])
    monkeypatch.setattr(static, "system_folders", lambda: [str(tmp_path / "system")])
    return place


def run(check: Run, **expect: Any) -> tuple[str, dict[str, Any]]:
    return check(Context(expect))


def torch(site: Path, **more: Any) -> None:
    files = {
        "torch/_C.cpython-312-x86_64-linux-gnu.so": library(exports=["PyInit__C"], needed=["libtorch_python.so"]),
        "torch/lib/libtorch_python.so": library(soname="libtorch_python.so", needed=["libc10.so", "libcudart.so.12"], **more),
        "torch/lib/libc10.so": library(soname="libc10.so", exports=[DEVICE_NEW, "_ZN3c105ErrorC1Ev"]),
    }
    install(site, "torch", "2.9.0", files, requires=["nvidia-cuda-runtime-cu12"])
    install(site, "nvidia-cuda-runtime-cu12", "12.8", {"nvidia/lib/libcudart.so.12": library(soname="libcudart.so.12")})


def test_what_an_elf_file_says_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.so"
    path.write_bytes(
        library(
            needed=["liba.so.1", "libb.so"],
            soname="libx.so",
            runpath="$ORIGIN:/opt",
            exports=["PyInit_x", "f"],
            wants=["g"],
            weak=["h"],
            offers=["V_1", "V_2"],
            demands={"libc.so.6": ["GLIBC_2.2.5", "GLIBC_2.34"], "libm.so.6": ["GLIBC_2.29"]},
        )
    )
    found = read_library(str(path))
    assert found is not None
    assert found.needed == ("liba.so.1", "libb.so")
    assert (found.soname, found.runpath, found.rpath, found.module) == ("libx.so", ("$ORIGIN", "/opt"), (), True)
    assert found.versions == (("libc.so.6", "GLIBC_2.2.5"), ("libc.so.6", "GLIBC_2.34"), ("libm.so.6", "GLIBC_2.29"))
    symbols_of = {name: (defined, weak) for name, defined, weak in Elf(str(path)).symbols()}
    assert symbols_of == {"PyInit_x": (True, False), "f": (True, False), "g": (False, False), "h": (False, True)}
    assert Elf(str(path)).offered() == {"V_1", "V_2"}


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"#!/bin/sh\n", library()[:200], b"\x7fELF\x01\x01" + library()[6:]])
def test_what_is_no_library_is_passed_over(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.so"
    path.write_bytes(content)
    assert read_library(str(path)) is None


def test_libraries_are_found_by_runpath_system_package_and_torch(site: Path) -> None:
    torch(site)
    (site.parent / "system" / "libc.so.6").write_bytes(b"")
    wants = ["libc.so.6", "libown.so", "libnear.so.1", "libcudart.so.12"]
    module = library(exports=[MODULE], needed=wants, runpath="$ORIGIN/../own")
    install(site, "ext", files={"ext/_C.so": module, "ext.libs/libnear.so.1": library()})
    (site / "own").mkdir()
    (site / "own" / "libown.so").write_bytes(library())
    text, facts = run(needed)
    assert text == "6 native libraries find what they need"
    assert facts == {"libraries": 6, "loaded by imports": 6, "left to the driver": []}


def test_a_missing_library_fails_with_its_name(site: Path) -> None:
    install(site, "ext", files={"ext/_C.so": library(exports=[MODULE], needed=["libgone.so.3"])})
    with pytest.raises(FailedError, match=r"1 libraries cannot be loaded: ext/_C\.so needs libgone\.so\.3"):
        run(needed)


def test_the_driver_s_libraries_may_be_missing(site: Path) -> None:
    install(site, "ext", files={"ext/_C.so": library(exports=[MODULE], needed=["libcuda.so.1", "libnvidia-ml.so.1"])})
    assert run(needed)[1]["left to the driver"] == ["libcuda.so.1", "libnvidia-ml.so.1"]


def test_a_stranger_s_copy_of_a_library_does_not_count(site: Path) -> None:
    """Seen with xformers beside a torchvision that bundles libcudart.so.12: nothing loads that copy first."""
    install(site, "ext", files={"ext/_C.so": library(exports=[MODULE], needed=["libcudart.so.12"])})
    install(site, "vision", files={"vision.libs/libcudart.4111.so.12": library(soname="libcudart.so.12")})
    with pytest.raises(FailedError, match=r"needs libcudart\.so\.12"):
        run(needed)
    install(site, "bridge", files={"bridge/_C.so": library(exports=[MODULE])}, requires=["vision (>=1) ; python_version > '3'"])
    install(site, "ext2", files={"ext2/_C.so": library(exports=[MODULE], needed=["libcudart.so.12"])}, requires=["vision[x]>=1"])
    with pytest.raises(FailedError, match=r"1 libraries .* ext/_C\.so"):
        run(needed)


def test_of_libraries_that_are_opened_on_demand_one_must_load(site: Path) -> None:
    backends = {f"bnb/libbnb_cuda{number}.so": library(needed=[f"libcudart.so.{number}"]) for number in (11, 12, 13)}
    torch(site)
    install(site, "bnb", files=backends)
    text, facts = run(needed)
    assert text.endswith("2 optional ones do not")
    assert sorted(facts["optional and not loadable"]) == ["bnb/libbnb_cuda11.so", "bnb/libbnb_cuda13.so"]
    with pytest.raises(FailedError, match=r"bnb/libbnb_cuda13\.so needs libcudart\.so\.13"):
        run(needed, libraries=["bnb/libbnb_cuda13.so"])  # the one that the plan counts on
    run(needed, libraries=["bnb/libbnb_cuda12.so"])


def test_where_none_can_be_opened_it_fails(site: Path) -> None:
    install(site, "bnb", files={"bnb/libbnb_a.so": library(needed=["libx.so"]), "bnb/libbnb_b.so": library(needed=["liby.so"])})
    with pytest.raises(FailedError, match="2 libraries"):
        run(needed)


def test_modules_that_differ_by_a_number_need_one_that_loads(site: Path) -> None:
    """torchcodec has one module per release of FFmpeg."""
    files = {f"codec/ops{number}.so": library(exports=["PyInit_ops"], needed=[f"libav.so.{number}"]) for number in (58, 59)}
    install(site, "codec", files=files)
    with pytest.raises(FailedError, match="2 libraries"):
        run(needed)
    (site.parent / "system" / "libav.so.59").write_bytes(b"")
    assert run(needed)[0].endswith("1 optional ones do not")


def test_without_native_packages_there_is_nothing_to_check(site: Path) -> None:
    install(site, "pure", files={"pure/__init__.py": b""})
    for check in (needed, symbols, majors, system_versions):
        with pytest.raises(SkippedError):
            run(check)


def test_old_system_libraries_fail_with_the_version(site: Path) -> None:
    demands = {"libc.so.6": ["GLIBC_2.17", "GLIBC_2.34"], "libstdc++.so.6": ["GLIBCXX_3.4.32"]}
    install(site, "ext", files={"ext/_C.so": library(exports=[MODULE], needed=[*demands], demands=demands)})
    system = site.parent / "system"
    (system / "libc.so.6").write_bytes(library(offers=["GLIBC_2.17", "GLIBC_2.28"]))
    (system / "libstdc++.so.6").write_bytes(library(offers=["GLIBCXX_3.4.32"]))
    with pytest.raises(FailedError, match=r"GLIBC_2\.34 of libc\.so\.6 is needed by ext/_C\.so"):
        run(system_versions)
    (system / "libc.so.6").write_bytes(library(offers=["GLIBC_2.17", "GLIBC_2.34"]))
    assert run(system_versions) == (
        "the system has GLIBCXX_3.4.32, GLIBC_2.34 and all below", {"highest needed": ["GLIBCXX_3.4.32", "GLIBC_2.34"]}
    )  # fmt: skip


def test_a_symbol_that_torch_lost_fails_with_its_name(site: Path) -> None:
    torch(site)
    flash = library(exports=[MODULE], needed=["libc10.so"], wants=[DEVICE_OLD, "malloc"], weak=["_ZN3c104weakEv"])
    install(site, "flash-attn", files={"flash_attn_2_cuda.so": flash})
    with pytest.raises(FailedError, match=rf"flash_attn_2_cuda\.so wants {DEVICE_OLD}"):
        run(symbols)


def test_symbols_that_torch_has_pass(site: Path) -> None:
    torch(site)
    own = "_ZN5torch3extEv"  # the extension brings it itself
    install(site, "flash-attn", files={
        "flash_attn_2_cuda.so": library(exports=[MODULE], needed=["libc10.so"], wants=[DEVICE_NEW, own, "malloc"]),
        "flash_attn/libhelp.so": library(exports=[own], needed=["libc10.so"]),
    })  # fmt: skip
    assert run(symbols)[0] == "torch exports what 2 extensions want (2 symbols)"


def test_without_torch_or_extensions_symbols_are_left_out(site: Path) -> None:
    install(site, "ext", files={"ext/_C.so": library(exports=[MODULE])})
    with pytest.raises(SkippedError, match="torch is not installed"):
        run(symbols)
    torch(site)
    with pytest.raises(SkippedError, match="no extension"):
        run(symbols)


def test_two_majors_of_cuda_fail(site: Path) -> None:
    torch(site)
    assert run(majors) == ("CUDA 12 throughout", {"majors": {"CUDA": "12"}})
    install(site, "ext", files={"ext/_C.so": library(exports=[MODULE], needed=["libcudart.so.13"])})
    with pytest.raises(FailedError, match="different majors of CUDA: CUDA 12: torch; CUDA 13: ext"):
        run(majors)


def test_the_arch_list_inside_torch_is_compared_with_the_plan(site: Path) -> None:
    torch(site, text=b"\0xsm_70 sm_75 sm_80 sm_86 sm_90 compute_90\0 sm_50 sm_60 \0")
    assert built_for(take_stock({})) == ["sm_70", "sm_75", "sm_80", "sm_86", "sm_90", "compute_90"]
    assert "sm_70 sm_75" in run(archs, devices=["sm_89", "sm_120"])[0]
    with pytest.raises(FailedError, match="not for sm_61"):
        run(archs, devices=["sm_61", "sm_90"])
    with pytest.raises(SkippedError, match="names no device"):
        run(archs)


def test_amd_s_list_is_read_too(site: Path) -> None:
    torch(site, text=b"gfx900 gfx906 gfx90a gfx942 gfx1100\0")
    run(archs, devices=["gfx942"])
    with pytest.raises(FailedError, match="not for gfx1201"):
        run(archs, devices=["gfx1201"])


def test_a_torch_that_tells_nothing_is_left_out(site: Path) -> None:
    torch(site)
    with pytest.raises(SkippedError, match="does not tell"):
        run(archs, devices=["sm_90"])


@pytest.mark.parametrize(
    ("listed", "arch", "fits"),
    [
        (["sm_80"], "sm_86", True), (["sm_86"], "sm_80", False), (["sm_90"], "sm_100", False), (["sm_90a"], "sm_90", False),
        (["sm_100"], "sm_103", True), (["compute_70"], "sm_120", True), (["compute_90"], "sm_80", False), ([], "sm_80", False),
        (["gfx942"], "gfx942", True), (["gfx90a"], "gfx942", False), (["sm_120"], "sm_121", True),
    ],
)  # fmt: skip
def test_which_code_runs_where(listed: list[str], arch: str, fits: bool) -> None:
    assert covers(listed, arch) is fits


def test_the_python_is_compared() -> None:
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert run(static.python, python=here)[0] == f"Python {here}"
    with pytest.raises(FailedError, match=r"the plan says 2\.7"):
        run(static.python, python="2.7")


def test_the_loader_s_folders_follow_includes(tmp_path: Path) -> None:
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "ld.so.conf").write_text("include conf.d/*.conf\n/a # here\n")
    (tmp_path / "conf.d" / "x.conf").write_text(f"/b\ninclude {tmp_path}/ld.so.conf\n")
    assert _configured(str(tmp_path / "ld.so.conf"), set()) == ["/b", "/a"]


def test_a_module_that_is_tried_and_done_without_is_optional(site: Path) -> None:
    """numba imports its TBB thread pool where there is a TBB."""
    pool = library(exports=["PyInit_pool"], needed=["libtbb.so.12"])
    install(site, "numba", files={"numba/pool.so": pool, "numba/core.so": library(exports=["PyInit_core"])})
    assert run(needed)[0].endswith("1 optional ones do not")
    gpu = library(exports=["PyInit_gpu"], needed=["libcublas.so.12"])
    install(site, "ext", files={"ext/gpu.so": gpu, "ext/core.so": library(exports=["PyInit_core"])})
    with pytest.raises(FailedError, match=r"ext/gpu\.so needs libcublas\.so\.12"):
        run(needed)


def test_extensions_for_other_releases_of_torch_are_optional(site: Path) -> None:
    torch(site)
    files = {f"dlpack/addon_torch{number}-cpu.so": library(needed=["libc10.so"], wants=[DEVICE_OLD]) for number in (24, 25)}
    install(site, "dlpack", files=files)
    assert sorted(run(symbols)[1]["optional and not loadable"]) == sorted(files)
    install(site, "alone", files={"alone/_C.so": library(needed=["libc10.so"], wants=[DEVICE_OLD])})
    with pytest.raises(FailedError, match=rf"alone/_C\.so wants {DEVICE_OLD}$"):
        run(symbols)
