"""Discrete Gaussian counts: delta against enumeration and high precision, and the law of a release.

Independent discrete Laplace counts: delta against enumeration, moments against sums.

Discrete Laplace noise of sum zero: closed forms against enumeration of the lattice, the sampler against its law.
"""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support.discrete_laws import exact_delta, gaussian_law, goodness_of_fit, laplace_law
from support.examples import examples

from federation.contract.guarantee import Guarantee
from federation.contract.randomness import NoiseBits
from federation.mechanisms.accounting.composition import compose
from federation.mechanisms.counts import exact_laws
from federation.mechanisms.counts.exact_laws import (
    CountGaussian,
    IndependentLaplace,
    LatticeLaplace,
    calibrate_discrete_gaussian,
    calibrate_independent_laplace,
    calibrate_lattice_laplace,
    discrete_gaussian_delta,
    independent_laplace_delta,
    lattice_laplace_delta,
    loss_beyond,
    ratio,
    sample,
)

EPSILONS = [0.0, 0.05, 0.4, 1.0, 3.0]


def convolved_l1(k: np.ndarray, mass: np.ndarray, classes: int) -> float:
    """E |z - mean z|_1 of independent noise in every class, by a plain convolution of the others."""
    others = np.ones(1)
    for _ in range(classes - 1):
        others = np.convolve(others, mass)
    total = np.arange(len(others)) - len(others) // 2
    return float(np.abs((classes - 1) * k[:, None] - total) @ others @ mass)


def check_expected_l1(mechanism, noise: np.ndarray) -> None:
    l1 = np.abs(noise).sum(axis=1)
    assert mechanism.expected_l1() == pytest.approx(l1.mean(), abs=4 * l1.std() / len(l1) ** 0.5)


@pytest.mark.parametrize("sigma", [0.3, 0.75, 1.5, 3.25])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_delta_equals_enumeration_of_the_pair(epsilon: float, sigma: float) -> None:
    _, mass = gaussian_law(sigma)
    expected = exact_delta(epsilon, (mass, 1), (mass, -1))
    assert discrete_gaussian_delta(epsilon, sigma) == pytest.approx(expected, rel=1e-10, abs=1e-14)


@pytest.mark.parametrize("epsilon", [0.1, 0.7])
def test_nothing_is_lost_or_gained_by_centring(epsilon: float) -> None:
    """The outputs of three classes as released, that is up to a common shift, enumerated without the statistic w."""
    reach = 16
    k, mass = gaussian_law(1.5, reach)

    def law(counts: tuple[int, ...]) -> np.ndarray:
        """Over the two differences that a centred triple determines."""
        noisy = np.stack(np.meshgrid(*(k + count for count in counts), indexing="ij")).reshape(3, -1)
        weight = np.einsum("i,j,k->ijk", mass, mass, mass).ravel()
        size = 4 * reach + 21
        index = (noisy[0] - noisy[2] + size // 2) * size + noisy[1] - noisy[2] + size // 2
        return np.bincount(index, weight, size**2)

    gap = law((4, 4, 4)) - math.exp(epsilon) * law((5, 3, 4))
    assert discrete_gaussian_delta(epsilon, 1.5) == pytest.approx(gap[gap > 0].sum(), rel=1e-9)


@pytest.mark.parametrize("sigma", [100.25, 317.0, 2048.5])
@pytest.mark.parametrize("mu_epsilon", [0.0, 0.5, 2.0, 6.0])
def test_the_corrected_integral_equals_the_sum(sigma: float, mu_epsilon: float) -> None:
    epsilon = mu_epsilon * math.sqrt(2) / sigma
    last = math.ceil(1 - epsilon * sigma**2) - 1
    w = np.arange(last - int(30 * sigma), last + 1)
    # theta is constant here to 4 e^{-pi² sigma²}, so the law of w is a discrete Gaussian of variance 2 sigma².
    terms = np.exp(-np.square(w / (2 * sigma))) * -np.expm1(epsilon - (1 - w) / sigma**2)
    expected = math.fsum(terms) / (2 * sigma * math.sqrt(math.pi))
    # The continuous delta in it has a stated relative error of 1e-9.
    assert discrete_gaussian_delta(epsilon, sigma) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("sigma", "epsilon"), [(1e6, 1e-6), (3e7, 2e-7), (1e9, 1e-9)])
def test_huge_sigmas_have_the_continuous_limit(sigma: float, epsilon: float) -> None:
    with mpmath.workdps(40):
        mu = mpmath.sqrt(2) / sigma
        upper, lower = mpmath.ncdf(mu / 2 - epsilon / mu), mpmath.ncdf(-mu / 2 - epsilon / mu)
        expected = upper - mpmath.exp(epsilon) * lower
    assert discrete_gaussian_delta(epsilon, sigma) == pytest.approx(float(expected), rel=1e-9)


