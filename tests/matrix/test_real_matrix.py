"""The matrix of this repository: it loads, keeps its rules, and knows the machines that people have."""
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from accel_env.matrix.lint import lint
from accel_env.matrix.load import Matrix, open_matrix
from accel_env.matrix.markers import marker_holds
from accel_env.matrix.show import show
from accel_env.matrix.stats import stats

ROOT = Path(__file__).parents[2] / "matrix"


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Matrix:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACCEL_ENV_CACHE", str(tmp_path_factory.mktemp("cache")))
        return open_matrix(ROOT)


def test_no_rule_is_broken(matrix: Matrix) -> None:
    assert [f"{item.rule}: {item.where}: {item.message}" for item in lint(matrix) if item.severity == "error"] == []


def test_everything_rests_on_facts(matrix: Matrix) -> None:
    known = {fact.id for fact in matrix.facts()}
    for name in matrix.package_names():
        for platform in matrix.platforms(name):
            for candidate in matrix.candidates(name, platform):
                ids = {candidate.fact, *(need.fact for need in candidate.needs)}
                assert ids <= known, (candidate.label, ids - known)


def test_markers_are_judged_without_a_parser(matrix: Matrix) -> None:
    """What needs keep of their markers is a range of Pythons, so `resolve` never imports the parser of markers."""
    markers = {need.marker for name in matrix.package_names() for platform in matrix.platforms(name)
               for candidate in matrix.candidates(name, platform) for need in candidate.needs if need.marker}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("accel_env.matrix.markers._evaluate", lambda *words: pytest.fail(f"parsed {words}"))
        for marker in markers:
            marker_holds(marker, "linux_x86_64", "3.12")


@pytest.mark.parametrize("folder", ["", "devices", "stacks", "packages", "torch", "artifacts"])
def test_files_fit_their_schemas(folder: str, schema_paths: Callable[[str, object], set[str]]) -> None:
    """The newest file of a folder of many stands for the rest; the loader has read all."""
    files = [path for path in sorted((ROOT / folder).iterdir()) if path.suffix in (".yaml", ".json") and path.stem != "closure"]
    for path in files if folder in ("", "stacks") else files[-2:]:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        value = json.loads(path.read_text()) if path.suffix == ".json" else yaml.load(path.read_text(), loader)
        assert schema_paths(value["schema"].split("/")[1], value) == set(), path.name


def test_counts_and_contents_are_json(matrix: Matrix) -> None:
    counts = json.loads(json.dumps(stats(matrix)))
    assert all(counts["totals"].values())
    assert counts["facts"]["vendor"] > counts["facts"]["community"]
    newest = matrix.candidates("torch", "linux_x86_64")[0].version
    shown = json.loads(json.dumps(show(matrix, f"torch=={newest}")))
    assert shown["builds"] and shown["facts"]


@pytest.mark.parametrize(("text", "arch"), [
    ("RTX 5090", "sm_120"), ("NVIDIA GeForce RTX 5090", "sm_120"), ("rtx5090", "sm_120"), ("4090", "sm_89"),
    ("Tesla V100-SXM2-32GB", "sm_70"), ("V100", "sm_70"), ("Tesla T4", "sm_75"), ("T4", "sm_75"),
    ("NVIDIA GeForce RTX 3090", "sm_86"), ("NVIDIA A100-SXM4-80GB", "sm_80"), ("A100", "sm_80"), ("L40S", "sm_89"),
    ("NVIDIA H100 80GB HBM3", "sm_90"), ("H100", "sm_90"), ("NVIDIA H200", "sm_90"), ("NVIDIA GH200 480GB", "sm_90"),
    ("GH200", "sm_90"), ("B200", "sm_100"), ("NVIDIA B200", "sm_100"), ("B300", "sm_103"), ("NVIDIA GB10", "sm_121"),
    ("GeForce GTX 1080 Ti", "sm_61"), ("NVIDIA RTX 6000 Ada Generation", "sm_89"), ("Quadro RTX 8000", "sm_75"),
    ("Instinct MI300X", "gfx942"), ("AMD Instinct MI300X OAM", "gfx942"), ("MI300X", "gfx942"), ("MI210", "gfx90a"),
    ("AMD Radeon RX 7900 XTX", "gfx1100"), ("7900 XTX", "gfx1100"), ("RX 9070 XT", "gfx1201"), ("Radeon VII", "gfx906"),
    ("Arc B580", "bmg-g21"), ("Intel(R) Arc(TM) B580 Graphics", "bmg-g21"), ("B580", "bmg-g21"),
    ("Intel(R) Data Center GPU Max 1550", "pvc"), ("Max 1550", "pvc"), ("Gaudi 2", "gaudi2"), ("gaudi3", "gaudi3"),
])
def test_products_as_people_write_them(matrix: Matrix, text: str, arch: str) -> None:
    found = matrix.devices().by_name(None, text)
    assert found is not None, matrix.devices().nearest(text)
    assert found.arch == arch


@pytest.mark.parametrize("text", ["RTX 9999", "H1000", "Arc", "MI", "Radeon", "GeForce"])
def test_no_product_is_guessed(matrix: Matrix, text: str) -> None:
    assert matrix.devices().by_name(None, text) is None
