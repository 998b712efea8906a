"""Vendors' images as candidates, on the small invented matrix with an overlay-free copy that has images of its own."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from accel_env import app
from accel_env.app_image import ImageWords, check_image
from accel_env.errors import InputError, UsageError
from accel_env.matrix.load import Matrix, open_matrix
from accel_env.model import Conflict, Need, Solution, Subject
from accel_env.solve.finish import answer
from accel_env.solve.prune import prune
from accel_env.solve.slot import compiled_against, satisfies

TINY = Path(__file__).parent.parent / "data" / "tiny"
DIGEST = "sha256:" + "5" * 64
IMAGES = """
code:
  own: {linux_x86_64: {code: [sm_80, sm_120], ptx: [compute_120], fact: pin}}
  attn: {linux_x86_64: {code: [sm_80], fact: pin}}
  old: {linux_x86_64: {code: [sm_37], fact: pin}}
"""
ROWS = f"""
- ref: vendor/torch:2
  python: "3.12"
  stack: cuda-13.0
  brings: {{torch: "3.2.0a0+abc.v2"}}
  code: {{torch: own}}
  platforms: [linux_x86_64]
  compat: true
  note: mind its constraints
  fact: pin
- ref: vendor/torch:1
  digest: "{DIGEST}"
  python: "3.12"
  stack: cuda-13.0
  brings: {{torch: "3.1.0a0+abc.v1", fastattn: "2.0+v1", arrays: "2.1"}}
  code: {{torch: own, fastattn: attn}}
  platforms: [linux_x86_64]
  compat: true
  environment: /opt/venv
  fact: pin
- ref: vendor/old:1
  digest: "{DIGEST}"
  python: "3.11"
  stack: cuda-12.6
  brings: {{torch: "3.0.0a0+abc.old"}}
  code: {{torch: old}}
  platforms: [linux_x86_64]
  fact: pin
- ref: server/server:1
  digest: "{DIGEST}"
  python: "3.12"
  stack: cuda-12.6
  brings: {{torch: "3.0.0+cu126", server: "1.0"}}
  platforms: [linux_x86_64]
  requires: true
  purpose: server
  fact: pin
- ref: vendor/unknown:1
  python: "3.12"
  stack: cuda-13.0
  brings: {{torch: "9.0.0+mystery"}}
  platforms: [linux_x86_64]
  fact: pin
