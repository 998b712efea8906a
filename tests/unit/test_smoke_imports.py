"""Level import without torch: imports and their verdicts."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
from tests.unit.smoke_site import install, library

from accel_env.smoke.imports import (
    import_all,
    import_check,
    import_checks,
    load_torch,
    numpy_bridge,
    tokenizers_round_trip,
    torch_maths,
    transformers_forward,
)
from accel_env.smoke.quant import bitsandbytes_cpu
from accel_env.smoke.verdict import Context, FailedError, SkippedError, near, of_driver, some


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path; what is imported from it is forgotten. Children see it too."""
    before = set(sys.modules)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    importlib.invalidate_caches()
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(site: Path, **modules: str) -> None:
    for name, text in modules.items():
        (site / f"{name}.py").write_text(text)
    importlib.invalidate_caches()


def test_modules_that_import_pass(site: Path) -> None:
    write(site, smoke_one="import warnings; warnings.warn('x')", smoke_two="")
    assert import_all(["smoke_one"]) == ("smoke_one imported", {})
    assert import_all(["smoke_one", "smoke_two"]) == ("2 modules imported", {})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import nowhere_at_all", "ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("raise RuntimeError('operator torchvision::nms does not exist')", "RuntimeError: operator torchvision"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("raise ImportError('libfoo.so.1: cannot open shared object file')", "libfoo"),
        ("raise RuntimeError('libcudart.so.12 is not the driver')", "libcudart"),
    ],
)
def test_a_module_that_does_not_import_fails(site: Path, text: str, says: str) -> None:
    write(site, smoke_bad=text, smoke_good="")
    with pytest.raises(FailedError, match="1 of 2 modules cannot be imported: smoke_bad: ") as caught:
        import_all(["smoke_good", "smoke_bad"])
    assert says in str(caught.value)


def test_a_missing_driver_is_no_fault_of_the_image(site: Path) -> None:
    write(site, smoke_gpu="raise ImportError('libcuda.so.1: cannot open shared object file: No such file or directory')")
    with pytest.raises(SkippedError, match=r"needs the driver, which is not here: libcuda\.so\.1"):
        import_all(["smoke_gpu"])
    write(
        site, smoke_bad="import nowhere_at_all", smoke_video="raise RuntimeError('no NVENC: libnvidia-encode.so.1: cannot open')"
    )
    with pytest.raises(FailedError):
        import_all(["smoke_gpu", "smoke_bad"])
    with pytest.raises(SkippedError, match=r"libcuda\.so\.1, libnvidia-encode\.so\.1"):
        import_all(["smoke_gpu", "smoke_video"])


def test_what_fails_for_the_company_alone_is_no_fault(site: Path) -> None:
    write(site, smoke_first="", smoke_tool="import sys\nassert 'smoke_first' not in sys.modules, 'comes too late'")
    assert import_all(["smoke_first", "smoke_tool"])[0] == "2 modules imported"


def test_native_and_picked_packages_have_a_check_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    install(tmp_path, "fast", files={"fast/__init__.py": b"", "fast/_C.so": library()})
    install(tmp_path, "Picked.One", files={"picked/__init__.py": b""})
    install(tmp_path, "plain", files={"plain/__init__.py": b""})
    install(tmp_path, "libs-only", files={"nothing/x.so": library()})
    names = [check.name for check in import_checks({"picks": ["picked-one"]})]
    assert names == ["import fast", "import picked-one", "import the others"]
    assert [check.name for name in names if (check := import_check(name, {"picks": ["picked-one"]}))] == names
    assert import_check("import nobody", {}) is None


def test_without_the_packages_their_checks_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    for check in (torch_maths, numpy_bridge, bitsandbytes_cpu, transformers_forward, tokenizers_round_trip):
        with pytest.raises(SkippedError, match="not installed"):
            check(Context({}))
    with pytest.raises(SkippedError):
        load_torch()


@pytest.mark.parametrize("error", [0.2, float("nan"), float("inf")])
def test_errors_beyond_the_tolerance_fail(error: float) -> None:
    with pytest.raises(FailedError, match=r"matmul: error .*, allowed 0\.1"):
        near("matmul", error, 0.1)
    assert near("matmul", 0.05, 0.1) == "matmul: error 0.05 of 0.1"


def test_words_for_people() -> None:
    assert some(["a", "b", "c"], 2) == "a; b and 1 more"
    assert of_driver("ImportError: libcuda.so.1: cannot open shared object file") == "libcuda.so.1"
    assert of_driver("libcudart.so.12: cannot open") == ""
