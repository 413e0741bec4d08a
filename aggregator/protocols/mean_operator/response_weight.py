"""How much an error of randomised response harms, against noise on a sum of the same size: by public rows alone.

Noise on the sum of y x goes in all directions alike, and errors of randomised response go where the rows are, with
covariance w G, G the mean of x x'. Weights of a logistic model, to first order, are M mu with M = (G/4 + 2 lam)^-1, so
that an error of covariance N moves scores by tr(G M N M) on average. Where noise is small, M undoes G, and errors that
go with the rows harm less; where it is large, lam rules, and they harm more, as the signal is there, too.
"""

from __future__ import annotations

import numpy as np

from federation.mechanisms.sums.row_sums import regularisation
from federation.numerics.rows import Floats
from federation.queries.row_sums import LARGEST_WEIGHT

_CURVATURE = 0.25  # of the even part of the logistic loss at 0
_ROWS = 1000  # that are looked at, evenly spaced: more would not change two digits


def response_weight(rows: Floats, noise_variance: float) -> float:
    """tr(G M G M) / tr(G M^2) times d / tr G, for public rows (n, d) of norm at most 1.

    `noise_variance` is the expected squared norm of the noise on the mean of y x, which the regularisation follows. 1
    where the rows go in all directions alike, and for rows that are all zero.

    Examples:
        >>> even, uneven = np.eye(2), np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
        >>> response_weight(even, 1.0), response_weight(uneven, 1.0), response_weight(uneven, 1e-4)
        (1.0, 1.2, 0.75)
    """
    some = rows[:: -(-len(rows) // _ROWS)]
    # Directions without rows have no scores, and count among the dimensions only.
    spectrum = np.square(np.linalg.svd(some, compute_uv=False)) / len(some)
    return weight_along(spectrum, rows.shape[1], noise_variance)


def weight_along(spectrum: Floats, features: int, noise_variance: float) -> float:
    """The same of rows of so many `features` with these second moments along their principal directions, up to all.

    Examples:
        >>> weight_along(np.array([0.75, 0.25]), 2, 1.0)
        1.2
    """
    if not spectrum.sum():
        return 1.0
    model = 1 / (_CURVATURE * spectrum + 2 * regularisation(noise_variance))
    harm = np.square(spectrum * model).sum() / (spectrum * model**2).sum()
    return float(np.clip(features * harm / spectrum.sum(), 1 / LARGEST_WEIGHT, LARGEST_WEIGHT))
