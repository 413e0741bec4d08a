"""Maximum-entropy models within a given distance of a noisy statistic (Morozov's discrepancy principle).

    minimise  R(w) + threshold |w|,    R(w) = mean_i log sum_k exp(w_k'x_i) - <mu, w>      (or its binary form)

is the dual of maximising the entropy of the labels subject to |mu(w) - mu| <= threshold, mu(w) being the model's
own statistic (Dudik, Phillips and Schapire 2007, J. Mach. Learn. Res. 8). Where w is not 0 it is the minimiser w_lam
of the ridge risk R(w) + lam/2 |w|^2 with lam |w_lam| = threshold. Both sides are monotone: lam |w_lam| =
|grad R(w_lam)| rises with lam, up to |grad R(0)|, while |w_lam| falls.
"""

from __future__ import annotations

import math

import numpy as np

from federation.contract.errors import InputError
from federation.numerics.erm import attainable_tolerance, minimise
from federation.numerics.label_losses import label_loss
from federation.numerics.rows import Floats

SMALLEST_RIDGE = 1e-6  # where (nearly) no distance is asked for, and a minimiser need not exist
_ACCURACY = 1e-4  # relative, of the distance
_SECANT_STEPS = 12  # a handful is usual; whatever is left after them is halved
_STEPS = 100
_FLATTEST = 0.02  # least slope that a secant step trusts


def discrepancy_minimiser(rows: Floats, mu: Floats, threshold: float) -> Floats:
    """The minimiser of R(w) + threshold |w|, in the shape of mu; its distance is met to a ten-thousandth.

    `rows` (N, d); `mu` (d,) binary or (C, d) multinomial, any vectors, in the coordinates in which distances are
    Euclidean. Zero when the threshold is at least |grad R(0)|. Never regularised by less than a ridge of 1e-6, whose
    distance may then exceed the threshold. Raises `InputError` for a threshold that is negative or not finite, and
    for arrays as `federation.numerics.erm.minimise`.

    Examples:
        >>> rows, mu = np.eye(2), np.array([0.3, 0.2])  # of weights 0 it is (1/4, 1/4)
        >>> discrepancy_minimiser(rows, mu, threshold=0.02).round(2)
        array([ 0.29, -0.29])
        >>> discrepancy_minimiser(rows, mu, threshold=0.1)  # which weights of 0 meet
        array([0., 0.])
    """
    if not 0 <= threshold < math.inf:
        raise InputError(f"threshold must be finite and not negative, got {threshold}")
    at_zero, _ = label_loss(rows, mu, SMALLEST_RIDGE).gradient(np.zeros(np.size(mu)))
    farthest = float(np.linalg.norm(at_zero))
    if threshold >= farthest:
        return np.zeros(np.shape(mu))
    accuracy = _ACCURACY * max(threshold, _ACCURACY * farthest)
    floor = low = math.log(SMALLEST_RIDGE)
    high = math.inf
    # The quadratic model at w = 0 has lam |w_lam| = |grad R(0)| lam / (lam + curvature).
    curvature = float(np.einsum("nd,nd->", rows, rows)) / rows.size / (4 if np.ndim(mu) == 1 else len(mu))
    ridge = max(SMALLEST_RIDGE, curvature * threshold / (farthest - threshold))
    at, slope, last = math.log(ridge), curvature / (ridge + curvature), None
    weights, floored = np.zeros(np.shape(mu)), False
    for step in range(_STEPS):
        ridge = math.exp(at)
        tolerance = attainable_tolerance(accuracy / 4, rows, ridge)
        weights = minimise(rows, mu, ridge, gradient_tolerance=tolerance, start=weights).weights
        distance = ridge * float(np.linalg.norm(weights))
        if abs(distance - threshold) <= accuracy or (distance > threshold and at == floor):
            break
        low, high = (at, high) if distance < threshold else (low, at)
        error = math.log(distance / max(threshold, accuracy))  # rises with the log ridge, by a slope of at most 1
        if last is not None:
            slope = min(1.0, max(_FLATTEST, (error - last[1]) / (at - last[0])))
        last, at = (at, error), at - error / slope
        if at < floor and not floored:
            at, floored = floor, True  # the distance may be out of reach, which only the floor shows
        elif not low < at < high or step >= _SECANT_STEPS:
            at = (low + high) / 2 if high < math.inf else low + 1
    return weights
