"""Unbiased randomised labels from a public table of integers: each row gives the probability of every output.

The party rounds each label to one of two neighbouring points of a grid, at random and without bias. The point's row of
the table then gives the response. Privacy is a property of the table alone, which the responding party checks in exact
integers: for no output does the largest weight exceed e^epsilon times the smallest.

`calibrate` finds the table with the least variance at an epsilon, by a linear program, in whole numbers. The search
needs no trust. Different solvers find different tables of equal quality. A table is therefore made once and sent. The
party that uses it checks it and need not make it again.
"""

import hashlib
import json
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import ClassVar

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import Assumption, Check
from federation.contract.randomness import NoiseBits
from federation.contract.validation import apart
from federation.mechanisms.labels.mechanism import LabelRange, LabelReplacement
from federation.mechanisms.noise.mechanism import Parameters, require_epsilon_from_zero
from federation.numerics.rows import Floats, Integers

TOTAL = 2**32  # of the weights in a row of a table
MOST_EPSILON = 12.0  # beyond it the smallest weights are too coarse in parts of `TOTAL`
MOST_POINTS, MOST_OUTPUTS, LARGEST_OUTPUT = 33, 128, 2.0**20

_PLACES = 48  # bits of a label's place between two points; with 32 intervals still exact in a double
_TERMS = 80  # of the series of e^epsilon: what is left of it is below 1e-32 at `MOST_EPSILON`

Weights = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class UnbiasedResponse(LabelReplacement):
    """Row i of `weights` (g, m) over 2^32 is the law of the answers to point i of g even ones in the range; pure.

    Answer j is middle + width/2 `outputs[j]`. Raises `InputError` unless the table is private at `epsilon` in exact
    arithmetic (weights are whole numbers >= 1, those of a row add up to 2^32, and no output's largest is above
    e^epsilon times its smallest), epsilon is at most 12, and outputs are finite and rise. That answers are unbiased is
    no premise of privacy: `bias` says how far they are from it.
    """

    labels: LabelRange
    epsilon: float
    outputs: tuple[float, ...]
    weights: Weights

    name: ClassVar[str] = "label_unbiased"
    delta: ClassVar[float] = 0.0
    _own_assumptions = (
        Assumption("the table of weights keeps epsilon, which is checked in whole numbers", Check.CHECKED),
        Assumption("each label has two random words of its own, compared as integers", Check.ENFORCED),
    )

    def __post_init__(self) -> None:
        _require_outputs(self.outputs)
        _require_weights(self.weights, len(self.outputs))
        bound = exponential_below(self.epsilon)
        for column in zip(*self.weights, strict=True):
            if max(column) > bound * min(column):
                ratio, most = apart(max(column) / min(column), float(bound))
                raise InputError(
                    f"the table of label noise is not private at epsilon {self.epsilon:g}: one label makes an output "
                    f"{ratio} times as likely as another, and e^epsilon is {most}; "
                    "make the table anew for this epsilon"
                )

    @property
    def parameters(self) -> Parameters:
        """Public numbers; `table` is a digest of outputs and weights."""
        table = hashlib.sha256(json.dumps([self.outputs, self.weights]).encode()).hexdigest()[:16]
        sizes = {"points": len(self.weights), "outputs": len(self.outputs)}
        return {"low": self.labels.low, "high": self.labels.high, **sizes, "table": table}

    def release(self, labels: Floats, bits: NoiseBits) -> Floats:
        """Answers (n,) float64. Raises `InputError` as `LabelRange.checked`."""
        places = self.labels.positions(labels, (len(self.weights) - 1) << _PLACES)
        rounding, choice = bits.words(len(places)), bits.words(len(places))
        between = (places & ((1 << _PLACES) - 1)).astype(np.uint64)
        rows = (places >> _PLACES) + ((rounding >> np.uint64(64 - _PLACES)) < between)
        drawn = rows * TOTAL + (choice >> np.uint64(32)).astype(np.int64)
        columns = np.searchsorted(self._bounds, drawn, side="right") - rows * len(self.outputs)
        return self._values[columns]

    def variance(self, labels: Floats | None = None) -> Floats | float:
        """Of the answer to each given label (n,), rounding included; without labels the largest that any label has.

        Between two points it is a parabola that opens downwards.
        """
        means, seconds = self._moments
        if labels is not None:
            rows, up = self._between(labels)
            return _mixed(seconds, rows, up) - np.square(_mixed(means, rows, up))
        rise, slope = np.diff(seconds), np.diff(means)
        top = (rise - 2 * slope * means[:-1]) / (2 * np.maximum(np.square(slope), 1e-300))
        up, rows = np.clip(top, 0.0, 1.0), np.arange(len(slope))
        return float((_mixed(seconds, rows, up) - np.square(_mixed(means, rows, up))).max())

    def bias(self, labels: Floats | None = None) -> Floats | float:
        """E answer - label for each given label (n,); without labels its largest size, which a point has."""
        means = self._moments[0] + self.labels.middle
        if labels is None:
            points = self.labels.points(np.arange(len(means)), len(means) - 1)
            return float(np.abs(means - points).max())
        return _mixed(means, *self._between(labels)) - self.labels.checked(labels)

    def delta_at(self, epsilon: float) -> float:
        """The exact delta of one release at another epsilon >= 0: the largest of all pairs of rows.

        It is convex in either label's law, and a label between two points has a mixture of their rows.
        """
        epsilon = require_epsilon_from_zero(epsilon)
        shares = np.array(self.weights) / TOTAL
        above = shares[:, None] - math.exp(min(epsilon, 700.0)) * shares[None]
        return float(np.maximum(above, 0.0).sum(axis=2).max())

    def log_ratio(self, released: Floats, here: Floats, there: Floats) -> Floats:
        """The log likelihood ratio of answers (n, k), labels `there` (1, k) over labels `here`, (n,)."""
        weights, columns = np.array(self.weights, dtype=np.float64), np.searchsorted(self._values, released)
        (low, up), (low_there, up_there) = (self._between(np.ravel(side)) for side in (here, there))
        before, after = _mixed(weights, low, up[:, None]), _mixed(weights, low_there, up_there[:, None])
        return np.asarray((np.log(after) - np.log(before))[np.arange(len(low)), columns].sum(axis=1))

    @cached_property
    def _values(self) -> Floats:
        return self.labels.middle + self.labels.width / 2 * np.array(self.outputs)

    @cached_property
    def _bounds(self) -> np.ndarray:
        """Cumulative weights of all rows one after the other, (g m,) int64: row i ends at (i + 1) 2^32."""
        return np.cumsum(np.array(self.weights, dtype=np.int64).ravel())

    @cached_property
    def _moments(self) -> tuple[Floats, Floats]:
        """First and second moments of the answers to each point, (g,) each, from the middle of the range."""
        shares, values = np.array(self.weights) / TOTAL, self.labels.width / 2 * np.array(self.outputs)
        return shares @ values, shares @ np.square(values)

    def _between(self, labels: Floats) -> tuple[np.ndarray, Floats]:
        """The point below each label, never the last, and the probability of the one above."""
        last = len(self.weights) - 1
        places = self.labels.positions(labels, last << _PLACES)
        rows = np.minimum(places >> _PLACES, last - 1)
        return rows, (places - (rows << _PLACES)) / 2.0**_PLACES


