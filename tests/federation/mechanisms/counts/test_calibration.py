"""The published mechanism: its sigma, its distortion, and how far its true delta is from the claimed one.

The loose calibrations and the Laplace prior of the literature.

Mechanisms by name and public numbers.
"""

import json
import math
import re
from fractions import Fraction
from functools import partial
from itertools import permutations
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Unit
from federation.contract.randomness import NoiseBits
from federation.mechanisms.counts import calibration as module
from federation.mechanisms.counts.additive import AdditiveCounts
from federation.mechanisms.counts.calibration import (
    LaplacePrior,
    calibrate,
    published_gaussian,
    published_guarantee,
    published_laplace,
    published_release,
    sigma_for_counts,
    true_delta,
)
from federation.mechanisms.counts.dirichlet import divergence
from federation.mechanisms.counts.dirichlet_loss import delta_eq9, delta_exact
from federation.mechanisms.counts.exact_laws import (
    calibrate_discrete_gaussian,
    calibrate_lattice_laplace,
    discrete_gaussian_delta,
)

SKEWED = np.array([50, 50, 50, 50, 800])


def two(count: int) -> np.ndarray:
    return np.array([count, 1000 - count])


def worst(eta: np.ndarray, epsilon: float, sigma: float) -> float:
    """Eq. 9 over all ordered pairs of classes."""
    a, b = np.array([*permutations(eta.tolist(), 2)]).T
    return float(delta_eq9(epsilon, a, b, sigma).max())


@given(st.lists(st.integers(2, 400), min_size=2, max_size=5), st.sampled_from([(0.05, 0.05), (1.0, 1e-4), (0.3, 0.2)]))
@settings(max_examples=examples(8))
def test_sigma_serves_all_ordered_pairs_and_no_larger_one_does(counts: list[int], claim: tuple[float, float]) -> None:
    eta, (epsilon, delta) = np.array(counts), claim
    sigma = sigma_for_counts(eta, epsilon, delta)
    if sigma is None:
        assert all(worst(eta, epsilon, tried) > delta for tried in np.geomspace(1e-7, 50, 60))
    else:
        assert worst(eta, epsilon, sigma) <= delta
        assert all(worst(eta, epsilon, sigma * more) > delta for more in (1 + 1e-6, 1.2, 2, 10, 100, 1000))


def test_distortion_at_the_published_defaults_and_of_the_fall_back() -> None:
    """Mean L1 of the proportions of (50, 50, 50, 50, 800), 20,000 draws; the paper claims .06."""
    shares = published_release(SKEWED, 0.05, 0.05, NoiseBits(1, "distortion"), 20_000) / 1000
    distances = np.abs(shares - SKEWED / 1000).sum(axis=1)
    assert distances.mean() == pytest.approx(0.308, abs=5e-4 + 3 * distances.std() / math.sqrt(20_000))
    # The fall-back is a draw around noisy counts.
    released, served = (published_release(two(k), 0.05, 0.05, NoiseBits(2, "fall back"), 4000) for k in (40, 41))
    np.testing.assert_allclose(released.sum(axis=1), 1000, atol=1e-9)
    assert np.median(released[:, 0]) > 2 * np.median(served[:, 0])


@pytest.mark.parametrize(
    ("counts", "epsilon", "delta", "exists"),
    [
        ([47, 47, 300, 300, 306], 0.05, 0.05, True),
        ([46, 46, 300, 300, 308], 0.05, 0.05, False),
        ([41, 959], 0.05, 0.05, True),
        ([40, 960], 0.05, 0.05, False),
        ([2, 5000], 5.0, 0.5, True),
        ([1, 5000], 5.0, 0.5, False),
        ([0, 500, 500], 5.0, 0.5, False),
        # At sigma 1e-4 and counts of 25 Eq. 9 gives 0.149; in plain double precision 1/(1+T) and so delta would be 0.
        ([25, 25], 0.05, 0.05, False),
        ([25, 25], 0.05, 0.14, False),
        ([25, 25], 0.05, 0.16, True),
    ],
)
def test_whether_a_sigma_exists_depends_on_the_counts(counts, epsilon: float, delta: float, exists: bool) -> None:
    assert (sigma_for_counts(np.array(counts), epsilon, delta) is not None) == exists


