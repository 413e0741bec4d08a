"""Randomised response on bins: its law, moments by enumeration, bias as published and corrected, and bad priors.

Optimal bins against a search over all bins, and their mean loss against the mechanism's own law.

One bit per label: its law against Duchi et al.'s, by all words and by frequencies.

Bins from a private histogram: both releases are charged, and delta is that of their joint law.

Exact randomised response: its law by running every case of its random words, its delta by enumeration.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from support.scripted_words import Script, evenly

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency
from federation.contract.randomness import NoiseBits
from federation.mechanisms.counts import exact_laws as lattice_laplace
from federation.mechanisms.labels import randomised_response as response
from federation.mechanisms.labels.mechanism import LabelRange
from federation.mechanisms.labels.randomised_response import (
    WORDS,
    EstimatedBins,
    OneBitLabels,
    calibrate,
    calibrate_one_bit,
    mean_errors,
    optimal_bins,
)

RANGE = LabelRange(0.0, 7.0)
PRIOR = np.array([0.3, 0.2, 0.0, 0.1, 0.1, 0.05, 0.05, 0.2])
priors = st.lists(st.integers(0, 9), min_size=2, max_size=12).filter(lambda w: sum(x > 0 for x in w) > 1)


def law(mechanism, labels):
    """Probability of every value for every label, (labels, k), from the bins' boundaries."""
    k = len(mechanism.starts)
    spacing = mechanism.labels.width / (mechanism.points - 1)
    cuts = mechanism.labels.low + (np.array(mechanism.starts[1:]) - 0.5) * spacing
    true, other = response.probabilities(k, mechanism.redraw)
    own = (labels[:, None] > cuts).sum(axis=1)
    return np.where(np.arange(k) == own[:, None], true, other)


@given(weights=priors, epsilon=st.floats(0.2, 6), debiased=st.booleans())
def test_moments_equal_enumeration(weights, epsilon, debiased):
    prior = np.array(weights) / sum(weights)
    mechanism = calibrate(RANGE, epsilon, prior, debiased)
    labels = np.linspace(0.013, 6.987, 40)
    mass, values = law(mechanism, labels), np.array(mechanism.values)
    mean = mass @ values
    np.testing.assert_allclose(mechanism.bias(labels), mean - labels, atol=1e-9 * (1 + np.abs(values).max()))
    variance = (mass * np.square(values - mean[:, None])).sum(axis=1)
    np.testing.assert_allclose(mechanism.variance(labels), variance, atol=1e-9 * (1 + np.square(values).max()))
    assert mechanism.variance() >= variance.max() * (1 - 1e-9)
    assert mechanism.bias() >= np.abs(mean - labels).max() * (1 - 1e-9)
    everywhere = np.linspace(0, 7, 14_001)  # ends of bins among them, from both sides
    assert mechanism.bias() == pytest.approx(np.abs(law(mechanism, everywhere) @ values - everywhere).max(), abs=2e-3)


def test_as_published_the_mean_loss_is_the_least_and_answers_shrink():
    mechanism = calibrate(RANGE, 2.0, PRIOR)
    found = optimal_bins(np.arange(8.0), PRIOR, 2.0)
    assert sum(mean_errors(mechanism, PRIOR)) == pytest.approx(min(bins.loss for bins in found), rel=1e-9)
    points = np.arange(8.0)
    mean = PRIOR @ points
    expected = calibrate(RANGE, 1.0, PRIOR).bias(points) + points
    slope = PRIOR @ ((expected - mean) * (points - mean)) / (PRIOR @ np.square(points - mean))
    assert slope < 0.5


@given(weights=priors, epsilon=st.floats(0.2, 6))
def test_debiased_answers_have_the_labels_mean_and_slope_one(weights, epsilon):
    prior = np.array(weights) / sum(weights)
    mechanism = calibrate(RANGE, epsilon, prior, debiased=True)
    points = np.linspace(0, 7, len(prior))
    error = mechanism.bias(points)
    scale = 1 + np.abs(mechanism.values).max()
    assert prior @ error == pytest.approx(0, abs=1e-9 * scale)
    assert prior @ (error * (points - prior @ points)) == pytest.approx(0, abs=1e-8 * scale)


