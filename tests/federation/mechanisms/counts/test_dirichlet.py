"""The two honest Dirichlet mechanisms: calibration, release, exact delta against Monte Carlo, and what they promise.

The delta between two Dirichlet laws: exact for two classes against quadrature, sampled for more.

Dirichlet shares against their law, down to shapes at which ordinary gamma variables vanish, and on their grid.
"""

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from support.exact_losses import beta_divergence

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Assumption, Check, Guarantee, Unit
from federation.contract.randomness import NoiseBits
from federation.mechanisms.counts.additive import CountMechanism
from federation.mechanisms.counts.dirichlet import (
    GRID_BITS,
    MAX_FLOOR,
    calibrate_floor,
    calibrate_shifted,
    divergence,
    log_gamma,
    sample,
    smallest_floor,
)
from federation.mechanisms.counts.dirichlet_loss import delta_exact

CLAIMS = [(0.05, 0.05), (1.0, 1e-6), (0.5, 1e-4), (0.05, 1e-6), (3.0, 0.01), (0.001, 0.3)]
FLOOR, SHIFTED = calibrate_floor(3, 1.0, 1e-4, 30), calibrate_shifted(3, 1.0, 0.1, 20)
BUILDS = pytest.mark.parametrize("build", [calibrate_floor, calibrate_shifted])


@given(st.floats(0.01, 5), st.floats(1e-12, 0.9))
def test_the_smallest_floor_is_where_the_limit_of_delta_falls_below_it(epsilon: float, delta: float) -> None:
    assert [smallest_floor(*claim) for claim in CLAIMS[:4]] == [7, 11, 12, 161]
    least = smallest_floor(epsilon, delta)
    assert math.exp(-epsilon * least) / (2 * least + 1) < delta
    assert least == 1 or math.exp(-epsilon * (least - 1)) / (2 * least - 1) >= delta * (1 - 1e-6)


@pytest.mark.parametrize(("epsilon", "delta"), CLAIMS)
@pytest.mark.parametrize("above", [0, 1, 20, 400])
def test_calibration_reaches_its_delta_and_no_larger_sigma_does(epsilon: float, delta: float, above: int) -> None:
    least = smallest_floor(epsilon, delta) + above
    for mechanism in (calibrate_floor(3, epsilon, delta, least), calibrate_shifted(3, epsilon, delta, least)):
        assert delta * (1 - 1e-6) < mechanism.delta_at(epsilon) <= delta
        larger = mechanism.sigma * np.geomspace(1 + 1e-4, 1e3, 200)
        assert (delta_exact(epsilon, least + 1, least, larger) > delta).all()


def test_known_scales() -> None:
    assert calibrate_floor(5, 0.05, 0.05, 50).sigma == pytest.approx(0.793, abs=5e-4)
    assert 0 < calibrate_floor(5, 1.0, 1e-6, 11).sigma < 0.1
    assert calibrate_floor(5, 0.05, 0.05, MAX_FLOOR).sigma > 1e4
    deltas = [calibrate_shifted(3, 0.5, 1e-4, 50).delta_at(epsilon) for epsilon in (0.5, *np.linspace(0, 3, 40))]
    assert deltas[0] == pytest.approx(1e-4, rel=1e-6)
    assert (np.diff(deltas[1:]) < 0).all()


@pytest.mark.parametrize(("epsilon", "delta"), CLAIMS)
@pytest.mark.parametrize("above", [0, 30])
def test_the_claim_holds_in_many_digits(epsilon: float, delta: float, above: int) -> None:
    least = smallest_floor(epsilon, delta) + above
    mechanism = calibrate_floor(2, epsilon, delta, least)
    with mpmath.workdps(40):
        x = 1 / (1 + mpmath.exp(mpmath.mpf(epsilon) / mechanism.sigma))
        p, q = mpmath.mpf(mechanism.sigma) * (least + 1), mpmath.mpf(mechanism.sigma) * least
        here, there = (mpmath.betainc(*pair, 0, x, regularized=True) for pair in ((q, p), (p, q)))
        exact = here - mpmath.exp(epsilon) * there
    assert exact <= delta
    assert mechanism.delta_at(epsilon) == pytest.approx(float(exact), rel=1e-9)


