"""Texts of any kind: nothing crashes, nothing takes long, no literal is overlooked."""

from __future__ import annotations

import time
from functools import lru_cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accel_env.judge import signatures
from accel_env.judge.signatures import Table
from accel_env.judge.text_gate import Gate, gates_of
from accel_env.judge.text_scan import BLOCK, Scanner
from accel_env.matrix.load import Matrix, open_matrix

CALM = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@lru_cache(maxsize=1)
def known() -> tuple[Matrix, Table]:
    matrix = open_matrix()
    return matrix, signatures.load(matrix)


def words() -> st.SearchStrategy[str]:
    """Parts of real messages, digits, and what breaks naive readers."""
    _, table = known()
    needles = sorted(table.by_needle)
    return st.one_of(
        st.sampled_from(needles), st.text(max_size=12), st.sampled_from(["\n", " ", "\t", "(", "sm_", "12080", ".so: ", "`", "'"])
    )


@CALM
@given(st.binary(max_size=4000))
def test_arbitrary_bytes_do_no_harm(content: bytes) -> None:
    scanner = Scanner(known()[1])
    scanner.feed(content)
    scanner.hits()


@CALM
@given(st.data())
def test_parts_of_messages_in_any_order_do_no_harm(data: st.DataObject) -> None:
    matrix, table = known()
    text = "".join(data.draw(st.lists(words(), max_size=40)))
    for clue in signatures.read([text], matrix, table):
        assert clue.component and clue.rule and len(clue.line) <= 300


@CALM
@given(st.data())
def test_the_gate_overlooks_no_needle(data: st.DataObject) -> None:
    needles = tuple(known()[1].by_needle)
    gate = Gate(gates_of(needles))
    for _ in range(3):
        text = "".join(data.draw(st.lists(words(), max_size=20)))
        there = {needle for needle in needles if needle.encode() in text.encode("utf-8", "replace")}
        assert there <= gate.open_for(text.encode("utf-8", "replace"))


@CALM
@given(st.data(), st.integers(1, 400))
def test_blocks_of_any_size_give_the_same(data: st.DataObject, size: int) -> None:
    content = "".join(data.draw(st.lists(words(), max_size=30))).encode("utf-8", "replace")
    whole, parts = Scanner(known()[1]), Scanner(known()[1])
    whole.feed(content)
    for start in range(0, len(content), size):
        parts.feed(content[start : start + size])
    keys = [
        {(hit.clue.signature, hit.clue.component, hit.offset, hit.line) for hit in scanner.hits()} for scanner in (whole, parts)
    ]
    assert keys[0] == keys[1]


ADVERSARIAL = (
    "a" * BLOCK,
    "undefined symbol: _Z" * 4000,
    "(" * BLOCK,
    "depends on " * 8000,
    "flash_attn_2_cuda " * 5000 + "libcudart.so.12",
    "sm_90 " * 12_000,
    ".so: " * 15_000,
    "version `GLIBC_2." * 5000,
    "No matching distribution found for a" * 3000,
    "\n" * BLOCK,
    "Because a (1) depends on b (2) " * 3000,
    "/dev/kfd " * 9000,
    "x/" * 40_000 + ".so: undefined symbol: _ZN3c10" + "E" * 60_000,
)


@pytest.mark.parametrize("number", range(len(ADVERSARIAL)))
def test_texts_made_to_take_long_do_not(number: int) -> None:
    matrix, table = known()
    start = time.perf_counter()
    signatures.scan_log([ADVERSARIAL[number]] * 3, matrix, table)
    assert time.perf_counter() - start < 5
