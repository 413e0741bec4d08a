"""The discrete Gaussian sampler against its law, and both accountants against brute-force sums.

The discrete Laplace sampler against its law, and its accounting against brute-force sums.
"""

import hashlib
import math
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support.discrete_laws import exact_delta, gaussian_law, goodness_of_fit, laplace_law
from support.exact_losses import delta_one_coordinate
from support.examples import every_third
from support.refusals import refused

from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.mechanisms.noise import discrete, gaussian

SAMPLERS = {"gaussian": discrete.sample_discrete_gaussian, "laplace": discrete.sample_discrete_laplace}
both = pytest.mark.parametrize("kind", SAMPLERS)


@pytest.mark.parametrize(
    ("kind", "scale"),
    [
        *(("gaussian", sigma) for sigma in (1, 60, Fraction(22, 7), Fraction(520180, 2**16))),
        *(("laplace", scale) for scale in (1, 50, Fraction(22, 7), Fraction(593155, 2**16))),
        *(pytest.param("gaussian", sigma, marks=pytest.mark.slow) for sigma in (2, 7, Fraction(2, 5))),
        *(pytest.param("laplace", scale, marks=pytest.mark.slow) for scale in (2, 5, Fraction(2, 5))),
    ],
)
def test_draws_follow_the_law_and_a_scale_off_by_two_percent_is_rejected(kind: str, scale: int | Fraction) -> None:
    seed, probabilities = (5, gaussian_law) if kind == "gaussian" else (1, laplace_law)
    draws = SAMPLERS[kind](NoiseBits(seed, f"{kind}{scale}"), scale, 1_000_000)
    assert goodness_of_fit(draws, *probabilities(float(scale))) > 1e-3
    assert goodness_of_fit(draws, *probabilities(1.02 * float(scale))) < 1e-6


@pytest.mark.parametrize(("kind", "digest"), [("gaussian", "4d9d8e075ed79414"), ("laplace", "ae2e80286d91e38e")])
def test_draws_of_a_seed_never_change(kind: str, digest: str) -> None:
    bits = NoiseBits(1, "golden")
    draws = np.concatenate([SAMPLERS[kind](bits, scale, 1000) for scale in (1, 50, 2**40)])
    assert hashlib.sha256(draws.astype("<i8").tobytes()).hexdigest()[:16] == digest


@both
def test_a_fraction_that_is_an_integer_is_the_integer_and_draws_depend_on_the_key_only(kind: str) -> None:
    keys = (NoiseBits(7, "a", party=party) for party in (3, 3, 4))
    same, fraction, other = (
        SAMPLERS[kind](key, scale, 1000) for key, scale in zip(keys, (9, Fraction(9), 9), strict=True)
    )
    assert np.array_equal(same, fraction)
    assert not np.array_equal(same, other)


@pytest.mark.parametrize(
    ("kind", "scale"),
    [*(("gaussian", sigma) for sigma in (2**16, 2**17 - 1, 2**26)), ("laplace", 2**16), ("laplace", 2**26)],
)
def test_fine_grids_have_the_continuous_limit(kind: str, scale: int) -> None:
    draws = SAMPLERS[kind](NoiseBits(6, "fine"), scale, 200_000)
    assert stats.kstest(draws / scale, "norm" if kind == "gaussian" else "laplace").pvalue > 1e-3
    if kind == "laplace":
        assert np.abs(draws).mean() == pytest.approx(discrete.mean_magnitude(scale), rel=0.01)


@pytest.mark.parametrize(
    ("oracle", "ours", "epsilons"),
    [
        (
            pld.from_discrete_gaussian_mechanism,
            lambda epsilon: exact_delta(epsilon, (gaussian_law(20)[1], 9)),
            (0.3, 1.0, 2.0),
        ),
        (
            lambda scale, **known: pld.from_discrete_laplace_mechanism(1 / scale, **known),
            lambda epsilon: discrete.delta(epsilon, 9, 20),
            (0.1, 0.25, 0.4),
        ),
    ],
    ids=["gaussian", "laplace"],
)
def test_one_coordinate_agrees_with_dp_accounting(oracle, ours, epsilons) -> None:
    theirs = oracle(20, sensitivity=9, value_discretization_interval=1e-5)
    for epsilon in epsilons:
        # It truncates the support at a tail mass of about 1e-13, and rounds losses up by at most its interval.
        assert -1e-9 <= theirs.get_delta_for_epsilon(epsilon) - ours(epsilon) <= 1e-5


