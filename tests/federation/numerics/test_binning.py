"""Bins against quantiles counted in rational numbers, counts of edges below a value, and repeated rows."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from support.refusals import refused

from federation.contract.errors import InputError
from federation.numerics.binning import Bins

TIED = st.integers(-3, 3).map(float)
ROWS = st.integers(1, 25).flatmap(lambda n: arrays(np.float64, (n, 3), elements=TIED))


def counted_edges(values: np.ndarray, parts: int, weights: np.ndarray) -> list[float]:
    """Quantiles j/q by definition, in exact arithmetic: the smallest value at or below which j/q of the weight lies."""
    weight = [Fraction(w) for w in weights.tolist()]
    below = {v: sum(w for x, w in zip(values, weight, strict=True) if x <= v) for v in set(values.tolist())}
    levels = [Fraction(j, parts) * sum(weight) for j in range(1, parts)]
    found = {min(v for v, mass in below.items() if mass >= level) for level in levels}
    largest = max(x for x, w in zip(values.tolist(), weight, strict=True) if w > 0)
    return sorted(v for v in found if v < largest)


def by_feature(bins: Bins) -> list[list[float]]:
    return [part.tolist() for part in np.split(bins.edges, np.cumsum(bins.sizes - 1)[:-1])]


@given(ROWS, st.integers(1, 30), st.data())
def test_edges_are_the_quantiles_of_the_rows_and_whole_weights_stand_for_repeated_rows(rows, most, data):
    ones = np.ones(len(rows))
    assert by_feature(Bins.fit(rows, most)) == [counted_edges(column, most, ones) for column in rows.T]
    counts = data.draw(arrays(np.int64, len(rows), elements=st.integers(0, 4)).filter(np.any))
    weighted, repeated = Bins.fit(rows, most, 0.1 * counts), Bins.fit(np.repeat(rows, counts, axis=0), most)
    assert by_feature(weighted) == by_feature(repeated)
    assert by_feature(weighted) == [counted_edges(column, most, counts) for column in rows.T]


@given(ROWS, st.integers(1, 9))
def test_every_row_lies_in_one_bin_per_feature_and_no_bin_is_empty(rows, most):
    bins = Bins.fit(rows, most)
    indicators = bins.indicators(rows)
    dense = indicators.toarray()
    assert indicators.shape == (bins.total, len(rows))
    assert indicators.format == "csr"
    assert set(np.unique(dense)) <= {0.0, 1.0}
    assert (dense.sum(axis=1) >= 1).all()
    assert (np.add.reduceat(dense, bins.starts, axis=0) == 1).all()
    assert (bins.sizes <= most).all()
    codes = bins.codes(rows)
    for feature, edges in enumerate(by_feature(bins)):
        expected = bins.starts[feature] + (rows[:, feature, None] > np.array(edges)).sum(axis=1)
        np.testing.assert_array_equal(codes[:, feature], expected)
    np.testing.assert_array_equal(dense[codes, np.arange(len(rows))[:, None]], 1)


@given(ROWS, st.integers(1, 9), st.randoms())
def test_bins_move_with_increasing_maps_and_not_with_the_order(rows, most, random):
    order = random.sample(range(len(rows)), len(rows))
    bins, shuffled = Bins.fit(rows, most), Bins.fit(rows[order], most)
    np.testing.assert_array_equal(bins.edges, shuffled.edges)
    stretched = Bins.fit(np.exp(rows), most)
    np.testing.assert_array_equal(stretched.edges, np.exp(bins.edges))
    np.testing.assert_array_equal(stretched.codes(np.exp(rows)), bins.codes(rows))


def test_rows_of_other_sources_fall_into_the_end_bins_and_ties_below_an_edge():
    bins = Bins.fit(np.arange(9.0)[:, None], 3)
    np.testing.assert_array_equal(bins.edges, [2.0, 5.0])
    other = np.array([-np.inf, -1e300, 2.0, np.nextafter(2, 3), 5.0, 5.1, 8.0, 1e300, np.inf])
    np.testing.assert_array_equal(bins.codes(other[:, None])[:, 0], [0, 0, 0, 1, 1, 2, 2, 2, 2])


def test_equal_weights_are_no_weights_and_sums_that_round_below_a_level_reach_it():
    rows = np.random.default_rng(0).normal(size=(1000, 2))
    for weight in (0.001, 0.1, 1 / 3, 1e-300, 7.0):
        np.testing.assert_array_equal(Bins.fit(rows, 40, np.full(1000, weight)).edges, Bins.fit(rows, 40).edges)
    rows, counts = np.arange(3000.0)[:, None], np.tile([1, 3, 3], 1000)
    for most in (7, 10, 50, 100, 1000):
        weighted, repeated = Bins.fit(rows, most, 0.1 * counts), Bins.fit(rows.repeat(counts, axis=0), most)
        np.testing.assert_array_equal(weighted.edges, repeated.edges)


def test_each_feature_has_its_own_number_of_bins():
    rows = np.column_stack([np.arange(12.0), np.arange(12.0), np.ones(12), np.arange(12) % 2])
    bins = Bins.fit(rows, np.array([4, 1, 5, 5]))
    assert bins.sizes.tolist() == [4, 1, 1, 2]
    assert bins.total == 8
    assert bins.starts.tolist() == [0, 4, 5, 6]
    assert bins.edges.tolist() == [2.0, 5.0, 8.0, 0.0]
    assert Bins.fit(rows, 10**12).sizes.tolist() == [12, 12, 1, 2]
    assert Bins.fit(rows[:1], 5).sizes.tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("edges", "sizes", "said"),
    [
        ([0.0, 1.0], [2], "1"),
        *(([0.0, edge], [3], "finite") for edge in (np.nan, np.inf)),
        ([0.0, 0.0], [3], None),
        ([0.0, 2.0, 1.0], [2, 3], None),
        *(([], sizes, "sizes") for sizes in (np.empty(0, int), [0])),
        ([0.0], [2**62, 2**62], None),
        ([0.0], [2.0], "int64"),
    ],
)
def test_bins_that_do_not_fit_are_refused(edges, sizes, said):
    falling = Bins(np.array([3.0, 4.0, 0.0, -1.0, 1.0]), np.array([3, 1, 2, 3]))  # from one feature to the next
    assert by_feature(falling) == [[3.0, 4.0], [], [0.0], [-1.0, 1.0]]
    with pytest.raises(InputError, match=said):
        Bins(np.array(edges, dtype=np.float64), np.array(sizes))


ROW = np.ones((2, 2))


@pytest.mark.parametrize(
    ("rows", "most", "weights", "said"),
    [
        (np.ones(3), 2, None, "shape"),
        (np.ones((0, 2)), 2, None, None),
        *((np.array([[value]]), 2, None, "finite") for value in (np.nan, np.inf)),
        (np.array([["a"]]), 2, None, "numbers"),
        *((ROW, most, None, "most") for most in (0, 2.5, np.array([2, 0]), np.array([2, 2, 2]))),
        *((ROW, 2, weights, "weights") for weights in (np.zeros(2), np.array([1.0, -1.0]), np.array([1.0, np.nan]))),
        (ROW, 2, np.ones(3), "weights"),
    ],
)
def test_rows_that_make_no_bins_are_refused(rows, most, weights, said):
    with pytest.raises(InputError, match=said):
        Bins.fit(rows, most, weights)


@pytest.mark.parametrize(("rows", "said"), [(np.array([[0.0, np.nan]]), "NaN"), (np.ones((2, 3)), "2")])
def test_rows_that_lie_in_no_bin_are_refused(rows, said):
    bins = Bins.fit(np.arange(6.0).reshape(3, 2), 2)
    for place in (bins.codes, bins.indicators):
        refused(said, place, rows)
