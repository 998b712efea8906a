"""The program: one file, old Pythons, and every way in which a check can end."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from accel_env.smoke import checks
from accel_env.smoke.checks import PARTS, program
from accel_env.smoke.runner import all_checks, fixed_checks, main, parsed, report, run_child, run_one
from accel_env.smoke.verdict import Check, Context, FailedError, Result, SkippedError

SMOKE = Path(checks.__file__).parent


def test_the_program_needs_nothing_of_this_project() -> None:
    text = program()
    assert text == program()
    tree = ast.parse(text, feature_version=(3, 8))
    imported = {alias.name.partition(".")[0] for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
    imported |= {(node.module or "").partition(".")[0] for node in tree.body if isinstance(node, ast.ImportFrom)}
    assert imported <= sys.stdlib_module_names
    assert b"accel_env" not in text.replace(b"by accel_env", b"")


def test_the_parts_share_no_name() -> None:
    owners: dict[str, str] = {}
    for part in PARTS:
        for node in ast.parse((SMOKE / f"{part}.py").read_text()).body:
            names = [node.name] if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else []
            if isinstance(node, ast.Assign):
                names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            for name in names:
                assert name not in owners, f"{name} is in {owners[name]} and in {part}"
                owners[name] = part


def test_nothing_newer_than_python_3_8_runs_at_import_time() -> None:
    """`dict[str, int]` and `int | None` are fine in annotations, which are never evaluated, and nowhere else."""
    for node in ast.walk(ast.parse(program())):
        if isinstance(node, ast.Attribute):
            assert node.attr not in ("removeprefix", "removesuffix", "is_relative_to", "bit_count"), node.lineno
        assert not (isinstance(node, ast.keyword) and node.arg == "strict"), node.value


@pytest.mark.parametrize("way", ["copied", "in the tree"])
def test_the_program_runs_alone(tmp_path: Path, way: str) -> None:
    path = SMOKE / "checks.py"
    if way == "copied":
        path = tmp_path / "checks.py"
        path.write_bytes(program())
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    words = [sys.executable, str(path), "--levels", "static", "--only", "static/python", "--expect", '{"python": "2.7"}']
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment, cwd=tmp_path)
    found = json.loads(done.stdout)
    assert done.returncode == 7
    assert (found["schema"], found["status"], found["levels"]) == ("accel-env/smoke/1", "fail", ["static"])
    (check,) = found["checks"]
    assert check["verdict"] == "fail"
    assert check["detail"].endswith("the plan says 2.7")
    assert done.stderr.startswith("fail  static  python ")


def script(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "child.py"
    path.write_text(f"import json, os, signal, sys, time\nanswer = sys.argv[sys.argv.index('--answer') + 1]\n{text}\n")
    return [sys.executable, str(path)]


CHECK = Check("import", "import x", 30.0, lambda context: ("", {}))


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        (
            "print('importing x', flush=True); os.kill(os.getpid(), signal.SIGSEGV)",
            "killed by SIGSEGV; it said last: importing x",
        ),
        ("os._exit(3)", "ended with status 3 and no answer"),
        ("sys.stderr.write('so\\nlong\\n')", "ended with status 0 and no answer; it said last: long"),
        ("open(answer, 'w').write('{\"verd')", "ended with status 0 and no answer"),
    ],
)
def test_a_crash_is_a_result(tmp_path: Path, text: str, detail: str) -> None:
    result = run_child(CHECK, script(tmp_path, text))
    assert (result.verdict, result.detail) == ("fail", detail)


def test_a_hang_is_a_result_and_nothing_of_it_is_left(tmp_path: Path) -> None:
    text = (
        "child = os.fork()\n"
        "if child == 0:\n    time.sleep(60); os._exit(0)\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child)); print('waiting', flush=True); time.sleep(60)"
    )
    began = time.monotonic()
    result = run_child(CHECK._replace(seconds=10.0), script(tmp_path, text), patience=0.1)
    assert time.monotonic() - began < 10
    assert (result.verdict, result.detail) == ("fail", "no answer within 1 s; it said last: waiting")
    grandchild = int((tmp_path / "pid").read_text())
    for _ in range(50):
        if not Path(f"/proc/{grandchild}").exists() or "Z" in Path(f"/proc/{grandchild}/stat").read_text().rpartition(")")[2][:3]:
            break
        time.sleep(0.1)
    else:
        pytest.fail("the child's child still runs")


def test_an_answer_is_taken_as_given(tmp_path: Path) -> None:
    row = "{'level': 'import', 'name': 'import x', 'verdict': 'skip', 'detail': 'not here', 'seconds': 1, 'facts': {'a': 1}}"
    result = run_child(CHECK, script(tmp_path, f"json.dump({row}, open(answer, 'w'))"))
    assert (result.verdict, result.detail, result.facts) == ("skip", "not here", {"a": 1})


def test_whatever_a_check_raises_is_a_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    def raising(error: BaseException) -> Check:
        def run(context: Context) -> tuple[str, dict[str, object]]:
            raise error

        return Check("static", "x", 1, run)

    context = Context({})
    assert run_one(Check("static", "x", 1, lambda _: ("two\n lines", {})), context)[:4] == ("static", "x", "pass", "two lines")
    assert run_one(raising(SkippedError("no")), context)[2:4] == ("skip", "no")
    assert run_one(raising(FailedError("bad")), context)[2:4] == ("fail", "bad")
    assert run_one(raising(ZeroDivisionError("by 0")), context)[2:4] == ("fail", "ZeroDivisionError: by 0")
    assert run_one(raising(SystemExit(3)), context)[2:4] == ("fail", "SystemExit: 3")
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_the_report_adds_up() -> None:
    results = [Result("static", "a", "pass", "", 0.123), Result("static", "b", "skip", "why", 1, {"x": 1})]
    found = report(results, ["static"], "")
    assert (found["status"], found["summary"]) == ("pass", {"pass": 1, "fail": 0, "skip": 1})
    assert found["checks"][1] == {
        "level": "static",
        "name": "b",
        "verdict": "skip",
        "detail": "why",
        "seconds": 1,
        "facts": {"x": 1},
    }
    assert report([*results, Result("import", "c", "fail", "", 1)], ["static"], "")["status"] == "fail"


def test_checks_have_names_of_their_own_and_levels_in_order() -> None:
    found = all_checks({})
    names = [(check.level, check.name) for check in found]
    assert len(set(names)) == len(names)
    levels = [check.level for check in found]
    assert levels == sorted(levels, key=["static", "import", "device"].index)
    assert {"static", "import", "device"} == {check.level for check in fixed_checks()}


@pytest.mark.parametrize(
    "words", [["--levels", "static,deep"], ["--expect", "{"], ["--expect", "@/nowhere"], ["--device", "gpu"]]
)
def test_misread_words_are_a_usage_error(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parsed(words)
    assert caught.value.code == 2
    assert "error:" in capsys.readouterr().err


def test_a_child_runs_the_one_check_that_it_is_told(tmp_path: Path) -> None:
    answer = tmp_path / "answer"
    assert main(["--one", "static/python", "--answer", str(answer)]) == 0
    assert json.loads(answer.read_text())["verdict"] == "pass"
    assert main(["--one", "static/nothing", "--answer", str(answer)]) == 2
