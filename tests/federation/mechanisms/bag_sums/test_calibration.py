"""Releases together: known figures, Monte Carlo, closed forms, a double integral, and never below a single release.

The exact delta of noisy-wtd-LLP against known figures, Gauss-Legendre quadrature, many digits and Monte Carlo.

Calibration meets its target from the safe side, at the smallest noise that does.
"""

import math

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import pld_pmf, privacy_loss_distribution
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import special, stats
from scipy.special import gammaln, ndtr
from support.examples import examples
from support.refusals import refused

from federation.contract.errors import InputError
from federation.mechanisms.bag_sums import calibration as composition
from federation.mechanisms.bag_sums.calibration import composed_delta, delta, smallest_sigma, smallest_tau, width
from federation.mechanisms.bag_sums.design import BagDesign, mean_delta_chi
from federation.mechanisms.noise import gaussian

UNIT = (0.0, 1.0)


def together(epsilon: float, design: BagDesign, releases: int, sigma: float = 1.0) -> float:
    return composed_delta(epsilon, design, sigma=sigma, label_range=UNIT, releases=releases)


def single(epsilon: float, design: BagDesign, sigma: float = 1.0) -> float:
    return delta(epsilon, design, sigma=sigma, label_range=UNIT)


def test_known_figures() -> None:
    """k = 128, a fifth of the labels noisy, a label range of one noise scale, epsilon 1."""
    design = BagDesign(128_000, 1000, 128, noisy=25_600)
    expected = {1: 6.1e-4, 2: 1.8e-3, 4: 6.2e-3, 8: 2.3e-2, 16: 7.7e-2}
    assert {t: float(f"{together(1.0, design, t):.1e}") for t in expected} == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("design", "sigma", "epsilon"),
    [
        (BagDesign(320, 8, 32, noisy=64), 1.0, 1.0),
        (BagDesign(320, 8, 32, noisy=320), 0.5, 0.5),
        (BagDesign(320, 8, 32, noisy=64, weights="signs"), 2.0, 0.3),
        (BagDesign(320, 8, 32, per_bag=4), 2.0, 0.3),
    ],
)
def test_monte_carlo(design: BagDesign, sigma: float, epsilon: float) -> None:
    """R² summed over six releases, the bag and the weights of each drawn anew."""
    rng, runs, releases = np.random.default_rng(1), 100_000, 6
    worst, error = 0.0, 0.0
    for own in (False, True):
        if (not own and design.noisy == design.records) or (own and design.per_bag is not None):
            continue
        total = np.zeros(runs)
        for _ in range(releases):
            mine = np.full(runs, own)
            if design.per_bag is not None:
                mine = rng.random(runs) < design.per_bag / design.size
                others = design.per_bag - mine
            else:
                others = rng.hypergeometric(
                    design.noisy - own, design.records - 1 - (design.noisy - own), design.size - 1, runs
                )
            if design.weights == "signs":
                weight, noise = np.ones(runs), others.astype(float)
            else:
                weight = rng.normal(size=runs) ** 2
                noise = np.where(others > 0, rng.chisquare(np.maximum(others, 1)), 0.0)
            with np.errstate(divide="ignore"):
                square = weight / (noise + weight * mine) / sigma**2
            total += np.where(rng.random(runs) < design.inclusion, square, 0.0)
        values = np.where(
            np.isinf(total), 1.0, gaussian.delta(epsilon, np.sqrt(np.clip(total, 1e-12, 1e8))) * (total > 0)
        )
        if values.mean() > worst:
            worst, error = values.mean(), values.std() / math.sqrt(runs)
    found = together(epsilon, design, releases, sigma)
    assert worst - 4 * error <= found <= (worst + 4 * error) * 1.01


def test_two_releases_as_a_double_integral() -> None:
    """All labels noisy: r² is c² times a Beta(1/2, (k - 1)/2)."""
    nodes, weights = np.polynomial.legendre.leggauss(200)
    t, w = (nodes + 1) * math.pi / 4, weights * math.pi / 4
    density = 2 * np.sin(t) ** 0 * np.cos(t) ** 8 * math.gamma(5) / (math.sqrt(math.pi) * math.gamma(4.5))
    assert float(w @ density) == pytest.approx(1, rel=1e-9)
    reached = np.hypot(np.sin(t)[:, None], np.sin(t)[None, :])
    expected = float((w * density) @ gaussian.delta(0.5, reached) @ (w * density))
    found = together(0.5, BagDesign(40, 4, 10, noisy=40), 2)
    assert expected <= found <= expected * 1.005


