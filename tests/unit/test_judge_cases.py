"""The public cases: each gets the answer that its file expects, and no working environment gets an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from accel_env.judge.doctor import judge
from accel_env.judge.findings import finding_mapping
from accel_env.judge.report import read_report
from accel_env.judge.signatures import Table, load, read
from accel_env.matrix.load import Matrix, open_matrix
from accel_env.matrix.store import yaml_texts
from accel_env.solve.versions import allows

TESTS = Path(__file__).resolve().parents[1]
CASES = sorted((TESTS / "cases").glob("*.yaml"))
GOOD = sorted((TESTS / "good").glob("*.yaml"))


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return open_matrix()


@pytest.fixture(scope="module")
def table(matrix: Matrix) -> Table:
    return load(matrix)


def answer(path: Path, matrix: Matrix, table: Table) -> list[dict[str, Any]]:
    environment = read_report(path.read_text(encoding="utf-8"), matrix, path.name)
    return [finding_mapping(finding) for finding in judge(environment, read(environment.texts, matrix, table), matrix)]


def errors(path: Path, matrix: Matrix, table: Table) -> list[dict[str, Any]]:
    return [finding for finding in answer(path, matrix, table) if finding["severity"] == "error"]


def meets(fix: dict[str, Any], wanted: dict[str, Any]) -> bool:
    if fix["kind"] != wanted["kind"] or any(fix.get(key) != wanted[key] for key in ("name", "build") if key in wanted):
        return False
    if "version" in wanted and not allows(fix.get("spec", ""), wanted["version"]):
        return False
    return set(wanted.get("set", ())) <= set(fix.get("set", ())) and set(wanted.get("unset", ())) <= set(fix.get("unset", ()))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_case_gets_its_answer(path: Path, matrix: Matrix, table: Table) -> None:
    expect = yaml_texts(path.read_text(encoding="utf-8"), path.name)["expect"]  # type: ignore[index]
    found = errors(path, matrix, table)
    mine = [f for f in found if f["rule"] == expect["rule"] and f["component"] == expect.get("component", f["component"])]
    assert mine, [(f["rule"], f["component"]) for f in found]
    assert any(meets(fix, expect["fix"]) for finding in mine for fix in finding["fixes"]), mine[0]["fixes"]


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_a_working_environment_has_no_error(path: Path, matrix: Matrix, table: Table) -> None:
    assert not errors(path, matrix, table)


@pytest.mark.parametrize("path", [*CASES, *GOOD], ids=lambda path: path.stem)
def test_every_finding_has_a_source(path: Path, matrix: Matrix, table: Table) -> None:
    for finding in answer(path, matrix, table):
        assert finding["because"], finding["rule"]
        assert all(reason["source"] and reason["grade"] for reason in finding["because"]), finding["rule"]