@lru_cache
def exponential_below(epsilon: float) -> Fraction:
    """A rational number just below e^epsilon: a partial sum of its series, rounded down to 64 binary places.

    Raises `InputError` for epsilon that is not above 0, or above 12.

    Examples:
        >>> bound = exponential_below(1.0)
        >>> bound.denominator <= 2**64, float(bound)
        (True, 2.71828)
    """
    if not 0 < epsilon <= MOST_EPSILON:
        most, given = apart(MOST_EPSILON, epsilon)
        raise InputError(
            f"epsilon of unbiased label noise must be above 0 and at most {most}, got {given}; choose laplace or auto"
        )
    exact, term, total = Fraction(epsilon), Fraction(1), Fraction(1)
    for power in range(1, _TERMS):
        term *= exact / power
        total += term
    return Fraction(math.floor(total * 2**64), 2**64)


def _mixed(values: Floats, rows: np.ndarray, up: Floats) -> Floats:
    return np.asarray((1 - up) * values[rows] + up * values[rows + 1])


def _require_outputs(outputs: tuple[float, ...]) -> None:
    """Raises `InputError` unless there are 2 to 128 outputs, each finite and above the one before."""
    rising = all(first < second for first, second in pairwise(outputs))
    inside = len(outputs) > 0 and -LARGEST_OUTPUT <= outputs[0] <= outputs[-1] <= LARGEST_OUTPUT
    if not (2 <= len(outputs) <= MOST_OUTPUTS and rising and inside):
        raise InputError(
            f"the table of label noise must have 2 to {MOST_OUTPUTS} outputs that rise within -{LARGEST_OUTPUT:g} and "
            f"{LARGEST_OUTPUT:g}, got {outputs!s:.100}"
        )


def _require_weights(weights: Weights, outputs: int) -> None:
    """Raises `InputError` unless there are 2 to 33 rows, each of as many whole numbers >= 1 that add up to 2^32."""
    if not 2 <= len(weights) <= MOST_POINTS or any(len(row) != outputs for row in weights):
        raise InputError(
            f"the table of label noise must have 2 to {MOST_POINTS} rows of {outputs} weights each, as many as "
            f"outputs, got {len(weights)} rows of {sorted({len(row) for row in weights})}"
        )
    for row in weights:
        if any(type(weight) is not int or weight < 1 for weight in row) or sum(row) != TOTAL:
            raise InputError(
                f"weights in a row of the table of label noise must be whole numbers from 1 that add up to {TOTAL}, "
                f"got a sum of {sum(row)}; leave outputs out that have no weight"
            )


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
    """Outputs (m,) and their laws (17, m) by HiGHS.

    The laws are the P_ij of answers o_j to even points g_i of [-1, 1]. Over P and l together, the program is to

        minimise sum_i p_i sum_j P_ij (o_j - g_i)^2
        subject to sum_j P_ij = 1, sum_j o_j P_ij = g_i and l_j <= P_ij <= e^epsilon l_j.

    It is the program of Badanidiyuru et al. 2023 (regression with label differential privacy, unbiased randomisers).
    The weight p contains no knowledge about anybody's labels. One bit per label is among the feasible points, so it is
    never better on average.
    """
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