@BUILDS
@pytest.mark.parametrize("others", [(), (35,)])
def test_the_exact_delta_equals_monte_carlo_of_what_is_released(build, others: tuple[int, ...]) -> None:
    """Two and three classes, on the worst pair: E max(0, 1 - e^(epsilon - loss)) with loss sigma ln(x_1 / x_2)."""
    mechanism = build(2 + len(others), 1.0, 0.01, 20)
    counts = np.array([mechanism.floor + 1, mechanism.floor, *others])
    released = mechanism.release(counts, NoiseBits(2, "monte carlo"), 100_000) + mechanism.pseudo_count
    loss = mechanism.sigma * np.log(released[:, 0] / released[:, 1])
    for epsilon in (0.0, 0.3, 1.0, 1.5):
        excess = np.maximum(0, -np.expm1(epsilon - loss))
        error = 4 * excess.std() / math.sqrt(len(excess)) + 1e-7
        assert abs(mechanism.delta_at(epsilon) - excess.mean()) < error


@BUILDS
def test_releases_are_unbiased_with_the_stated_covariance_at_equal_counts(build) -> None:
    mechanism, counts = build(4, 0.5, 1e-3, 30), np.full(4, 100)
    released = mechanism.release(counts, NoiseBits(3, "moments"), 50_000)
    covariance = mechanism.covariance(400)
    np.testing.assert_allclose(covariance.sum(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(np.cov(released.T), covariance, atol=0.03 * covariance.max())
    np.testing.assert_allclose(released.mean(axis=0), counts, atol=5 * math.sqrt(covariance[0, 0] / 5e4))
    skewed = mechanism.release(np.array([40, 60, 100, 200]), NoiseBits(4, "skewed"), 50_000)
    np.testing.assert_allclose(skewed.mean(axis=0), [40, 60, 100, 200], atol=5 * math.sqrt(covariance[0, 0] / 5e4))
    assert np.trace(np.cov(skewed.T)) < np.trace(covariance)


@given(st.lists(st.integers(0, 2000), min_size=2, max_size=6).filter(any), st.integers(1, 600))
def test_shifted_releases_of_any_counts_sum_to_the_size(counts: list[int], pseudo_count: int) -> None:
    mechanism = calibrate_shifted(len(counts), 1.0, 0.3, pseudo_count)
    released = mechanism.release(np.array(counts), NoiseBits(5, "sums"), 4)
    assert released.shape == (4, len(counts))
    np.testing.assert_array_equal(released.sum(axis=1), sum(counts))
    assert (released >= -pseudo_count).all()


def test_counts_below_the_floor_are_released_without_a_word_and_sizes_below_it_refused() -> None:
    """A refusal would tell neighbours apart for certain; the floor is the promise of who declares it."""
    mechanism = calibrate_floor(3, 1.0, 1e-2, 20)
    released = mechanism.release(np.array([0, 3, 97]), NoiseBits(6, "below"), 1000)
    assert np.isfinite(released).all()
    assert (released[:, 0] == 0).all()
    np.testing.assert_array_equal(released.sum(axis=1), 100)
    mechanism.release(np.array([20, 20, 20]), NoiseBits(7, "size"))
    with pytest.raises(InputError, match=r"floor.*19.*59.*20"):
        mechanism.release(np.array([39, 20, 0]), NoiseBits(7, "size"))


def test_a_floor_for_the_input_alone_is_not_enough() -> None:
    """Counts of 20 whose neighbour holds 19: the sigma of floor 20 gives up to 1.7 times the claim, floor 19's none."""
    sigma = calibrate_floor(2, 1.0, 1e-6, 20).sigma
    there, back = float(delta_exact(1.0, 20, 20, sigma)), float(delta_exact(1.0, 21, 19, sigma))
    assert there / 1e-6 == pytest.approx(1.13, abs=0.01)
    assert max(there, back) / 1e-6 < 1.75
    below = calibrate_floor(2, 1.0, 1e-6, 19).sigma
    assert max(delta_exact(1.0, [20, 21, 20], [20, 19, 19], below)) <= 1e-6


@BUILDS
def test_what_a_release_promises(build) -> None:
    mechanism: CountMechanism = build(3, 0.5, 1e-4, 30)
    with_floor = build is calibrate_floor
    disjoint = Assumption("bags are disjoint", Check.CHECKED)
    guarantee = mechanism.guarantee(further=(disjoint,))
    assert (guarantee.epsilon, guarantee.delta) == (0.5, 1e-4)
    assert (guarantee.unit, guarantee.adjacency) == (Unit.LABEL, Adjacency.REPLACE)
    assert guarantee.mechanism == mechanism.name == ("dirichlet_floor" if with_floor else "dirichlet_shifted")
    assert guarantee.parameters["sigma"] == mechanism.sigma
    assert guarantee.assumptions[0] is disjoint
    texts = [assumption.text for assumption in guarantee.assumptions]
    assert any("at least 30 records" in text for text in texts) == with_floor
    assert any("double precision" in text for text in texts)
    declared = sum(assumption.check is Check.DECLARED for assumption in guarantee.assumptions)
    assert declared == (4 if with_floor else 3)
    assert Guarantee.from_dict(guarantee.to_dict()) == guarantee
    with pytest.raises(InputError, match="adjacency"):
        mechanism.guarantee(adjacency=Adjacency.ADD_REMOVE)


@pytest.mark.parametrize("change", [{"sigma": 2 * FLOOR.sigma}, {"floor": 20}])
def test_a_sigma_that_breaks_the_claim_cannot_be_built(change: dict) -> None:
    assert replace(FLOOR, sigma=FLOOR.sigma / 2).delta_at(1.0) < 1e-4
    assert replace(FLOOR, delta=FLOOR.delta_at(1.0)).delta < 1e-4  # what it gives is what it may claim
    with pytest.raises(InputError, match=r"calibrate_floor.*calibrate_shifted"):
        replace(FLOOR, **change)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, 1.0, 1e-6, 10), r"11.*10"),
        *(((3, 1.0, 1e-6, least), "1") for least in (0, 2.5, MAX_FLOOR + 1)),
        ((1, 1.0, 1e-6, 50), r"classes.*2"),
        *(((3, epsilon, 1e-6, 50), "epsilon") for epsilon in (0.0, math.inf)),
        *(((3, 1.0, delta, 50), "delta") for delta in (0.0, 1.0)),
    ],
)
@BUILDS
def test_arguments_out_of_range_are_refused(build, arguments: tuple, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build(*arguments)


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        (lambda: replace(FLOOR, classes=1), r"classes.*2"),
        (lambda: replace(FLOOR, delta=0.0), "delta"),
        (lambda: replace(FLOOR, epsilon=-1.0), "epsilon"),
        (lambda: replace(FLOOR, floor=0), r"pseudo_count.*1"),
        *((lambda epsilon=epsilon: smallest_floor(epsilon, 0.1), "epsilon") for epsilon in (0.0, -1.0)),
        *((lambda delta=delta: smallest_floor(1.0, delta), "delta") for delta in (0.0, 1.0)),
        *(
            (lambda counts=counts: SHIFTED.release(np.array(counts), NoiseBits(1, "refused")), "counts")
            for counts in ([1, 2], [1.5, 2, 3], [-1, 2, 3], [0, 0, 0], [np.nan, 1, 1])
        ),
        (lambda: divergence(-1, np.array([1.0, 2.0]), np.array([1.0, 2.0])), None),
        *(
            (lambda p=p, q=q: divergence(1, np.array(p, float), np.array(q, float)), None)
            for p, q in (((1, 2), (1, 2, 3)), ((0, 2), (1, 2)), ((1, 2), (0, 2)), ((1,), (2,)), ((1, 2), (1, -2)))
        ),
        *(
            (lambda shape=shape: sample(NoiseBits(1, "refused"), np.array(shape), 1), None)
            for shape in ([-1.0, 2.0], [0.0, 1e-310], [np.nan, 1.0], [np.inf, 1.0], [[1.0, 2.0]])
        ),
    ],
)
def test_other_numbers_counts_and_shapes_are_refused(refused, message: str | None) -> None:
    with pytest.raises(InputError, match=message):
        refused()


