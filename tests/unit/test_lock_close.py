"""From a solution to a lock, with a closer that answers from a table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.samples import RULES, Tables, candidate, solution

from accel_env.errors import ClosureError, InputError
from accel_env.lock.close import LockOptions, close, cutoff, look_into
from accel_env.lock.closer import Closure, Found, Question, Refusal
from accel_env.matrix.types import KnownConflict
from accel_env.model import Ask, Candidate, Image, Lock, Need, Solution, Subject

NAME = "torch-2.14.1+cu126-cp312-cp312-manylinux_2_28_x86_64.whl"
TORCH = candidate("torch", "2.14.1", "cu126", "house:cu126", stack="cuda-12.6", requires=("numpy",))
NUMPY = Found("numpy", "2.3.5", "numpy-2.3.5-py3-none-any.whl", "https://files.example/numpy-2.3.5-py3-none-any.whl", "5" * 64, 3)


class Answers:
    """A closer that gives one answer and keeps the question."""

    def __init__(self, answer: Closure | Refusal) -> None:
        self.answer = answer
        self.question: Question | None = None

    def close(self, question: Question) -> Closure | Refusal:
        """See Closer."""
        self.question = question
        return self.answer


def answer(*found: Found) -> Answers:
    return Answers(Closure(found, {"uv": "9"}))


@pytest.fixture
def tables() -> Tables:
    made = Tables()
    made.know("house:cu126", NAME, size=11)
    return made


def closed(found: Solution, tables: Tables, closer: Answers, *, offline: bool = False) -> Lock | Refusal:
    return close(found, tables, RULES, closer, LockOptions("2026-11-30", offline))


def test_stand_ins_come_back_as_the_matrixs_files(tables: Tables) -> None:
    closer = answer(NUMPY)
    lock = closed(solution(TORCH), tables, closer)
    assert isinstance(lock, Lock)
    assert [(file.name, file.version, file.index) for file in lock.files] == [
        ("numpy", "2.3.5", "pypi"),
        ("torch", "2.14.1+cu126", "house:cu126"),
    ]
    torch = lock.files[1]
    assert torch.url == f"https://wheels.example/whl/cu126/{NAME.replace('+', '%2B')}"
    assert (torch.sha256, torch.size, torch.requires) == (tables.artifacts["house:cu126"][NAME].sha256, 11, ("numpy",))
    made_by = "accel-env lock --arch x86_64 --stack cuda-12.6 --python 3.12 --target container"
    assert lock.tools == {"uv": "9", "matrix": "2026.11.30", "matrix_digest": tables.digest, "made_by": made_by}
    assert lock.exclude_newer == "2026-11-30"
    assert closer.question is not None and closer.question.stand_ins[0].filename == NAME


def test_a_refusal_names_the_picks(tables: Tables) -> None:
    text = "because of torch==2.14.1+cu126, not of torch-scatter\nhint: numpy is large"
    refusal = closed(solution(TORCH, candidate("numpy", "2.3.5")), tables, Answers(Refusal(text)))
    assert refusal == Refusal(text, (("torch", "2.14.1", "cu126"),))


def test_a_refusal_that_names_no_pick_rests_on_none(tables: Tables) -> None:
    text = "because all versions of torch-scatter have no usable wheels\nhint: for torch"
    assert closed(solution(TORCH), tables, Answers(Refusal(text))) == Refusal(text)


def test_a_broken_rule_is_a_refusal(tables: Tables) -> None:
    tables.know("house:rocm7.2", "torch-2.14.1+rocm7.2-cp312-cp312-linux_x86_64.whl")
    rocm = candidate("torch", "2.14.1", "rocm7.2", "house:rocm7.2", stack="rocm-7.2")
    cuda = Found("nvidia-cudnn-cu12", "9.1", "nvidia_cudnn_cu12-9.1-py3-none-any.whl", "https://files.example/x.whl", "6" * 64)
    refusal = closed(solution(rocm, stack="rocm-7.2"), tables, answer(cuda))
    assert isinstance(refusal, Refusal) and "nvidia-cudnn-cu12 9.1" in refusal.reason and not refusal.picks
    tables.conflicts_ = (KnownConflict("x", ("torch", ">2"), ("numpy", ">=2"), "old ABI", "f:x"),)
    refusal = closed(solution(TORCH), tables, answer(NUMPY))
    assert isinstance(refusal, Refusal) and "old ABI" in refusal.reason and refusal.picks and not refusal.also


def test_a_stub_in_the_closure_is_refused(tables: Tables) -> None:
    stub = Found("rocm", "0.1.0", "rocm-0.1.0-py3-none-any.whl", "https://files.example/x.whl", "6" * 64)
    with pytest.raises(ClosureError, match="rocm cannot come from PyPI"):
        closed(solution(TORCH), tables, answer(NUMPY, stub))


def test_a_stub_that_was_asked_for_is_refused_before_anything_runs(tables: Tables) -> None:
    closer = answer()
    with pytest.raises(ClosureError, match="rocm cannot come from PyPI"):
        closed(solution(TORCH, outside=("rocm",)), tables, closer)
    assert closer.question is None


def test_a_modelled_package_in_the_closure_is_asked_for(tables: Tables) -> None:
    tables.builds = {"torchvision": (candidate("torchvision", "0.29.1", "cu126", "house:cu126"),)}
    vision = Found("torchvision", "0.29.2", "torchvision-0.29.2-py3-none-any.whl", "https://files.example/x.whl", "6" * 64)
    refusal = closed(solution(TORCH, outside=("timm",)), tables, answer(NUMPY, vision))
    assert isinstance(refusal, Refusal) and refusal.also == ("torchvision",)


def test_what_no_stack_builds_stays_and_a_note_says_so(tables: Tables) -> None:
    tables.builds["triton"] = (candidate("triton", "3.8.0", stack="cuda", needs=(Need(Subject.ARCH, "f:x", soft=True),)),)
    triton = Found("triton", "3.9.0", "triton-3.9.0-py3-none-any.whl", "https://files.example/t.whl", "6" * 64)
    lock = closed(solution(TORCH, stack="cpu"), tables, answer(NUMPY, triton))
    assert isinstance(lock, Lock) and [file.name for file in lock.files] == ["numpy", "torch", "triton"]
    assert any(note.startswith("triton 3.9.0 is what PyPI has") for note in lock.notes)


HOUSE = candidate("triton-house", "3.8.0", "any", "house:cu126", stack="rocm")


def test_a_pick_that_owns_the_module_meets_requirements_on_it(tables: Tables) -> None:
    tables.know("house:cu126", "triton_house-3.8.0-cp312-cp312-linux_x86_64.whl")
    closer = Answers(Closure((NUMPY,), {"uv": "9"}, frozenset({"triton"})))
    lock = closed(solution(TORCH, HOUSE), tables, closer)
    assert closer.question is not None
    assert [(item.name, item.version, item.requires) for item in closer.question.substitutes] == [("triton", "3.8.0", ())]
    assert isinstance(lock, Lock) and "triton" not in [file.name for file in lock.files]
    assert "requirements on triton are met by triton-house 3.8.0: it owns the module" in lock.notes
    quiet = closed(solution(TORCH, HOUSE), tables, answer(NUMPY))
    assert isinstance(quiet, Lock) and quiet.notes == ()


def test_a_refusal_of_the_module_is_one_of_its_owner(tables: Tables) -> None:
    tables.know("house:cu126", "triton_house-3.8.0-cp312-cp312-linux_x86_64.whl")
    refusal = closed(solution(TORCH, HOUSE), tables, Answers(Refusal("there is no version of triton==3.4.0")))
    assert isinstance(refusal, Refusal) and refusal.picks == (("triton-house", "3.8.0", "any"),)
    assert refusal.reason.splitlines()[1] == "triton is triton-house 3.8.0 here: it owns the module"


def test_wheels_of_a_system_have_its_floor_and_the_lock_says_so() -> None:
    from accel_env.model import Host

    closer = answer(NUMPY)
    lock = closed(solution(candidate("numpy", "2.3.5"), host=Host(os="macos", arch="aarch64"), image=None), Tables(), closer)
    assert closer.question is not None and closer.question.target.os_floor == "14.0"
    assert isinstance(lock, Lock) and "for macOS 14.0 or newer" in lock.notes


def looked_into(found: Solution, tables: Tables, closer: Answers, refusal: Refusal) -> Refusal:
    return look_into(refusal, found, tables, RULES, closer, LockOptions("2026-11-30"))


def test_behind_a_refusal_of_torch_is_the_torch_that_would_do(tables: Tables) -> None:
    refusal = Refusal("no", (("torch", "2.14.1", "cu126"),))
    asks = (Ask("torch", ">=2", text="torch>=2"),)
    found = solution(TORCH, outside=("fastai",), asks=asks)
    closer = answer(NUMPY, replace(NUMPY, name="torch", version="2.9.1+x"))
    assert looked_into(found, tables, closer, refusal) == replace(refusal, torch="2.9.1")
    assert closer.question is not None and closer.question.requirements == ("torch>=2", "fastai")
    assert not closer.question.stand_ins
    newer = answer(replace(NUMPY, name="torch", version="2.15.0"))
    assert looked_into(found, tables, newer, refusal) == refusal


def test_behind_a_refusal_of_torch_may_be_a_reason_that_no_torch_changes(tables: Tables) -> None:
    tables.builds = {"flash-attn": ()}
    refusal = Refusal("no", (("torch", "2.14.1", "cu126"),))
    found = solution(TORCH, outside=("fastai",))
    deeper = Refusal("all versions of tensorrt have no usable wheels")
    assert looked_into(found, tables, Answers(deeper), refusal) == deeper
    elsewhere = Answers(Refusal("all versions of flash-attn have no usable wheels"))
    assert looked_into(found, tables, elsewhere, refusal) == refusal
    unrelated = Answers(deeper)
    assert looked_into(found, tables, unrelated, Refusal("no", (("numpy", "2", "any"),))).reason == "no"
    assert unrelated.question is None


def test_another_hash_than_the_matrix_knows(tables: Tables) -> None:
    tables.know("pypi", NUMPY.filename, sha256="7" * 64)
    with pytest.raises(ClosureError) as caught:
        closed(solution(TORCH), tables, answer(NUMPY))
    assert caught.value.reference == "artifact-hash-mismatch"
    assert "7" * 64 in str(caught.value) and "5" * 64 in str(caught.value) and NUMPY.filename in str(caught.value)


def test_the_matrix_fills_in_a_hash_that_the_index_lacks(tables: Tables) -> None:
    tables.know("pypi", NUMPY.filename, sha256="7" * 64)
    lock = closed(solution(TORCH), tables, answer(Found("numpy", "2.3.5", NUMPY.filename, NUMPY.url, "")))
    assert isinstance(lock, Lock) and lock.files[0].sha256 == "7" * 64


@pytest.mark.parametrize("known", [True, False])
def test_offline_a_file_without_a_hash_is_refused_before_anything_runs(known: bool) -> None:
    tables, closer = Tables(), answer()
    if known:
        tables.know("house:cu126", NAME, sha256="none")
    with pytest.raises(ClosureError) as caught:
        closed(solution(TORCH), tables, closer, offline=True)
    text = str(caught.value)
    assert caught.value.reference == "artifact-unhashed" and caught.value.exit_code == 5
    assert "torch 2.14.1+cu126" in text
    assert (
        "https://wheels.example/whl/cu126/torch-2.14.1%2Bcu126-cp312" if known else "it lies on https://wheels.example/whl/cu126/"
    ) in text
    assert closer.question is None


def test_offline_a_pypi_file_without_a_hash_is_refused(tables: Tables) -> None:
    with pytest.raises(ClosureError, match=r"numpy-2\.3\.5") as caught:
        closed(solution(TORCH), tables, answer(Found("numpy", "2.3.5", NUMPY.filename, NUMPY.url, "")), offline=True)
    assert NUMPY.url in str(caught.value)


def test_what_has_no_file_cannot_be_locked(tables: Tables) -> None:
    with pytest.raises(ClosureError, match="comes from a place without files"):
        closed(solution(TORCH), tables, answer(Found("x", "1", "", "", "")))


def test_image_picks_are_not_locked() -> None:
    gaudi = candidate("torch", "2.9.0", "hpu", "image", stack="gaudi-1.23.0")
    image = Image("vault.example/gaudi:1.23.0", stack="gaudi-1.23.0", torch="2.9.0")
    closer = answer(NUMPY)
    lock = closed(solution(gaudi, stack="gaudi-1.23.0", image=image), Tables(), closer)
    assert isinstance(lock, Lock) and [file.name for file in lock.files] == ["numpy"]
    assert "the image brings torch 2.9.0; it is not in the lock and must not be replaced" in lock.notes
    assert closer.question is not None and closer.question.stand_ins[0].requires == ()


def note_of(item: Candidate, tables: Tables, stack: str) -> tuple[str, ...]:
    lock = closed(solution(item, stack=stack), tables, answer(NUMPY))
    assert isinstance(lock, Lock)
    return lock.notes


def test_notes_say_what_the_reader_must_know() -> None:
    tables = Tables()
    tables.know("house:xpu", "torch-2.14.0+xpu-cp312-cp312-manylinux_2_28_x86_64.whl", grade="community")
    notes = note_of(candidate("torch", "2.14.0", "xpu", "house:xpu"), tables, "xpu-2026.1")
    assert any("libze1" in note and "the loader is in no wheel" in note for note in notes)
    assert any("known from public lock files (1)" in note for note in notes)


def test_nothing_to_note(tables: Tables) -> None:
    assert note_of(TORCH, tables, "cuda-12.6") == ()


def test_order_does_not_depend_on_the_closers(tables: Tables, tmp_path: Path) -> None:
    first = Found("Zope.x", "1", "zope_x-1-py3-none-any.whl", "https://files.example/z.whl", "1" * 64)
    locks = [closed(solution(TORCH), tables, answer(*order)) for order in ((first, NUMPY), (NUMPY, first))]
    assert locks[0] == locks[1]
    assert isinstance(locks[0], Lock) and [file.name for file in locks[0].files] == ["numpy", "torch", "Zope.x"]


def test_the_cut_off_is_the_matrixs_date() -> None:
    assert cutoff("2026.11.30") == "2026-11-30T00:00:00Z"
    assert cutoff("2026.12.1.2") == "2026-12-01T00:00:00Z"
    for wrong in ("1.0", "2026.13.1", "next", ""):
        with pytest.raises(InputError):
            cutoff(wrong)


def test_a_refusal_is_about_the_picks_that_it_names(tables: Tables) -> None:
    picks = [TORCH, candidate("numpy", "2.5.5"), candidate("sglang-kernel", "0.4"), candidate("sglang", "0.5.23")]
    text = "Because sglang>=0.5.23 depends on numpy>=1.22,<2.5 and you require sglang==0.5.23 and numpy==2.5.5, no."
    for reason, names in ((text, ["numpy", "sglang"]), ("you require SGLang_Kernel==0.4", ["sglang-kernel"])):
        refusal = closed(solution(*picks), tables, Answers(Refusal(reason)))
        assert isinstance(refusal, Refusal) and [name for name, _, _ in refusal.picks] == names
