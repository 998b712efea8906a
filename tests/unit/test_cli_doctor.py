"""The command line of doctor: what goes in, in which format it comes out, with which exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from accel_env import app, app_judge
from accel_env.__main__ import main
from accel_env.app_judge import Sources

REPORT = """
environment:
  python: "3.12"
  driver: "580.65.06"
  gpus: [{name: Tesla V100}]
  packages: {torch: 2.11.0+cu130}
"""
GOOD = REPORT.replace("2.11.0+cu130", "2.11.0+cu126")
DUMP = """PyTorch version: 2.11.0+cu130
CUDA used to build PyTorch: 13.0
GPU models and configuration: GPU 0: Tesla V100-SXM2-16GB
Nvidia driver version: 580.65.06
"""
KERNEL = "CUDA error: no kernel image is available for execution on the device"


@pytest.fixture
def report(tmp_path: Path) -> str:
    path = tmp_path / "report.yaml"
    path.write_text(REPORT)
    return str(path)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["doctor", *words])
    out, err = capsys.readouterr()
    return code, out, err


def test_a_report_with_a_fault_exits_with_eight(report: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "--report", report, "--json")
    answer = json.loads(out)
    assert (code, err, answer["status"]) == (8, "", "errors")
    finding = answer["findings"][0]
    assert (finding["rule"], finding["component"]) == ("gpu-arch-not-in-wheel", "torch")
    assert all(because["source"] and because["grade"] for because in finding["because"]) and finding["fixes"]
    assert answer["judged"] == [report]


def test_a_good_report_is_clean(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "good.yaml"
    path.write_text(GOOD)
    code, out, _ = run(capsys, "--report", str(path), "--format", "json")
    assert code == 0 and json.loads(out)["status"] != "errors"


def test_dump_and_error_text_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "dump.txt"
    path.write_text(DUMP)
    code, out, _ = run(capsys, "--collect-env", str(path), "--error", KERNEL, "--json")
    answer = json.loads(out)
    assert code == 8 and answer["findings"][0]["rule"] == "gpu-arch-not-in-wheel"
    assert answer["environment"]["gpus"] == [{"name": "Tesla V100-SXM2-16GB", "arch": "sm_70", "driver": "580.65.06"}]


def test_a_dump_in_utf16_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "dump.txt"
    path.write_bytes(DUMP.encode("utf-16"))
    assert run(capsys, "--collect-env", str(path))[0] == 8


def test_options_describe_the_machine_of_a_report(report: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--report", report, "--device", "H100", "--driver", "580.95.05", "--json")
    answer = json.loads(out)
    assert code == 0
    assert [(gpu["arch"], gpu["driver"]) for gpu in answer["environment"]["gpus"]] == [("sm_90", "580.95.05")]


def test_a_named_host_counts_before_the_report(report: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    host = tmp_path / "host.json"
    host.write_text(json.dumps({"devices": [{"name": "H100", "driver": "580.95.05"}], "python": "3.12"}))
    assert run(capsys, "--report", report, "--host", str(host))[0] == 0


def test_a_log_is_scanned_for_the_deciding_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "train.log"
    path.write_text("step 1\n" * 1000 + f"RuntimeError: {KERNEL}\n" + "step 2\n" * 1000)
    code, out, _ = run(capsys, "--log", str(path), "--json")
    answer = json.loads(out)
    assert code == 8 and answer["lines"] == [{"file": str(path), "line": 1001, "text": f"RuntimeError: {KERNEL}"}]


def test_an_unknown_text_is_said_to_be_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--error", "the printer is on fire")
    assert code == 0
    assert "not recognised" in out and "nothing to judge" in out


def test_formats(report: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--report", report, "--format", "sarif")
    assert code == 8 and json.loads(out)["runs"][0]["results"][0]["locations"]
    code, out, _ = run(capsys, "--report", report, "--format", "github")
    assert code == 8 and out.startswith(f"::error file={report},")
    code, out, _ = run(capsys, "--report", report, "--format", "text")
    assert code == 8 and "error: gpu-arch-not-in-wheel (torch)" in out and "pip install" in out


def test_bad_words(report: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--report", report, "--format", "sarif", "--json")[0] == 2
    assert run(capsys, "--format", "xml")[0] == 2
    assert run(capsys, "--report", str(tmp_path / "none"))[0] == 3
    broken = tmp_path / "broken.yaml"
    broken.write_text("[1")
    assert run(capsys, "--report", str(broken))[0] == 3
    assert run(capsys, "--python", str(tmp_path / "none"))[0] == 2
    assert "Traceback" not in capsys.readouterr().err


def test_an_interpreter_is_judged_with_this_machine(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[Sources] = []

    def doctor(sources: Sources, *_: Any) -> dict[str, Any]:
        seen.append(sources)
        return {"status": "clean", "findings": []}

    monkeypatch.setattr(app_judge, "doctor", doctor)
    run(capsys)
    run(
        capsys, "--python", "p", "--import", "--error", "a", "--error", "b", "--log", "l", "--collect-env", "c", "--glibc", "2.31"
    )
    assert seen[0] == Sources() and not seen[0].described
    assert seen[1] == Sources("", ("c",), ("a", "b"), ("l",), "p", True, "", True) and not seen[1].described
    assert Sources(errors=("a",)).described


def test_this_interpreter_without_torch_says_so(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from accel_env.model import Host

    monkeypatch.setattr(app, "host_of", lambda *_: Host())
    monkeypatch.setenv("VIRTUAL_ENV", "/elsewhere")
    code, out, _ = run(capsys)
    assert code == 0 and "torch is not installed for" in out and "--python /elsewhere" in out
