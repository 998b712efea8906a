"""The verb: what a target means, how an image is run, what is written, the exit status."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from accel_env import app_scene
from accel_env.__main__ import main
from accel_env.app_scene import SmokeWords
from accel_env.app_smoke import smoke
from accel_env.build import find
from accel_env.build.engine import EngineInfo, ImageDetails, Ran, RunRequest
from accel_env.errors import AccelEnvError, BuildError, InputError, UsageError, VerifyError

ROOT = Path(__file__).resolve().parents[2]
REPORT: dict[str, Any] = {
    "schema": "accel-env/smoke/1", "status": "pass", "levels": ["static"], "device": "",
    "environment": {"python": "3.12.1", "platform": "linux_x86_64", "libc": "glibc 2.36", "packages": 3, "torch": ""},
    "summary": {"pass": 1, "fail": 0, "skip": 0},
    "checks": [{"level": "static", "name": "python", "verdict": "pass", "detail": "ok", "seconds": 0.1}],
}  # fmt: skip
PLAN = {
    "status": "ok", "python": "3.12", "host": {"os": "linux", "arch": "x86_64", "devices": []}, "run_args": ["--gpus", "all"],
    "stack": {"name": "cuda", "version": "12.6"}, "matrix": {"version": "1", "digest": "sha256:0"},
    "picks": {"numpy": {"version": "2.0", "build": "any", "index": "pypi", "tag": "cp312"}},
}  # fmt: skip


class FakeEngine:
    """An engine with one image; keeps what it was asked to run, and what lay in the mounted folder."""

    def __init__(self, *names: str, stdout: str = "", status: int | None = 0) -> None:
        self.names, self.ran = names, Ran(status, stdout or json.dumps(REPORT), "pass  static  python\n", 1.0)
        self.labels: tuple[tuple[str, str], ...] = ()
        self.requests: list[RunRequest] = []
        self.mounted: dict[str, str] = {}

    def info(self) -> EngineInfo:
        return EngineInfo("docker", "28", "28", "amd64")

    def inspect(self, ref: str) -> ImageDetails | None:
        labels = self.labels
        return ImageDetails("sha256:" + "a" * 64, (), "", 1, "linux/amd64", labels=labels) if ref in self.names else None

    def run(self, request: RunRequest) -> Ran:
        self.requests.append(request)
        if not request.mounts:
            return self.ran
        folder = Path(request.mounts[0][0])
        self.mounted = {path.name: path.read_text() for path in folder.iterdir()}
        assert folder.stat().st_mode & 0o005 == 0o005, "the container's user is another one"
        return self.ran


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeEngine]:
    found = FakeEngine("cell:1")
    monkeypatch.setattr(find, "find_engine", lambda wanted="": found)
    yield found


def go(**words: Any) -> dict[str, Any]:
    return smoke(SmokeWords(**words), lambda _: None)


def a_folder(tmp_path: Path, **files: str) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "plan.json").write_text(json.dumps(PLAN))
    (folder / "requirements.lock").write_text("numpy==2.0 \\\n    --hash=sha256:00\n")
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def test_this_interpreter_is_checked() -> None:
    answer = go(here=True, level="static", only=("static/python", "as planned"))
    assert (answer["kind"], answer["target"], answer["evidence"], answer["written"]) == (
        "interpreter",
        "this interpreter",
        "",
        [],
    )
    assert [(check["name"], check["verdict"]) for check in answer["checks"]] == [
        ("python", "pass"),
        ("packages as planned", "skip"),
    ]


def test_a_plan_beside_it_is_compared(tmp_path: Path) -> None:
    plan = {**PLAN, "python": f"{sys.version_info[0]}.{sys.version_info[1]}"}
    folder = a_folder(tmp_path)
    (folder / "plan.json").write_text(json.dumps(plan))
    answer = go(here=True, level="static", only=("static/python", "as planned"), plan=str(folder))
    assert answer["plan"].startswith("sha256:")
    assert [check["verdict"] for check in answer["checks"]] == ["pass", "fail"]
    assert "numpy" in answer["checks"][1]["detail"]


def test_a_virtual_environment_is_entered(tmp_path: Path) -> None:
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "bin" / "python").symlink_to(sys.executable)
    answer = go(target=str(tmp_path / "venv"), level="static", only=("static/python",))
    assert (answer["kind"], answer["summary"]["pass"]) == ("environment", 1)


def test_an_image_runs_closed_off(engine: FakeEngine) -> None:
    answer = go(target="cell:1", device="cpu", patience="2", only=("numpy",))
    (request,) = engine.requests
    assert (answer["kind"], answer["image"]) == ("image", "sha256:" + "a" * 64)
    assert (request.network, request.read_only, request.entrypoint, request.words) == ("none", True, "python3", ())
    assert request.command == (
        "/accel-env-smoke/checks.py", "--levels", "static,import", "--device", "cpu", "--only", "numpy", "--patience", "2",
        "--expect", "@/accel-env-smoke/expect.json",
    )  # fmt: skip
    assert "def fixed_checks" in engine.mounted["checks.py"]
    assert engine.mounted["expect.json"] == "{}"


def test_an_image_with_checks_of_its_own_needs_nothing_of_the_host(engine: FakeEngine, tmp_path: Path) -> None:
    engine.labels = (("accel-env.checks", "/opt/accel-env/checks.py"),)
    folder = a_folder(tmp_path)
    go(target="cell:1", plan=str(folder))
    (request,) = engine.requests
    assert request.mounts == () and request.command[0] == "/opt/accel-env/checks.py"
    assert json.loads(request.command[-1])["versions"] == {"numpy": "2.0"}
    # No command line takes a word of this length.
    (folder / "requirements.lock").write_text("".join(f"p{number}==1.0\n" for number in range(20000)))
    go(target="cell:1", plan=str(folder))
    assert engine.requests[1].command[-1] == "@/accel-env-smoke/expect.json"
    assert engine.requests[1].command[0] == "/opt/accel-env/checks.py"


def test_a_plan_that_is_too_deep_is_refused(engine: FakeEngine, tmp_path: Path) -> None:
    deep = tmp_path / "plan.json"
    deep.write_text("[" * 100000)
    with pytest.raises(InputError, match="is no JSON"):
        go(target="cell:1", plan=str(deep))


def test_only_the_level_device_gets_the_device(engine: FakeEngine, tmp_path: Path) -> None:
    folder = str(a_folder(tmp_path))
    go(target="cell:1", level="import", plan=folder)
    go(target="cell:1", level="device", plan=folder)
    go(target="cell:1", level="device", device="cpu", plan=folder)
    assert [(request.words, request.read_only) for request in engine.requests] == [
        ((), True), (("--gpus", "all"), False), ((), False),
    ]  # fmt: skip
    assert json.loads(engine.mounted["expect.json"])["versions"] == {"numpy": "2.0"}


def test_a_rendered_folder_means_its_image(engine: FakeEngine, tmp_path: Path) -> None:
    folder = a_folder(tmp_path, Dockerfile="FROM scratch\nCOPY requirements.lock /tmp/\n")
    with pytest.raises(UsageError, match=r"the image of .* is not there") as caught:
        go(target=str(folder))
    assert f"accel-env build {folder}" in caught.value.hint
    from accel_env.build.folder import read_folder

    engine.names = (read_folder(folder).tag,)
    answer = go(target=str(folder))
    assert (answer["kind"], answer["target"]) == ("image", str(folder))
    assert answer["plan"].startswith("sha256:")


def test_a_container_that_says_nothing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "find_engine", lambda wanted="": FakeEngine("cell:1", stdout="sh: no python3"))
    with pytest.raises(VerifyError, match="gave no report"):
        go(target="cell:1")
    monkeypatch.setattr(find, "find_engine", lambda wanted="": FakeEngine("cell:1", status=None))
    with pytest.raises(VerifyError, match="did not end"):
        go(target="cell:1")


@pytest.mark.parametrize(
    ("words", "reference", "code"),
    [
        ({}, "no-target", 2), ({"target": "x", "here": True}, "no-target", 2), ({"target": "nowhere"}, "no-such-target", 2),
        ({"here": True, "evidence": True}, "no-plan", 2),
        ({"target": "cell:1", "evidence": True, "only": ("x",)}, "part-is-no-evidence", 2),
        *(({"target": "cell:1", "patience": text}, "bad-number", 2) for text in ("much", "0", "-1", "nan", "inf")),
        ({"here": True, "venv": True}, "no-target", 2), ({"target": "cell:1", "venv": True}, "nothing-to-smoke", 2),
        ({"here": True, "report": "/nowhere/r.json"}, "cannot-write", 2), ({"here": True, "junit": "/"}, "cannot-write", 2),
        ({"target": "cell:1", "evidence": True}, "no-plan", 2),
        ({"target": "t4g-torch"}, "cell-not-rendered", 2),
    ],
)  # fmt: skip
def test_bad_words_are_refused(engine: FakeEngine, words: dict[str, Any], reference: str, code: int) -> None:
    with pytest.raises(AccelEnvError) as caught:
        go(**words)
    assert (caught.value.reference, caught.value.exit_code) == (reference, code)
    assert caught.value.hint


def test_a_folder_that_is_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="neither a virtual environment"):
        go(target=str(tmp_path))


def test_without_an_engine_the_reading_of_the_word_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(wanted: str = "") -> None:
        raise BuildError("no-engine", "neither docker nor podman is installed")

    monkeypatch.setattr(find, "find_engine", none)
    with pytest.raises(BuildError) as caught:
        go(target="some/image:1")
    assert caught.value.context == ("some/image:1 is no folder and no cell, so it must be an image",)


def test_a_cell_means_its_folder(engine: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dockerfiles").mkdir()
    a_folder(tmp_path, Dockerfile="FROM scratch\n").rename(tmp_path / "dockerfiles" / "v100-quant")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="the image of dockerfiles/v100-quant is not there"):
        go(target="v100-quant")


def test_a_plan_for_another_machine_is_not_installed_here(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    (folder / "plan.json").write_text(json.dumps({**PLAN, "host": {"os": "linux", "arch": "riscv64", "devices": []}}))
    with pytest.raises(UsageError, match="the plan is for linux riscv64, this machine is"):
        go(target=str(folder))


def test_reports_are_written(engine: FakeEngine, tmp_path: Path) -> None:
    report, junit = tmp_path / "r.json", tmp_path / "r.xml"
    answer = go(target="cell:1", report=str(report), junit=str(junit))
    assert answer["written"] == [str(report), str(junit)]
    assert json.loads(report.read_text())["target"] == "cell:1"
    assert junit.read_text().startswith("<?xml")


def test_evidence_goes_into_the_matrix_where_nothing_failed(
    engine: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "matrix"
    (root / "schema").mkdir(parents=True)
    (root / "matrix.yaml").write_text("")
    monkeypatch.setenv("ACCEL_ENV_MATRIX", str(root))
    monkeypatch.setattr(app_scene, "_cells", lambda: ())
    folder = str(a_folder(tmp_path))
    (path,) = go(target="cell:1", plan=folder, evidence=True)["written"]
    row = json.loads(Path(path).read_text())
    assert (row["level"], row["image"], row["picks"]["numpy"]["version"]) == ("inspected", "sha256:" + "a" * 64, "2.0")
    failed = {**REPORT, "status": "fail", "checks": [{**REPORT["checks"][0], "verdict": "fail"}]}
    engine.ran = Ran(7, json.dumps(failed), "", 1.0)
    assert go(target="cell:1", plan=folder, evidence=True)["written"] == []


def test_the_exit_status_is_seven_where_a_check_failed(
    engine: FakeEngine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["accel-env", "smoke", "cell:1"])
    assert main() == 0
    out = capsys.readouterr()
    assert "1 passed, 0 failed, 0 left out" in out.out
    assert "pass  static  python" in out.err
    failed = {**REPORT, "status": "fail", "checks": [{**REPORT["checks"][0], "verdict": "fail", "detail": "no libx.so"}]}
    engine.ran = Ran(7, json.dumps(failed), "", 1.0)
    assert main() == 7
    assert "static python: no libx.so" in capsys.readouterr().out
