"""A site's mirrors, registries and profiles, the variable that names its overlay, and what plans say of it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from accel_env import app
from accel_env.__main__ import main
from accel_env.errors import InputError
from accel_env.matrix.lint import lint
from accel_env.matrix.load import Matrix, open_matrix
from accel_env.matrix.mirrors import moved_indexes, split_registry
from accel_env.matrix.types import Index

TINY = Path(__file__).resolve().parents[1] / "data" / "tiny"
SITE = """\
schema: accel-env/overlay/1
facts:
  ours: {text: ours, source: our build server, grade: measured, checked: "2026-11-30"}
mirrors:
  "https://wheels.invalid": "https://mirror.example/wheels/"
  "https://assets.invalid/download/": "https://mirror.example/gh"
registries: {docker.io: "registry.example:5000/hub"}
devices: [{vendor: nvidia, name: Site T4, arch: sm_80, fact: ours}]
profiles:
  rack-1: {summary: our rack, host: {os: linux, arch: x86_64, devices: [{name: Site T4, driver: "580.65"}]}}
forbid: [{name: torch, versions: "==3.1.0", why: not yet}]
"""


def errors(matrix: Matrix) -> list[str]:
    return [one.message for one in lint(matrix) if one.severity == "error"]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ACCEL_ENV_MATRIX", str(TINY))
    path = tmp_path / "site.yaml"
    path.write_text(SITE)
    return path


def test_indexes_under_a_mirror_move(site: Path) -> None:
    matrix = open_matrix(TINY, (site,))
    assert matrix.index_url("wheels:cu126") == "https://mirror.example/wheels/whl/cu126"
    assert matrix.index_url("assets") == "https://mirror.example/gh/{tag}/{file}"
    assert matrix.artifact("wheels:cu126", "torch-3.1.0+cu126-cp312-cp312-manylinux_2_28_x86_64.whl"), "hashes stay"
    assert errors(matrix) == errors(open_matrix(TINY))


def test_of_two_overlays_the_one_on_top_moves(site: Path, tmp_path: Path) -> None:
    top = tmp_path / "top.yaml"
    top.write_text(
        'schema: accel-env/overlay/1\nmirrors: {"https://wheels.invalid": "https://top.example"}\n'
        "registries: {docker.io: top.example}\n"
    )
    matrix = open_matrix(TINY, (site, top))
    assert matrix.index_url("wheels:cu126") == "https://top.example/whl/cu126"
    assert matrix.index_url("assets").startswith("https://mirror.example/gh/"), "what the top one leaves stays"
    assert {image.ref.partition("/")[0] for image in matrix.images()} == {"top.example"}
    below = open_matrix(TINY, (top, site))
    assert below.index_url("wheels:cu126") == "https://mirror.example/wheels/whl/cu126"
    top.write_text('schema: accel-env/overlay/1\nmirrors: {"https://mirror.example/wheels": "https://top.example"}\n')
    assert open_matrix(TINY, (site, top)).index_url("wheels:cu126") == "https://top.example/whl/cu126"


@pytest.mark.parametrize("text", [
    'indexes: {own: {url: "https://u:hidden@own.example/simple", kind: simple}}',
    'mirrors: {"https://wheels.invalid": "https://u:hidden@own.example/simple"}',
])  # fmt: skip
def test_a_password_in_a_url_is_refused_and_not_shown(site: Path, text: str) -> None:
    site.write_text(f"schema: accel-env/overlay/1\n{text}\n")
    with pytest.raises(InputError, match="fault") as caught:
        open_matrix(TINY, (site,))
    assert "netrc" in str(caught.value) and "hidden" not in str(caught.value)


def test_the_longest_beginning_counts_and_names_are_whole() -> None:
    index = {"a": Index("a", "https://x.org/whl/cu126", "simple"), "b": Index("b", "https://x.organic/whl", "simple")}
    moved = moved_indexes(index, {"https://x.org": "https://one", "https://x.org/whl": "https://two"})
    assert {name: one.url for name, one in moved.items()} == {"a": "https://two/cu126"}


def test_images_come_from_the_sites_registry_with_their_digests(site: Path) -> None:
    before = {image.digest: image for image in open_matrix(TINY).images()}
    for image in open_matrix(TINY, (site,)).images():
        assert image.ref == f"registry.example:5000/hub/library/{before[image.digest].ref}"


@pytest.mark.parametrize(
    ("ref", "parts"),
    [
        ("python:3.12", ("docker.io", "library/python:3.12")),
        ("nvidia/cuda:1", ("docker.io", "nvidia/cuda:1")),
        ("quay.io/a/b:1", ("quay.io", "a/b:1")),
        ("localhost/a:1", ("localhost", "a:1")),
        ("box:5000/a", ("box:5000", "a")),
    ],
)
def test_references(ref: str, parts: tuple[str, str]) -> None:
    assert split_registry(ref) == parts


def test_own_images_and_indexes_are_where_they_say(site: Path) -> None:
    extra = (
        'images: [{ref: "docker.io/own/base:1", fact: ours}]\nindexes: {own: {url: "https://wheels.invalid/own", kind: simple}}\n'
    )
    site.write_text(SITE + extra)
    matrix = open_matrix(TINY, (site,))
    assert matrix.images()[0].ref == "docker.io/own/base:1" and matrix.index_url("own") == "https://wheels.invalid/own"


def test_a_plan_names_what_came_from_the_overlay(site: Path) -> None:
    plan = app.resolve(app.Request(asks=("torch",), host="rack-1", overlays=(str(site),)))
    assert plan["status"] == "ok" and plan["picks"]["torch"]["version"] == "3.0.0", "the newer one is forbidden"
    (row,) = plan["overlays"]
    assert row["name"] == "overlay/site.yaml"
    assert row["gives"]["devices"] == ["Site T4"] and row["gives"]["forbids"] == ["torch ==3.1.0"]
    assert row["gives"]["images"] == [plan["image"]["ref"]]
    plain = app.resolve(app.Request(asks=("torch",), devices=("Mid 80",), driver="580.65"))
    assert "overlays" not in plain


def test_the_variable_names_overlays(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    second = tmp_path / "second.yaml"
    second.write_text('schema: accel-env/overlay/1\nmirrors: {"https://mirror.example": "https://last.example"}\n')
    monkeypatch.setenv("ACCEL_ENV_OVERLAY", os.pathsep.join((str(site), "", str(second))))
    assert app.matrix_of().index_url("wheels:cpu") == "https://last.example/wheels/whl/cpu"
    assert len(app.matrix_of((str(site),)).overlays) == 2, "one that is named twice counts once"
    monkeypatch.setenv("ACCEL_ENV_OVERLAY", str(tmp_path / "gone.yaml"))
    with pytest.raises(InputError, match=r"gone\.yaml"):
        app.matrix_of()


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("mirrors: {pytorch: 'https://x.example'}", "mirrors"),
        ("mirrors: {'https://a.b': nowhere}", 'mirrors["https://a.b"]'),
        ("registries: {docker: registry.example}", "registries"),
        ("registries: {docker.io: 'https://x.example'}", 'registries["docker.io"]'),
        ("profiles: {x: {summary: y}}", "profiles.x"),
        ("registries: [docker.io]", "registries"),
    ],
)
def test_wrong_words_are_found_by_loader_and_schema(
    site: Path, line: str, path: str, schema_paths: Callable[[str, object], set[str]]
) -> None:
    import yaml

    text = f"schema: accel-env/overlay/1\n{line}\n"
    site.write_text(text)
    with pytest.raises(InputError) as caught:
        open_matrix(TINY, (site,))
    assert any(path in found for found in caught.value.context)
    assert schema_paths("overlay", yaml.safe_load(text))


def test_the_good_one_is_good_for_the_schema(schema_paths: Callable[[str, object], set[str]]) -> None:
    import yaml

    assert not schema_paths("overlay", yaml.safe_load(SITE))


def test_an_old_matrix_is_said_and_never_written(
    site: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    import shutil

    from accel_env.app_close import answer_of, plan_of

    root = shutil.copytree(TINY, tmp_path / "old")
    (root / "matrix.yaml").write_text('schema: accel-env/matrix/1\nversion: "2026.02.27"\nstale_after_days: 90\n')
    monkeypatch.setenv("ACCEL_ENV_MATRIX", str(root))
    words = ["resolve", "torch", "--device", "Mid 80", "--driver", "580.65"]
    told = {}
    for day in ("2026-05-28", "2026-05-29"):  # 90 days, 91 days
        monkeypatch.setenv("ACCEL_ENV_TODAY", day)
        assert main(words) == 0
        text = capsys.readouterr()
        assert main([*words, "--json"]) == 0
        as_json = capsys.readouterr()
        plan = json.loads(as_json.out)
        told[day] = (
            "matrix-old" in text.err,
            "matrix-old" in as_json.err,
            "matrix-old" in [one["rule"] for one in plan["warnings"]],
        )
        assert "matrix-old" not in text.out
        matrix = app.matrix_of()
        problem, notes = app.problem_of(app.Request(asks=("torch",), devices=("Mid 80",), driver="580.65"), matrix)
        assert "matrix-old" not in json.dumps(plan_of(answer_of(problem, matrix), matrix, notes))
    assert told == {"2026-05-28": (False, False, False), "2026-05-29": (True, True, True)}
    assert main([*words[:-1], "100.0"]) == 4
    assert "days ago" in capsys.readouterr().err
    (root / "matrix.yaml").write_text('schema: accel-env/matrix/1\nversion: "2026.02.27"\n')
    assert main(words) == 0 and "matrix-old" not in capsys.readouterr().err


def test_days_are_counted_as_the_calendar_does() -> None:
    import datetime

    from accel_env.matrix.age import _day

    for day in (datetime.date(1970, 1, 1), datetime.date(2024, 2, 29), datetime.date(2026, 11, 30), datetime.date(2100, 3, 1)):
        assert _day(day.isoformat()) == (day - datetime.date(1970, 1, 1)).days
    assert _day("2026-11-30-2") == _day("2026-11-30") and not _day("soon") and not _day("2026-13-01") and not _day("")
