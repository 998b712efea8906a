"""Readings and the matrix: what they raise, where they differ, `matrix verify` against servers with and without ranges."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.unit.test_inspect_reader import LIBRARY, wheel_bytes

from accel_env.__main__ import main
from accel_env.inspect import batch, source
from accel_env.inspect.record import record
from accel_env.inspect.wheel import inspect_wheel
from accel_env.matrix.evidence import lift
from accel_env.matrix.lint import lint
from accel_env.matrix.load import Matrix, open_matrix
from accel_env.model import Subject

TINY = Path(__file__).parents[1] / "data" / "tiny"
NAME = "thing-1.0-cp312-cp312-linux_x86_64.whl"
WHEEL = wheel_bytes({"thing/lib.so": LIBRARY, "thing/data.bin": hashlib.sha512(b"x").digest() * 20_000})
PACKAGE = """schema: accel-env/package/1
package: thing
module: thing
summary: invented
facts:
  meta: {text: invented, source: this test, grade: vendor, checked: "2026-01-01"}
releases:
- version: "1.0"
  requires_python: ">=3.10"
  requires: ["torch (==2.8.0)"]
  fact: meta
  builds:
  - build: any
    index: pypi
    platforms: [linux_x86_64]
    stack: cuda
    tags: [cp312]
    needs:
      arch: {code: [sm_75, sm_90, sm_90a, sm_100f], ptx: [compute_90, compute_120f], fact: meta}
      libc: {glibc: "2.17", fact: meta}
    fact: meta
"""
Edit = Callable[[str, str], None]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A matrix with the package, and no readings."""
    monkeypatch.setenv("ACCEL_ENV_CACHE", str(tmp_path / "cache"))
    found = Path(shutil.copytree(TINY, tmp_path / "matrix"))
    (found / "packages" / "thing.yaml").write_text(PACKAGE)
    monkeypatch.setenv("ACCEL_ENV_MATRIX", str(found))
    return found


@pytest.fixture
def edit(root: Path) -> Edit:
    def change(old: str, new: str) -> None:
        path = root / "packages" / "thing.yaml"
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))

    return change


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / NAME
    path.write_bytes(WHEEL)
    return path


@contextmanager
def serving(content: bytes, ranges: bool) -> Iterator[tuple[str, list[tuple[str, int]]]]:
    """An index with the one wheel; gives its URL and (range asked, bytes sent) of every answer."""
    log: list[tuple[str, int]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if not self.path.endswith(".whl"):
                row = {"filename": NAME, "url": f"../../files/{NAME}", "hashes": {"sha256": hashlib.sha256(WHEEL).hexdigest()}}
                return self.answer(200, json.dumps({"files": [row]}).encode(), "application/vnd.pypi.simple.v1+json")
            asked = self.headers.get("Range", "")
            log.append((asked, 0))
            if not ranges or not asked:
                return self.answer(200, content)
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start, end = (int(first), int(last) + 1) if first else (max(len(content) - int(last), 0), len(content))
            return self.answer(206, content[start:end], "application/zip", f"bytes {start}-{end - 1}/{len(content)}")

        def answer(self, status: int, body: bytes, kind: str = "application/zip", part: str = "") -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            if part:
                self.send_header("Content-Range", part)
            self.end_headers()
            try:
                self.wfile.write(body)
            except OSError:
                return  # the reader had enough

        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/simple", log
        server.shutdown()


def keep_reading(root: Path, wheel: Path, **changes: Any) -> None:
    """Writes the reading of the wheel into the matrix."""
    with wheel.open("rb") as stream:
        held = {**record(inspect_wheel(stream, NAME)), **changes}
    row = {"sha256": hashlib.sha256(WHEEL).hexdigest(), "size": len(WHEEL), "read": "2026-01-02", "contents": "a"}
    (root / "inspected").mkdir(exist_ok=True)
    (root / "inspected" / "thing.json").write_text(batch.file_text("thing", {"a": held}, {"pypi": {NAME: row}}))


def verify(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any], str]:
    code = main(["matrix", "verify", "thing==1.0", "--json", *words])
    output = capsys.readouterr()
    return code, json.loads(output.out) if output.out else {}, output.err


