"""The port to a machine: bounded commands, replaying, recording, masking, writing whole or not at all."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from accel_env.errors import InputError, UsageError
from accel_env.system import Completed, Machine, RealSystem, RecordingSystem, ReplayedSystem, System
from accel_env.system.files import read_file, write_file, write_tree
from accel_env.system.layout import decode, encode

PYTHON = sys.executable


def run(code: str, timeout: float = 10.0) -> Completed:
    return RealSystem().run((PYTHON, "-S", "-c", code), timeout)


def test_command_that_works() -> None:
    done = run("import os, sys; print(os.environ['LC_ALL'], sys.stdin.read() == ''); sys.stderr.write('talk')")
    assert (done.status, done.stdout, done.stderr, done.problem) == (0, "C True\n", "talk", "")


def test_missing_command_is_a_value() -> None:
    done = RealSystem().run(("no-such-tool-anywhere", "-L"))
    assert done.missing
    assert done.status is None
    assert done.problem == "no-such-tool-anywhere is not installed"


def test_command_that_may_not_run_is_a_value(tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\n")
    done = RealSystem().run((str(tool),))
    assert not done.missing
    assert "cannot be started" in done.problem


def test_failing_command_says_its_first_words() -> None:
    done = run("import sys; print('Failed to initialize NVML'); sys.exit(18)")
    assert done.status == 18
    assert done.problem.endswith("failed with status 18: Failed to initialize NVML")


def test_hanging_command_is_stopped_with_its_children(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    code = (
        "import subprocess, time; child = subprocess.Popen(['sleep', '60']); "
        f"open({str(pid)!r}, 'w').write(str(child.pid)); time.sleep(60)"
    )
    start = time.monotonic()
    done = run(code, timeout=1.0)
    assert time.monotonic() - start < 5
    assert done.status is None
    assert "did not answer within 1 s" in done.problem
    deadline = time.monotonic() + 2
    while _alive(int(pid.read_text())) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _alive(int(pid.read_text()))


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_command_that_prints_without_end_is_stopped() -> None:
    done = run("import sys\nwhile True: sys.stdout.write('x' * 65536)")
    assert "printed more than 4 MiB" in done.problem
    assert len(done.stdout) <= 4 << 20


def test_child_that_keeps_the_pipe_does_not_hold_us_up() -> None:
    start = time.monotonic()
    done = RealSystem().run(("sh", "-c", "sleep 30 & echo done"))
    assert time.monotonic() - start < 4
    assert (done.status, done.stdout) == (0, "done\n")


def test_files_that_cannot_be_read_are_values(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    system = RealSystem()
    assert system.read_text(str(fifo)) is None
    assert system.read_text(str(tmp_path / "none")) is None
    assert system.listdir(str(tmp_path / "none")) == ()
    assert system.readlink(str(tmp_path)) is None
    assert system.access(str(tmp_path / "none")) == "absent"
    assert system.scan(str(tmp_path / "none"), "x") == ()


def test_scan_finds_versions_in_a_binary(tmp_path: Path) -> None:
    library = tmp_path / "lib.so"
    library.write_bytes(b"\x00GLIBCXX_3.4.9\x00\xff\x00GLIBCXX_3.4.30\x00GLIBCXX_3.4.9\x00")
    assert RealSystem().scan(str(library), r"GLIBCXX_3\.4\.\d+") == ("GLIBCXX_3.4.30", "GLIBCXX_3.4.9")


def test_real_machine_names_itself() -> None:
    machine = RealSystem().machine()
    assert machine.os in ("linux", "macos", "windows")
    assert machine.python.startswith("3.")


@pytest.mark.parametrize("path", ["/sys/bus/pci/devices/0000:01:00.0/vendor", "/a%3Ab", "C:/Windows/x", "/plain"])
def test_paths_survive_the_disk(path: str) -> None:
    assert ":" not in encode(path)
    assert decode(encode(path)) == path


class Fake:
    """A machine in dictionaries."""

    def __init__(self, files: dict[str, str], commands: dict[tuple[str, ...], str]) -> None:
        self.files, self.commands = files, commands

    def machine(self) -> Machine:
        return Machine("linux", "6.1", "x86_64", "3.12")

    def env(self, name: str) -> str | None:
        return "/home/alice/bin:/usr/bin" if name == "PATH" else None

    def read_text(self, path: str) -> str | None:
        return self.files.get(path)

    def access(self, path: str) -> str:
        return "denied" if path == "/dev/kfd" else "ok" if path in self.files else "absent"

    def listdir(self, path: str) -> tuple[str, ...]:
        return ("accel0",) if path == "/sys/class/accel" else ()

    def glob(self, pattern: str) -> tuple[str, ...]:
        return ("/home/alice/bin/python3.13",) if pattern == "/home/alice/bin/python3.*" else ()

    def readlink(self, path: str) -> str | None:
        return "../drivers/xe" if path.endswith("/driver") else None

    def scan(self, path: str, pattern: str) -> tuple[str, ...]:
        return ("GLIBCXX_3.4.30",) if path == "/lib/x.so" else ()

    def run(self, argv: Sequence[str], timeout: float = 10.0) -> Completed:
        words = tuple(argv)
        if words not in self.commands:
            return Completed(words, None, "", "", f"{words[0]} is not installed", missing=True)
        return Completed(words, 0, self.commands[words], "")


SECRETS = {
    "GPU 0: X (UUID: GPU-7fdaf0a5-179b-f636-d15d-daf243e3ff16)": "7fdaf0a5",
    "  MIG 1g.10gb     Device  0: (UUID: MIG-feb88891-0321-5fef-9c87-d4af3b54259e)": "feb88891",
    "Serial Number                    : 1320521012345": "1320521012345",
    '"serial": "ABC-42"': "ABC-42",
    "unique_id 16404946649897475633": "16404946649897475633",
    "link/ether 3c:ec:ef:12:34:56": "3c:ec:ef",
    "NVRM version: Release Build  (bob@buildbox42)": "buildbox42",
    "12:devices:/docker/1b2c3d4e5f60718293a4b5c6d7e8f9000102030405060708090a0b0c0d0e0f10": "1b2c3d4e",
    "node gpu-node-07 is ready": "gpu-node-07",
    "/home/alice/.cache": "alice",
}


@pytest.mark.parametrize("line", SECRETS)
def test_private_details_are_masked(line: str, tmp_path: Path) -> None:
    fake = Fake({"/proc/sys/kernel/hostname": "gpu-node-07.example.org\n", "/x": f"{line}\n"}, {("tool",): f"{line}\n"})
    recorder = RecordingSystem(fake, tmp_path / "out")
    recorder.read_text("/x")
    recorder.run(("tool",))
    recorder.save({"expected.json": line})
    written = "".join(path.read_text() for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert SECRETS[line] not in written


@pytest.mark.parametrize(
    "line",
    ["Bus Location: 0000:01:00.0", "00000000:C5:00.0", "KUBERNETES_SERVICE_HOST: null", "Serial : N/A", "gfx942 30.0.15.1179"],
)
def test_what_probes_need_is_not_masked(line: str, tmp_path: Path) -> None:
    recorder = RecordingSystem(Fake({"/x": line}, {}), tmp_path / "out")
    recorder.read_text("/x")
    recorder.save()
    assert ReplayedSystem(tmp_path / "out").read_text("/x") == line


def test_recording_replays_every_kind_of_answer(tmp_path: Path) -> None:
    fake = Fake({"/sys/bus/pci/devices/0000:01:00.0/vendor": "0x10de\n"}, {("smi", "-L"): "one\ntwo\n", ("smi", "/L"): "three"})
    system: System = RecordingSystem(fake, tmp_path / "out")

    def ask(system: System) -> list[object]:
        home = (system.env("PATH") or "").split(":")[0]
        return [
            system.machine(),
            system.env("HSA"),
            system.read_text("/sys/bus/pci/devices/0000:01:00.0/vendor"),
            system.access("/dev/kfd"),
            system.listdir("/sys/class/accel"),
            len(system.glob(f"{home}/python3.*")),
            system.readlink("/sys/x/driver"),
            system.scan("/lib/x.so", "G"),
            system.run(("smi", "-L")),
            system.run(("smi", "/L")),
            system.run(("none",)).missing,
            system.access("/nowhere"),
        ]

    first = ask(system)
    assert isinstance(system, RecordingSystem)
    system.save()
    assert ask(ReplayedSystem(tmp_path / "out")) == first


class Personal(Fake):
    """A machine whose home lies where no rule would look for it."""

    def env(self, name: str) -> str | None:
        path = "/data/people/alice/bin:/scratch/alice/tools:/opt/secret-project/bin:/usr/bin"
        return {"HOME": "/data/people/alice", "PATH": path}.get(name)

    def glob(self, pattern: str) -> tuple[str, ...]:
        folder = pattern.removesuffix("/python3.*")
        return (f"{folder}/python3.13",) if "alice" in folder or folder == "/usr/bin" else ()


def test_recording_keeps_of_path_what_holds_a_python_and_nobody_s_name(tmp_path: Path) -> None:
    fake = Personal({}, {("/data/people/alice/bin/python3.13", "--version"): "Python 3.13.1"})
    recorder = RecordingSystem(fake, tmp_path / "out")
    for folder in (recorder.env("PATH") or "").split(":"):
        for path in recorder.glob(f"{folder}/python3.*"):
            recorder.run((path, "--version"))
    recorder.save()
    written = "".join(path.read_text() for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert "alice" not in written and "people" not in written and "secret-project" not in written
    again = ReplayedSystem(tmp_path / "out")
    assert again.env("PATH") == "/home/user/bin:/scratch/user/tools:/usr/bin"
    assert again.glob("/home/user/bin/python3.*") == ("/home/user/bin/python3.13",)
    assert again.run(("/home/user/bin/python3.13", "--version")).stdout == "Python 3.13.1"


def test_a_home_that_everybody_has_hides_nothing(tmp_path: Path) -> None:
    for home in ("/", "/root", "/usr", ""):
        fake = Fake({"/usr/bin/x": "/root/usr/bin"}, {})
        fake.env = lambda name, home=home: home if name == "HOME" else None  # type: ignore[method-assign, misc]
        recorder = RecordingSystem(fake, tmp_path / f"out{len(home)}")
        recorder.read_text("/usr/bin/x")
        recorder.save()
        assert ReplayedSystem(tmp_path / f"out{len(home)}").read_text("/usr/bin/x") == "/root/usr/bin"


def test_recording_appears_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = RecordingSystem(Fake({"/x": "1"}, {}), tmp_path / "out")
    recorder.read_text("/x")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(UsageError, match="No space left"):
        recorder.save()
    assert list(tmp_path.iterdir()) == []


def test_recording_never_overwrites(tmp_path: Path) -> None:
    (tmp_path / "keep").write_text("mine")
    with pytest.raises(UsageError, match="not empty"):
        RecordingSystem(Fake({}, {}), tmp_path).save()
    assert (tmp_path / "keep").read_text() == "mine"


def test_broken_recordings_are_input_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no directory"):
        ReplayedSystem(tmp_path / "none")
    (tmp_path / "env.json").write_text("{")
    with pytest.raises(InputError, match=r"env\.json"):
        ReplayedSystem(tmp_path)
    (tmp_path / "env.json").write_text("{}")
    (tmp_path / "commands").mkdir()
    (tmp_path / "commands" / "x.json").write_text(json.dumps({"argv": "smi"}))
    with pytest.raises(InputError, match=r"x\.json: argv"):
        ReplayedSystem(tmp_path)


def test_files_are_written_whole(tmp_path: Path) -> None:
    write_file(tmp_path / "host.json", "{}\n")
    assert read_file(tmp_path / "host.json") == "{}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["host.json"]
    with pytest.raises(UsageError, match="cannot be written"):
        write_file(tmp_path / "no" / "host.json", "x")
    with pytest.raises(UsageError, match="cannot be written"):
        write_tree(tmp_path / "host.json" / "below", {"a": "b"})
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="bytes cannot be read: it is no UTF-8 text"):
        read_file(tmp_path / "bytes")
