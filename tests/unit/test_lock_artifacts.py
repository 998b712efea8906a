"""Which file a pick is, and its address."""

from __future__ import annotations

import pytest
from tests.integration.samples import Tables, candidate

from accel_env.lock.artifacts import best_file, choose, with_label
from accel_env.model import Candidate, Pick

CU126 = [f"torch-2.14.1+cu126-cp312-cp312-manylinux_2_28_{machine}.whl" for machine in ("x86_64", "aarch64")]


def picked(item: Candidate, tag: str = "cp312") -> Pick:
    return Pick(item, tag)


@pytest.mark.parametrize(
    ("item", "tag", "names", "libc", "wanted"),
    [
        (candidate("torch", "2.14.1", "cu126", "house:cu126"), "cp312", CU126, "2.36", CU126[0]),
        (candidate("torch", "2.14.1", "cu126", "house:cu126", platform="linux_aarch64"), "cp312", CU126, "2.36", CU126[1]),
        (candidate("torch", "2.14.1", "cu126", "house:cu126"), "cp313", CU126, "2.36", ""),
        (candidate("torch", "2.14.0", "cu126", "house:cu126"), "cp312", CU126, "2.36", ""),
        (candidate("torch", "2.14.1", "cu128", "house:cu126"), "cp312", CU126, "2.36", ""),
        # A dot release must not match its prefix, nor a name its longer neighbour.
        (candidate("torch", "2.14.1"), "cp312", ["torch-2.14.10-cp312-cp312-linux_x86_64.whl"], "2.36", ""),
        (candidate("torch", "1.0"), "cp312", ["torch_xla-1.0-cp312-cp312-linux_x86_64.whl"], "2.36", ""),
        # Names are compared as PEP 503 does, labels as PEP 440 does.
        (
            candidate("triton-rocm", "3.8.0"),
            "cp312",
            ["triton_rocm-3.8.0-cp312-cp312-linux_x86_64.whl"],
            "2.36",
            "triton_rocm-3.8.0-cp312-cp312-linux_x86_64.whl",
        ),
        (
            candidate("flash-attn", "2.8.3", "cu12torch2.8cxx11abiTRUE"),
            "cp312",
            [
                "flash_attn-2.8.3+cu12torch2.8cxx11abiFALSE-cp312-cp312-linux_x86_64.whl",
                "flash_attn-2.8.3+cu12torch2.8cxx11abiTRUE-cp312-cp312-linux_x86_64.whl",
            ],
            "2.36",
            "flash_attn-2.8.3+cu12torch2.8cxx11abiTRUE-cp312-cp312-linux_x86_64.whl",
        ),
        # A file without a label on the build's own index is that build; an exact label is better.
        (
            candidate("torchvision", "0.16.0", "cpu"),
            "cp312",
            ["torchvision-0.16.0-cp312-cp312-linux_x86_64.whl"],
            "",
            "torchvision-0.16.0-cp312-cp312-linux_x86_64.whl",
        ),
        (
            candidate("torch", "2.9.1", "rocm7.2.0"),
            "cp312",
            ["torch-2.9.1+rocm7.2.0.lw.git7e1940d4-cp312-cp312-linux_x86_64.whl"],
            "",
            "torch-2.9.1+rocm7.2.0.lw.git7e1940d4-cp312-cp312-linux_x86_64.whl",
        ),
        (candidate("torch", "2.9.1", "rocm7.2"), "cp312", ["torch-2.9.1+rocm7.20-cp312-cp312-linux_x86_64.whl"], "", ""),
        # The highest level that the libc allows; when all are too high the lowest, for the closer to refuse.
        (
            candidate("a", "1"),
            "cp312",
            ["a-1-cp312-cp312-manylinux_2_17_x86_64.whl", "a-1-cp312-cp312-manylinux_2_28_x86_64.whl"],
            "2.36",
            "a-1-cp312-cp312-manylinux_2_28_x86_64.whl",
        ),
        (
            candidate("a", "1"),
            "cp312",
            ["a-1-cp312-cp312-manylinux_2_17_x86_64.whl", "a-1-cp312-cp312-manylinux_2_28_x86_64.whl"],
            "2.17",
            "a-1-cp312-cp312-manylinux_2_17_x86_64.whl",
        ),
        (
            candidate("a", "1"),
            "cp39-abi3",
            ["a-1-cp39-abi3-manylinux_2_28_x86_64.whl"],
            "2.36",
            "a-1-cp39-abi3-manylinux_2_28_x86_64.whl",
        ),
        (
            candidate("a", "1"),
            "cp314t",
            ["a-1-cp314-cp314-linux_x86_64.whl", "a-1-cp314-cp314t-linux_x86_64.whl"],
            "",
            "a-1-cp314-cp314t-linux_x86_64.whl",
        ),
        (
            candidate("a", "1"),
            "py3",
            ["a-1-py3-none-manylinux_2_24_x86_64.whl"],
            "2.36",
            "a-1-py3-none-manylinux_2_24_x86_64.whl",
        ),
        (
            candidate("a", "1", platform="windows_x86_64"),
            "cp312",
            ["a-1-cp312-cp312-win_amd64.whl"],
            "",
            "a-1-cp312-cp312-win_amd64.whl",
        ),
        (
            candidate("a", "1", platform="macos_aarch64"),
            "cp312",
            ["a-1-cp312-cp312-macosx_11_0_arm64.whl"],
            "",
            "a-1-cp312-cp312-macosx_11_0_arm64.whl",
        ),
        (candidate("a", "1"), "cp312", ["a-1.tar.gz", "not a wheel"], "", ""),
    ],
)
def test_the_file_of_a_pick(item: Candidate, tag: str, names: list[str], libc: str, wanted: str) -> None:
    assert best_file(picked(item, tag), names, libc) == wanted
    assert best_file(picked(item, tag), reversed(names), libc) == wanted


