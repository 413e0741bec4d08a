"""Estimates of the mean operator from labels against averages over all noise, and all samples, of small worlds.

Mean Map and Laplacian Mean Map against direct minimisation of what they minimise, and their invariances.
"""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from aggregator.learners.mean_operators.moments import (
    from_labels,
    from_noisy_labels,
    from_randomised_response,
    laplacian_mean_map,
    mean_map,
)
from benchmarks.weak_supervision import semi_supervised
from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.mechanisms.labels import randomised_response as response

_RANDOM = np.random.default_rng(1)
ROWS = _RANDOM.normal(size=(7, 3)) + 1.0
LABELS = np.array([1, 0, 1, 1, 0, 1, 0])
MOMENT = (2.0 * LABELS - 1) @ ROWS / 7
BAGS, SHARES = [np.eye(3), np.ones((2, 3)), -np.eye(3)], np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]])


def squared_error(moment: np.ndarray) -> float:
    return float(np.sum((moment - MOMENT) ** 2))


def test_all_labels_and_answers_of_the_response_mechanism_give_the_mean_operator():
    for labels in (LABELS, LABELS.astype(bool), LABELS.astype(np.float64), LABELS.tolist()):
        found = from_labels(ROWS, labels)
        np.testing.assert_allclose(found.moment, MOMENT, rtol=1e-14)
        assert found.noise_variance == 0.0
    rng = np.random.default_rng(5)
    rows, labels = rng.normal(size=(50_000, 3)), rng.integers(0, 2, 50_000)
    rows[labels == 1] += 0.5
    answers = response.respond(labels, 2, response.calibrate_redraw(2, 0.7), NoiseBits(5, "test"))
    found = from_randomised_response(rows, answers, 0.7)
    error = np.linalg.norm(found.moment - from_labels(rows, labels).moment)
    assert error < 2.5 * math.sqrt(found.noise_variance)
    assert np.linalg.norm(from_labels(rows, answers).moment - from_labels(rows, labels).moment) > 2 * error


@settings(derandomize=True, max_examples=examples(8))
@given(st.floats(0, 0.6), st.floats(0, 0.6))
def test_noisy_labels_are_right_on_average_over_all_that_the_noise_can_do(p, q):
    if p + q > 0.9:
        p, q = p / 2, q / 2
    mean, variance, estimated = np.zeros(3), 0.0, 0.0
    for noisy in product((0, 1), repeat=7):
        flipped = np.array(noisy) != LABELS
        rates = np.where(LABELS == 1, p, q)
        probability = float(np.where(flipped, rates, 1 - rates).prod())
        found = from_noisy_labels(ROWS, np.array(noisy), p, q)
        mean += probability * found.moment
        variance += probability * squared_error(found.moment)
        estimated += probability * found.noise_variance
    np.testing.assert_allclose(mean, MOMENT, atol=1e-12 * (1 + variance))
    np.testing.assert_allclose(variance, estimated, rtol=0.02, atol=1e-12)  # truncation at 0 moves a few estimates


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_randomised_response_is_right_on_average_and_its_variance_is_exact(epsilon):
    flip = 1 / (1 + math.exp(epsilon))
    mean, variance = np.zeros(3), 0.0
    for noisy in product((0, 1), repeat=7):
        flips = int((np.array(noisy) != LABELS).sum())
        found = from_randomised_response(ROWS, np.array(noisy), epsilon)
        probability = flip**flips * (1 - flip) ** (7 - flips)
        mean += probability * found.moment
        variance += probability * squared_error(found.moment)
    np.testing.assert_allclose(mean, MOMENT, atol=1e-9)
    np.testing.assert_allclose(variance, found.noise_variance, rtol=1e-9)
    beyond = from_randomised_response(np.ones((1, 1)), [1], epsilon)
    np.testing.assert_allclose(beyond.moment, 1 / math.tanh(epsilon / 2))  # beyond 1 and not clipped
    symmetric = from_noisy_labels(ROWS, LABELS, flip, flip)
    np.testing.assert_allclose(symmetric.moment, from_randomised_response(ROWS, LABELS, epsilon).moment, rtol=1e-9)
    np.testing.assert_allclose(symmetric.noise_variance, found.noise_variance, rtol=1e-9)


