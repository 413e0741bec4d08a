"""Releases together: known figures, Monte Carlo, closed forms, a double integral, and never below a single release."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from federation.contract.errors import InputError
from federation.mechanisms.bag_sums.accounting import delta
from federation.mechanisms.bag_sums.composition import composed_delta
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


def test_being_in_a_bag_only_sometimes() -> None:
    design = BagDesign(400, 2, 50, per_bag=5, weights="signs")
    times = np.arange(1, 9)
    expected = float(stats.binom(8, 0.25).pmf(times) @ gaussian.delta(0.5, np.sqrt(times / 5)))
    assert expected <= together(0.5, design, 8) <= expected * 1.01


@given(st.integers(4, 64), st.floats(0.05, 1), st.floats(0, 3), st.integers(2, 40), st.floats(0.3, 4))
@settings(derandomize=True, deadline=None, max_examples=12)
def test_more_releases_never_cost_less(size: int, share: float, epsilon: float, releases: int, sigma: float) -> None:
    design = BagDesign(5 * size, 5, size, noisy=max(1, round(share * 5 * size)))
    single = delta(epsilon, design, sigma=sigma, label_range=UNIT)
    several = together(epsilon, design, releases, sigma)
    assert single <= several <= 1
    assert several <= together(epsilon, design, releases + 1, sigma) * 1.02 + 1e-11
    # Every bag without noise in any of the releases reveals the label.
    assert several >= -math.expm1(releases * math.log1p(-min(design.noise_free, 1 - 1e-12))) * (1 - 1e-6)


def test_one_release_is_the_exact_delta() -> None:
    design = BagDesign(1280, 10, 128, noisy=256)
    assert together(1.0, design, 1) == delta(1.0, design, sigma=1.0, label_range=UNIT)


@pytest.mark.parametrize("releases", [0, -1, 1.5, True])
def test_impossible_numbers_of_releases_are_refused(releases: float) -> None:
    with pytest.raises(InputError, match="releases must be an integer of at least 1"):
        together(1.0, BagDesign(100, 5, 20, noisy=10), releases)