@pytest.mark.parametrize(
    ("here", "epsilon", "delta", "expected"),
    [
        (41, 0.05, 0.05, 0.135),
        (13, 1.0, 1e-6, 0.239),
        (14, 1.0, 1e-6, 2.14e-2),
        (19, 1.0, 1e-6, 410e-6),
        (29, 1.0, 1e-6, 29e-6),
        (49, 1.0, 1e-6, 3.3e-6),
        (99, 1.0, 1e-6, 0.44e-6),
    ],
)
def test_the_true_delta_of_two_classes_needs_no_draws(here: int, epsilon: float, delta: float, expected: float) -> None:
    measured = true_delta(two(here), two(here + 1), epsilon, delta, runs=1)
    assert measured.standard_error == 0
    assert measured.value == pytest.approx(expected, rel=0.01)


@pytest.mark.slow
def test_the_true_delta_of_five_classes() -> None:
    measured = true_delta(np.array([49, 50, 50, 50, 801]), SKEWED, 0.05, 0.05)
    assert abs(measured.value - 0.0769) < 4 * math.hypot(measured.standard_error, 2e-4)
    assert measured.standard_error < 3e-4


@pytest.mark.parametrize(
    ("here", "there", "delta"), [(41, 40, 1), (40, 41, 1), (30, 29, 0)]
)  # the last has the pure fall-back on both sides
def test_the_true_delta_where_the_algorithm_fails(here: int, there: int, delta: int) -> None:
    assert true_delta(two(here), two(there), 0.05, 0.05).value == delta


@pytest.mark.parametrize(("count", "times"), [(50, 16.5), (100, 4.4), (400, 1.2)])
def test_even_an_exact_sigma_must_not_come_from_the_counts(count: int, times: float) -> None:
    """With the largest sigma whose exact delta is the claimed one, at (1, 1e-6)."""

    def law(least: int) -> np.ndarray:
        low, high = 1e-6, 50.0
        for _ in range(60):
            middle = math.sqrt(low * high)
            private = max(delta_exact(1.0, two(least), two(least)[::-1], middle)) <= 1e-6
            low, high = (middle, high) if private else (low, middle)
        return low * two(least)

    here, there = law(count - 1), law(count)
    assert divergence(1.0, here, there).value / 1e-6 == pytest.approx(times, rel=0.02)


def test_the_label_of_a_release_tells_the_true_delta_and_nothing_private() -> None:
    label = published_guarantee(0.05, 0.05)
    assert label.claimed == (0.05, 0.05)
    assert re.search(r"42.*41.*delta.*0\.135.*epsilon.*0\.05.*0\.05", label.reason)
    assert "41 and 40 are told apart for certain" in label.reason
    assert re.search(r"delta.*0\.239.*epsilon.*1.*1e-06", published_guarantee(1.0, 1e-6).reason)
    assert "no bag of 1000 records" in published_guarantee(0.01, 1e-6).reason


@pytest.mark.parametrize(
    ("refused", "told"),
    [
        *(
            (lambda function=function, claim=claim: function(*claim), None)
            for function in (partial(sigma_for_counts, SKEWED), published_guarantee)
            for claim in ((0.0, 0.1), (math.nan, 0.1), (1.0, 0.0), (1.0, 1.0))
        ),
        (lambda: sigma_for_counts(np.array([0.5, 3.0]), 1.0, 0.1), None),
        *(
            (lambda other=other: true_delta(SKEWED, np.array(other), 0.05, 0.05), "neighbour")
            for other in (SKEWED, [49, 49, 51, 51, 800], [48, 52, 50, 50, 800], [49, 50, 50, 50, 800])
        ),
        *(
            (lambda draws=draws: published_release(SKEWED, 0.05, 0.05, NoiseBits(1, "refused"), draws), "draws")
            for draws in (-1, 1.5)
        ),
        *((lambda runs=runs: true_delta(two(49), two(50), 0.05, 0.05, runs=runs), "runs") for runs in (0, 1.5)),
        *((lambda epsilon=epsilon: published_gaussian(3, epsilon, 1e-5), "epsilon") for epsilon in (100.0, 1e4)),
    ],
)
def test_other_arguments_are_refused(refused, told: str | None) -> None:
    with pytest.raises(InputError, match=told):
        refused()