def test_labels_that_are_linear_in_the_rows_need_but_a_few_and_the_bandwidth_is_the_median_distance():
    rng = np.random.default_rng(9)
    rows = np.column_stack([rng.choice([-1.0, 1.0], 500), rng.normal(size=(500, 2))])
    labels = (rows[:, 0] > 0).astype(int)
    found = semi_supervised(rows[:20], labels[:20], rows[20:], ridge=1e-9)
    np.testing.assert_allclose(found.moment, from_labels(rows, labels).moment, atol=1e-7)
    assert found.noise_variance < 1e-14
    stiff = semi_supervised(ROWS[:4], LABELS[:4], ROWS[4:], ridge=1e9)
    np.testing.assert_allclose(stiff.moment, from_labels(ROWS[:4], LABELS[:4]).moment, atol=1e-7)
    exact = semi_supervised(ROWS, LABELS, ROWS[:0])
    np.testing.assert_allclose(exact.moment, MOMENT, rtol=1e-13)
    assert exact.noise_variance == 0.0
    bags, proportions = world(3)
    means = [bag.mean(axis=0) for bag in bags]
    middle = np.median([np.linalg.norm(means[i] - means[j]) for i in range(6) for j in range(i)])
    found = laplacian_mean_map(bags, proportions, bandwidth=float(middle))
    np.testing.assert_array_equal(found.moment, laplacian_mean_map(bags, proportions).moment)


def test_other_rows_help_to_estimate_and_the_variance_says_how_much():
    rng = np.random.default_rng(7)
    rows = np.column_stack([rng.normal(size=(2000, 3)) + np.array([1.0, -1.0, 0.0]), np.ones(2000)])
    labels = (rows[:, 0] - rows[:, 1] + 2 * rng.normal(size=2000) > 1).astype(int)
    truth = from_labels(rows, labels).moment
    errors, claims, alone = [], [], []
    for _ in range(400):
        some, rest = np.split(rng.permutation(2000), [100])
        found = semi_supervised(rows[some], labels[some], rows[rest])
        errors.append(found.moment - truth)
        claims.append(found.noise_variance)
        alone.append(np.sum((from_labels(rows[some], labels[some]).moment - truth) ** 2))
    squared = np.square(errors).sum(axis=1)
    assert squared.mean() < 0.8 * np.mean(alone)
    np.testing.assert_allclose(squared.mean(), np.mean(claims), rtol=0.1)
    assert np.sum(np.mean(errors, axis=0) ** 2) < 0.02 * squared.mean()  # nearly unbiased


@pytest.mark.parametrize(("call", "words"), [
    (lambda: from_labels(ROWS, LABELS[:3]), r"labels.*7"),
    (lambda: from_labels(ROWS, 2 * LABELS - 1), r"labels.*0.*1.*-1"), (lambda: from_labels(ROWS, [math.nan] * 7), None),
    (lambda: from_labels(ROWS, ["a"] * 7), None), (lambda: from_labels(ROWS[:0], []), None),
    (lambda: from_labels(ROWS * np.inf, LABELS), "rows"), (lambda: from_labels(ROWS[0], LABELS[:3]), None),
    (lambda: from_noisy_labels(ROWS, LABELS, 0.5, 0.5), r"1.*0\.5.*0\.5"),
    (lambda: from_noisy_labels(ROWS, LABELS, 0.9, 0.2), None),
    (lambda: from_noisy_labels(ROWS, LABELS, -0.1, 0.2), "flipped_positive"),
    (lambda: from_noisy_labels(ROWS, LABELS, 0.1, math.nan), "flipped_negative"),
    (lambda: from_randomised_response(ROWS, LABELS, 0.0), r"epsilon.*0\.0"),
    (lambda: from_randomised_response(ROWS, LABELS, math.nan), "epsilon"),
    (lambda: semi_supervised(ROWS[:1], LABELS[:1], ROWS), "1"),
    (lambda: semi_supervised(0 * ROWS, LABELS, ROWS), r"7.*0"),
    (lambda: semi_supervised(ROWS, LABELS, ROWS, ridge=0.0), "ridge"),
    (lambda: semi_supervised(ROWS, LABELS, ROWS[:, :2]), "3"),
    (lambda: mean_map([], SHARES), "bags"), (lambda: mean_map(BAGS[:2], SHARES), "2"),
    (lambda: mean_map(BAGS, np.eye(3)), "3"), (lambda: mean_map([*BAGS[:2], BAGS[2] * np.nan], SHARES), "2"),
    (lambda: laplacian_mean_map(BAGS, SHARES, 0.0), r"gamma.*0\.0"),
    (lambda: laplacian_mean_map(BAGS, SHARES, bandwidth=-1.0), "bandwidth"),
    (lambda: laplacian_mean_map(BAGS, SHARES, ridge=0.0), "ridge"),
    (lambda: laplacian_mean_map([BAGS[0]] * 3003, np.repeat(SHARES, 1001, axis=0)), r"3000.*3003"),
])  # fmt: skip
def test_what_cannot_be_used_is_named(call, words):
    with pytest.raises(InputError, match=words):
        call()