def errors(matrix: Matrix) -> list[str]:
    return [problem.rule for problem in lint(matrix) if problem.severity == "error" and "inspected" in problem.file]


def plan(matrix: Matrix) -> str:
    pick = {"version": "1.0", "build": "any", "index": "pypi", "tag": "cp312", "evidence": "metadata"}
    row = {"picks": {"thing": pick}, "host": {"os": "linux", "arch": "x86_64"}, "stack": {"name": "cuda"}, "python": "3.12"}
    return str(lift(row, matrix)["picks"]["thing"]["evidence"])


def test_what_a_reading_confirms_is_measured(root: Path, wheel: Path) -> None:
    assert plan(open_matrix(root)) == "metadata"
    keep_reading(root, wheel)
    matrix = open_matrix(root)
    (candidate,) = matrix.candidates("thing", "linux_x86_64")
    fact = matrix.fact(next(need.fact for need in candidate.needs if need.subject is Subject.ARCH))
    assert (fact.grade, fact.checked, fact.doubt) == ("measured", "2026-01-02", "")
    assert NAME in fact.source
    assert "sm_90a" in fact.text
    # the tag asks for more than the symbols do, so the need goes on to rest on the tag
    assert next(need.fact for need in candidate.needs if need.subject is Subject.LIBC) == "packages/thing:meta"
    assert plan(matrix) == "inspected"
    assert errors(matrix) == []


def test_where_they_differ_the_binary_wins_and_somebody_must_have_seen_it(root: Path, wheel: Path, edit: Edit) -> None:
    edit("sm_100f], ptx: [compute_90, compute_120f]", "sm_120], ptx: []")
    edit('glibc: "2.17"', 'glibc: "2.12"')
    keep_reading(root, wheel)
    matrix = open_matrix(root)
    (candidate,) = matrix.candidates("thing", "linux_x86_64")
    arch = next(need for need in candidate.needs if need.subject is Subject.ARCH)
    assert set(arch.values) == {"sm_75", "sm_90", "sm_90a", "sm_100f"}
    assert set(arch.jit) == {"compute_90", "compute_120f"}
    assert "sm_120" in matrix.fact(arch.fact).doubt
    assert next(need.allows for need in candidate.needs if need.subject is Subject.LIBC) == ">=2.14"
    assert plan(matrix) == "inspected"
    assert errors(matrix) == ["reading-differs", "reading-differs"]
    found = [problem.message for problem in lint(matrix) if problem.rule == "reading-differs"]
    assert any("libc: the matrix says glibc 2.12, the file glibc 2.14" in text for text in found)
    both = {"documented": "glibc 2.12", "read": "glibc 2.14"}
    row = {"package": "thing", "versions": ["1.0"], "subject": "libc", "why": "test", **both}
    listed = {"schema": "accel-env/disagreements/1", "disagreements": [row, {**row, "subject": "arch"}]}
    (root / "inspected" / "disagreements.yaml").write_text(json.dumps(listed))
    assert errors(open_matrix(root)) == ["disagreement-gone", "reading-differs"]


@pytest.mark.parametrize(("old", "new", "subject"), [
    ('"torch (==2.8.0)"', '"torch>=2.8"', "requires"), ('">=3.10"', '">=3.11"', "requires-python"),
])  # fmt: skip
def test_other_metadata_is_no_evidence(root: Path, wheel: Path, edit: Edit, old: str, new: str, subject: str) -> None:
    edit(old, new)
    keep_reading(root, wheel)
    matrix = open_matrix(root)
    assert plan(matrix) == "metadata"
    assert [p.message.split(", ")[1].split(":")[0] for p in lint(matrix) if p.rule == "reading-differs"] == [subject]


