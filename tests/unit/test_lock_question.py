"""What the closer is asked."""

from __future__ import annotations

from dataclasses import replace

from tests.integration.samples import SLIM, beside, candidate, solution

from accel_env.lock.artifacts import Chosen
from accel_env.lock.question import make_question, refuse_free_threaded, substitutes, target_of, torch_question
from accel_env.lock.rules import OsFloor, Rules, StandsFor
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
