"""The end checks trip where they must, and only there."""

from __future__ import annotations

from dataclasses import replace

import pytest
from packaging.requirements import Requirement
from tests.integration.samples import RULES, Tables, beside, candidate, locked, solution

from accel_env.errors import ClosureError
from accel_env.lock.checks import broken_rules, misplaced, refuse_asks, refuse_stub, unpicked
from accel_env.lock.rules import load_rules
from accel_env.matrix.types import Absent, KnownConflict
from accel_env.model import Ask, LockedFile, Need, Solution, Subject

TORCH = candidate("torch", "2.14.1", "cu126", "house:cu126", stack="cuda-12.6")


def broken(*files: LockedFile, stack: str = "cuda-12.6", tables: Tables | None = None) -> tuple[str, ...]:
    found = solution(TORCH, stack=stack)
    return (*misplaced(found, files, Tables(), RULES), *broken_rules(found, files, tables or Tables(), RULES))


def test_two_owners_of_one_import_name() -> None:
    tables = Tables(modules_={"triton": "triton", "triton-rocm": "triton", "torch": "torch"})
    found = broken(locked("triton", "3.8.0"), locked("triton-rocm", "3.8.0", "house:rocm"), stack="rocm-7.2", tables=tables)
    assert found == ("triton and triton-rocm both install the module `triton`: whichever comes last overwrites the other",)
    assert broken(locked("triton-rocm", "3.8.0", "house:rocm"), stack="rocm-7.2", tables=tables) == ()


def test_what_the_image_brings_counts_as_an_owner() -> None:
    tables = Tables(modules_={"triton": "triton", "triton-hpu": "triton"})
    found = solution(candidate("triton-hpu", "1.0", "hpu", "image"), stack="gaudi-1.23.0")
    assert len(broken_rules(found, (locked("triton", "3.8.0"),), tables, RULES)) == 1


@pytest.mark.parametrize("stack", ["rocm-7.2", "xpu-2025.3"])
def test_cuda_wheels_beside_another_vendors_torch(stack: str) -> None:
    found = broken(locked("nvidia-cudnn-cu13", "9.24.0.43"), stack=stack)
    assert len(found) == 1 and "nvidia-cudnn-cu13 9.24.0.43 from PyPI" in found[0] and "source of closure:a" in found[0]


def test_no_alarm_without_reason() -> None:
    assert broken(locked("nvidia-ml-py", "13.0"), stack="rocm-7.2") == ()
    assert broken(locked("nvidia-cudnn-cu12", "9.1"), stack="cuda-12.6") == ()
    assert broken(locked("nvidia-nccl-cu12", "2.27"), stack="cpu") == ()
    assert broken(locked("rocm", "7.14.0", "house:rocm"), stack="rocm-7.14") == ()


@pytest.mark.parametrize("name", ["rocm", "rocm-sdk-core"])
def test_a_stub_is_refused_by_name_and_the_real_one_named(name: str) -> None:
    with pytest.raises(ClosureError, match=f"{name} cannot come from PyPI: a placeholder") as caught:
        refuse_stub(name, Tables(), RULES)
    assert caught.value.hint == "the house has it" and caught.value.context == ("vendor: source of closure:b",)
    refuse_stub("rocm-smi-tools", Tables(), RULES)
    with pytest.raises(ClosureError, match=name):
        refuse_asks(solution(outside=("einops", name)), Tables(), RULES)


def ask(text: str) -> Solution:
    requirement = Requirement(text)
    return replace(solution(), outside=(Ask(requirement.name, str(requirement.specifier), text=text),))


FLOATING = ["torch-npu", "torch_npu", "torch-npu>=2.9", "torch-npu==2.9.*", "torch-npu>=2.9,==2.9.0", "torch-npu~=2.9.0"]


@pytest.mark.parametrize("text", FLOATING)
def test_a_version_that_must_not_float(text: str) -> None:
    with pytest.raises(ClosureError) as caught:
        refuse_asks(ask(text), Tables(), RULES)
    assert caught.value.reference == "floating-version" and text in caught.value.message and "==" in caught.value.hint


@pytest.mark.parametrize("text", ["torch-npu==2.9.0.post2", "torch-npu===2.9.0", "torch-npux"])
def test_a_version_that_stands(text: str) -> None:
    refuse_asks(ask(text), Tables(), RULES)


def test_one_cuda_major_and_torchs_own() -> None:
    assert broken(locked("nvidia-cudnn-cu12", "9"), locked("nvidia-nccl-cu12", "2"), locked("cuda-toolkit", "12.6.3")) == ()
    found = broken(locked("nvidia-cudnn-cu13", "9"), locked("cuda-toolkit", "13.0.3"), locked("nvidia-nccl-cu12", "2"))
    assert len(found) == 1 and found[0].startswith("cuda-toolkit, nvidia-cudnn-cu13 are of CUDA 13, torch is of 12")
    both = broken(locked("nvidia-a-cu12", "9"), locked("nvidia-b-cu13", "2"), stack="cpu")
    assert [sentence.partition(" is of")[0] for sentence in both] == ["nvidia-a-cu12", "nvidia-b-cu13"]


def test_known_bad_pair_that_no_metadata_names() -> None:
    tables = Tables(conflicts_=(KnownConflict("x", ("torch", "<2.3"), ("numpy", ">=2"), "built for the older ABI", "f:x"),))
    old = broken(locked("torch", "2.2.0+cu121"), locked("numpy", "2.1.0"), tables=tables)
    assert len(old) == 1 and "torch 2.2.0+cu121 and numpy 2.1.0 do not work together: built for the older ABI" in old[0]
    assert broken(locked("torch", "2.3.0"), locked("numpy", "2.1.0"), tables=tables) == ()
    assert broken(locked("torch", "2.2.0"), tables=tables) == ()