def test_plus_is_written_as_an_escape() -> None:
    matrix = Tables()
    matrix.know("house:cu126", *CU126, size=9)
    chosen = choose(picked(candidate("torch", "2.14.1", "cu126", "house:cu126")), "2.36", matrix)
    assert chosen.url == "https://wheels.example/whl/cu126/torch-2.14.1%2Bcu126-cp312-cp312-manylinux_2_28_x86_64.whl"
    assert (chosen.version, chosen.size, len(chosen.sha256)) == ("2.14.1+cu126", 9, 64)


def test_the_same_name_on_another_index_is_another_file() -> None:
    matrix = Tables()
    matrix.know("house:cu126", CU126[0], sha256="1" * 64)
    matrix.know("house:other", CU126[0], sha256="2" * 64)
    for index, digit in (("house:cu126", "1"), ("house:other", "2")):
        assert choose(picked(candidate("torch", "2.14.1", "cu126", index)), "2.36", matrix).sha256 == digit * 64


def test_release_asset_by_tag_and_file() -> None:
    matrix = Tables()
    item = candidate("flash-attn", "2.8.3", "cu12torch2.8cxx11abiTRUE", "assets", tag="v2.8.3")
    unknown = choose(picked(item), "2.36", matrix)
    assert unknown.url == "https://assets.example/v2.8.3/flash_attn-2.8.3%2Bcu12torch2.8cxx11abiTRUE-cp312-cp312-linux_x86_64.whl"
    assert unknown.asset and not unknown.known and not unknown.sha256
    matrix.know("assets", "flash_attn-2.8.3+cu12torch2.8cxx11abiTRUE-cp312-cp312-linux_x86_64.whl", tag="v2.8.3.post1")
    assert "/v2.8.3.post1/" in choose(picked(item), "2.36", matrix).url


def test_label_is_spelt_as_pep_440_does() -> None:
    assert with_label(candidate("a", "1.0", "cu12torch2.8cxx11abiTRUE")) == "1.0+cu12torch2.8cxx11abitrue"
    assert with_label(candidate("a", "1.0", "any")) == "1.0"
