"""Audits of noisy error marginals over a whole exchange: claims stand on the worst pair, broken twins are refuted."""

from __future__ import annotations

import numpy as np
import pytest
from support.exact_losses import published_loss

from federation.contract.guarantee import Adjacency, Unit
from federation.contract.randomness import NoiseBits
from federation.mechanisms.audits import audit
from federation.mechanisms.marginals.noise import calibrate
from federation.mechanisms.marginals.published import PublishedRates
from federation.numerics.binning import Bins

RUNS = 60_000
FEATURES, QUERIES = 3, 2
EPSILON, DELTA = 1.0, 0.01
ADDED, REPLACED = (Unit.ROW, Adjacency.ADD_REMOVE), (Unit.ROW, Adjacency.REPLACE)

BINS = Bins(np.zeros(FEATURES), np.full(FEATURES, 2))
ROWS = np.array([[-1.0, 1.0, 1.0], [1.0, -1.0, 1.0], [1.0, 1.0, -1.0]])
LABELS = np.array([0, 1, 1])
PREDICTIONS = (lambda rows: np.ones(len(rows), int), lambda rows: (rows[:, 0] > 0).astype(int))  # of the two queries


def answers(rows, labels):
    """Errors and corrects in every bin, of both queries: (Q, 2, K) int64."""
    codes = BINS.codes(rows)
    counts = np.zeros((QUERIES, 2, BINS.total), dtype=np.int64)
    for query, predict in enumerate(PREDICTIONS):
        for row, label, predicted in zip(codes, labels, predict(rows), strict=True):
            counts[query, int(label == predicted), row] += 1
    return counts


def pair_of(unit):
    """Answers about neighbours."""
    before = answers(ROWS, LABELS)
    if unit == ADDED:
        return before, answers(ROWS[1:], LABELS[1:])
    flipped, others = LABELS.copy(), ROWS.copy()
    flipped[0], others[0] = 1 - flipped[0], -others[0]
    return before, answers(others, flipped)


def noise_of(kind, unit, features):
    claim = {"epsilon": EPSILON, "delta": DELTA if kind == "gaussian" else 0.0}
    return calibrate(kind, features=features, queries=QUERIES, unit=unit[0], adjacency=unit[1], **claim)


def log_ratio(kind, pair):
    """The log likelihood ratio of noisy answers, up to a factor."""
    power = 1 if kind == "pure" else 2
    axes = tuple(range(1, 1 + pair[0].ndim))
    return lambda seen: sum(
        sign * (np.abs(seen - side) ** power).sum(axis=axes, dtype=float)
        for sign, side in zip((-1, 1), pair, strict=True)
    )


def audited(kind, pair, release, claimed=EPSILON, statistic=None, runs=RUNS):
    """The audit of `release(answers, bits)` on both sides of a pair."""

    def sampler(side):
        return lambda n: release(np.broadcast_to(pair[side], (n, *pair[side].shape)), NoiseBits(7, "marginals", side))

    delta = DELTA if kind == "gaussian" else 0.0
    ratio = statistic or log_ratio(kind, pair)
    return audit(sampler(0), sampler(1), ratio, epsilon=claimed, delta=delta, runs=runs, confidence=0.999)


@pytest.mark.parametrize("kind", ["pure", "gaussian"])
@pytest.mark.parametrize("twin", ["one feature", "rows that are added only"])
def test_too_little_noise_is_refuted(kind, twin):
    """Other mistakes are those of parties: `TestBrokenExchanges`."""
    unit, features = (ADDED, 1) if twin == "one feature" else (REPLACED, FEATURES)
    noise = noise_of(kind, ADDED, features=features)
    assert not audited(kind, pair_of(unit), noise.release, runs=2 * RUNS).passed


RATES = PublishedRates(FEATURES, QUERIES, EPSILON)


def test_published_rates_protect_one_changed_label():
    """In bins of many rows nothing is lost by clipping."""
    counts = np.full(FEATURES, 400)
    errors = np.full((QUERIES, FEATURES), 200)
    pair = errors, errors + 1

    def release(cells, bits):
        return RATES.release(cells, counts, bits)

    def ratio(rates):
        return log_ratio("pure", pair)(np.rint(rates * counts))

    result = audited("pure", pair, release, statistic=ratio)
    assert EPSILON / 2 < result.lower_bound <= EPSILON


def inner(rates):
    """How many rates are neither 0 nor 1."""
    return ((rates > 0) & (rates < 1)).sum(axis=(1, 2)).astype(float)


@pytest.mark.parametrize("alone", [False, True], ids=["beside an error", "in an empty bin"])
def test_published_rates_do_not_protect_an_added_row(alone):
    """Rates are multiples of 1/n: only two rows have the rate 1/2, and only an empty bin always has."""
    errors = np.full((QUERIES, FEATURES), 0 if alone else 1)
    counts = (0, 1) if alone else (2, 1)

    def release(side):
        bits = NoiseBits(7, "rates", side)
        return lambda n: RATES.release(
            np.broadcast_to(errors, (n, *errors.shape)), np.full(FEATURES, counts[side]), bits
        )

    result = audit(release(0), release(1), inner, epsilon=EPSILON, runs=4000, confidence=0.999)
    assert result.lower_bound > 3 * EPSILON


def test_continuous_published_rates_do_not_protect_an_added_row_either():
    """One correct row beside one error in every bin; the exact loss is above the bound that is found."""

    def release(rows):
        random = np.random.default_rng(rows)
        size = (QUERIES, FEATURES)
        return lambda n: np.clip((1 + random.laplace(scale=RATES.scale, size=(n, *size))) / rows, 0, 1)

    result = audit(release(2), release(1), inner, epsilon=EPSILON, runs=RUNS, confidence=0.999)
    exact = QUERIES * FEATURES * published_loss(1, 1, RATES.scale, "correct")
    assert 1.5 * EPSILON < result.lower_bound <= exact
