"""Regularised logistic and softmax risks that see labels only through a sufficient statistic.

With public rows x_1..x_N and label shares alpha, the label part of the risk is linear in the weights, so
labels enter only as the statistic mu:

    binary       R(w) = mean_i log(1 + exp(w'x_i))     - <mu, w> + lam/2 |w|^2,    mu = mean_i alpha_i x_i
    multinomial  R(W) = mean_i log sum_k exp(w_k'x_i)  - <mu, W> + lam/2 |W|_F^2,  mu = mean_i alpha_i x_i'

The first is Hamm et al. 2016, Eq. 19 (log(1+e^z) - alpha z = alpha l(z) + (1-alpha) l(-z)), the second its
Appendix B with vote shares. Weights travel as one flat vector; the multinomial one is row-major (C, d).
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from federation.contract.errors import InputError

_BLOCK_ENTRIES = 1 << 18  # weighted rows are formed in blocks of about 2 MB, which stay in cache


class LabelLoss(Protocol):
    """A smooth risk, `regularisation`-strongly convex, known through its derivatives."""

    rows: np.ndarray
    regularisation: float
    unknowns: int
    curvature: float  # largest eigenvalue of the loss's Hessian with respect to the scores of one row
    start_gradient: float  # largest possible |grad R(0)| over all labels, in units of the largest row norm

    def gradient(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradient at flat weights, and the class probabilities there."""

    def hessian(self, probabilities: np.ndarray) -> np.ndarray:
        """Hessian (unknowns, unknowns) where the class probabilities were evaluated."""

    def product(self, probabilities: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Hessian times the flat vector v, without forming the Hessian."""


class BinaryLoss:
    """Logistic risk for `rows` (N, d) and `mu` (d,), where mu averages the shares of class 1."""

    curvature = 0.25
    start_gradient = 0.5  # |1/2 - alpha| <= 1/2

    def __init__(self, rows: np.ndarray, mu: np.ndarray, regularisation: float) -> None:
        self.rows, self.mu, self.regularisation = rows, mu, regularisation
        self.unknowns = rows.shape[1]
        self._penalty = regularisation * np.eye(self.unknowns)
        self._blocks = _blocks(len(rows), self.unknowns)

    def gradient(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradient at w (d,) and the probabilities (N,) of class 1."""
        p = self.rows.dot(w)
        p *= 0.5
        np.tanh(p, out=p)  # sigma(z) = (1 + tanh(z/2)) / 2 cannot overflow
        p += 1.0
        p *= 0.5
        gradient = p.dot(self.rows)
        gradient /= len(p)
        gradient -= self.mu
        gradient += self.regularisation * w
        return gradient, p

    def hessian(self, probabilities: np.ndarray) -> np.ndarray:
        """(1/N) X' diag(p (1-p)) X + lam I."""
        weights = np.sqrt(probabilities * (1.0 - probabilities) / len(probabilities))[:, None]
        total = self._penalty.copy()
        for block in self._blocks:
            scaled = self.rows[block] * weights[block]
            total += scaled.T.dot(scaled)
        return total

    def product(self, probabilities: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(1/N) X' diag(p (1-p)) X v + lam v."""
        weights = probabilities * (1.0 - probabilities) / len(probabilities)
        return (weights * self.rows.dot(v)).dot(self.rows) + self.regularisation * v


class MultinomialLoss:
    """Softmax risk for `rows` (N, d) and `mu` (C, d), where row k of mu averages the shares of class k."""

    curvature = 0.5  # diag(p) - p p' has eigenvalues of at most 1/2

    def __init__(self, rows: np.ndarray, mu: np.ndarray, regularisation: float) -> None:
        self.rows, self.regularisation = rows, regularisation
        self.mu = mu.ravel()
        self.unknowns = mu.size
        self.start_gradient = math.sqrt(1.0 - 1.0 / len(mu))  # |1/C - alpha| <= |1/C - e_k|
        self._shape = mu.shape
        self._blocks = _blocks(len(rows), self.unknowns)

    def gradient(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradient at w (C * d,) and the probabilities (C, N)."""
        p = w.reshape(self._shape).dot(self.rows.T)
        p -= np.maximum.reduce(p, axis=0)  # the largest exponential is 1: no overflow
        np.exp(p, out=p)
        p /= np.add.reduce(p, axis=0)
        gradient = p.dot(self.rows).ravel()
        gradient /= p.shape[1]
        gradient -= self.mu
        gradient += self.regularisation * w
        return gradient, p

    def hessian(self, probabilities: np.ndarray) -> np.ndarray:
        """(1/N) sum_i (diag(p_i) - p_i p_i') (x) x_i x_i' + lam I."""
        classes, dimension = self._shape
        shares = np.ascontiguousarray(probabilities.T)[:, :, None]
        outer, inner = self._moments(shares, self._blocks[0])
        for block in self._blocks[1:]:
            more_outer, more_inner = self._moments(shares, block)
            outer += more_outer
            inner += more_inner
        outer /= -len(shares)
        inner /= len(shares)
        diagonal_blocks = np.einsum("kakb->akb", outer.reshape(classes, dimension, classes, dimension))
        diagonal_blocks += inner.reshape(dimension, classes, dimension)
        outer.ravel()[:: self.unknowns + 1] += self.regularisation
        return outer

    def _moments(self, shares: np.ndarray, block: slice) -> tuple[np.ndarray, np.ndarray]:
        """Sums over a block of rows: (p (x) x)(p (x) x)', and x (p (x) x)' with a row per feature."""
        rows = self.rows[block]
        scaled = (shares[block] * rows[:, None, :]).reshape(-1, self.unknowns)
        return scaled.T.dot(scaled), rows.T.dot(scaled)

    def product(self, probabilities: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Hessian times v through the scores of v: p_ik (u_ik - sum_j p_ij u_ij)."""
        u = probabilities * v.reshape(self._shape).dot(self.rows.T)
        u -= probabilities * np.add.reduce(u, axis=0)
        return u.dot(self.rows).ravel() / u.shape[1] + self.regularisation * v


def label_loss(rows: np.ndarray, mu: np.ndarray, regularisation: float) -> LabelLoss:
    """The risk for rows (N, d) and a statistic (d,), binary, or (C, d), multinomial.

    Raises `InputError` for a regularisation that is not positive and finite, arrays that are empty or not
    finite, and shapes that do not fit.
    """
    check_regularisation(regularisation)
    rows = np.ascontiguousarray(rows, dtype=np.float64)
    mu = np.ascontiguousarray(mu, dtype=np.float64)
    if rows.ndim != 2 or rows.size == 0:
        raise InputError(f"rows must be a non-empty array of shape (N, d), got shape {rows.shape}")
    if mu.ndim not in (1, 2) or mu.shape[-1] != rows.shape[1] or (mu.ndim == 2 and len(mu) < 2):
        raise InputError(f"mu must have shape ({rows.shape[1]},) or (C, {rows.shape[1]}) with C >= 2, got {mu.shape}")
    check_finite(rows, "rows")
    check_finite(mu, "mu")
    return BinaryLoss(rows, mu, regularisation) if mu.ndim == 1 else MultinomialLoss(rows, mu, regularisation)


def check_regularisation(regularisation: float) -> None:
    """Raises `InputError` unless 0 < regularisation < inf: without it no minimiser need exist."""
    if not 0 < regularisation < math.inf:
        raise InputError(f"regularisation must be positive and finite, got {regularisation}")


def check_finite(values: np.ndarray, name: str) -> None:
    """Raises `InputError` unless every entry, and the squared norm that every bound rests on, is finite."""
    flat = values.ravel()
    with np.errstate(over="ignore", invalid="ignore"):  # refused here, in one sentence
        squares = flat.dot(flat)
    if not math.isfinite(squares):
        raise InputError(
            f"{name} must be finite, and so must the sum of their squares; drop or impute missing values first, and "
            "rescale huge ones"
        )


def _blocks(rows: int, width: int) -> list[slice]:
    step = max(64, _BLOCK_ENTRIES // width)
    return [slice(first, first + step) for first in range(0, rows, step)]
