"""`matrix show` through the whole program, on the small matrix of tests/data and on the real one."""
from __future__ import annotations

import json
from pathlib import Path

import pytest

from accel_env.__main__ import main
from accel_env.cli.show_matrix import LINES, shown_lines

TINY = Path(__file__).resolve().parents[1] / "data" / "tiny"


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCEL_ENV_MATRIX", str(TINY))


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["matrix", "show", *words]) == 0
    return capsys.readouterr().out


@pytest.mark.usefixtures("tiny")
def test_a_device_by_name_or_architecture(capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("mid-80", "Mid 80", "sm_80", "mid 80 24gb"):
        out = shown(capsys, text)
        assert "Mid 80" in out and "sm_80" in out and "cuda" in out and "this test" in out, text
    answer = json.loads(shown(capsys, "mid-80", "--json"))
    assert answer["devices"][0]["arch"] == "sm_80" and answer["facts"][0]["source"] == "this test"


@pytest.mark.usefixtures("tiny")
def test_a_stack_and_a_release_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(capsys, "cuda")
    assert "13.0" in out and "12.6" in out and ">=525.60.13" in out and "torch" in out
    one = shown(capsys, "cuda-12.6")
    assert "13.0" not in one and "sm_50" in one and ">=560.28.03" in one
    assert json.loads(shown(capsys, "cuda-12.6", "--json"))["builds"]["torch"] == ["3.1.0", "3.0.0"]


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(("word", "name"), [("profiles", "mid"), ("stacks", "rocm"), ("packages", "kernelc")])
def test_lists(word: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"\n{name} " in f"\n{shown(capsys, word)}"
    assert name in [row["name"] for row in json.loads(shown(capsys, word, "--json"))["rows"]]


def test_long_answers_are_cut(capsys: pytest.CaptureFixture[str]) -> None:
    for spec in ("torch", "vllm", "flash-attn", "bitsandbytes", "torch==2.15.0", "cuda", "gaudi", "gfx1100"):
        out = shown(capsys, spec)
        assert out.count("\n") <= LINES, spec
    assert "--json has all" in shown(capsys, "torch")
    assert "matrix show flash-attn==" in shown(capsys, "flash-attn"), "how to see the rest is not cut"


def test_every_profile_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    from accel_env.matrix.load import open_matrix

    out = shown(capsys, "profiles")
    assert all(f"\n{name} " in f"\n{out}" for name in open_matrix().profiles()) and "--host" in out


def build(version: str, platform: str, **more: object) -> dict[str, object]:
    return {"version": version, "build": "any", "platform": platform, "index": "pypi", "tags": ["py3"], "needs": [], **more}


def test_the_platform_of_the_machine_comes_first() -> None:
    builds = [build("2", "linux_aarch64"), build("2", "linux_x86_64"), build("1", "linux_aarch64"), build("1", "linux_x86_64")]
    answer = {"package": "p", "releases": ["2", "1"], "builds": builds, "facts": []}
    rows = [line.split() for line in shown_lines(answer, 100, "linux_x86_64")[3:7]]
    assert [(row[0], row[2]) for row in rows] == [
        ("2", "linux_x86_64"), ("1", "linux_x86_64"), ("2", "linux_aarch64"), ("1", "linux_aarch64"),
    ]


def test_what_nobody_has_said_is_marked() -> None:
    answer = {
        "package": "p", "releases": ["2", "1"], "facts": [],
        "builds": [build("2", "linux_x86_64", unknown=["publication"]), build("1", "linux_x86_64")],
    }
    lines = shown_lines(answer, 100)
    assert "unknown" in lines[2] and "publication" in lines[3] and "publication" not in lines[4]
    assert any(line.startswith("unknown: nobody has said") for line in lines)


def test_builds_of_the_real_matrix_whose_publication_is_unknown_are_marked(capsys: pytest.CaptureFixture[str]) -> None:
    answer = json.loads(shown(capsys, "torch", "--json"))
    unknown = [one for one in answer["builds"] if any(need.get("unknown") for need in one["needs"])]
    assert unknown and all(one["unknown"] for one in unknown)
    assert {word for one in unknown for word in one["unknown"]} <= {"publication", "arch"}