def test_frequencies_follow_the_law():
    mechanism = calibrate(RANGE, 1.5, PRIOR, debiased=True)
    labels = np.repeat([0.2, 3.6, 6.9], 50_000)
    released = mechanism.release(labels, NoiseBits(5, "bins")).reshape(3, -1)
    mass = law(mechanism, labels[::50_000])
    for part, expected in zip(released, mass, strict=True):
        shares = [(part == value).mean() for value in mechanism.values]
        np.testing.assert_allclose(shares, expected, atol=4.5 * 0.5 / 50_000**0.5)


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_epsilon_is_attained_by_two_bins(epsilon):
    mechanism = calibrate(RANGE, epsilon, PRIOR, debiased=True)
    mass = law(mechanism, np.array([0.0, 7.0]))
    assert np.log(mass[0] / mass[1]).max() == pytest.approx(epsilon, abs=1e-9)
    expected = np.maximum(mass[0] - math.exp(0.3) * mass[1], 0).sum()
    assert mechanism.delta_at(0.3) == pytest.approx(expected, abs=1e-12)
    assert mechanism.delta_at(epsilon) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        *(
            (lambda prior=prior: calibrate(RANGE, 1.0, np.array(prior)), r"2.*512")
            for prior in ([1.0], [1 / 513] * 513, [[0.25] * 2] * 2)
        ),
        *(
            (lambda prior=prior: calibrate(RANGE, 1.0, np.array(prior)), "1")
            for prior in ([0.5, 0.6], [1.5, -0.5], [0.5, math.nan])
        ),
        (lambda: calibrate(RANGE, 1.0, np.array([0.0, 1.0, 0.0]), debiased=True), None),  # answers of one point
        *((lambda points=points: EstimatedBins(SHARES, 1.0, points, 0.2), "points") for points in (1, 600)),
        (lambda: EstimatedBins(SHARES, 1.0, 8, 1.0), "share"),
        (lambda: calibrate_one_bit(BITS_RANGE, 1.0).guarantee(adjacency=Adjacency.ADD_REMOVE), "adjacency"),
        *((lambda wrong=wrong: response.calibrate_redraw(2, wrong), "epsilon") for wrong in (0.0, -1.0, math.nan)),
        (lambda: response.calibrate_redraw(2, math.nextafter(1e-6, 0)), r"epsilon.*1e-06"),
    ],
)
def test_impossible_numbers_are_refused(refused, message):
    with pytest.raises(InputError, match=message):
        refused()


def test_weights_that_add_up_to_1_but_for_rounding_count_as_if_they_did():
    exact, rounded = (calibrate(RANGE, 1.0, PRIOR * total, debiased=True) for total in (1.0, 1 + 9e-7))
    np.testing.assert_allclose(rounded.values, exact.values, rtol=1e-12)
    assert calibrate(RANGE, 1.0, np.array([0.0, 1.0, 0.0])).values == pytest.approx([3.5])


@pytest.mark.slow
def test_as_many_points_as_are_allowed_serve():
    assert calibrate(RANGE, 1.0, np.full(512, 1 / 512)).points == 512


def loss_of(starts, points, prior, epsilon):
    """The least mean loss of these bins, each value found by a one-dimensional search."""
    k, total, ends = len(starts), 0.0, [*starts[1:], len(points)]
    for start, end in zip(starts, ends, strict=True):
        weights = prior.copy()
        weights[start:end] *= math.exp(epsilon)
        found = minimize_scalar(lambda v, weights=weights: weights @ (v - points) ** 2, bounds=(-10, 10))
        total += found.fun
    return total / (math.exp(epsilon) + k - 1)


