"""Releases together: known figures, Monte Carlo, closed forms, a double integral, and never below a single release."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting.pld import pld_pmf, privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from federation.contract.errors import InputError
from federation.mechanisms.bag_sums import calibration as composition
from federation.mechanisms.bag_sums.calibration import composed_delta, delta
from federation.mechanisms.bag_sums.design import BagDesign
from federation.mechanisms.noise import gaussian

UNIT = (0.0, 1.0)


def together(epsilon: float, design: BagDesign, releases: int, sigma: float = 1.0) -> float:
    return composed_delta(epsilon, design, sigma=sigma, label_range=UNIT, releases=releases)


def test_known_figures() -> None:
    """k = 128, a fifth of the labels noisy, a label range of one noise scale, epsilon 1."""
    design = BagDesign(128_000, 1000, 128, noisy=25_600)
    expected = {1: 6.1e-4, 2: 1.8e-3, 4: 6.2e-3, 8: 2.3e-2, 16: 7.7e-2}
    assert {t: float(f"{together(1.0, design, t):.1e}") for t in expected} == expected


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
        (100, 60.0, 1.0),
        (10_000, 60.0, 1.0),
        (10_000, 20.0, 0.1),
        (10_000, 300.0, 0.1),
        (10_000, 300.0, 0.0),
        (10**6, 600.0, 1.0),
    ],
)
def test_many_releases_cost_what_a_binomial_number_of_gaussian_ones_does(
    releases: int, sigma: float, epsilon: float
) -> None:
    design = BagDesign(400, 2, 50, per_bag=5, weights="signs")
    times = np.arange(1, min(releases, 2 * releases * 0.25 + 100))
    chances = stats.binom(releases, 0.25).pmf(times)
    expected = float(chances @ gaussian.delta(epsilon, np.sqrt(times / 5) / sigma))
    found = together(epsilon, design, releases, sigma)
    assert expected <= found <= expected * 1.005 + 1e-12 * max(1, releases / 1000)


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


def test_being_in_a_bag_only_sometimes() -> None:
    design = BagDesign(400, 2, 50, per_bag=5, weights="signs")
    times = np.arange(1, 9)
    expected = float(stats.binom(8, 0.25).pmf(times) @ gaussian.delta(0.5, np.sqrt(times / 5)))
    assert expected <= together(0.5, design, 8) <= expected * 1.01


@given(st.integers(4, 64), st.floats(0.05, 1), st.floats(0, 3), st.integers(2, 40), st.floats(0.3, 4))
@settings(derandomize=True, deadline=None, max_examples=6)
def test_more_releases_never_cost_less(size: int, share: float, epsilon: float, releases: int, sigma: float) -> None:
    design = BagDesign(5 * size, 5, size, noisy=max(1, round(share * 5 * size)))
    single = delta(epsilon, design, sigma=sigma, label_range=UNIT)
    several = together(epsilon, design, releases, sigma)
    assert single <= several <= 1
    assert several <= together(epsilon, design, releases + 1, sigma) * 1.02 + 1e-11
    # Every bag without noise in any of the releases reveals the label.
    assert several >= -math.expm1(releases * math.log1p(-min(design.noise_free, 1 - 1e-12))) * (1 - 1e-6)


def test_at_a_large_epsilon_several_releases_still_cost_more_than_one_and_less_than_at_a_small() -> None:
    design = BagDesign(1280, 10, 128, noisy=256)
    single, several = (together(30.0, design, releases, sigma=0.05) for releases in (1, 3))
    assert single < several < together(20.0, design, 3, sigma=0.05) < 1


@pytest.mark.parametrize(("releases", "least"), [(2, 1e-12), (1000, 1e-12), (3000, 3e-12)])
def test_no_less_is_charged_than_rounding_may_hide(releases: int, least: float) -> None:
    design = BagDesign(100, 5, 20, noisy=100)
    assert least <= together(200.0, design, releases, sigma=20.0) < 1.01 * least


def test_one_release_is_the_exact_delta() -> None:
    design = BagDesign(1280, 10, 128, noisy=256)
    assert together(1.0, design, 1) == delta(1.0, design, sigma=1.0, label_range=UNIT)


@pytest.mark.parametrize("releases", [0, -1, 1.5, True])
def test_impossible_numbers_of_releases_are_refused(releases: float) -> None:
    with pytest.raises(InputError, match="releases must be an integer of at least 1"):
        together(1.0, BagDesign(100, 5, 20, noisy=10), releases)