@pytest.mark.parametrize("releases", [2, 7, 100])
def test_stratified_signs_compose_in_closed_form(releases: int) -> None:
    sure = BagDesign(1000, 10, 100, per_bag=16, weights="signs")
    expected = float(gaussian.delta(1.0, math.sqrt(releases) / 4))
    assert together(1.0, sure, releases) == pytest.approx(expected, rel=1e-12)
    # The grid must find the same, when records are in a bag but for one of a million times.
    nearly = BagDesign(1_000_001, 10_000, 100, per_bag=16, weights="signs")
    assert expected * 0.9999 <= together(1.0, nearly, releases) <= expected * 1.01 + 1e-12


@pytest.mark.parametrize(
    ("releases", "sigma", "epsilon"),
    [
        (8, 1.0, 0.5),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                (100, 60.0, 1.0),
                (10_000, 60.0, 1.0),
                (10_000, 20.0, 0.1),
                (10_000, 300.0, 0.1),
                (10_000, 300.0, 0.0),
                (10**6, 600.0, 1.0),
            )
        ),
    ],
)
def test_many_releases_cost_what_a_binomial_number_of_gaussian_ones_does(releases, sigma, epsilon) -> None:
    """A record is in a bag only sometimes."""
    design = BagDesign(400, 2, 50, per_bag=5, weights="signs")
    times = np.arange(1, 1 + min(releases, round(releases / 2 + 100)))
    expected = float(stats.binom(releases, 0.25).pmf(times) @ gaussian.delta(epsilon, np.sqrt(times / 5) / sigma))
    found = together(epsilon, design, releases, sigma)
    assert expected <= found <= expected * (1.005 if releases > 8 else 1.01) + 1e-12 * max(1, releases / 1000)


def test_no_probability_is_lost_to_the_rounding_of_the_last_cell() -> None:
    """sinh(asinh(x)) may be 1e-16 below x, beyond which lies 1e-8 of the probability where two share a bag."""
    kinds = [parts for noisy in range(1, 41) for parts in BagDesign(40, 20, 2, noisy=noisy).exposures()]
    for part in (part for parts in kinds for part in parts if part.own):
        _, chances = composition._reached(part, "gaussian", 1.0)
        assert math.fsum(chances) == pytest.approx(float(part.probability.sum()), abs=1e-12)


