"""The published theorem's value: the sizes it needs, what it is made of, and that it never undercuts the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from federation.contract.errors import InputError
from federation.mechanisms.bag_sums.calibration import delta
from federation.mechanisms.bag_sums.design import BagDesign
from federation.mechanisms.bag_sums.noisy_labels import theorem_delta
from federation.mechanisms.noise import gaussian

UNIT = (0.0, 1.0)


@pytest.mark.parametrize(("share", "size"), [(0.05, 2**17), (0.1, 2**16), (0.2, 2**15), (0.3, 2**14), (1.0, 2**13)])
def test_the_power_of_two_that_it_needs_for_a_millionth(share: float, size: int) -> None:
    """With 1000 bags; exact accounting needs bags of 2128, 1063, 531, 353 and 93."""

    def at(k: int) -> float:
        design = BagDesign(1000 * k, 1000, k, noisy=round(share * 1000 * k))
        return theorem_delta(1.0, design, sigma=1.0, label_range=UNIT)

    assert at(size) < 1e-6 < at(size // 2)


def test_the_best_bound_on_weights_is_found() -> None:
    design = BagDesign(2**17 * 10, 10, 2**17, noisy=2**16 * 10)
    largest = np.linspace(0.5, 30, 200_000)
    noise = math.sqrt(0.5 * 2**17 / 4)
    terms = 2 * 10 * 2**17 * ndtr(-largest) + gaussian.delta(1.0, largest / noise)
    assert theorem_delta(1.0, design, sigma=1.0, label_range=UNIT) == pytest.approx(terms.min(), rel=1e-6)


@given(st.integers(1, 12), st.floats(0.01, 1), st.floats(0.01, 3), st.floats(0.2, 5))
@settings(derandomize=True, deadline=None, max_examples=40)
def test_it_never_undercuts_the_exact_delta(doublings: int, share: float, epsilon: float, sigma: float) -> None:
    size = 2**doublings
    design = BagDesign(10 * size, 10, size, noisy=max(1, round(share * 10 * size)))
    exact = delta(epsilon, design, sigma=sigma, label_range=UNIT)
    assert exact <= theorem_delta(epsilon, design, sigma=sigma, label_range=UNIT) * (1 + 1e-9) <= 1 + 1e-9


def test_under_endless_noise_what_is_left_are_bags_with_too_little_of_it() -> None:
    """A hundredth of the labels noisy, 20,000 in the bag: fewer than 100 with e^-1, small weights with e^-6.25."""
    found = theorem_delta(1.0, BagDesign(200_000, 1, 20_000, noisy=2000), sigma=1e8, label_range=UNIT)
    assert found == pytest.approx(math.exp(-1) + math.exp(-6.25), rel=1e-6)


@pytest.mark.parametrize("other", [{"per_bag": 5}, {"noisy": 50, "weights": "signs"}])
def test_designs_it_does_not_cover_are_refused(other: dict) -> None:
    with pytest.raises(InputError, match="the theorem covers Gaussian weights and a fixed noisy set"):
        theorem_delta(1.0, BagDesign(100, 5, 20, **other), sigma=1.0, label_range=UNIT)


@pytest.mark.parametrize("epsilon", [-0.1, math.nan, math.inf])
def test_impossible_epsilons_are_refused(epsilon: float) -> None:
    with pytest.raises(InputError, match="epsilon must be a finite number"):
        theorem_delta(epsilon, BagDesign(100, 5, 20, noisy=50), sigma=1.0, label_range=UNIT)
