"""`matrix diff`: what it sees, which plans move, and the words that name a state."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from accel_env.__main__ import main
from accel_env.matrix import installed
from accel_env.matrix.compare import compare
from accel_env.matrix.load import open_matrix
from accel_env.system.real import RealSystem
from accel_env.system.types import Completed

TINY = Path(__file__).resolve().parents[1] / "data" / "tiny"
PROFILES = """\
schema: accel-env/profiles/1
profiles:
  mid: {summary: a machine, host: {os: linux, arch: x86_64, devices: [{name: Mid 80, driver: "580.65"}]}}
  old: {summary: another, host: {os: linux, arch: x86_64, devices: [{name: Old 60, driver: "530.30"}]}}
"""
Edit = Callable[[str, str, str], None]


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The same small matrix twice; the second one is in use."""
    monkeypatch.setenv("ACCEL_ENV_CACHE", str(tmp_path / "cache"))
    places = tmp_path / "a", tmp_path / "b"
    for place in places:
        shutil.copytree(TINY, place)
        (place / "profiles.yaml").write_text(PROFILES)
    monkeypatch.setenv("ACCEL_ENV_MATRIX", str(places[1]))
    return places


@pytest.fixture
def edit(pair: tuple[Path, Path]) -> Edit:
    def change(file: str, old: str, new: str) -> None:
        path = pair[1] / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    return change


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main(["matrix", "diff", *words])
    return code, capsys.readouterr().out


