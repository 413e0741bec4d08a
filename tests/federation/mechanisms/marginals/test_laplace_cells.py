"""The exact delta of several discrete Laplace integers against their joint law and privacy loss distributions."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from federation.mechanisms.marginals.laplace_cells import delta
from federation.mechanisms.noise import discrete_laplace


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3, 2), Fraction(7)])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.9])
def test_it_is_that_of_the_joint_law(scale: Fraction, epsilon: float) -> None:
    reach = int(40 * scale)
    k = np.arange(-reach, reach + 1)
    q = np.exp(-1 / float(scale))
    here, there = ((1 - q) / (1 + q) * q ** np.abs(k - moved) for moved in (0, 1))
    sides = [
        (here[k <= 0].sum(), there[k <= 0].sum()),
        (here[k > 0].sum(), there[k > 0].sum()),
    ]  # where the loss is one
    expected = sum(
        max(0.0, np.prod([p for p, _ in cell]) - np.exp(epsilon) * np.prod([p for _, p in cell]))
        for cell in product(sides, repeat=3)
    )
    assert delta(epsilon, 3, scale) == pytest.approx(expected, rel=1e-9, abs=1e-15)


def test_one_integer() -> None:
    assert delta(0.1, 1, Fraction(4)) == pytest.approx(discrete_laplace.delta(0.1, 1, 4), rel=1e-10)


def test_a_privacy_loss_distribution_agrees() -> None:
    """The loss of one cell is +1/t or -1/t, a multiple of its interval, so nothing is rounded."""
    one = pld.from_discrete_laplace_mechanism(1 / 44, value_discretization_interval=1 / 44)
    whole = one.self_compose(44)
    for epsilon in (2 / 44, 10 / 44, 30 / 44):
        assert delta(epsilon, 44, Fraction(44)) == pytest.approx(whole.get_delta_for_epsilon(epsilon), rel=1e-6)


@pytest.mark.parametrize(("cells", "scale"), [(1, Fraction(1, 3)), (44, Fraction(44)), (7, Fraction(7, 3))])
def test_nothing_is_left_from_the_largest_loss_on(cells: int, scale: Fraction) -> None:
    largest = float(cells / scale)
    assert delta(largest, cells, scale) == 0.0
    assert delta(2 * largest, cells, scale) == 0.0
    assert delta(0.99 * largest, cells, scale) > 0