def least_proved(epsilon: float, mu: float, dimension: int, sigma: int) -> float:
    """The least delta that comparing the laws pointwise proves, over all radii, with ratios as they are.

    P[Z=k]/P[X=k] is the largest at 0, and in a ball its inverse at a point on one axis.
    """
    _, mass = gaussian_law(sigma)

    def log_ratio(k: int) -> float:  # ln P[Z = k] - ln P[X = k] of one coordinate, for k >= 0
        rounded = stats.norm.sf((k - 0.5) / sigma) - stats.norm.sf((k + 0.5) / sigma)
        return math.log(mass[len(mass) // 2 + k] / rounded)

    def exact(at: float) -> float:
        return stats.norm.cdf(mu / 2 - at / mu) - math.exp(at) * stats.norm.cdf(-mu / 2 - at / mu)

    above, found = dimension * log_ratio(0), []
    for radius in np.linspace(0.0, 12.0, 121):
        reach = math.sqrt(dimension) * (1 + 0.5 / sigma) + radius
        below = -log_ratio(math.floor(reach * sigma)) - (dimension - 1) * log_ratio(0)
        outside = math.exp(epsilon - below - radius**2 / 2)
        found.append(math.exp(above) * exact(epsilon - above - below) + outside)
    return min(found)


@pytest.mark.parametrize(
    ("sigma", "dimension", "mu"), [(5, 60, 3.0), (5, 10, 3.0), (3, 10, 3.0), (3, 10, 1.0), (5, 1, 1.0), (2, 2, 1.0)]
)
@pytest.mark.parametrize("epsilon", every_third([0.0, 0.05, 0.5, 2.0, 5.0]))
def test_the_bound_is_no_less_than_what_the_exact_ratios_prove(epsilon, sigma, dimension, mu) -> None:
    """The exact delta is far below for such coarse grids, and would miss an a of one half or an R² of one quarter."""
    bound = discrete.delta_bound(epsilon, mu, dimension, sigma)
    proved = least_proved(epsilon, mu, dimension, sigma)
    assert min(1.0, proved) <= bound
    if sigma == 5 and mu == 3.0:
        assert bound <= 1.12 * proved


@pytest.mark.parametrize(("sensitivity", "sigma"), [(1, 1), (3, 30), (100, 300), (500, 1000)])
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0])
def test_the_bound_covers_the_exact_delta_of_one_coordinate(epsilon: float, sensitivity: int, sigma: int) -> None:
    exact = exact_delta(epsilon, (gaussian_law(sigma)[1], sensitivity))
    bound = discrete.delta_bound(epsilon, sensitivity / sigma, 1, sigma)
    assert exact <= bound
    if sigma >= 300:
        assert bound <= exact * 1.01 + 1e-12


@pytest.mark.parametrize(("shift", "sigma"), [((1, 0), 2), ((2, 3), 4), ((3, -3), 6)])
@pytest.mark.parametrize("epsilon", [0.1, 0.6, 1.5])
def test_the_bound_covers_the_exact_delta_in_the_plane(epsilon: float, shift: tuple[int, int], sigma: int) -> None:
    exact = exact_delta(epsilon, *((gaussian_law(sigma)[1], move) for move in shift))
    assert exact <= discrete.delta_bound(epsilon, math.hypot(*shift) / sigma, 2, sigma)


@pytest.mark.parametrize("dimension", [1, 60, 3000])
def test_on_fine_grids_the_bound_is_the_analytic_delta(dimension: int) -> None:
    for epsilon, mu in ((0.1, 0.03), (1.0, 0.23), (10.0, 1.8)):
        bound = discrete.delta_bound(epsilon, mu, dimension, 2**16)
        assert bound == pytest.approx(float(gaussian.delta(epsilon, mu)), rel=1e-4)
        assert bound > gaussian.delta(epsilon, mu)


@given(st.floats(0.02, 20), st.floats(-30, -2), st.integers(1, 500), st.floats(1e3, 1e6))
@settings(derandomize=True)
def test_calibration_is_the_smallest_sigma(epsilon, log_delta, dimension, sensitivity) -> None:
    delta = math.exp(log_delta)
    sigma = discrete.calibrate_discrete_gaussian(sensitivity, dimension, epsilon, delta)
    assert discrete.delta_bound(epsilon, sensitivity / sigma, dimension, sigma) <= delta
    assert discrete.delta_bound(epsilon, sensitivity / (sigma - 1), dimension, sigma - 1) > delta
    bound = discrete.epsilon_bound(delta, sensitivity / sigma, dimension, sigma)
    assert bound <= epsilon * (1 + 1e-9)
    assert discrete.delta_bound(bound, sensitivity / sigma, dimension, sigma) <= delta


def test_what_the_proof_leaves_out_and_what_the_grid_adds_is_charged() -> None:
    """A part of 1e-10 of delta, which is all that is left of the charges where the grid is finest."""
    for epsilon in (0.1, 1.0, 4.0):
        ratio = discrete.delta_bound(epsilon, 0.5, 3, 2**40) / float(gaussian.delta(epsilon, 0.5))
        assert ratio - 1 == pytest.approx(1e-10, rel=0.01)
    # Where continuous noise has epsilon 0:
    delta = float(gaussian.delta(0.0, 1.0))
    assert gaussian.epsilon(delta, 1.0) == 0
    bound = discrete.epsilon_bound(delta, 1.0, 10, 100)
    assert 0 < bound < 1e-3
    assert discrete.delta_bound(bound, 1.0, 10, 100) <= delta
    # The continuous noise would be of a scale below 1, which no search may begin from.
    assert gaussian.mu(5.0, 0.1) > 1.0
    assert discrete.calibrate_discrete_gaussian(1.0, 1, 5.0, 0.1) == 2