def test_what_a_pick_must_not_have_beside_it() -> None:
    item = candidate("flash-attn", "2.8.3", needs=(beside("flash-attn-4", "", "absent"), beside("numpy", ">=3", "absent")))
    files = (locked("flash-attn-4", "4.0.0"), locked("numpy", "2.0"))
    assert broken_rules(solution(item), files, Tables(), RULES) == (
        "flash-attn 2.8.3 must not be installed together with flash-attn-4",
    )


def test_development_builds() -> None:
    url = "https://wheels.example/nightly/x-1.0-py3-none-any.whl"
    assert "removed after a while" in broken(locked("x", "1.0", url=url))[0]
    assert "removed after a while" in broken(locked("torchao", "0.15.0.dev20261101", "house:cpu"))[0]
    assert broken(locked("deepspeed", "0.3.1.dev3")) == (
        "deepspeed 0.3.1.dev3 is a development build, and no release of it has a wheel that can be used here",
    )
    asked = replace(solution(), outside=(Ask("DeepSpeed", "==0.3.1.dev3"),))
    assert misplaced(asked, (locked("deepspeed", "0.3.1.dev3"),), Tables(), RULES) == ()


def test_a_modelled_package_whose_build_matters_goes_back_to_the_solver() -> None:
    tables = Tables(
        builds={
            "torchvision": (candidate("torchvision", "0.29.1", "cu126", "house:cu126"),),
            "torchcodec": (candidate("torchcodec", "0.14", stack="cuda-13.0"),),
            "kernels": (candidate("kernels", "1", needs=(Need(Subject.TORCH, "f:x", ">=2"),)),),
            "numpy": (candidate("numpy", "2.3.5"),),
            "elsewhere": (candidate("elsewhere", "1", "cu126", "house:cu126", platform="linux_aarch64"),),
            "torch": (TORCH,),
        }
    )
    names = ["TorchVision", "torchcodec", "kernels", "numpy", "elsewhere", "torch", "tqdm"]
    assert unpicked(solution(TORCH), names, tables) == (("kernels", "torchcodec", "torchvision"), ())
    # what the index's torch asks for may not be what the stack's asks for
    assert unpicked(solution(), names, tables) == (("torch",), ())


def test_a_compiler_without_a_build_for_the_stack_stays_as_the_index_has_it() -> None:
    soft = Need(Subject.ARCH, "f:x", values=("sm_80",), soft=True)
    linked = Need(Subject.TORCH, "f:x", ">=2")
    tables = Tables(
        builds={
            "torch": (TORCH,),
            "triton": (candidate("triton", "3.8.0", stack="cuda", needs=(soft,)),),
            "kernels": (candidate("kernels", "1", stack="cuda", needs=(linked,)),),
        },
        absent={"triton": (Absent("rocm", "another owns it", "f:x"),)},
    )
    names = ["triton", "kernels"]
    assert unpicked(solution(TORCH, stack="cpu"), names, tables) == (("kernels",), ("triton",))
    assert unpicked(solution(TORCH), names, tables) == (("kernels", "triton"), ())
    assert unpicked(solution(TORCH, stack="rocm-7.2"), names, tables) == (("kernels", "triton"), ())


class Document:
    """A matrix that has one document."""

    def __init__(self, document: dict[str, object]) -> None:
        self._document = document

    def document(self, name: str) -> dict[str, object]:
        """See Matrix."""
        assert name == "closure"
        return self._document


def test_rules_are_read_and_faults_named() -> None:
    from accel_env.errors import InputError

    rule = {"stacks": ["rocm"], "names": ["nvidia-*"], "why": "no", "fact": "a"}
    stub = {"names": ["rocm"], "why": "no", "real": "there", "fact": "x:b"}
    rules = load_rules(
        Document(
            {
                "forbid": [rule],
                "stubs": [stub],
                "exact": [{"names": ["a"], "why": "no", "fact": "c"}],
                "stands_for": [{"names": ["b"], "provides": "c", "why": "so", "fact": "d"}],
                "os_floors": [{"platform": "macos_aarch64", "os": "macOS", "release": "14.0", "fact": "e"}],
            }
        )
    )
    assert rules.forbid[0].fact == "closure:a" and rules.stubs[0].fact == "x:b" and rules.stubs[0].real == "there"
    assert (rules.exact[0].names, rules.stands_for[0].provides, rules.os_floors[0].release) == (("a",), "c", "14.0")
    assert load_rules(Document({})) == type(rules)()
    with pytest.raises(InputError) as caught:
        majors = {"stack": 3, "why": "x", "fact": "a"}
        load_rules(Document({"forbid": [{**rule, "name": "y"}], "majors": [majors], "stubs": [rule]}))
    assert "closure.yaml: forbid[0].name: unknown key" in caught.value.message
    assert "majors[0].stack" in caught.value.context[0]
    assert any("stubs[0]" in line and "real" in line for line in caught.value.context)


def test_a_package_that_names_a_major_without_being_linked_to_it_tells_none() -> None:
    row = {"stack": "cuda", "suffixed": ["nvidia-*-cu{major}"], "except": ["nvidia-compiler-*"], "why": "no", "fact": "a"}
    (rule,) = load_rules(Document({"majors": [row]})).majors
    assert rule.major_of("nvidia-cudnn-cu13", "9.1") == "13"
    assert rule.major_of("nvidia-compiler-libs-cu12", "4.8") == ""