Bags = tuple[list[np.ndarray], np.ndarray]


def world(seed: int, bags: int = 6, columns: int = 3) -> Bags:
    """Bags of unequal sizes around different centres, and proportions that differ."""
    rng = np.random.default_rng(seed)
    rows = [rng.normal(size=(rng.integers(1, 9), columns)) + rng.normal(size=columns) for _ in range(bags)]
    positive = rng.permutation(np.linspace(0.05, 0.95, bags))
    return rows, np.column_stack([1 - positive, positive])


def homogeneous(seed: int) -> tuple[Bags, np.ndarray]:
    """Bags whose classes have the same means everywhere, exactly, and the mean operator of their rows."""
    rng = np.random.default_rng(seed)
    centres, bags, labels = rng.normal(size=(2, 3)) + 2.0, [], []
    for positive in (0.25, 0.5, 0.75, 0.5):
        codes = np.repeat([0, 1], [round(16 * (1 - positive)), round(16 * positive)])
        spread = rng.normal(size=(16, 3))
        for code in (0, 1):
            spread[codes == code] -= spread[codes == code].mean(axis=0)
        bags.append(centres[codes] + spread)
        labels.append(codes)
    shares = np.array([codes.mean() for codes in labels])
    truth = from_labels(np.concatenate(bags), np.concatenate(labels)).moment
    return (bags, np.column_stack([1 - shares, shares])), truth


def minimised(bags: list[np.ndarray], proportions: np.ndarray, gamma: float, bandwidth: float, ridge: float):
    """The published estimate from the least squares of all its terms, each a row of one tall system."""
    means = np.stack([bag.mean(axis=0) for bag in bags])
    shares = np.array([len(bag) for bag in bags]) / sum(map(len, bags))
    count = len(bags)
    rows, targets = [], []

    def term(weight: float, coefficients: dict[int, float], target: np.ndarray) -> None:
        row = np.zeros(2 * count)
        for place, value in coefficients.items():
            row[place] = value
        rows.append(np.sqrt(weight) * row)
        targets.append(np.sqrt(weight) * target)

    nothing = np.zeros(means.shape[1])
    for j in range(count):
        term(shares[j], {j: proportions[j, 1], count + j: proportions[j, 0]}, means[j])
        term(gamma * ridge * shares[j], {j: 1.0}, nothing)
        term(gamma * ridge * shares[j], {count + j: 1.0}, nothing)
        for i in range(j):
            alike = np.exp(-np.linalg.norm(means[i] - means[j]) / bandwidth)
            for side in (0, count):
                term(gamma * shares[i] * shares[j] * alike, {side + i: 1.0, side + j: -1.0}, nothing)
    found = np.linalg.lstsq(np.stack(rows), np.stack(targets), rcond=None)[0]
    return (shares * proportions[:, 1]) @ found[:count] - (shares * proportions[:, 0]) @ found[count:]


