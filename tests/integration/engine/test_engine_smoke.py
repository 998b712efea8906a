"""smoke on images of a real Docker engine: as the image's user, without network, nothing to write to but /tmp."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.integration.engine.conftest import Fill, secrets

from accel_env import app_build
from accel_env.app_build import BuildWords
from accel_env.app_scene import SmokeWords
from accel_env.app_smoke import smoke
from accel_env.build.docker import DockerEngine
from accel_env.build.engine import RunRequest
from accel_env.errors import UsageError, VerifyError
from accel_env.render import RenderOptions
from accel_env.smoke.checks import program

pytestmark = [
    pytest.mark.docker,
    # One worker: the tests count images and containers, and an engine has one store.
    pytest.mark.xdist_group("engine"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
PICK = {"version": "1.0", "build": "any", "index": "pypi", "tag": "py3"}


def planned(folder: Path, **changes: Any) -> Path:
    """Puts a plan beside the rendered files."""
    host = {"os": "linux", "arch": os.uname().machine, "devices": []}
    plan = {"status": "ok", "python": "3.11", "host": host, "picks": {"smallpart": PICK}, "run_args": [], **changes}
    (folder / "plan.json").write_text(json.dumps(plan))
    return folder


def verdicts(answer: dict[str, Any]) -> dict[str, str]:
    return {check["name"]: check["verdict"] for check in answer["checks"]}


def test_the_image_of_a_folder_is_smoked(engine: DockerEngine, rendered: Fill) -> None:
    folder = planned(rendered("smoked"))
    with pytest.raises(UsageError, match=r"the image of .* is not there"):
        smoke(SmokeWords(str(folder)), lambda _: None)
    app_build.build(BuildWords(str(folder), network="host", secrets=secrets(folder)))
    said: list[str] = []
    answer = smoke(SmokeWords(str(folder)), said.append)
    assert (answer["status"], answer["kind"]) == ("pass", "image"), answer
    assert answer["image"] == json.loads((folder / "image.json").read_text())["config"]
    found = verdicts(answer)
    assert (found["packages as planned"], found["import smallpart"], found["torch maths"]) == ("pass", "pass", "skip")
    assert any(line.startswith("pass  static  python") for line in said)

    planned(folder, python="3.9", picks={"smallpart": PICK, "torch": {**PICK, "version": "2.0"}})
    (folder / "requirements.lock").rename(folder / "kept")
    answer = smoke(SmokeWords(answer["image"], plan=str(folder)), said.append)
    found = verdicts(answer)
    assert (answer["status"], found["python"], found["packages as planned"]) == ("fail", "fail", "fail")
    assert not subprocess.run(["docker", "ps", "--all", "--quiet"], check=True, capture_output=True, text=True).stdout


def test_an_image_with_the_checks_needs_nothing_else(
    engine: DockerEngine, rendered: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = RenderOptions(programs={"checks.py": program()}, labels={"accel-env.checks": "/opt/accel-env/checks.py"})
    folder = planned(rendered("own", options))
    # As a checkout under a strict umask leaves it; the image's user must be able to read it all the same.
    (folder / "checks.py").chmod(0o600)
    app_build.build(BuildWords(str(folder), network="host", secrets=secrets(folder)))
    monkeypatch.setattr("accel_env.smoke.local.prepared", lambda _: pytest.fail("the checks were brought along"))
    answer = smoke(SmokeWords(str(folder)), lambda _: None)
    assert (answer["status"], answer["kind"]) == ("pass", "image"), answer
    whole = engine.run(
        RunRequest(answer["image"], ("/opt/accel-env/checks.py", "--levels", "static"), ("--cap-drop", "ALL"), read_only=True,
                   entrypoint="python3")
    )  # fmt: skip
    assert whole.status == 0, whole.stderr


def test_an_image_without_python_gives_no_report(engine: DockerEngine, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM scratch\nCOPY Dockerfile /\n")
    subprocess.run(["docker", "build", "--quiet", "--tag", "accel-env/nothing:1", str(tmp_path)], check=True, capture_output=True)
    try:
        with pytest.raises(VerifyError, match="gave no report") as caught:
            smoke(SmokeWords("accel-env/nothing:1"), lambda _: None)
        assert "python3" in caught.value.context[-1]
    finally:
        engine.remove("accel-env/nothing:1")
