"""The refresh scripts against recorded copies: drafts, nothing the second time, and what makes them write nothing."""

from __future__ import annotations

import hashlib
import importlib
import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from accel_env.matrix.load import open_matrix

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data" / "refresh"
SCRIPTS = ("pypi", "indexes", "assets", "images", "tables")
HUB = "registry-1.docker.io/v2"
RAW = "raw.githubusercontent.com"
CU126 = "download.pytorch.org/whl/cu126/torch/index.html"
BUILDS = f"{RAW}/pytorch/test-infra/main/tools/scripts/generate_binary_build_matrix.py"
ROCM = f"{RAW}/ROCm/ROCm/develop/docs/compatibility/compatibility-matrix-historical-6.0.csv"
ASSETS = "api.github.com/repos/Dao-AILab/flash-attention/releases@per_page=100&page=1"

Run = Callable[..., int]


class Site:
    """Copies of the small matrix and of the sites that a test may spoil."""

    def __init__(self, folder: Path) -> None:
        self.matrix = Path(shutil.copytree(DATA / "matrix", folder / "matrix"))
        self.sites = Path(shutil.copytree(DATA / "sites", folder / "sites"))

    def run(self, script: str, *words: str, source: str = "") -> int:
        module = importlib.import_module(f"update_{script}")
        main = importlib.import_module("updating.run").main
        given = ["--matrix", str(self.matrix), "--source", source or str(self.sites), "--today", "2026-12-01", *words]
        code = main(module.__doc__, module.draft, given)
        assert isinstance(code, int)
        return code

    def edit(self, path: str, old: str, new: str) -> None:
        file = self.sites / path
        text = file.read_text()
        assert old in text, f"{old!r} is not in {path}"
        file.write_text(text.replace(old, new))

    def contents(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.matrix)): path.read_bytes() for path in sorted(self.matrix.rglob("*")) if path.is_file()
        }


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    monkeypatch.setenv("ACCEL_ENV_CACHE", str(tmp_path / "cache"))
    return Site(tmp_path)


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_second_run_drafts_nothing(site: Site, script: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = site.contents()
    assert site.run(script, "--check") == 1
    assert site.run(script, "--dry-run") == 0
    assert site.contents() == before
    assert "+++ b/" in capsys.readouterr().out
    assert site.run(script) == 0
    after = site.contents()
    assert after != before
    capsys.readouterr()
    assert site.run(script) == 0
    assert site.contents() == after
    assert "nothing new" in capsys.readouterr().err
    assert site.run(script, "--check") == 0


def test_what_people_wrote_stays(site: Site) -> None:
    before = (site.matrix / "packages/numpy.yaml").read_text().splitlines()
    assert site.run("pypi") == 0
    after = (site.matrix / "packages/numpy.yaml").read_text().splitlines()
    rest = iter(after)
    assert all(line in rest for line in before), "a line is gone or has moved"
    assert after.index("# between the facts and the releases") < after.index("releases:")


def test_pypi_drafts_what_is_new_and_claims_nothing(site: Site) -> None:
    assert site.run("pypi") == 0
    matrix = open_matrix(site.matrix)
    numpy = matrix.candidates("numpy", "linux_x86_64")
    # 2.3.9 is older and was there before, 2.5.6 is yanked, 2.6.0rc1 is none
    assert [one.version for one in numpy] == ["2.5.5", "2.5.4", "2.4.7", "2.4.6"]
    assert numpy[0].tags == ("cp312", "cp313", "cp314t") and not any(need.unknown for need in numpy[0].needs)
    assert [need.allows for need in numpy[0].needs if need.subject == "libc"] == [">=2.27"]
    assert [one.tags for one in matrix.candidates("numpy", "macos_aarch64")] == [("cp314",)]
    (torch,) = [one for one in matrix.candidates("torch", "linux_x86_64") if one.version == "2.15.0"]
    assert sum(need.unknown for need in torch.needs) == 2
    assert torch.requires == ("filelock", 'nvidia-cudnn-cu13==9.24.0.43; platform_system == "Linux"')
    (windows,) = matrix.candidates("torch", "windows_x86_64")
    assert windows.requires == ("filelock",)
    assert torch.hashed == ("cp312",)
    fact = matrix.fact(torch.fact)
    assert (fact.grade, fact.checked) == ("vendor", "2026-12-01") and "PyPI" in fact.source


def test_one_release_per_series_where_the_settings_say_so(site: Site) -> None:
    text = page(site, "numpy").read_text().replace('"yanked": "broken"', '"yanked": false')
    page(site, "numpy").write_text(text)
    assert site.run("pypi", "--package", "numpy") == 0
    versions = [one.version for one in open_matrix(site.matrix).candidates("numpy", "linux_x86_64")]
    assert versions == ["2.5.6", "2.5.4", "2.4.7", "2.4.6"]


def test_wheels_that_came_late_are_said(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    rename(site, "2.5.4-cp313-cp313", "2.5.4-cp314-cp314t")
    assert site.run("pypi", "--package", "numpy") == 0
    assert "numpy 2.5.4 has wheels on PyPI that no build of the matrix names: cp314t (linux_x86_64)" in capsys.readouterr().err
    rename(site, "2.5.4-cp314-cp314t", "2.5.4-cp317-cp317")
    shutil.rmtree(site.matrix)
    shutil.copytree(DATA / "matrix", site.matrix)
    assert site.run("pypi", "--package", "numpy") == 3


def test_an_index_without_metadata_files_has_the_wheels_read(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(page(site, "numpy").read_text())
    for row in rows["files"]:
        row.pop("core-metadata", None)
        if row["filename"].endswith(".whl"):
            with zipfile.ZipFile(site.sites / "files" / row["filename"], "w") as wheel:
                wheel.writestr("numpy/METADATA", "Requires-Dist: wrong")
                wheel.writestr("numpy-2.5.5.dist-info/METADATA", "Name: numpy\nRequires-Dist: right>=1\n\nRequires-Dist: text")
    page(site, "numpy").write_text(json.dumps(rows))
    assert site.run("pypi", "--package", "numpy") == 0
    assert open_matrix(site.matrix).candidates("numpy", "macos_aarch64")[0].requires == ("right>=1",)
    shutil.rmtree(site.matrix)
    shutil.copytree(DATA / "matrix", site.matrix)
    for path in (site.sites / "files").glob("numpy-2.5.5*.whl"):
        path.write_bytes(path.read_bytes()[:60])
    capsys.readouterr()
    assert site.run("pypi", "--package", "numpy") == 5
    assert "is no wheel that can be read" in capsys.readouterr().err


def test_one_package_alone(site: Site) -> None:
    assert site.run("pypi", "--package", "numpy") == 0
    assert not (site.matrix / "torch/2.15.0.yaml").exists()
    assert site.run("pypi", "--package", "nowhere") == 3


def test_indexes_add_files_and_keep_rows(site: Site) -> None:
    known = json.loads((site.matrix / "artifacts/pytorch-cu126.json").read_text())["files"]
    assert site.run("indexes") == 0
    files = json.loads((site.matrix / "artifacts/pytorch-cu126.json").read_text())["files"]
    # nightlies, the bundled cuDNN and torch 1 stay out
    assert sorted(name.split("-cp")[0] for name in files) == ["torch-2.14.0+cu126", "torch-2.14.1+cu126", "torch-2.14.1+cu126"]
    assert {name: files[name] for name in known} == known
    assert [row["sha256"] for name, row in files.items() if "cp313" in name] == [None]
    assert (site.matrix / "artifacts/radeon-rocm-rel-7.2.json").exists()


def test_an_index_that_nobody_refreshes_is_said(site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = tmp_path / "refresh.yaml"
    settings.write_text((ROOT / "scripts" / "refresh.yaml").read_text().replace("  radeon: {}\n", ""))
    assert site.run("indexes", "--settings", str(settings)) == 0
    assert "builds come from the index radeon" in capsys.readouterr().err
    assert not (site.matrix / "artifacts/radeon-rocm-rel-7.2.json").exists()


def test_a_hash_that_nobody_had_is_filled_in(site: Site) -> None:
    assert site.run("indexes") == 0
    name = "torch-2.14.1%2Bcu126-cp313-cp313-manylinux_2_28_x86_64.whl"
    site.edit(CU126, f'{name}"', f'{name}#sha256={"5" * 64}"')
    assert site.run("indexes") == 0
    files = json.loads((site.matrix / "artifacts/pytorch-cu126.json").read_text())["files"]
    assert files[name.replace("%2B", "+")]["sha256"] == "5" * 64


def test_assets_by_tag(site: Site) -> None:
    assert site.run("assets") == 0
    rows = json.loads((site.matrix / "artifacts/flash-attn.json").read_text())["files"]
    assert {row["tag"] for row in rows.values()} == {"v2.8.3", "v2.8.4"} and len(rows) == 3
    assert all("flash_attn-2." in name and "rc1" not in name for name in rows)


def test_images_by_digest(site: Site) -> None:
    assert site.run("images") == 0
    images = {image.ref: image for image in open_matrix(site.matrix).images()}
    python = images["python:3.12-slim-bookworm"]
    manifest = (site.sites / HUB / "library/python/manifests/3.12-slim-bookworm").read_bytes()
    assert python.digest == f"sha256:{hashlib.sha256(manifest).hexdigest()}" and python.default
    assert "3.12.15" in open_matrix(site.matrix).fact(python.fact).text
    new = images["python:3.13-slim-bookworm"]
    assert (new.libc, new.os, new.default) == ("2.36", "debian-12", False)
    assert images["nvidia/cuda:13.0.2-devel-ubuntu24.04"].stack == "cuda-13.0"
    assert "python:3.11-slim-bookworm" not in images and "nvidia/cuda:13.0.2-base-ubuntu24.04" not in images
    assert "# NVIDIA" in (site.matrix / "images.yaml").read_text()


def test_tables_draft_doubtful_builds_and_releases(site: Site) -> None:
    assert site.run("tables") == 0
    matrix = open_matrix(site.matrix)
    (build,) = [one for one in matrix.candidates("torch", "linux_x86_64") if one.build == "rocm6.3"]
    assert sum(need.unknown for need in build.needs) == 2 and build.tags == ("cp312", "cp313", "cp314", "cp314t")
    release = matrix.stack_release("rocm-7.14")
    assert (
        release is not None and release.driver_allows == ("==31.10.*", "==30.30.*") and release.targets == ("gfx1100", "gfx942")
    )


def page(site: Site, name: str) -> Path:
    return site.sites / "pypi/simple" / name / "index.json"


def rename(site: Site, old: str, new: str) -> None:
    """Another file name on numpy's page, its metadata file moved along."""
    text = page(site, "numpy").read_text()
    assert old in text
    page(site, "numpy").write_text(text.replace(old, new))
    for path in (site.sites / "files").glob(f"*{old}*"):
        path.rename(path.with_name(path.name.replace(old, new)))


def drop(site: Site, name: str, *words: str) -> None:
    rows = json.loads(page(site, name).read_text())
    rows["files"] = [row for row in rows["files"] if not all(word in row["filename"] for word in words)]
    page(site, name).write_text(json.dumps(rows))


TORCH = "torch-2.14.1-cp312-cp312-manylinux_2_28_x86_64.whl"
FIRST = "torch-2.14.1+cu126-cp312-cp312-manylinux_2_28_x86_64.whl"
ASSET = "flash_attn-2.8.3+cu12torch2.8cxx11abiTRUE-cp312-cp312-linux_x86_64.whl"


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


REFUSED: dict[str, tuple[str, Callable[[Site], object], int, str]] = {
    "pypi: a release is gone": ("pypi", lambda s: drop(s, "numpy", "2.4.6"), 5, "numpy 2.4.6"),
    "pypi: a file with a known hash is gone": ("pypi", lambda s: drop(s, "torch", "2.14.1-cp312"), 5, TORCH),
    "pypi: a known file has another hash": (
        "pypi",
        lambda s: s.edit("pypi/simple/torch/index.json", sha(TORCH), "0" * 64),
        5,
        TORCH,
    ),
    "pypi: a Python that nobody knows": ("pypi", lambda s: rename(s, "2.5.5-cp312-cp312", "2.5.5-cp317-cp317"), 3, "Python 3.17"),
    "pypi: an ABI that nobody knows": ("pypi", lambda s: rename(s, "2.5.5-cp312-cp312", "2.5.5-cp312-cp312x"), 3, "cp312-cp312x"),
    "pypi: a platform that nobody knows": (
        "pypi",
        lambda s: rename(s, "musllinux_1_2_x86_64", "haiku_1_x86_64"),
        3,
        "haiku_1_x86_64",
    ),
    "pypi: metadata with another hash": (
        "pypi",
        lambda s: s.edit("files/numpy-2.5.5-cp314-cp314-macosx_14_0_arm64.whl.metadata", "2.5.5", "2.5.7"),
        5,
        "sha256",
    ),
    "pypi: no index but a page of a proxy": (
        "pypi",
        lambda s: page(s, "numpy").write_text('{"error": "login"}'),
        5,
        "no page of a package",
    ),
    "pypi: the page is gone": ("pypi", lambda s: page(s, "numpy").unlink(), 5, "404"),
    "indexes: a known file is gone": ("indexes", lambda s: s.edit(CU126, FIRST.replace("+", "%2B"), "x.whl"), 5, FIRST),
    "indexes: a known file has another hash": (
        "indexes",
        lambda s: s.edit(CU126, sha(FIRST), "0" * 64),
        5,
        "another file under a known name",
    ),
    "indexes: a stack that nobody knows": (
        "indexes",
        lambda s: s.edit(CU126, "2.14.0%2Bcu126", "2.14.0%2Bcu149"),
        3,
        "cuda-14.9",
    ),
    "indexes: a label that nobody knows": ("indexes", lambda s: s.edit(CU126, "2.14.0%2Bcu126", "2.14.0%2Bqpu1"), 3, "qpu1"),
    "indexes: a Python that nobody knows": (
        "indexes",
        lambda s: s.edit(CU126, "2.14.0%2Bcu126-cp312", "2.14.0%2Bcu126-cp399"),
        3,
        "cp399",
    ),
    "assets: another digest": ("assets", lambda s: s.edit(ASSETS, sha(ASSET), "0" * 64), 5, ASSET),
    "assets: a known one is gone": ("assets", lambda s: s.edit(ASSETS, ASSET, "other.txt"), 5, ASSET),
    "assets: a CUDA that nobody knows": ("assets", lambda s: s.edit(ASSETS, "2.8.4+cu13", "2.8.4+cu19"), 3, "CUDA 19"),
    "assets: a label that nobody knows": ("assets", lambda s: s.edit(ASSETS, "2.8.4+cu13torch2.14", "2.8.4+musa1"), 3, "musa1"),
    "assets: no list": ("assets", lambda s: (s.sites / ASSETS).write_text('{"message": "rate limit"}'), 5, "no list of releases"),
    "images: a fixed tag has another digest": (
        "images",
        lambda s: s.edit(f"{HUB}/nvidia/cuda/manifests/12.6.3-devel-ubuntu24.04", '"schemaVersion": 2', '"schemaVersion":  2'),
        5,
        "nvidia/cuda:12.6.3",
    ),
    "images: a tag is gone": (
        "images",
        lambda s: (s.sites / HUB / "library/python/manifests/3.12-slim-bookworm").unlink(),
        5,
        "no such tag",
    ),
    "images: a platform is gone": (
        "images",
        lambda s: s.edit(f"{HUB}/library/python/manifests/3.12-slim-bookworm", "amd64", "riscv64"),
        5,
        "linux_x86_64",
    ),
    "images: a CUDA that nobody knows": (
        "images",
        lambda s: s.edit(f"{HUB}/nvidia/cuda/tags/list@n=1000", "13.0.2-devel", "13.9.1-devel"),
        3,
        "cuda-13.9",
    ),
    "images: a Python that nobody knows": (
        "images",
        lambda s: s.edit(f"{HUB}/library/python/tags/list@n=1000", '"3.13-slim', '"3.19-slim'),
        3,
        "Python 3.19",
    ),
    "images: fewer tags": (
        "images",
        lambda s: s.edit(f"{HUB}/library/python/tags/list@n=1000", '"3.12-slim-bookworm", ', ""),
        5,
        "3.12-slim-bookworm",
    ),
    "tables: the table is no more": ("tables", lambda s: s.edit(BUILDS, "CUDA_ARCHES_DICT", "CUDA_X"), 5, "CUDA_ARCHES_DICT"),
    "tables: no Python": ("tables", lambda s: s.edit(BUILDS, "raise SystemExit(", "raise <("), 5, "CUDA_ARCHES_DICT"),
    "tables: a build is gone": (
        "tables",
        lambda s: s.edit(BUILDS, '"release": ["12.6", "13.0"]', '"release": ["13.0"]'),
        5,
        "cu126",
    ),
    "tables: a stack that nobody knows": (
        "tables",
        lambda s: s.edit(BUILDS, '"release": ["12.6", "13.0"]', '"release": ["12.6", "14.9"]'),
        3,
        "cuda-14.9",
    ),
    "tables: a Python that nobody knows": ("tables", lambda s: s.edit(BUILDS, '"3.14t"]', '"3.19"]'), 3, "Python 3.19"),
    "tables: a series is gone": (
        "tables",
        lambda s: s.edit(f"{RAW}/pytorch/pytorch/main/RELEASE.md", "| 2.14 |", "| 2.12 |"),
        5,
        "torch 2.14",
    ),
    "tables: other columns": (
        "tables",
        lambda s: s.edit(f"{RAW}/pytorch/pytorch/main/RELEASE.md", "Stable CUDA", "CUDA"),
        5,
        "no table with the columns",
    ),
    "tables: a target that nobody knows": ("tables", lambda s: s.edit(ROCM, "gfx942 [#mi300]_", "gfx9999"), 3, "gfx9999"),
    "tables: a ROCm release is gone": ("tables", lambda s: s.edit(ROCM, "6.3.1,6.3.0", "6.1.1,6.1.0"), 5, "ROCm 6.3"),
    "tables: no table of ROCm": ("tables", lambda s: s.edit(ROCM, "ROCm Version", "<html>"), 5, "no table of ROCm"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_nothing_is_written_where_a_source_is_not_what_it_was(site: Site, case: str, capsys: pytest.CaptureFixture[str]) -> None:
    script, spoil, code, said = REFUSED[case]
    spoil(site)
    before = site.contents()
    assert site.run(script) == code
    assert site.contents() == before
    err = capsys.readouterr().err
    assert said in err and "hint:" in err and "nothing was written" in err and "Traceback" not in err


def test_a_draft_that_breaks_the_matrix_is_refused(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.edit(
        "files/numpy-2.5.5-cp312-cp312-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl.metadata",
        "\n\n",
        "\nRequires-Dist: <>\n\n",
    )
    text = (site.sites / "files/numpy-2.5.5-cp312-cp312-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl.metadata").read_text()
    rows = json.loads(page(site, "numpy").read_text())
    for row in rows["files"]:
        if row["filename"].startswith("numpy-2.5.5-cp312-cp312-manylinux"):
            row["core-metadata"] = {"sha256": sha(text)}
    page(site, "numpy").write_text(json.dumps(rows))
    before = site.contents()
    assert site.run("pypi") == 3 and site.contents() == before
    assert "which is no requirement" in capsys.readouterr().err


def test_usage(site: Site) -> None:
    assert site.run("pypi", source=str(site.matrix / "nowhere")) == 3
    assert site.run("pypi", "--today", "soon") == 3
    (site.matrix / "matrix.yaml").unlink()
    assert site.run("pypi") == 3


def test_modules_are_small() -> None:
    for path in [*(ROOT / "scripts").glob("update_*.py"), *(ROOT / "scripts" / "updating").glob("*.py")]:
        assert path.read_text().count("\n") <= 300, path
