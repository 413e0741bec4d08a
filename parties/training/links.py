"""Class probabilities of many parties, and the curvature of the log-loss in the scores.

Arrays are (T, C, n): party, class, row. The logistic link has a single channel, the score of class 1.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np


class Link(Protocol):
    """How scores become class probabilities."""

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Class probabilities (T, C, n)."""

    def curvature(self, probabilities: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, ...]:
        """What `curve` needs where these are the probabilities; counts (T, 1, 1) are the parties' rows."""

    def curve(self, curvature: tuple[np.ndarray, ...], scores: np.ndarray, out: np.ndarray) -> None:
        """Second derivative of the mean log-loss in the scores, times (T, C, n) `scores`, into `out`.

        `out` may be `scores`.
        """


class Logistic:
    """Two classes: p = 1 / (1 + exp(-z))."""

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        p = scores * 0.5
        np.tanh(p, out=p)  # cannot overflow
        p += 1.0
        p *= 0.5
        return p

    def curvature(self, probabilities: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, ...]:
        variances = 1.0 - probabilities
        variances *= probabilities
        variances /= counts
        return (variances,)

    def curve(self, curvature: tuple[np.ndarray, ...], scores: np.ndarray, out: np.ndarray) -> None:
        np.multiply(curvature[0], scores, out=out)


class Softmax:
    """C classes: p_k = exp(z_k) / sum_j exp(z_j); the second derivative is diag(p) - p p'."""

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        p = scores - np.maximum.reduce(scores, axis=1, keepdims=True)  # the largest exponential is 1: no overflow
        np.exp(p, out=p)
        p /= _class_sums(p)
        return p

    def curvature(self, probabilities: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, ...]:
        return probabilities, probabilities / counts

    def curve(self, curvature: tuple[np.ndarray, ...], scores: np.ndarray, out: np.ndarray) -> None:
        probabilities, shares = curvature
        np.multiply(shares, scores, out=out)
        out -= probabilities * _class_sums(out)
        # Nothing but weak regularisation would damp the sum over classes that rounding leaves.
        out -= _class_sums(out) / out.dtype.type(out.shape[1])


def _class_sums(values: np.ndarray) -> np.ndarray:
    """Sums (T, 1, n) over the classes; for so few, a product with ones is faster than a reduction."""
    return np.matmul(np.ones((1, values.shape[1]), dtype=values.dtype), values)
