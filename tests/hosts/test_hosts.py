"""Every recorded machine gives the expected Host, reads back from its host file, and survives being recorded again."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from accel_env.hostfile import from_mapping, to_mapping
from accel_env.matrix.load import Matrix, open_matrix
from accel_env.probe import probe
from accel_env.system import RecordingSystem, ReplayedSystem

HERE = Path(__file__).parent
MACHINES = sorted(path.parent for path in HERE.glob("*/env.json"))
PRIVATE = (
    re.compile(r"\b(?!0{8})[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b"),
    re.compile(r"(?<![0-9a-fA-F:])(?!00:00:00)(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}(?![0-9a-fA-F:])"),
    re.compile(r"(?m)^unique_id (?!0$)\d+$"),
    re.compile(r"(?:/home/|/Users/)(?!user\b)\w+"),
    re.compile(r"\b(?!builder@host\b)[\w.+-]+@[\w-]+\.\w+"),
)


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return open_matrix()


def test_there_are_enough_machines() -> None:
    vendors = {path.name.split("-")[0] for path in MACHINES}
    assert len(MACHINES) >= 25
    assert {"nvidia", "amd", "intel", "habana", "huawei", "google", "aws", "apple", "none"} <= vendors


@pytest.mark.parametrize("machine", MACHINES, ids=lambda path: path.name)
def test_machine_is_detected(machine: Path, matrix: Matrix, request: pytest.FixtureRequest) -> None:
    found = to_mapping(probe(ReplayedSystem(machine), matrix))
    expected = machine / "expected.json"
    if request.config.getoption("--update-snapshots"):
        expected.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    assert found == json.loads(expected.read_text(encoding="utf-8"))


@pytest.mark.parametrize("machine", MACHINES, ids=lambda path: path.name)
def test_host_file_reads_back(machine: Path, matrix: Matrix) -> None:
    host = probe(ReplayedSystem(machine), matrix)
    assert from_mapping(json.loads(json.dumps(to_mapping(host))), "host.json", matrix) == host


@pytest.mark.parametrize("machine", MACHINES, ids=lambda path: path.name)
def test_recording_a_recording_changes_nothing(machine: Path, matrix: Matrix, tmp_path: Path) -> None:
    recorder = RecordingSystem(ReplayedSystem(machine), tmp_path / "again")
    host = probe(recorder, matrix)
    recorder.save()
    assert probe(ReplayedSystem(tmp_path / "again"), matrix) == host


@pytest.mark.parametrize("machine", MACHINES, ids=lambda path: path.name)
def test_machine_names_its_source_and_nobody(machine: Path) -> None:
    assert len((machine / "source.txt").read_text(encoding="utf-8")) > 40
    for path in machine.rglob("*"):
        if path.is_file() and path.name != "source.txt":
            text = path.read_text(encoding="utf-8")
            assert not [match.group() for pattern in PRIVATE for match in pattern.finditer(text)], path
