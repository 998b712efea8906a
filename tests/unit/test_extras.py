"""Builds that extras make: one distribution for every accelerator, as JAX is, beside the invented matrix of tests/data/tiny."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.samples import candidate, solution

from accel_env.lock.question import make_question
from accel_env.lock.rules import Rules
from accel_env.matrix.load import Matrix, open_matrix
from accel_env.matrix.markers import reduce_marker
from accel_env.model import Ask, Candidate, Conflict, Device, Host, Policy, Solution
from accel_env.solve.finish import answer
from accel_env.solve.problem import parse_ask, state
from accel_env.solve.prune import prune

TINY = Path(__file__).parent.parent / "data" / "tiny"
MID = Device("nvidia", "Mid 80", "sm_80", "580.95.05")
OLD = Device("nvidia", "Old 60", "sm_60", "580.95.05", kind="geforce")
FAB = """
schema: accel-env/overlay/1
facts:
  f: {text: invented, source: this test, grade: vendor, checked: "2026-01-01"}
packages:
- package: fab
  module: fab
  summary: a framework whose extras choose the accelerator
  releases:
  - version: "1.0"
    requires: ["fablib", 'fab-gpu12<=1.0,>=1.0; extra == "gpu12"', 'fab-gpu13[libs]; extra == "gpu13"',
               'nothing; extra == "docs"']
    fact: f
    builds:
    - {build: cpu, index: pypi, platforms: [linux_x86_64], stack: cpu, tags: [py3], fact: f}
    - {build: gpu12, index: pypi, platforms: [linux_x86_64], stack: cuda-12.6, tags: [py3], extras: [gpu12, gpu],
       needs: {torch: {when: present, abi: {cuda: ">=12,<13"}, fact: f}}, fact: f}
    - {build: gpu13, index: pypi, platforms: [linux_x86_64], stack: cuda-13.0, tags: [py3], extras: [gpu13],
       needs: {torch: {when: present, abi: {cuda: ">=13,<14"}, fact: f}}, fact: f}
- package: fab-gpu12
  module: fab_gpu12
  summary: its plugin for one major
  releases:
  - version: "1.0"
    fact: f
    builds:
    - {build: any, index: pypi, platforms: [linux_x86_64], stack: cuda-12.6, tags: [py3],
       needs: {arch: {code: [sm_60, sm_80], fact: f}}, fact: f}
- package: fab-gpu13
  module: fab_gpu13
  summary: its plugin for the other
  releases:
  - version: "1.0"
    fact: f
    builds:
    - {build: any, index: pypi, platforms: [linux_x86_64], stack: cuda-13.0, tags: [py3],
       needs: {arch: {code: [sm_80], fact: f}}, fact: f}
- package: fab-lite
  module: fab
  summary: the same module without accelerators
  releases:
  - version: "1.0"
    fact: f
    builds: [{build: cpu, index: pypi, platforms: [linux_x86_64], stack: cpu, tags: [py3], fact: f}]