def test_corrections_are_by_bernoulli_polynomials_and_what_makes_it_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    for u, (order, polynomial) in itertools.product((0.0, 0.3, 0.5, 1.0), enumerate(exact_laws._BERNOULLI, 2)):
        assert polynomial(u) * math.factorial(order) == pytest.approx(float(mpmath.bernpoly(order, u)), abs=1e-14)
    epsilon, sigma = 0.4, 5.5
    direct = discrete_gaussian_delta(epsilon, sigma)
    continuous = float(exact_laws.gaussian.delta(epsilon, math.sqrt(2) / sigma))
    monkeypatch.setattr(exact_laws, "_MAX_SUM_SIGMA", 1.0)
    assert discrete_gaussian_delta(epsilon, sigma) == pytest.approx(direct, rel=1e-6)
    assert abs(continuous / direct - 1) > 1e-3


@given(st.floats(-4, 2), st.floats(-28, -0.1), st.integers(2, 20))
@settings(derandomize=True)
def test_calibration_keeps_its_claim_and_the_next_smaller_scale_does_not(log_epsilon, log_delta, classes) -> None:
    epsilon, delta = math.exp(log_epsilon), math.exp(log_delta)
    mechanism = calibrate_discrete_gaussian(classes, epsilon, delta)
    assert mechanism.delta_at(epsilon) <= delta
    exponent = max(0, 19 - math.floor(math.log2(float(mechanism.scale))))
    smaller = mechanism.scale * (1 - Fraction(1, 2**17)) - Fraction(1, 2**exponent)
    assert smaller <= 0 or discrete_gaussian_delta(epsilon, float(smaller)) > delta * (1 - 1e-8)


def test_the_scales_of_the_literature() -> None:
    scale = float(calibrate_discrete_gaussian(5, 0.05, 0.05).scale)
    assert scale == pytest.approx(7.937, abs=5e-4)
    assert scale < 7.938  # one coordinate of sensitivity sqrt 2 would need 7.9385: close, and not the same
    # A scale that reaches its delta exactly is not trusted: in double precision the true one may lie above.
    just_enough = 2.5
    assert calibrate_discrete_gaussian(3, 1.0, discrete_gaussian_delta(1.0, just_enough)).scale > just_enough


@pytest.mark.parametrize("scale", [Fraction(2, 3), Fraction(5, 2), Fraction(31, 4)])
def test_a_release_has_the_law_that_is_accounted_for(scale: Fraction) -> None:
    mechanism = CountGaussian(4, 1.0, 0.1, scale)
    counts = np.array([3, 0, 20, 7])
    released = mechanism.release(counts, NoiseBits(1, "law"), 200_000)
    assert np.abs(released.sum(axis=1) - 30).max() < 1e-9
    w = np.rint(released[:, 0] - released[:, 1] - 3).astype(int)
    _, mass = gaussian_law(float(scale), 100)
    assert goodness_of_fit(w, np.arange(-200, 201), np.convolve(mass, mass)) > 1e-3  # of z_i - z_j
    np.testing.assert_allclose(np.cov(released.T), mechanism.covariance(30), atol=0.03 * mechanism.variance())
    check_expected_l1(mechanism, released - counts)


@pytest.mark.parametrize(
    ("mechanism", "classes", "scale", "error"),
    [
        *(
            (CountGaussian, *case, 1e-6)
            for case in ((2, 0.1), (2, 0.4), (3, 1.0), (4, 2.9), (3, 7.99), (3, 8.0), (2, 40.0))
        ),
        *((IndependentLaplace, *case, 1e-9) for case in ((2, 0.4), (3, 2.5), (4, 6.0))),
    ],
)
def test_the_expected_l1_equals_a_plain_convolution(mechanism, classes: int, scale: float, error: float) -> None:
    masses = laplace_law(scale) if mechanism is IndependentLaplace else gaussian_law(scale, math.ceil(9 * scale))
    found = mechanism(classes, 1.0, 0.1, Fraction(scale)).expected_l1()
    assert found == pytest.approx(convolved_l1(*masses, classes), rel=error)


def test_wide_noise_is_summed_at_a_smaller_scale() -> None:
    wide, wider = (IndependentLaplace(2, 1.0, 0.1, Fraction(scale)).expected_l1() for scale in (2**11, 2**20))
    assert wider == pytest.approx(2**9 * wide, rel=1e-6)
    assert wide == pytest.approx(1.5 * 2**11, rel=1e-6)  # E|x - y| of two exponentials with random signs


