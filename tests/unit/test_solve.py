"""The search and its refusals on a small invented matrix (tests/data/tiny)."""

from __future__ import annotations

from pathlib import Path

import pytest

from accel_env.matrix.load import Matrix, open_matrix
from accel_env.model import Conflict, Device, Host, Nogood, Policy, Solution
from accel_env.solve.core import minimal_core
from accel_env.solve.finish import answer
from accel_env.solve.problem import parse_ask, state
from accel_env.solve.prune import prune
from accel_env.solve.versions import best_tag, stack_fits, tag_fits

TINY = Path(__file__).parent.parent / "data" / "tiny"
MID = Device("nvidia", "Mid 80", "sm_80", "580.95.05")
OLD = Device("nvidia", "Old 60", "sm_60", "580.95.05", kind="geforce")
NEW = Device("nvidia", "New 120", "sm_120", "580.95.05")


@pytest.fixture(scope="module")
def tiny() -> Matrix:
    return open_matrix(TINY)


def solve(
    matrix: Matrix,
    *asks: str,
    devices: tuple[Device, ...] = (MID,),
    policy: Policy | None = None,
    host: Host | None = None,
    nogoods: tuple[Nogood, ...] = (),
) -> Solution | Conflict:
    machine = host or Host(devices=devices)
    parsed = [parse_ask(text, f"argument {n}") for n, text in enumerate(asks, 1)]
    return answer(prune(state(machine, parsed, policy or Policy(), matrix, nogoods), matrix))


def picks(result: Solution | Conflict) -> dict[str, str]:
    assert isinstance(result, Solution), result
    return {p.candidate.name: f"{p.candidate.version}+{p.candidate.build}" for p in result.picks}


def refused(result: Solution | Conflict) -> Conflict:
    assert isinstance(result, Conflict), picks(result)
    return result


def rules(result: Solution | Conflict) -> set[str]:
    return {w.rule for w in result.warnings}


def drive(device: Device, driver: str) -> Device:
    return Device(device.vendor, device.name, device.arch, driver, kind=device.kind)


def test_newest_torch_in_the_newest_stack_that_the_driver_fully_supports(tiny: Matrix) -> None:
    result = solve(tiny, "torch")
    assert picks(result) == {"torch": "3.1.0+cu130", "kernelc": "2.0+any"}
    assert isinstance(result, Solution) and (result.stack, result.python) == ("cuda-13.0", "3.12")


def test_older_driver_keeps_the_newest_torch_in_an_older_stack(tiny: Matrix) -> None:
    result = solve(tiny, "torch", devices=(drive(MID, "550.54.14"),))
    assert picks(result) == {"torch": "3.1.0+cu126"}
    assert "driver-minor-compat" in rules(result)


def test_arch_and_driver_are_both_needed(tiny: Matrix) -> None:
    assert picks(solve(tiny, "torch", devices=(OLD,))) == {"torch": "3.1.0+cu126"}


def test_driver_that_dropped_the_card_is_a_conflict_of_card_and_driver(tiny: Matrix) -> None:
    result = refused(solve(tiny, "torch", devices=(drive(OLD, "595.10"),)))
    assert {c.text for c in result.core if c.kind == "host"} == {"driver 595.10", "device Old 60 (sm_60)"}
    assert [(c.kind, c.spec) for c in result.relaxations[0].change] == [("driver", "<590")]


def test_exact_pair_is_preferred_over_a_fallback(tiny: Matrix) -> None:
    result = solve(tiny, "torch", "fastattn")
    assert picks(result) == {"torch": "3.0.0+cu126", "fastattn": "2.0+cu12torch3.0"}
    assert "fallback" not in rules(result)


def test_fallback_is_marked(tiny: Matrix) -> None:
    result = solve(tiny, "torch==3.1.0", "fastattn")
    assert picks(result)["torch"] == "3.1.0+cu126"
    assert "fallback" in rules(result)


def test_packages_that_own_the_same_files_exclude_each_other(tiny: Matrix) -> None:
    result = refused(solve(tiny, "fastattn", "otherattn"))
    assert {c.text for c in result.core} == {"fastattn", "otherattn"}
    assert {(c.kind, c.name) for r in result.relaxations for c in r.change} >= {("drop", "fastattn"), ("drop", "otherattn")}