@settings(derandomize=True)
@given(st.integers(0, 10**6), st.floats(-3, 3), st.floats(-1, 1), st.floats(-6, 0))
def test_laplacian_mean_map_minimises_its_objective(seed, gamma, bandwidth, ridge):
    bags, proportions = world(seed)
    parameters = 10.0**gamma, 10.0**bandwidth, 10.0**ridge
    found = laplacian_mean_map(bags, proportions, *parameters)
    np.testing.assert_allclose(found.moment, minimised(bags, proportions, *parameters), rtol=1e-6, atol=1e-7)


@settings(derandomize=True)
@given(st.integers(0, 10**6))
def test_mean_map_is_weighted_least_squares(seed):
    bags, proportions = world(seed)
    sizes = np.array([len(bag) for bag in bags], dtype=float)
    means = np.stack([bag.mean(axis=0) for bag in bags])
    design = np.repeat(proportions, [len(bag) for bag in bags], axis=0)  # a row's bag mean, once for each row
    of_classes = np.linalg.lstsq(design, np.repeat(means, sizes.astype(int), axis=0), rcond=None)[0]
    overall = sizes @ proportions[:, 1] / sizes.sum()
    expected = overall * of_classes[1] - (1 - overall) * of_classes[0]
    np.testing.assert_allclose(mean_map(bags, proportions).moment, expected, atol=1e-10)


@pytest.mark.parametrize("seed", [2, 4])
def test_homogeneous_bags_give_the_mean_operator_itself(seed):
    (bags, proportions), truth = homogeneous(seed)
    for estimator in (mean_map, laplacian_mean_map):
        np.testing.assert_allclose(estimator(bags, proportions).moment, truth, atol=1e-7)
    for gamma in (1e-3, 1e3):
        found = laplacian_mean_map(bags, proportions, gamma, ridge=1e-12)
        np.testing.assert_allclose(found.moment, truth, atol=1e-6)


@pytest.mark.parametrize("estimator", [mean_map, laplacian_mean_map])
@settings(derandomize=True, max_examples=examples(15))
@given(st.integers(0, 10**6))
def test_order_and_cutting_of_bags_change_nothing(estimator, seed):
    bags, proportions = world(seed)
    expected = estimator(bags, proportions)
    order = np.random.default_rng(seed).permutation(len(bags))
    found = estimator([bags[i][::-1] for i in order], proportions[order])
    np.testing.assert_allclose(found.moment, expected.moment, atol=1e-7)
    np.testing.assert_allclose(found.noise_variance, expected.noise_variance, rtol=1e-6)


def test_the_variance_is_that_of_samples_of_the_classes():
    rng = np.random.default_rng(13)
    sizes, positive = np.array([40, 20, 30]), np.array([0.2, 0.5, 0.8])
    labels = [np.repeat([0, 1], [round(n * (1 - p)), round(n * p)]) for n, p in zip(sizes, positive, strict=True)]
    proportions = np.column_stack([1 - positive, positive])
    errors, claims = [], []
    for _ in range(300):
        bags = [rng.normal(size=(len(codes), 4)) + 0.1 * codes[:, None] for codes in labels]
        found = mean_map(bags, proportions)
        errors.append(np.sum((found.moment - from_labels(np.concatenate(bags), np.concatenate(labels)).moment) ** 2))
        claims.append(found.noise_variance)
    np.testing.assert_allclose(np.mean(errors), np.mean(claims), rtol=0.1)


@pytest.mark.parametrize("estimator", [mean_map, laplacian_mean_map])
def test_proportions_that_tell_nothing_are_refused(estimator):
    for positive, words in (
        ([0.5, 0.5, 0.5], r"1.*1"),
        ([0.5, 0.5, 0.5004], r"0\.5.*0\.5004"),
        ([0.5, 0.5, 1.2], r"0.*1"),
    ):
        with pytest.raises(InputError, match=words):
            estimator([np.eye(2)] * 3, np.column_stack([1 - np.array(positive), positive]))