def test_pairs_beyond_the_few_that_are_looked_at_first_count_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sigmas are those of all pairs at once, also where the first are not the worst."""
    rng = np.random.default_rng(4)
    for counts in (rng.integers(2, 40, 12), rng.integers(20, 300, 12)):
        expected = sigma_for_counts(counts, 0.5, 1e-3)
        for few in (1, 7):
            monkeypatch.setattr(module, "_FEW", few)
            monkeypatch.setattr(module, "_AT_ONCE", 30)
            module._sigma.cache_clear()
            assert sigma_for_counts(counts, 0.5, 1e-3) == expected
        if expected is not None:
            a, b = np.array([*permutations(counts, 2)]).T
            assert delta_eq9(0.5, a, b, expected).max() <= 1e-3 < delta_eq9(0.5, a, b, expected * (1 + 1e-8)).max()


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 0.3])
def test_laplace_noise_has_scale_two_over_epsilon(epsilon: float) -> None:
    mechanism = published_laplace(4, epsilon)
    assert float(mechanism.scale) == pytest.approx(2 / epsilon, rel=1e-5)
    assert mechanism.scale * Fraction(epsilon) >= 2
    assert (mechanism.delta, mechanism.delta_at(epsilon)) == (0, 0)
    assert mechanism.delta_at(0.9 * epsilon) > 0


@pytest.mark.parametrize(("epsilon", "delta"), [(0.05, 0.05), (1.0, 1e-6), (0.5, 1e-4)])
def test_the_classic_gaussian_claims_what_it_gives(epsilon: float, delta: float) -> None:
    mechanism = published_gaussian(5, epsilon, delta)
    sigma = math.sqrt(2 * math.log(1.25 / delta)) * math.sqrt(2) / epsilon
    assert sigma <= float(mechanism.scale) <= sigma * (1 + 1e-5)
    # The pair's delta from the sum over w in high precision.
    with mpmath.workdps(30):
        s2 = mpmath.mpf(float(mechanism.scale)) ** 2
        last = math.ceil(1 - epsilon * float(s2)) - 1
        terms = (
            mpmath.exp(-mpmath.mpf(w * w) / (4 * s2)) * (1 - mpmath.exp(epsilon - (1 - w) / s2))
            for w in range(last, last - int(20 * sigma), -1)
        )
        expected = mpmath.fsum(terms) / (2 * mpmath.sqrt(mpmath.pi * s2))
    assert mechanism.delta == pytest.approx(float(expected), rel=1e-9)
    assert mechanism.delta < 0.1 * delta


def test_the_classic_gaussian_does_not_hide_where_its_theorem_fails() -> None:
    mechanism = published_gaussian(5, 20.0, 1e-6)
    assert mechanism.delta == discrete_gaussian_delta(20.0, float(mechanism.scale)) > 1e-6
    assert published_gaussian(3, 50.0, 1e-5).delta > 0.9


def test_the_prior_is_as_private_as_its_counts() -> None:
    noise = published_laplace(3, 0.5)
    prior = LaplacePrior(noise)
    assert (prior.epsilon, prior.delta, prior.classes) == (0.5, 0.0, 3)
    assert prior.delta_at(0.2) == noise.delta_at(0.2) > 0
    promised = prior.guarantee(Unit.PERSON)
    assert (promised.mechanism, promised.unit, promised.delta) == ("laplace_prior", Unit.PERSON, 0)
    assert promised.parameters == prior.parameters
    assert promised.assumptions == noise.guarantee().assumptions
    with pytest.raises(InputError, match="adjacency"):
        prior.guarantee(adjacency=Adjacency.ADD_REMOVE)


@pytest.mark.slow
def test_the_prior_draws_around_its_noisy_counts() -> None:
    prior = LaplacePrior(published_laplace(3, 20.0))  # hardly any noise: a draw from Dir(counts)
    counts = np.array([10, 30, 60])
    released = prior.release(counts, NoiseBits(1, "prior"), 100_000)
    assert (released >= 0).all()
    np.testing.assert_allclose(released.sum(axis=1), 100, rtol=1e-12)
    share = counts / 100
    np.testing.assert_allclose(released.mean(axis=0), counts, atol=0.06)
    expected = (np.diag(share) - np.outer(share, share)) * 100**2 / 101
    np.testing.assert_allclose(np.cov(released.T), expected, atol=0.5)


@pytest.mark.slow
@pytest.mark.parametrize("records", [20, 50, 500])
def test_the_covariance_of_the_prior_is_that_of_its_releases(records: int) -> None:
    prior = LaplacePrior(published_laplace(4, 0.2))
    released, told = (
        prior.release(np.full(4, records), NoiseBits(9, "covariance"), 50_000),
        prior.covariance(4 * records),
    )
    np.testing.assert_allclose(np.cov(released.T), told, atol=0.02 * told[0, 0])
    survived = LaplacePrior(published_laplace(4, 0.01)).release(np.array([0, 0, 0, 3]), NoiseBits(1, "empty"), 2000)
    assert np.isfinite(survived).all()
    np.testing.assert_allclose(survived.sum(axis=1), 3, rtol=1e-12)


NAMES = {
    "gaussian": "count_gaussian",
    "laplace": "lattice_laplace",
    "pure": "lattice_laplace",
    "independent_laplace": "count_laplace",
    "published_laplace": "count_laplace",
    "published_gaussian": "count_gaussian",
    "laplace_prior": "laplace_prior",
    "dirichlet_floor": "dirichlet_floor",
    "dirichlet_shifted": "dirichlet_shifted",
}
EXTRA = {"dirichlet_floor": {"floor": 60}, "dirichlet_shifted": {"pseudo_count": 60}}


@pytest.mark.parametrize("noise", NAMES)
def test_every_kind_keeps_its_claim_and_is_rebuilt_from_json(noise: str) -> None:
    numbers: dict[str, Any] = {"noise": noise, "classes": 5, "epsilon": 0.5, "delta": 0.01, **EXTRA.get(noise, {})}
    mechanism = calibrate(**numbers)
    assert mechanism.name == NAMES[noise]
    assert (mechanism.classes, mechanism.epsilon) == (5, 0.5)
    assert mechanism.delta_at(0.5) <= mechanism.delta <= 0.01
    assert mechanism.delta == 0 or noise not in ("pure", "published_laplace", "laplace_prior")
    assert calibrate(**json.loads(json.dumps(numbers))) == mechanism


def test_laplace_without_delta_is_pure() -> None:
    known = {"classes": 3, "epsilon": 0.7}
    pure = calibrate("pure", delta=0.1, **known)
    assert calibrate("laplace", delta=0.0, **known) == calibrate("auto", delta=0.0, **known) == pure


@pytest.mark.parametrize(
    ("classes", "epsilon", "delta", "expected"),
    [
        (5, 0.05, 0.05, "count_gaussian"),
        (2, 0.05, 0.05, "count_gaussian"),
        (5, 1.0, 1e-6, "lattice_laplace"),
        (2, 0.5, 0.01, "lattice_laplace"),
        (5, 0.5, 0.01, "lattice_laplace"),
        (20, 0.5, 0.01, "count_gaussian"),
        (2, 1.0, 0.05, "lattice_laplace"),
        (10, 1.0, 0.05, "count_gaussian"),
        (7_000, 0.05, 0.02, "count_gaussian"),
        (7_000, 1.0, 1e-6, "lattice_laplace"),
        (20_000, 0.7, 1e-5, "lattice_laplace"),
    ],
)
def test_auto_crosses_where_the_expected_errors_do(classes: int, epsilon: float, delta: float, expected: str) -> None:
    assert calibrate("auto", classes=classes, epsilon=epsilon, delta=delta).name == expected


@given(st.integers(2, 30), st.floats(0.01, 5), st.floats(1e-9, 0.3))
@settings(derandomize=True)
def test_auto_has_the_smallest_expected_error_but_for_what_pure_noise_is_worth(classes, epsilon, delta) -> None:
    chosen = calibrate("auto", classes=classes, epsilon=epsilon, delta=delta)
    assert isinstance(chosen, AdditiveCounts)
    both = (made(classes, epsilon, delta) for made in (calibrate_discrete_gaussian, calibrate_lattice_laplace))
    best = min(noise.expected_l1() for noise in both)
    assert chosen.expected_l1() <= best * (1 + (0.001 if chosen.delta == 0 else 0))
    pure = calibrate_lattice_laplace(classes, epsilon, 0.0)
    assert (chosen.delta == 0) == (pure.expected_l1() <= 1.001 * best)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"noise": "gausian"}, "gaussian"),
        ({"noise": "published_dirichlet"}, "noise"),
        ({"classes": 1}, r"classes.*2.*1048576.*1"),
        *(({"classes": classes}, "classes") for classes in (2.0, True)),
        *(({"epsilon": epsilon}, "epsilon") for epsilon in (0.0, float("inf"), float("nan"))),
        ({"noise": "pure", "epsilon": 1e-13}, "epsilon"),
        *(({"delta": delta}, r"delta.*0.*1") for delta in (-0.1, 1.0, float("nan"))),
        ({"delta": 0.0}, r"delta.*0"),
        ({"floor": 5}, r"floor.*dirichlet_floor"),
        ({"pseudo_count": 5}, r"pseudo_count.*dirichlet_shifted"),
        ({"noise": "dirichlet_floor"}, "floor"),
        ({"noise": "dirichlet_shifted"}, "pseudo_count"),
        ({"noise": "dirichlet_floor", "floor": 2}, "floor"),
    ],
)
def test_impossible_arguments_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        calibrate(**{"noise": "gaussian", "classes": 5, "epsilon": 0.05, "delta": 0.05} | changes)
