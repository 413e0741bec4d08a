"""Weighted sums of noisy labels: what they compute, which noise they add, what they promise and refuse.

Laplace noise on signed label sums: its law, its delta in closed form, and what is refused.

What mechanisms for label sums have in common: the promise, its premises, and its public numbers.

The published theorem's value: the sizes it needs, what it is made of, and that it never undercuts the truth.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ndtr
from support.examples import examples
from support.refusals import refused
from support.weighted_bags import RANGE, K, M

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Unit
from federation.contract.randomness import NoiseBits
from federation.mechanisms.accounting.composition import compose
from federation.mechanisms.bag_sums import noisy_labels, weighted_sums
from federation.mechanisms.bag_sums.calibration import composed_delta, delta, smallest_sigma
from federation.mechanisms.bag_sums.design import BagDesign
from federation.mechanisms.bag_sums.noisy_labels import public_numbers, theorem_delta
from federation.mechanisms.noise import gaussian

PLAIN = BagDesign(2 * M * K, M, K, noisy=M * K)
SIGNS = BagDesign(2 * M * K, M, K, per_bag=2, weights="signs")
UNIT = (0.0, 1.0)


def noisy_sums(design: BagDesign = PLAIN, sigma: float = 2.0, epsilon: float = 1.0):
    return noisy_labels.noisy_bag_sums(design, sigma=sigma, label_range=RANGE, epsilon=epsilon)


def laplace_sums(records: int = 640, bags: int = 5, size: int = 64, epsilon: float = 1.0, label_range=RANGE):
    return noisy_labels.laplace_bag_sums(records, bags, size, label_range=label_range, epsilon=epsilon)


def test_noisy_labels_add_the_noise_of_their_weighted_sum(drawn) -> None:
    labels, weights, noisy = drawn
    released, again, other = (noisy_sums().release(*drawn, NoiseBits(seed, "test")) for seed in (1, 1, 2))
    np.testing.assert_array_equal(released, again)
    assert not np.allclose(released, other)
    error = released - (weights * labels).sum(axis=1)
    scale = 2.0 * np.sqrt((weights**2 * noisy).sum(axis=1))
    assert np.all(np.abs(error[scale == 0]) < 1e-5)
    assert (scale == 0).sum() > 10
    assert stats.kstest(error[scale > 0] / scale[scale > 0], "norm").pvalue > 1e-3
    exactly = noisy_sums(replace(PLAIN, noisy=int(noisy.sum())))  # as many labels are noisy as the design says
    assert exactly.release(*drawn, NoiseBits(1, "test")).shape == (M,)


@pytest.mark.parametrize("epsilon", [0.0, 1e-13, 0.3, 1.0, 4.0])
def test_the_claim_charges_a_little_for_its_grid(epsilon: float) -> None:
    mechanism = noisy_sums(BagDesign(640, 10, 64, noisy=640), 4.0)
    exact = delta(epsilon, mechanism.design, sigma=4.0, label_range=RANGE)
    assert exact < mechanism.delta_at(epsilon) < exact * (1 + 1e-4)


def test_calibrated_mechanisms_reach_their_claim_with_hardly_more_noise_than_ideal() -> None:
    for design in (PLAIN, SIGNS, BagDesign(6400, 100, 64, per_bag=8)):
        target = 1e-5 + 2 * design.noise_free
        mechanism = noisy_labels.calibrate(design, label_range=RANGE, epsilon=1.0, delta=target)
        assert target * (1 - 1e-6) < mechanism.delta_at(1.0) <= target == mechanism.delta
        ideal = smallest_sigma(1.0, target, design, label_range=RANGE)
        assert ideal < mechanism.sigma < ideal * (1 + 1e-5)


def test_releases_compose() -> None:
    mechanism = noisy_labels.calibrate(SIGNS, label_range=RANGE, epsilon=1.0, delta=1e-6)
    together = composed_delta(2.0, SIGNS, sigma=mechanism.sigma, label_range=RANGE, releases=4)
    assert mechanism.composed_delta(2.0, 4) == pytest.approx(together, rel=1e-3)
    epsilon, _ = compose([mechanism.guarantee()] * 4, 1e-5)
    # The ledger counts every label as if it were in a bag each time.
    surely = replace(SIGNS, records=SIGNS.bags * SIGNS.size)
    sure = composed_delta(epsilon, surely, sigma=mechanism.sigma, label_range=RANGE, releases=4)
    assert sure == pytest.approx(1e-5, rel=1e-3)


def test_a_mechanism_that_promises_nothing_cannot_be_guaranteed() -> None:
    nothing = noisy_sums(BagDesign(100, 50, 2, noisy=1), 1e-3, 1e-3)
    assert nothing.delta > 0.98
    with pytest.raises(InputError, match="delta"):
        replace(nothing, delta=1.0).guarantee()


@pytest.mark.parametrize(
    ("design", "changes", "told"),
    [
        *((PLAIN, {"label": value}, r"labels.*-1.*3") for value in (3.001, -1.001, math.nan, math.inf)),
        (PLAIN, {"noisy": np.zeros((M, K))}, None),
        (PLAIN, {"bags": 5}, r"4000.*6"),
        (replace(PLAIN, noisy=10), {}, "10"),
        (SIGNS, {"weights": np.ones((M, K))}, "2"),
        (SIGNS, {"noisy": np.tile(np.arange(K) < 2, (M, 1))}, r"weights.*-1.*1"),
    ],
)
def test_other_labels_weights_and_masks_are_refused(drawn, design: BagDesign, changes: dict, told: str | None) -> None:
    labels, weights, noisy = (part.copy() for part in drawn)
    labels[5, 2] = changes.get("label", labels[5, 2])
    given_ = [labels, changes.get("weights", weights), changes.get("noisy", noisy)]
    with pytest.raises(InputError, match=told):
        noisy_sums(design).release(*(part[: changes.get("bags")] for part in given_), NoiseBits(1, "x"))


def test_laplace_noise_is_pure(drawn) -> None:
    labels, weights, _ = drawn
    mechanism = laplace_sums(2 * M * K, M, K, 0.5)
    error = mechanism.release(labels, np.sign(weights), NoiseBits(1, "test")) - (np.sign(weights) * labels).sum(axis=1)
    assert mechanism.scale == pytest.approx(8.0)
    assert stats.kstest(error / 8, "laplace").pvalue > 1e-3
    assert (mechanism.delta_at(0.5), mechanism.guarantee().delta) == (0, 0)
    # P[loss > e] for the Laplace law: delta = 1 - exp((e - epsilon)/2), for the half of the records in bags.
    assert laplace_sums(epsilon=0.7).delta_at(0.2) == pytest.approx(0.5 * -math.expm1(-0.25), rel=1e-5)


@pytest.mark.parametrize(
    ("refused", "told"),
    [
        (lambda: laplace_sums(epsilon=0.0), "epsilon"),
        (lambda: laplace_sums(epsilon=1e-9), r"scale.*1.*2.*40"),
        (lambda: laplace_sums(label_range=(1.0, 0.0)), "label_range"),
        (lambda: laplace_sums(320, size=65), r"5.*65.*325"),
        (
            lambda: laplace_sums().release(np.zeros((5, 64)), np.full((5, 64), 0.5), NoiseBits(1, "x")),
            r"weights.*-1.*1",
        ),
        (lambda: laplace_sums().release(np.zeros((4, 64)), np.ones((4, 64)), NoiseBits(1, "x")), None),
        *((lambda wrong=wrong: noisy_sums(epsilon=wrong), "epsilon") for wrong in (-0.1, math.nan, math.inf)),
    ],
)
def test_impossible_mechanisms_and_releases_are_refused(refused, told: str | None) -> None:
    with pytest.raises(InputError, match=told):
        refused()


@pytest.mark.parametrize(
    "mechanism",
    [
        noisy_sums(sigma=9.0),
        noisy_labels.calibrate(SIGNS, label_range=RANGE, epsilon=1.0, delta=1e-6),
        laplace_sums(),
        weighted_sums.calibrate(640, 5, 64, label_range=RANGE, epsilon=1.0, delta=1e-6),
    ],
    ids=lambda mechanism: mechanism.name,
)
def test_guarantees_say_what_is_promised(mechanism) -> None:
    promised = mechanism.guarantee()
    assert (promised.epsilon, promised.delta) == (1.0, mechanism.delta)
    assert (promised.unit, promised.adjacency) == (Unit.LABEL, Adjacency.REPLACE)
    assert (promised.parameters["lowest_label"], promised.parameters["highest_label"]) == RANGE
    texts = " ".join(assumption.text for assumption in promised.assumptions)
    for premise in ("range is public", "key of the noise", "in at most one bag", "only labels are protected"):
        assert premise in texts
    assert ("real normal one" in texts) == (promised.parameters["weights"] == "gaussian")
    for unit, adjacency in ((Unit.ROW, Adjacency.REPLACE), (Unit.LABEL, Adjacency.ADD_REMOVE)):
        refused("adjacency", mechanism.guarantee, unit, adjacency)


def test_a_record_is_in_a_bag_with_the_share_that_bags_hold() -> None:
    repaired = weighted_sums.repaired_bag_sums(640, 5, 64, tau=5.0, label_range=RANGE, epsilon=1.0)
    assert (repaired.inclusion, laplace_sums(bags=10).inclusion) == (0.5, 1.0)
    numbers = public_numbers(BagDesign(100, 5, 20, noisy=10), RANGE, sigma=2.0)
    assert list(numbers) == ["records", "bags", "size", "weights", "sigma", "lowest_label", "highest_label"]
    assert list(numbers.values()) == [100, 5, 20, "gaussian", 2.0, *RANGE]


@pytest.mark.parametrize("shape", [(64, 5), (5, 63), (320,), (5, 64, 1)])
def test_labels_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    mechanism = weighted_sums.repaired_bag_sums(640, 5, 64, tau=5.0, label_range=RANGE, epsilon=1.0)
    with pytest.raises(InputError, match=r"labels.*5.*64"):
        mechanism.release(np.zeros(shape), np.ones(shape), NoiseBits(1, "x"))


def theorem(design: BagDesign, epsilon: float = 1.0, sigma: float = 1.0) -> float:
    return theorem_delta(epsilon, design, sigma=sigma, label_range=UNIT)


@pytest.mark.parametrize(("share", "size"), [(0.05, 2**17), (0.1, 2**16), (0.2, 2**15), (0.3, 2**14), (1.0, 2**13)])
def test_the_power_of_two_that_it_needs_for_a_millionth(share: float, size: int) -> None:
    """With 1000 bags; exact accounting needs bags of 2128, 1063, 531, 353 and 93."""
    enough, half = (BagDesign(1000 * k, 1000, k, noisy=round(share * 1000 * k)) for k in (size, size // 2))
    assert theorem(enough) < 1e-6 < theorem(half)


def test_the_best_bound_on_weights_is_found() -> None:
    largest = np.linspace(0.5, 30, 200_000)
    noise = math.sqrt(0.5 * 2**17 / 4)
    terms = 2 * 10 * 2**17 * ndtr(-largest) + gaussian.delta(1.0, largest / noise)
    assert theorem(BagDesign(2**17 * 10, 10, 2**17, noisy=2**16 * 10)) == pytest.approx(terms.min(), rel=1e-6)


@given(st.integers(1, 12), st.floats(0.01, 1), st.floats(0.01, 3), st.floats(0.2, 5))
@settings(derandomize=True, max_examples=examples(10))
def test_it_never_undercuts_the_exact_delta(doublings: int, share: float, epsilon: float, sigma: float) -> None:
    size = 2**doublings
    design = BagDesign(10 * size, 10, size, noisy=max(1, round(share * 10 * size)))
    exact = delta(epsilon, design, sigma=sigma, label_range=UNIT)
    assert exact <= theorem(design, epsilon, sigma) * (1 + 1e-9) <= 1 + 1e-9


def test_under_endless_noise_what_is_left_are_bags_with_too_little_of_it() -> None:
    """A hundredth of the labels noisy, 20,000 in the bag: fewer than 100 with e^-1, small weights with e^-6.25."""
    found = theorem(BagDesign(200_000, 1, 20_000, noisy=2000), sigma=1e8)
    assert found == pytest.approx(math.exp(-1) + math.exp(-6.25), rel=1e-6)


@pytest.mark.parametrize(
    ("other", "epsilon", "told"),
    [
        ({"per_bag": 5}, 1.0, None),
        ({"noisy": 50, "weights": "signs"}, 1.0, None),
        *(({"noisy": 50}, epsilon, "epsilon") for epsilon in (-0.1, math.nan, math.inf)),
    ],
)
def test_designs_it_does_not_cover_are_refused(other: dict, epsilon: float, told: str | None) -> None:
    with pytest.raises(InputError, match=told):
        theorem(BagDesign(100, 5, 20, **other), epsilon)


@pytest.mark.parametrize("weights", ["signs", "gaussian"])
@pytest.mark.parametrize("epsilon", [1e-9, 1.0, 30.0])
def test_the_smallest_noise_is_never_cheap(weights: str, epsilon: float) -> None:
    design, sigmas = BagDesign(8, 2, 4, per_bag=2, weights=weights), 10.0 ** np.arange(-9, 4)
    mechanisms = [noisy_labels.noisy_bag_sums(design, sigma=s, label_range=UNIT, epsilon=epsilon) for s in sigmas]
    deltas = [mechanism.delta for mechanism in mechanisms]
    assert deltas[0] > 0.999
    assert (np.diff(deltas) <= 1e-12).all()
