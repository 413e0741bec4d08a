"""The exact delta of noisy-wtd-LLP against known figures, Gauss-Legendre quadrature, many digits and Monte Carlo."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import gammaln, ndtr

from federation.contract.errors import InputError
from federation.mechanisms.bag_sums.calibration import delta, width
from federation.mechanisms.bag_sums.design import BagDesign
from federation.mechanisms.noise import gaussian

UNIT = (0.0, 1.0)
NODES, WEIGHTS = np.polynomial.legendre.leggauss(80)


def plain_delta(epsilon: float, r: np.ndarray) -> np.ndarray:
    """Balle and Wang's formula as it stands."""
    return ndtr(r / 2 - epsilon / r) - math.exp(epsilon) * ndtr(-r / 2 - epsilon / r)


def over_angles(epsilon: float, ratio: float, q: int, own: bool) -> float:
    """E delta over the angle, on 40 panels of 80 Gauss-Legendre nodes; q other noisy labels."""
    if q == 0:
        return float(plain_delta(epsilon, np.array(ratio))) if own else 1.0
    edges = np.linspace(0, math.pi / 2, 41)
    half = np.diff(edges)[:, None] / 2
    t = edges[:-1, None] + half * (NODES + 1)
    constant = math.exp(math.log(2 / math.sqrt(math.pi)) + gammaln((q + 1) / 2) - gammaln(q / 2))
    reached = ratio * (np.sin(t) if own else np.tan(t))
    return float((half * WEIGHTS * constant * np.cos(t) ** (q - 1) * plain_delta(epsilon, reached)).sum())


def quadrature(epsilon: float, design: BagDesign, ratio: float) -> tuple[float, float]:
    """Delta of a record without noise of its own, and of one with."""
    results = []
    for own in (False, True):
        law = stats.hypergeom(design.records - 1, design.noisy - own, design.size - 1)
        terms = [law.pmf(q) * over_angles(epsilon, ratio, q, own) for q in range(design.size) if law.pmf(q) > 0]
        results.append(design.inclusion * math.fsum(terms))
    return results[0], results[1]


@given(st.integers(2, 40), st.integers(1, 6), st.floats(0.01, 0.99), st.floats(0, 4), st.floats(0.1, 30), st.data())
@example(2, 100, 0.05, 0.01, 10.0, None)
@settings(derandomize=True, deadline=None, max_examples=40)
def test_independent_quadrature(size: int, bags: int, share: float, epsilon: float, ratio: float, data) -> None:
    spare = 0 if data is None else data.draw(st.integers(0, 50))
    records = bags * size + spare
    design = BagDesign(records, bags, size, noisy=max(1, min(records - 1, round(share * records))))
    expected = max(quadrature(epsilon, design, ratio))
    found = delta(epsilon, design, sigma=1 / ratio, label_range=UNIT)
    assert found == pytest.approx(expected, rel=1e-7, abs=1e-13)


def test_a_record_with_noise_of_its_own_can_be_the_worse_one() -> None:
    design = BagDesign(200, 100, 2, noisy=10)
    outside, inside = quadrature(0.01, design, 10.0)
    assert (round(outside, 4), round(inside, 4)) == (0.9950, 0.9953)
    assert delta(0.01, design, sigma=0.1, label_range=UNIT) == pytest.approx(inside, rel=1e-9)