"""
MID, NEW, OLD, FIRST = "Mid 80", "580.95.05", "535.10", "First 37"
Json = dict[str, Any]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("matrix") / "tiny"
    shutil.copytree(TINY, folder)
    text = (folder / "images.yaml").read_text()
    (folder / "images.yaml").write_text(text.replace("images:\n", f"{IMAGES}images:\n", 1) + ROWS)
    stack = folder / "stacks" / "cuda.yaml"
    compat = 'forward_compat: {kinds: [datacenter], branches: ["535"], fact: drop}\n'
    stack.write_text(stack.read_text().replace("facts:\n", f"{compat}facts:\n", 1))
    rows = ((FIRST, "sm_37", "datacenter"), ("Desk 80", "sm_80", "geforce"), ("Odd 35", "sm_35", "geforce"))
    devices = folder / "devices" / "nvidia.yaml"
    devices.write_text(devices.read_text() + "".join(
        f"- {{name: {name}, arch: {arch}, kind: {kind}, fact: {fact_of(devices)}}}\n"
        for name, arch, kind in rows
    ))
    return folder


def fact_of(path: Path) -> str:
    """The first fact of a file."""
    return path.read_text().partition("facts:\n")[2].split(":", 1)[0].strip()


@pytest.fixture
def matrix(root: Path, monkeypatch: pytest.MonkeyPatch) -> Matrix:
    monkeypatch.setenv("ACCEL_ENV_MATRIX", str(root))
    return open_matrix(root)


def solved(matrix: Matrix, *asks: str, device: str = MID, driver: str = NEW, **more: Any) -> Solution | Conflict:
    problem, _ = app.problem_of(app.Request(asks=asks, devices=(device,), driver=driver, **more), matrix)
    return answer(prune(problem, matrix))


def ok(matrix: Matrix, *asks: str, **more: Any) -> Solution:
    found = solved(matrix, *asks, **more)
    assert isinstance(found, Solution), found
    return found


def labels(found: Solution) -> list[str]:
    return [pick.candidate.label for pick in found.picks]


def rules(found: Solution) -> set[str]:
    return {warning.rule for warning in found.warnings}


def test_without_the_option_no_image_is_seen(matrix: Matrix) -> None:
    assert labels(ok(matrix, "torch"))[0].startswith("torch 3.1.0+cu1")
    assert not any(c.tag.startswith("vendor/") for c in matrix.candidates("torch", "linux_x86_64"))


def test_a_pinned_image_comes_before_a_newer_one_without_a_digest(matrix: Matrix) -> None:
    found = ok(matrix, "torch", base="vendor")
    assert labels(found) == ["torch 3.1.0a0+abc.v1"] and found.image and found.image.ref == "vendor/torch:1"
    newest = ok(matrix, "torch", base="vendor", prefer="newest")
    assert newest.image and newest.image.ref == "vendor/torch:2" and {"image-unpinned", "vendor-torch"} <= rules(newest)
    assert any("mind its constraints" in warning.message for warning in newest.warnings)


def test_an_image_by_its_name(matrix: Matrix) -> None:
    found = ok(matrix, "torch", base=f"vendor/torch:2@{DIGEST}")
    assert labels(found) == ["torch 3.2.0a0+abc.v2"] and found.problem.policy.base == "vendor/torch:2"
    with pytest.raises(UsageError) as caught:
        solved(matrix, "torch", base="vendor/torch:3")
    assert caught.value.reference == "unknown-base" and "vendor/torch:2" in caught.value.hint
    assert labels(ok(matrix, "torch", base="my/base:1", own_base=True))[0].startswith("torch 3.1.0+cu1"), "a base for wheels"


def test_what_the_image_brings_is_picked_and_nothing_is_laid_over_it(matrix: Matrix) -> None:
    found = ok(matrix, "torch", "fastattn", "arrays", base="vendor")
    assert labels(found) == ["torch 3.1.0a0+abc.v1", "fastattn 2.0+v1", "arrays 2.1"]
    assert {pick.candidate.index for pick in found.picks} == {"image"}
    assert isinstance(solved(matrix, "torch", "arrays<2", base="vendor/torch:1"), Conflict)
    other = ok(matrix, "torch", "arrays<2", base="vendor")
    assert other.image and other.image.ref != "vendor/torch:1", "an image that brings none leaves it to the index"


def test_wheels_for_releases_of_torch_are_not_known_to_fit_a_build_of_the_vendors_own(matrix: Matrix) -> None:
    refused = solved(matrix, "torch", "fastattn", base="vendor/torch:2")
    assert isinstance(refused, Conflict) and any(item.text == "base vendor/torch:2" for item in refused.core)
    assert [(c.kind, c.name) for way in refused.relaxations for c in way.change][:2] == [("base", "vendor"), ("base", "")]
    assert isinstance(solved(matrix, "server", base="vendor/torch:2"), Conflict), "an exact pin in metadata"
    assert labels(ok(matrix, "torch", "otherattn", base="vendor/torch:2"))[1] == "otherattn 4.0", "a plain requirement"


def test_an_image_for_a_purpose_serves_that_alone(matrix: Matrix) -> None:
    found = ok(matrix, "server", base="vendor")
    assert labels(found) == ["torch 3.0.0+cu126", "server 1.0"] and found.image and found.image.ref == "server/server:1"
    assert not rules(found) & {"third-party-build", "vendor-torch"}, "its torch is the index's own"
    same = next(pick.candidate for pick in found.picks if pick.candidate.name == "torch")
    assert dict(same.provides)["cuda"] and any(need.subject is Subject.ARCH and need.values for need in same.needs)


def test_an_image_may_refuse_to_start_below_its_toolkits_driver(matrix: Matrix) -> None:
    refused = solved(matrix, "server", base="vendor", driver="550.10")
    assert isinstance(refused, Conflict) and "refuses to start" in " ".join(because.text for because in refused.because)
    assert isinstance(solved(matrix, "server", driver="550.10"), Solution), "the wheels alone run by minor-version compatibility"


def test_the_vendors_package_for_older_drivers_counts_on_its_devices(matrix: Matrix) -> None:
    found = ok(matrix, "torch", base="vendor", driver=OLD)
    assert found.stack == "cuda-13.0" and "forward-compat" in rules(found) and "driver-minor-compat" not in rules(found)
    assert isinstance(solved(matrix, "torch", base="vendor/torch:1", device="Desk 80", driver=OLD), Conflict), "not its kind"
    assert isinstance(solved(matrix, "torch", base="vendor/torch:1", driver="550.1"), Conflict), "not this branch"


def test_where_no_wheel_is_for_the_device_an_image_is_the_answer(matrix: Matrix) -> None:
    found = ok(matrix, "torch", device=FIRST)
    assert labels(found) == ["torch 3.0.0a0+abc.old"] and found.python == "3.11" and "vendor-image" in rules(found)
    assert found.problem.policy.base == "vendor", "so that locking goes the same way"
    assert isinstance(solved(matrix, "torch", device=FIRST, target="venv"), Conflict)
    assert isinstance(solved(matrix, "torch", device="Odd 35"), Conflict), "what nobody knows to work is no answer"
    assert isinstance(solved(matrix, "torch<3", device=MID), Conflict), "a range that nothing meets is no reason"


def test_machine_code_that_nobody_told_is_never_picked_for_a_device(matrix: Matrix) -> None:
    assert isinstance(solved(matrix, "torch", base="vendor/unknown:1"), Conflict)


def test_rendering_on_an_environment_of_the_image_is_refused_before_the_closure(matrix: Matrix) -> None:
    found = ok(matrix, "torch", base="vendor")
    with pytest.raises(UsageError, match="virtual environment of the image"):
        check_image(ImageWords(base="vendor"), found, matrix)


def test_a_plan_names_the_digest_of_its_platform(matrix: Matrix) -> None:
    plan = app.resolve(app.Request(asks=("torch",), devices=(MID,), driver=NEW, base="vendor"))
    assert plan["base"] == "vendor" and plan["image"]["digest"] == DIGEST
    assert plan["picks"]["torch"]["index"] == "image" and plan["picks"]["torch"]["build"] == "abc.v1"
    assert "base" not in app.resolve(app.Request(asks=("torch",), devices=(MID,), driver=NEW))


def test_masks_and_single_answers_agree_on_own_builds(matrix: Matrix) -> None:
    own, stock = matrix.brought("torch", "linux_x86_64")[0], matrix.candidates("torch", "linux_x86_64")[0]
    own = next(c for c in matrix.brought("torch", "linux_x86_64") if c.tag == "vendor/torch:1")
    binary = Need(Subject.TORCH, "", allows=">=3")
    pin = Need(Subject.PACKAGE, "", name="torch", allows=f"=={own.version}")
    ranged = Need(Subject.PACKAGE, "", name="torch", allows=">=3.0")
    assert [compiled_against(need) for need in (binary, pin, ranged)] == [True, True, False]
    assert [satisfies(own, need) for need in (binary, pin, ranged)] == [False, False, True]
    assert satisfies(stock, binary) and satisfies(stock, ranged)


def test_torch_stands_in_one_place(root: Path, tmp_path: Path) -> None:
    shutil.copytree(root, tmp_path / "m")
    path = tmp_path / "m" / "images.yaml"
    path.write_text(path.read_text().replace('  note: mind its constraints\n', '  torch: "3.2.0"\n', 1))
    with pytest.raises(InputError, match=r"images\.yaml"):
        open_matrix(tmp_path / "m").images()
