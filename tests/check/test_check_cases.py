"""Every fault that `check` must catch, and beside each a near miss that is fine: tests/check/*.yaml."""

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
from accel_env.judge.types import Finding
from accel_env.matrix.load import open_matrix

FOLDER = Path(__file__).parent
KEYS = {"severity", "rule", "component", "where", "fix"}


def cases(kind: str) -> Iterator[Any]:
    for path in sorted(FOLDER.glob("*.yaml")):
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert set(document) == {"host", "caught", "fine"}, path.name
        for number, row in enumerate(document[kind]):
            yield pytest.param({"host": document["host"], **row}, id=f"{path.stem}-{number}")


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return know(open_matrix())


def judged(case: dict[str, Any], folder: Path, knowledge: Knowledge, monkeypatch: pytest.MonkeyPatch) -> tuple[Finding, ...]:
    for name, text in case["files"].items():
        (folder / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(folder)
    host = read(case["host"], knowledge.matrix)
    names = case.get("judge") or list(case["files"])[:1]
    return judge_files([load(name, host.arch) for name in names], host, knowledge)


@pytest.mark.parametrize("case", list(cases("caught")))
def test_faults_are_caught(case: dict[str, Any], tmp_path: Path, knowledge: Knowledge, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = case["finding"]
    assert set(wanted) <= KEYS
    found = judged(case, tmp_path, knowledge, monkeypatch)
    rows = [f for f in found if all(getattr(f, key) == wanted[key] for key in wanted if key != "fix")]
    assert rows, [(f.severity, f.rule, f.component, f.where, f.message) for f in found]
    assert "fix" not in wanted or wanted["fix"] in {fix.kind for f in rows for fix in f.fixes}
    for finding in found:
        assert finding.because and all(reason.source for reason in finding.because), finding


@pytest.mark.parametrize("case", list(cases("fine")))
def test_near_misses_are_fine(
    case: dict[str, Any], tmp_path: Path, knowledge: Knowledge, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = judged(case, tmp_path, knowledge, monkeypatch)
    worst = ("error", "warning", "note") if case.get("clean") else ("error",)
    # what every file without hashes or digests is told is no fault of the near miss
    plain = ("unhashed-install", "mutable-tag")
    bad = [f for f in found if f.severity in worst or (f.severity == "warning" and f.rule not in plain)]
    assert not bad, [(f.severity, f.rule, f.component, f.where, f.message) for f in bad]
