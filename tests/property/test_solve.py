"""Properties of the search over the whole matrix: profiles times asks."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_env.hostfile import read
from accel_env.matrix.load import Matrix, open_matrix
from accel_env.matrix.markers import marker_holds
from accel_env.model import Conflict, Policy, Problem, Solution, Subject
from accel_env.solve.core import minimal_core
from accel_env.solve.field import Field
from accel_env.solve.finish import answer
from accel_env.solve.plan import plan
from accel_env.solve.problem import parse_ask, state
from accel_env.solve.prune import prune
from accel_env.solve.search import feasible
from accel_env.solve.slot import satisfies
from accel_env.solve.versions import tag_fits

MATRIX = open_matrix()
PACKAGES = sorted(MATRIX.package_names())
TORCHES = [f"torch=={v}" for v in dict.fromkeys(c.version for c in MATRIX.candidates("torch", "linux_x86_64"))]
RUNS = settings(max_examples=25, deadline=None, derandomize=True)


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return MATRIX


problems = st.builds(
    lambda profile, asks, python, target: (profile, tuple(dict.fromkeys(asks)), python, target),
    st.sampled_from(sorted(MATRIX.profiles())),
    st.lists(st.sampled_from([*PACKAGES, *TORCHES, "torch", "torch", "bitsandbytes", "flash-attn"]), min_size=1, max_size=3),
    st.sampled_from(["", "3.10", "3.12", "3.14"]),
    st.sampled_from(["container", "container", "venv"]),
)


def make(drawn: tuple[str, tuple[str, ...], str, str]) -> tuple[Problem, Field]:
    profile, asks, python, target = drawn
    policy = Policy(python=python, target=target)
    problem = state(read(profile, MATRIX), [parse_ask(a, "argument") for a in asks], policy, MATRIX)
    return problem, prune(problem, MATRIX)


@RUNS
@given(problems)
def test_every_pick_meets_every_need(drawn: tuple[str, tuple[str, ...], str, str]) -> None:
    _, field = make(drawn)
    result = answer(field)
    if not isinstance(result, Solution):
        return
    picked = [p.candidate for p in result.picks]
    modules = MATRIX.modules()
    assert len({c.module for c in picked}) == len(picked), "one owner of an import name"
    for candidate in picked:
        assert not field.ground.judge(candidate).failures
        assert not candidate.tags or any(tag_fits(t, result.python) for t in candidate.tags)
        for need in candidate.needs:
            if need.soft or need.subject not in (Subject.TORCH, Subject.PACKAGE):
                continue
            name = "torch" if need.subject is Subject.TORCH else need.name
            there = [c for c in picked if c.module == modules.get(name)]
            if name not in modules or not marker_holds(need.marker, candidate.platform, result.python):
                continue
            assert there or need.when != "always", f"{candidate.label} needs {name}"
            assert all(satisfies(c, need) for c in there), f"{candidate.label}: {need}"


@RUNS
@given(problems)
def test_without_any_member_of_the_core_there_is_a_solution(drawn: tuple[str, tuple[str, ...], str, str]) -> None:
    _, field = make(drawn)
    if feasible(field, field.everything):
        return
    core = minimal_core(field)
    active = field.base
    for item in core:
        active |= item.bit
    assert not feasible(field, active), "the core alone is enough to fail"
    for item in core:
        assert feasible(field, active & ~item.bit), f"{item.text} is not needed in the core"


@RUNS
@given(problems)
def test_ledger_and_live_make_the_whole(drawn: tuple[str, tuple[str, ...], str, str]) -> None:
    _, field = make(drawn)
    whole = sorted(e.candidate.label + e.candidate.index for s in field.slots.values() for e in s.entries)
    parts = [c.label + c.index for c in field.live()] + [r.candidate.label + r.candidate.index for r in field.ledger()]
    assert sorted(parts) == whole
    platform = field.problem.host.platform
    for module in field.slots:
        names = [n for n, m in MATRIX.modules().items() if m == module]
        assert len(field.slots[module].entries) == sum(len(MATRIX.candidates(n, platform)) for n in names)


@RUNS
@given(problems)
def test_the_same_problem_gives_the_same_plan_and_every_reason_has_a_source(drawn: tuple[str, tuple[str, ...], str, str]) -> None:
    problem, field = make(drawn)
    first, second = plan(answer(field), MATRIX), plan(answer(prune(problem, MATRIX)), MATRIX)
    assert first == second
    reasons = [b for p in first.get("picks", {}).values() for b in p["because"]] + first.get("conflict", {}).get("because", [])
    assert all(b["source"] and b["grade"] for b in reasons if b["fact"])


@RUNS
@given(problems)
def test_every_relaxation_was_solved(drawn: tuple[str, tuple[str, ...], str, str]) -> None:
    _, field = make(drawn)
    result = answer(field)
    if isinstance(result, Conflict):
        assert all(r.gives for r in result.relaxations)
        assert result.core