@pytest.mark.parametrize("sigma", [30.0, 100.0, 250.0])
def test_ten_thousand_releases_by_their_characteristic_function(sigma: float) -> None:
    """Bags of two, both noisy: r² is c² sin² t with t uniform, so a sum of them has a Bessel function's power."""
    releases, points, reach = 10_000, 2**12, 8 * math.sqrt(10_000 / 8)
    frequency = np.fft.fftfreq(points, 2 * reach / points) * 2 * math.pi
    density = np.fft.fftshift(np.fft.fft(special.j0(frequency / 2) ** releases)).real / points
    around = (np.arange(points) - points // 2) * 2 * reach / points
    expected = float(density @ gaussian.delta(0.8, np.sqrt(releases / 2 + around) / sigma))
    assert density.sum() == pytest.approx(1, rel=1e-12)
    found = together(0.8, BagDesign(20, 10, 2, noisy=20), releases, sigma)
    assert expected * (1 - 1e-9) <= found <= expected * 1.01 + 1e-11


@pytest.mark.parametrize("pessimistic", [False, True])
def test_it_lies_where_an_independent_accountant_says(pessimistic: bool) -> None:
    """Losses of Gaussian mechanisms whose r is published, mixed by how likely each is, and rounded to one side."""
    design, sigma, releases, interval = BagDesign(320, 4, 8, noisy=280, weights="signs"), 1.5, 16, 1e-3
    deltas = []
    for (part,) in design.exposures():
        mixed = {0: 1 - float(part.probability.sum())}
        for noises, chance in zip(part.others + part.own, part.probability, strict=True):
            if not noises:  # nothing hides the label
                continue
            one = privacy_loss_distribution.from_gaussian_mechanism(
                math.sqrt(noises) * sigma,
                pessimistic_estimate=pessimistic,
                value_discretization_interval=interval,
                use_connect_dots=pessimistic,
            )
            dense = one._pmf_remove.to_dense_pmf()
            for loss, mass in enumerate(dense._probs, dense._lower_loss):
                mixed[loss] = mixed.get(loss, 0.0) + float(chance) * mass
        infinite = max(0.0, 1 - math.fsum(mixed.values())) if pessimistic else 0.0
        pmf = pld_pmf.create_pmf(mixed, interval, infinite, pessimistic)
        composed = privacy_loss_distribution.PrivacyLossDistribution(pmf).self_compose(releases)
        deltas.append(composed.get_delta_for_epsilon(1.0))
    found = together(1.0, design, releases, sigma)
    assert found <= max(deltas) * 1.0005 if pessimistic else max(deltas) <= found
    assert found == pytest.approx(max(deltas), rel=0.01)


@pytest.mark.slow
@given(st.integers(4, 64), st.floats(0.05, 1), st.floats(0, 3), st.integers(2, 40), st.floats(0.3, 4))
@settings(derandomize=True, max_examples=examples(6))
def test_more_releases_never_cost_less(size: int, share: float, epsilon: float, releases: int, sigma: float) -> None:
    design = BagDesign(5 * size, 5, size, noisy=max(1, round(share * 5 * size)))
    several = together(epsilon, design, releases, sigma)
    assert single(epsilon, design, sigma) <= several <= 1
    assert several <= together(epsilon, design, releases + 1, sigma) * 1.02 + 1e-11
    # Every bag without noise in any of the releases reveals the label.
    assert several >= -math.expm1(releases * math.log1p(-min(design.noise_free, 1 - 1e-12))) * (1 - 1e-6)


def test_at_a_large_epsilon_several_releases_still_cost_more_than_one_and_less_than_at_a_small() -> None:
    design = BagDesign(1280, 10, 128, noisy=256)
    assert together(1.0, design, 1) == single(1.0, design)
    one, several = (together(30.0, design, releases, sigma=0.05) for releases in (1, 3))
    assert one < several < together(20.0, design, 3, sigma=0.05) < 1


@pytest.mark.parametrize(("releases", "least"), [(2, 1e-12), (1000, 1e-12), (3000, 3e-12)])
def test_no_less_is_charged_than_rounding_may_hide(releases: int, least: float) -> None:
    design = BagDesign(100, 5, 20, noisy=100)
    assert least <= together(200.0, design, releases, sigma=20.0) < 1.01 * least


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
@settings(derandomize=True)
def test_independent_quadrature(size: int, bags: int, share: float, epsilon: float, ratio: float, data) -> None:
    spare = 0 if data is None else data.draw(st.integers(0, 50))
    records = bags * size + spare
    design = BagDesign(records, bags, size, noisy=max(1, min(records - 1, round(share * records))))
    expected = max(quadrature(epsilon, design, ratio))
    found = delta(epsilon, design, sigma=1 / ratio, label_range=UNIT)
    assert found == pytest.approx(expected, rel=1e-9 if data is None else 1e-7, abs=1e-13)


@pytest.mark.slow
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
        found = single(1.0, BagDesign(records, 1000, size, noisy=round(share * records)))
        assert float(f"{found:.1e}") == expected


def test_unit_noise_on_weeks_worked_protects_nobody() -> None:
    design = BagDesign(1024 * 512, 1024, 512, noisy=52_429)
    assert delta(1.0, design, sigma=1.0, label_range=(0, 52)) == pytest.approx(0.77, abs=0.005)
    scaled = delta(1.0, design, sigma=52.0, label_range=(0, 52))
    assert scaled == pytest.approx(delta(1.0, design, sigma=1.0, label_range=(-0.5, 0.5)), rel=1e-12)


def test_stratified_signs_are_a_gaussian_mechanism_and_need_its_noise() -> None:
    found = single(1.0, BagDesign(25_600, 100, 256, per_bag=26, weights="signs"))
    assert found == pytest.approx(float(gaussian.delta(1.0, 1 / math.sqrt(26))), rel=1e-12)
    assert float(f"{found:.1e}") == 1.0e-8
    design = BagDesign(6400, 100, 64, per_bag=16, weights="signs")
    expected = 1 / gaussian.mu(1.0, 1e-6) / 4
    assert smallest_sigma(1.0, 1e-6, design, label_range=UNIT) == pytest.approx(expected, rel=1e-8)


def test_signs_with_a_fixed_noisy_set_sum_over_counts() -> None:
    design = BagDesign(60, 5, 12, noisy=20, weights="signs")
    law = stats.hypergeom(59, 20, 11)
    terms = [law.pmf(q) * (float(gaussian.delta(0.7, 2 / math.sqrt(q))) if q else 1.0) for q in range(12)]
    assert single(0.7, design, 0.5) == pytest.approx(math.fsum(terms), rel=1e-9)


@pytest.mark.slow
def test_stratified_gaussian_weights_by_monte_carlo() -> None:
    rng = np.random.default_rng(0)
    w = rng.normal(size=(400_000, 8))
    noisy = rng.permuted(np.tile(np.arange(8) < 3, (len(w), 1)), axis=1)
    reached = np.abs(w[:, 0]) / np.sqrt((w**2 * noisy).sum(axis=1))
    values = gaussian.delta(0.5, reached)
    found = single(0.5, BagDesign(100, 10, 8, per_bag=3))
    assert found == pytest.approx(0.8 * values.mean(), abs=4 * 0.8 * values.std() / math.sqrt(len(w)))


@given(st.integers(1, 30), st.floats(0, 3), st.floats(0.1, 5))
@settings(derandomize=True, max_examples=examples(12))
def test_delta_falls_with_epsilon_and_noise_and_stays_above_its_floor(noisy: int, epsilon: float, sigma: float) -> None:
    design = BagDesign(60, 3, 20, noisy=noisy)
    found = single(epsilon, design, sigma)
    assert design.noise_free <= found <= 1
    assert single(epsilon + 0.1, design, sigma) <= found
    assert single(epsilon, design, 1.2 * sigma) <= found * (1 + 1e-9)


def test_what_doubles_cannot_hold_counts_as_nothing() -> None:
    """Noise far beyond the range: bags of one or two other noisy labels, whose tails decide everything."""
    found = single(0.6953125, BagDesign(21, 7, 3, noisy=19), math.exp(4))
    assert found == pytest.approx(max(quadrature(0.6953125, BagDesign(21, 7, 3, noisy=19), math.exp(-4))), rel=1e-7)
    assert single(3.0, BagDesign(21, 7, 3, noisy=21), 1e8) == 0


DESIGN = BagDesign(100, 5, 20, noisy=10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": -1.0}, r"epsilon.*0"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"sigma": 0.0}, r"sigma.*0"),
        ({"sigma": math.nan}, "sigma"),
        ({"sigma": 1e-12}, r"sigma.*1e9"),
        *(({"charge": charge}, r"charge.*0") for charge in (-1e-9, math.nan)),
        *(({"label_range": (low, high)}, "label_range") for low, high in ((1.0, 1.0), (0.0, math.inf))),
        *(({"releases": releases}, r"releases.*1") for releases in (0, -1, 1.5, True)),
    ],
)
def test_bad_numbers_are_refused(arguments: dict, message: str) -> None:
    measure = composed_delta if "releases" in arguments else delta
    with pytest.raises(InputError, match=message):
        measure(**{"epsilon": 1.0, "design": DESIGN, "sigma": 1.0, "label_range": UNIT} | arguments)