def test_the_escape_bound_is_one_and_wide_noise_has_the_continuous_variance() -> None:
    mechanism = CountGaussian(3, 1.0, 0.1, Fraction(5, 2))
    released = mechanism.release(np.array([5, 5, 5]), NoiseBits(1, "escape"), 200_000)
    for count in (2.0, 5.0):
        assert (released[:, 0] - 5 < -count).mean() < mechanism.escape(count) < 1
    wide = CountGaussian(3, 1.0, 0.1, Fraction(40))  # whose released counts have the variance that is bounded by
    assert wide.escape(70.0) == pytest.approx(math.exp(-(70.0**2) / (2 * wide.variance())))
    for scale in (99, 101, 10**6):
        variance = CountGaussian(4, 1.0, 0.1, Fraction(scale)).variance()
        assert variance == pytest.approx(0.75 * float(scale) ** 2, rel=1e-12)


def test_the_guarantee_composes() -> None:
    mechanism = calibrate_discrete_gaussian(5, 0.5, 1e-6)
    promised = mechanism.guarantee()
    assert Guarantee.from_dict(promised.to_dict()) == promised
    assert promised.gaussian_mu == pytest.approx(math.sqrt(2) / float(mechanism.scale))
    epsilon, delta = compose([promised] * 16, 1e-5)
    assert epsilon < 16 * 0.5 * 0.5
    assert delta <= 1e-5
    # Sixteen releases are one of the pair's Gaussian with a fourfold mu: no less than its epsilon.
    assert epsilon > float(exact_laws.gaussian.epsilon(1e-5, 4 * promised.gaussian_mu))
    assert CountGaussian(5, 9.0, 0.1, Fraction(1, 2)).guarantee().gaussian_mu is None


@pytest.mark.parametrize("classes", [7_000, 100_000, 1_000_000])
@pytest.mark.parametrize("sigma", [0.7, 5.977, 12.5])
def test_the_expected_l1_of_many_classes_is_that_of_one_noise_beside_a_normal_mean(classes: int, sigma: float) -> None:
    """The mean of so many is normal to the last digits shown, and E|N(k, s²)| has a closed form."""
    k, mass = gaussian_law(sigma, math.ceil(12 * sigma))
    deviation = math.sqrt(float(mass @ k**2) * (classes - 1)) / classes
    folded = stats.foldnorm(np.abs(k) * (classes - 1) / classes / deviation, scale=deviation).mean()
    mechanism = CountGaussian(classes, 1.0, 0.1, Fraction(sigma))
    assert mechanism.expected_l1() == pytest.approx(classes * float(mass @ folded), rel=1e-6)


def test_the_expected_l1_of_many_classes_is_that_of_releases() -> None:
    mechanism = CountGaussian(20_000, 1.0, 0.1, Fraction(3, 2))
    check_expected_l1(mechanism, mechanism.release(np.ones(20_000), NoiseBits(1, "wide"), 20) - 1)


@pytest.mark.slow
@given(st.floats(-1, 20), st.floats(0.7, 6))
@settings(derandomize=True, max_examples=examples(15))
def test_the_expected_l1_of_wide_noise_is_proportional_to_its_scale(log_scale: float, log_classes: float) -> None:
    """As that of normal noise, sqrt(2/pi C (C-1)) sigma, up to what the lattice adds."""
    sigma, classes = math.exp(log_scale) + 8, round(10**log_classes)
    normal = sigma * math.sqrt(2 / math.pi * classes * (classes - 1))
    found = CountGaussian(classes, 1.0, 0.1, Fraction(sigma).limit_denominator(2**20)).expected_l1()
    assert found == pytest.approx(normal, rel=1e-5 + 0.1 / min(sigma, 64) ** 2)


@pytest.mark.parametrize("scale", [0.4, 1.0, 2.5, 8.147])
@pytest.mark.parametrize("share", [0.0, 0.2, 0.8, 1.0, 1.5])
def test_delta_equals_enumeration_of_the_pair_independent_laplace(scale: float, share: float) -> None:
    epsilon = share * 2 / scale
    _, mass = laplace_law(scale)
    expected = exact_delta(epsilon, (mass, 1), (mass, -1))
    assert independent_laplace_delta(epsilon, scale) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.9])
