"""Shares of errors from noisy counts: against least squares, and whatever the noise makes of the counts.

What a learner of error marginals may be told. Hypotheses from weighted rows with soft or hard labels. Labels from
shares of errors: the identity they rest on, and recovery where they are determined.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from aggregator.learners.error_marginals.estimation import (
    ExchangeSettings,
    error_shares,
    estimate_labels,
    expected_totals,
    train_hypothesis,
)
from federation.contract.errors import InputError
from federation.numerics.binning import Bins

FEATURES = np.array([0, 0, 0, 1, 1])
counts = arrays(np.float64, (2, 5), elements=st.floats(-1e9, 1e9))


@given(counts, counts, st.floats(1, 1e6), st.sampled_from([0.0, 1e-3, 50.0, 1e6]), st.booleans())
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


@pytest.mark.slow
def test_known_totals_halve_the_variance_and_expected_ones_vary_as_two_samples_of_one_distribution():
    rng, deviation = np.random.default_rng(2), 10.0
    errors = 200 + rng.normal(0, deviation, (6_000, 1))
    totals = errors + 300 + rng.normal(0, deviation, errors.shape)
    known = {"rows": 500, "deviation": deviation, "expected": (np.array([500.0]), np.array([0.0]))}
    one = np.zeros(1, dtype=int)
    shares = [error_shares(u[None], n[None], one, **known) for u, n in zip(errors, totals, strict=True)]
    assert np.var(500 * np.concatenate(shares)) == pytest.approx(deviation**2 / 2, rel=0.05)
    totals = np.array([[10.0, 20.0, 30.0, 5.0, 15.0]])
    expected = expected_totals(np.array([0.2, 0.3, 0.5, 0.4, 0.6]), 50, 70, 0.0)
    shares = error_shares(totals / 2, totals, FEATURES, rows=50.0, deviation=1e9, expected=expected)
    np.testing.assert_allclose(shares, 0.5, rtol=1e-12)  # no error less a correct: half the rows of any bin
    rng = np.random.default_rng(3)
    source, target = rng.binomial(60, 0.3, 100_000), rng.binomial(200, 0.3, 100_000)
    expected = expected_totals(np.array([0.3]), 200, 60, 2.0)
    assert expected[0][0] == pytest.approx(60)
    assert expected[1][0] - 4 == pytest.approx(np.var(target - 200 * source / 60), rel=0.02)


@pytest.mark.parametrize(("options", "words"), [
    ({"rounds": 0}, r"rounds.*1"), ({"rounds": True}, "rounds"), ({"importance": 1}, "importance"),
    ({"memory": "cumulativ"}, "cumulative"), ({"labels": "box"}, r"labels.*least_squares"),
    ({"rounding": None}, "rounding"), ({"learner": "tree"}, None), ({"hidden": ()}, "learner: linear"),
    ({"hidden": (4, 0)}, "width"), ({"epochs": 0}, "epochs"), ({"bins": 0}, r"bins.*1.*10000.*0"),
    ({"bins": 10**22}, r"bins.*1.*10000.*1"), ({"epochs": 10**9}, r"epochs.*1.*100000"),
    ({"rounds": 10**9}, r"rounds.*1.*10000"), ({"hidden": (4, 10**9)}, r"1.*4096"),
    ({"guard": True, "rounds": 1}, r"guard.*2"),
])  # fmt: skip
def test_what_cannot_be_used_is_refused(options, words):
    with pytest.raises(InputError, match=words):
        ExchangeSettings(**options)


LINEAR = ExchangeSettings(learner="linear")
NETWORK = ExchangeSettings(hidden=(16,), epochs=150)


def world(n=300, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal([5.0, -2.0], [10.0, 0.1], (n, 2))
    truth = (rows[:, 0] - 5) / 10 + (rows[:, 1] + 2) / 0.1 > 0.3
    return rows, truth.astype(float), rng.uniform(0.5, 2, n)


def trained(rows, shares, weights, settings, seed=0):
    return train_hypothesis(rows, shares, weights, settings, np.random.default_rng(seed))


@pytest.mark.parametrize("settings", [LINEAR, NETWORK])
def test_a_line_is_learned_in_units_of_each_feature_and_one_class_is_a_constant(settings):
    rows, labels, weights = world()
    hypothesis = trained(rows, labels, weights, settings)
    assert (hypothesis.predict(rows) == labels).mean() > 0.97
    rows, labels, weights = world(50)
    for label in (0, 1):
        hypothesis = trained(rows, np.full(50, float(label)), weights, settings)
        assert np.all(hypothesis.predict(np.array([[1e6, -1e6], [-1e6, 1e6]])) == label)
    strange = np.vstack([rows, [[1e9, 1e9]]])  # a row without weight does not count
    with_it = trained(strange, np.append(labels, 1.0), np.append(weights, 0.0), settings)
    assert np.array_equal(with_it.parameters, trained(rows, labels, weights, settings).parameters)


@pytest.mark.slow
def test_the_network_learns_what_no_line_tells_and_equal_seeds_give_equal_bits():
    rows = np.random.default_rng(1).uniform(-1, 1, (600, 2))
    labels = (rows[:, 0] * rows[:, 1] > 0).astype(float)
    hypothesis = trained(rows, labels, np.ones(600), NETWORK)
    assert (hypothesis.predict(rows) == labels).mean() > 0.95
    rows, labels, weights = world()
    shares = 0.6 + 0.3 * labels  # class 1 is the likelier of every row
    hard = ExchangeSettings(learner="linear", rounding="hard")
    assert np.all(trained(rows, shares, weights, hard).predict(rows) == 1)
    assert trained(rows, shares, weights, LINEAR).scores(rows).std() > 0.1
    assert trained(rows, shares, weights, hard).sizes.tolist() == [2, 1]
    rows, labels, weights = world(80)
    one, two, other = (trained(rows, labels, weights, NETWORK, seed).parameters for seed in (3, 3, 4))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)


def test_soft_labels_minimise_the_weighted_cross_entropy():
    rows, labels, weights = world()
    shares = 0.15 + 0.7 * labels
    hypothesis = trained(rows, shares, weights, LINEAR)
    scaled = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    inputs = np.column_stack([scaled, np.ones(len(rows))])

    def risk(theta):
        scores, slope = inputs @ theta, theta[:2]
        losses = np.logaddexp(0, scores) - shares * scores
        return (weights / weights.mean() * losses).mean() + 5e-4 * slope @ slope

    best = minimize(risk, np.zeros(3)).x
    np.testing.assert_allclose(hypothesis.scores(rows), inputs @ best, atol=0.01)


BOTH = pytest.mark.parametrize("estimate", ["entropy", "least_squares"])


def errors_in_bins(indicators, weights, labels, predictions):
    wrong = (predictions != labels).astype(float)
    return (indicators @ (weights * wrong)) / (indicators @ weights)


@BOTH
def test_labels_are_recovered_where_rows_have_bins_or_hypotheses_determine_them(estimate):
    rng = np.random.default_rng(0)
    rows = np.arange(12.0)[:, None]
    indicators = Bins.fit(rows, 12).indicators(rows)
    weights = rng.dirichlet(np.ones(12))
    labels, predictions = rng.integers(0, 2, (2, 12))
    shares = errors_in_bins(indicators, weights, labels, predictions)
    found = estimate_labels(indicators, weights, [predictions], [shares], estimate, 1e-9)
    np.testing.assert_allclose(found, labels, atol=1e-3)
    # Exclusive or of two halves: no marginal tells it, that of a hypothesis that splits one feature does.
    rows = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    labels = np.array([0, 1, 1, 0])
    indicators, weights = Bins.fit(rows, 2).indicators(rows), np.full(4, 0.25)
    asked = [np.ones(4, dtype=int), (rows[:, 0] > 0.5).astype(int)]
    shares = [errors_in_bins(indicators, weights, labels, predictions) for predictions in asked]
    one = estimate_labels(indicators, weights, asked[:1], shares[:1], estimate, 1e-9)
    np.testing.assert_allclose(one, 0.5, atol=1e-6)
    both = estimate_labels(indicators, weights, asked, shares, estimate, 1e-9)
    np.testing.assert_allclose(both, labels, atol=1e-3)


@BOTH
def test_estimates_fit_every_answer_and_a_hypothesis_and_its_opposite_tell_the_same(estimate):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(40, 3))
    indicators, weights = Bins.fit(rows, 4).indicators(rows), rng.dirichlet(np.ones(40))
    predictions, shares = rng.integers(0, 2, 40), rng.uniform(size=12)
    found = estimate_labels(indicators, weights, [predictions], [shares], estimate, 0.01)
    opposite = estimate_labels(indicators, weights, [1 - predictions], [1 - shares], estimate, 0.01)
    np.testing.assert_allclose(found, opposite, atol=1e-9)
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(60, 2))
    indicators, weights = Bins.fit(rows, 5).indicators(rows), rng.dirichlet(np.ones(60))
    labels = rng.integers(0, 2, 60)
    asked = [np.ones(60, dtype=int), rng.integers(0, 2, 60)]
    shares = [errors_in_bins(indicators, weights, labels, predictions) for predictions in asked]
    found = estimate_labels(indicators, weights, asked, shares, estimate, 1e-7)
    for predictions, answered in zip(asked, shares, strict=True):
        wrong = indicators @ (weights * np.abs(predictions - found))
        np.testing.assert_allclose(wrong, answered * (indicators @ weights), atol=1e-5)
