"""The words in a lock ask for the same lock again, whoever made it and wherever."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest
from tests.integration.samples import candidate, solution

from accel_env import app
from accel_env.app_close import answer_of
from accel_env.cli import quick
from accel_env.cli.request import request
from accel_env.cli.table import Words
from accel_env.lock.words import NEEDED, words_of
from accel_env.matrix.load import Matrix
from accel_env.model import Ask, Host, Solution


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return app.matrix_of()


PROFILES = ["v100-r580", "gb10", "a100-r550", "mi300x", "strix-halo", "arc-pro-b60", "cpu-aarch64"]


@pytest.mark.parametrize("name", PROFILES)
def test_the_words_lead_to_the_same_answer(matrix: Matrix, name: str) -> None:
    asks = ("torch>=2.6", "bitsandbytes", "transformers[torch]")
    first = answer_of(app.problem_of(app.Request(asks=asks, host=name), matrix)[0], matrix)
    assert isinstance(first, Solution)
    words = words_of(first)
    typed = shlex.split(f"{words} -o out")
    read = quick.parse(typed)
    assert read is not None
    again = answer_of(app.problem_of(request(Words(read[0], read[1], typed[1:])), matrix)[0], matrix)
    assert isinstance(again, Solution) and words_of(again) == words
    assert (again.picks, again.stack, again.python, again.image) == (first.picks, first.stack, first.python, first.image)


def test_a_bundle_is_written_as_what_it_came_to(matrix: Matrix) -> None:
    first = answer_of(app.problem_of(app.Request(asks=("@finetune", "torch<2.12"), host="t4-r580"), matrix)[0], matrix)
    assert isinstance(first, Solution)
    words = shlex.split(words_of(first))
    assert words[1:3] == ["bitsandbytes", "transformers"] and "torch<2.12" in words
    assert not {"torch", "flash-attn", "@finetune"} & set(words)


def test_what_the_closure_added_was_not_asked_for() -> None:
    asks = (Ask("peft", "", text="peft>=0.1; python_version>'3'"), Ask("torch", "", text="torch", origin=NEEDED))
    found = solution(candidate("torch", "2.14.1", "cpu"), asks=asks, stack="cpu")
    assert words_of(found).startswith("lock 'peft>=0.1; python_version>'\"'\"'3'\"'\"'' --device cpu --arch x86_64 --stack cpu ")
    policy = replace(found.problem.policy, target="venv", prefer="newest")
    assert words_of(replace(found, problem=replace(found.problem, policy=policy))).endswith(
        "--target venv --glibc 2.39 --prefer newest"
    )


def test_a_system_that_no_option_names_has_no_words() -> None:
    assert words_of(solution(host=Host(os="macos", arch="aarch64"))) == ""