@given(weights=st.lists(st.integers(0, 9), min_size=2, max_size=6).filter(any), epsilon=st.floats(0.1, 6))
def test_no_other_bins_lose_less(weights, epsilon):
    prior = np.array(weights) / sum(weights)
    points = np.linspace(-1, 2, len(weights))
    found = optimal_bins(points, prior, epsilon)
    assert [len(bins.starts) for bins in found] == list(range(1, len(weights) + 1))
    for bins in found:
        others = itertools.combinations(range(1, len(weights)), len(bins.starts) - 1)
        best = min(loss_of((0, *starts), points, prior, epsilon) for starts in others)
        assert bins.loss == pytest.approx(best, rel=1e-6, abs=1e-9)
        assert loss_of(bins.starts, points, prior, epsilon) == pytest.approx(bins.loss, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_no_mechanism_at_all_loses_less(epsilon):
    """Ghazi et al. 2022, Theorem 1: a linear programme over all epsilon-private laws on a fine grid of outputs."""
    from scipy.optimize import linprog

    points, prior = np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.5, 0.1, 0.1, 0.3])
    best = min(optimal_bins(points, prior, epsilon), key=lambda bins: bins.loss)
    outputs = np.union1d(np.linspace(0, 3, 61), best.values)
    y, o = len(points), len(outputs)
    rows = []
    for a, b, j in itertools.product(range(y), range(y), range(o)):
        if a != b:
            row = np.zeros((y, o))
            row[a, j], row[b, j] = 1, -math.exp(epsilon)
            rows.append(row.ravel())
    cost = prior[:, None] * np.square(points[:, None] - outputs)
    sums = np.kron(np.eye(y), np.ones(o))
    programme = linprog(cost.ravel(), A_ub=np.array(rows), b_ub=np.zeros(len(rows)), A_eq=sums, b_eq=np.ones(y))
    assert best.loss == pytest.approx(programme.fun, rel=1e-6)


def test_everything_is_one_bin_when_nothing_may_be_told_and_none_when_all_may():
    points, prior = np.linspace(0, 1, 8), np.full(8, 1 / 8)
    least, most = (min(optimal_bins(points, prior, epsilon), key=lambda bins: bins.loss) for epsilon in (1e-3, 40.0))
    assert len(least.starts) <= 2
    assert least.loss == pytest.approx(prior @ np.square(points - 0.5), rel=1e-3)
    assert most.starts == tuple(range(8))
    assert most.loss < 1e-12


