"""What the small matrix becomes: candidates with their needs, stacks, indexes, facts."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from accel_env.errors import InputError
from accel_env.matrix import store
from accel_env.matrix.load import Matrix, open_matrix
from accel_env.matrix.types import Absent, DriverFloor, InboxKernel
from accel_env.model import Candidate, Need, Subject

Edit = Callable[[str, str, str], None]


@pytest.fixture
def matrix(root: Path) -> Matrix:
    return open_matrix(root)


def needs(candidate: Candidate, subject: Subject) -> list[Need]:
    return [need for need in candidate.needs if need.subject is subject]


def test_the_whole_is_named(matrix: Matrix) -> None:
    assert matrix.version == "2026.11.30"
    assert matrix.digest.startswith("sha256:") and len(matrix.digest) == 71
    assert matrix.package_names() == {"ext", "numpy", "torch", "triton"}
    assert matrix.modules()["ext"] == "ext"


def test_files_of_one_package_join_newest_first(matrix: Matrix) -> None:
    assert [item.version for item in matrix.candidates("torch", "linux_x86_64")] == ["9.1.0", "9.0.0"]
    assert matrix.platforms("torch") == ("linux_aarch64", "linux_x86_64", "macos_aarch64", "windows_x86_64")


def test_releases_are_ordered_as_versions(root: Path, edit: Edit) -> None:
    edit("torch/9.0.0.yaml", '- version: "9.0.0"', '- version: "9.10.0"')
    assert [item.version for item in open_matrix(root).candidates("torch", "linux_x86_64")] == ["9.10.0", "9.1.0"]


def test_nothing_known_is_no_candidates(matrix: Matrix) -> None:
    assert matrix.candidates("ext", "macos_x86_64") == ()
    assert matrix.candidates("nobody", "linux_x86_64") == ()


def test_platform_and_tags_are_needs(matrix: Matrix) -> None:
    torch = matrix.candidates("torch", "linux_x86_64")[0]
    assert torch.needs[:4] == (
        Need(Subject.OS, "torch/9.1.0:metadata", values=("linux",)),
        Need(Subject.CPU, "torch/9.1.0:metadata", values=("x86_64",)),
        Need(Subject.PYTHON, "torch/9.1.0:metadata", allows=">=3.11", values=("cp312", "cp313", "cp313t")),
        Need(Subject.STACK, "torch/9.1.0:metadata", values=("zz-20.0",)),
    )
    assert torch.provides == (("cxx11abi", "true"), ("zz", "20.0"))
    assert torch.label == "torch 9.1.0+zz20"


def test_lost_libraries_are_needs_of_their_own(matrix: Matrix) -> None:
    lists = {"values": ("aa_10", "aa_20"), "jit": ("bb_20",)}
    fact = "torch/9.1.0:arch"
    assert needs(matrix.candidates("torch", "linux_x86_64")[0], Subject.ARCH) == [
        Need(Subject.ARCH, fact, **lists),  # type: ignore[arg-type]
        Need(Subject.ARCH, fact, name="libraries", lacks=("aa_10",), **lists),  # type: ignore[arg-type]
        Need(Subject.ARCH, fact, name="libraries", lacks=("aa_20",), soft=True, **lists),  # type: ignore[arg-type]
    ]


def test_unknown_stays_unknown(matrix: Matrix) -> None:
    old = matrix.candidates("torch", "linux_x86_64")[1]
    assert needs(old, Subject.ARCH) == [Need(Subject.ARCH, "torch/9.0.0:metadata", unknown=True)]
    unpublished = matrix.candidates("ext", "linux_x86_64")[1]
    assert needs(unpublished, Subject.PACKAGE) == [Need(Subject.PACKAGE, "packages/ext:loader", name="ext", unknown=True)]


def test_every_kind_of_need(matrix: Matrix) -> None:
    ext = matrix.candidates("ext", "linux_x86_64")[0]
    fact = "packages/ext:loader"
    assert ext.needs[4:] == (
        Need(Subject.LIBSTDCXX, fact, allows=">=3.4.29", name="glibcxx"),
        Need(Subject.KERNEL, fact, allows=">=6.2", soft=True),
        Need(Subject.DRIVER, fact, allows=">=525.60"),
        Need(Subject.TORCH, fact, allows=">=9.1", name="torch", values=("zz20",), abi=(("cxx11abi", "true"), ("zz", ">=20,<21"))),
        Need(Subject.PACKAGE, fact, allows="<2", name="numpy", when="present"),
        Need(Subject.PACKAGE, fact, name="ext-nine", when="absent"),
        Need(Subject.PACKAGE, "packages/ext:metadata", allows="<10,>=9", name="torch"),
    )
    assert (ext.variant, ext.rank, ext.note) == ("zz20", 1, "built by somebody else")


def test_requirements_of_modelled_packages_are_needs(matrix: Matrix) -> None:
    linux = needs(matrix.candidates("torch", "linux_x86_64")[0], Subject.PACKAGE)
    assert [(need.name, need.allows, need.marker) for need in linux] == [
        ("numpy", ">=1.17", ""), ("triton", "==5.0.0", 'python_version < "3.14"'),
    ]
    windows = needs(matrix.candidates("torch", "windows_x86_64")[0], Subject.PACKAGE)
    assert [(need.name, need.allows) for need in windows] == [("numpy", ">=1.17"), ("ext", "<3")]
    assert len(matrix.candidates("torch", "linux_x86_64")[0].requires) == 4


def test_requires_of_a_build_replace_those_of_the_release(matrix: Matrix) -> None:
    cpu = matrix.candidates("torch", "linux_aarch64")[0]
    assert cpu.requires == () and needs(cpu, Subject.PACKAGE) == []


def test_hashed_are_the_tags_with_one_undisputed_hash(matrix: Matrix) -> None:
    assert matrix.candidates("torch", "linux_x86_64")[0].hashed == ("cp312",)
    assert matrix.candidates("torch", "windows_x86_64")[0].hashed == ("cp313",)
    assert matrix.candidates("torch", "linux_aarch64")[0].hashed == ("cp312",)  # the user's PyPI hashes its files
    assert matrix.candidates("ext", "linux_x86_64")[1].hashed == ("cp312",)
    assert matrix.candidates("torch", "linux_x86_64")[1].hashed == ()


def test_artifacts_are_kept_apart_by_index(matrix: Matrix) -> None:
    name = "ext-1.0+zz10abi1-cp312-cp312-linux_x86_64.whl"
    found = matrix.artifact("assets", name)
    assert found is not None and (found.sha256, found.size, found.seen, found.tag) == ("e" * 64, 5, 3, "v1.0")
    assert matrix.artifact("house:zz20", name) is None
    disputed = matrix.artifact_files("house:zz20")["torch-9.1.0+zz20-cp313-cp313t-manylinux_2_28_x86_64.whl"]
    assert disputed.sha256 == "" and set(disputed.conflict) == {"b" * 64, "c" * 64}
    assert matrix.artifact_files("nowhere") == {}


def test_stacks(matrix: Matrix) -> None:
    zz = matrix.stacks()["zz"]
    assert (zz.vendor, zz.run_args, zz.run_env) == ("acme", ("--gpus", "all"), {"ZZ_VISIBLE": "all"})
    assert zz.run_fact == "stacks/zz:run"
    assert zz.code_rules[0].not_from == ("aa_10",) and zz.aliases[0].b == "aa_16" and zz.driver_names[0].release == "6.4"
    assert zz.arch_drivers[0].allows == "<590" and zz.kind_rules[0].kind == "board"
    assert zz.forward_compat and zz.forward_compat.branches == ("535",)
    assert zz.inbox and zz.inbox.kernels == (InboxKernel(("aa_20",), ">=6.11", "stacks/zz:rule"),)
    assert zz.answer and zz.answer.text == "ask the vendor"
    newest, oldest = zz.releases
    assert newest.driver_floors == {"linux": DriverFloor("580", "590.10"), "windows": DriverFloor("580", "")}
    assert (oldest.driver_allows, oldest.archs, oldest.torch, oldest.sycl, oldest.hip) == (
        ("==6.3.*", ">=30.10,<31"), ("aa_10",), "9.0.0", "8", "6.2",
    )
    assert matrix.stack_release("zz-10.0") == oldest
    assert matrix.stack_release("zz") is None and matrix.stack_release("zz-11.0") is None and matrix.stack_release("yy-1") is None
    assert matrix.stacks()["cpu"].releases == ()


def test_what_is_absent_adds_up(matrix: Matrix) -> None:
    assert matrix.package("ext").absent == (
        Absent("cpu", "use the slow path", "packages/ext:absent"),
        Absent("zz", "too old for it", "packages/ext:absent", ("aa_10",)),
    )
    with pytest.raises(InputError, match="no package `vllm`"):
        matrix.package("vllm")


def test_tables(matrix: Matrix) -> None:
    assert [python.version for python in matrix.pythons()] == ["3.12", "3.13", "3.13t"]
    image = matrix.images()[0]
    assert (image.ref, image.python, image.default, image.fact) == ("python:3.12-slim", "3.12", True, "images:read")
    assert image.digests == {"linux_x86_64": "sha256:" + "2" * 64}
    assert matrix.conflicts()[0].a == ("ext", "<2") and matrix.conflicts()[0].fact == "conflicts:seen"
    assert matrix.profiles()["v100"].host["devices"] == ({"name": "Tesla V100 SXM2", "driver": "580.95", "count": 2},)
    assert matrix.document("closure") == {"forbid": [{"names": ["other"], "fact": "names"}]}
    assert matrix.document("nothing") == {}


def test_index_urls(matrix: Matrix) -> None:
    assert matrix.index_url("house:zz20") == "https://house.example/whl/zz20"
    assert matrix.index_url("assets") == "https://assets.example/{tag}/{file}"
    assert matrix.index_url("pypi") == "pypi" and matrix.index_url("image") == "image"
    with pytest.raises(InputError, match="no index `home`"):
        matrix.index_url("home:zz20")


def test_facts(matrix: Matrix) -> None:
    fact = matrix.fact("torch/9.1.0:npu")
    assert (fact.grade, fact.doubt, fact.source) == ("community", "only one page says so", "example.org")
    assert fact in matrix.facts()
    with pytest.raises(InputError, match=r"torch/9\.1\.0:gone"):
        matrix.fact("torch/9.1.0:gone")
    with pytest.raises(InputError):
        matrix.fact("gone")


def test_all_faults_of_all_files_come_at_once(root: Path, edit: Edit) -> None:
    edit("stacks/zz.yaml", 'vendor: acme', 'vendor: 7')
    edit("packages/ext.yaml", 'rank: 1', 'rank: first')
    edit("devices/acme.yaml", '"2b85"', '"XYZ"')
    with pytest.raises(InputError) as caught:
        open_matrix(root)
    assert caught.value.reference == "matrix-invalid" and caught.value.message.startswith("3 faults in the matrix")
    assert [line.partition(": ")[0] for line in caught.value.context] == [
        "devices/acme.yaml:8", "packages/ext.yaml:24", "stacks/zz.yaml:3",
    ]


def test_many_faults_are_cut(root: Path) -> None:
    rows = "".join(f"- {{name: {number}, arch: aa_10, fact: pci}}\n" for number in range(30))
    (root / "devices" / "acme.yaml").write_text(f"schema: accel-env/devices/1\nvendor: acme\ndevices:\n{rows}")
    with pytest.raises(InputError) as caught:
        open_matrix(root)
    assert len(caught.value.context) == 21 and caught.value.context[-1] == "and 10 more"


def test_a_missing_matrix_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="holds no matrix"):
        open_matrix(tmp_path)
    monkeypatch.setenv("ACCEL_ENV_MATRIX", str(tmp_path / "gone"))
    with pytest.raises(InputError, match="gone holds no matrix"):
        open_matrix()


def test_a_wheel_carries_the_matrix(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site-packages" / "accel_env"
    monkeypatch.setattr(store, "__file__", str(package / "matrix" / "store.py"))
    assert open_matrix().root == str(root)  # two folders up from the package: the layout of the repository
    package.mkdir(parents=True)
    root.rename(package / "_matrix")
    assert open_matrix().root == str(package / "_matrix")
    (package / "_matrix" / "matrix.yaml").unlink()
    with pytest.raises(InputError, match="holds no matrix"):
        open_matrix()


def test_the_environment_names_the_matrix(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCEL_ENV_MATRIX", str(root))
    assert open_matrix().root == str(root)
