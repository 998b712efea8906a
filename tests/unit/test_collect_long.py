"""Long dumps: what a log repeats costs nothing more, and long lists of packages are read row by row."""

from __future__ import annotations

import time

from accel_env.judge.collect import collect
from accel_env.judge.parse_base import lines_of
from accel_env.matrix.load import open_matrix

DUMP = (
    "PyTorch version: 2.6.0+cu124\nIs CUDA available: True\nNvidia driver version: 550.54.14\nGPU models and configuration: "
    "GPU 0: NVIDIA A100-SXM4-40GB\n\n[pip3] numpy==1.26.4\n[pip3] torch==2.6.0\n\n"
)


def test_a_repeated_dump_costs_what_one_costs() -> None:
    matrix = open_matrix()
    once = collect(DUMP, matrix)
    began = time.process_time()
    often = collect(DUMP * 30_000, matrix)
    assert time.process_time() - began < 4
    assert [(row.name, row.version) for row in often.installed] == [(row.name, row.version) for row in once.installed]
    assert often.host.devices == once.host.devices and often.disagreements == once.disagreements


def test_lines_that_repeat_are_dropped_and_blank_ones_stay() -> None:
    lines = lines_of("Name: gfx942\n\n" * 900 + "the end\n")
    assert lines.count("Name: gfx942") == 500 and lines.count("") == 900 and lines[-1] == "the end"
    assert lines_of("a\nb\n" * 200) == ["a", "b"] * 200


def test_long_lists_of_packages_are_read_in_time() -> None:
    text = "Package Version\n------- -------\n" + "".join(f"pkg{n} 1.{n}.0\n" for n in range(4_000)) + "torch 2.6.0\n"
    began = time.process_time()
    found = collect(text, open_matrix())
    assert time.process_time() - began < 3
    assert len(found.installed) == 4_001
