"""Calibration meets its target from the safe side, at the smallest noise that does."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federation.contract.errors import InputError
from federation.mechanisms.bag_sums.calibration import delta, smallest_sigma, smallest_tau
from federation.mechanisms.bag_sums.design import BagDesign, mean_delta_chi
from federation.mechanisms.noise import gaussian

UNIT = (0.0, 1.0)


@pytest.mark.parametrize(("share", "size"), [(0.05, 2128), (0.1, 1063), (0.2, 531), (0.3, 353), (1.0, 93)])
def test_known_sizes_for_a_millionth(share: float, size: int) -> None:
    enough, fewer = (BagDesign(1000 * k, 1000, k, noisy=round(share * 1000 * k)) for k in (size, size - 1))
    assert delta(1.0, enough, sigma=1.0, label_range=UNIT) <= 1e-6 < delta(1.0, fewer, sigma=1.0, label_range=UNIT)


@pytest.mark.parametrize(("epsilon", "tau"), [(0.5, 18.08), (1.0, 9.854), (2.0, 5.436), (4.0, 3.068)])
def test_known_noise_on_weighted_sums_for_a_millionth(epsilon: float, tau: float) -> None:
    found = smallest_tau(epsilon, 1e-6, label_range=(0, 52))
    assert found / 52 == pytest.approx(tau, rel=3e-4)
    assert mean_delta_chi(epsilon, 52 / found) <= 1e-6 < mean_delta_chi(epsilon, 52 / found * (1 + 1e-7))


@given(st.floats(0.05, 5), st.floats(-14, -1), st.integers(20, 200), st.floats(0.5, 1))
@settings(derandomize=True, deadline=None, max_examples=20)
def test_the_noise_meets_the_target(epsilon: float, exponent: float, size: int, share: float) -> None:
    design = BagDesign(7 * size, 7, size, noisy=max(1, round(share * 7 * size)))
    target = 10**exponent + 2 * design.noise_free
    sigma = smallest_sigma(epsilon, target, design, label_range=(-3, 5))
    assert delta(epsilon, design, sigma=sigma, label_range=(-3, 5)) <= target
    assert delta(epsilon, design, sigma=sigma * (1 - 1e-7), label_range=(-3, 5)) > target * (1 - 1e-6)


def test_stratified_signs_need_the_noise_of_a_gaussian_mechanism() -> None:
    design = BagDesign(6400, 100, 64, per_bag=16, weights="signs")
    expected = 1 / gaussian.mu(1.0, 1e-6) / 4
    assert smallest_sigma(1.0, 1e-6, design, label_range=UNIT) == pytest.approx(expected, rel=1e-8)


def test_labels_get_noise_even_where_none_would_meet_the_target() -> None:
    """A label is in a bag with a chance of a hundredth only; whoever is drawn still gets a billionth of the range."""
    seldom = BagDesign(1000, 1, 10, noisy=1000)
    assert smallest_sigma(1.0, 0.5, seldom, label_range=(0.0, 4.0)) == pytest.approx(4e-9)


def test_targets_out_of_reach_are_refused() -> None:
    design = BagDesign(6400, 100, 64, noisy=640)
    with pytest.raises(InputError, match=r"out of reach of any noise: with probability 0\.00126"):
        smallest_sigma(1.0, 1e-3, design, label_range=UNIT)
    with pytest.raises(InputError, match="out of reach of any noise"):
        smallest_sigma(1.0, design.noise_free, design, label_range=UNIT)
    with pytest.raises(InputError, match="would exceed the label range a billion times"):
        smallest_sigma(1.0, 1e-11, BagDesign(21, 7, 3, noisy=19), label_range=UNIT)


@pytest.mark.parametrize("epsilon", [-0.1, math.nan, math.inf])
def test_impossible_epsilons_are_refused(epsilon: float) -> None:
    with pytest.raises(InputError, match="epsilon must be a finite number"):
        smallest_tau(epsilon, 1e-6, label_range=UNIT)
    with pytest.raises(InputError, match="epsilon must be a finite number"):
        smallest_sigma(epsilon, 1e-6, BagDesign(100, 5, 20, noisy=50), label_range=UNIT)


@pytest.mark.parametrize("charge", [-1e-9, math.nan])
def test_a_charge_that_would_take_noise_away_is_refused(charge: float) -> None:
    with pytest.raises(InputError, match="charge must be a finite number >= 0"):
        smallest_tau(1.0, 1e-6, label_range=UNIT, charge=charge)


@pytest.mark.parametrize("target", [0.0, 1.0, -1e-6])
def test_impossible_targets_are_refused(target: float) -> None:
    with pytest.raises(InputError, match="delta must lie strictly between 0 and 1"):
        smallest_tau(1.0, target, label_range=UNIT)
    with pytest.raises(InputError, match="delta must lie strictly between 0 and 1"):
        smallest_sigma(1.0, target, BagDesign(100, 5, 20, noisy=50), label_range=UNIT)
