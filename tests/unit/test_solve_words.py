"""What refusals and plans say: each sentence holds for the host that was named."""

from __future__ import annotations

from typing import Any

import pytest

from accel_env.app import Request, explain, explain_not, resolve
from accel_env.errors import UsageError
from accel_env.solve.versions import narrowed


def ask(*asks: str, device: str, **words: Any) -> Any:
    return resolve(Request(asks=asks, devices=(device,), **words))


def reasons(answer: Any) -> str:
    return "\n".join(row["text"] for row in answer["conflict"]["because"])


def changes(answer: Any, kind: str) -> list[str]:
    return [c["spec"] for r in answer["conflict"]["relaxations"] for c in r["change"] if c["kind"] == kind]


@pytest.mark.parametrize(("device", "driver"), [("RTX 5090", "550.54"), ("RTX 5090", "565.57"), ("B200", "550.90")])
def test_a_driver_to_take_is_one_that_knows_the_device(device: str, driver: str) -> None:
    assert changes(ask("torch", device=device, driver=driver), "driver") == [">=570"]


def test_bounds_that_another_implies_are_left_away() -> None:
    assert narrowed((">=525.60.13", ">=570")) == ">=570"
    assert narrowed((">=580", "<590", "!=585", "<600")) == ">=580,<590,!=585"
    assert narrowed(("==6.4.*", "")) == "==6.4.*"


def test_a_package_that_could_bridge_is_no_reason_for_a_refusal() -> None:
    unknown = ask("torch", device="B200", driver="550.90")
    counted = ask("vllm", device="A100", driver="550.90.07", base="vendor")
    assert "bridges" not in reasons(unknown) + reasons(counted)


def test_a_wheel_beside_a_base_is_no_source_build() -> None:
    assert "source build" not in reasons(ask("vllm", device="A100", driver="550.90.07", base="vendor"))


@pytest.mark.parametrize("device", ["Arc B580", "Gaudi3"])
def test_what_a_build_is_for_is_told_by_its_own_source(device: str) -> None:
    rows = ask("flash-attn", device=device)["conflict"]["because"]
    told = [row["fact"] for row in rows if "for cuda" in row["text"]]
    assert told and all(fact.startswith("packages/flash-attn:") for fact in told)


def test_to_leave_out_the_one_ask_is_no_way_out() -> None:
    from accel_env.cli.show_conflict import conflict_lines

    answer = ask("onnxruntime-gpu", "onnx", device="Jetson AGX Orin")
    assert answer["conflict"]["relaxations"] == []
    assert "one of the asks" not in "\n".join(conflict_lines(answer, 100))


def test_what_an_index_lacks_and_an_image_brings_is_no_build_ruled_out() -> None:
    told = explain_not(Request(devices=("MI300X",)), "vllm")["answer"]
    assert "ruled out" in told and "vllm/vllm-openai-rocm:v" in told


def test_what_was_passed_over_is_never_the_pick() -> None:
    answer = explain(Request(asks=("torch", "bitsandbytes"), devices=("H100",), driver="580.95.05"))
    variant = answer["picks"]["bitsandbytes"]["variant"]
    rows = [row["text"] for row in answer["explanation"]]
    told = [text for text in rows if text.startswith("bitsandbytes") and "other picks" in text]
    assert told and all("(cuda" in text and f"({variant})" not in text for text in told)


def test_a_release_of_the_system_is_no_driver() -> None:
    with pytest.raises(UsageError, match=r"36\.4.*L4T") as caught:
        ask("torch", device="Jetson Orin Nano", driver="36.4")
    assert caught.value.reference == "bad-driver"
    assert ask("torch", device="Jetson Orin Nano", driver="540.4.0")["status"] == "ok"


def test_one_card_needs_no_memory_of_the_host() -> None:
    one, two = (ask("torch", device=name, driver="580.95.05")["run_args"] for name in ("H100", "H100:2"))
    assert two == [*one, "--ipc=host"]


def test_a_name_that_is_all_but_another_is_not_sent_to_a_lock() -> None:
    from accel_env.cli.show_plan import plan_lines

    lines = plan_lines(ask("toch", device="T4"), ("toch", "--device", "T4"), 200)
    assert lines[-1].startswith("next: mend the name; or, where toch is what you mean, accel-env lock toch")
    assert plan_lines(ask("einops", device="T4"), ("einops",), 200)[-1] == "next: accel-env lock einops -o DIR"


def test_a_release_to_ask_for_is_one_that_a_torch_has() -> None:
    with pytest.raises(UsageError) as caught:
        ask("torch", device="T4", driver="13")
    stack = caught.value.hint.split("--stack ")[1].split()[0]
    assert resolve(Request(asks=("torch",), devices=("T4",), stack=stack))["status"] == "ok"


def test_an_unknown_host_is_told_where_profiles_are_listed() -> None:
    with pytest.raises(UsageError) as caught:
        resolve(Request(asks=("torch",), host="nosuch"))
    assert "matrix show profiles" in caught.value.hint


def warnings(answer: Any, rule: str) -> str:
    return "\n".join(row["message"] for row in answer["warnings"] if row["rule"] == rule)


def test_the_lower_driver_floor_says_what_it_means_for_the_picks() -> None:
    told = warnings(ask("torch", "bitsandbytes", device="H100", driver="580.95.05"), "driver-minor-compat")
    assert told.endswith("machine code, which these picks have for the device, does: torch, bitsandbytes, triton")


def test_a_note_knows_what_is_picked_beside_it() -> None:
    words = {"device": "H100", "driver": "580.95.05"}
    assert "flashinfer-cubin is picked, flashinfer-jit-cache is not" in warnings(ask("vllm==0.19.1", **words), "note")
    assert "nvcc" not in warnings(ask("vllm", "flashinfer-cubin", "flashinfer-jit-cache", **words), "note")
    assert "nvcc" in warnings(ask("flashinfer-python", **words), "note")


NGC = "nvcr.io/nvidia/pytorch:26.07-py3"


@pytest.mark.parametrize(
    ("words", "reference"),
    [({"base": "vendor", "device": "cpu"}, "base-of-another-stack"), ({"base": NGC, "device": "MI300X"}, "base-of-another-stack"),
     ({"base": NGC, "device": "H100", "target": "venv"}, "base-in-venv"),
     ({"base": f"{NGC}@sha256:zz", "device": "H100"}, "bad-base"),
     ({"base": "vendor@sha256:" + "a" * 64, "device": "H100"}, "bad-base")],
)  # fmt: skip
def test_a_base_that_no_plan_can_stand_on_is_refused(words: Any, reference: str) -> None:
    with pytest.raises(UsageError) as caught:
        ask("torch", **words)
    assert caught.value.reference == reference


def test_a_base_says_what_it_decides() -> None:
    digest = "sha256:" + "a" * 64
    plan = ask("torch", device="H100", driver="590", base=f"{NGC}@{digest}")
    rules = [row["rule"] for row in plan["warnings"]]
    assert plan["image"] == {"ref": NGC, "digest": digest} and "base-digest" in rules and "image-unpinned" not in rules
    idle = ask("numpy", device="H100", base="vendor")["warnings"]
    assert [row["message"].split(":")[0] for row in idle if row["rule"] == "option-without-effect"] == [
        "--base vendor decides no package here"
    ]
