"""The cells: their file, what they come to, their rendered folders."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from accel_env import app_cells
from accel_env.__main__ import main
from accel_env.app_cells import Book, choose, load_book
from accel_env.errors import ClosureError, InputError, UsageError
from accel_env.matrix.load import Matrix, open_matrix
from accel_env.model import Lock, Solution
from accel_env.smoke.checks import program
from accel_env.solve.plan import plan

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = sorted(path for path in (ROOT / "dockerfiles").iterdir() if path.is_dir())


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return open_matrix(None)


@pytest.fixture(scope="module")
def book(matrix: Matrix) -> Book:
    return load_book(matrix)


class Documents:
    """A matrix with one file of cells and one profile."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document

    def document(self, name: str) -> Mapping[str, Any]:
        assert name == "cells"
        return self._document

    def profiles(self) -> Mapping[str, object]:
        return {"v100": object()}

    def bundles(self) -> Mapping[str, object]:
        return {"finetune": object()}


def book_of(**document: Any) -> Book:
    return load_book(Documents({"lists": {"plain": ["torch"]}, **document}))  # type: ignore[arg-type]


def test_the_cells_are_many_and_on_every_stack(matrix: Matrix, book: Book) -> None:
    assert len(book.cells) >= 36
    found = app_cells.solved(())["cells"]
    assert [row["cell"] for row in found] == list(book.cells)
    stacks = {row["stack"].partition("-")[0] for row in found if row["status"] == "ok"}
    assert {"cuda", "rocm", "xpu", "gaudi", "cpu"} <= stacks
    ready = [row for row in found if not row["lacks"]]
    assert len(ready) >= 36
    assert {"linux_x86_64", "linux_aarch64"} == {row["platform"] for row in ready}
    assert any("flash-attn" in row["picks"] for row in ready)
    assert any("vllm" in row["picks"] for row in ready)


def test_what_a_cell_lacks_is_named() -> None:
    rows = {row["cell"]: row for row in app_cells.solved(["t4g-torch", "a100-r470-finetune", "gaudi1-torch"])["cells"]}
    assert rows["t4g-torch"]["lacks"] == ["no combination: torch and device T4G (sm_75)"]
    assert rows["a100-r470-finetune"]["lacks"][0].startswith("sha256 of torch-")
    assert "flash_attn-" in rows["a100-r470-finetune"]["lacks"][1]
    assert rows["gaudi1-torch"]["lacks"][0].startswith("digest of vault.habana.ai/")


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ({"profile": "nobody", "list": "plain"}, "cells.x.profile: there is no profile `nobody`"),
        ({"profile": "v100", "list": "other"}, "cells.x.list: there is no list `other`; there are: plain"),
        ({"profile": "v100", "list": "plain", "python": "three"}, "cells.x.python: "),
        ({"profile": "v100", "list": "plain", "prefer": "best"}, "cells.x.prefer: `best` is none of"),
        ({"profile": "v100", "list": "plain", "pythn": "3.12"}, "cells.x.pythn: unknown key"),
        ({"list": "plain"}, "cells.x: the key `profile` is missing"),
    ],
)
def test_a_faulty_cell_is_refused_by_its_place(cell: dict[str, str], says: str) -> None:
    with pytest.raises(InputError) as caught:
        book_of(cells={"x": cell})
    assert caught.value.exit_code == 3
    assert f"cells.yaml: {says}" in caught.value.message


def test_a_list_with_the_sign_is_a_bundle() -> None:
    book = book_of(compiled=["@finetune"], cells={"one": {"profile": "v100", "list": "@finetune"}})
    assert book.cells["one"].asks == ("@finetune",) and book.cells["one"].compiler
    with pytest.raises(InputError, match=r"there is no list `@other`"):
        book_of(cells={"one": {"profile": "v100", "list": "@other"}})


def test_lists_hold_requirements() -> None:
    with pytest.raises(InputError, match=r"lists\.bad\[0\]: `torch >> 2` is no requirement"):
        book_of(lists={"bad": ["torch >> 2"]}, cells={})
    with pytest.raises(InputError, match="unknown key"):
        book_of(cells={}, bundles={})
    assert book_of(cells={"x": {"profile": "v100", "list": "plain"}}).cells["x"].asks == ("torch",)


def test_an_unknown_cell_has_near_ones(book: Book) -> None:
    with pytest.raises(UsageError) as caught:
        choose(book, ["v100-qant"])
    assert "v100-quant" in caught.value.hint
    assert [cell.name for cell in choose(book, ["v100-quant", "k80-torch"])] == ["v100-quant", "k80-torch"]


