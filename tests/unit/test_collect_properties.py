"""Parsers of dumps are total and linear: no text makes them raise, none keeps them busy."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_env.judge import parse_accel, parse_amd, parse_nvidia, parse_packages, parse_reports, parse_system, parse_torch
from accel_env.judge.collect import collect, parsed
from accel_env.judge.parse_base import LINE_LIMIT, Facts, lines_of
from accel_env.matrix.load import open_matrix

FOLDER = Path(__file__).resolve().parents[1] / "collect"
MATRIX = open_matrix()
LINES = sorted({line for path in FOLDER.glob("*.txt") for line in path.read_bytes().decode().splitlines()})
NAMES = frozenset({"torch", "vllm", "triton"})
PARSERS: dict[str, Callable[[Sequence[str]], Facts]] = {
    "torch": parse_torch.parse,
    "nvidia": parse_nvidia.parse,
    "amd": parse_amd.parse,
    "accel": parse_accel.parse,
    "system": parse_system.parse,
    "packages": lambda lines: parse_packages.parse(lines, NAMES),
    "reports": lambda lines: parse_reports.parse(lines, NAMES),
}
SECONDS = 3.0  # for some hundred thousand characters; many times what it takes

damaged = st.tuples(st.sampled_from(LINES), st.integers(0, 200), st.text(max_size=8)).map(
    lambda parts: parts[0][: parts[1]] + parts[2] + parts[0][parts[1] + 1 :]
)
dumps = st.lists(st.one_of(st.sampled_from(LINES), damaged, st.text(max_size=60)), max_size=60).map("\n".join)


@pytest.mark.parametrize("name", PARSERS)
@settings(max_examples=60, deadline=None)
@given(text=st.one_of(st.text(max_size=2000), dumps))
def test_a_parser_never_raises(name: str, text: str) -> None:
    facts = PARSERS[name](lines_of(text))
    assert all(isinstance(one.value, str) and one.value for one in facts.said)
    assert all(row.devices for row in facts.devices)


@settings(max_examples=60, deadline=None)
@given(text=dumps)
def test_collecting_never_raises(text: str) -> None:
    found = collect(text, MATRIX)
    assert all(row.name for row in found.installed)
    assert found.host.os in ("linux", "windows", "macos")


@settings(max_examples=40, deadline=None)
@given(data=st.binary(max_size=500))
def test_bytes_of_any_kind_are_a_text(data: bytes) -> None:
    collect(data.decode("utf-8", "replace"), MATRIX)


@settings(max_examples=20, deadline=None)
@given(order=st.permutations(["vllm-a100x8", "nvidia-smi-470", "pip-list", "system", "bitsandbytes-new"]))
def test_dumps_are_recognised_in_any_order(order: list[str]) -> None:
    text = "\n".join((FOLDER / f"{name}.txt").read_text() for name in order)
    lines = lines_of(text)
    alone = [parsed(lines_of((FOLDER / f"{name}.txt").read_text()), NAMES) for name in sorted(order)]
    together = parsed(lines, NAMES)
    assert {one for part in alone for one in part.said} <= set(together.said)
    assert {row.name for part in alone for row in part.packages} <= {row.name for row in together.packages}


HOSTILE = {
    "blanks": " " * 100_000,
    "dots": "torch version " + "." * 100_000,
    "bars": "|" * 100_000,
    "cells": ("| 0 " + " " * 200 + "|") * 500,
    "commas": ", ".join(["NVIDIA"] * 20_000),
    "name": "a" * 50_000 + "-" * 50_000,
    "digits": "torch " + "1." * 50_000,
    "brackets": "(" * 50_000 + "[" * 50_000,
    "colons": ":" * 100_000,
    "gpus": "GPU " + "0,1," * 25_000 + ": x",
    "equals": "A" * 80 + "=" * 100_000,
    "escapes": "\x1b[" * 50_000,
    "driver": "NVIDIA-SMI " + " " * 1000 + "1" * 1000 + "Driver Version:" + " " * 1000,
    "quotes": "> " * 50_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_line_keeps_a_parser_busy(name: str) -> None:
    lines = lines_of("\n".join([HOSTILE[name][:LINE_LIMIT]] * 100))
    started = time.process_time()
    parsed(lines, NAMES)
    assert time.process_time() - started < SECONDS


@pytest.mark.parametrize("line", [line for line in LINES if len(line) > 20][::16])
def test_time_grows_with_the_text(line: str) -> None:
    lines = lines_of("\n".join([line] * (200_000 // len(line))))
    started = time.process_time()
    parsed(lines, NAMES)
    assert time.process_time() - started < SECONDS