def test_a_torch_that_lacks_a_symbol(root: Path, wheel: Path, edit: Edit) -> None:
    torch = {"symbols": 3, "digest": "0" * 16, "stable": False, "fits": ["2.9.0"], "lacks": {"_ZN2at1xEv": ["2.8.0", "2.10.0"]}}
    keep_reading(root, wheel, torch=torch)
    matrix = open_matrix(root)
    assert plan(matrix) == "metadata"
    found = [problem.message for problem in lint(matrix) if problem.rule == "reading-differs"]
    assert found == ["thing 1.0 on linux_x86_64, torch: the matrix says ==2.8.0, the file fits 2.9.0"]


@pytest.mark.parametrize("ranges", [True, False])
def test_verify(root: Path, wheel: Path, capsys: pytest.CaptureFixture[str], ranges: bool) -> None:
    keep_reading(root, wheel)
    with serving(WHEEL, ranges) as (url, log):
        code, answer, _ = verify(capsys, "--index", url)
        assert (code, answer["status"], answer["differences"]) == (0, "agrees", [])
        assert answer["sha256"]["found"] == hashlib.sha256(WHEEL).hexdigest()
        assert "the reading of 2026-01-02" in answer["agrees"]
        log.clear()
        code, answer, said = verify(capsys, "--index", url, "--quick")
    assert (code, answer["status"]) == (0, "agrees")
    assert answer["sha256"]["found"] == "not computed"
    assert said == "", "with --json nothing but an error is said"
    assert [bool(asked) for asked, _ in log] == ([True] if ranges else [True, False])


@pytest.mark.parametrize("ranges", [True, False])
def test_a_tampered_wheel_is_refused(root: Path, capsys: pytest.CaptureFixture[str], ranges: bool) -> None:
    """The index lists the hash of the real file; what comes is another whole wheel."""
    with serving(wheel_bytes({"thing/lib.so": LIBRARY + b"more"}), ranges) as (url, _):
        code, answer, _ = verify(capsys, "--index", url)
    assert (code, answer["status"], answer["agrees"]) == (5, "refused", [])
    assert any(line.endswith("says the file") for line in answer["differences"])


