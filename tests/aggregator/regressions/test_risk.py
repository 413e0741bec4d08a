"""Predicted excess risks against least squares on simulated labels and noise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from aggregator.regressions import models as risk
from aggregator.trial.plan import PublicNumbers
from federation.contract.randomness import NoiseBits
from federation.mechanisms.labels.mechanism import LabelRange
from federation.mechanisms.labels.shaped_gaussian import calibrate, fit_shape

N, R, S2 = 2000, 6, 0.5
RUNS = 400


@pytest.fixture(scope="module")
def world():
    random = np.random.default_rng(1)
    rows = random.standard_t(5, (N, R))
    weights = random.standard_normal(R)
    return rows, weights, random


def excess(rows, weights, found):
    """Mean of (x'w_hat - x'w)² over the rows, for each found model (RUNS, R)."""
    return np.square((found - weights) @ rows.T).mean()


def fitted(rows, sums):
    return np.linalg.solve(rows.T @ rows, sums.T).T


def close(measured, predicted):
    """To five standard errors of a mean of chi-squares with R degrees of freedom."""
    return measured == pytest.approx(predicted, rel=5 * math.sqrt(2 / (R * RUNS)))


def test_labels_with_noise_of_their_own(world):
    rows, weights, random = world
    noise = random.standard_normal((RUNS, N)) * math.sqrt(S2) + random.laplace(0, 3, (RUNS, N))
    found = fitted(rows, (rows @ weights + noise) @ rows)
    assert close(excess(rows, weights, found), risk.private_labels(R, N, S2, 2 * 3**2))
    assert risk.private_labels(R, N, S2, 0.0) == risk.least_squares(R, N, S2)
    assert risk.private_labels(R, N, S2, 1.0, 0.25) == risk.private_labels(R, N, S2, 1.0) + 0.25


def test_sums_over_published_bags(world):
    rows, weights, random = world
    size, noise, found = 10, 4.0, []
    for _ in range(RUNS):
        order, signs = random.permutation(N).reshape(-1, size), random.choice([-1.0, 1.0], N)
        bags = (signs[order][..., None] * rows[order]).sum(axis=1)
        labels = rows @ weights + random.standard_normal(N) * math.sqrt(S2)
        sums = (signs[order] * labels[order]).sum(axis=1) + random.standard_normal(N // size) * math.sqrt(noise)
        found.append(np.linalg.lstsq(bags, sums, rcond=None)[0])
    measured = excess(rows, weights, np.array(found))
    # The formula leaves out r/m of itself, which 200 bags of 6 columns have.
    assert measured == pytest.approx(risk.bag_sums(R, N, S2, size, noise), rel=0.2)
    assert measured == pytest.approx(risk.weighted_bags(R, N // size, S2, size, noise), rel=0.15)


def test_secret_gaussian_combinations(world):
    rows, weights, random = world
    size, bags, noise, found = 100, 20, 30.0, []
    for _ in range(RUNS):
        order, mix = random.permutation(N).reshape(bags, size), random.standard_normal(N)
        labels = rows @ weights + random.standard_normal(N) * math.sqrt(S2)
        sums = (mix[order] * labels[order]).sum(axis=1) + random.standard_normal(bags) * math.sqrt(noise)
        found.append(np.linalg.lstsq((mix[order][..., None] * rows[order]).sum(axis=1), sums, rcond=None)[0])
    measured = excess(rows, weights, np.array(found))
    assert measured == pytest.approx(risk.weighted_bags(R, bags, S2, size, noise), rel=0.15)
    assert risk.weighted_bags(R, R + 1, S2, size, noise) == math.inf


@pytest.mark.parametrize("parties", [1, 5])
def test_noisy_sums(world, parties):
    rows, weights, _ = world
    labels = rows @ weights
    reach = float(np.abs(labels).max())
    shape = fit_shape(rows)
    mechanism = calibrate(shape, "gaussian", rows=N, epsilon=1.0, delta=1e-3, labels=LabelRange(-reach, reach))
    sums = sum(mechanism.release(rows, labels, NoiseBits(p, "sums"), RUNS) - labels @ rows for p in range(parties))
    found = fitted(rows, sums + labels @ rows)
    predicted = risk.label_sums(R, N, 0.0, mechanism.variance(), shape.trace, parties)
    assert measured_is(excess(rows, weights, found), predicted)
    assert risk.least_trace(R, N) <= shape.trace


def measured_is(measured, predicted):
    """The noise of an optimal shape is far from white in whitened coordinates: fewer degrees of freedom than R."""
    return measured == pytest.approx(predicted, rel=5 * math.sqrt(2 / RUNS))


@pytest.mark.parametrize(
    ("rank", "rows", "optimal"), [(11, 353, 2.4), (9, 16_346, 19), (10, 36_584, 48), (113, 79_809, 13)]
)
def test_typical_traces_are_near_those_of_real_tables(rank, rows, optimal):
    """diabetes, housing (logarithms), protein and census weeks: traces over the least one."""
    assert 0.5 < risk.typical_trace(rank, rows, "optimal") / risk.least_trace(rank, rows) / optimal < 2


def test_typical_traces_lie_between_their_bounds():
    for rank, rows in ((9, 16_512), (113, 79_809), (5, 6)):
        least, optimal, whitened = (
            risk.least_trace(rank, rows),
            risk.typical_trace(rank, rows, "optimal"),
            risk.typical_trace(rank, rows, "whitened"),
        )
        assert least <= optimal <= whitened <= rank


def test_what_knows_its_noise_errs_as_a_posterior_mean_does():
    random, rank, rows, width, noise = np.random.default_rng(3), 5, 400, 2.0, 30.0
    spread = np.sqrt([rows * width**2 / 12, *[rows * 0.02 * width**2 / (rank - 1)] * (rank - 1)])
    answers = random.standard_normal((20_000, rank)) * spread
    answers[:, 0] /= math.sqrt(2)  # mean labels are nearer to the middle than the model allows for
    seen = answers + random.standard_normal((20_000, rank)) * math.sqrt(noise)
    errors = seen * (spread**2 / (spread**2 + noise)) - answers
    measured = np.square(errors).sum(axis=1).mean() / rows
    assert measured == pytest.approx(risk.shrunk_risk(rank, rows, noise, width), rel=0.03)
    assert risk.shrunk_risk(rank, rows, 1e-9, width) == pytest.approx(rank * 1e-9 / rows)
    risks = [risk.shrunk_risk(rank, rows, noise, width) for noise in np.geomspace(1e-3, 1e6, 40)]
    assert risks == sorted(risks)
    assert risks[-1] == pytest.approx((1 / 24 + 0.02) * width**2, rel=1e-2)


def test_an_expectation_is_hopeless_beyond_what_rows_explain():
    assert risk.expected(0.021, 0.1, 1.0, False, "so").hopeless
    near = risk.expected(0.019, 0.1, 1.0, False, "so")
    assert (near.hopeless, near.basis) == (False, "guess")
    assert risk.residual(PublicNumbers(1e-6), 6.0) == pytest.approx(36 * (1 / 12 - 0.02))
    assert risk.residual(PublicNumbers(1e-6, residual=0.5), 6.0) == 0.5
