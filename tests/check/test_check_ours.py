"""What this project writes for a machine is clean on that machine: every folder of dockerfiles/."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from accel_env.app_cells import load_book
from accel_env.hostfile import read
from accel_env.judge.files.check import judge_files, know
from accel_env.judge.files.load import load
from accel_env.judge.files.scope import Knowledge, Scope
from accel_env.matrix.load import open_matrix

ROOT = Path(__file__).parents[2]


def written() -> Iterator[Any]:
    for name, cell in load_book(open_matrix()).cells.items():
        for file in ("Dockerfile", "requirements.lock"):
            if (ROOT / "dockerfiles" / name / file).is_file():
                yield pytest.param(f"dockerfiles/{name}/{file}", cell.profile, id=f"{name}-{file}")


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return know(open_matrix())


@pytest.mark.parametrize(("path", "profile"), list(written()))
def test_our_own_files_are_clean(path: str, profile: str, knowledge: Knowledge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    host = read(profile, knowledge.matrix)
    document = load(path, host.arch)
    found = judge_files([document], host, knowledge)
    assert not found, [(f.severity, f.rule, f.component, f.where, f.message) for f in found]
    last = Scope(document.scenes[-1], host, knowledge, named=True)
    # what the base image brings, no file of ours names
    brought = json.loads(Path(path).with_name("plan.json").read_text())["picks"]["torch"]["index"] == "image"
    assert brought or (last.torch is not None and last.torch.candidates), "the packages were not seen"
