"""Reports, what a plan lets one expect, and evidence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree

import pytest

from accel_env.errors import InputError, UsageError, VerifyError
from accel_env.matrix.evidence import keep, lift, read_evidence
from accel_env.matrix.load import Matrix
from accel_env.smoke.expect import expected, locked, read_plan
from accel_env.smoke.report import failures, grade, junit, levels_to, parse


def check(level: str, verdict: str, name: str = "x", detail: str = "") -> dict[str, Any]:
    return {"level": level, "name": name, "verdict": verdict, "detail": detail, "seconds": 1.5}


def a_report(*checks: dict[str, Any], device: str = "") -> dict[str, Any]:
    return {"schema": "accel-env/smoke/1", "levels": ["static", "import", "device"], "device": device, "checks": list(checks),
            "environment": {"python": "3.12.1", "libc": "glibc 2.36"}}  # fmt: skip


BNB = {"version": "0.50", "build": "any", "index": "pypi", "variant": "cuda126", "tag": "py3"}
PLAN: dict[str, Any] = {
    "schema": "accel-env/plan/1",
    "status": "ok",
    "matrix": {"version": "2026.11.30", "digest": "sha256:0"},
    "host": {"os": "linux", "arch": "x86_64", "devices": [{"vendor": "nvidia", "name": "V100", "arch": "sm_70"}] * 2},
    "stack": {"name": "cuda", "version": "12.6"},
    "python": "3.12",
    "picks": {
        "torch": {"version": "2.9.0", "build": "cu126", "index": "https://x/cu126", "tag": "cp312", "evidence": "metadata"},
        "bitsandbytes": {**BNB, "evidence": "metadata", "because": []},
    },
}  # fmt: skip


def test_a_report_is_found_behind_other_output() -> None:
    text = json.dumps(a_report(check("static", "pass")))
    assert parse(f"a warning of somebody\n{text}\n")["checks"][0]["name"] == "x"


@pytest.mark.parametrize("text", ["", "no braces", "{", '{"schema": "other"}', '{"schema": "accel-env/smoke/1", "checks": [{}]}'])
def test_no_report_is_an_error_that_shows_what_was_said(text: str) -> None:
    with pytest.raises(VerifyError, match="gave no report") as caught:
        parse(text, "line\npython3: not found\n")
    assert caught.value.exit_code == 7
    assert caught.value.context[-1] == "python3: not found"


@pytest.mark.parametrize(
    ("checks", "device", "wanted"),
    [
        ([("static", "pass"), ("static", "skip")], "", "inspected"),
        ([("static", "pass"), ("import", "pass")], "", "imported"),
        ([("static", "pass"), ("import", "fail")], "", "inspected"),
        ([("static", "fail"), ("import", "pass")], "", ""),
        ([("static", "pass"), ("import", "skip")], "", "inspected"),
        ([("static", "pass"), ("import", "pass"), ("device", "pass")], "", "ran"),
        ([("static", "pass"), ("import", "pass"), ("device", "pass")], "cpu", "imported"),
        ([("import", "pass")], "", ""),
        ([], "", ""),
    ],
)
def test_the_grade_is_of_what_passed_with_all_below(checks: list[tuple[str, str]], device: str, wanted: str) -> None:
    assert grade(a_report(*(check(*one) for one in checks), device=device)) == wanted


def test_levels_add_up() -> None:
    assert levels_to("static") == ("static",)
    assert levels_to("device") == ("static", "import", "device")


def test_junit_has_every_check_and_only_what_xml_can_hold() -> None:
    found = a_report(
        check("static", "pass", "a"),
        check("import", "fail", "b <&>", 'said "\x1b[31m\x00no\ud800"'),
        check("import", "skip", "c", "gone"),
    )  # fmt: skip
    root = ElementTree.fromstring(junit(found, "dir <x>"))
    assert [(suite.get("name"), suite.get("tests"), suite.get("failures"), suite.get("skipped")) for suite in root] == [
        ("static", "1", "0", "0"), ("import", "2", "1", "1"), ("device", "0", "0", "0"),
    ]  # fmt: skip
    failure = root.find(".//failure")
    assert failure is not None
    assert failure.text == 'said "?[31m?no?"'
    assert [case.get("classname") for case in root.iter("testcase")] == ["smoke.static", "smoke.import", "smoke.import"]
    assert [one["name"] for one in failures(found)] == ["b <&>"]


LOCK = """# note
bitsandbytes==0.50 \\
    --hash=sha256:00
torch @ https://x/whl/cu126/torch-2.9.0%2Bcu126-cp312-cp312-manylinux_2_28_x86_64.whl \\
    --hash=sha256:11
typing-extensions==4.1 \\
    --hash=sha256:22