def test_the_matrix_of_a_ci_job(book: Book) -> None:
    found = app_cells.ci(["v100-quant", "t4g-torch", "gh200-vllm", "cpu-quant", "arc-a770-quant"])["include"]
    rows = {row["cell"]: row for row in found}
    assert list(rows) == ["v100-quant", "gh200-vllm", "cpu-quant", "arc-a770-quant"], "what has no solution is left out"
    assert rows["gh200-vllm"]["runner"] == list(book.hosted["linux_aarch64"])
    assert (rows["v100-quant"]["own"], rows["cpu-quant"]["own"]) == (list(book.own["nvidia"]), [])
    assert all(row["folder"] == f"dockerfiles/{row['cell']}" and row["levels"] == "static,import" for row in found)


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["accel-env", "cells", *words])
    return main()


def test_the_verb(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch) == 0
    assert re.search(r"^v100-quant +v100-r580 +3\.12 +@quant$", capsys.readouterr().out, re.MULTILINE)
    assert run(monkeypatch, "show", "v100-quant") == 0
    shown = capsys.readouterr().out
    assert "next: accel-env lock @quant --host v100-r580 --python 3.12 -o DIR" in shown
    assert run(monkeypatch, "resolve", "v100-quant", "t4g-torch") == 4
    assert "t4g-torch: no combination" in capsys.readouterr().out
    assert run(monkeypatch, "ci", "cpu-quant") == 0
    first = capsys.readouterr().out
    assert first.count("\n") == 1
    assert run(monkeypatch, "--format", "github") == 0
    assert len(json.loads(capsys.readouterr().out)["include"]) >= 36
    assert run(monkeypatch, "list", "cpu-quant", "--json") == 0
    assert json.loads(capsys.readouterr().out)["cells"][0]["asks"] == ["@quant"]


@pytest.mark.parametrize(
    "words", [("show",), ("show", "a", "b"), ("shw",), ("show", "v100-quant", "--format", "github"), ("list", "nobody")]
)
def test_misread_words(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, *words) == 2
    assert "hint: " in capsys.readouterr().err


