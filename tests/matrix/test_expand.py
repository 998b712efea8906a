"""Markers of requirements and names of wheels."""
from __future__ import annotations

import pytest
from packaging.markers import Marker

from accel_env.matrix.expand import wheel_name
from accel_env.matrix.markers import marker_environment, marker_holds, reduce_marker

LINUX, ARM, MAC, WINDOWS = "linux_x86_64", "linux_aarch64", "macos_aarch64", "windows_x86_64"
EVERYWHERE = {f"{system}_{cpu}" for system in ("linux", "macos", "windows") for cpu in ("x86_64", "aarch64")}
MARKERS = [
    'platform_system == "Linux" and platform_machine == "x86_64"',
    'sys_platform == "darwin" or platform_machine == "aarch64"',
    'platform_machine != "arm64" and python_version < "3.13"',
    'python_version >= "3.9" and python_version < "3.15"',
    'python_version == "3.12"',
    'python_version != "3.12"',
    'python_version < "3.0"',
    'python_version in "3.8, 3.10"',
    'sys_platform == "win32" and python_version >= "3.10"',
    'python_full_version >= "3.12.1"',
    'implementation_name == "cpython" and python_version > "3.8"',
    'os_name == "nt"',
]


@pytest.mark.parametrize("marker", MARKERS)
@pytest.mark.parametrize("platform", [LINUX, ARM, MAC, WINDOWS])
def test_a_reduced_marker_means_the_same(marker: str, platform: str) -> None:
    left = reduce_marker(marker, platform)
    for python in ("3.8", "3.9", "3.10", "3.12", "3.13", "3.14t", "3.15"):
        whole = Marker(marker).evaluate(marker_environment(platform, python))
        assert (left is not None and marker_holds(left, platform, python)) == whole, (left, python)


@pytest.mark.parametrize(("marker", "platform", "left"), [
    (MARKERS[0], LINUX, ""), (MARKERS[0], ARM, None), (MARKERS[1], MAC, ""), (MARKERS[1], WINDOWS, None),
    (MARKERS[2], LINUX, 'python_version < "3.13"'), (MARKERS[2], MAC, None),
    (MARKERS[3], LINUX, 'python_version >= "3.9" and python_version < "3.15"'),
    (MARKERS[4], LINUX, 'python_version >= "3.12" and python_version < "3.13"'),
    (MARKERS[5], LINUX, MARKERS[5]), (MARKERS[6], LINUX, None), (MARKERS[8], LINUX, None), (MARKERS[9], LINUX, MARKERS[9]),
])
def test_the_platform_decides_what_it_can(marker: str, platform: str, left: str | None) -> None:
    assert reduce_marker(marker, platform) == left


@pytest.mark.parametrize(("name", "version", "local", "tags", "platforms"), [
    ("torch-2.9.1+zz20-cp312-cp312-manylinux_2_28_x86_64.whl", "2.9.1", "zz20", {"cp312"}, {LINUX}),
    ("torch-2.9.1-cp313-cp313t-win_amd64.whl", "2.9.1", "", {"cp313t"}, {WINDOWS}),
    ("torch-2.4.0-cp312-none-macosx_11_0_arm64.whl", "2.4.0", "", {"cp312"}, {MAC}),
    ("ext-1-py3-none-any.whl", "1", "", {"py3"}, EVERYWHERE),
    ("ext-1-py2.py3-none-manylinux_2_24_x86_64.manylinux2014_x86_64.whl", "1", "", {"py2", "py3"}, {LINUX}),
    ("ext-1-cp39-abi3-macosx_10_9_universal2.whl", "1", "", {"cp39-abi3"}, {MAC, "macos_x86_64"}),
    ("ext-1+cu12torch2.8cxx11abiTRUE-cp312-cp312-linux_x86_64.whl", "1", "cu12torch2.8cxx11abitrue", {"cp312"}, {LINUX}),
    ("ext-1-cp312-cp312-win32.whl", "1", "", {"cp312"}, set()),
    ("ext-1-cp312-cp312-win_arm64.whl", "1", "", {"cp312"}, {"windows_aarch64"}),
])
def test_wheel_names(name: str, version: str, local: str, tags: set[str], platforms: set[str]) -> None:
    found = wheel_name(name)
    assert found is not None
    assert (found.version, found.local, found.tags, found.platforms) == (
        version, local, frozenset(tags), frozenset(platforms),
    )


@pytest.mark.parametrize("name", ["ext.whl", "ext-1.tar.gz", "ext-one-py3-none-any.whl"])
def test_no_wheel_names(name: str) -> None:
    assert wheel_name(name) is None
