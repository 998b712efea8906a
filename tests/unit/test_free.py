"""Packages of which a machine decides nothing: when the closer chooses among their releases."""

from __future__ import annotations

from pathlib import Path

import pytest

from accel_env import app_close
from accel_env.errors import ClosureError
from accel_env.lock.closer import Closure, Found, Question, Refusal
from accel_env.matrix.load import Matrix, open_matrix
from accel_env.model import Conflict, Device, Host, Lock, Policy, Problem, Solution
from accel_env.solve.free import is_free, unknown
from accel_env.solve.problem import parse_ask, state

TINY = Path(__file__).parent.parent / "data" / "tiny"
MID = Device("nvidia", "Mid 80", "sm_80", "580.95.05")


@pytest.fixture(scope="module")
def tiny() -> Matrix:
    return open_matrix(TINY)


def problem(matrix: Matrix, *asks: str) -> Problem:
    return state(Host(devices=(MID,)), [parse_ask(text, text) for text in asks], Policy(), matrix)


def closed(found: Question, version: str) -> Closure:
    pins = [line.split(";")[0].partition("==") for line in found.requirements if "==" in line]
    rows = {name: number for name, _, number in pins} | {"arrays": version}
    return Closure(
        tuple(
            Found(name, number, f"{name}-{number}-py3-none-any.whl", f"https://files.example/{name}", "1" * 64, 1)
            for name, number in rows.items()
        ),
        {"uv": "9"},
    )


def lock_of(matrix: Matrix, monkeypatch: pytest.MonkeyPatch, asks: tuple[str, ...], takes: str) -> tuple[Lock, list[Question]]:
    """The lock with a closer that takes one release of arrays alone, and what it was asked."""
    questions: list[Question] = []

    class Script:
        def close(self, question: Question) -> Closure | Refusal:
            questions.append(question)
            pinned = [line for line in question.requirements if line.startswith("arrays==") and line != f"arrays=={takes}"]
            return Refusal(f"outer depends on arrays=={takes} and you require {pinned[0]}") if pinned else closed(question, takes)

    monkeypatch.setattr("accel_env.lock.uv.UvCloser", lambda **_: Script())
    return app_close.close_problem(problem(matrix, *asks), (), matrix, lambda _: None)[0], questions


def test_only_what_no_machine_decides_is_free(tiny: Matrix) -> None:
    assert is_free(tiny, "arrays", "linux_x86_64", "cuda")
    assert is_free(tiny, "server", "linux_x86_64", "cuda") and not is_free(tiny, "server", "linux_x86_64", "rocm")
    assert not is_free(tiny, "torch", "linux_x86_64", "cuda") and not is_free(tiny, "fastattn", "linux_x86_64", "cuda")
    assert not is_free(tiny, "arrays", "macos_aarch64", "cuda")


@pytest.mark.parametrize(("ask", "left"), [("arrays==1.5", True), ("arrays>=2", False), ("arrays", False), ("torch==9", False)])
def test_a_release_that_the_matrix_does_not_hold(tiny: Matrix, ask: str, left: bool) -> None:
    assert bool(unknown([parse_ask(ask, ask)], tiny, "linux_x86_64", "cuda")) is left


def test_ranges_that_leave_nothing_together_are_no_release_either(tiny: Matrix) -> None:
    asks = [parse_ask("arrays<2", "1"), parse_ask("arrays>1.9", "2")]
    assert unknown(asks, tiny, "linux_x86_64", "cuda") == {"arrays"}


def test_an_unknown_release_is_left_to_the_closer_and_said(tiny: Matrix) -> None:
    plan = app_close.answer_of(problem(tiny, "torch", "arrays==1.5"), tiny)
    assert isinstance(plan, Solution) and [ask.name for ask in plan.outside] == ["arrays"]
    assert any("arrays==1.5 (of which the matrix does not hold the release)" in row.message for row in plan.warnings)
    assert "arrays" not in {pick.candidate.name for pick in plan.picks}
    assert isinstance(app_close.answer_of(problem(tiny, "torch==9"), tiny), Conflict)


def test_the_closer_chooses_what_it_would_not_have(tiny: Matrix, monkeypatch: pytest.MonkeyPatch) -> None:
    lock, questions = lock_of(tiny, monkeypatch, ("torch", "arrays", "outer"), "1.7")
    assert len(questions) == 2 and "arrays" in questions[1].requirements
    assert [file.version for file in lock.files if file.name == "arrays"] == ["1.7"]


def test_what_only_came_along_is_left_before_what_was_asked(tiny: Matrix, monkeypatch: pytest.MonkeyPatch) -> None:
    _, questions = lock_of(tiny, monkeypatch, ("torch==3.0.0", "server", "outer"), "1.7")
    assert all("server==1.0" in question.requirements for question in questions)


def test_an_exact_ask_stays_what_it_is(tiny: Matrix, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ClosureError, match=r"arrays 2\.1"):
        lock_of(tiny, monkeypatch, ("torch", "arrays==2.1", "outer"), "1.7")