BITS_RANGE = LabelRange(-1.0, 3.0)


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
def test_the_law_by_all_words(share):
    """With a redraw of 1/4 and labels on quarters, 4 words for the end, 2 for a fresh answer and 4 coins are all."""
    mechanism = OneBitLabels(BITS_RANGE, math.log(7), WORDS // 4)
    ends, fresh, coins = (a.ravel() for a in np.meshgrid(evenly(4), np.arange(2, dtype=np.uint64), evenly(4)))
    labels = np.full(len(ends), BITS_RANGE.low + share * BITS_RANGE.width)
    released = mechanism.release(labels, Script(ends, fresh, coins))
    high = 0.125 + 0.75 * share
    assert (released > BITS_RANGE.middle).mean() == high
    assert released.mean() == pytest.approx(labels[0], abs=1e-12)
    assert released.var() == pytest.approx(mechanism.variance(labels[:1])[0], rel=1e-12)
    assert mechanism.bias() == 0.0
    assert not mechanism.bias(labels).any()


@given(epsilon=st.floats(1e-3, 20), share=st.floats(0, 1))
def test_values_and_probabilities_are_those_of_the_paper(epsilon, share):
    """± (e^epsilon + 1)/(e^epsilon - 1), up with probability 1/2 + y/2 (e^epsilon - 1)/(e^epsilon + 1)."""
    mechanism = calibrate_one_bit(BITS_RANGE, epsilon)
    factor = 1 / math.tanh(epsilon / 2)
    assert mechanism.reach == pytest.approx(2 * factor, rel=1e-9)
    y = BITS_RANGE.low + share * BITS_RANGE.width
    up = 0.5 + (y - BITS_RANGE.middle) / 2 / factor / 2
    variance = (2 * mechanism.reach) ** 2 * up * (1 - up)
    assert mechanism.variance(np.array([y]))[0] == pytest.approx(variance, rel=1e-6, abs=1e-9 * mechanism.reach**2)
    assert mechanism.variance() >= mechanism.variance(np.array([y]))[0]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_epsilon_is_attained_and_delta_falls_to_zero_there(epsilon):
    mechanism = calibrate_one_bit(BITS_RANGE, epsilon)
    assert mechanism.delta_at(epsilon) == pytest.approx(0.0, abs=1e-12)
    assert mechanism.delta_at(0.0) == pytest.approx(math.tanh(epsilon / 2), rel=1e-9)
    assert mechanism.delta_at(0.99 * epsilon) > 0
    promised = mechanism.guarantee()
    assert (promised.epsilon, promised.delta, promised.mechanism) == (epsilon, 0.0, "label_one_bit")
    assert promised.parameters["flip"] == pytest.approx(1 / (1 + math.exp(epsilon)), rel=1e-9)


SHARES = LabelRange(0.0, 1.0)


@pytest.mark.parametrize("share", [0.05, 0.2, 0.7])
def test_both_parts_of_epsilon_make_the_claim(share):
    mechanism = EstimatedBins(SHARES, 1.0, 16, share)
    histogram = 2 / mechanism.parameters["histogram_scale"]
    total = histogram + mechanism.answers(np.full(16, 1 / 16)).epsilon
    assert total == pytest.approx(1.0, abs=1e-12)
    assert total <= 1.0
    assert histogram == pytest.approx(share, rel=1e-5)
    promised = mechanism.guarantee()
    assert (promised.epsilon, promised.delta) == (1.0, 0.0)
    assert any("both are charged" in assumption.text for assumption in promised.assumptions)
    epsilon, scale = (promised.parameters[f"histogram_{name}"] for name in ("epsilon", "scale"))
    assert lattice_laplace.lattice_laplace_delta(epsilon, 16, scale) == 0


@pytest.mark.parametrize("at", [0.0, 0.4, 0.9, 1.0])
def test_delta_equals_enumeration_of_the_pair(at):
    """Three points, so three counts: the histogram's joint law, cut where nothing is left, times two answers."""
    mechanism = EstimatedBins(SHARES, 1.0, 3, 0.5)
    scale = mechanism.parameters["histogram_scale"]
    reach = range(-60, 61)
    grid = np.array([(a, b, -a - b) for a, b in itertools.product(reach, reach)])
    mass = np.exp(-np.abs(grid).sum(axis=1) / scale)
    other = np.exp(-np.abs(grid - [1, -1, 0]).sum(axis=1) / scale)
    mass, other = mass / mass.sum(), other / mass.sum()
    true, false = response.probabilities(2, response.calibrate_redraw(2, mechanism.parameters["answer_epsilon"]))
    p, q = np.outer(mass, [true, false]), np.outer(other, [false, true])
    expected = np.maximum(p - math.exp(at) * q, 0)[p > 1e-16].sum()
    assert mechanism.delta_at(at) == pytest.approx(expected, abs=1e-9)


def test_the_prior_is_the_histogram_and_has_no_zeros():
    labels = np.repeat([0.0, 0.3, 1.0], [2000, 5000, 3000])
    prior = EstimatedBins(SHARES, 1.0, 5).prior(labels, NoiseBits(1, "prior"))
    np.testing.assert_allclose(prior, [0.2, 0.5, 0.0, 0.0, 0.3], atol=0.02)
    assert prior.min() > 0
    assert prior.sum() == pytest.approx(1)
    alike = EstimatedBins(SHARES, 1.0, 8, 0.3, debiased=True).release(np.full(50, 0.5), NoiseBits(1, "alike"))
    assert np.isfinite(alike).all()


@pytest.mark.parametrize("debiased", [False, True])
def test_a_release_takes_values_of_the_bins_it_found(debiased):
    mechanism = EstimatedBins(SHARES, 2.0, 8, 0.3, debiased)
    labels = np.random.default_rng(1).beta(2, 5, 4000)
    bits = NoiseBits(7, "joint")
    released = mechanism.release(labels, bits)
    known = mechanism.answers(mechanism.prior(labels, NoiseBits(7, "joint")))
    assert set(np.unique(released)) <= set(known.values)
    if debiased:
        assert released.mean() == pytest.approx(labels.mean(), abs=0.1)
        assert mechanism.variance() == math.inf
    else:
        assert released.var() <= mechanism.variance()
        assert np.abs(known.bias(labels)).max() <= np.max(mechanism.bias(labels))


@pytest.mark.parametrize("width", [0.5, 3.0])
def test_answers_in_the_range_vary_no_more_than_two_ends_do(width):
    """And as much where half are at either end, and epsilon is large enough to tell so."""
    ends = LabelRange(-width / 2, width / 2)
    mechanism = EstimatedBins(ends, 30.0, 2)
    released = mechanism.release(np.repeat([ends.low, ends.high], 10_000), NoiseBits(3, "variance"))
    assert 0.9 * mechanism.variance() < released.var() <= mechanism.variance() * (1 + 1e-9)
    assert mechanism.variance(np.array([0.0, 0.1])).tolist() == [mechanism.variance()] * 2


@pytest.mark.parametrize("answers", [2, 4, 8])
def test_the_law_by_all_words_response(answers):
    """A redraw of 3/16 and k answers a power of two: 16 k evenly spread words per call are all cases there are."""
    redraw = 3 * WORDS // 16
    coins, fresh = (a.ravel() for a in np.meshgrid(evenly(16), np.arange(answers, dtype=np.uint64)))
    for truth in range(answers):
        given_ = np.full(16 * answers, truth)
        counts = np.bincount(response.respond(given_, answers, redraw, Script(fresh, coins)), minlength=answers)
        true, other = response.probabilities(answers, redraw)
        expected = [true if answer == truth else other for answer in range(answers)]
        np.testing.assert_allclose(counts / counts.sum(), expected, rtol=1e-15)


@pytest.mark.parametrize("answers", [3, 5])
def test_words_of_an_incomplete_round_are_drawn_again(answers):
    """2^64 is 1 modulo 3 and 5: the largest word belongs to no whole round, and the one before to the last."""
    word = np.ones(40, dtype=np.uint64)
    again = Script((WORDS - 1) * word, 2 * word, np.zeros(1, dtype=np.uint64))
    assert response.respond(np.array([0]), answers, WORDS - 1, again).tolist() == [2]
    last = Script((WORDS - 2) * word, np.zeros(1, dtype=np.uint64))
    assert response.respond(np.array([0]), answers, WORDS - 1, last).tolist() == [answers - 1]


@given(answers=st.integers(2, 600), epsilon=st.floats(1e-5, 30))
def test_epsilon_is_attained_by_the_likelihood_ratio_and_not_exceeded(answers, epsilon):
    redraw = response.calibrate_redraw(answers, epsilon)
    other = Fraction(redraw, WORDS * answers)
    ratio = (1 - (answers - 1) * other) / other
    surplus = math.log1p(float(ratio - 1)) - epsilon
    assert surplus <= 1e-13
    assert surplus >= -1e-9 - 2 * math.exp(epsilon) / WORDS  # the next smaller integer is too small


@given(answers=st.integers(2, 6), epsilon=st.floats(0.1, 5), at=st.floats(-6, 6))
def test_delta_equals_enumeration(answers, epsilon, at):
    redraw = response.calibrate_redraw(answers, epsilon)
    true, other = response.probabilities(answers, redraw)
    first = np.full(answers, other)
    second = first.copy()
    first[0] = second[1] = true
    expected = np.maximum(first - math.exp(at) * second, 0).sum()
    assert response.delta(at, answers, redraw) == pytest.approx(expected, abs=1e-12)
    assert response.delta(at, 1, redraw) == pytest.approx(max(0.0, 1 - math.exp(at)))  # the only answer is the same


def test_frequencies_of_a_number_of_answers_that_is_no_power_of_two():
    truth, answers = np.repeat(np.arange(3), 100_000), 3
    redraw = response.calibrate_redraw(answers, 1.0)
    got = response.respond(truth, answers, redraw, NoiseBits(2, "frequencies"))
    true, other = response.probabilities(answers, redraw)
    for a, b in itertools.product(range(3), repeat=2):
        share = (got[truth == a] == b).mean()
        expected = true if a == b else other
        assert share == pytest.approx(expected, abs=4.5 * math.sqrt(expected / 100_000))


def test_a_large_epsilon_keeps_answers_and_at_the_least_they_hardly_depend_on_labels():
    redraw = response.calibrate_redraw(4, 1000.0)
    assert redraw == 1
    truth = np.arange(4)
    np.testing.assert_array_equal(response.respond(truth, 4, redraw, NoiseBits(1, "keep")), truth)
    true, other = response.probabilities(2, response.calibrate_redraw(2, 1e-6))
    assert math.log(true / other) == pytest.approx(1e-6, rel=1e-6)
