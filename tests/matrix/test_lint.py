"""Each cross-file rule trips on what it is for, and on nothing else of the small matrix."""
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from accel_env.matrix.findings import LintProblem
from accel_env.matrix.lint import lint
from accel_env.matrix.load import open_matrix

Edit = Callable[[str, str, str], None]
QUIET = {("artifact-conflict", "note")}

# (id of the rule, severity, file, old, new, words of the message or path)
TRIPS = [
    ("fact-missing", "error", "packages/ext.yaml", "absent: {text: said", "gone: {text: said", "there is no fact `absent`"),
    ("fact-missing", "error", "stacks/zz.yaml", "run: {args: [--gpus, all], env: {ZZ_VISIBLE: all}, fact: run}",
     "run: {args: [--gpus, all], env: {ZZ_VISIBLE: all}, fact: 'devices/acme:run'}", "there is no fact `devices/acme:run`"),
    ("fact-unused", "note", "indexes.yaml", ", kind: simple, fact: url}", ", kind: simple}", "facts.url"),
    ("fact-date", "error", "python.yaml", 'checked: "2026-11-30"', 'checked: "2026-13-30"', "2026-13-30 is no day"),
    ("stack-missing", "error", "torch/9.0.0.yaml", "stack: zz-10.0", "stack: zz-11.0", "no stack file holds `zz-11.0`"),
    ("stack-missing", "error", "packages/ext.yaml", "{stack: cpu,", "{stack: cpus,", "no stack file holds `cpus`"),
    ("stack-missing", "error", "devices/acme.yaml", "stack: zz,", "stack: yy,", "no stack file holds `yy`"),
    ("stack-missing", "error", "images.yaml", "os: debian,", "os: debian, stack: zz-1.0,", "no stack file holds `zz-1.0`"),
    ("stack-missing", "error", "stacks/zz.yaml", "over: {stack: cpu", "over: {stack: gpu", "no stack file holds `gpu`"),
    ("over-package", "error", "stacks/zz.yaml", "beneath: [ext]", "beneath: [exit]", "the matrix has no package `exit`"),
    ("index-missing", "error", "torch/9.0.0.yaml", "index: house:zz10", "index: home:zz10", "indexes.yaml has no `home`"),
    ("index-missing", "error", "artifacts/assets.json", '"index": "assets"', '"index": "asset"', "indexes.yaml has no `asset`"),
    ("asset-tag", "error", "packages/ext.yaml", "    tag: v1.0\n", "", "holds {tag}"),
    ("release-order", "error", "packages/ext.yaml", '- version: "1.0"', '- version: "2.1"', "2.1 stands below 2.0"),
    ("release-order", "error", "packages/ext.yaml", '- version: "1.0"', '- version: "2.0.0"', "2.0.0 stands below 2.0"),
    ("release-order", "error", "stacks/zz.yaml", '- version: "10.0"', '- version: "21.0"', "21.0 stands below 20.0"),
    ("release-twice", "error", "torch/9.1.0.yaml", '- version: "9.1.0"', '- version: "9.0"', "9.0 is in torch/9.0.0.yaml too"),
    ("build-twice", "error", "packages/numpy.yaml", "tags: [cp312, cp313], fact: metadata}",

         "tags: [cp312], fact: metadata}\n"
     "  - {build: any, index: pypi, platforms: [linux_x86_64], tags: [cp313, cp312], fact: metadata}",
     "are those of releases[0].builds[0]"),
    ("floor-order", "error", "stacks/zz.yaml", 'linux: {minor: "580"',
     'linux: {minor: "599"', "`minor` 599 is above `full` 590.10"),
    ("python-missing", "error", "packages/ext.yaml", "tags: [cp312]", "tags: [cp399]", "python.yaml has no 3.99"),
    ("python-image", "error", "images.yaml", 'python: "3.12", libc',
     'python: "3.11", libc', "no default image of images.yaml brings Python 3.12"),
    ("python-image", "note", "images.yaml", 'python: "3.13t"', 'python: "3.11"', "brings Python 3.13t"),
    ("image-unpinned", "error", "images.yaml", 'ref: "python:3.13-slim", digest: "sha256:' + "3" * 64 + '"',
     'ref: "python:3.13-slim"', "no digest"),
    ("module-differs", "error", "torch/9.0.0.yaml", "module: torch", "module: torchy", "says `torchy`"),
    ("summary-differs", "note", "torch/9.0.0.yaml", "summary: tensors", "summary: more tensors", "other words"),
    ("need-repeated", "note", "torch/9.1.0.yaml", "      libc: {glibc",
     '      packages: [{name: numpy, allows: ">=1.17", fact: metadata}]\n      libc: {glibc',
     "`requires` says the same of numpy"),
    ("reading-differs", "error", "inspected/disagreements.yaml", "platform: linux_aarch64", "platform: linux_x86_64",
     "numpy 2.1.0 on linux_aarch64, requires: the matrix says"),
    ("conflict-package", "error", "conflicts.yaml", "{name: numpy,", "{name: numpie,", "no package `numpie`"),
    ("profile-device", "error", "profiles.yaml", "Tesla V100 SXM2",
     "Tesla V100 SXM9", "`Tesla V100 SXM9` names no device, or several"),
    ("pci-twice", "error", "devices/acme.yaml", '["1db1", "1db5"]', '["1db1", "2b85"]', "2b85 is Acme RTX 5090's too, of aa_20"),
    ("pci-twice", "note", "devices/acme.yaml", "Tesla V100S, arch: aa_10",
     'Tesla V100S, arch: aa_10, pci: ["1db1"]', "1db1 is Tesla V100 SXM2's too"),
    ("name-twice", "error", "devices/acme.yaml", "aliases: [V100-SXM2]",
     'aliases: ["RTX-5090"]', "also means Acme RTX 5090 (aa_20)"),
    ("name-empty", "error", "devices/acme.yaml", "strip: [acme, tesla]",
     "strip: [acme, tesla, v100s]", "nothing is left of `Tesla V100S`"),
    ("vendor-unserved", "error", "devices/acme.yaml", "vendor: acme\n",
     "vendor: acne\n", "no stack serves the devices of `acne`"),
    ("artifact-name", "error", "artifacts/assets.json", "ext-1.0+zz10abi1-cp312-cp312-linux_x86_64.whl",
     "ext.whl", "no name of a wheel"),
    ("artifact-idle", "note", "artifacts/assets.json", "ext-1.0+", "ext-3.0+", "1 files of ext fit no build, such as ext-3.0"),
    ("community-default", "note", "packages/numpy.yaml", "grade: vendor", "grade: community",
     "numpy 2.1.0 is a first choice and rests on `packages/numpy:metadata`"),
    ("image-contents", "error", "images.yaml", "stack: zz-20.0, brings", "stack: zz, brings", "a release as its `stack`"),
    ("image-package", "note", "images.yaml", 'ext: "1.0"}', 'ext: "1.0", apex: "1"}', "no package `apex`"),
    ("image-purpose", "error", "images.yaml", "purpose: ext", "purpose: numpy", "made for numpy"),
    ("image-code", "error", "images.yaml", "code: {torch: own}", "code: {torch: other}", "no list `other`"),
    ("image-code", "error", "images.yaml", "code: {torch: own}", "code: {torch: own, numpy: own}", "code of numpy"),
    ("code-unused", "note", "images.yaml", "code: {torch: own}, ", "", "no image names this list"),
    ("bundle-stack", "error", "bundles.yaml", "stacks: [zz-20]", "stacks: [zz-2]",
     "accel-zz[all] is for `zz-2`, which no stack is"),
    ("bundle-stack", "error", "bundles.yaml", "stacks: [cpu, zz]", "stacks: [cpu, zzz]", "other is for `zzz`"),
    ("bundle-order", "error", "bundles.yaml", ", stacks: [zz-20]", "", "accel is never reached"),
    ("bundle-twice", "error", "bundles.yaml", "- torch\n", "- torch\n    - Torch>=9\n", "torch stands there twice"),
]


