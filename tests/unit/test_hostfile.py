"""Host files and profiles: what is read, what is looked up, and what is refused with file and key."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from accel_env.errors import InputError, UsageError
from accel_env.hostfile import from_mapping, read, write
from accel_env.matrix.load import Matrix, open_matrix
from accel_env.model import Device, Host


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return open_matrix()


def test_round_trip(tmp_path: Path, matrix: Matrix) -> None:
    host = Host(
        kernel="6.8.0", libc_family="musl", libc="1.2.5", libstdcxx="3.4.30", python="3.14t", pythons=("3.14t", "3.12"),
        devices=(Device("nvidia", "Tesla V100-SXM2-16GB", "sm_70", "580.95.05", 16384, "1db1", False, "datacenter"),
                 Device("intel", "Intel device 8086:0162", "", "", None, "0162", True)),
        engine="docker 28.1.1", container="docker", wsl=True, notes=("one",), provenance={"kernel": "uname"},
    )  # fmt: skip
    write(host, tmp_path / "host.json")
    assert read(str(tmp_path / "host.json"), matrix) == host


def test_what_is_left_out_is_looked_up(matrix: Matrix) -> None:
    rows = [
        {"name": "Tesla V100-SXM2-32GB", "driver": "580.95.05"},
        {"vendor": "intel", "pci_id": "7d67"},
        {"vendor": "amd", "name": "AMD Radeon Graphics (Raphael)", "arch": "gfx1036", "integrated": True},
        {"name": "MI300X", "count": 2},
        {"vendor": "huawei", "name": "Ascend 910B3", "arch": "ascend910b3"},
        {"vendor": "nvidia", "name": "Some Board", "arch": "sm_90"},
    ]
    host = from_mapping({"devices": rows, "glibc": "2.31", "python": "3.12.4"}, "host.json", matrix)
    assert [(device.vendor, device.arch) for device in host.devices] == [
        ("nvidia", "sm_70"), ("intel", "mtl-u"), ("amd", "gfx1036"), ("amd", "gfx942"), ("amd", "gfx942"),
        ("huawei", "ascend910b3"), ("nvidia", "sm_90"),
    ]  # fmt: skip
    assert [device.integrated for device in host.devices] == [False, True, True, False, False, False, False]
    assert (host.os, host.arch, host.libc_family, host.libc, host.python) == ("linux", "x86_64", "glibc", "2.31", "3.12")


def test_a_file_that_says_the_architecture_is_believed(matrix: Matrix) -> None:
    row = {"vendor": "nvidia", "name": "GeForce RTX 4090", "arch": "sm_90", "memory_mib": 1}
    device = from_mapping({"devices": [row]}, "host.json", matrix).devices[0]
    assert (device.arch, device.kind) == ("sm_90", "")
    unknown = {"vendor": "nvidia", "name": "GeForce RTX 4090", "arch": ""}
    assert from_mapping({"devices": [unknown]}, "host.json", matrix).devices[0].arch == ""


def test_every_profile_is_a_host(matrix: Matrix) -> None:
    for name in matrix.profiles():
        host = read(name, matrix)
        assert all(device.arch for device in host.devices), name


BROKEN: list[tuple[Any, str]] = [
    ([], "must hold a JSON object"),
    ({"device": []}, "device is no key of a host file"),
    ({"devices": {}}, "devices must be a list"),
    ({"schema": "accel-env/plan/1"}, "schema must be accel-env/host/1"),
    ({"python": 3.12}, "python must be text in quotes"),
    ({"python": "new"}, "'new' is no Python version"),
    ({"wsl": "yes"}, "wsl must be true or false"),
    ({"libc": "2.31"}, "libc must be an object"),
    ({"libc": {"family": "glibc", "versoin": "2.31"}}, "libc.versoin is no key"),
    ({"libc": {"version": "new"}}, "libc.version 'new' is no version"),
    ({"libc": {"version": "2.31"}, "glibc": "2.31"}, "glibc says the same"),
    ({"notes": "one"}, "notes must be a list of texts"),
    ({"provenance": {"os": 1}}, "provenance must map"),
    ({"devices": "V100"}, "devices must be a list"),
    ({"devices": ["V100"]}, r"devices\[0\] must be an object"),
    ({"devices": [{"driver": "580"}]}, r"devices\[0\] needs a name"),
    ({"devices": [{"name": "V100", "drivers": "580"}]}, r"devices\[0\].drivers is no key"),
    ({"devices": [{"name": "V100", "driver": "banana"}]}, r"devices\[0\].driver 'banana' is no driver version"),
    ({"devices": [{"name": "V100", "driver": 580}]}, r"devices\[0\].driver must be text"),
    ({"devices": [{"name": "V100", "count": 0}]}, r"devices\[0\].count must be a whole number"),
    ({"devices": [{"name": "V100", "memory_mib": "16"}]}, r"devices\[0\].memory_mib must be a whole number"),
    ({"devices": [{"name": "V100", "integrated": 1}]}, r"devices\[0\].integrated must be true"),
    ({"devices": [{"name": "RTX 9999"}]}, r"devices\[0\]: RTX 9999 is no single device"),
    ({"devices": [{"name": "V100, RTX 5090"}]}, "V100, RTX 5090 is no single device"),
    ({"devices": [{"vendor": "nvidia", "name": "RTX 9999"}]}, "RTX 9999 is no single device"),
    ({"devices": [{"arch": "sm_90"}]}, "sm_90 is no single device"),
]


@pytest.mark.parametrize(("value", "says"), BROKEN, ids=lambda value: json.dumps(value)[:40])
def test_broken_host_files_name_file_and_key(value: Any, says: str, tmp_path: Path, matrix: Matrix) -> None:
    path = tmp_path / "host.json"
    path.write_text(json.dumps(value))
    with pytest.raises(InputError, match=says) as caught:
        read(str(path), matrix)
    assert str(path) in caught.value.message
    assert caught.value.hint
    assert caught.value.exit_code == 3


def test_files_that_are_no_json(tmp_path: Path, matrix: Matrix) -> None:
    path = tmp_path / "host.json"
    for data in (b"{", b"\xff\xfe\x00", b"[" * 100000):
        path.write_bytes(data)
        with pytest.raises(InputError, match=r"host\.json"):
            read(str(path), matrix)
    with pytest.raises(InputError, match="is a folder") as caught:
        read(str(tmp_path), matrix)
    assert "detect --record" in caught.value.hint
    with pytest.raises(InputError, match=r"none\.json cannot be read: No such file"):
        read(str(tmp_path / "none.json"), matrix)


def test_a_recording_is_replayed(matrix: Matrix) -> None:
    folder = Path(__file__).parents[1] / "hosts" / "nvidia-v100x2-418.67-rhel7"
    host = read(str(folder), matrix)
    expected = read(str(folder / "expected.json"), matrix)
    assert host.devices == expected.devices and host.libc == expected.libc and host.kernel == expected.kernel


def test_a_broken_recording_is_named(tmp_path: Path, matrix: Matrix) -> None:
    (tmp_path / "env.json").write_text("{")
    with pytest.raises(InputError, match=r"env\.json"):
        read(str(tmp_path), matrix)


def test_neither_file_nor_profile(matrix: Matrix) -> None:
    with pytest.raises(UsageError, match="v100-r58 is neither a host file nor a profile") as caught:
        read("v100-r58", matrix)
    assert "v100-r580" in caught.value.hint
    assert caught.value.exit_code == 2


def test_an_unknown_device_names_the_nearest(tmp_path: Path, matrix: Matrix) -> None:
    with pytest.raises(InputError) as caught:
        from_mapping({"devices": [{"name": "GeForce RTX 5095"}]}, "host.json", matrix)
    assert "RTX 5090" in caught.value.hint
