"""What people write behind names: versions, labels, wishes, vendors' builds; drivers, devices and systems."""

from __future__ import annotations

import pytest

from accel_env.judge.book import Book, open_book
from accel_env.judge.machine import devices_of, driver_of, host_of
from accel_env.judge.words import built_for, installed
from accel_env.matrix.load import Matrix, open_matrix


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return open_matrix()


@pytest.fixture(scope="module")
def book(matrix: Matrix) -> Book:
    return open_book(matrix)


@pytest.mark.parametrize(
    ("text", "version", "local", "spec"),
    [
        ("2.6.0+cu126", "2.6.0", "cu126", ""),
        ("2.0.0.dev20230218+cu118", "2.0.0.dev20230218", "cu118", ""),
        ("cu128 build", "", "cu128", ""),
        ("CUDA 13 build (nvidia/cu13 libraries)", "", "cu13", ""),
        ("development build, CUDA 13.0", "", "cu130", ""),
        (">=0.43.3 (wanted)", "", "", ">=0.43.3"),
        ("==2.3.1+cu121 (wanted)", "2.3.1", "cu121", "==2.3.1"),
        ("<=2.3.1", "", "", "<=2.3.1"),
        ("2.x", "", "", "==2.*"),
        ("older than 2.7 (2.6 generation)", "2.6", "", ""),
        ("2.5.1+rocm6.2 (fails), 2.3.1+rocm5.7 (works)", "2.5.1", "rocm6.2", ""),
        ("stable of November 2025 (2.9.1) from PyPI, CPU", "2.9.1", "cpu", ""),
        ("==2.5.1 wanted by a, ==2.4.0 wanted by b", "", "", ""),
        ("built for 2.1.2+cu121", "", "cu121", ""),
        ("unknown", "", "", ""),
        ("", "", "", ""),
    ],
)
def test_versions_labels_and_ranges(text: str, version: str, local: str, spec: str) -> None:
    row = installed("torch", text, "x")
    assert (row.version, row.local, row.spec) == (version, local, spec)


@pytest.mark.parametrize(
    ("text", "vendor", "nightly", "wanted"),
    [
        ("1.10.2 (conda, cuda10.2)", True, False, False),
        ("2.6.0 (Gaudi build)", True, False, False),
        ("2.9.1+rocm7.2.0.lw.git7e1940d4", True, False, False),
        ("2.1.0a0+41361538.nv23.06", True, False, False),
        ("2.8.1 (source)", True, False, False),
        ("2.9.0.dev20250722+cu128", False, True, False),
        ("2.8.0+cu128", False, False, False),
        ("4.49.0 (wanted)", False, False, True),
        ("==2.5.9.post1", False, False, False),
        (">=2.6", False, False, True),
    ],
)
def test_whose_build_and_whether_it_is_there(book: Book, text: str, vendor: bool, nightly: bool, wanted: bool) -> None:
    row = installed("torch", text, "x", vendor_words=book.vendor_words, vendor_labels=book.vendor_labels)
    assert (row.vendor, row.nightly, row.wanted) == (vendor, nightly, wanted)


def test_what_an_extension_says_it_was_built_for() -> None:
    assert built_for("built for 2.1.2+cu121") == ("2.1.2", "cu121")
    assert built_for("built for the cu118/cu124 variant") == ("", "cu118")
    assert built_for("0.2.2 (cu118, built with torch 2.1.0)") == ("2.1.0", "")
    assert built_for("0.2.2") == ("", "")


@pytest.mark.parametrize(
    ("text", "version", "extra"),
    [
        ("550.54.14", "550.54.14", {}),
        ("570.144 (proprietary kernel modules)", "570.144", {"kernel_modules": "proprietary"}),
        (">=580", "", {"driver_spec": ">=580"}),
        ("SynapseAI 1.4.0 (April 2022 image)", "1.4.0", {}),
        ("535", "535", {}),
        (
            "kernel module 520.56.06, nvidia-smi 525.85.12-1",
            "520.56.06",
            {"driver_kernel": "520.56.06", "driver_userspace": "525.85.12-1"},
        ),
        ("", "", {}),
    ],
)
def test_drivers(text: str, version: str, extra: dict[str, str]) -> None:
    found = driver_of(text, ())
    assert found.version == version
    assert extra.items() <= found.extra.items()


@pytest.mark.parametrize(
    ("row", "vendor", "arch"),
    [
        ({"name": "TITAN Xp (8x)"}, "nvidia", "sm_61"),
        ({"name": "Volta (sm_70)", "arch": "sm_70"}, "nvidia", "sm_70"),
        ({"name": "Intel Arc A770", "arch": "dg2"}, "intel", "dg2-g10"),
        ({"name": "Gaudi (DL1)", "arch": "gaudi"}, "habana", "gaudi"),
        ({"name": "AMD gfx101x device", "arch": "gfx1011"}, "amd", "gfx1011"),
        ({"name": "A100 / H100 instances", "arch": "sm_80/sm_90"}, "nvidia", ""),
        ({"name": "something nobody knows"}, "", ""),
    ],
)
def test_devices(matrix: Matrix, row: dict[str, str], vendor: str, arch: str) -> None:
    (device,) = devices_of([row], matrix)
    assert (device.vendor, device.arch) == (vendor, arch)


@pytest.mark.parametrize(
    ("said", "os", "libc", "wsl"),
    [
        ({"os": "Ubuntu 20.04"}, "linux", "2.31", False),
        ({"os": "Red Hat Enterprise Linux Server 7.6 (Maipo)"}, "linux", "2.17", False),
        ({"os": "Windows with WSL2"}, "linux", "", True),
        ({"os": "Windows 11"}, "windows", "", False),
        ({"os": "macOS 14"}, "macos", "", False),
        ({"os": "Ubuntu 20.04", "glibc": "2.35"}, "linux", "2.35", False),
    ],
)
def test_systems(book: Book, said: dict[str, str], os: str, libc: str, wsl: bool) -> None:
    host = host_of(said, (), book)
    assert (host.os, host.libc, host.wsl) == (os, libc, wsl)


def test_a_machine_with_arm_products_alone_is_an_arm_machine(matrix: Matrix, book: Book) -> None:
    devices = devices_of(["NVIDIA GB200"], matrix)
    assert host_of({}, devices, book).arch == "aarch64"
    assert host_of({"arch": "amd64"}, devices, book).arch == "x86_64"
    assert host_of({"os": "Alpine Linux 3.19"}, (), book).libc_family == "musl"
