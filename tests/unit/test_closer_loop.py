"""Solving and closing in turn, on a small invented matrix and with a closer that answers from a script."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from accel_env import app_close
from accel_env.errors import ClosureError, NoSolution
from accel_env.lock.closer import Closure, Found, Question, Refusal
from accel_env.matrix.load import Matrix, open_matrix
from accel_env.model import Device, Host, Lock, Policy
from accel_env.solve.problem import parse_ask, state

TINY = Path(__file__).parent.parent / "data" / "tiny"
MID = Device("nvidia", "Mid 80", "sm_80", "580.95.05")
Reply = Callable[[Question], "Closure | Refusal"]


class Script:
    """A closer that asks a function; it keeps the questions."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.questions: list[Question] = []

    def close(self, question: Question) -> Closure | Refusal:
        """See Closer."""
        self.questions.append(question)
        return self.reply(question)


Outcome = tuple[Lock, tuple[str, ...], Script]
Run = Callable[..., Outcome]


def file(name: str, version: str = "1.0") -> Found:
    filename = f"{name}-{version}-py3-none-any.whl"
    return Found(name, version, filename, f"https://files.example/{filename}", "1" * 64, 1)


def with_pins(question: Question, *others: Found) -> Closure:
    """A closure that holds what the question pins, and the others."""
    pins = [line.partition("==") for line in question.requirements if "==" in line]
    return Closure((*(file(name, version) for name, _, version in pins), *others), {"uv": "9"})


@pytest.fixture(scope="module")
def tiny() -> Matrix:
    return open_matrix(TINY)


@pytest.fixture
def close(tiny: Matrix, monkeypatch: pytest.MonkeyPatch) -> Run:
    def run(reply: Reply, *asks: str, devices: tuple[Device, ...] = (MID,), python: str = "") -> Outcome:
        script = Script(reply)
        monkeypatch.setattr("accel_env.lock.uv.UvCloser", lambda **_: script)
        parsed = [parse_ask(text, f"argument {n}") for n, text in enumerate(asks, 1)]
        problem = state(Host(devices=devices), parsed, Policy(python=python), tiny)
        lock, _, told = app_close.close_problem(problem, (), tiny, lambda _: None)
        return lock, told, script

    return run


def labels(lock: Lock) -> list[str]:
    return [pick.candidate.label for pick in lock.solution.picks]


def test_torch_is_chosen_before_what_its_twin_on_the_index_needs(close: Run) -> None:
    """The index's torch asks for a compiler that the one of the stack may not need."""

    def reply(question: Question) -> Closure:
        if not question.stand_ins:
            return Closure((file("outer"), file("torch", "3.1.0"), file("kernelc", "2.0")))
        return with_pins(question, file("outer"))

    lock, told, script = close(reply, "outer", devices=(Device("nvidia", "Old 60", "sm_60", "580.95.05"),))
    assert labels(lock) == ["torch 3.1.0+cu126"] and len(script.questions) == 2 and told == ()
    assert [file.name for file in lock.files] == ["outer", "torch"]


def test_what_the_closure_still_needs_is_asked_of_the_solver(close: Run) -> None:
    def reply(question: Question) -> Closure:
        return with_pins(question, file("outer"), *([] if "kernelc==2.0" in question.requirements else [file("kernelc", "1.9")]))

    lock, _, script = close(reply, "torch==3.0.0", "outer")
    assert labels(lock) == ["torch 3.0.0+cu126", "kernelc 2.0"] and len(script.questions) == 2


def test_what_no_solver_can_add_is_said_with_its_name(close: Run) -> None:
    def reply(question: Question) -> Closure:
        return with_pins(question, file("outer"), file("server", "1.0"))

    with pytest.raises(NoSolution) as caught:
        close(reply, "torch>=3.1", "outer")
    text = str(caught.value)
    assert "something asks for server" in text and "`accel-env resolve` with the same words and server" in caught.value.hint


def test_a_refusal_that_speaks_of_no_pick_ends_at_once(close: Run) -> None:
    words = "error: No solution\n  cause: Because all versions of outer have no usable wheels and you require outer, no."
    words += "\nhint: about torch"
    questions: list[Question] = []

    def reply(question: Question) -> Refusal:
        questions.append(question)
        return Refusal(words)

    with pytest.raises(ClosureError) as caught:
        close(reply, "torch==3.1.0", "outer")
    error = caught.value
    assert len(questions) == 1 and error.reference == "closure-refused" and error.exit_code == 5
    assert error.context == tuple(words.splitlines()) and "outer has no wheel that can be used here" in error.message
    assert error.hint == "look at outer first, which the matrix does not know; no other torch would help"


def test_the_torch_that_the_rest_would_take_is_tried_next(close: Run) -> None:
    def reply(question: Question) -> Closure | Refusal:
        if question.requirements[0] == "torch":
            return Closure((file("torch", "3.0.0"), file("outer")))
        if "torch==3.0.0" in question.requirements:
            return with_pins(question, file("outer"))
        return Refusal("outer depends on torch<3.1")

    lock, told, script = close(reply, "torch", "outer")
    assert labels(lock) == ["torch 3.0.0+cu126"] and len(script.questions) == 3
    assert told == ("locked: torch 3.0.0 instead of 3.1.0, which the closure refused; in its words: outer depends on torch<3.1",)


def test_a_reason_that_no_torch_changes_is_the_one_to_show(close: Run) -> None:
    def reply(question: Question) -> Refusal:
        loose = question.requirements[0] == "torch"
        return Refusal("all versions of inner have no usable wheels" if loose else "outer depends on torch<3.1")

    with pytest.raises(ClosureError) as caught:
        close(reply, "torch", "outer")
    assert caught.value.context == ("all versions of inner have no usable wheels",)
    assert "inner has no wheel" in caught.value.message


def test_when_all_are_refused_the_first_refusal_is_shown(close: Run) -> None:
    """`resolve` finds an answer for the same words, so that nothing may be said about what works for them."""
    count = 0

    def reply(question: Question) -> Refusal:
        nonlocal count
        count += 1
        return Refusal(f"refusal {count} of torch, arrays and kernelc")

    with pytest.raises(ClosureError) as caught:
        close(reply, "torch==3.1.0", "outer")
    context = caught.value.context
    assert context[0] == "refusal 1 of torch, arrays and kernelc" and "other choice" in context[1]
    assert "torch 3.1.0+cu130" in caught.value.message and "nothing works" not in str(caught.value)


def test_the_same_need_twice_ends_the_work(close: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accel_env.lock.checks.unpicked", lambda *_: (("kernelc",), ()))
    with pytest.raises(ClosureError, match="was refused") as caught:
        close(with_pins, "torch==3.0.0")
    assert caught.value.context == ("the closure needs kernelc, whose build must fit torch and the device",)


def test_a_free_threaded_python_is_refused_before_any_work(close: Run) -> None:
    with pytest.raises(ClosureError) as caught:
        close(lambda _: pytest.fail("asked"), "torch", python="3.13t")
    assert caught.value.reference == "free-threaded-closure"
