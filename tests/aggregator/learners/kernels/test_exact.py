"""Exact kernels against scipy's distances pair by pair, and their invariants."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist, pdist

from aggregator.learners.kernels.exact import EnergyKernel, GaussianKernel
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
@pytest.mark.parametrize("sizes", [(1,), (256, 256), (700, 30, 1, 520), (3,) * 200], ids=len)
def test_means_are_those_over_all_pairs(kernel, pairs, sizes):
    bags, rows = bags_of(0, sizes, shift=100.0), bags_of(1, (300,), shift=101.0)[0]
    support = kernel.support(bags)
    expected = [[pairs(x, y).mean() for y in bags] for x in bags]
    np.testing.assert_allclose(support.gram(), expected, atol=1e-12)
    np.testing.assert_array_equal(support.gram(), support.gram().T)
    cross = [pairs(x, rows).mean() for x in bags]
    np.testing.assert_allclose(support.cross(rows), cross, atol=1e-12)
    np.testing.assert_allclose(support.products(support.embed(rows)), cross, atol=1e-12)
    np.testing.assert_allclose(support.self_terms(), [np.diag(pairs(x, x)).mean() for x in bags], atol=1e-12)


@pytest.mark.parametrize(("kernel", "pairs"), KERNELS, ids=["gaussian", "energy"])
def test_unbiased_gram_leaves_out_rows_with_themselves(kernel, pairs):
    bags = bags_of(2, (2, 9, 300))
    gram = kernel.support(bags).unbiased_gram()
    for i, x in enumerate(bags):
        between = pairs(x, x)
        assert gram[i, i] == pytest.approx(between[~np.eye(len(x), dtype=bool)].mean(), abs=1e-12)
    np.testing.assert_allclose(gram - np.diag(np.diag(gram)), (g := kernel.support(bags).gram()) - np.diag(np.diag(g)))
    with pytest.raises(InputError, match="bag 1 must have at least two rows"):
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


@settings(deadline=None, max_examples=40)
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


def test_equal_rows_have_no_distance_wherever_they_lie():
    x = np.full((40, 3), 1e8) + np.arange(3)
    assert EnergyKernel().support([x]).gram() == 0
    assert GaussianKernel(1.0).support([x]).gram() == 1


def test_order_of_rows_matters_only_by_rounding_and_equal_input_gives_equal_bits():
    bags, rows = bags_of(4, (300, 40)), bags_of(5, (700,))[0]
    support = GaussianKernel(0.3).support(bags)
    np.testing.assert_array_equal(support.cross(rows), GaussianKernel(0.3).support(bags).cross(rows.copy(order="F")))
    np.testing.assert_allclose(support.cross(rows), support.cross(rows[::-1]), atol=1e-14)
    assert support.digest() == GaussianKernel(0.3).support(bags).digest()
    assert support.digest() != GaussianKernel(0.31).support(bags).digest()
    assert support.digest() != GaussianKernel(0.3).support(bags[::-1]).digest()


@pytest.mark.parametrize("gamma", [0.0, -1.0, np.inf, np.nan])
def test_gamma_must_be_positive_and_finite(gamma):
    with pytest.raises(InputError, match="gamma must be positive and finite"):
        GaussianKernel(gamma)


@pytest.mark.parametrize(
    ("bags", "what"),
    [
        ([], "at least one bag"),
        ([np.ones((3, 2)), np.empty((0, 2))], r"bag 1 must have two axes.*shape \(0, 2\)"),
        ([np.ones(3)], "bag 0 must have two axes"),
        ([1.0], "bag 0 must have two axes"),
        ([np.ones((3, 2)), np.ones((3, 4))], "bag 1 must have 2 columns"),
        ([np.array([["a"]])], "bag 0 must be numbers"),
        ([np.vstack([np.ones((300, 2)), [[1.0, np.nan]]])], "bag 0 must be finite: row 300, column 1"),
    ],
)
def test_refuses_what_are_no_bags(bags, what):
    with pytest.raises(InputError, match=what):
        EnergyKernel().support(bags)


def test_refuses_rows_whose_squares_overflow():
    with pytest.raises(InputError, match="finite squared distances"):
        EnergyKernel().support([np.array([[1e200], [-1e200]])]).gram()


def test_distances_are_sums_over_different_pairs():
    rows = bags_of(6, (600,))[0]
    assert -EnergyKernel().support([rows]).unbiased_gram()[0, 0] == pytest.approx(pdist(rows).mean(), rel=1e-12)