def problems(root: Path) -> list[LintProblem]:
    return [item for item in lint(open_matrix(root)) if (item.rule, item.severity) not in QUIET]


def test_the_small_matrix_is_clean(root: Path) -> None:
    assert problems(root) == []
    assert [(item.rule, item.where) for item in lint(open_matrix(root))] == [
        ("artifact-conflict", 'artifacts/house-zz20.json: files["torch-9.1.0+zz20-cp313-cp313t-manylinux_2_28_x86_64.whl"]'),
    ]


@pytest.mark.parametrize(("rule", "severity", "file", "old", "new", "words"), TRIPS, ids=[f"{row[0]}-{row[2]}" for row in TRIPS])
def test_each_rule_trips(root: Path, edit: Edit, rule: str, severity: str, file: str, old: str, new: str, words: str) -> None:
    edit(file, old, new)
    found = [item for item in problems(root) if (item.rule, item.severity) == (rule, severity)]
    assert found, problems(root)
    assert any(words in item.message or words == item.path for item in found), found


def test_floors_do_not_fall_within_a_major(root: Path, edit: Edit) -> None:
    edit("stacks/zz.yaml", '- version: "10.0"\n  driver: {allows: ["==6.3.*", ">=30.10,<31"], fact: rule}',
         '- version: "20.0.dev1"\n  driver: {linux: {minor: "585", full: "595"}, fact: rule}')
    edit("torch/9.0.0.yaml", "zz-10.0", "zz-20.0")
    found = [(item.rule, item.path, item.message) for item in problems(root)]
    assert ("floor-falls", "releases[0].driver.linux",
            "`minor` 580 is below the 585 of an older release of the same major") in found
    assert len([rule for rule, _, _ in found if rule == "floor-falls"]) == 2


