"""The compiled form: the same values as the YAML, never wrong, never fatal."""
from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from accel_env.matrix import compiled
from accel_env.matrix.load import Matrix, open_matrix

Edit = Callable[[str, str, str], None]
OTHER_BITS = 0o077


def everything(matrix: Matrix) -> tuple[object, ...]:
    names = sorted(matrix.package_names())
    candidates = [matrix.candidates(name, platform) for name in names for platform in matrix.platforms(name)]
    files = [matrix.artifact_files(index) for index in matrix.artifact_indexes()]
    return (matrix.version, matrix.digest, candidates, files, matrix.stacks(), list(matrix.devices()), matrix.pythons(),
            matrix.images(), matrix.indexes(), matrix.conflicts(), matrix.profiles(), matrix.facts())


def files_of(cache: Path) -> list[Path]:
    return sorted(path for path in cache.rglob("*") if path.is_file())


def forbid_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> tuple[str, dict[str, object]]:
        raise AssertionError("compiled again")

    monkeypatch.setattr("accel_env.matrix.load._compile", refuse)


def test_a_warm_start_gives_the_same_and_reads_no_yaml(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cold = everything(open_matrix(root))
    forbid_compiling(monkeypatch)
    assert everything(open_matrix(root)) == cold


def test_a_warm_start_imports_no_parser(root: Path) -> None:
    open_matrix(root)
    heavy = ("yaml", "json", "packaging", "hashlib", "requests", "typer")
    code = (f"import sys; from accel_env.matrix.load import open_matrix; m = open_matrix({str(root)!r});"
            "m.candidates('torch', 'linux_x86_64'); m.stacks(); m.images(); m.fact('stacks/zz:rule');"
            f"print([name for name in {heavy!r} if name in sys.modules])")
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.stdout.strip() == "[]"


def test_an_edit_is_seen(root: Path, edit: Edit) -> None:
    before = open_matrix(root)
    edit("packages/ext.yaml", "summary: a compiled extension", "summary: a compiled expansion")
    after = open_matrix(root)
    assert after.package("ext").summary == "a compiled expansion"
    assert after.digest != before.digest


def test_the_digest_is_of_content_alone(root: Path, tmp_path: Path) -> None:
    before = open_matrix(root).digest
    os.utime(root / "matrix.yaml", (1, 1))
    assert open_matrix(root).digest == before
    assert open_matrix(root.rename(tmp_path / "elsewhere")).digest == before


@pytest.mark.parametrize("spoil", [
    lambda data: b"", lambda data: data[:10], lambda data: data[: len(data) // 2], lambda data: data[:-1],
    lambda data: b"x" + data[1:], lambda data: data[:40] + b"\xff" * 40 + data[80:], lambda data: data[:-40] + b"\0" * 40,
], ids=["empty", "magic", "half", "short", "foreign", "table", "body"])
def test_torn_files_are_made_again(root: Path, cache: Path, spoil: Callable[[bytes], bytes]) -> None:
    cold = everything(open_matrix(root))
    for path in files_of(cache):
        path.write_bytes(spoil(path.read_bytes()))
    assert everything(open_matrix(root)) == cold


def test_a_cache_that_goes_away_while_in_use(root: Path, cache: Path) -> None:
    cold = everything(open_matrix(root))
    matrix = open_matrix(root)
    for path in files_of(cache):
        path.unlink()
    assert everything(matrix) == cold


def test_a_cache_that_others_may_write_is_not_read(root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_matrix(root)
    monkeypatch.setattr("marshal.loads", lambda data: pytest.fail("read a file that others may write"))
    for path in (cache, *files_of(cache)):
        path.chmod(path.stat().st_mode | OTHER_BITS)
    compiled_again: list[str] = []

    def make() -> tuple[str, dict[str, object]]:
        compiled_again.append("")
        raise LookupError

    with pytest.raises(LookupError):
        compiled.open_sections(((str(root), ()), ()), make)
    assert compiled_again


def test_a_file_of_somebody_else_is_not_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cold = everything(open_matrix(root))
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    monkeypatch.setattr("accel_env.matrix.compiled._recall", lambda *_: pytest.fail("looked into a foreign cache"))
    assert everything(open_matrix(root)) == cold


def test_no_place_for_a_cache(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file, no folder")
    monkeypatch.setenv("ACCEL_ENV_CACHE", str(blocked / "cache"))
    assert open_matrix(root).version == "2026.11.30"


def test_a_full_disk_is_no_matter(root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: str, target: str) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        assert open_matrix(root).version == "2026.11.30"
    assert files_of(cache) == []  # nothing half-written stays


def test_the_usual_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ACCEL_ENV_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert compiled.cache_folder() == str(tmp_path / ".cache" / "accel-env")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert compiled.cache_folder() == str(tmp_path / "xdg" / "accel-env")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert compiled.cache_folder() == str(tmp_path / ".cache" / "accel-env")
    monkeypatch.setenv("ACCEL_ENV_CACHE", "relative")
    assert compiled.cache_folder() == ""


def test_the_cache_is_private(root: Path, cache: Path) -> None:
    open_matrix(root)
    assert all(not path.stat().st_mode & OTHER_BITS for path in (cache, *cache.rglob("*")))


def test_old_compilations_go(root: Path, cache: Path) -> None:
    for number in range(12):
        (root / "matrix.yaml").write_text(f'schema: accel-env/matrix/1\nversion: "2026.12.{number}"\n')
        open_matrix(root)
    assert sum(len(path.name) == 64 for path in cache.iterdir()) == 8


def test_several_processes_compile_at_once(root: Path, cache: Path) -> None:
    code = (f"from accel_env.matrix.load import open_matrix; m = open_matrix({str(root)!r});"
            "print(m.digest, len(m.candidates('torch', 'linux_x86_64')))")
    running = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(4)]
    answers = {process.communicate(timeout=60)[0] for process in running}
    assert answers == {f"{open_matrix(root).digest} 2\n"}
    assert all(not path.name.startswith(".") for path in files_of(cache))