@pytest.mark.parametrize(("epsilon", "ratio", "size"), [(1.0, 1.0, 20), (4.0, 0.5, 30), (2.0, 0.2, 12), (0.0, 1.0, 9)])
def test_many_digits(epsilon: float, ratio: float, size: int) -> None:
    """All labels noisy: one integral, here with 40 digits; delta goes down to 1e-40."""
    with mpmath.workdps(40):
        e, c, q = mpmath.mpf(epsilon), mpmath.mpf(ratio), size - 1

        def normal(x):
            return mpmath.erfc(-x / mpmath.sqrt(2)) / 2

        def integrand(t):
            r = c * mpmath.sin(t)
            return mpmath.cos(t) ** (q - 1) * (normal(r / 2 - e / r) - mpmath.exp(e) * normal(-r / 2 - e / r))

        constant = 2 * mpmath.gamma(mpmath.mpf(q + 1) / 2) / (mpmath.sqrt(mpmath.pi) * mpmath.gamma(mpmath.mpf(q) / 2))
        expected = constant * mpmath.quad(integrand, [mpmath.mpf(1) / 100, 0.25, 0.5, 0.75, 1, 1.25, mpmath.pi / 2])
        if epsilon == 0:
            expected += constant * mpmath.quad(integrand, [mpmath.mpf(10) ** -30, mpmath.mpf(1) / 100])
    design = BagDesign(5 * size, 5, size, noisy=5 * size)
    assert delta(epsilon, design, sigma=1 / ratio, label_range=UNIT) == pytest.approx(float(expected), rel=1e-8)


TABLE = {
    0.05: (0.36, 0.15, 3.4e-2, 5.4e-3, 6.2e-4),
    0.1: (0.15, 3.4e-2, 5.3e-3, 6.2e-4, 4.2e-5),
    0.2: (3.3e-2, 5.2e-3, 6.1e-4, 4.2e-5, 1.2e-6),
    1.0: (1.1e-4, 6.7e-6, 1.5e-7, 8.4e-10, 6.7e-13),
}


@pytest.mark.parametrize("share", TABLE)
def test_the_published_setting_at_epsilon_one(share: float) -> None:
    """A label range of one noise scale, 1000 bags, all records in a bag: two significant digits."""
    for size, expected in zip((32, 64, 128, 256, 512), TABLE[share], strict=True):
        records = 1000 * size
        found = delta(1.0, BagDesign(records, 1000, size, noisy=round(share * records)), sigma=1.0, label_range=UNIT)
        assert float(f"{found:.1e}") == expected


def test_unit_noise_on_weeks_worked_protects_nobody() -> None:
    design = BagDesign(1024 * 512, 1024, 512, noisy=52_429)
    assert delta(1.0, design, sigma=1.0, label_range=(0, 52)) == pytest.approx(0.77, abs=0.005)
    scaled = delta(1.0, design, sigma=52.0, label_range=(0, 52))
    assert scaled == pytest.approx(delta(1.0, design, sigma=1.0, label_range=(-0.5, 0.5)), rel=1e-12)


def test_stratified_signs_are_a_gaussian_mechanism() -> None:
    design = BagDesign(25_600, 100, 256, per_bag=26, weights="signs")
    found = delta(1.0, design, sigma=1.0, label_range=UNIT)
    assert found == pytest.approx(float(gaussian.delta(1.0, 1 / math.sqrt(26))), rel=1e-12)
    assert float(f"{found:.1e}") == 1.0e-8


def test_signs_with_a_fixed_noisy_set_sum_over_counts() -> None:
    design = BagDesign(60, 5, 12, noisy=20, weights="signs")
    law = stats.hypergeom(59, 20, 11)
    terms = [law.pmf(q) * (float(gaussian.delta(0.7, 2 / math.sqrt(q))) if q else 1.0) for q in range(12)]
    assert delta(0.7, design, sigma=0.5, label_range=UNIT) == pytest.approx(math.fsum(terms), rel=1e-9)


def test_stratified_gaussian_weights_by_monte_carlo() -> None:
    rng = np.random.default_rng(0)
    w = rng.normal(size=(400_000, 8))
    noisy = rng.permuted(np.tile(np.arange(8) < 3, (len(w), 1)), axis=1)
    reached = np.abs(w[:, 0]) / np.sqrt((w**2 * noisy).sum(axis=1))
    values = gaussian.delta(0.5, reached)
    found = delta(0.5, BagDesign(100, 10, 8, per_bag=3), sigma=1.0, label_range=UNIT)
    assert found == pytest.approx(0.8 * values.mean(), abs=4 * 0.8 * values.std() / math.sqrt(len(w)))