@pytest.mark.parametrize("size", [30, 33, 3000])
@pytest.mark.parametrize("sigma", [1e-3, 0.1, 3.0])
def test_the_covariance_is_that_of_the_dirichlet_law(size: int, sigma: float) -> None:
    mechanism = replace(calibrate_floor(3, 1.0, 0.9, 10), sigma=sigma)
    law = stats.dirichlet(np.full(3, sigma * size / 3))
    np.testing.assert_allclose(mechanism.covariance(size), size**2 * law.cov(), rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.0, 0.05, 1.0, 4.0])
@pytest.mark.parametrize(
    ("p", "q"),
    [
        ((5.0, 5.0), (4.0, 6.0)),  # the loss rises
        ((20.0, 300.0), (10.0, 150.0)),  # it rises and falls: the first law is narrower
        ((10.0, 150.0), (20.0, 300.0)),  # it falls and rises: two intervals
        ((3.0, 3.0), (3.0, 5.0)),  # it is flat at one end
        ((0.6, 0.7), (0.7, 0.6)),
        ((7.0, 9.0), (7.0, 9.0)),
    ],
)
def test_two_classes_equal_the_integral(epsilon: float, p: tuple[float, ...], q: tuple[float, ...]) -> None:
    measured = divergence(epsilon, np.array(p), np.array(q))
    assert measured.standard_error == 0
    assert measured.value == pytest.approx(beta_divergence(epsilon, np.array(p), np.array(q)), abs=1e-9)


