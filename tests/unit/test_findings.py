"""Findings as JSON, SARIF, annotations and text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from accel_env.cli.show_findings import findings_lines
from accel_env.judge.findings import diagnosis, exit_code, fix_text, github_lines, place
from accel_env.judge.sarif import sarif
from accel_env.judge.types import FIX_KINDS, Container, Environment, Finding, Fix, Installed
from accel_env.model import Because, Device, Host

BECAUSE = Because("arch", "torch 9.9 has code for sm_75", "torch/9.9:arch", "release notes", "vendor")
DOUBTFUL = Because("arch", "seen once", "", "a forum", "community", doubt="one report")
ROOT = Finding(
    "gpu-arch-not-in-wheel",
    "torch",
    "error",
    "torch has no code for the Tesla V100",
    (BECAUSE, DOUBTFUL),
    (
        Fix("package", "torch", ">=9.8", "cu999", command="pip install 'torch>=9.8' --index-url URL", verified=True),
        Fix("env", set={"A": "1"}, unset=("B", "C")),
        Fix("hardware", do="a newer GPU"),
    ),
)
CONSEQUENCE = Finding("native-lib-missing", "bitsandbytes", "warning", "100%: a,b\nc", consequence_of=ROOT.rule, where="D/f:7")
ENVIRONMENT = Environment(
    host=Host(
        libc_family="glibc",
        libc="2.36",
        python="3.12",
        devices=(Device("nvidia", "Tesla V100", "sm_70", "999.95"),) * 2,
        provenance={"os": "collect_env"},
    ),
    installed=(Installed("torch", "9.9", "cu999"), Installed("numpy", "2.0"), Installed("vllm", spec=">=1", wanted=True)),
    container=Container("image:tag"),
    variables={"CUDA_VISIBLE_DEVICES": "0"},
    extra={"cuda_toolkit": "99.1"},
    disagreements=("glibc: 2.36 against 2.10",),
)


def answer(*findings: Finding) -> dict[str, Any]:
    return diagnosis(findings, ENVIRONMENT, ("a.txt",))


def test_shape_is_the_fixed_one() -> None:
    row = answer(ROOT)
    assert (row["schema"], row["status"]) == ("accel-env/diagnosis/1", "errors")
    finding = row["findings"][0]
    assert {"rule", "component", "severity", "message", "because", "fixes"} <= set(finding)
    assert finding["because"][0] == {
        "text": BECAUSE.text,
        "source": "release notes",
        "grade": "vendor",
        "fact": "torch/9.9:arch",
    }
    assert finding["because"][1]["doubt"] == "one report"
    assert finding["fixes"][0] == {
        "kind": "package",
        "name": "torch",
        "spec": ">=9.8",
        "build": "cu999",
        "command": "pip install 'torch>=9.8' --index-url URL",
        "verified": True,
    }
    assert finding["fixes"][1:] == [
        {"kind": "env", "set": {"A": "1"}, "unset": ["B", "C"]},
        {"kind": "hardware", "do": "a newer GPU"},
    ]
    assert json.loads(json.dumps(row)) == row


def test_environment_has_the_keys_of_a_report() -> None:
    told = answer()["environment"]
    assert told == {
        "os": "linux",
        "glibc": "2.36",
        "python": "3.12",
        "gpus": [{"name": "Tesla V100", "arch": "sm_70", "driver": "999.95"}] * 2,
        "packages": {"torch": "9.9+cu999", "numpy": "2.0"},
        "wanted": {"vllm": ">=1"},
        "container": {"base": "image:tag"},
        "env": {"CUDA_VISIBLE_DEVICES": "0"},
        "cuda_toolkit": "99.1",
    }


@pytest.mark.parametrize(
    ("findings", "status", "code"),
    [
        ((), "clean", 0),
        ((CONSEQUENCE,), "warnings", 0),
        ((CONSEQUENCE, ROOT), "errors", 8),
        ((Finding("x", "y", "note", "z"),), "clean", 0),
    ],
)
def test_status_and_exit_code(findings: tuple[Finding, ...], status: str, code: int) -> None:
    row = answer(*findings)
    assert (row["status"], exit_code(row)) == (status, code)


def test_order_and_consequence_stay() -> None:
    rows = answer(ROOT, CONSEQUENCE)["findings"]
    assert [row["rule"] for row in rows] == [ROOT.rule, CONSEQUENCE.rule]
    assert rows[1]["consequence_of"] == ROOT.rule and rows[1]["where"] == "D/f:7"


def test_sarif_is_valid_in_what_readers_need() -> None:
    log = sarif(answer(ROOT, CONSEQUENCE, ROOT), "dump with blank.txt")
    assert log["version"] == "2.1.0" and len(log["runs"]) == 1
    run = log["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [ROOT.rule, CONSEQUENCE.rule]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note") and result["message"]["text"]
    first, second, _ = run["results"]
    assert first["locations"][0]["physicalLocation"] == {"artifactLocation": {"uri": "dump%20with%20blank.txt"}}
    assert second["locations"][0]["physicalLocation"]["region"] == {"startLine": 7}
    assert "locations" not in sarif(answer(ROOT))["runs"][0]["results"][0]


def test_annotations_are_one_line_each_and_escaped() -> None:
    first, second = github_lines(answer(ROOT, CONSEQUENCE), "a:b,c.txt")
    assert first.startswith("::error file=a%3Ab%2Cc.txt,title=gpu-arch-not-in-wheel (torch)::torch has no code")
    assert "%0Abecause: " in first and "\n" not in first
    assert second == "::warning file=D/f,line=7,title=native-lib-missing (bitsandbytes)::100%25: a,b%0Ac"
    assert github_lines(answer(Finding("x", "y", "note", "z"))) == ["::notice title=x (y)::z"]


@pytest.mark.parametrize(("where", "expected"), [("Dockerfile:7", ("Dockerfile", 7)), ("C:\\f", ("C:\\f", 0)), ("f", ("f", 0))])
def test_place(where: str, expected: tuple[str, int]) -> None:
    assert place(where) == expected


@pytest.mark.parametrize("kind", FIX_KINDS)
def test_every_kind_of_fix_has_words(kind: str) -> None:
    for fix in ({"kind": kind, "name": "n", "spec": ">=1", "build": "b"}, {"kind": kind, "do": "d"}, {"kind": kind}):
        assert fix_text(fix).strip()


def test_fix_words() -> None:
    assert fix_text({"kind": "env", "set": {"A": "1"}, "unset": ["B"]}) == "set A=1 and unset B"
    assert fix_text({"kind": "driver", "spec": ">=580"}) == "a driver >=580"
    assert fix_text({"kind": "package", "name": "torch", "spec": ">=2", "build": "cu1"}) == "install torch>=2 (build cu1)"
    assert fix_text({"kind": "package", "name": "torch", "command": "pip install x"}) == "pip install x"


def test_text_has_cause_reason_and_command() -> None:
    text = "\n".join(findings_lines(answer(ROOT, CONSEQUENCE), 100))
    judged = " ".join(text.partition("note:")[0].split())
    assert judged == (
        "judged a.txt: Python 3.12, linux, glibc 2.36; 2 x Tesla V100 (sm_70, driver 999.95); torch 9.9+cu999, numpy 2.0"
    )
    assert "note: glibc: 2.36 against 2.10" in text
    assert "error: gpu-arch-not-in-wheel (torch)\n  torch has no code" in text
    assert "because: torch 9.9 has code for sm_75 (vendor: release notes)" in text
    assert "because: seen once (community: a forum) [doubtful: one report]" in text
    assert "\n        pip install 'torch>=9.8' --index-url URL\n" in text
    assert "(verified: every need holds with it)" in text
    assert "a consequence of gpu-arch-not-in-wheel" in text and "at D/f:7" in text
    assert text.endswith("1 error, 1 warning")


def test_text_of_nothing_is_honest() -> None:
    empty = diagnosis((), Environment(), ("a.txt",))
    assert findings_lines(empty, 100) == [
        "judged a.txt: nothing in it was recognised",
        "",
        "nothing to judge: no package, no device and no error text that accel-env knows was found",
    ]
    assert findings_lines(answer(), 200)[-1].startswith("clean: none of the facts")
    unknown = {**answer(), "modelled": [], "environment": {"packages": {"a": "1"}}}
    assert "1 package that accel-env knows nothing about" in findings_lines(unknown, 200)[0]


def test_long_lists_are_cut_in_text_alone() -> None:
    many = Finding("x", "y", "error", "z", (BECAUSE,) * 9, (Fix("action", do="d"),) * 9)
    text = "\n".join(findings_lines(answer(many), 100))
    assert "and 5 more facts" in text and "and 5 more ways out" in text
    assert len(answer(many)["findings"][0]["fixes"]) == 9
    lines = [{"file": "l", "line": n, "text": "t"} for n in range(9)]
    assert "and 4 more deciding lines" in "\n".join(findings_lines({**answer(), "lines": lines}, 100))
