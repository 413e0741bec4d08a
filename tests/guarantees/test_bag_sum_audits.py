"""Audits of weighted label sums on their worst pairs: delta is nearly reached and never exceeded, and twins are caught.

Several releases side by side are drawn by a mechanism whose design has so many times the records and bags: its noise
and sums do not depend on how many there are.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from federation.contract.randomness import NoiseBits
from federation.mechanisms.audits import delta_lower_bound
from federation.mechanisms.bag_sums import exact_sums as label_sums
from federation.mechanisms.bag_sums import noisy_labels
from federation.mechanisms.bag_sums import weighted_sums as repaired
from federation.mechanisms.bag_sums.design import BagDesign
from federation.mechanisms.bag_sums.weighted_sums import leverages_and_residuals, pair_delta

CONFIDENCE = 0.999
RUNS = 30_000
RANGE = (-1.0, 2.0)

Noise = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]  # (labels, weights, noisy), (m, k) each -> sums (m,)


def bags_of(design: BagDesign, runs: int, side: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fresh bags of record numbers, weights and noisy places of many releases, (runs m, k) each."""
    rng = np.random.default_rng([side, design.records])
    order = rng.permuted(np.tile(np.arange(design.records), (runs, 1)), axis=1)
    records = order[:, : design.bags * design.size].reshape(-1, design.size)
    weights = rng.normal(size=records.shape)
    if design.weights == "signs":
        weights = np.where(weights < 0, -1.0, 1.0)
    if design.per_bag is None:
        return records, weights, records >= design.records - design.noisy  # the last records are noisy
    return records, weights, np.tile(np.arange(design.size) < design.per_bag, (len(records), 1))