@given(st.floats(0, 3), st.integers(2, 300), st.integers(1, 300), st.floats(0.01, 3))
def test_with_one_sigma_it_is_the_exact_delta_of_the_pair(epsilon: float, a: int, b: int, sigma: float) -> None:
    here, there = sigma * np.array([a, b]), sigma * np.array([a - 1, b + 1])
    expected = float(delta_exact(epsilon, a, b, sigma))
    assert divergence(epsilon, here, there).value == pytest.approx(expected, abs=1e-9)


@given(st.floats(0, 3), *[st.floats(0.05, 500) for _ in range(4)])
def test_total_variation_has_no_direction_and_delta_stays_below_it(epsilon, a, b, c, d) -> None:
    p, q = np.array([a, b]), np.array([c, d])
    assert divergence(0, p, q).value == pytest.approx(divergence(0, q, p).value, abs=1e-9)
    assert divergence(epsilon, p, q).value <= divergence(0, p, q).value + 1e-12


@pytest.mark.slow
def test_more_classes_are_sampled_around_the_exact_value() -> None:
    """A third class with the same parameter leaves the delta of the pair as it is."""
    sigma, epsilon = 0.4, 0.3
    here, there = sigma * np.array([21, 20, 35]), sigma * np.array([20, 21, 35])
    measured = divergence(epsilon, here, there)
    assert 0 < measured.standard_error < 5e-4
    assert abs(measured.value - float(delta_exact(epsilon, 21, 20, sigma))) < 4 * measured.standard_error
    assert divergence(epsilon, here, there, runs=1000, seed=2) != divergence(epsilon, here, there, runs=1000, seed=3)


