"""A site's overlay on top of the matrix."""
from __future__ import annotations

from pathlib import Path

import pytest

from accel_env.errors import InputError
from accel_env.matrix.load import open_matrix

SITE = """\
schema: accel-env/overlay/1
facts:
  ours: {text: we built it, source: our build server, grade: measured, checked: "2026-11-30"}
indexes:
  house: {url: "https://mirror.example/whl/", kind: simple}
  own: {url: "https://own.example/simple", kind: simple, fact: ours}
devices:
- {vendor: acme, name: Acme RTX 5090, arch: aa_99, fact: ours}
- {vendor: acme, name: Acme Z1, arch: aa_30, pci: ["3000"], fact: ours}
- {vendor: newcorp, pci_vendor: "1def", name: Novel 1, arch: nn_1, pci: ["0001"], fact: ours}
images:
- ref: "python:3.13-slim"
  digest: "sha256:4444444444444444444444444444444444444444444444444444444444444444"
  python: "3.13"
  default: true
  fact: ours
- {ref: "site/base:1", fact: ours}
conflicts:
- {id: site, packages: [{name: ext}, {name: torch, allows: "<9.1"}], why: we saw it, fact: ours}
packages:
- schema: accel-env/package/1
  package: ext
  module: ext
  summary: our own extension
  releases:
  - version: "2.0"
    fact: ours
    builds:
    - {build: any, variant: zz20, index: pypi, platforms: [linux_x86_64], stack: zz-20.0, tags: [cp312], note: ours, fact: ours}
  - version: "2.5"
    requires: ["torch>=9.1", "newpack"]
    fact: ours
    builds:
    - {build: any, index: own, platforms: [linux_x86_64], tags: [py3], fact: "packages/ext:metadata"}
- package: newpack
  module: newpack
  summary: new
  releases:
  - {version: "1", fact: ours, builds: [{build: any, index: own, platforms: [linux_x86_64], tags: [py3], fact: ours}]}
forbid:
- {name: torch, versions: "<9.1", why: not allowed here}
- {name: numpy, why: never, fact: ours}
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    path = tmp_path / "site.yaml"
    path.write_text(SITE)
    return path


def test_the_matrix_alone_does_not_change(root: Path, site: Path) -> None:
    plain = open_matrix(root)
    laid = open_matrix(root, (site,))
    assert plain.digest != laid.digest
    assert open_matrix(root).index_url("house:zz20") == "https://house.example/whl/zz20"


def test_indexes_move(root: Path, site: Path) -> None:
    matrix = open_matrix(root, (site,))
    assert matrix.index_url("house:zz20") == "https://mirror.example/whl/zz20"
    assert matrix.index_url("own") == "https://own.example/simple"
    assert matrix.index_url("assets").startswith("https://assets.example")


def test_devices_come_first_and_replace(root: Path, site: Path) -> None:
    table = open_matrix(root, (site,)).devices()
    renamed = table.by_name(None, "rtx5090")
    assert renamed and (renamed.arch, renamed.fact) == ("aa_99", "overlay/site:ours")
    by_pci = table.by_pci("1abc", "3000")
    assert by_pci and by_pci.name == "Acme Z1"
    novel = table.by_pci("1def", "0001")
    assert novel and novel.vendor == "newcorp"
    assert table.by_pci("1abc", "2b85") is None  # the row that had it was replaced


def test_images_and_conflicts_add_up(root: Path, site: Path) -> None:
    matrix = open_matrix(root, (site,))
    assert [image.ref for image in matrix.images()] == [
        "python:3.13-slim", "site/base:1", "python:3.12-slim", "python:3.13t-slim", "vendor/torch:1",
    ]
    assert [conflict.id for conflict in matrix.conflicts()] == ["ext-numpy", "site"]


def test_packages_replace_builds_and_add_releases(root: Path, site: Path) -> None:
    matrix = open_matrix(root, (site,))
    found = matrix.candidates("ext", "linux_x86_64")
    assert [(item.version, item.fact) for item in found] == [
        ("2.5", "packages/ext:metadata"), ("2.0", "overlay/site:ours"), ("1.0", "packages/ext:metadata"),
    ]
    assert found[1].note == "ours"
    assert {need.name for need in found[0].needs if need.subject.value == "package"} == {"torch", "newpack"}
    assert matrix.package("ext").summary == "our own extension"
    assert len(matrix.package("ext").absent) == 2
    assert matrix.fact("overlay/site:ours").source == "our build server"


def test_what_is_forbidden_says_why(root: Path, site: Path) -> None:
    matrix = open_matrix(root, (site,))
    torch = {item.version: [need for need in item.needs if need.unknown and need.name == "torch"]
             for item in matrix.candidates("torch", "linux_x86_64")}
    assert torch["9.1.0"] == []
    assert [matrix.fact(need.fact).text for need in torch["9.0.0"]] == ["not allowed here"]
    numpy = matrix.candidates("numpy", "linux_x86_64")[0]
    assert [need.fact for need in numpy.needs if need.unknown] == ["overlay/site:ours"]


@pytest.mark.parametrize(("versions", "holds"), [(">=1,<99", True), ("==9.2.0a0", True), ("<9.1", False)])
def test_what_is_forbidden_is_so_in_images_too(root: Path, site: Path, versions: str, holds: bool) -> None:
    site.write_text(site.read_text().replace('versions: "<9.1", why', f'versions: "{versions}", why'))
    (found,) = open_matrix(root, (site,)).brought("torch", "linux_x86_64")
    assert (found.version, any(need.unknown and need.name == "torch" for need in found.needs)) == ("9.2.0a0", holds)


def test_later_overlays_win(root: Path, site: Path, tmp_path: Path) -> None:
    second = tmp_path / "second.yaml"
    second.write_text('schema: accel-env/overlay/1\nindexes: {house: {url: "https://second.example", kind: simple}}\n')
    assert open_matrix(root, (site, second)).index_url("house:x") == "https://second.example/x"
    assert open_matrix(root, (second, site)).index_url("house:x") == "https://mirror.example/whl/x"


@pytest.mark.parametrize(("old", "new", "message"), [
    ("fact: ours, builds", "fact: gone, builds", "overlay/site.yaml:39: packages[1].releases[0].fact: there is no fact `gone`"),
    ("name: numpy, why", "name: numpie, why", "forbid[1].name: the matrix has no package `numpie`"),
    ('versions: "<9.1", why', 'versions: "<<9", why', "forbid[0].versions: `<<9` is no version specifier"),
    ("module: ext\n", "module: extra\n", "packages[0].module: is `extra`, the matrix says `ext`"),
    ("accel-env/overlay/1", "accel-env/package/1", "schema: must be accel-env/overlay/1"),
    ("forbid:", "forbidden:", "forbidden: unknown key"),
], ids=["fact", "package", "specifier", "module", "schema", "key"])
def test_a_broken_overlay_is_refused(root: Path, site: Path, old: str, new: str, message: str) -> None:
    site.write_text(SITE.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        open_matrix(root, (site,))
    assert caught.value.exit_code == 3
    assert message in str(caught.value)


def test_an_overlay_that_is_not_there(root: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.yaml: No such file"):
        open_matrix(root, (tmp_path / "gone.yaml",))


def test_two_overlays_of_one_name(root: Path, site: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "site.yaml"
    other.parent.mkdir()
    other.write_text(SITE)
    with pytest.raises(InputError, match=r"two overlays are named site\.yaml"):
        open_matrix(root, (site, other))


def test_an_overlay_that_is_no_yaml(root: Path, site: Path) -> None:
    site.write_text("schema: [")
    with pytest.raises(InputError, match="is no YAML"):
        open_matrix(root, (site,))


@pytest.mark.parametrize("pin", ['digest: "sha256:{d}"', 'digests: {{linux_x86_64: "sha256:{d}"}}'])
def test_an_image_with_nothing_but_a_digest_pins_the_matrixs_row(tmp_path: Path, pin: str) -> None:
    """What the image holds stays known: a digest alone says nothing else of it."""
    known = next(image for image in open_matrix().images() if image.torch and not image.digest and not image.digests)
    before = [image.ref for image in open_matrix().images()]
    facts = 'facts: {ours: {text: we looked, source: our registry, grade: measured, checked: "2026-11-30"}}'
    path = tmp_path / "pin.yaml"
    for more, whole in (("", True), (', os: "ours"', False)):
        row = f'{{ref: "{known.ref}", {pin.format(d="4" * 64)}, fact: ours{more}}}'
        path.write_text(f"schema: accel-env/overlay/1\n{facts}\nimages: [{row}]\n")
        images = open_matrix(None, (path,)).images()
        (found,) = [image for image in images if image.ref == known.ref]
        assert found.digest_on("linux_x86_64") == "sha256:" + "4" * 64
        assert ((found.torch, found.stack, found.python) == (known.torch, known.stack, known.python)) is whole
        assert ([image.ref for image in images] == before) is whole
