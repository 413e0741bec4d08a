"""Unbiased answers from a public table of integers: each label's row says how likely every output is.

Each label is rounded to one of two neighbouring points of a grid, at random and without bias; the point's row of
the table then gives the answer. A release is private because of a property of the table alone, which whoever answers
checks in exact integers: of no output does the largest weight exceed e^epsilon times the smallest. How a table of
little variance is found is for `unbiased_design`, and needs no trust.
"""

from __future__ import annotations

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
from federation.contract.numbers import apart
from federation.contract.randomness import NoiseBits
from federation.mechanisms.labels.label_mechanism import LabelReplacement
from federation.mechanisms.labels.label_range import LabelRange
from federation.mechanisms.noise.checks import require_epsilon_from_zero
from federation.mechanisms.noise.mechanism import Parameters
from federation.numerics.arrays import Floats

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

    def log_ratios(self, answers: Floats) -> Floats:
        """The log likelihood ratio of each answer, the range's high end over its low end; shape as given."""
        columns = np.searchsorted(self._values, answers)
        return (np.log(self.weights[-1]) - np.log(self.weights[0]))[columns]

    @property
    def _own_assumptions(self) -> tuple[Assumption, ...]:
        return (
            Assumption("the table of weights keeps epsilon, which is checked in whole numbers", Check.CHECKED),
            Assumption("each label has two random words of its own, compared as integers", Check.ENFORCED),
        )

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
