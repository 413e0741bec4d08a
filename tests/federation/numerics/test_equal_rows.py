"""Equal rows, beside numpy's sorting of whole rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.numerics import rows as module
from federation.numerics.rows import equal_rows

TYPES = [np.float64, np.float32, np.uint8, np.int16]


@given(st.integers(0, 2**32), st.integers(0, 40), st.integers(1, 5), st.sampled_from(TYPES), st.integers(1, 4))
def test_they_are_those_that_sorting_finds(seed, count, width, dtype, values):
    rows = np.random.default_rng(seed).integers(0, values, (count, width)).astype(dtype)
    first, twins = equal_rows(rows)
    np.testing.assert_array_equal(rows[first][twins], rows)
    known = sorted({row: place for place, row in reversed(list(enumerate(map(tuple, rows))))}.values())
    assert first.tolist() == known


def test_numbers_that_differ_in_one_bit_are_different():
    ones = np.ones((64, 3))
    ones.view(np.uint64)[np.arange(64), 1] ^= np.uint64(1) << np.arange(64, dtype=np.uint64)
    assert len(equal_rows(np.concatenate([ones, ones]))[0]) == 64
    assert len(equal_rows(np.array([[0.0], [-0.0]]))[0]) == 2


@pytest.mark.parametrize("dtype", TYPES)
def test_whole_numbers_hardly_share_keys(dtype):
    """The lowest bits of floats are all 0, which a product alone would make the only ones that count."""
    rows = np.stack(np.meshgrid(*[np.arange(14)] * 4), axis=-1).reshape(-1, 4).astype(dtype)
    assert len(np.unique(module._keys(module._words(rows)))) == len(rows)


def test_rows_that_share_a_key_are_not_taken_for_equal(monkeypatch):
    monkeypatch.setattr(module, "_keys", lambda words: np.zeros(len(words), dtype=np.uint64))
    first, twins = equal_rows(np.array([[1.0], [1.0], [2.0]]))
    assert first.tolist() == twins.tolist() == [0, 1, 2]
    assert equal_rows(np.ones((3, 1)))[0].tolist() == [0]


@pytest.mark.parametrize("dtype", TYPES)
def test_it_looks_at_all_blocks(dtype, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK_BYTES", 64)
    rows = np.arange(100).astype(dtype)[:, None] % 50
    first, twins = equal_rows(rows)
    assert first.tolist() == list(range(50))
    assert twins.tolist() == list(range(50)) * 2