def loss(design: BagDesign, sigma: float, target: int, side: int, noise: Noise, runs: int) -> np.ndarray:
    """The log likelihood ratio of `runs` releases, given bags and weights, if record `target` has the label of a side.

    All other labels are known to the attacker; only the bag with the target tells something.
    """
    records, weights, noisy = bags_of(design, runs, side)
    labels = np.where(records % 2 == 0, RANGE[0], RANGE[1])
    labels[records == target] = RANGE[side]
    sums = noise(labels, weights, noisy)
    bag, place = np.nonzero(records == target)
    own = weights[bag, place]
    scale = sigma * np.sqrt((weights[bag] ** 2 * noisy[bag]).sum(axis=1))
    labels[bag, place] = 0.0
    rest = sums[bag] - (weights[bag] * labels[bag]).sum(axis=1)
    # (distance from the upper label's sum)² - (from the lower's)², over twice the variance; certain without noise.
    gap = (rest - own * RANGE[1]) ** 2 - (rest - own * RANGE[0]) ** 2
    result = np.zeros(runs)
    with np.errstate(divide="ignore"):
        result[bag // design.bags] = np.where(scale > 0, gap / (2 * scale**2), np.sign(gap) * 1e9)
    return result


def bound(design: BagDesign, sigma: float, target: int, epsilon: float, noise: Noise, runs: int = RUNS) -> float:
    samples = [loss(design, sigma, target, side, noise, runs) for side in (0, 1)]
    return delta_lower_bound(*samples, epsilon=epsilon, confidence=CONFIDENCE)[0]


def side_by_side(mechanism: noisy_labels.NoisyBagSums, runs: int) -> Noise:
    design = mechanism.design
    scaled = replace(
        design,
        records=runs * design.records,
        bags=runs * design.bags,
        noisy=None if design.noisy is None else runs * design.noisy,
    )
    many = replace(mechanism, design=scaled)
    keys = iter([NoiseBits(5, "audit", copy) for copy in (0, 1)])
    return lambda labels, weights, noisy: many.release(labels, weights, noisy, next(keys))


CASES = {
    "as published": (BagDesign(24, 3, 8, noisy=6), 1.5, 1.0, 0),
    "a record with noise of its own": (BagDesign(24, 3, 8, noisy=24), 1.5, 1.0, 23),
    "not always in a bag": (BagDesign(20, 2, 5, noisy=10), 3.0, 0.5, 0),
    "the worse record is a noisy one": (BagDesign(40, 20, 2, noisy=2), 0.3, 0.01, 39),
    "signs": (BagDesign(24, 3, 8, noisy=12, weights="signs"), 2.0, 1.0, 0),
    "stratified signs": (BagDesign(24, 3, 8, per_bag=4, weights="signs"), 1.5, 1.0, 0),
    "stratified": (BagDesign(24, 3, 8, per_bag=4), 3.0, 1.0, 0),
}


SOME = ("as published", "a record with noise of its own", "stratified signs")  # of the others the slow tests


@pytest.mark.parametrize("case", [pytest.param(case, marks=() if case in SOME else pytest.mark.slow) for case in CASES])
def test_noisy_labels_stand_and_nearly_reach_their_delta(case: str) -> None:
    design, sigma, epsilon, target = CASES[case]
    mechanism = noisy_labels.noisy_bag_sums(design, sigma=sigma, label_range=RANGE, epsilon=epsilon)
    assert mechanism.delta >= 1e-3
    runs = 2 * RUNS if case == "stratified" else RUNS  # so many show half of it
    found = bound(design, sigma, target, epsilon, side_by_side(mechanism, runs), runs)
    assert mechanism.delta / 2 < found <= mechanism.delta


@pytest.mark.slow
def test_a_delta_of_thousandths_is_nearly_reached() -> None:
    """Much noise, but one bag in 130 without any: what is left cannot be less."""
    design, sigma, runs = BagDesign(20, 1, 10, noisy=6, weights="signs"), 12.0, 120_000
    mechanism = noisy_labels.noisy_bag_sums(design, sigma=sigma, label_range=RANGE, epsilon=1.0)
    assert 1e-3 < design.noise_free < mechanism.delta < 5e-3
    found = bound(design, sigma, 0, 1.0, side_by_side(mechanism, runs), runs)
    assert mechanism.delta / 2 < found <= mechanism.delta


def drawn_with(scales: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Noise:
    """Sums under noise of other standard deviations, given (weights, noisy)."""
    keys = iter([NoiseBits(6, "twin", copy) for copy in (0, 1)])
    return lambda labels, weights, noisy: label_sums.gaussian_sums(
        labels, weights, RANGE, scales(weights, noisy), next(keys)
    )


TWINS = {
    "half the noise": lambda weights, noisy: 0.5 * np.sqrt((weights**2 * noisy).sum(axis=1)),
    "noise of one label for the whole bag": lambda weights, noisy: np.ones(len(weights)),
    "noise on the mean of the labels": lambda weights, noisy: np.sqrt((weights**2 * noisy).mean(axis=1)),
    "only the first noisy label": lambda weights, noisy: np.abs(weights[np.arange(len(weights)), noisy.argmax(axis=1)]),
}


@pytest.mark.parametrize(
    "mistake",
    [pytest.param(mistake, marks=() if mistake == "half the noise" else pytest.mark.slow) for mistake in TWINS],
)
def test_twins_with_too_little_noise_are_caught(mistake: str) -> None:
    design, sigma = BagDesign(24, 3, 8, noisy=18), 3.0
    claimed = noisy_labels.noisy_bag_sums(design, sigma=sigma, label_range=RANGE, epsilon=1.0).delta
    twin = drawn_with(lambda weights, noisy: sigma * TWINS[mistake](weights, noisy))
    assert bound(design, sigma, 0, 1.0, twin) > claimed


@pytest.mark.slow
def test_a_claim_that_forgets_bags_without_noise_is_caught() -> None:
    """The delta of an average bag, as if every bag had its share of noisy labels."""
    design = CASES["as published"][0]
    mechanism = noisy_labels.noisy_bag_sums(design, sigma=1.5, label_range=RANGE, epsilon=1.0)
    average = noisy_labels.noisy_bag_sums(
        BagDesign(24, 3, 8, per_bag=2), sigma=1.5, label_range=RANGE, epsilon=1.0
    ).delta
    assert bound(design, 1.5, 0, 1.0, side_by_side(mechanism, RUNS)) > average


@pytest.mark.slow
def test_equal_labels_show_nothing() -> None:
    design, sigma, epsilon, _ = CASES["as published"]
    mechanism = noisy_labels.noisy_bag_sums(design, sigma=sigma, label_range=RANGE, epsilon=epsilon)
    noise = side_by_side(mechanism, RUNS)
    samples = [loss(design, sigma, 0, 0, noise, RUNS) for _ in (0, 1)]
    assert delta_lower_bound(*samples, epsilon=epsilon, confidence=CONFIDENCE)[0] == 0


def laplace_bound(epsilon: float, noise_for: float) -> tuple[float, float]:
    """The claimed delta at `epsilon` of a mechanism for 2 epsilon, and the bound of one made for `noise_for`."""
    bags, size = RUNS, 4
    mechanism = noisy_labels.laplace_bag_sums(bags * size, bags, size, label_range=RANGE, epsilon=noise_for)
    samples = []
    for side in (0, 1):
        rng = np.random.default_rng(side)
        weights = np.where(rng.random((bags, size)) < 0.5, -1.0, 1.0)
        labels = np.tile([RANGE[side], 0.5, 0.1, 2.0], (bags, 1))
        rest = mechanism.release(labels, weights, NoiseBits(8, "laplace", side)) - weights[:, 1:] @ [0.5, 0.1, 2.0]
        samples.append(weights[:, 0] * rest)
    claimed = noisy_labels.laplace_bag_sums(bags * size, bags, size, label_range=RANGE, epsilon=2 * epsilon)
    return claimed.delta_at(epsilon), delta_lower_bound(*samples, epsilon=epsilon, confidence=CONFIDENCE)[0]


def test_laplace_sums_stand_at_half_their_epsilon_and_half_the_noise_does_not() -> None:
    claimed, found = laplace_bound(0.5, 1.0)
    assert claimed / 2 < found <= claimed
    claimed, found = laplace_bound(0.5, 2.0)
    assert found > claimed


def repaired_samples(mechanism: repaired.RepairedBagSums, tau: float, copies: int) -> list[np.ndarray]:
    """Losses on the worst pair: a bag whose sums of rows are the weights themselves, every label known but one."""
    many = replace(mechanism, records=copies * mechanism.records, bags=copies * mechanism.bags)
    samples = []
    for side in (0, 1):
        weights = np.random.default_rng(side).normal(size=(many.bags, many.size))
        labels = np.full(weights.shape, 0.5)
        labels[:, 0] = RANGE[side]
        rest = many.release(labels, weights, NoiseBits(7, "lba", side)) - 0.5 * weights[:, 1:].sum(axis=1)
        gap = (rest - weights[:, 0] * RANGE[1]) ** 2 - (rest - weights[:, 0] * RANGE[0]) ** 2
        samples.append(gap / (2 * tau**2))
    return samples


@pytest.mark.slow
@pytest.mark.parametrize(("tau", "epsilon"), [(3.0, 1.0), (6.0, 0.3), (3.0, 3.0)])
def test_repaired_sums_stand_and_nearly_reach_their_delta(tau: float, epsilon: float) -> None:
    mechanism = repaired.repaired_bag_sums(3, 1, 3, tau=tau, label_range=RANGE, epsilon=epsilon)
    assert mechanism.delta >= 1e-3
    samples = repaired_samples(mechanism, mechanism.tau, 3 * RUNS)
    found = delta_lower_bound(*samples, epsilon=epsilon, confidence=CONFIDENCE)[0]
    assert mechanism.delta / 2 < found <= mechanism.delta


def test_half_of_the_repair_is_caught() -> None:
    claimed = repaired.repaired_bag_sums(3, 1, 3, tau=3.0, label_range=RANGE, epsilon=1.0)
    samples = repaired_samples(replace(claimed, tau=1.5), 1.5, RUNS)
    assert delta_lower_bound(*samples, epsilon=1.0, confidence=CONFIDENCE)[0] > claimed.delta


ROWS = np.array([[0.3, 1.0], [1.0, 1.0], [-0.4, 1.0], [2.0, 1.0], [0.1, 1.0], [-1.2, 1.0]])
LABELS = np.array([0.2, 0.9, -0.3, 1.1, 0.8, -0.6])


def sums_of(labels: np.ndarray, runs: int, side: int) -> np.ndarray:
    """Sums of rows and labels with secret Gaussian weights, (runs, 3), and the weights of all records, (runs, 6)."""
    weights = np.random.default_rng([side, 2]).normal(size=(runs, len(labels)))
    return np.column_stack([weights @ ROWS, weights @ labels, weights])


def test_sums_without_noise_reach_their_per_instance_delta() -> None:
    """What an attacker gains who knows the bag, the rows, and all labels but one."""
    changed = LABELS.copy()
    changed[3] = RANGE[0]
    leverage, residual = leverages_and_residuals(ROWS, LABELS)
    exact = float(
        pair_delta(1.0, changed[3:4] - LABELS[3], leverage[3:4], residual[3:4], float(residual @ residual))[0]
    )
    laws = []
    for labels in (LABELS, changed):
        spread = np.column_stack([ROWS, labels])
        covariance = spread.T @ spread
        laws.append((np.linalg.inv(covariance), np.linalg.slogdet(covariance)[1]))
    samples = []
    for side, labels in enumerate((LABELS, changed)):
        seen = sums_of(labels, 4 * RUNS, side)[:, :3]
        terms = [np.einsum("ni,ij,nj->n", seen, inverse, seen) + log for inverse, log in laws]
        samples.append((terms[1] - terms[0]) / 2)
    found = delta_lower_bound(*samples, epsilon=1.0, confidence=CONFIDENCE)[0]
    assert exact >= 1e-3
    assert exact / 2 < found <= exact


def test_published_weights_reveal_the_label() -> None:
    """The broken twin of secret weights: each sum of labels is then an equation."""
    changed = LABELS.copy()
    changed[3] = RANGE[0]
    samples = []
    for side, labels in enumerate((LABELS, changed)):
        seen = sums_of(labels, RUNS, side)
        samples.append(np.abs(seen[:, 2] - seen[:, 3:] @ LABELS) - np.abs(seen[:, 2] - seen[:, 3:] @ changed))
    assert delta_lower_bound(*samples, epsilon=5.0, confidence=CONFIDENCE)[0] > 0.9