"""


def test_a_plan_and_its_lock_say_what_to_expect() -> None:
    assert locked(LOCK) == {"bitsandbytes": "0.50", "torch": "2.9.0+cu126", "typing-extensions": "4.1"}
    assert expected(PLAN, LOCK) == {
        "python": "3.12", "devices": ["sm_70", "sm_70"], "picks": ["bitsandbytes", "torch"],
        "versions": {"bitsandbytes": "0.50", "torch": "2.9.0+cu126", "typing-extensions": "4.1"},
        "libraries": ["bitsandbytes/libbitsandbytes_cuda126.so"],
    }  # fmt: skip


def test_what_an_image_brings_is_expected_by_its_public_version() -> None:
    plan = {**PLAN, "picks": {"torch": {"version": "2.9.0+hpu.1", "build": "hpu", "index": "image"}}}
    assert expected(plan, "numpy==2.0\n")["versions"] == {"torch": "2.9.0", "numpy": "2.0"}
    assert expected(PLAN, "")["versions"] == {"torch": "2.9.0", "bitsandbytes": "0.50"}


def test_a_plan_is_read_from_a_folder_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    assert read_plan(str(tmp_path)) == (PLAN, "")
    (tmp_path / "requirements.lock").write_text(LOCK)
    assert read_plan(str(tmp_path / "plan.json")) == (PLAN, LOCK)


@pytest.mark.parametrize("text", ["{", "[]", '{"status": "conflict"}'])
def test_what_is_no_plan_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(InputError) as caught:
        read_plan(str(tmp_path))
    assert caught.value.exit_code == 3


def kept(root: Path, level: str, device: dict[str, Any] | None = None, plan: dict[str, Any] = PLAN) -> Path:
    (root / "schema").mkdir(parents=True, exist_ok=True)
    report = {**a_report(check("static", "pass"), check("import", "skip")), "evidence": level, "plan": "sha256:" + "1" * 64}
    return Path(keep(str(root), plan, report, device or {}, "2026-12-01"))


def matrix_at(root: Path) -> Matrix:
    """A matrix in a folder, in which no file was read."""

    class Stub:
        def inspected(self, _: str) -> dict[Any, Any]:
            return {}

    stub = Stub()
    vars(stub)["root"] = str(root)
    return cast("Matrix", stub)


def lifted(root: Path, **changes: Any) -> dict[str, str]:
    plan = {**PLAN, **changes}
    return {name: pick["evidence"] for name, pick in lift(plan, matrix_at(root))["picks"].items()}


def test_evidence_lifts_the_picks_of_the_same_plan(tmp_path: Path) -> None:
    assert lifted(tmp_path) == {"torch": "metadata", "bitsandbytes": "metadata"}
    path = kept(tmp_path, "imported")
    assert path.name.startswith("cuda-12.6-py3.12-")
    assert lifted(tmp_path) == {"torch": "imported", "bitsandbytes": "imported"}
    assert PLAN["picks"]["torch"]["evidence"] == "metadata", "the plan itself is left alone"
    row = json.loads(path.read_text())
    assert row["picks"]["bitsandbytes"] == {
        "version": "0.50",
        "build": "any",
        "index": "pypi",
        "variant": "cuda126",
        "tag": "py3",
    }
    assert row["checks"] == {"pass": 1, "skip": ["import x"]}


def test_evidence_is_of_one_python_platform_build_and_torch(tmp_path: Path) -> None:
    kept(tmp_path, "imported")
    nothing = {"torch": "metadata", "bitsandbytes": "metadata"}
    assert lifted(tmp_path, python="3.11") == nothing
    assert lifted(tmp_path, host={**PLAN["host"], "arch": "aarch64"}) == nothing
    other_torch = {**PLAN["picks"], "torch": {**PLAN["picks"]["torch"], "build": "cu128"}}
    assert lifted(tmp_path, picks=other_torch) == nothing
    other_variant = {**PLAN["picks"], "bitsandbytes": {**PLAN["picks"]["bitsandbytes"], "variant": "cuda128"}}
    assert lifted(tmp_path, picks=other_variant) == {"torch": "imported", "bitsandbytes": "metadata"}
    assert lifted(tmp_path, stack={"name": "rocm", "version": "7.2"}) == nothing


def test_ran_holds_for_the_devices_that_it_ran_on(tmp_path: Path) -> None:
    kept(tmp_path, "ran", {"name": "V100", "arch": "sm_70", "driver": "580", "count": 2, "device": "cuda"})
    assert lifted(tmp_path)["torch"] == "ran"
    elsewhere = {**PLAN["host"], "devices": [{"arch": "sm_80"}]}
    assert lifted(tmp_path, host=elsewhere)["torch"] == "imported"
    assert lifted(tmp_path, host={**PLAN["host"], "devices": []})["torch"] == "imported"


def test_the_best_evidence_counts_and_the_same_is_kept_once(tmp_path: Path) -> None:
    first, again = kept(tmp_path, "inspected"), kept(tmp_path, "inspected")
    assert first == again
    kept(tmp_path, "imported")
    assert len(read_evidence(str(tmp_path))) == 2
    assert lifted(tmp_path)["torch"] == "imported"


def test_a_refusal_has_nothing_to_lift(tmp_path: Path) -> None:
    kept(tmp_path, "imported")
    assert lift({"status": "conflict"}, matrix_at(tmp_path)) == {"status": "conflict"}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"level": "metadata"}, "`level` is none of"), ({"more": 1}, "unknown key `more`"), ({"schema": "x"}, "`schema` must be"),
        ({"picks": []}, "`picks` must be"), ({"host": {}}, "`host` must be"),
    ],
)  # fmt: skip
def test_broken_evidence_is_named(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    path = kept(tmp_path, "imported")
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(InputError, match=f"evidence/{path.name}: {says}"):
        lifted(tmp_path)
    path.write_text("{")
    with pytest.raises(InputError, match="cannot be read"):
        lifted(tmp_path)


def test_an_installed_matrix_takes_no_evidence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="this one is installed"):
        kept(tmp_path / "_matrix", "imported")
