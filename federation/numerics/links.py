"""Class probabilities of many parties, and the curvature of the log-loss in the scores.

Arrays are (T, C, n): party, class, row. The logistic link has a single channel, the score of class 1. A link has three
methods: `probabilities` of the classes (T, C, n) at scores (T, C, n); `curvature`, what `curve` needs where these are
the probabilities, for parties of so many rows (T, 1, 1); and `curve`, which writes the second derivative of the mean
log-loss in the scores, times other scores (T, C, n), into `out`, which may be these scores themselves.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from federation.numerics.arrays import Floats


class Logistic:
    """Two classes: p = 1 / (1 + exp(-z)).

    Examples:
        >>> Logistic().probabilities(np.array([[[-1.0, 0.0, 1.0]]]))
        array([[[0.26894142, 0.5       , 0.73105858]]])
    """

    def probabilities(self, scores: Floats) -> Floats:
        p = scores * 0.5
        np.tanh(p, out=p)  # sigma(z) = (1 + tanh(z/2)) / 2 cannot overflow
        p += 1.0
        p *= 0.5
        return p

    def curvature(self, probabilities: Floats, counts: Floats) -> tuple[Floats, ...]:
        variances = 1.0 - probabilities
        variances *= probabilities
        variances /= counts
        return (variances,)

    def curve(self, curvature: tuple[Floats, ...], scores: Floats, out: Floats) -> None:
        np.multiply(curvature[0], scores, out=out)


class Softmax:
    """C classes: p_k = exp(z_k) / sum_j exp(z_j); the second derivative is diag(p) - p p'.

    Examples:
        >>> Softmax().probabilities(np.log([[[1.0], [2.0], [5.0]]])).ravel()  # one party, three classes, one row
        array([0.125, 0.25 , 0.625])
    """

    def probabilities(self, scores: Floats) -> Floats:
        p = scores - np.maximum.reduce(scores, axis=1, keepdims=True)  # the largest exponential is 1: no overflow
        np.exp(p, out=p)
        p /= _class_sums(p)
        return p

    def curvature(self, probabilities: Floats, counts: Floats) -> tuple[Floats, ...]:
        return probabilities, probabilities / counts

    def curve(self, curvature: tuple[Floats, ...], scores: Floats, out: Floats) -> None:
        probabilities, shares = curvature
        np.multiply(shares, scores, out=out)
        out -= probabilities * _class_sums(out)
        # Nothing but weak regularisation would damp the sum over classes that rounding leaves.
        out -= _class_sums(out) / out.dtype.type(out.shape[1])


Link = Logistic | Softmax


def _class_sums(values: Floats) -> Floats:
    """Sums (T, 1, n) over the classes; for so few, a product with ones is faster than a reduction."""
    return np.asarray(np.matmul(_ones(values.shape[1], values.dtype), values))


@lru_cache(maxsize=64)
def _ones(count: int, precision: np.dtype[Any]) -> NDArray[Any]:
    return np.ones((1, count), dtype=precision)
