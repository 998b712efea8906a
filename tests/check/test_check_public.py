"""Files of public projects, typed again in a few lines: exactly these findings, on exactly these machines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from accel_env.hostfile import read
from accel_env.judge.files.check import judge_files, know
from accel_env.judge.files.load import load
from accel_env.judge.files.scope import Knowledge
from accel_env.matrix.load import open_matrix

FOLDER = Path(__file__).parent / "public"


def cases() -> Iterator[Any]:
    for path in sorted(FOLDER.glob("*.yaml")):
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert set(document) == {"source", "files", "findings"}, path.name
        for host, rows in document["findings"].items():
            yield pytest.param(document["files"], host, rows, id=f"{path.stem}-{host}")


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return know(open_matrix())


@pytest.mark.parametrize(("files", "host", "rows"), list(cases()))
def test_findings_of_a_public_file(
    files: dict[str, str], host: str, rows: list[str], tmp_path: Path, knowledge: Knowledge, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    machine = read(host, knowledge.matrix)
    found = judge_files([load(name, machine.arch) for name in files], machine, knowledge)
    assert [f"{f.severity} {f.rule} {f.component} {f.where}" for f in found] == rows
