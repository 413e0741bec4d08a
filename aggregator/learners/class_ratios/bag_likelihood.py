"""The likelihood of which bag a row came from: how a classifier learns classes that no row is labelled with.

Rows of the pooled bags come from bag i with probability pi_i and have class y with probability q_y = sum_i pi_i P_iy.
A classifier f_y(x) = p(y | x) implies p(bag i | x) = sum_y T_iy f_y(x) with T_iy = p(bag i | y) = pi_i P_iy / q_y, so
it can be fitted to the bags that the rows are known to come from (forward correction: Patrini et al. 2017; surrogate
set classification: Lu et al. 2021). f is a softmax of W x + b + log q, so that zero weights say q. Classifiers are
fitted to parts of the bags and tried on what was left out; their probabilities can be calibrated there, and say under
which ratios of the classes a set is most likely.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from federation.numerics import simplex

_LEAST_PROPORTION = 1e-6  # a class that a bag is said not to hold must not make its rows impossible
_ITERATIONS = 500
_STRENGTHS = tuple(float(f"{10 ** (-k / 2):.2g}") for k in range(2, 15))  # 0.1 to 1e-7
_ROUNDS = 10_000
_ACCURACY = 1e-7  # of the mean log-likelihood, certified
_OPTIONS = {"maxiter": _ITERATIONS, "maxfun": 2 * _ITERATIONS, "maxcor": 20, "ftol": 1e-8, "gtol": 1e-5}


class Transition(NamedTuple):
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
    """f(x) of every row, (..., n, C), for `weights` (..., C, d + 1) with the intercepts last, and `rows` (n, d).

    Examples:
        >>> posteriors(np.zeros((2, 2)), np.array([[3.0]]), priors=np.array([0.2, 0.8]))  # zero weights say q
        array([[0.2, 0.8]])
    """
    scores = rows @ np.swapaxes(weights[..., :-1], -1, -2)
    scores += (weights[..., -1] + np.log(priors))[..., None, :]
    return softmax(scores)


def softmax(scores: np.ndarray) -> np.ndarray:
    """exp(s_y) / sum exp(s), over the last axis; `scores` are overwritten.

    Examples:
        >>> softmax(np.array([0.0, np.log(3.0)]))
        array([0.25, 0.75])
    """
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return scores


def surprise(posteriors: np.ndarray, likelihoods: np.ndarray) -> tuple[float, np.ndarray]:
    """Mean of -log p(bag | x) over n rows, and its gradient (n, C) with respect to their scores.

    `likelihoods` (n, C) are the rows of T for the bags that the rows came from, `posteriors` (n, C) are f(x). The
    gradient is (f_y - p(y | x, bag)) / n.

    Examples:
        >>> value, gradient = surprise(np.array([[0.5, 0.5]]), np.array([[0.9, 0.1]]))
        >>> round(value, 3), gradient.round(2).tolist()
        (0.693, [[-0.4, 0.4]])
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

    Examples:
        >>> weights, likelihoods = np.zeros((2, 2)), np.array([[0.9, 0.1], [0.1, 0.9]])  # of two rows from two bags
        >>> value, gradient = risk(weights, np.array([[1.0], [-1.0]]), likelihoods, np.array([0.5, 0.5]), 0.1)
        >>> round(value, 3), gradient.round(2).tolist()
        (0.693, [[-0.4, 0.0], [0.4, 0.0]])
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

    Examples:
        >>> likelihoods = np.array([[0.9, 0.1], [0.1, 0.9]])  # of two rows from two bags
        >>> rows, priors = np.array([[1.0], [-1.0]]), np.array([0.5, 0.5])
        >>> fitted_weights(rows, likelihoods, priors, regularisation=0.1, start=np.zeros((2, 2)))[:, 0].round(1)
        array([ 1., -1.])
    """

    def flat(values: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = risk(values.reshape(start.shape), rows, likelihoods, priors, regularisation)
        return value, gradient.ravel()

    found = minimize(flat, start.ravel(), jac=True, method="L-BFGS-B", options=_OPTIONS)
    return np.asarray(found.x.reshape(start.shape))


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
    return np.asarray(minimize(objective, start, jac=True, method="L-BFGS-B", options=_OPTIONS).x)


def recalibrated(posteriors: np.ndarray, calibration: np.ndarray) -> np.ndarray:
    """softmax(t log f + b), for posteriors (..., C) and (t, b) as `calibration` finds them.

    Examples:
        >>> recalibrated(np.array([0.1, 0.9]), np.array([0.5, 0.0, 0.0])).round(2)  # a higher temperature
        array([0.25, 0.75])
    """
    logs = np.log(np.maximum(posteriors, np.finfo(float).tiny))
    return softmax(calibration[0] * logs + calibration[1:])


class CrossFit(NamedTuple):
    """K classifiers (K, C, d + 1), the posteriors (N, C) of every row by the one that has not seen it, and lam."""

    weights: np.ndarray
    held_out: np.ndarray
    regularisation: float


def dealt(sizes: np.ndarray, folds: int, random: np.random.Generator) -> np.ndarray:
    """Fold numbers (N,) of the rows of bags that lie one after another: folds are equal in every bag, up to one row.

    Examples:
        >>> dealt(np.array([4, 4]), folds=2, random=np.random.default_rng(0)).tolist()
        [1, 0, 0, 1, 1, 0, 1, 0]
    """
    starts = np.cumsum(sizes) - sizes
    order = np.concatenate([start + random.permutation(n) for start, n in zip(starts, sizes, strict=True)])
    found = np.empty(len(order), dtype=np.intp)
    found[order] = np.arange(len(order)) % folds
    return found


def cross_fit(
    rows: np.ndarray, bags: np.ndarray, transition: Transition, regularisation: float | None, parts: np.ndarray
) -> CrossFit:
    """Fits one classifier without each part, for rows (N, d) of bags (N,) that are dealt into `parts` (N,).

    With `regularisation` None it is the one that surprises least on the rows left out, looked for from strong to weak
    until the surprise rises; each classifier starts where the last of its own part ended, so that no row is seen by the
    one that is tried on it.
    """
    folds = int(parts.max()) + 1
    likelihoods = transition.matrix[bags]
    weights = np.zeros((folds, len(transition.priors), rows.shape[1] + 1))
    best, least = None, np.inf
    for strength in _STRENGTHS if regularisation is None else (regularisation,):
        held_out = np.empty_like(likelihoods)
        for part in range(folds):
            out = parts == part
            weights[part] = fitted_weights(rows[~out], likelihoods[~out], transition.priors, strength, weights[part])
            held_out[out] = posteriors(weights[part], rows[out], transition.priors)
        value, _ = surprise(held_out, likelihoods)
        if value >= least:
            break
        best, least = CrossFit(weights.copy(), held_out, strength), value
    assert best is not None
    return best


def most_likely_ratios(posteriors: np.ndarray, priors: np.ndarray) -> np.ndarray:
    """Maximiser rho (C,) over the simplex of mean log sum_y rho_y f_y(x) / q_y (Saerens et al. 2002).

    By expectation maximisation from `priors` q (C,), all positive, for `posteriors` f (n, C) that hold under q. Every
    round raises the likelihood, which is concave: max_y mean(f_y / (q_y sum_z rho_z f_z / q_z)) - 1 bounds what is
    missing to the maximum, and the rounds stop when that is below 1e-7.

    Examples:
        >>> posteriors = np.array([[0.95, 0.05], [0.9, 0.1], [0.1, 0.9], [0.95, 0.05]])
        >>> most_likely_ratios(posteriors, priors=np.array([0.5, 0.5])).round(2)
        array([1., 0.])
    """
    densities = posteriors / priors
    rho = np.asarray(priors / priors.sum())
    for _ in range(_ROUNDS):
        ratios = np.reciprocal(densities @ rho) @ densities / len(densities)
        if ratios.max() - 1 <= _ACCURACY:
            break
        rho = rho * ratios
        rho /= rho.sum()
    return rho