def test_bound_that_counts_only_if_the_package_is_there(tiny: Matrix) -> None:
    assert picks(solve(tiny, "torch==3.0.0")) == {"torch": "3.0.0+cu126"}
    result = refused(solve(tiny, "torch==3.0.0", "arrays>=2"))
    assert {c.text for c in result.core} == {"torch==3.0.0", "arrays>=2"}
    changes = {(c.kind, c.name, c.spec) for r in result.relaxations for c in r.change}
    assert {("package", "torch", "==3.1.0"), ("package", "arrays", "==1.9")} <= changes


def test_metadata_pins_are_needs(tiny: Matrix) -> None:
    assert picks(solve(tiny, "server"))["torch"] == "3.0.0+cu126"
    result = refused(solve(tiny, "server", "torch==3.1.0"))
    assert any("==3.0.0" in b.text for b in result.because)


def test_ptx_needs_the_full_driver_floor(tiny: Matrix) -> None:
    result = refused(solve(tiny, "torch", devices=(drive(NEW, "550.54.14"),)))
    assert any(c.text == "driver 550.54.14" for c in result.core)
    jit = solve(tiny, "torch", devices=(drive(NEW, "565.57.01"),))
    assert picks(jit)["torch"] == "3.1.0+cu126" and "jit-first-run" in rules(jit)


def test_arch_need_holds_for_every_device(tiny: Matrix) -> None:
    assert picks(solve(tiny, "torch", devices=(OLD, MID)))["torch"] == "3.1.0+cu126"
    both = refused(solve(tiny, "torch", "fastattn", devices=(OLD, MID)))
    assert {c.text for c in both.core} == {"fastattn", "device Old 60 (sm_60)"}


def test_what_stands_in_is_said(tiny: Matrix) -> None:
    result = refused(solve(tiny, "torch", "fastattn", devices=(OLD,)))
    told = [b.need if b.need == "instead" else b.text for b in result.because]
    assert any(b.need == "instead" and "built-in attention" in b.text for b in result.because)
    # after what surely keeps it out, before what says less: that an old release is a source build
    assert "has code for" in told[0] and told.index("instead") < next(n for n, t in enumerate(told) if "source build" in t)
    assert ("drop", "fastattn") in {(c.kind, c.name) for r in result.relaxations for c in r.change}


def test_no_accelerator_means_cpu_said_aloud(tiny: Matrix) -> None:
    result = solve(tiny, "torch", devices=())
    assert picks(result) == {"torch": "3.1.0+cpu"} and "cpu-stack" in rules(result)


def test_an_unusable_accelerator_is_no_silent_cpu_answer(tiny: Matrix) -> None:
    odd = Device("nvidia", "Odd", "sm_30", "580.95.05")
    refused(solve(tiny, "torch", devices=(odd,)))
    assert picks(solve(tiny, "torch", devices=(odd,), policy=Policy(stack="cpu"))) == {"torch": "3.1.0+cpu"}


def test_python_markers_decide_whether_a_dependency_counts(tiny: Matrix) -> None:
    assert "kernelc" in picks(solve(tiny, "torch", policy=Policy(python="3.12")))
    assert "kernelc" not in picks(solve(tiny, "torch", policy=Policy(python="3.13")))


def test_python_binds_in_a_venv_and_is_an_item(tiny: Matrix) -> None:
    host = Host(devices=(MID,), python="3.10.4", libc_family="glibc", libc="2.31")
    assert picks(solve(tiny, "torch", host=host, policy=Policy(target="venv")))["torch"] == "3.0.0+cu126"
    result = refused(solve(tiny, "torch==3.1.0", host=host, policy=Policy(target="venv")))
    assert {c.text for c in result.core} == {"torch==3.1.0", "Python 3.10"}
    assert ("python", "==3.12.*") in {(c.kind, c.spec) for r in result.relaxations for c in r.change}


