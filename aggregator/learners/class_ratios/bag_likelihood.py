"""The likelihood of which bag a row came from: how a classifier learns classes that no row is labelled with.

Rows of the pooled bags come from bag i with probability pi_i and have class y with probability q_y = sum_i pi_i P_iy.
A classifier f_y(x) = p(y | x) implies p(bag i | x) = sum_y T_iy f_y(x) with T_iy = p(bag i | y) = pi_i P_iy / q_y, so
it can be fitted to the bags that the rows are known to come from (forward correction: Patrini et al. 2017; surrogate
set classification: Lu et al. 2021). f is a softmax of W x + b + log q, so that zero weights say q.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from federation.numerics import simplex

_LEAST_PROPORTION = 1e-6  # a class that a bag is said not to hold must not make its rows impossible
_ITERATIONS = 500
_OPTIONS = {"maxiter": _ITERATIONS, "maxfun": 2 * _ITERATIONS, "maxcor": 20, "ftol": 1e-8, "gtol": 1e-5}


@dataclass(frozen=True, eq=False)
class Transition:
    """`priors` q (C,) of the classes among all rows, and `matrix` T (M, C), whose columns sum to 1; T q = pi."""

    priors: np.ndarray
    matrix: np.ndarray

    @classmethod
    def of(cls, proportions: np.ndarray, sizes: np.ndarray) -> Transition:
        """For bags of `sizes` (M,) with `proportions` (M, C), which are projected to the simplex first."""
        inside = np.maximum(simplex.project(proportions), _LEAST_PROPORTION)
        joint = inside / inside.sum(axis=1, keepdims=True) * (sizes / sizes.sum())[:, None]
        priors = joint.sum(axis=0)
        return cls(priors, joint / priors)


def posteriors(weights: np.ndarray, rows: np.ndarray, priors: np.ndarray) -> np.ndarray:
    """f(x) of every row, (..., n, C), for `weights` (..., C, d + 1) with the intercepts last, and `rows` (n, d)."""
    scores = rows @ np.swapaxes(weights[..., :-1], -1, -2)
    scores += (weights[..., -1] + np.log(priors))[..., None, :]
    return softmax(scores)


def softmax(scores: np.ndarray) -> np.ndarray:
    """exp(s_y) / sum exp(s), over the last axis; `scores` are overwritten."""
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return scores


def surprise(posteriors: np.ndarray, likelihoods: np.ndarray) -> tuple[float, np.ndarray]:
    """Mean of -log p(bag | x) over n rows, and its gradient (n, C) with respect to their scores.

    `likelihoods` (n, C) are the rows of T for the bags that the rows came from, `posteriors` (n, C) are f(x). The
    gradient is (f_y - p(y | x, bag)) / n.
    """
    joint = posteriors * likelihoods
    evidence = joint.sum(axis=1)
    joint /= evidence[:, None]
    return -float(np.log(evidence).mean()), (posteriors - joint) / len(joint)


def risk(
    weights: np.ndarray, rows: np.ndarray, likelihoods: np.ndarray, priors: np.ndarray, regularisation: float
) -> tuple[float, np.ndarray]:
    """`surprise` + lam d/2 |W|^2 and its gradient (C, d + 1) at `weights` (C, d + 1); intercepts are not regularised.

    The d makes lam a number without unit for rows whose coordinates have mean square 1.
    """
    strength = regularisation * rows.shape[1]
    value, residuals = surprise(posteriors(weights, rows, priors), likelihoods)
    gradient = np.empty_like(weights)
    gradient[:, :-1] = residuals.T @ rows + strength * weights[:, :-1]
    gradient[:, -1] = residuals.sum(axis=0)
    return value + strength / 2 * float(np.sum(weights[:, :-1] ** 2)), gradient


def fitted_weights(
    rows: np.ndarray, likelihoods: np.ndarray, priors: np.ndarray, regularisation: float, start: np.ndarray
) -> np.ndarray:
    """Weights (C, d + 1) where the risk is stationary, by L-BFGS from `start`.

    The risk is a difference of convex functions: it is convex only where the bags are pure, and another start may end
    elsewhere.
    """

    def flat(values: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = risk(values.reshape(start.shape), rows, likelihoods, priors, regularisation)
        return value, gradient.ravel()

    return minimize(flat, start.ravel(), jac=True, method="L-BFGS-B", options=_OPTIONS).x.reshape(start.shape)


def calibration(posteriors: np.ndarray, likelihoods: np.ndarray) -> np.ndarray:
    """(t, b_1..b_C) such that softmax(t log f + b) surprises least on held-out rows, shape (1 + C,).

    Temperature scaling with a bias per class, which corrects both ways in which probabilities mislead an estimate of
    ratios (Alexandari, Kundaje and Shrikumar 2020), fitted to bags in place of labels.
    """
    logs = np.log(np.maximum(posteriors, np.finfo(float).tiny))

    def objective(values: np.ndarray) -> tuple[float, np.ndarray]:
        value, residuals = surprise(softmax(values[0] * logs + values[1:]), likelihoods)
        return value, np.append(np.sum(residuals * logs), residuals.sum(axis=0))

    start = np.append(1.0, np.zeros(logs.shape[1]))
    return minimize(objective, start, jac=True, method="L-BFGS-B", options=_OPTIONS).x


def recalibrated(posteriors: np.ndarray, calibration: np.ndarray) -> np.ndarray:
    """softmax(t log f + b), for posteriors (..., C) and (t, b) as `calibration` finds them."""
    logs = np.log(np.maximum(posteriors, np.finfo(float).tiny))
    return softmax(calibration[0] * logs + calibration[1:])