def test_noise_may_be_a_billionth_of_the_range_or_a_billion_times_it() -> None:
    nearly_none, huge = (delta(1.0, DESIGN, sigma=1.0, label_range=(0.0, high)) for high in (1e9, 1e-9))
    assert 1 - 1e-6 < nearly_none < 1
    assert huge == pytest.approx(DESIGN.noise_free, rel=1e-6)  # the floor, which no noise repairs
    for high in (math.nextafter(1e9, math.inf), math.nextafter(1e-9, 0)):
        refused("1e9", delta, 1.0, DESIGN, sigma=1.0, label_range=(0.0, high))


@pytest.mark.parametrize("label_range", [(0.0, 9e-101), (1.0, 1.0), (2.0, 1.0), (-1.1e100, 0.0), (1e300, 1.1e300)])
def test_ranges_whose_squares_leave_the_doubles_are_refused(label_range):
    with pytest.raises(InputError, match=r"label_range.*1e\+100"):
        width(label_range)


@pytest.mark.parametrize(("share", "size"), [(0.05, 2128), (0.1, 1063), (0.2, 531), (0.3, 353), (1.0, 93)])
def test_known_sizes_for_a_millionth(share: float, size: int) -> None:
    enough, fewer = (single(1.0, BagDesign(1000 * k, 1000, k, noisy=round(share * 1000 * k))) for k in (size, size - 1))
    assert enough <= 1e-6 < fewer


