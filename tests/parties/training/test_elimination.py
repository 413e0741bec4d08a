"""Newton's method by elimination: its equations beside LAPACK, its minimisers by their gradients, bits and lengths."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.numerics.label_losses import Logistic
from parties.training import elimination
from parties.training.elimination import further, minimise_small

LAM = 1e-3


def problem(parties=20, n=6, d=4, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(parties, n, d)) * rng.uniform(0.1, 3, parties)[:, None, None]
    return rows, rng.integers(0, 2, (parties, n)).astype(float)


def solve(rows, members, gram=False, target=1e-10, lam=LAM):
    counts, targets = np.full(len(rows), rows.shape[1]), np.full(len(rows), target)
    with np.errstate(all="ignore"):
        return minimise_small(rows, members, counts, lam, targets, gram)


def gradient_norms(rows, members, weights, lam=LAM):
    residuals = Logistic().probabilities(np.einsum("tm,tnm->tn", weights, rows)) - members
    return np.linalg.norm(np.einsum("tn,tnm->tm", residuals, rows) / rows.shape[1] + lam * weights, axis=1)


def test_a_pivot_that_is_not_positive_spoils_its_own_party_only():
    equations = np.moveaxis(np.tile(np.eye(2), (3, 1, 1)), 0, -1).copy()
    equations[1, 1, 1] = -1.0
    with np.errstate(invalid="ignore"):
        found = elimination._solved(np.concatenate([equations, np.ones((1, 2, 3))]))
    np.testing.assert_array_equal(np.isnan(found).any(axis=0), [False, True, False])


@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 9))
def test_equations_are_solved_as_by_lapack(seed, width, parties):
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(parties, width, width))
    matrices, right = roots @ roots.transpose(0, 2, 1) + 0.1 * np.eye(width), rng.normal(size=(parties, width))
    equations = np.concatenate([np.moveaxis(matrices, 0, -1), right.T[None]])
    equations[np.triu_indices(width, 1)] = np.nan  # what is above the diagonal is not read
    expected = np.linalg.solve(matrices, right[..., None])[..., 0]
    np.testing.assert_allclose(elimination._solved(equations).T, expected, rtol=1e-8, atol=1e-10)


@given(st.integers(0, 2**32), st.integers(1, 24), st.integers(1, 10), st.sampled_from([1e-6, 1e-3, 1.0]))
def test_gradients_vanish_for_rows_and_for_their_inner_products(seed, n, d, lam):
    rows, members = problem(7, n, d, seed)
    found = solve(rows, members, lam=lam)
    assert gradient_norms(rows, members, found, lam).max() < 2e-10
    products = rows @ rows.transpose(0, 2, 1)
    coefficients = solve(products, members, gram=True, lam=lam)
    assert gradient_norms(rows, members, np.einsum("tn,tnm->tm", coefficients, rows), lam).max() < 2e-9


@given(st.integers(0, 2**32), st.integers(1, 20), st.integers(1, 12), st.booleans(), st.integers(1, 11))
def test_bits_do_not_depend_on_the_batch(seed, n, d, gram, size):
    rows, members = problem(23, n, d, seed)
    rows = rows @ rows.transpose(0, 2, 1) if gram else rows
    parts = [solve(rows[at : at + size], members[at : at + size], gram) for at in range(0, 23, size)]
    np.testing.assert_array_equal(np.concatenate(parts), solve(rows, members, gram))


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_packing_changes_no_bit(share, monkeypatch):
    rows, members = problem()
    expected = solve(rows, members)
    monkeypatch.setattr(elimination, "LIVE_SHARE", share)
    np.testing.assert_array_equal(solve(rows, members), expected)


def test_rows_so_large_that_the_regularisation_is_lost_cost_their_own_party_only():
    """Two equal rows: their equations have no pivot."""
    rows, members = problem(n=2, d=5)
    products = rows @ rows.transpose(0, 2, 1)
    expected = solve(products, members, gram=True)
    spoilt = products.copy()
    spoilt[4] = 2.0**200
    found = solve(spoilt, members, gram=True)
    others = np.arange(len(rows)) != 4
    np.testing.assert_array_equal(found[others], expected[others])


def test_parties_that_cannot_finish_are_returned_and_hold_nobody_up(monkeypatch):
    rows, members = problem()
    expected = solve(rows, members)
    spoilt = rows.copy()
    spoilt[3] = np.nan
    others = np.arange(20) != 3
    np.testing.assert_array_equal(solve(spoilt, members)[others], expected[others])
    monkeypatch.setattr(elimination, "NEWTON_STEPS", 2)
    unfinished = solve(rows, members)
    assert np.isfinite(unfinished).all()
    assert gradient_norms(rows, members, unfinished).max() > 1e-10


def test_full_steps_that_lead_too_far_or_not_far_enough_are_mended(monkeypatch):
    """Without a search for the length the same steps need more rounds, or do not end at all."""
    rows, members = problem(200, 4, 3, seed=5)
    monkeypatch.setattr(elimination, "NEWTON_STEPS", 12)
    searched = gradient_norms(rows, members, solve(rows, members, lam=1e-6), 1e-6)
    monkeypatch.setattr(elimination, "SLOPE_REDUCTION", np.inf)
    full = gradient_norms(rows, members, solve(rows, members, lam=1e-6), 1e-6)
    assert (searched > 1e-9).mean() < (full > 1e-9).mean()


numbers = st.floats(0.01, 100)


@given(st.floats(-3, 8), numbers, numbers)
def test_it_closes_in_on_the_root_of_any_slope_that_rises(root, steepness, bend):
    """Slopes that flatten out on both sides: tanh(bend (t - 10^root)) and a little more."""
    wanted = 10.0**root

    def slope(t):
        return steepness * (np.tanh(bend * (t - wanted)) + 1e-3 * (t - wanted))

    t, low, high = np.ones(1), np.zeros(1), np.full(1, np.inf)
    for _ in range(200):
        if abs(slope(t)) <= 1e-9 * steepness or high - low < 1e-9 * wanted:
            break
        curvature = steepness * (bend * (1 - np.tanh(bend * (t - wanted)) ** 2) + 1e-3)
        longer, low, high = further(t, slope(t), curvature, low, high)
        assert low <= wanted * (1 + 1e-9)
        assert high >= wanted * (1 - 1e-9)
        assert low <= longer <= min(high, 4 * t)
        t = longer
    assert t == pytest.approx(wanted, rel=1e-6, abs=2e-6 / min(1, bend))


def test_a_newton_step_on_a_straight_slope_is_exact():
    lengths, slopes, curvatures = np.array([1.0, 1.0, 2.0]), np.array([-1.0, 1.0, -1.0]), np.array([0.5, 2.0, 4.0])
    tried, low, high = further(lengths, slopes, curvatures, np.zeros(3), np.full(3, np.inf))
    np.testing.assert_allclose(tried, [3.0, 0.5, 2.25])
    np.testing.assert_array_equal(low, [1.0, 0.0, 2.0])
    np.testing.assert_array_equal(high, [np.inf, 1.0, np.inf])
    # A step out of what is known is halved, and none is longer than fourfold.
    lengths, slopes, curvatures = np.array([4.0, 1.0]), np.array([1.0, -1.0]), np.array([0.1, 1e-3])
    tried, _, _ = further(lengths, slopes, curvatures, np.array([2.0, 0.0]), np.full(2, np.inf))
    np.testing.assert_allclose(tried, [3.0, 4.0])
