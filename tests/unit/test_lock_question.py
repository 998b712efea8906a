"""What the closer is asked."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.integration.samples import SLIM, beside, candidate, solution

from accel_env.errors import ClosureError
from accel_env.lock.artifacts import Chosen
from accel_env.lock.question import make_question, refuse_free_threaded, target_of, torch_question
from accel_env.lock.rules import Bound, OsFloor, Rules, StandsFor
from accel_env.model import Ask, Host, Need, Policy, Subject

FILE = Chosen("torch-2.14.1+cu126-cp312-cp312-linux_x86_64.whl", "2.14.1+cu126", "https://wheels.example/x.whl")


def test_pypi_picks_are_pins_and_the_rest_stand_ins() -> None:
    torch = candidate("torch", "2.14.1", "cu126", "house:cu126", requires=("filelock", "sympy>=1.13.3"))
    found = solution(torch, candidate("bitsandbytes", "0.50.2", "any"), outside=("einops>=0.8", "peft"))
    question = make_question(found, {"torch": FILE}, Rules(), "2026-11-30", False)
    assert question.requirements == ("bitsandbytes==0.50.2", "einops>=0.8", "peft")
    assert [(item.name, item.version, item.filename, item.requires) for item in question.stand_ins] == [
        ("torch", "2.14.1+cu126", FILE.filename, ("filelock", "sympy>=1.13.3"))
    ]
    assert (question.exclude_newer, question.offline) == ("2026-11-30", False)


def test_extras_of_the_asks_go_along() -> None:
    asks = (Ask("Torch", "", ("opt-einsum",)), Ask("bitsandbytes", "", ("test",)), Ask("torch", ">=2", ("optree",)))
    torch = candidate("torch", "2.14.1", "cu126", "house:cu126")
    question = make_question(solution(torch, candidate("bitsandbytes", "0.50.2"), asks=asks), {"torch": FILE}, Rules(), "", False)
    assert question.requirements == ("bitsandbytes[test]==0.50.2",)
    assert question.stand_ins[0].extras == ("opt-einsum", "optree")


def test_bounds_on_what_nobody_picked() -> None:
    needs = (
        beside("numpy", "<2"),
        beside("setuptools", "<82", soft=True),
        beside("bitsandbytes", ">=0.48"),
        beside("einops", ">=0.6", "always"),
        beside("flash-attn-4", "", "absent"),
        Need(Subject.PACKAGE, "f:x", "<5", "ray", when="present", marker="sys_platform == 'linux'"),
    )
    question = make_question(
        solution(candidate("torch", "2.2.0", needs=needs), candidate("bitsandbytes", "0.50.2")), {}, Rules(), "", False
    )
    assert question.constraints == ("numpy<2", "ray<5; sys_platform == 'linux'")
    assert question.requirements == ("torch==2.2.0", "bitsandbytes==0.50.2", "einops>=0.6")


def test_what_the_image_brings_asks_for_nothing() -> None:
    torch = candidate("torch", "2.9.0+hpu", "hpu", "image", requires=("filelock",))
    question = make_question(solution(torch, stack="gaudi-1.23.0"), {}, Rules(), "", False)
    stand_in = question.stand_ins[0]
    assert (stand_in.version, stand_in.filename, stand_in.requires) == ("2.9.0", "torch-2.9.0-py3-none-any.whl", ())


def test_the_image_decides_the_libc_of_a_container_and_the_host_that_of_an_environment() -> None:
    found = solution(host=Host(libc_family="glibc", libc="2.39"))
    assert (target_of(found).libc, target_of(found).python, target_of(found).platform) == ("2.36", "3.12", "linux_x86_64")
    there = replace(found, problem=replace(found.problem, policy=Policy(target="venv")), image=SLIM)
    assert target_of(there).libc == "2.39"
    unknown = replace(found, image=replace(SLIM, libc=""))
    assert (target_of(unknown).libc_family, target_of(unknown).libc) == ("", "")


def test_an_ask_without_its_text_is_put_together() -> None:
    found = solution()
    found = replace(
        found, outside=(Ask("trl", ">=0.20", ("vllm",)), Ask("x", "", text="x @ https://files.example/x-1-py3-none-any.whl"))
    )
    assert make_question(found, {}, Rules(), "", False).requirements == (
        "trl[vllm]>=0.20",
        "x @ https://files.example/x-1-py3-none-any.whl",
    )


OWNER = Rules(stands_for=(StandsFor(("triton-house",), "triton", "it owns the module", "f:x"),))


def test_the_owner_of_a_module_meets_requirements_on_its_namesake() -> None:
    house = candidate("triton-house", "3.8.0+house", "house", "house:x")
    question = make_question(solution(house), {"triton-house": FILE}, OWNER, "", False)
    assert [(item.name, item.version, item.filename) for item in question.substitutes] == [
        ("triton", "3.8.0", "triton-3.8.0-py3-none-any.whl")
    ]
    both = make_question(solution(house, candidate("triton", "3.9.0")), {"triton-house": FILE}, OWNER, "", False)
    assert both.substitutes == ()
    assert make_question(solution(candidate("triton", "3.9.0")), {}, OWNER, "", False).substitutes == ()


def test_the_oldest_system_that_the_wheels_are_for() -> None:
    rules = Rules(os_floors=(OsFloor("macos_aarch64", "macOS", "14.0", "f:x"),))
    there = solution(host=Host(os="macos", arch="aarch64"), image=None)
    assert make_question(there, {}, rules, "", False).target.os_floor == "14.0"
    assert torch_question(there, rules, "", False).target.os_floor == "14.0"
    assert make_question(solution(), {}, rules, "", False).target.os_floor == ""


def test_what_is_outside_with_torch_left_free() -> None:
    asks = (Ask("Torch", ">=2", (), "Torch>=2"), Ask("bitsandbytes", "", text="bitsandbytes"))
    found = solution(candidate("torch", "2.14.1", "cu126", "house:cu126"), outside=("peft>=0.1",), asks=asks)
    question = torch_question(found, Rules(), "2026-11-30", False)
    assert (question.requirements, question.stand_ins, question.constraints) == (("Torch>=2", "peft>=0.1"), (), ())
    assert torch_question(replace(found, problem=replace(found.problem, asks=())), Rules(), "", False).requirements[0] == "torch"


def test_a_free_threaded_python_is_refused_with_a_way_out() -> None:
    with pytest.raises(ClosureError, match=r"3\.14t cannot be locked yet") as caught:
        refuse_free_threaded("3.14t")
    assert caught.value.hint.endswith("--python 3.14") and caught.value.exit_code == 5
    refuse_free_threaded("3.14")
    refuse_free_threaded("")


def test_bounds_of_the_rules_hold_for_what_nobody_asked_for() -> None:
    rules = Rules(bounds=(Bound("cuda-python>=12.8", "same files", "closure:x"),))
    torch = candidate("torch", "2.14.1")
    assert make_question(solution(torch), {}, rules, "", False).constraints == ("cuda-python>=12.8",)
    asked = solution(torch, asks=(Ask("torch", ""), Ask("Cuda_Python", "<12")))
    assert make_question(asked, {}, rules, "", False).constraints == ()