# --- the rendered folders ---


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("render_cells", ROOT / "scripts" / "render_cells.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_committed_folders_are_those_of_the_cells(matrix: Matrix, book: Book, script: ModuleType) -> None:
    """What the network is not needed for: `scripts/render_cells.py --check` compares the contents."""
    states = [app_cells.state(cell, matrix) for cell in book.cells.values()]
    assert [path.name for path in FOLDERS] == sorted(state.cell.name for state in states if not state.lacks)
    assert (ROOT / "dockerfiles" / "README.md").read_text() == script.readme(states)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_a_committed_folder_is_whole_and_says_nothing_of_a_machine(folder: Path, matrix: Matrix, book: Book) -> None:
    names = {path.name for path in folder.iterdir()}
    assert {"Dockerfile", "requirements.lock", "plan.json"} <= names
    dockerfile, lock = (folder / "Dockerfile").read_text(), (folder / "requirements.lock").read_text()
    copied = {name for line in re.findall(r"^COPY (?!--from)(.+) \S+$", dockerfile, re.MULTILINE) for name in line.split()}
    assert copied - {"checks.py"} <= names, "what a build does not put there itself"
    assert all("@sha256:" in line for line in re.findall(r"^FROM .+", dockerfile, re.MULTILINE))
    pins = re.findall(r"^\S+(?:==| @ )\S+ \\\n(?:    --hash=sha256:[0-9a-f]{64}(?: \\\n)?)+$", lock, re.MULTILINE)
    assert len(pins) == len(re.findall(r"^[\w.-]+(?:==| @ )", lock, re.MULTILINE))
    picks = json.loads((folder / "plan.json").read_text())["picks"].values()
    assert pins or all(pick["index"] == "image" for pick in picks)
    for path in folder.iterdir():
        text = path.read_text()
        assert not re.search(
            r"/tmp/(?!accel-env|before-apt)|/home/(?!app)|pythonhosted|\bpypi\.(?!nvidia)\w+/|127\.0\.0\.1|localhost", text
        ), path.name
    row = json.loads((folder / "plan.json").read_text())
    state = app_cells.state(book.cells[folder.name], matrix)
    assert isinstance(state.result, Solution)
    # The closure may have refused the first answer; what was asked and where stays.
    wanted = plan(state.result, matrix)
    assert {key: row[key] for key in ("status", "asks", "host", "python")} == {
        key: wanted[key] for key in ("status", "asks", "host", "python")
    }


def test_hadolint_has_nothing_to_say() -> None:
    program = Path(sys.executable).with_name("hadolint")
    done = subprocess.run(
        [str(program), "--no-color", *(str(folder / "Dockerfile") for folder in FOLDERS)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_files_are_written_compared_and_removed(tmp_path: Path, script: ModuleType) -> None:
    folder = tmp_path / "cell"
    wanted = {"Dockerfile": b"FROM x\n", "plan.json": b"{}\n"}
    assert script.put(folder, {}, wanted, check=True) == ["cell/Dockerfile is missing", "cell/plan.json is missing"]
    assert not folder.exists()
    script.put(folder, {}, wanted, check=False)
    assert script.contents(folder) == wanted
    assert script.put(folder, wanted, wanted, check=True) == []
    (folder / "stray").write_bytes(b"")
    assert script.put(folder, script.contents(folder), {**wanted, "plan.json": b"[]\n"}, check=True) == [
        "cell/plan.json differs", "cell/stray is left over",
    ]  # fmt: skip
    script.put(folder, script.contents(folder), wanted, check=False)
    assert script.contents(folder) == wanted
    script.put(folder, wanted, {}, check=False)
    assert not folder.exists()


@pytest.fixture
def closed(matrix: Matrix, book: Book, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, Any]:
    """Closing without uv: the cell's solution as a lock without files; what it says of its making can be changed."""
    says = {"uv": "0.0.1", "digest": "sha256:" + "1" * 64, "refuse": ""}

    def close(request: Any, matrix_: Matrix, progress: Any, *, hashed_only: bool) -> Any:
        assert hashed_only
        if says["refuse"]:
            raise ClosureError("network-down", says["refuse"])
        state = app_cells.state(next(cell for cell in book.cells.values() if cell.request() == request), matrix)
        assert isinstance(state.result, Solution)
        tools = {"matrix": matrix.version, "matrix_digest": says["digest"], "uv": says["uv"]}
        row = plan(state.result, matrix)
        return (
            Lock(state.result, (), "2026-11-30T00:00:00Z", tools),
            {**row, "matrix": {**row["matrix"], "digest": says["digest"]}},
            (),
        )

    monkeypatch.setattr(app_cells.app, "closed", close)
    return says


def test_a_change_elsewhere_touches_no_cell(
    matrix: Matrix, book: Book, closed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = book.cells["cpu-quant"]
    first = app_cells.files(cell, matrix, {}, lambda _: None)
    assert b"closed by uv 0.0.1" in first["requirements.lock"]
    closed["uv"], closed["digest"] = "0.0.2", "sha256:" + "2" * 64
    assert app_cells.files(cell, matrix, first, lambda _: None) == first
    edited = {**first, "Dockerfile": first["Dockerfile"] + b"RUN true\n"}
    again = app_cells.files(cell, matrix, edited, lambda _: None)
    assert b"closed by uv 0.0.2" in again["requirements.lock"]
    assert json.loads(again["plan.json"])["matrix"]["digest"] == closed["digest"]
    assert app_cells.files(cell, matrix, {"plan.json": b"[]", "requirements.lock": b""}, lambda _: None) == again


def test_the_smoke_checks_alone(tmp_path: Path, script: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "checks.py").write_text("old")
        (tmp_path / name / "Dockerfile").write_text("FROM x")
    (tmp_path / "without").mkdir()
    assert script.main(["--programs", "--into", str(tmp_path)]) == 0
    assert "one/checks.py written" in capsys.readouterr().err
    assert (tmp_path / "two" / "checks.py").read_bytes() == program()
    assert (tmp_path / "one" / "Dockerfile").read_text() == "FROM x"
    assert not list((tmp_path / "without").iterdir())


def test_check_fails_on_any_difference(
    tmp_path: Path, script: ModuleType, closed: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["cpu-quant", "t4g-torch", "--into", str(tmp_path / "out")]
    assert script.main([*words, "--check"]) == 1
    assert "cpu-quant/Dockerfile is missing" in capsys.readouterr().err
    assert script.main(words) == 0
    assert script.main([*words, "--check"]) == 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["cpu-quant"]
    (tmp_path / "out" / "cpu-quant" / "plan.json").write_text("{}")
    assert script.main([*words, "--check"]) == 1
    assert "out is not what the matrix says: run scripts/render_cells.py" in capsys.readouterr().err
    shutil.rmtree(tmp_path / "out")
    closed["refuse"] = "no network"
    assert script.main([*words, "--check"]) == 5
    assert "no network" in capsys.readouterr().err
    assert script.main(["nobody"]) == 2
