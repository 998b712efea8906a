"""The parts of a Host that are no device, and what the command line says instead."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from accel_env.errors import UsageError
from accel_env.matrix.load import Matrix, open_matrix
from accel_env.model import Device, Host
from accel_env.probe import override, probe
from accel_env.system import Completed, ReplayedSystem
from accel_env.system.types import TIMEOUT


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return open_matrix()


class Recorder:
    """Writes a recording in a few words."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.machine: dict[str, str] = {"os": "linux", "release": "6.1.0", "cpu": "x86_64", "python": "3.12"}
        self.env: dict[str, str] = {}
        self.tree: dict[str, Any] = {}

    def command(self, *argv: str, out: str = "", err: str = "", status: int = 0) -> None:
        (self.folder / "commands").mkdir(exist_ok=True)
        problem = "" if status == 0 else f"{argv[0]} failed with status {status}"
        answer = {"argv": argv, "status": status, "stdout": out, "stderr": err, "problem": problem}
        (self.folder / "commands" / f"{len(list((self.folder / 'commands').iterdir()))}.json").write_text(json.dumps(answer))

    def probe(self, matrix: Matrix, *, full: bool = True) -> Host:
        (self.folder / "env.json").write_text(json.dumps({"machine": self.machine, "env": self.env}))
        (self.folder / "tree.json").write_text(json.dumps(self.tree))
        return probe(ReplayedSystem(self.folder), matrix, full=full)


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder(tmp_path)


def test_an_empty_machine_is_an_ordinary_host(recorder: Recorder, matrix: Matrix) -> None:
    host = recorder.probe(matrix)
    assert (host.os, host.arch, host.devices, host.notes, host.engine, host.container) == ("linux", "x86_64", (), (), "", "")
    assert host.python == "3.12"
    assert host.provenance["kernel"] == "uname"


@pytest.mark.parametrize(
    ("argv", "out", "err", "libc"),
    [
        (("getconf", "GNU_LIBC_VERSION"), "glibc 2.31\n", "", ("glibc", "2.31")),
        (("ldd", "--version"), "ldd (Ubuntu GLIBC 2.35-0ubuntu3.8) 2.35\nCopyright\n", "", ("glibc", "2.35")),
        (("ldd", "--version"), "ldd (GNU libc) 2.17\n", "", ("glibc", "2.17")),
        (("ldd", "--version"), "", "musl libc (x86_64)\nVersion 1.2.4_git20230717\nDynamic\n", ("musl", "1.2.4")),
    ],
)
def test_libc_by_command(
    recorder: Recorder, matrix: Matrix, argv: tuple[str, ...], out: str, err: str, libc: tuple[str, str]
) -> None:
    recorder.command(*argv, out=out, err=err, status=1 if err else 0)
    host = recorder.probe(matrix)
    assert (host.libc_family, host.libc) == libc
    assert host.provenance["libc"] == " ".join(argv)


def test_libc_by_loader_and_by_interpreter(recorder: Recorder, matrix: Matrix) -> None:
    recorder.tree = {"present": ["/lib/ld-musl-aarch64.so.1"]}
    assert (recorder.probe(matrix).libc_family, recorder.probe(matrix).libc) == ("musl", "")
    recorder.machine["libc"] = "glibc 2.39"
    assert recorder.probe(matrix).libc == "2.39"


def test_libstdcxx_level_by_name_and_by_symbols(recorder: Recorder, matrix: Matrix) -> None:
    recorder.tree = {"links": {"/usr/lib64/libstdc++.so.6": "libstdc++.so.6.0.19"}}
    assert recorder.probe(matrix).libstdcxx == "3.4.19"
    symbols = {"/usr/lib/x86_64-linux-gnu/libstdc++.so.6": {r"GLIBCXX_3\.4\.\d+": ["GLIBCXX_3.4.9", "GLIBCXX_3.4.30"]}}
    recorder.tree = {"scans": symbols}
    assert recorder.probe(matrix).libstdcxx == "3.4.30"


def test_pythons_on_path_newest_first(recorder: Recorder, matrix: Matrix) -> None:
    recorder.env = {"PATH": "relative:/opt/bin/:/usr/bin"}
    names = [
        "/opt/bin/python3.9",
        "/usr/bin/python3.14t",
        "/usr/bin/python3.14",
        "/usr/bin/python3-config",
        "/usr/bin/python3.11-config",
    ]
    recorder.tree = {"present": names}
    assert recorder.probe(matrix).pythons == ("3.14t", "3.14", "3.12", "3.9")
    assert recorder.probe(matrix, full=False).pythons == ("3.12",)


