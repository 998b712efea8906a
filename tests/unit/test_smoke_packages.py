"""Level static by metadata, and what is installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.unit.smoke_site import install

from accel_env.smoke import packages
from accel_env.smoke.installed import distributions, import_names, name_of, shown
from accel_env.smoke.packages import owners, planned_versions, requirements
from accel_env.smoke.verdict import Context, FailedError, SkippedError


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty site-packages that is the whole path."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *(part for part in sys.path if not part.endswith("-packages"))])
    return tmp_path


def planned(**versions: str) -> tuple[str, dict[str, object]]:
    return planned_versions(Context({"versions": {name.replace("_", "-"): version for name, version in versions.items()}}))


def test_planned_versions_pass_and_name_what_is_beside_them(site: Path) -> None:
    install(site, "torch", "2.9.0+cu128")
    install(site, "Typing_Extensions", "4.1")
    install(site, "pip", "24.0")
    install(site, "surprise", "1.0")
    text, facts = planned(torch="2.9.0", typing_extensions="4.1")
    assert text == "2 packages as planned, 1 beside them: surprise"
    assert facts == {"not in the plan": ["surprise"]}


@pytest.mark.parametrize(
    ("here", "wanted", "says"),
    [
        ("2.9.0+cpu", "2.9.0+cu128", r"torch 2\.9\.0\+cpu, the plan says 2\.9\.0\+cu128"),
        ("2.9.0", "2.9.0+cu128", "the plan says"),
        ("2.9.1", "2.9.0", "the plan says"),
        ("", "2.9.0", "torch is missing"),
    ],
)
def test_other_versions_fail(site: Path, here: str, wanted: str, says: str) -> None:
    if here:
        install(site, "torch", here)
    install(site, "numpy", "2.0")
    with pytest.raises(FailedError, match=says):
        planned(torch=wanted, numpy="2.0")


def test_without_a_plan_versions_are_left_out(site: Path) -> None:
    install(site, "torch")
    with pytest.raises(SkippedError, match="1 packages are"):
        planned()


def test_two_owners_of_one_file_fail(site: Path) -> None:
    install(site, "triton", files={"triton/__init__.py": b"a", "triton/lang.py": b"same"})
    install(site, "triton-xpu", files={"triton/__init__.py": b"b", "triton/lang.py": b"same"})
    with pytest.raises(FailedError, match="triton and triton-xpu both own triton"):
        owners(Context({}))


def test_equal_files_namespaces_and_strays_have_several_owners(site: Path) -> None:
    install(site, "nvidia-a", files={"nvidia/__init__.py": b"", "nvidia/a/__init__.py": b"", "tests/__init__.py": b"1"})
    install(site, "nvidia-b", files={"nvidia/__init__.py": b"", "nvidia/b/__init__.py": b"", "tests/__init__.py": b"2"})
    assert owners(Context({}))[0] == "one owner for each of 4 modules"


def test_requirements_are_checked_as_pip_does(site: Path) -> None:
    install(site, "torch", "2.9.0+cu128", requires=["numpy>=1.2", 'gone ; extra == "x"', "old ; python_version < '3'"])
    install(site, "numpy", "2.0")
    assert requirements(Context({}))[0] == "1 requirements are met"
    install(site, "ext", requires=["torch==2.8", "absent"])
    with pytest.raises(FailedError, match=r"2 requirements.*ext requires torch==2\.8, .* is installed; ext requires absent"):
        requirements(Context({}))


def test_without_a_reader_of_requirements_they_are_left_out(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in ("packaging", "pip")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "base_prefix", str(site))
    with pytest.raises(SkippedError, match="neither"):
        packages._parser()


def test_import_names_are_what_one_imports(site: Path) -> None:
    files = {
        "pkg/__init__.py": b"", "pkg/inner/__init__.py": b"", "single.py": b"", "fast.cpython-312-x86_64-linux-gnu.so": b"",
        "_private.py": b"", "tests/__init__.py": b"", "data/x.txt": b"", "not-a-name/__init__.py": b"",
    }  # fmt: skip
    install(site, "Some.Thing", files=files)
    (found,) = distributions()
    assert name_of(found) == "some-thing"
    assert import_names(found) == ["fast", "pkg", "single"]
    assert shown(str(site / "pkg" / "a.so")) == "pkg/a.so"
    assert shown("/elsewhere/a.so") == "/elsewhere/a.so"