def test_a_local_copy_that_was_tampered_with(root: Path, wheel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep_reading(root, wheel)
    assert verify(capsys, "--file", str(wheel))[0] == 0
    wheel.write_bytes(WHEEL[:-1] + b"!")
    code, answer, _ = verify(capsys, "--file", str(wheel))
    assert (code, answer["status"]) == (5, "refused")


def test_a_file_that_nobody_knows_is_unproven(root: Path, wheel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a hash that somebody gives, what a file says of itself proves nothing."""
    keep_reading(root, wheel)
    rebuilt = wheel.rename(wheel.with_name(NAME.replace("1.0-", "1.0-1-")))
    code, answer, _ = verify(capsys, "--file", str(rebuilt))
    assert (code, answer["status"], answer["sha256"]["expected"]) == (5, "unproven", {})
    with serving(WHEEL, True) as (url, _):
        rebuilt.rename(wheel)
        shutil.rmtree(root / "inspected")
        assert verify(capsys, "--file", str(wheel))[1]["status"] == "unproven"
        assert verify(capsys, "--file", str(wheel), "--index", url)[1]["status"] == "agrees"


@pytest.mark.parametrize(("name", "code", "reference"), [
    ("other-1.0-cp312-cp312-linux_x86_64.whl", 5, "another-artifact"),
    ("thing-1.1-cp312-cp312-linux_x86_64.whl", 5, "another-artifact"),
    ("thing-1.0-cp39-cp39-win_amd64.whl", 2, "nothing-to-verify"),
    ("thing-1.0-cp311-cp311-linux_x86_64.whl", 2, "nothing-to-verify"),
    ("thing.zip", 2, "no-wheel-name"),
])  # fmt: skip
def test_a_file_of_something_else(
    root: Path, wheel: Path, capsys: pytest.CaptureFixture[str], name: str, code: int, reference: str
) -> None:
    keep_reading(root, wheel)
    found, answer, said = verify(capsys, "--file", str(wheel.rename(wheel.with_name(name))))
    assert (found, answer, json.loads(said)["error"]["reference"]) == (code, {}, reference)


def test_a_pipe_is_not_waited_for(root: Path, wheel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wheel.unlink()
    os.mkfifo(wheel)
    code, _, said = verify(capsys, "--file", str(wheel))
    assert (code, json.loads(said)["error"]["reference"]) == (3, "file-unreadable")


@pytest.mark.parametrize(("words", "code", "message"), [
    (["thing", "--python", "abc"], 2, "no Python `abc`"), (["thing", "--index", "http://[::1"], 5, "cannot be read"),
    (["thing==1.0 ; x"], 2, "is no release of a package"), (["--", "--x"], 2, "`--x` is no release"),
])  # fmt: skip
def test_words_that_mean_nothing(
    root: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, message: str
) -> None:
    assert main(["matrix", "verify", *words]) == code
    said = capsys.readouterr().err
    assert message in said and "--not" not in said


def test_without_the_reader_nothing_is_fetched(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with serving(WHEEL, True) as (url, log):
        code, _, said = verify(capsys, "--index", url)
    assert (code, json.loads(said)["error"]["reference"], log) == (2, "inspect-missing", [])


def test_what_differs_is_named(root: Path, wheel: Path, edit: Edit, capsys: pytest.CaptureFixture[str]) -> None:
    edit('"torch (==2.8.0)"', '"torch==2.9.0"')
    edit('glibc: "2.17"', 'glibc: "2.12"')
    keep_reading(root, wheel, glibcxx="3.4.30")
    code, answer, _ = verify(capsys, "--file", str(wheel))
    assert (code, answer["status"]) == (5, "differs")
    text = "\n".join(answer["differences"])
    for part in ("matrix alone requires torch==2.9.0", "METADATA alone requires torch==2.8.0", "glibcxx: 3.4.30 was read before"):
        assert part in text


@pytest.mark.parametrize("damage", ["short", "text", "missing"])
def test_verify_of_a_broken_file(root: Path, wheel: Path, capsys: pytest.CaptureFixture[str], damage: str) -> None:
    if damage == "missing":
        wheel.unlink()
    else:
        wheel.write_bytes(WHEEL[:5000] if damage == "short" else b"<html>")
    code, answer, said = verify(capsys, "--file", str(wheel))
    assert (code, answer) == (5, {})
    assert json.loads(said)["error"]["reference"] == ("artifact-unreachable" if damage == "missing" else "wheel-broken")


@pytest.mark.parametrize("words", [["--platform", "linux_aarch64"], ["--python", "3.11"], ["--build", "cu126"]])
def test_nothing_to_verify(root: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    code, _, said = verify(capsys, *words)
    assert code == 2
    assert json.loads(said)["error"]["reference"] == "nothing-to-verify"


def test_a_range_reads_little(wheel: Path) -> None:
    big = wheel_bytes({"thing/a.py": hashlib.sha512(b"x").digest() * 160_000, "thing/lib.so": LIBRARY}, 0)
    with serving(big, True) as (url, log):
        place = url.replace("simple", f"files/{NAME}")
        with source.open_wheel(place) as stream:
            assert inspect_wheel(stream, NAME).libraries[0].name == "thing/lib.so"
    assert len(big) > 10_000_000
    assert [asked.startswith("bytes=-") for asked, _ in log] == [True]


def test_a_batch_reads_what_is_missing_and_writes_the_same_again(root: Path, tmp_path: Path) -> None:
    with serving(WHEEL, True) as (url, log):
        said: list[str] = []
        run = batch.Batch(open_matrix(root), "pypi", url, tmp_path / "kept", root / "inspected", "2026-01-02", (), said.append)
        assert (run.read("thing"), run.write("thing")) == (1, 1)
        first = (root / "inspected" / "thing.json").read_bytes()
        assert (run.read("thing"), run.write("thing")) == (0, 1)
        shutil.rmtree(tmp_path / "kept")
        log.clear()
        assert (run.read("thing"), run.write("thing"), log) == (0, 1, [])
    assert (root / "inspected" / "thing.json").read_bytes() == first
    assert plan(open_matrix(root)) == "inspected"