"""


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Matrix:
    place = tmp_path_factory.mktemp("overlay") / "fab.yaml"
    place.write_text(FAB)
    return open_matrix(TINY, (place,))


def solve(matrix: Matrix, *asks: str, devices: tuple[Device, ...] = (MID,), policy: Policy | None = None) -> Solution | Conflict:
    parsed = [parse_ask(text, f"argument {n}") for n, text in enumerate(asks, 1)]
    return answer(prune(state(Host(devices=devices), parsed, policy or Policy(), matrix), matrix))


def picks(result: Solution | Conflict) -> dict[str, str]:
    assert isinstance(result, Solution), result
    return {p.candidate.name: p.candidate.build for p in result.picks}


def test_the_stack_chooses_the_build_and_the_build_brings_its_plugin(matrix: Matrix) -> None:
    result = solve(matrix, "fab")
    assert picks(result) == {"fab": "gpu13", "fab-gpu13": "any"}
    assert isinstance(result, Solution)
    assert result.stack == "cuda-13.0"
    assert picks(solve(matrix, "fab", devices=())) == {"fab": "cpu"}


def test_a_plugin_without_code_for_the_device_leaves_the_other_build(matrix: Matrix) -> None:
    assert picks(solve(matrix, "fab", devices=(OLD,))) == {"fab": "gpu12", "fab-gpu12": "any"}


@pytest.mark.parametrize("ask", ["fab[gpu12]", "fab[gpu]", "fab[GPU12,docs]"])
def test_an_extra_that_makes_a_build_asks_for_it(matrix: Matrix, ask: str) -> None:
    assert picks(solve(matrix, ask))["fab"] == "gpu12"


def test_an_extra_that_makes_none_says_nothing(matrix: Matrix) -> None:
    assert picks(solve(matrix, "fab[docs]"))["fab"] == "gpu13"


def test_the_label_of_a_build_does_too(matrix: Matrix) -> None:
    assert isinstance(solve(matrix, "fab[cpu]"), Conflict)
    assert picks(solve(matrix, "fab[cpu]", policy=Policy(stack="cpu")))["fab"] == "cpu"


def test_another_distribution_of_the_module_is_no_way_around_an_extra(matrix: Matrix) -> None:
    assert isinstance(solve(matrix, "fab[gpu12]", devices=()), Conflict)


def test_the_major_of_the_stack_that_was_asked_for_counts(matrix: Matrix) -> None:
    assert picks(solve(matrix, "fab", policy=Policy(stack="cuda-12.6")))["fab"] == "gpu12"


def test_a_need_on_torch_counts_where_torch_is(matrix: Matrix) -> None:
    assert "torch" not in picks(solve(matrix, "fab[gpu12]"))
    assert picks(solve(matrix, "fab[gpu12]", "torch"))["torch"] == "cu126"
    assert picks(solve(matrix, "fab", "torch"))["torch"] == "cu130"


def test_a_driver_below_the_major_is_said(matrix: Matrix) -> None:
    old = Device("nvidia", "Mid 80", "sm_80", "470.1")
    result = solve(matrix, "fab", devices=(old,))
    assert isinstance(result, Conflict)
    assert any("525.60.13" in reason.text for reason in result.because)
    near = solve(matrix, "fab", devices=(Device("nvidia", "Mid 80", "sm_80", "530.1"),))
    assert picks(near)["fab"] == "gpu12"
    assert "driver-minor-compat" in {w.rule for w in near.warnings}


def test_markers_of_extras() -> None:
    line = 'sys_platform == "linux" and extra == "gpu12"'
    assert reduce_marker(line, "linux_x86_64", ("gpu12", "gpu")) == ""
    assert reduce_marker(line, "windows_x86_64", ("gpu12",)) is None
    assert reduce_marker(line, "linux_x86_64", ("gpu13",)) is None
    both = 'python_version < "3.13" and extra == "gpu12"'
    assert reduce_marker(both, "linux_x86_64", ("gpu12",)) == 'python_version < "3.13"'


def made(name: str, build: str, extras: tuple[str, ...], requires: tuple[str, ...], module: str = "") -> Candidate:
    return replace(candidate(name, "1.0", build, requires=requires, module=module), extras=extras)


def asked(pick: Candidate, *asks: Ask) -> tuple[str, ...]:
    return make_question(solution(pick, asks=asks), {}, Rules(), "", False).requirements


def test_a_lock_installs_the_extras_that_the_release_has() -> None:
    lines = ('fab-gpu12; extra == "gpu12"', 'click; extra == "cli"')
    pick = made("fab", "gpu12", ("gpu12", "gpu"), lines)
    assert asked(pick, Ask("fab", "")) == ("fab[gpu12]==1.0",)
    assert asked(pick, Ask("fab", "", ("cli", "gpu"))) == ("fab[cli,gpu12]==1.0",)
    assert asked(made("fab", "cpu", (), lines), Ask("fab", "", ("cli",))) == ("fab[cli]==1.0",)


def test_extras_of_the_word_are_those_of_the_distribution_that_owns_it() -> None:
    pick = made("fab-cuda", "any", (), ('toolkit; extra == "ctk"',), module="fab")
    assert asked(pick, Ask("fab", "", ("ctk",))) == ("fab-cuda[ctk]==1.0",)
