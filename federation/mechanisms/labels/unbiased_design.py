"""The table of unbiased answers with the least variance at an epsilon, by a linear program, in whole numbers.

Over the laws P_ij of answers o_j to even points g_i of [-1, 1] it minimises sum_i p_i sum_j P_ij (o_j - g_i)^2 subject
to sum_j P_ij = 1, sum_j o_j P_ij = g_i and l_j <= P_ij <= e^epsilon l_j, over P and l together: the program of
Badanidiyuru et al. 2023 (regression with label differential privacy, unbiased randomisers), for a weight p that is no
knowledge about anybody's labels. One bit per label is among its feasible points, so it is never better on average.

Different solvers end in different tables that are as good, so a table is made once and sent; who answers by it checks
it (`unbiased_response`) and need not make it again.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from federation.contract.errors import InputError
from federation.contract.numbers import apart
from federation.mechanisms.labels.label_range import LabelRange
from federation.mechanisms.labels.unbiased_response import (
    MOST_EPSILON,
    TOTAL,
    UnbiasedResponse,
    Weights,
    exponential_below,
)
from federation.numerics.arrays import Floats, Integers

POINTS, OUTPUTS = 17, 41
LEAST_EPSILON = 0.01  # below it outputs lie so far apart that 2^32 parts leave a visible bias
WORTHWHILE = 1.0  # epsilon below which one bit per label, which needs no table, has the same variance within a tenth
_REACH = 1.15  # of the outermost outputs over that of one bit, whose two values are outputs as well
_AT_THE_ENDS = 0.5  # of the weight; the rest is even


def calibrate(labels: LabelRange, epsilon: float) -> UnbiasedResponse:
    """Unbiased epsilon-private answers of the least mean variance, half of it for even labels, half for both ends.

    Takes about a tenth of a second, once for each epsilon. Raises `InputError` for epsilon below .01 or above 12.

    Examples:
        >>> noise = calibrate(LabelRange(0.0, 1.0), epsilon=4.0)
        >>> each = noise.variance(np.linspace(0.0, 1.0, 17))
        >>> float(each.mean() / 2 + (each[0] + each[-1]) / 4)  # of one bit .0971
        0.0302
        >>> noise.bias() < 1e-8, noise.delta_at(4.0)
        (True, 0.0)
    """
    return UnbiasedResponse(labels, epsilon, *table(epsilon))


@lru_cache
def table(epsilon: float) -> tuple[tuple[float, ...], Weights]:
    """Outputs (m,) in half widths from the middle of the range, and weights (17, m) over 2^32. As `calibrate`."""
    require_in_reach(epsilon)
    bound = exponential_below(epsilon)
    outputs, law = _least_variance(epsilon)
    kept = law.max(axis=0) >= 1 / TOTAL
    outputs, law = outputs[kept], law[:, kept]
    low = np.maximum(1, np.ceil(law.min(axis=0) * TOTAL)).astype(np.int64)
    high = np.array([math.floor(bound * int(least)) for least in low])
    rounded = np.clip(np.rint(law * TOTAL).astype(np.int64), low, high)
    points = np.linspace(-1.0, 1.0, POINTS)
    rows = [_completed(row, low, high, outputs, point) for row, point in zip(rounded, points, strict=True)]
    return tuple(outputs.tolist()), tuple(tuple(row.tolist()) for row in rows)


def require_in_reach(epsilon: float) -> None:
    """Raises `InputError` unless epsilon is from .01 to 12."""
    if not LEAST_EPSILON <= epsilon <= MOST_EPSILON:
        better = "one_bit, which is as good there," if epsilon < LEAST_EPSILON else "laplace"
        least, most, given = apart(LEAST_EPSILON, MOST_EPSILON, epsilon)
        raise InputError(
            f"epsilon of unbiased label noise must be from {least} to {most}, got {given}; "
            f"choose noise {better} or auto"
        )


def _least_variance(epsilon: float) -> tuple[Floats, Floats]:
    """Outputs (m,) and their laws (17, m) by HiGHS."""
    from scipy.optimize import linprog  # here, because the command line must start without it
    from scipy.sparse import block_array, csr_array, eye_array, hstack, kron

    points, one_bit = np.linspace(-1.0, 1.0, POINTS), 1 / math.tanh(epsilon / 2)
    outputs = np.sort(np.append(np.linspace(-_REACH * one_bit, _REACH * one_bit, OUTPUTS), [-one_bit, one_bit]))
    weight = np.full(POINTS, (1 - _AT_THE_ENDS) / POINTS)
    weight[[0, -1]] += _AT_THE_ENDS / 2
    size = len(outputs)
    sums = kron(eye_array(POINTS), np.stack([np.ones(size), outputs]))
    cost = weight[:, None] * np.square(outputs - points[:, None])
    laws, least = eye_array(POINTS * size), kron(np.ones((POINTS, 1)), eye_array(size))
    found = linprog(
        np.append(cost, np.zeros(size)),
        A_ub=block_array([[-laws, least], [math.exp(-epsilon) * laws, -least]]).tocsr(),
        b_ub=np.zeros(2 * POINTS * size),
        A_eq=hstack([sums, csr_array((2 * POINTS, size))]).tocsr(),
        b_eq=np.column_stack([np.ones(POINTS), points]).ravel(),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10},
    )
    if found.x is None:
        raise InputError(f"no table of label noise was found at epsilon {epsilon:g}: {found.message}; choose one_bit")
    return outputs, found.x[: POINTS * size].reshape(POINTS, size)


def _completed(row: Integers, low: Integers, high: Integers, outputs: Floats, point: float) -> Integers:
    """The row (m,) with a sum of 2^32: what is missing goes where it leaves the mean nearest to the point.

    Raises `InputError` where the bounds have no room for it.
    """
    whole = row.copy()
    missing = TOTAL - int(row.sum())
    means = (row @ outputs + missing * outputs) / TOTAL
    for column in np.argsort(np.abs(means - point), kind="stable"):
        moved = int(np.clip(whole[column] + missing, low[column], high[column])) - int(whole[column])
        whole[column] += moved
        missing -= moved
    if missing:
        raise InputError("the table of label noise cannot be put into whole numbers at this epsilon; choose one_bit")
    return whole