@pytest.mark.parametrize(("epsilon", "tau"), [(0.5, 18.08), (1.0, 9.854), (2.0, 5.436), (4.0, 3.068)])
def test_known_noise_on_weighted_sums_for_a_millionth(epsilon: float, tau: float) -> None:
    found = smallest_tau(epsilon, 1e-6, label_range=(0, 52))
    assert found / 52 == pytest.approx(tau, rel=3e-4)
    assert mean_delta_chi(epsilon, 52 / found) <= 1e-6 < mean_delta_chi(epsilon, 52 / found * (1 + 1e-7))


@given(st.floats(0.05, 5), st.floats(-14, -1), st.integers(20, 200), st.floats(0.5, 1))
@settings(derandomize=True, max_examples=examples(4))
def test_the_noise_meets_the_target(epsilon: float, exponent: float, size: int, share: float) -> None:
    design = BagDesign(7 * size, 7, size, noisy=max(1, round(share * 7 * size)))
    target = 10**exponent + 2 * design.noise_free
    sigma = smallest_sigma(epsilon, target, design, label_range=(-3, 5))
    assert delta(epsilon, design, sigma=sigma, label_range=(-3, 5)) <= target
    assert delta(epsilon, design, sigma=sigma * (1 - 1e-7), label_range=(-3, 5)) > target * (1 - 1e-6)


def test_labels_get_noise_even_where_none_would_meet_the_target() -> None:
    """A label is in a bag with a chance of a hundredth only; whoever is drawn still gets a billionth of the range."""
    seldom = BagDesign(1000, 1, 10, noisy=1000)
    assert smallest_sigma(1.0, 0.5, seldom, label_range=(0.0, 4.0)) == pytest.approx(4e-9)


@pytest.mark.parametrize(
    ("epsilon", "target", "message"),
    [
        *((epsilon, 1e-6, "epsilon") for epsilon in (-0.1, math.nan, math.inf)),
        *((1.0, target, r"delta.*0.*1") for target in (0.0, 1.0, -1e-6)),
    ],
)
def test_impossible_targets_are_refused(epsilon: float, target: float, message: str) -> None:
    refused(message, smallest_tau, epsilon, target, label_range=UNIT)
    refused(message, smallest_sigma, epsilon, target, BagDesign(100, 5, 20, noisy=50), label_range=UNIT)


@pytest.mark.parametrize(
    ("target", "design", "message"),
    [
        (1e-3, BagDesign(6400, 100, 64, noisy=640), r"0\.00126"),
        (BagDesign(6400, 100, 64, noisy=640).noise_free, BagDesign(6400, 100, 64, noisy=640), None),
        (1e-11, BagDesign(21, 7, 3, noisy=19), None),
    ],
)
def test_targets_out_of_reach_are_refused(target: float, design: BagDesign, message: str | None) -> None:
    refused(message, smallest_sigma, 1.0, target, design, label_range=UNIT)
    for charge in (-1e-9, math.nan):  # it would take noise away
        refused(r"charge.*0", smallest_tau, 1.0, 1e-6, label_range=UNIT, charge=charge)
