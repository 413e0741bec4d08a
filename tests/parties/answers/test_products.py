"""Products of rows with a matrix: against plain products, and the same bits in every company."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parties.responses import votes as products
from parties.responses.votes import row_products


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 100])
def test_products_are_those_of_matrices(count, order):
    random = np.random.default_rng(count)
    rows, factor = random.normal(size=(count, 13)), np.asarray(random.normal(size=(13, 5)), order=order)
    np.testing.assert_allclose(row_products(rows, factor), rows @ factor, atol=1e-13)


@given(st.integers(1, 40), st.integers(1, 300), st.integers(1, 60), st.integers(0, 2**32))
def test_a_row_has_the_same_bits_in_every_company(count, width, columns, seed):
    random = np.random.default_rng(seed)
    rows, factor = random.normal(size=(count, width)), random.normal(size=(width, columns))
    together = row_products(rows, factor)
    chosen = random.permutation(count)[: random.integers(1, count + 1)]
    assert row_products(rows[chosen], factor).tobytes() == together[chosen].tobytes()


def test_a_row_that_is_no_number_leaves_the_others_alone():
    random = np.random.default_rng(0)
    rows, factor = random.normal(size=(9, 4)), random.normal(size=(4, 3))
    expected = row_products(rows, factor)
    rows[2] = np.nan
    found = row_products(rows, factor)
    assert np.isnan(found[2]).all()
    np.testing.assert_array_equal(np.delete(found, 2, axis=0), np.delete(expected, 2, axis=0))


def test_where_the_place_of_a_row_matters_rows_are_multiplied_one_by_one(monkeypatch):
    """As with a library whose products round by place: one that adds a bit to the first row of each."""
    real = np.matmul

    def placed(a, b, **options):
        found = real(a, b, **options)
        if a.ndim == 2:
            found[0] = np.nextafter(found[0], np.inf)
        return found

    products._same_everywhere.cache_clear()
    monkeypatch.setattr(products.np, "matmul", placed)
    random = np.random.default_rng(0)
    rows, factor = random.normal(size=(20, 6)), random.normal(size=(6, 4))
    assert row_products(rows, factor).tobytes() == real(rows[:, None, :], factor)[:, 0, :].tobytes()
    products._same_everywhere.cache_clear()
