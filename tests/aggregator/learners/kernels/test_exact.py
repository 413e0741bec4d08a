"""Exact kernels against scipy's distances pair by pair, and their invariants.

Rows in tiles, and squared distances against those of scipy. What every kernel and support offers by virtue of its
fields: storage, digests, and debiased means.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist, pdist
from support.refusals import refused

from aggregator.learners.kernels.exact import (
    EnergyKernel,
    GaussianKernel,
    NegativeSquares,
    median_squared_distance,
    some_rows,
    tiles,
)
from federation.contract.errors import InputError
from federation.numerics.simplex import project

KERNELS = [
    (GaussianKernel(0.07), lambda x, y: np.exp(-0.07 * cdist(x, y) ** 2)),
    (EnergyKernel(), lambda x, y: -cdist(x, y)),
]


def bags_of(seed: int, sizes, columns: int = 5, shift: float = 0.0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(size, columns)) + 0.5 * i + shift for i, size in enumerate(sizes)]


@pytest.mark.parametrize(("kernel", "pairs"), KERNELS, ids=["gaussian", "energy"])
@pytest.mark.parametrize("sizes", [(1,), (256, 256), (700, 30, 1, 520), (3,) * 90], ids=len)
def test_means_are_those_over_all_pairs(kernel, pairs, sizes):
    bags, rows = bags_of(0, sizes, shift=100.0), bags_of(1, (300,), shift=101.0)[0]
    support = kernel.support(bags)
    expected = [[pairs(x, y).mean() for y in bags] for x in bags]
    np.testing.assert_allclose(support.gram(), expected, atol=1e-12)
    np.testing.assert_array_equal(support.gram(), support.gram().T)
    cross = [pairs(x, rows).mean() for x in bags]
    np.testing.assert_allclose(support.embed(rows), cross, atol=1e-12)
    np.testing.assert_allclose(support.self_terms(), [np.diag(pairs(x, x)).mean() for x in bags], atol=1e-12)


@pytest.mark.parametrize(("kernel", "pairs"), KERNELS, ids=["gaussian", "energy"])
def test_unbiased_gram_leaves_out_rows_with_themselves(kernel, pairs):
    bags = bags_of(2, (2, 9, 300))
    gram = kernel.support(bags).unbiased_gram()
    for i, x in enumerate(bags):
        between = pairs(x, x)
        assert gram[i, i] == pytest.approx(between[~np.eye(len(x), dtype=bool)].mean(), abs=1e-12)
    np.testing.assert_allclose(gram - np.diag(np.diag(gram)), (g := kernel.support(bags).gram()) - np.diag(np.diag(g)))
    with pytest.raises(InputError, match="1"):
        kernel.support([bags[0], bags[0][:1]]).unbiased_gram()


def test_unbiased_gram_is_unbiased_and_the_other_is_not():
    """E k(x, y) of independent x, y ~ N(0, I_d) is (1 + 4 gamma)^(-d/2)."""
    gamma, columns, rng = 0.2, 3, np.random.default_rng(3)
    supports = [GaussianKernel(gamma).support(rng.normal(size=(400, 5, columns))) for _ in range(5)]
    truth = (1 + 4 * gamma) ** (-columns / 2)
    unbiased = np.concatenate([np.diag(support.unbiased_gram()) for support in supports])
    biased = np.concatenate([np.diag(support.gram()) for support in supports])
    error = unbiased.std() / np.sqrt(len(unbiased))
    assert abs(unbiased.mean() - truth) < 4 * error
    assert biased.mean() - truth == pytest.approx((1 - truth) / 5, abs=4 * error)


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=6), st.integers(0, 2**32 - 1), st.sampled_from([1e-3, 0.3, 30.0])
)
def test_gram_is_positive_semidefinite(sizes, seed, gamma):
    bags = bags_of(seed, sizes, columns=3)
    gram = GaussianKernel(gamma).support(bags).gram()
    assert np.linalg.eigvalsh(gram).min() > -1e-12
    assert (np.diag(gram) <= 1 + 1e-12).all()
    # -|x - y| is so on weights that sum to zero: subtracting two mixtures of bags leaves an energy distance.
    weights = np.random.default_rng(seed).normal(size=len(sizes))
    contrast = project(weights) - project(-weights)
    assert contrast @ EnergyKernel().support(bags).gram() @ contrast > -1e-10


def test_equal_rows_have_no_distance_and_order_matters_only_by_rounding():
    x = np.full((40, 3), 1e8) + np.arange(3)
    assert EnergyKernel().support([x]).gram() == 0
    assert GaussianKernel(1.0).support([x]).gram() == 1
    bags, rows = bags_of(4, (300, 40)), bags_of(5, (700,))[0]
    support = GaussianKernel(0.3).support(bags)
    np.testing.assert_array_equal(support.embed(rows), GaussianKernel(0.3).support(bags).embed(rows.copy(order="F")))
    np.testing.assert_allclose(support.embed(rows), support.embed(rows[::-1]), atol=1e-14)


@pytest.mark.parametrize(("bags", "what"), [
    ([], None), ([np.ones((3, 2)), np.empty((0, 2))], r"1.*0.*2"), ([np.ones(3)], "0"), ([1.0], "0"),
    ([np.ones((3, 2)), np.ones((3, 4))], r"1.*2"), ([np.array([["a"]])], "0"),
    ([np.vstack([np.ones((300, 2)), [[1.0, np.nan]]])], r"0.*300.*1"),
])  # fmt: skip
def test_refuses_what_are_no_bags(bags, what):
    with pytest.raises(InputError, match=what):
        EnergyKernel().support(bags)


def test_refuses_gammas_that_are_not_positive_and_rows_whose_squares_overflow():
    for gamma in (0.0, -1.0, np.inf, np.nan):
        refused("gamma", GaussianKernel, gamma)
    with pytest.raises(InputError):
        EnergyKernel().support([np.array([[1e200], [-1e200]])]).gram()
    refused(None, NegativeSquares, np.array([[0.0], [1e200]]), 1.0)
    with pytest.raises(InputError):
        NegativeSquares(ROWS[:3], 1.0).left(np.full((1, 6), 1e200))


ROWS = np.random.default_rng(0).normal(size=(5000, 6))


def test_many_rows_are_sampled_in_order_by_a_public_seed_and_purpose():
    expected = np.median(pdist(ROWS[:1000], "sqeuclidean"))
    assert median_squared_distance(ROWS[:1000]) == pytest.approx(expected, rel=1e-12)
    medians = [median_squared_distance(ROWS, seed) for seed in range(5)]
    assert len(set(medians)) == 5
    np.testing.assert_allclose(medians, np.median(pdist(ROWS[::2], "sqeuclidean")), rtol=0.05)
    assert median_squared_distance(ROWS.copy(), 3) == medians[3]
    rows = np.vstack([np.zeros((90, 2)), [[3.0, 4.0]]])  # equal rows are no pair
    assert median_squared_distance(rows) == pytest.approx(25)
    drawn = some_rows(ROWS, 100, 1, "a")
    places = [int(np.flatnonzero((row == ROWS).all(axis=1))[0]) for row in drawn]
    assert places == sorted(set(places))
    assert len(places) == 100
    np.testing.assert_array_equal(some_rows(ROWS.copy(), 100, 1, "a"), drawn)
    assert not any(np.array_equal(some_rows(ROWS, 100, *other), drawn) for other in ((2, "a"), (1, "b")))
    np.testing.assert_array_equal(some_rows(ROWS[:100], 100, 1, "a"), ROWS[:100])


@given(st.integers(2, 40), st.floats(1e-120, 1e120), st.floats(-1e3, 1e3))
def test_moves_with_the_rows_and_scales_with_their_square(count, scale, shift):
    rows = ROWS[:count]
    expected = scale**2 * median_squared_distance(rows)
    assert median_squared_distance(scale * (rows + shift)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("rows", [
    np.zeros((5, 2)), np.ones((1, 3)), np.full((4, 2), np.inf), np.empty((0, 3)), np.ones(4), 1e-170 * ROWS[:5],
    1e170 * ROWS[:5],
])  # fmt: skip
def test_refuses_rows_without_a_distance(rows):
    refused(None, median_squared_distance, rows)


@pytest.mark.parametrize(("rows", "words"), [
    (np.ones(3), "must have two axes"), (np.ones((0, 3)), "none of them empty"),
    (np.array([["a"]]), "must be numbers, got"), (np.ones((2, 2)), "must have 3 columns"),
    (np.vstack([np.ones((300, 3)), [[1, np.nan, 1]]]), "row 300, column 1"),
])  # fmt: skip
def test_rows_that_make_no_tiles_are_refused(rows, words):
    with pytest.raises(InputError, match=f"{words}"):
        list(tiles(rows, "the rows", columns=3))


@pytest.mark.parametrize("count", [1, 255, 256, 257, 1000])
def test_tiles_are_the_rows_in_order_whatever_their_type_and_layout(count):
    rows = ROWS[:count]
    for given_ in (rows, np.asfortranarray(rows), rows.astype(np.float32), rows.tolist()):
        found = list(tiles(given_, "rows"))
        assert all(len(tile) <= 256 and tile.flags.c_contiguous and tile.dtype == np.float64 for tile in found)
        np.testing.assert_array_equal(np.concatenate(found), np.asarray(given_, dtype=np.float64))


@given(st.integers(1, 30), st.floats(1e-3, 1e3), st.floats(-1e4, 1e4))
def test_negative_squares_are_scipys_wherever_the_rows_lie(count, scale, shift):
    fixed, rows = ROWS[:count] + shift, ROWS[100:117] + shift
    squares = NegativeSquares(fixed, scale)
    found = squares.between(squares.left(rows))
    assert found.max() <= 0
    np.testing.assert_allclose(found, -scale * cdist(rows, fixed, "sqeuclidean"), atol=1e-9 * scale)
    part = squares.between(squares.left(rows), count - 1, count)  # rounded another way, perhaps
    np.testing.assert_allclose(part, found[:, count - 1 :], atol=1e-9 * scale)


def test_fields_are_stored_by_name_and_digests_differ_with_any_content():
    bags = [ROWS[:4], ROWS[4:6]]
    support = GaussianKernel(0.3).support(bags)
    description, arrays = support.to_arrays()
    assert description == {"kind": "rows", "kernel": {"kind": "exact", "gamma": 0.3}}
    assert sorted(arrays) == ["rows", "sizes"]
    assert arrays["rows"] is support.rows
    others = (
        replace(support, kernel=GaussianKernel(0.31)),
        replace(support, kernel=EnergyKernel()),
        replace(support, rows=2 * support.rows),
        replace(support, sizes=support.sizes[::-1].copy()),
        support.kernel,
    )
    assert support.digest() == GaussianKernel(0.3).support(bags).digest() not in [other.digest() for other in others]