@pytest.mark.slow
def test_more_classes_with_different_totals_agree_with_another_sampler() -> None:
    p, q = np.array([6.0, 4.0, 10.0]), np.array([5.0, 6.0, 10.0])
    measured = divergence(0.1, p, q)
    reference = np.random.default_rng(5).dirichlet(p, 400_000)
    shape = [float(sum(mpmath.loggamma(x) for x in law) - mpmath.loggamma(law.sum())) for law in (p, q)]
    loss = np.log(reference) @ (p - q) + shape[1] - shape[0]
    excess = np.maximum(0, -np.expm1(0.1 - loss))
    assert abs(measured.value - excess.mean()) < 4 * measured.standard_error + 4 * excess.std() / np.sqrt(4e5)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [0.3, 1.0, 2.5, 40.0, 5e4])
def test_gamma_variables_follow_their_law(shape: float) -> None:
    values = np.exp(log_gamma(NoiseBits(1, "gamma"), np.array([shape]), 100_000)).ravel()
    assert stats.kstest(values, stats.gamma(shape).cdf).pvalue > 1e-3
    assert stats.kstest(values, stats.gamma(shape * 1.02 + 0.02).cdf).pvalue < 1e-3


@pytest.mark.parametrize("shape", [1e-2, 1e-5, 1e-300])
def test_logarithms_of_the_smallest_shapes_are_finite_and_nearly_exponential(shape: float) -> None:
    """-shape ln G tends to a standard exponential as the shape vanishes; G itself is 0 in double precision."""
    log = log_gamma(NoiseBits(2, "gamma"), np.array([shape]), 50_000).ravel()
    assert np.isfinite(log).all()
    if shape < 1e-2:
        assert stats.kstest(-shape * log, stats.expon.cdf).pvalue > 1e-3
    else:
        assert stats.kstest(np.exp(log[log > -700]), lambda x: _conditional(x, shape)).pvalue > 1e-3


def _conditional(x: np.ndarray, shape: float) -> np.ndarray:
    """The law of Gamma(shape) given that its logarithm exceeds -700."""
    law = stats.gamma(shape)
    return (law.cdf(x) - law.cdf(np.exp(-700))) / law.sf(np.exp(-700))


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(2.0, 5.0), (0.5, 0.7, 3.0), (0.001, 0.002, 0.003), (300.0, 40.0, 2.0, 0.5)])
def test_shares_have_the_moments_and_margins_of_the_dirichlet_law(shape: tuple[float, ...]) -> None:
    parameters = np.array(shape)
    shares = sample(NoiseBits(3, "shares"), parameters, 100_000)
    law = stats.dirichlet(parameters)
    np.testing.assert_allclose(shares.mean(axis=0), law.mean(), atol=5 * np.sqrt(law.var() / 1e5).max())
    np.testing.assert_allclose(np.cov(shares.T), law.cov(), atol=0.02 * law.var().max())
    if parameters.min() > 0.1:
        for k, p in enumerate(parameters):
            margin = stats.beta(p, parameters.sum() - p)
            assert stats.kstest(shares[:, k], margin.cdf).statistic < 0.008


def test_tiny_shapes_choose_one_class_with_the_right_probability() -> None:
    shares = sample(NoiseBits(4, "vertex"), 1e-9 * np.array([1.0, 2.0, 5.0]), 40_000)
    assert (shares.max(axis=1) == 1).all()
    np.testing.assert_allclose(shares.mean(axis=0), [1 / 8, 2 / 8, 5 / 8], atol=0.012)


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=8).filter(lambda shape: max(shape) > 1e-300), st.integers(0, 9))
def test_shares_lie_on_the_grid_and_sum_to_exactly_one(shape: list[float], seed: int) -> None:
    shares = sample(NoiseBits(seed, "grid"), np.array(shape), 3)
    assert (shares >= 0).all()
    np.testing.assert_array_equal(shares.sum(axis=1), 1.0)
    np.testing.assert_array_equal(shares * 2.0**GRID_BITS, np.rint(shares * 2.0**GRID_BITS))
    assert (shares[:, np.array(shape) == 0] == 0).all()
    # How many bits are used does not depend on the shapes.
    one, other = NoiseBits(5, "bits"), NoiseBits(5, "bits")
    sample(one, np.array(shape), 10)
    sample(other, np.ones(len(shape)), 10)
    assert one.words(4).tolist() == other.words(4).tolist()