def test_centring_can_only_lower_delta(epsilon: float) -> None:
    """Two classes, as released: only the difference is left of the noise."""
    scale = 2.0
    _, mass = laplace_law(scale)
    centred = exact_delta(epsilon, (np.convolve(mass, mass), 2))
    noisy = independent_laplace_delta(epsilon, scale)
    assert centred <= noisy + 1e-12
    assert (centred < 0.99 * noisy) == (epsilon > 0)  # at epsilon 0 the sign of the loss is all that counts


@pytest.mark.parametrize(("epsilon", "delta"), [(0.05, 0.05), (1.0, 1e-6), (0.3, 0.0), (4.0, 0.2)])
def test_calibration_is_the_smallest_scale(epsilon: float, delta: float) -> None:
    mechanism = calibrate_independent_laplace(3, epsilon, delta)
    assert mechanism.delta_at(epsilon) <= delta
    assert independent_laplace_delta(epsilon, float(mechanism.scale) * (1 - 2**-17)) > delta
    assert mechanism.scale * Fraction(epsilon) >= 2 or delta > 0


@pytest.mark.parametrize(("classes", "scale"), [(2, Fraction(1, 3)), (3, Fraction(5, 2)), (6, Fraction(40))])
def test_moments_of_a_release(classes: int, scale: Fraction) -> None:
    mechanism = IndependentLaplace(classes, 1.0, 0.1, scale)
    counts = np.arange(classes) + 5
    noise = mechanism.release(counts, NoiseBits(1, "moments"), 200_000) - counts
    assert np.abs(noise.sum(axis=1)).max() < 1e-9
    np.testing.assert_allclose(np.cov(noise.T), mechanism.covariance(9), atol=0.03 * mechanism.variance())
    check_expected_l1(mechanism, noise)
    for count in (3.0, 60.0):
        assert (noise[:, 0] < -count).mean() <= mechanism.escape(count) <= 1


@pytest.mark.parametrize(("classes", "count", "reach"), [(2, 30.0, 30), (3, 40.0, 30), (6, 50.0, 30)])
def test_a_count_escapes_where_the_noise_of_some_class_reaches_far(classes: int, count: float, reach: int) -> None:
    k, mass = laplace_law(2.5)
    union = classes * mass[np.abs(k) >= reach].sum()
    assert IndependentLaplace(classes, 1.0, 0.1, Fraction(5, 2)).escape(count) == pytest.approx(union, rel=1e-9)


SHAPES = [(2, 3.0), (2, 0.7), (3, 2.0), (3, 0.4), (4, 1.25), (5, 0.6)]


