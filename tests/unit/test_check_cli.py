"""The command line of check: exit codes, what comes out in which format, fleets, refusals with file and line."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest

from accel_env.__main__ import main

TORCH = "torch==2.13.0\n"  # CUDA 13 on PyPI: no code for a V100
V100 = {
    "os": "linux",
    "arch": "x86_64",
    "devices": [{"vendor": "nvidia", "name": "V100", "arch": "sm_70", "driver": "580.95.05"}],
}
H100 = {
    "os": "linux",
    "arch": "x86_64",
    "devices": [{"vendor": "nvidia", "name": "H100", "arch": "sm_90", "driver": "580.95.05"}],
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ACCEL_ENV_DEBUG", raising=False)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["check", *words])
    out, err = capsys.readouterr()
    return code, out, err


def write(name: str, text: str) -> str:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return name


def host(name: str, value: dict[str, Any]) -> str:
    return write(name, json.dumps({"schema": "accel-env/host/1", **value}))


def test_an_error_exits_with_eight_and_names_file_and_line(capsys: pytest.CaptureFixture[str]) -> None:
    write("requirements.txt", "numpy\n" + TORCH)
    code, out, err = run(capsys, "requirements.txt", "--host", "v100-r580")
    assert (code, err) == (8, "")
    assert "requirements.txt:2" in out and "sm_70" in out and "gpu-arch-not-in-wheel" in out
    assert out.startswith("judged requirements.txt on v100-r580")


def test_warnings_alone_exit_with_zero(capsys: pytest.CaptureFixture[str]) -> None:
    write("Dockerfile", "FROM python:latest\n")
    code, out, _ = run(capsys, "Dockerfile", "--host", "v100-r580")
    assert code == 0 and "no error; 1 warning" in out and "Dockerfile:1" in out


def test_nothing_to_say(capsys: pytest.CaptureFixture[str]) -> None:
    write("requirements.txt", "requests\n")
    code, out, _ = run(capsys, "requirements.txt", "--host", "v100-r580")
    assert code == 0 and "clean" in out


def test_the_diagnosis_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    write("requirements.txt", TORCH)
    code, out, err = run(capsys, "requirements.txt", "--host", "v100-r580", "--json")
    answer = json.loads(out)
    assert (code, err, answer["schema"], answer["status"], answer["judged"]) == (
        8,
        "",
        "accel-env/diagnosis/1",
        "errors",
        ["requirements.txt"],
    )
    assert answer["hosts"] == [{"host": "v100-r580", "status": "errors", "errors": 1, "warnings": 1, "notes": 0}]
    error = answer["findings"][0]
    assert (error["severity"], error["rule"], error["component"], error["where"]) == (
        "error",
        "gpu-arch-not-in-wheel",
        "torch",
        "requirements.txt:1",
    )
    assert error["fixes"] and all(because["source"] and because["grade"] for because in error["because"])


def test_sarif_and_annotations(capsys: pytest.CaptureFixture[str]) -> None:
    write("a/requirements.txt", TORCH)
    code, out, _ = run(capsys, "a/requirements.txt", "--host", "v100-r580", "--format", "sarif")
    result = json.loads(out)["runs"][0]["results"][0]
    place = result["locations"][0]["physicalLocation"]
    assert code == 8 and result["level"] == "error"
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("a/requirements.txt", 1)
    code, out, _ = run(capsys, "a/requirements.txt", "--host", "v100-r580", "--format", "github")
    assert code == 8 and out.startswith("::error file=a/requirements.txt,line=1")


def test_a_fleet_is_judged_host_by_host(capsys: pytest.CaptureFixture[str]) -> None:
    host("fleet/old.json", V100)
    host("fleet/new.json", H100)
    write("requirements.txt", TORCH)
    code, out, _ = run(capsys, "requirements.txt", "--host", "fleet", "--json")
    answer = json.loads(out)
    assert code == 8 and [(h["host"], h["status"]) for h in answer["hosts"]] == [
        ("fleet/new.json", "warnings"),
        ("fleet/old.json", "errors"),
    ]
    by_rule = {finding["rule"]: finding["hosts"] for finding in answer["findings"]}
    assert by_rule == {"gpu-arch-not-in-wheel": ["fleet/old.json"], "unhashed-install": ["fleet/new.json", "fleet/old.json"]}
    code, out, _ = run(capsys, "requirements.txt", "--host", "fleet")
    assert code == 8 and "on 2 hosts" in out and re.search(r"old\.json\s+errors\s+1\s+1", out)


def test_a_device_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    write("requirements.txt", TORCH)
    assert run(capsys, "requirements.txt", "--device", "V100", "--driver", "580.95.05")[0] == 8
    assert run(capsys, "requirements.txt", "--device", "H100", "--driver", "580.95.05")[0] == 0


def test_without_a_machine_only_what_holds_anywhere_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    from accel_env import app_judge
    from accel_env.matrix.load import open_matrix
    from accel_env.model import Host

    write("requirements.txt", TORCH + "torchvision==0.15.2\n")
    answer = app_judge.check(["requirements.txt"], open_matrix(), [("", Host())], named=False)
    rules = {finding["rule"] for finding in answer["findings"] if finding["severity"] == "error"}
    assert rules == {"package-pair-mismatch"}


def test_several_files_and_the_files_that_they_name(capsys: pytest.CaptureFixture[str]) -> None:
    write("Dockerfile", "FROM python:3.12-slim\nCOPY req.txt .\nRUN pip install -r req.txt\n")
    write("req.txt", TORCH)
    write("requirements.txt", "-r more.txt\n")
    write("more.txt", "torchvision==0.15.2\n")
    code, out, _ = run(capsys, "Dockerfile", "requirements.txt", "--host", "v100-r580", "--json")
    answer = json.loads(out)
    assert code == 8 and answer["judged"] == ["Dockerfile", "requirements.txt"] and "more.txt" in answer["also"]
    assert any(finding["where"] == "req.txt:1" for finding in answer["findings"])


# name -> (text, words of the message)
BROKEN = {
    "pyproject.toml": ("[project]\nname = 'x'\ndependencies = [\n", ("pyproject.toml", "TOML")),
    "uv.lock": ("version = 1\n\n[[package]\n", ("uv.lock:3", "TOML")),
    "poetry.lock": ("a = 1\n", ("poetry.lock:1", "metadata")),
    "pylock.toml": ("a = 1\n", ("pylock.toml:1", "lock-version")),
    "environment.yml": ("name: x\ndependencies: [\n", ("environment.yml:", "YAML")),
    "compose.yaml": ("services:\n  a: {\n", ("compose.yaml:", "YAML")),
    "docker-compose.yml": ("volumes: {}\n", ("docker-compose.yml:1", "services")),
    "Dockerfile": ("FROM python:3.12\nRUM pip install torch\n", ("Dockerfile:2", "RUM")),
    "Dockerfile.empty": ("# nothing\n", ("Dockerfile.empty", "FROM")),
    "Dockerfile.here": ("FROM a\nRUN <<EOF\npip install torch\n", ("Dockerfile.here:2", "EOF")),
    "Dockerfile.words": ("FROM a\nRUN echo && \\\n pip install 'torch>2=3'\n", ("Dockerfile.words:3", "torch>2=3")),
    "requirements.txt": ("numpy\ntorch=2.9\n", ("requirements.txt:2", "torch=2.9")),
    "notes.md": ("# notes\n", ("notes.md", "requirements files")),
    "pixi.toml": ("[dependencies\n", ("pixi.toml:1", "TOML")),
}


@pytest.mark.parametrize("name", list(BROKEN))
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_broken_file_is_refused_with_its_line(name: str, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    text, words = BROKEN[name]
    write(name, text)
    code, out, err = run(capsys, name, "--host", "v100-r580", *(["--json"] if form == "json" else []))
    assert code == 3 and "Traceback" not in err + out
    assert all(word in (err + out) for word in words), err + out


@pytest.mark.parametrize("name", ["gone.txt", "folder", "binary.txt"])
def test_a_file_that_cannot_be_read(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkdir("folder")
    Path("binary.txt").write_bytes(b"\x00\xff\xfe\x80")
    code, _, err = run(capsys, name, "--host", "v100-r580")
    assert code == 3 and name in err


def test_words_that_make_no_sense(capsys: pytest.CaptureFixture[str]) -> None:
    write("requirements.txt", TORCH)
    assert run(capsys)[0] == 2
    assert run(capsys, "requirements.txt", "--host", "nobody")[0] == 2
    assert run(capsys, "requirements.txt", "--format", "xml")[0] == 2
    os.mkdir("empty")
    code, _, err = run(capsys, "requirements.txt", "--host", "empty")
    assert code in (2, 3) and "empty" in err


def test_rules_are_words_of_the_cases_or_our_own(capsys: pytest.CaptureFixture[str]) -> None:
    own = {"mutable-tag", "tag-without-digest", "unhashed-install", "nightly-build", "pin-overwritten", "foreign-base"}
    root = Path(__file__).parents[2]
    said = {
        match
        for path in (root / "resolver" / "accel_env" / "judge" / "files").glob("rules_*.py")
        for match in re.findall(r'finding\(\s*"([a-z-]+)"', path.read_text(encoding="utf-8"))
    }
    cases = "".join(path.read_text(encoding="utf-8") for path in (root / "tests" / "cases").rglob("*.yaml"))
    unknown = {rule for rule in said - own if rule not in cases}
    assert said and not unknown


def test_one_file_takes_less_than_half_a_second(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"RUN apt-get install -y package{n} && pip install --no-cache-dir requests{n}==1.{n}" for n in range(60)]
    text = "FROM nvidia/cuda:12.8.0-devel-ubuntu22.04\n" + "\n".join(lines) + "\nRUN pip install torch vllm flash-attn\n"
    write("Dockerfile", text)
    run(capsys, "Dockerfile", "--host", "rtx4090-r580")
    begun = time.process_time()
    run(capsys, "Dockerfile", "--host", "rtx4090-r580")
    assert time.process_time() - begun < 0.5


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        *((name, True) for name in BROKEN if name not in ("notes.md", "Dockerfile.here")),
        *((f"docker/{name}", True) for name in ("gpu.Dockerfile", "Containerfile", "requirements-gpu.in", "pylock.gpu.toml")),
        *((name, False) for name in ("notes.md", "notes.txt", "ci.yml", "package.json", "dockerfile.py/x", "Cargo.lock")),
    ],
)
def test_the_hook_runs_on_files_that_check_reads(name: str, wanted: bool) -> None:
    import yaml

    (hook,) = yaml.safe_load((Path(__file__).parents[2] / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert bool(re.search(hook["files"], name)) is wanted
    assert hook["entry"].split() == ["accel-env", "check"]