def test_conflict_ids_are_unique(root: Path) -> None:
    path = root / "conflicts.yaml"
    text = path.read_text()
    row = next(line for line in text.splitlines() if line.startswith("- {id"))
    path.write_text(f"{text}{row}\n")
    assert [item.rule for item in problems(root)] == ["conflict-twice"]


def test_artifact_files_are_named_after_their_index(root: Path) -> None:
    (root / "artifacts" / "assets.json").rename(root / "artifacts" / "other.json")
    assert [(item.rule, item.message) for item in problems(root)] == [
        ("artifact-file", "files of `assets` belong into artifacts/assets.json"),
    ]


def test_companions_have_a_release_for_each_torch(root: Path) -> None:
    facts = 'facts: {f: {text: t, source: s, grade: vendor, checked: "2026-11-30"}}\n'

    def release(version: str, torch: str) -> str:
        build = "{build: zz10, index: house:zz10, platforms: [linux_x86_64], tags: [cp312], fact: f}"
        return f'- {{version: "{version}", requires: ["torch=={torch}"], fact: f, builds: [{build}]}}\n'

    head = f"schema: accel-env/package/1\npackage: torchsight\nmodule: torchsight\nsummary: s\n{facts}releases:\n"
    (root / "packages" / "torchsight.yaml").write_text(head + release("2.0", "9.5.0") + release("1.0", "9.0.0"))
    assert [(item.rule, item.file) for item in problems(root)] == [("companion-missing", "packages/torchsight.yaml")]
    (root / "packages" / "torchsight.yaml").write_text(head + release("1.1", "9.1.0") + release("1.0", "9.0.0"))
    assert problems(root) == []


def test_errors_come_first_and_all_say_where(root: Path, edit: Edit) -> None:
    edit("torch/9.0.0.yaml", "summary: tensors", "summary: more tensors")
    edit("torch/9.0.0.yaml", "stack: zz-10.0", "stack: zz-11.0")
    found = lint(open_matrix(root))
    assert [item.severity for item in found] == ["error", "note", "note"]
    assert all(item.file and item.where.startswith(item.file) for item in found)


def test_overlays_are_linted_too(root: Path, tmp_path: Path) -> None:
    site = tmp_path / "site.yaml"
    site.write_text('schema: accel-env/overlay/1\nfacts: {a: {text: t, source: s, grade: vendor, checked: "2026-11-30"}}\n'
                    "forbid: [{name: ext, why: never}]\n")
    found = [item for item in lint(open_matrix(root, (site,))) if item.file.startswith("overlay/")]
    assert [(item.rule, item.path) for item in found] == [("fact-unused", "facts.a")]


def test_disputed_hashes_are_noted(root: Path) -> None:
    path = root / "artifacts" / "assets.json"
    whole = json.loads(path.read_text())
    next(iter(whole["files"].values()))["conflict"] = {"f" * 64: ["x/y:z@1"]}
    path.write_text(json.dumps(whole))
    assert sum(item.rule == "artifact-conflict" for item in lint(open_matrix(root))) == 2