def test_no_difference(pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    code, out = run(capsys, str(pair[0]), "--exit-code")
    assert code == 0 and "no difference" in out
    (pair[1] / "images.yaml").write_text((pair[1] / "images.yaml").read_text() + "# a comment\n")
    assert run(capsys, str(pair[0]), "--exit-code")[0] == 0, "a comment is no news for users"


def test_what_came_went_and_changed(pair: tuple[Path, Path], edit: Edit) -> None:
    edit("torch/3.1.0.yaml", 'version: "3.1.0"', 'version: "3.1.1"')
    edit("packages/arrays.yaml", 'version: "2.1"\n  requires_python: ">=3.11"', 'version: "2.1"\n  requires_python: ">=3.12"')
    edit("packages/fastattn.yaml", "code: [sm_80, sm_90]", "code: [sm_80]")
    edit("stacks/cuda.yaml", "text: invented driver floors, source: this test", "text: other floors, source: this test")
    edit("stacks/rocm.yaml", 'checked: "2026-01-01"', 'checked: "2026-02-01"')
    edit("images.yaml", "1313131313131313131313131313131313131313131313131313131313131313", "5" * 64)
    edit("indexes.yaml", "https://wheels.invalid/whl", "https://wheels.invalid/other")
    edit("artifacts/wheels-cu126.json", "a" * 64, "b" * 64)
    edit("devices/nvidia.yaml", "{name: New 120,", "{name: New 121,")
    found = compare(open_matrix(pair[0]), open_matrix(pair[1]))
    assert found["packages"]["torch"] == {"releases_added": ["3.1.1"], "releases_gone": ["3.1.0"]}
    assert found["packages"]["arrays"]["builds_changed"] == {"2.1": ["needs"]}
    assert set(found["packages"]["fastattn"]["builds_changed"]) == {"2.0+cu12torch3.0", "2.0+cu12torch3.0 neighbour"}
    assert found["facts"]["changed"]["stacks/cuda:floors"] == ["text"] and found["facts"]["rechecked"] == 1
    assert found["images"]["changed"] == {"python:3.13-slim": ["digest"]}
    assert found["indexes"]["changed"] == {"wheels": ["url"]}
    assert found["devices"] == {"added": ["nvidia New 121"], "gone": ["nvidia New 120"]}
    assert found["files"]["wheels:cu126"]["changed"] == ["torch-3.1.0+cu126-cp312-cp312-manylinux_2_28_x86_64.whl"]


def test_a_build_that_goes_moves_the_plans_that_rest_on_it(
    pair: tuple[Path, Path], edit: Edit, capsys: pytest.CaptureFixture[str]
) -> None:
    edit("torch/3.1.0.yaml", '  - build: cu126\n    index: "wheels:cu126"', '  - build: cu129\n    index: "wheels:cu126"')
    edit("torch/3.1.0.yaml", "stack: cuda-12.6", "stack: cuda-13.0")
    words = (str(pair[0]), "--ask", "torch", "--json")
    code, out = run(capsys, *words)
    answer = json.loads(out)
    assert code == 0 and answer["plans"]["compared"] == 2
    (row,) = answer["plans"]["moved"]
    assert (row["profile"], row["before"]["torch"], row["after"]["torch"]) == ("old", "3.1.0+cu126", "3.0.0+cu126")
    assert "torch 3.1.0+cu126 -> 3.0.0+cu126" in row["changes"]
    assert run(capsys, *words, "--profile", "mid")[1].count('"profile"') == 0
    assert run(capsys, str(pair[0]), "--ask", "torch", "--exit-code")[0] == 8
    assert "plans" not in run(capsys, str(pair[0]), "--no-plans")[1]


def test_a_refusal_is_a_move(pair: tuple[Path, Path], edit: Edit, capsys: pytest.CaptureFixture[str]) -> None:
    for release in ("3.0.0", "3.1.0"):
        text = (pair[1] / f"torch/{release}.yaml").read_text()
        (pair[1] / f"torch/{release}.yaml").write_text(text.replace("sm_60, ", ""))
    out = run(capsys, str(pair[0]), "--ask", "torch", "--profile", "old")[1]
    assert "-> refused (" in out and "1 of 1 move" in out


def test_markdown_makes_no_markup_of_data(pair: tuple[Path, Path], edit: Edit, capsys: pytest.CaptureFixture[str]) -> None:
    edit("profiles.yaml", "  mid:", '  "@someone <b>":')
    out = run(capsys, str(pair[0]), "--ask", "torch", "--format", "markdown")[1]
    assert "### Profiles" in out and "@someone" not in out and "<b>" not in out.replace("\\<b\\>", "")


def test_an_overlay_is_a_state(pair: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site = tmp_path / "site.yaml"
    site.write_text('schema: accel-env/overlay/1\nforbid: [{name: torch, versions: "==3.1.0", why: not yet}]\n')
    out = run(capsys, "used", str(site), "--ask", "torch", "--profile", "mid")[1]
    assert "torch 3.1.0+cu130 -> 3.0.0" in out


def test_archives_and_installed_states(
    pair: tuple[Path, Path], tmp_path: Path, edit: Edit, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from accel_env.update.archive import write_archive

    files = {path.relative_to(pair[0]).as_posix(): path.read_bytes() for path in pair[0].rglob("*") if path.is_file()}
    archive = tmp_path / "m.tar.gz"
    archive.write_bytes(write_archive(files))
    edit("indexes.yaml", "https://wheels.invalid/whl", "https://wheels.invalid/other")
    assert main(["matrix", "diff", str(archive), "--no-plans"]) == 0
    said = capsys.readouterr()
    assert "indexes" in said.out and "only looked at; not signed" in said.err
    archive.with_name("m.tar.gz.minisig").write_text("nonsense")
    assert main(["matrix", "diff", str(archive), "--no-plans"]) == 0
    assert "is no signature of minisign" in capsys.readouterr().err
    monkeypatch.setenv("ACCEL_ENV_DATA", str(tmp_path / "data"))
    place = Path(installed.data_folder())
    shutil.copytree(pair[0], place / "2027.1.1-0")
    (place / installed.CURRENT).write_text("2027.1.1-0\n")
    (place / installed.CURRENT).chmod(0o600)
    assert "indexes" in run(capsys, "installed", "--no-plans")[1]
    assert main(["matrix", "diff", "previous"]) == 3


def test_a_revision_is_a_state(
    pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """git's part is played: what it is asked, and what it answers."""
    asked: list[Sequence[str]] = []

    def fake(self: RealSystem, argv: Sequence[str], timeout: float = 0) -> Completed:
        asked.append(argv)
        output = next((word.removeprefix("--output=") for word in argv if word.startswith("--output=")), "")
        if output:
            with tarfile.open(output, "w") as archive:
                archive.add(pair[0], "matrix")
        known = "rev-parse" not in argv or "--show-toplevel" in argv or argv[-1] == "v1^{commit}"
        return Completed(tuple(argv), 0 if known else 1, "0123abc\n", "")

    monkeypatch.setattr(RealSystem, "run", fake)
    assert main(["matrix", "diff", "v1"]) == 0, capsys.readouterr().err
    assert "no difference" in capsys.readouterr().out
    assert ("archive" in asked[-1]) and asked[-1][-2:] == ("0123abc", "matrix")
    assert main(["matrix", "diff", "v2"]) == 3
    assert "is no state of the matrix" in capsys.readouterr().err
    asked.clear()
    assert main(["matrix", "diff", "--", "--output=/tmp/x"]) == 3 and not asked


@pytest.mark.parametrize(("ask", "said"), [("@nope", "neither state has the bundle @nope"), ("torch<", "'torch<'")])
def test_an_ask_that_is_none(pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str], ask: str, said: str) -> None:
    assert main(["matrix", "diff", str(pair[0]), "--ask", ask]) == 2
    assert said in capsys.readouterr().err


def test_usage(pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str], edit: Edit) -> None:
    assert main(["matrix", "diff"]) == 2 and main(["matrix", "diff", "a", "b", "c"]) == 2
    edit("indexes.yaml", "https://wheels.invalid/whl", "https://wheels.invalid/other")
    assert main(["matrix", "diff", str(pair[0]), "--profile", "nowhere"]) == 3
    capsys.readouterr()