def lattice(classes: int, scale: float, reach: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The integer vectors of sum 0 that carry all but e^-17 of the law, and their probabilities."""
    reach = reach or {2: math.ceil(18 * scale), 3: math.ceil(17 * scale)}.get(classes, math.ceil(9 * scale) + 3)
    first = np.array(list(itertools.product(range(-reach, reach + 1), repeat=classes - 1)))
    z = np.column_stack([first, -first.sum(axis=1)])
    mass = np.exp(-np.abs(z).sum(axis=1) / scale)
    return z, mass / mass.sum()


@pytest.mark.parametrize(
    ("classes", "scale", "reach"),
    [(2, Fraction(7, 2), 90), (3, Fraction(3, 2), 45), (4, Fraction(1, 2), 15), (5, Fraction(1, 4), 7)],
)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 1.1])
def test_delta_equals_enumeration_of_the_lattice(classes: int, scale: Fraction, reach: int, share: float) -> None:
    epsilon = share * float(2 / scale)
    ours = lattice_laplace_delta(epsilon, classes, float(scale))
    z, law = lattice(classes, float(scale), reach)
    moved = z + np.eye(classes, dtype=int)[1] - np.eye(classes, dtype=int)[0]
    other = law * np.exp((np.abs(z).sum(axis=1) - np.abs(moved).sum(axis=1)) / float(scale))
    assert ours == pytest.approx(np.maximum(law - math.exp(epsilon) * other, 0.0).sum(), abs=1e-10)
    assert (ours > 0) == (share < 1)


@pytest.mark.parametrize("scale", [0.3, 2.0, 9.05, 400.0])
@pytest.mark.parametrize("classes", [2, 5, 10, 100])
def test_the_recurrence_equals_the_polynomials(classes: int, scale: float) -> None:
    with mpmath.workdps(60):
        x = mpmath.exp(-2 / mpmath.mpf(scale))

        def polynomial(k: int) -> mpmath.mpf:
            return mpmath.fsum(math.comb(k, j) ** 2 * x**j for j in range(k + 1))

        expected = polynomial(classes - 1) / polynomial(classes - 2)
        assert ratio(classes - 1, scale) == pytest.approx(float(expected), rel=1e-13)


@pytest.mark.parametrize(("classes", "scale"), [(2, 3.0), (5, 9.05), (10, 2.0), (30, 40.0)])
def test_the_probability_equals_a_convolution(classes: int, scale: float) -> None:
    """P[z_i <= 0 <= z_j | sum 0] with the sum of the other classes by repeated convolution, for any number of them."""
    reach = math.ceil(60 * scale)
    k = np.arange(-reach, reach + 1)
    mass = np.exp(-np.abs(k) / scale)
    size = 2 ** math.ceil(math.log2(2 * classes * (2 * reach + 1)))
    waves = np.fft.rfft(mass, size)

    def at_zero(product: np.ndarray) -> float:
        return float(np.fft.irfft(product, size)[classes * reach % size])

    low, high = (np.fft.rfft(np.where(kept, mass, 0), size) for kept in (k <= 0, k >= 0))
    probability = at_zero(low * high * waves ** (classes - 2)) / at_zero(waves**classes)
    assert 1 / ratio(classes - 1, scale) == pytest.approx(probability, rel=1e-9)


@pytest.mark.parametrize(("classes", "scale"), SHAPES)
def test_moments_equal_sums_over_the_lattice(classes: int, scale: float) -> None:
    z, law = lattice(classes, scale)
    mechanism = LatticeLaplace(classes, 1.0, 0.1, Fraction(scale))
    assert mechanism.expected_l1() == pytest.approx(law @ np.abs(z).sum(axis=1), rel=1e-4)
    covariance = np.einsum("ni,nj,n->ij", z, z, law)
    np.testing.assert_allclose(mechanism.covariance(9), covariance, atol=1e-3 * mechanism.variance() + 1e-9)
    for count in (1, 2, 5):
        assert law[z[:, 0] <= -count].sum() <= mechanism.escape(count) * (1 + 1e-9)


@pytest.mark.parametrize(("classes", "scale"), [(2, Fraction(5, 2)), (3, Fraction(4, 3)), (4, Fraction(2, 3))])
def test_draws_follow_the_law_on_the_lattice(classes: int, scale: Fraction) -> None:
    draws = sample(NoiseBits(1, "lattice"), scale, classes, 200_000)
    assert (draws.sum(axis=1) == 0).all()
    z, law = lattice(classes, float(scale))
    width = 2 * np.abs(z).max() + 1

    def code(rows: np.ndarray) -> np.ndarray:
        return np.ravel_multi_index(tuple((rows[:, :-1] + width // 2).T), (width,) * (classes - 1), mode="clip")

    found = dict(zip(*np.unique(code(draws), return_counts=True), strict=True))
    observed = np.array([found.get(each, 0) for each in code(z)])
    common = law * len(draws) >= 20
    for wrong in (False, True):
        expected = law ** (1 / 1.03) / (law ** (1 / 1.03)).sum() if wrong else law
        expected = expected * len(draws)
        p = stats.chisquare(
            np.append(observed[common], len(draws) - observed[common].sum()),
            np.append(expected[common], len(draws) - expected[common].sum()),
        ).pvalue
        assert (p < 1e-6) if wrong else (p > 1e-3)


@given(st.floats(-4, 3), st.floats(-28, -0.1), st.integers(2, 40))
@settings(derandomize=True)
def test_calibration_keeps_its_claim_and_a_smaller_scale_does_not(log_epsilon, log_delta, classes) -> None:
    epsilon, delta = math.exp(log_epsilon), math.exp(log_delta)
    mechanism = calibrate_lattice_laplace(classes, epsilon, delta)
    assert mechanism.delta_at(epsilon) <= delta
    smaller = float(mechanism.scale) * (1 - 2**-16)
    assert lattice_laplace_delta(epsilon, classes, smaller) > delta
    pure = calibrate_lattice_laplace(classes, epsilon, 0.0)
    assert pure.scale >= mechanism.scale
    assert pure.scale * Fraction(epsilon) >= 2 > pure.scale * Fraction(epsilon) * (1 - Fraction(1, 2**18))
    assert pure.delta_at(epsilon) == 0


@pytest.mark.parametrize("epsilon", [2 / 7, math.nextafter(2 / 7, 0), math.nextafter(2 / 7, 1)])
def test_a_loss_just_beyond_epsilon_is_not_lost_in_rounding(epsilon: float) -> None:
    with mpmath.workdps(50):
        beyond = -mpmath.expm1(mpmath.mpf(epsilon) - mpmath.mpf(2) / 7)
    assert loss_beyond(epsilon, 7.0) == pytest.approx(max(0.0, float(beyond)), rel=1e-12, abs=0)
    assert float(beyond) != 0
