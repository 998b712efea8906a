"""What is in the folder already: foreign files are left alone, files of an earlier plan go."""

from __future__ import annotations

from pathlib import Path

import pytest

from accel_env.errors import UsageError
from accel_env.lock.write import drop_stale, refuse_foreign

OURS = "# Written by accel-env; do not edit.\n"


def test_a_file_of_somebody_else_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM mine\n")
    with pytest.raises(UsageError, match="Dockerfile was not written by accel-env"):
        refuse_foreign(tmp_path)
    assert (tmp_path / "Dockerfile").read_text() == "FROM mine\n"


def test_a_lone_dockerignore_is_somebody_elses(tmp_path: Path) -> None:
    (tmp_path / ".dockerignore").write_text("*\n")
    with pytest.raises(UsageError):
        refuse_foreign(tmp_path)


def test_what_an_earlier_plan_left_goes(tmp_path: Path) -> None:
    for name in ("Dockerfile", "requirements.lock"):
        (tmp_path / name).write_text(OURS)
    (tmp_path / ".dockerignore").write_text("*\n")
    (tmp_path / "plan.json").write_text('{\n "schema": "accel-env/plan/1"\n}\n')
    (tmp_path / "notes.txt").write_text("mine\n")
    refuse_foreign(tmp_path)
    assert drop_stale(tmp_path, ["requirements.lock", "plan.json"]) == (".dockerignore", "Dockerfile")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["notes.txt", "plan.json", "requirements.lock"]


def test_an_empty_or_missing_folder_is_fine(tmp_path: Path) -> None:
    refuse_foreign(tmp_path)
    refuse_foreign(tmp_path / "missing")
