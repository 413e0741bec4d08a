"""The table of least variance: private in exact numbers, unbiased, as good as another solver says, beside one bit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from federation.contract.errors import InputError
from federation.mechanisms.labels import randomised_response as one_bit
from federation.mechanisms.labels.mechanism import LabelRange
from federation.mechanisms.labels.unbiased_response import (
    POINTS,
    TOTAL,
    WORTHWHILE,
    calibrate,
    exponential_below,
    table,
)

RANGE = LabelRange(-1.0, 1.0)
GRID = np.linspace(-1.0, 1.0, POINTS)
WEIGHT = np.where(np.abs(GRID) == 1, 0.25, 0.0) + 0.5 / POINTS


@settings(max_examples=25, deadline=None)
@given(epsilon=st.floats(0.5, 12.0))
def test_every_table_is_private_in_whole_numbers_and_unbiased(epsilon):
    weights = table(epsilon)[1]
    assert {sum(row) for row in weights} == {TOTAL}
    bound = exponential_below(epsilon)
    assert all(1 <= max(column) <= bound * min(column) for column in zip(*weights, strict=True))
    assert max(max(column) / min(column) for column in zip(*weights, strict=True)) > 0.999 * math.exp(epsilon)
    labels = np.linspace(-1.0, 1.0, 201)
    assert np.abs(calibrate(RANGE, epsilon).bias(labels)).max() <= 6e-9 * RANGE.width


@pytest.mark.parametrize("epsilon", [0.01, 0.03, 0.1, 0.3])
def test_at_small_epsilon_it_is_as_good_as_one_bit(epsilon):
    """No unbiased answers to two labels are better than one bit, and for these the others hardly count."""
    noise, bit = calibrate(RANGE, epsilon), one_bit.calibrate_one_bit(RANGE, epsilon)
    np.testing.assert_allclose(noise.variance(GRID), bit.variance(GRID), rtol=0.01)
    assert noise.bias() < 1e-7


def test_from_where_it_is_worthwhile_it_spares_variance():
    """Below, one bit a label does nearly as well; at twice that epsilon it costs nearly twice the variance."""
    ratios = [
        one_bit.calibrate_one_bit(RANGE, epsilon).variance() / calibrate(RANGE, epsilon).variance()
        for epsilon in (WORTHWHILE, 2 * WORTHWHILE)
    ]
    assert 1 < ratios[0] < 1.1
    assert ratios[1] > 1.5


@pytest.mark.parametrize("epsilon", [0.7, 2.0, 6.0])
def test_another_solver_finds_no_less_variance(epsilon):
    """An interior-point method on half of the unknowns: an optimum may be taken as its own mirror image."""
    half, bit = POINTS // 2 + 1, 1 / math.tanh(epsilon / 2)
    outputs = np.sort([*np.linspace(-1.15 * bit, 1.15 * bit, 41), -bit, bit])
    m = len(outputs)
    folded = np.where(np.arange(half) < half - 1, 2, 1) * WEIGHT[:half]  # the middle point is its own image
    cost = folded[:, None] * np.square(outputs - GRID[:half, None])
    bounds, sums = [], np.zeros((2 * half, half * m + m))
    for i in range(half):
        sums[2 * i, i * m : (i + 1) * m], sums[2 * i + 1, i * m : (i + 1) * m] = 1.0, outputs
        for j in range(m):
            for least in {j, m - 1 - j}:  # of the point, and of its mirror image
                low, high = np.zeros(half * m + m), np.zeros(half * m + m)
                low[[half * m + least, i * m + j]] = 1.0, -1.0
                high[[half * m + least, i * m + j]] = -math.exp(epsilon), 1.0
                bounds += [low, high]
    targets = np.column_stack([np.ones(half), GRID[:half]]).ravel()
    found = linprog(
        [*cost.ravel(), *np.zeros(m)],
        A_ub=np.array(bounds),
        b_ub=np.zeros(len(bounds)),
        A_eq=sums,
        b_eq=targets,
        method="highs-ipm",
    )
    assert WEIGHT @ calibrate(RANGE, epsilon).variance(GRID) == pytest.approx(found.fun, rel=1e-5)


@pytest.mark.parametrize(("epsilon", "at_an_end"), [(1.0, 1.02), (2.0, 1.23), (4.0, 1.58), (6.0, 2.4), (8.0, 4.3)])
def test_beside_one_bit(epsilon, at_an_end):
    """Never worse where labels are even or half of them at the ends; worst where all are at one end."""
    noise, bit = calibrate(RANGE, epsilon), one_bit.calibrate_one_bit(RANGE, epsilon)
    assert WEIGHT @ noise.variance(GRID) <= WEIGHT @ bit.variance(GRID)
    labels = np.linspace(-1.0, 1.0, 2001)
    ratios = noise.variance(labels) / bit.variance(labels)
    assert ratios.argmax() in (0, 2000)
    assert ratios.max() <= at_an_end
    bell = np.exp(-np.square(labels / 0.4) / 2)
    ratio = (bell @ noise.variance(labels)) / (bell @ bit.variance(labels))
    assert ratio <= {1.0: 0.95, 2.0: 0.57, 4.0: 0.15}.get(epsilon, 0.05)


def test_a_table_is_made_once_for_each_epsilon_and_serves_every_range():
    assert table(1.25) is table(1.25)
    wide = LabelRange(0.0, 52.0)
    np.testing.assert_allclose(
        calibrate(wide, 1.25).variance(26 + 26 * GRID), 26**2 * calibrate(RANGE, 1.25).variance(GRID), rtol=1e-9
    )


@pytest.mark.parametrize(
    ("epsilon", "message"),
    [
        (12.1, "from 0.01 to 12, got 12.1; choose noise laplace or auto"),
        (0.005, "choose noise one_bit"),
        (math.nan, ""),
    ],
)
def test_epsilons_out_of_reach_are_refused(epsilon, message):
    with pytest.raises(InputError, match=f"epsilon of unbiased label noise must be .*{message}"):
        calibrate(RANGE, epsilon)
