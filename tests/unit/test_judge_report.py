"""Report files, and two environments that become one."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_env.errors import InputError
from accel_env.judge.report import merge, read_report
from accel_env.judge.types import Container, Environment, Installed
from accel_env.matrix.load import open_matrix
from accel_env.model import Device, Host

MATRIX = open_matrix()


def test_all_keys_of_a_report() -> None:
    text = """
environment:
  os: Ubuntu 22.04
  python: 3.10
  driver: 550.54.14
  cuda_driver: 12.4
  gpus: [{name: NVIDIA A10G}]
  packages: {torch: 2.6.0+cu126, cuda_toolkit: 12.6, bitsandbytes: 0.45.0}
  container: {base: "nvidia/cuda:12.6.3-runtime", args: --gpus all}
  env: {BNB_CUDA_VERSION: 126}
error: something failed
"""
    found = read_report(text, MATRIX, "r.yaml")
    assert found.host.python == "3.10"  # and not 3.1
    assert found.host.devices[0].driver == "550.54.14"
    assert {row.name for row in found.installed} == {"torch", "bitsandbytes"}
    assert found.extra["cuda_toolkit"] == "12.6"
    assert found.container == Container("nvidia/cuda:12.6.3-runtime", "", "--gpus all")
    assert found.variables == {"BNB_CUDA_VERSION": "126"}
    assert found.texts == ("something failed",)


def test_json_is_yaml_too() -> None:
    found = read_report('{"environment": {"packages": ["torch==2.6.0+cpu", "numpy 1.26.4"]}, "error": ["a", "b"]}', MATRIX)
    assert [(r.name, r.version, r.local) for r in found.installed] == [("torch", "2.6.0", "cpu"), ("numpy", "1.26.4", "")]
    assert found.texts == ("a", "b")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("just words", "holds none of"),
        ("other: 1", "holds none of"),
        ("environment: 3", "environment must be a mapping"),
        ("environment: {packages: {torch: {a: b}}}", "environment.packages.torch"),
        ("environment: {gpus: [[1]]}", "environment.gpus"),
        ("error: {a: b}", "error must be a text"),
        ("a: [", "no YAML"),
    ],
)
def test_bad_reports_name_file_and_key(text: str, word: str) -> None:
    with pytest.raises(InputError, match=r"r\.yaml") as caught:
        read_report(text, MATRIX, "r.yaml")
    assert word in str(caught.value)


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda data: data.decode("utf-8", "replace")))
def test_any_text_is_a_report_or_an_input_error(text: str) -> None:
    with contextlib.suppress(InputError):
        read_report(text, MATRIX, "r.yaml")


KEYS = ["os", "glibc", "python", "arch", "driver", "cuda_driver", "kernel"]
Words = st.text(alphabet="abc0123456789.+<>=~!()[] -_/curopmx", max_size=24)


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(st.sampled_from(["os", "glibc", "python", "arch", "driver", "cuda_driver", "kernel"]), Words), Words, Words
)
def test_any_words_are_read(said: dict[str, str], package: str, name: str) -> None:
    import json

    report = {"environment": said | {"packages": {"torch": package}, "gpus": [{"name": name, "arch": package}]}}
    read_report(json.dumps(report), MATRIX)


def test_what_was_said_first_counts_and_the_rest_is_told() -> None:
    first = Environment(
        host=Host(libc="2.31", devices=(Device("nvidia", "A100", "sm_80", "550.54.14"),)),
        installed=(Installed("torch", "2.6.0", origin="environment.packages"),),
        known=frozenset({"libc"}),
    )
    second = Environment(
        host=Host(libc="2.10", os="windows", devices=(Device("nvidia", "A100", "sm_80", "535.54.03"),)),
        installed=(Installed("torch", "2.5.1", "cu124", origin="pip list"), Installed("numpy", "2.0.0")),
        known=frozenset({"libc", "os"}),
    )
    both = merge(first, second)
    assert both.host.libc == "2.31" and both.host.os == "windows"
    assert both.installed[0].version == "2.6.0" and both.installed[1].name == "numpy"
    told = " ".join(both.disagreements)
    assert "libc" in told and "torch" in told and "driver" in told


def test_a_second_statement_completes_the_first() -> None:
    first = Environment(installed=(Installed("torch", "2.6", origin="a"),))
    second = Environment(installed=(Installed("torch", "2.6.0", "cu126", origin="b"),), cuda_driver="12.8")
    both = merge(first, second)
    assert (both.installed[0].version, both.installed[0].local) == ("2.6.0", "cu126")
    assert both.cuda_driver == "12.8" and not both.disagreements


def test_merging_with_nothing_changes_nothing() -> None:
    one = Environment(host=Host(libc="2.31", python="3.12"), installed=(Installed("torch", "2.6.0"),), texts=("x",))
    assert merge(one, Environment()) == replace(one, host=replace(one.host))
    assert merge(Environment(), one).installed == one.installed