@both
@pytest.mark.parametrize(
    ("scale", "size", "told"),
    [
        *((scale, 1, "sigma|scale") for scale in (0, -3, 2**40 + 1, 2.0, 1.5, Fraction(-3, 2))),
        *((scale, 1, "sigma|scale") for scale in (Fraction(1, 2**40 + 1), Fraction(2**41, 3))),
        *((3, size, "size") for size in (-1, 1.5, 2**40 + 1)),
    ],
)
def test_impossible_scales_and_numbers_of_draws_are_refused(kind: str, scale, size: float, told: str) -> None:
    refused(told, SAMPLERS[kind], NoiseBits(1, "x"), scale, size)
    if kind == "laplace" and size == 1:
        refused("scale", discrete.epsilon, 1, scale)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": -0.1}, "epsilon"),
        *(({"mu": mu}, "mu") for mu in (0.0, math.nan)),
        *(({"dimension": dimension}, "dimension") for dimension in (0, 1.5)),
        ({"sigma": 0}, "sigma"),
    ],
)
def test_impossible_arguments_of_the_bound_are_refused(change: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        discrete.delta_bound(**({"epsilon": 1.0, "mu": 0.5, "dimension": 2, "sigma": 100} | change))


@pytest.mark.parametrize(
    ("sensitivity", "scale"), [(1, 1), (1, 4), (3, 2), (7, 5), (12, 20), (3, Fraction(1, 3)), (3, Fraction(7, 2))]
)
@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.3, 0.7, 1.1, 2.0])
def test_delta_equals_the_brute_force_sum(epsilon: float, sensitivity: int, scale: int | Fraction) -> None:
    expected = exact_delta(epsilon, (laplace_law(float(scale))[1], sensitivity))
    assert discrete.delta(epsilon, sensitivity, scale) == pytest.approx(expected, abs=1e-12)
    assert discrete.epsilon(sensitivity, scale) == float(sensitivity / Fraction(scale))


@given(st.integers(1, 10**6), st.floats(1e-5, 100))
@settings(derandomize=True)
def test_calibration_is_the_smallest_scale(sensitivity: int, epsilon: float) -> None:
    scale = discrete.calibrate_discrete_laplace(sensitivity, epsilon)
    assert Fraction(sensitivity, scale) <= Fraction(epsilon)
    assert scale == 1 or Fraction(sensitivity, scale - 1) > Fraction(epsilon)
    assert discrete.epsilon(sensitivity, scale) <= epsilon * (1 + 1e-15)
    assert discrete.delta(epsilon, sensitivity, scale) == 0


def test_epsilon_is_the_largest_log_ratio_of_the_law() -> None:
    q, k = math.exp(-1 / 6), np.arange(-50, 50)
    ratio = np.log(q ** np.abs(k)) - np.log(q ** np.abs(k - 4))
    assert discrete.epsilon(4, 6) == pytest.approx(ratio.max(), rel=1e-12)


@pytest.mark.parametrize("scale", [1, Fraction(1, 3), Fraction(5, 2), Fraction(7, 2), 9])
def test_variance_and_mean_magnitude_are_those_of_the_law(scale: int | Fraction) -> None:
    k, mass = laplace_law(float(scale))
    assert discrete.variance(scale) == pytest.approx(k**2 @ mass, rel=1e-12)
    assert discrete.mean_magnitude(scale) == pytest.approx(np.abs(k) @ mass, rel=1e-12)
    assert 0 <= discrete.mean_magnitude(Fraction(1, 2**40)) < 1e-300  # hardly any noise


@pytest.mark.parametrize("dimension", [1, 2, 3, 30, 5000])
def test_the_mean_norm_of_continuous_laplace_vectors(dimension: int) -> None:
    """One dimension: 1. Two: the integral in polar coordinates. More: simulation."""
    found = discrete.mean_norm(dimension)
    if dimension == 1:
        assert found == pytest.approx(1, rel=1e-9)
    elif dimension == 2:
        angle = (np.arange(100_000) + 0.5) * np.pi / 200_000
        assert found == pytest.approx(np.mean(np.pi / (np.cos(angle) + np.sin(angle)) ** 3), rel=1e-8)
    else:
        norms = np.linalg.norm(np.random.default_rng(1).laplace(size=(1_000_000 // dimension, dimension)), axis=1)
        assert abs(norms.mean() - found) < 4 * norms.std() / len(norms) ** 0.5


@pytest.mark.parametrize(("sensitivity", "sigma"), [(1, 1), (1, 3), (4, 3), (5, 12)])
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.3, 3.0])
def test_the_oracle_of_sums_is_the_closed_form_of_one_coordinate(epsilon: float, sensitivity: int, sigma: int) -> None:
    summed = exact_delta(epsilon, (gaussian_law(sigma)[1], sensitivity))
    assert summed == pytest.approx(delta_one_coordinate(epsilon, sensitivity, sigma), rel=1e-9, abs=1e-13)
