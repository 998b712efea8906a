"""matrix/judge.yaml: typed, with patterns that compile and facts that exist; a broken one is refused with its place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from accel_env.errors import InputError
from accel_env.judge.book import Book, open_book
from accel_env.matrix.load import Matrix, open_matrix
from accel_env.solve.versions import valid_specifier


class One:
    """A matrix with one document."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document

    def document(self, name: str) -> Mapping[str, Any]:
        return self._document if name == "judge" else {}


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return open_matrix()


@pytest.fixture(scope="module")
def book(matrix: Matrix) -> Book:
    return open_book(matrix)


def test_every_row_names_a_fact_that_exists(matrix: Matrix, book: Book) -> None:
    rows = (*book.distributions, *book.images, *book.overrides, *book.toolkits, *book.torches, *book.refinements, *book.pairings)
    ids = {row.fact for row in rows} | {row.fact for row in book.kernel_modules} | set(book.notes.values())
    ids |= {fact for _, fact in book.same_release.values()}
    for fact in sorted(ids):
        assert matrix.fact(fact).source


def test_patterns_compile_and_ranges_parse(book: Book) -> None:
    patterns = [*book.vendor_words, *book.vendor_labels, *book.arm, *book.vendor_signs.values(), *book.board_builds]
    patterns += [row.match for row in (*book.distributions, *book.images)]
    patterns += [pattern for row in book.refinements for pattern in row.when.values()]
    for pattern in patterns:
        re.compile(pattern)
    assert all(valid_specifier(spec) for row in book.pairings for spec in (row.allows, row.wants))
    assert all(valid_specifier(row.pythons) for row in book.torches)


def test_old_releases_name_toolkits_that_are_known(matrix: Matrix, book: Book) -> None:
    from accel_env.judge.builds import cuda_of

    newer = {release.version for release in matrix.stacks()["cuda"].releases}
    for row in book.torches:
        assert row.default in row.builds
        assert all(book.toolkit(cuda_of(label)) or cuda_of(label) in newer for label in row.builds if cuda_of(label))


def test_an_empty_matrix_has_an_empty_book() -> None:
    book = open_book(One({}))
    assert not book.pairs and book.distribution("Ubuntu 22.04") is None and book.lost_code is None


def test_faults_are_told_with_their_places() -> None:
    with pytest.raises(InputError, match=r"judge\.yaml.*pairings\[0\]") as caught:
        open_book(One({"pairings": [{"name": "a"}], "nonsense": 1}))
    assert "nonsense" in str(caught.value)