def test_glibc_binds_in_a_venv_alone(tiny: Matrix) -> None:
    host = Host(devices=(MID,), python="3.12", libc_family="glibc", libc="2.17")
    assert picks(solve(tiny, "torch", host=host, policy=Policy(target="venv")))["torch"] == "3.0.0+cu126"
    assert picks(solve(tiny, "torch", host=host))["torch"] == "3.1.0+cu130"
    result = refused(solve(tiny, "torch==3.1.0", host=host, policy=Policy(target="venv")))
    assert ("libc", ">=2.28") in {(c.kind, c.spec) for r in result.relaxations for c in r.change}


def test_source_builds_only_when_asked_for(tiny: Matrix) -> None:
    refused(solve(tiny, "fastattn==1.0"))
    assert picks(solve(tiny, "fastattn==1.0", policy=Policy(source_builds=True)))["fastattn"] == "1.0+source"


def test_a_nogood_moves_the_answer_to_the_next_best(tiny: Matrix) -> None:
    bad = Nogood((("torch", "3.1.0", "cu130"),), "the closure refused it")
    assert picks(solve(tiny, "torch", nogoods=(bad,)))["torch"] == "3.1.0+cu126"
    both = (bad, Nogood((("torch", "3.1.0", "cu126"),), "again"))
    assert picks(solve(tiny, "torch", nogoods=both))["torch"] == "3.0.0+cu126"


def test_lockable_is_preferred_within_two_minor_releases(tiny: Matrix) -> None:
    driver = (drive(MID, "550.54.14"),)
    thirteen = solve(tiny, "torch", devices=driver, policy=Policy(python="3.11"))
    assert picks(thirteen)["torch"] == "3.0.0+cu126", "3.1.0+cu126 has a known hash for cp312 only"
    newest = solve(tiny, "torch", devices=driver, policy=Policy(python="3.11", prefer="newest"))
    assert picks(newest)["torch"] == "3.1.0+cu126" and "lock-needs-network" in rules(newest)


def test_library_kernels_are_a_second_list(tiny: Matrix) -> None:
    lost = Device("amd", "Card 906", "gfx906", "30.10")
    assert picks(solve(tiny, "torch", devices=(Device("amd", "Card 90a", "gfx90a", "30.10"),)))["torch"] == "3.1.0+rocm7.2"
    refused(solve(tiny, "torch", devices=(lost,)))


def test_one_vendor_is_chosen_and_the_other_listed(tiny: Matrix) -> None:
    amd = Device("amd", "Card 90a", "gfx90a", "30.10")
    result = solve(tiny, "torch", devices=(amd, MID, MID))
    assert picks(result)["torch"] == "3.1.0+cu130" and "device-ignored" in rules(result)
    assert picks(solve(tiny, "torch", devices=(amd, MID, MID), policy=Policy(stack="rocm")))["torch"] == "3.1.0+rocm7.2"


def test_integrated_graphics_do_not_shadow_a_card(tiny: Matrix) -> None:
    inside = Device("amd", "Inside", "gfx1036", integrated=True)
    assert picks(solve(tiny, "torch", devices=(inside, MID)))["torch"] == "3.1.0+cu130"


def test_the_core_is_minimal(tiny: Matrix) -> None:
    machine = Host(devices=(drive(NEW, "550.54.14"),))
    asks = [parse_ask(t, "argument") for t in ("arrays", "torch", "kernelc")]
    field = prune(state(machine, asks, Policy(), tiny), tiny)
    assert {i.key for i in minimal_core(field)} == {"ask:1", "device:0", "driver"}


def test_tags() -> None:
    assert tag_fits("cp39-abi3", "3.12") and not tag_fits("cp39-abi3", "3.8") and not tag_fits("cp39-abi3", "3.14t")
    assert tag_fits("cp314t", "3.14t") and not tag_fits("cp314", "3.14t") and not tag_fits("cp314t", "3.14")
    assert tag_fits("py3", "3.14t") and tag_fits("py39", "3.12") and not tag_fits("py39", "3.8")
    assert best_tag(("py3", "cp39-abi3", "cp312"), "3.12") == "cp312"


def test_stacks_compare_by_component() -> None:
    assert stack_fits("rocm-7", "rocm-7.14") and not stack_fits("rocm-7.1", "rocm-7.14") and stack_fits("cuda", "cuda-12.6")
