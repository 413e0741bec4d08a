"""Shares of errors from noisy counts: against least squares, and whatever the noise makes of the counts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from aggregator.learners.error_marginals.estimation import error_shares, expected_totals

FEATURES = np.array([0, 0, 0, 1, 1])
counts = arrays(np.float64, (2, 5), elements=st.floats(-1e9, 1e9))


@given(counts, counts, st.floats(1, 1e6), st.sampled_from([0.0, 1e-3, 50.0, 1e6]), st.booleans())
@settings(max_examples=200, deadline=None)
def test_no_noise_makes_a_share_that_is_not_one(errors, totals, rows, deviation, noisy):
    expected = expected_totals(np.array([0.5, 0.5, 0.0, 1.0, 0.0]), rows, 10, deviation) if noisy else None
    shares = error_shares(errors, totals, FEATURES, rows=rows, deviation=deviation, expected=expected)
    assert shares.shape == (2, 5)
    assert ((shares >= 0) & (shares <= 1)).all()


@pytest.mark.parametrize("noisy", [True, False])
def test_exact_counts_give_exact_shares_and_an_empty_bin_that_of_all_rows(noisy):
    totals = np.array([[4.0, 0.0, 6.0, 2.0, 8.0]])
    errors = np.array([[1.0, 0.0, 3.0, 0.0, 4.0]])
    expected = expected_totals(np.array([0.3, 0.1, 0.6, 0.5, 0.5]), 10, 20, 0.0) if noisy else None
    shares = error_shares(errors, totals, FEATURES, rows=10, deviation=0.0, expected=expected)
    np.testing.assert_allclose(shares, [[0.25, 0.4, 0.5, 0.0, 0.5]], rtol=1e-14)


def test_errors_are_those_of_generalised_least_squares():
    rng, deviation, queries, bins = np.random.default_rng(1), 5.0, 3, 4
    expected = rng.uniform(80, 120, bins), rng.uniform(10, 40, bins)
    errors, corrects = rng.uniform(20, 60, (queries, bins)), rng.uniform(40, 80, (queries, bins))
    found = []
    for k in range(bins):  # unknowns: errors of every query, and rows
        system, target = np.zeros((2 * queries + 1, queries + 1)), np.zeros(2 * queries + 1)
        for t in range(queries):
            system[t, t] = system[queries + t, -1] = 1 / deviation
            system[queries + t, t] = -1 / deviation
            target[[t, queries + t]] = errors[t, k] / deviation, corrects[t, k] / deviation
        system[-1, -1], target[-1] = np.array([1, expected[0][k]]) / np.sqrt(expected[1][k])
        found.append(np.linalg.lstsq(system, target)[0])
    solved = np.array(found)
    shares = error_shares(
        errors, errors + corrects, np.zeros(bins, dtype=int), rows=solved[:, -1].sum(), deviation=deviation,
        expected=expected,
    )  # fmt: skip
    np.testing.assert_allclose(shares, (solved[:, :-1] / solved[:, -1:]).T, rtol=1e-10)


def test_known_totals_halve_the_variance_of_errors():
    rng, deviation = np.random.default_rng(2), 10.0
    errors = 200 + rng.normal(0, deviation, (20_000, 1))
    totals = errors + 300 + rng.normal(0, deviation, errors.shape)
    expected = np.array([500.0]), np.array([0.0])
    shares = np.concatenate(
        [
            error_shares(u[None], n[None], np.zeros(1, dtype=int), rows=500, deviation=deviation, expected=expected)
            for u, n in zip(errors, totals, strict=True)
        ]
    )
    assert np.var(500 * shares) == pytest.approx(deviation**2 / 2, rel=0.05)


def test_every_feature_has_all_rows():
    totals = np.array([[10.0, 20.0, 30.0, 5.0, 15.0]])
    expected = expected_totals(np.array([0.2, 0.3, 0.5, 0.4, 0.6]), 50, 70, 0.0)
    shares = error_shares(totals / 2, totals, FEATURES, rows=50.0, deviation=1e9, expected=expected)
    np.testing.assert_allclose(shares, 0.5, rtol=1e-12)  # no error less a correct: half the rows of any bin


def test_expected_totals_vary_as_two_samples_of_one_distribution():
    rng = np.random.default_rng(3)
    source, target = rng.binomial(60, 0.3, 100_000), rng.binomial(200, 0.3, 100_000)
    expected = expected_totals(np.array([0.3]), 200, 60, 2.0)
    assert expected[0][0] == pytest.approx(60)
    assert expected[1][0] - 4 == pytest.approx(np.var(target - 200 * source / 60), rel=0.02)