def test_pythons_that_do_not_run_are_left_out(recorder: Recorder, matrix: Matrix) -> None:
    recorder.env = {"PATH": "/shims:/usr/bin"}
    recorder.tree = {
        "present": ["/shims/python3.13", "/shims/python3.11", "/shims/python3.10", "/usr/bin/python3.10"],
        "denied": ["/usr/bin/python3.9"],
    }
    recorder.command("/shims/python3.13", "--version", err="pyenv: python3.13: command not found", status=127)
    recorder.command("/shims/python3.11", "--version", out="Python 3.11.9\n")
    recorder.command("/shims/python3.10", "--version", status=127)
    recorder.command("/usr/bin/python3.10", "--version", out="Python 3.10.1\n")
    host = recorder.probe(matrix)
    assert host.pythons == ("3.12", "3.11", "3.10")  # of several of one name, one that runs is enough
    assert host.notes == ("on PATH, but not running: python3.13, python3.9",)


class Counting(ReplayedSystem):
    """Remembers the commands that were asked for."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.asked: list[tuple[tuple[str, ...], float]] = []

    def run(self, argv: Sequence[str], timeout: float = TIMEOUT) -> Completed:
        self.asked.append((tuple(argv), timeout))
        return super().run(argv, timeout)


def test_only_a_full_probe_runs_pythons_and_not_for_long(recorder: Recorder, matrix: Matrix) -> None:
    recorder.env, recorder.tree = {"PATH": "/usr/bin"}, {"present": ["/usr/bin/python3.11"]}
    recorder.probe(matrix)
    system = Counting(recorder.folder)
    probe(system, matrix, full=False)
    assert not [argv for argv, _ in system.asked if "python" in argv[0]]
    probe(system, matrix)
    assert [seconds <= 2 for argv, seconds in system.asked if "python" in argv[0]] == [True]


def test_accelerators_are_looked_for_unless_told_otherwise(recorder: Recorder, matrix: Matrix) -> None:
    folder = Path(__file__).parents[1] / "hosts" / "nvidia-v100x2-418.67-rhel7"
    system = Counting(folder)
    host = probe(system, matrix, full=False, accelerators=False)
    assert (host.devices, host.notes) == ((), ())
    assert host.arch == "x86_64" and host.libc
    assert not [argv for argv, _ in system.asked if argv[0] not in ("getconf", "ldd")]
    assert probe(Counting(folder), matrix, full=False).devices


@pytest.mark.parametrize(
    ("tree", "env", "kind"),
    [
        ({"present": ["/.dockerenv"]}, {}, "docker"),
        ({"present": ["/run/.containerenv", "/.dockerenv"]}, {}, "podman"),
        ({"present": ["/.singularity.d/env/x"]}, {}, "apptainer"),
        ({}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
        ({}, {"container": "lxc"}, "lxc"),
        ({}, {}, ""),
    ],
)
def test_container(recorder: Recorder, matrix: Matrix, tree: dict[str, Any], env: dict[str, str], kind: str) -> None:
    recorder.tree, recorder.env = tree, env
    assert recorder.probe(matrix).container == kind


def test_container_by_cgroup(recorder: Recorder, matrix: Matrix, tmp_path: Path) -> None:
    (tmp_path / "root/proc/1").mkdir(parents=True)
    (tmp_path / "root/proc/1/cgroup").write_text("4:memory:/kubepods/burstable/pod0\n")
    assert recorder.probe(matrix).container == "kubepods"


def test_engine_with_runtimes_and_cdi(recorder: Recorder, matrix: Matrix) -> None:
    recorder.command("docker", "version", "--format", "{{.Server.Version}}", out="28.1.1\n")
    runtimes = '{"habana":{"path":"h"},"io.containerd.runc.v2":{"path":"r","status":{"x":"{}"}},"nvidia":{"path":"n"},"runc":{}}'
    recorder.command("docker", "info", "--format", "{{json .Runtimes}}", out=runtimes)
    recorder.tree = {"present": ["/etc/cdi/nvidia.yaml"]}
    assert recorder.probe(matrix).engine == "docker 28.1.1 (runtimes: habana, nvidia; cdi: nvidia)"
    assert recorder.probe(matrix, full=False).engine == ""


def test_engine_that_does_not_answer_is_a_note(recorder: Recorder, matrix: Matrix) -> None:
    recorder.command("docker", "version", "--format", "{{.Server.Version}}", status=1)
    recorder.command("podman", "version", "--format", "{{.Client.Version}}", out="5.4.0\n")
    host = recorder.probe(matrix)
    assert host.engine == "podman 5.4.0"
    assert "docker daemon does not answer" in host.notes[0]


def test_wsl_without_a_tool_says_so(recorder: Recorder, matrix: Matrix) -> None:
    recorder.machine["release"] = "5.15.153.1-microsoft-standard-WSL2"
    recorder.tree = {"present": ["/dev/dxg"]}
    host = recorder.probe(matrix)
    assert host.wsl
    assert any("/dev/dxg" in note for note in host.notes)


# What the command line says instead.

CARD = Device("nvidia", "GeForce RTX 4070", "sm_89", "550.54.14")
IGPU = Device("intel", "Alder Lake-S", "adl-s", integrated=True)


def test_no_words_change_nothing(matrix: Matrix) -> None:
    host = Host(devices=(CARD,))
    assert override(host, matrix=matrix) is host


@pytest.mark.parametrize(
    ("text", "vendor", "arch", "count"),
    [
        ("V100", "nvidia", "sm_70", 1),
        ("V100:2", "nvidia", "sm_70", 2),
        ("Tesla V100-SXM2-32GB", "nvidia", "sm_70", 1),
        ("NVIDIA GeForce RTX 5090", "nvidia", "sm_120", 1),
        ("rtx 5090 : 4", "nvidia", "sm_120", 4),
        ("MI300X:8", "amd", "gfx942", 8),
        ("Arc B580", "intel", "bmg-g21", 1),
        ("gaudi2", "habana", "gaudi2", 1),
        ("sm_90", "nvidia", "sm_90", 1),
        ("gfx942:2", "amd", "gfx942", 2),
        ("bmg-g21", "intel", "bmg-g21", 1),
        ("8xA100", "nvidia", "sm_80", 8),
        ("2x3090", "nvidia", "sm_86", 2),
        ("2 x RTX 3090", "nvidia", "sm_86", 2),
        ("4 × MI300X", "amd", "gfx942", 4),
        ("RTX 3090 x2", "nvidia", "sm_86", 2),
        ("3090 x 2", "nvidia", "sm_86", 2),
        ("A100X", "nvidia", "sm_80", 1),
        ("4090 24gb", "nvidia", "sm_89", 1),
        ("3090 24 GiB:2", "nvidia", "sm_86", 2),
        ("A100 80GB", "nvidia", "sm_80", 1),
        ("RTX 4090 (24GB)", "nvidia", "sm_89", 1),
        ("a v100 gpu", "nvidia", "sm_70", 1),
        ("gpu 4090", "nvidia", "sm_89", 1),
        ("NVIDIA Corporation GA102 [GeForce RTX 3090] (rev a1)", "nvidia", "sm_86", 1),
        ("AMD Radeon RX 7900 XTX (radeonsi, navi31, LLVM 15.0.7, DRM 3.49)", "amd", "gfx1100", 1),
        ("NVIDIA RTX A6000 48GB GDDR6", "nvidia", "sm_86", 1),
        ("GRID A100-40C", "nvidia", "sm_80", 1),
        ("Jetson Orin Nano Super Developer Kit", "nvidia", "sm_87", 1),
        ("Apple GPU", "apple", "apple-silicon", 1),
    ],
)
def test_devices_by_name_or_architecture(text: str, vendor: str, arch: str, count: int, matrix: Matrix) -> None:
    devices = override(Host(devices=(IGPU,)), devices=(text,), matrix=matrix).devices
    assert [(device.vendor, device.arch) for device in devices] == [(vendor, arch)] * count


def test_devices_replace_what_was_found(matrix: Matrix) -> None:
    found = Host(devices=(CARD,), provenance={"devices[0].driver": "nvidia-smi", "kernel": "uname"})
    host = override(found, devices=("P100", "RTX 5090"), driver="R580", python="3.13t", glibc="2.31", arch="arm64", matrix=matrix)
    assert [device.driver for device in host.devices] == ["R580", "R580"]
    assert (host.python, host.libc_family, host.libc, host.arch) == ("3.13t", "glibc", "2.31", "aarch64")
    assert host.provenance["devices[1]"] == "--device"
    assert host.provenance["devices[1].driver"] == "--driver"
    assert host.provenance["kernel"] == "uname"
    assert override(found, devices=("V100",), matrix=matrix).devices[0].driver == ""


@pytest.mark.parametrize(
    ("text", "heard", "left"),
    [("V100, RTX 5090", "RTX 5090", "v100"), ("H100 / V100", "H100", "v100"), ("RTX 3060 xyz", "RTX 3060", "xyz"),
     ("8 H100", "H100", "8")],
)  # fmt: skip
def test_what_is_understood_in_part_is_refused(text: str, heard: str, left: str, matrix: Matrix) -> None:
    with pytest.raises(UsageError, match=f"{heard} is understood, '{left}' is not") as caught:
        override(Host(), devices=(text,), matrix=matrix)
    assert caught.value.reference == "unknown-device" and f"--device '{heard}'" in caught.value.hint.replace("GeForce ", "")


@pytest.mark.parametrize("text", ["cpu", "none", "CPU"])
def test_no_device_can_be_asked_for(text: str, matrix: Matrix) -> None:
    host = override(Host(devices=(CARD,)), devices=(text,), matrix=matrix)
    assert (host.devices, host.provenance["devices"]) == ((), "--device")


@pytest.mark.parametrize(
    "text",
    ["gpu", "GPU 0", "nvidia", "NVIDIA GPU", "amd", "graphics", "AMD Radeon Graphics", "tesla", "geforce", "gpu 24gb",
     "2 x GPU", "server", "card", "accelerator", "laptop gpu", "m"],
)  # fmt: skip
def test_words_that_name_no_product_are_no_device(text: str, matrix: Matrix) -> None:
    with pytest.raises(UsageError, match="names no product") as caught:
        override(Host(), devices=(text,), matrix=matrix)
    assert caught.value.reference == "no-product"
    assert "for example" in caught.value.hint and "detect" in caught.value.hint


def test_the_example_of_a_product_is_of_the_vendor_that_was_named(matrix: Matrix) -> None:
    with pytest.raises(UsageError) as caught:
        override(Host(), devices=("intel gpu",), matrix=matrix)
    example = caught.value.hint.split("'")[1]
    assert [row.vendor for row in matrix.devices() if row.name == example] == ["intel"]


@pytest.mark.parametrize(
    "text", ["A100:two", "A100:x", "A100:", "A100:0", "0 x A100", "A100:-1", "A100:2:3", "2xA100:2", "A100:99999"]
)
def test_counts_that_are_none(text: str, matrix: Matrix) -> None:
    with pytest.raises(UsageError) as caught:
        override(Host(), devices=(text,), matrix=matrix)
    assert caught.value.reference == "bad-count" and text in caught.value.message and "NAME:COUNT" in caught.value.hint


def cuda(matrix: Matrix) -> str:
    """A release whose number is below every driver."""
    return next(release.version for release in matrix.stacks()["cuda"].releases if release.version.startswith("12."))


def test_a_stack_release_is_no_driver(matrix: Matrix) -> None:
    release = cuda(matrix)
    for text in (release, f"{release}.1", release.partition(".")[0]):
        with pytest.raises(UsageError, match="looks like a CUDA version") as caught:
            override(Host(), devices=("V100",), driver=text, matrix=matrix)
        assert caught.value.reference == "bad-driver" and "nvidia-smi" in caught.value.message
    assert f"--stack cuda-{release}" in _hint(matrix, release)


def _hint(matrix: Matrix, driver: str) -> str:
    with pytest.raises(UsageError) as caught:
        override(Host(devices=(CARD,)), driver=driver, matrix=matrix)
    return caught.value.hint


def test_drivers_that_only_look_like_a_release_are_taken(matrix: Matrix) -> None:
    old, amd, gaudi = "390.157", matrix.stacks()["rocm"].releases[-1].version, matrix.stacks()["gaudi"].releases[0].version
    for device, driver in (("V100", old), ("MI100", amd), ("Gaudi2", gaudi)):
        assert override(Host(), devices=(device,), driver=driver, matrix=matrix).devices[0].driver == driver


def test_driver_is_for_the_discrete_card(matrix: Matrix) -> None:
    host = override(Host(devices=(IGPU, CARD)), driver="535.161.08", matrix=matrix)
    assert [device.driver for device in host.devices] == ["", "535.161.08"]
    assert override(Host(devices=(IGPU,)), driver="25.18.33578.15", matrix=matrix).devices[0].driver == "25.18.33578.15"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"devices": ("RTX 9999",)}, "RTX 9999 is no single device"),
        ({"devices": ("my gpu",)}, "my gpu is no single device"),
        ({"devices": ("V100:0",)}, "the count"),
        ({"devices": ("",)}, "no single device"),
        ({"devices": ("sm_999",)}, "sm_999"),
        ({"driver": "banana"}, "banana is no driver version"),
        ({"driver": "580", "devices": ("cpu",)}, "no device that it could drive"),
        ({"driver": "580", "devices": ("V100", "MI300X")}, "amd or nvidia"),
        ({"python": "3"}, "--python 3"),
        ({"python": "3.12.1"}, "--python"),
        ({"glibc": "new"}, "--glibc new"),
        ({"arch": "sparc"}, "--arch sparc"),
    ],
)
def test_words_that_make_no_sense(words: dict[str, Any], says: str, matrix: Matrix) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        override(Host(), matrix=matrix, **words)
    assert caught.value.hint


def test_unknown_device_names_the_nearest(matrix: Matrix) -> None:
    with pytest.raises(UsageError) as caught:
        override(Host(), devices=("GeForce RTX 5095",), matrix=matrix)
    assert "RTX 5090" in caught.value.hint
