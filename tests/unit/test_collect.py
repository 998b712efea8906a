"""Real dumps, rebuilt minimally: each file of tests/collect with what must be read out of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from accel_env.judge.collect import collect
from accel_env.judge.types import Environment
from accel_env.matrix.load import Matrix, open_matrix

FOLDER = Path(__file__).resolve().parents[1] / "collect"
DUMPS = sorted(path.stem for path in FOLDER.glob("*.txt"))


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return open_matrix()


def version(environment: Environment, name: str) -> str:
    rows = [row for row in environment.installed if row.name == name]
    assert len(rows) == 1, f"{name}: {rows}"
    return rows[0].version + (f"+{rows[0].local}" if rows[0].local else "")


def names(environment: Environment, flag: str) -> set[str]:
    return {row.name for row in environment.installed if getattr(row, flag)}


def check(found: Environment, expected: Mapping[str, Any]) -> None:
    for field, value in expected.get("host", {}).items():
        assert getattr(found.host, field) == value, field
    for name, text in expected.get("packages", {}).items():
        assert version(found, name) == text, name
    assert not {row.name for row in found.installed} & set(expected.get("absent_packages", ()))
    assert {row.name for row in found.installed} == set(expected.get("only", ())) or "only" not in expected
    for flag in ("vendor", "nightly"):
        assert set(expected.get(flag, ())) == names(found, flag) or flag not in expected, names(found, flag)
    for field in ("extra", "variables"):
        given = getattr(found, field)
        for key, value in expected.get(field, {}).items():
            assert given.get(key) == value, f"{field}.{key}: {given.get(key)}"
    assert not set(expected.get("absent_variables", ())) & set(found.variables)
    assert not set(expected.get("silent", ())) & {key for key in found.extra if found.extra[key] != "no"}
    if "disagreements" in expected:
        assert list(found.disagreements) == expected["disagreements"]
    if "cuda_driver" in expected:
        assert found.cuda_driver == expected["cuda_driver"]


@pytest.mark.parametrize("name", DUMPS)
def test_dump_is_read(name: str, matrix: Matrix) -> None:
    told = yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    assert told["source"]
    found = collect((FOLDER / f"{name}.txt").read_bytes().decode(), matrix)
    check(found, told["expect"])
    if "devices" in told["expect"]:
        devices = told["expect"]["devices"]
        assert len(found.host.devices) == len(devices), found.host.devices
        for device, expected in zip(found.host.devices, devices, strict=True):
            assert {key: getattr(device, key) for key in expected} == expected
    assert not found.texts or "error" in name


def test_every_dump_has_its_expectation() -> None:
    assert {path.stem for path in FOLDER.glob("*.yaml")} == set(DUMPS)


def test_words_that_name_no_product_are_no_device(matrix: Matrix) -> None:
    assert not collect("GPU 0: 1024 MiB\nGPU 1: out of memory\n", matrix).host.devices
    assert [one.vendor for one in collect("GPU 0: NVIDIA Unheard Of 1\n", matrix).host.devices] == ["nvidia"]


def test_prose_is_no_package(matrix: Matrix) -> None:
    lines = ("someone @ example.org", "Install torch 2.1 first", "x==y", "GPU 12 of 16", "step 3 torch", "- python=3", "A=1")
    text = "\n".join((*lines, "[conda] Could not collect", "CPU @ 2.90GHz"))
    found = collect(text, matrix)
    assert not found.installed and not found.variables and not found.host.devices


def test_a_cut_text_is_said(matrix: Matrix) -> None:
    from accel_env.judge.parse_base import TEXT_LIMIT

    text = "x" * (TEXT_LIMIT + 1)
    assert "not the rest" in collect(text, matrix, "dump.txt").host.notes[0]
    assert not collect("x", matrix).host.notes


def test_trouble_in_a_dump_is_a_text_only_where_it_is_known(matrix: Matrix) -> None:
    assert not collect("UserWarning: something is deprecated\nerror: nothing that anybody knows\n", matrix).texts
    known = "RuntimeError: CUDA error: no kernel image is available for execution on the device"
    assert collect(f"torch==2.1.0\n{known}\n", matrix).texts == (known,)