def test_fewer_bags_only_make_it_less_likely_to_be_in_one() -> None:
    one, all_ = (delta(1.0, BagDesign(1280, m, 128, noisy=256), sigma=1.0, label_range=UNIT) for m in (1, 10))
    assert one == pytest.approx(all_ / 10, rel=1e-12)


@given(st.integers(1, 30), st.floats(0, 3), st.floats(0.1, 5))
@settings(derandomize=True, deadline=None, max_examples=25)
def test_delta_falls_with_epsilon_and_noise_and_stays_above_its_floor(noisy: int, epsilon: float, sigma: float) -> None:
    design = BagDesign(60, 3, 20, noisy=noisy)
    found = delta(epsilon, design, sigma=sigma, label_range=UNIT)
    assert design.noise_free <= found <= 1
    assert delta(epsilon + 0.1, design, sigma=sigma, label_range=UNIT) <= found
    assert delta(epsilon, design, sigma=1.2 * sigma, label_range=UNIT) <= found * (1 + 1e-9)


def test_the_floor_is_what_no_noise_repairs() -> None:
    design = BagDesign(6400, 100, 64, noisy=640)
    assert delta(30.0, design, sigma=1e4, label_range=UNIT) == pytest.approx(design.noise_free, rel=1e-3)


def test_what_doubles_cannot_hold_counts_as_nothing() -> None:
    """Noise far beyond the range: bags of one or two other noisy labels, whose tails decide everything."""
    design = BagDesign(21, 7, 3, noisy=19)
    found = delta(0.6953125, design, sigma=math.exp(4), label_range=UNIT)
    assert found == pytest.approx(max(quadrature(0.6953125, design, math.exp(-4))), rel=1e-7)
    assert delta(3.0, BagDesign(21, 7, 3, noisy=21), sigma=1e8, label_range=UNIT) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": -1.0}, "epsilon must be a finite number >= 0"),
        ({"epsilon": math.nan}, "epsilon must be a finite number"),
        ({"sigma": 0.0}, "sigma must be a positive finite number, got 0"),
        ({"sigma": math.nan}, "sigma must be a positive"),
        ({"sigma": 1e-12}, "sigma must be within a factor 1e9 of the label range"),
        ({"charge": -1e-9}, "charge must be a finite number >= 0"),
        ({"charge": math.nan}, "charge must be a finite number >= 0"),
        ({"label_range": (1.0, 1.0)}, "label_range must be two"),
        ({"label_range": (0.0, math.inf)}, "label_range must be two"),
    ],
)
def test_bad_numbers_are_refused(arguments: dict, message: str) -> None:
    given_ = {"epsilon": 1.0, "sigma": 1.0, "label_range": UNIT} | arguments
    with pytest.raises(InputError, match=message):
        delta(given_.pop("epsilon"), BagDesign(100, 5, 20, noisy=10), **given_)


def test_noise_may_be_a_billionth_of_the_range_or_a_billion_times_it() -> None:
    design = BagDesign(100, 5, 20, noisy=10)
    nearly_none, huge = (delta(1.0, design, sigma=1.0, label_range=(0.0, high)) for high in (1e9, 1e-9))
    assert 1 - 1e-6 < nearly_none < 1
    assert huge == pytest.approx(design.noise_free, rel=1e-6)
    for high in (math.nextafter(1e9, math.inf), math.nextafter(1e-9, 0)):
        with pytest.raises(InputError, match="within a factor 1e9"):
            delta(1.0, design, sigma=1.0, label_range=(0.0, high))


@pytest.mark.parametrize("label_range", [(0.0, 9e-101), (1.0, 1.0), (2.0, 1.0), (-1.1e100, 0.0), (1e300, 1.1e300)])
def test_ranges_whose_squares_leave_the_doubles_are_refused(label_range):
    with pytest.raises(InputError, match="label_range must be two numbers up to 1e\\+100"):
        width(label_range)
