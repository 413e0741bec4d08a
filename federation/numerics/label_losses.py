"""Regularised logistic and softmax risks that see labels only through a sufficient statistic, and their links.

With public rows x_1..x_N and label shares alpha, the label part of the risk is linear in the weights. So labels enter
only as the statistic mu:

    binary       R(w) = mean_i log(1 + exp(w'x_i))     - <mu, w> + lam/2 |w|^2,    mu = mean_i alpha_i x_i
    multinomial  R(W) = mean_i log sum_k exp(w_k'x_i)  - <mu, W> + lam/2 |W|_F^2,  mu = mean_i alpha_i x_i'

The first is Hamm et al. 2016, Eq. 19 (log(1+e^z) - alpha z = alpha l(z) + (1-alpha) l(-z)), the second its Appendix B
with vote shares. Weights travel as one flat vector; the multinomial one is row-major (C, d).

The links (`Logistic`, `Softmax`) give class probabilities of many parties, and the curvature of the log-loss in the
scores. Arrays are (T, C, n): party, class, row. The logistic link has a single channel, the score of class 1. A link
has three methods:

- `probabilities` gives those of the classes (T, C, n) at scores (T, C, n).
- `curvature` gives what `curve` needs where these are the probabilities, for parties of so many rows (T, 1, 1).
- `curve` writes the second derivative of the mean log-loss in the scores, times other scores (T, C, n), into `out`.
  `out` may be these scores themselves.
"""

import math
from abc import ABC, abstractmethod
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from federation.contract.errors import InputError
from federation.numerics.rows import Floats, Integers, numbers

_BLOCK_ENTRIES = 1 << 18  # weighted rows are formed in blocks of about 2 MB, which stay in cache


class LabelLoss(ABC):
    """A smooth risk, `regularisation`-strongly convex, known through its derivatives; made by `label_loss`.

    Weights w and gradients are flat, (unknowns,), of the `shape` of mu. `curvature` is the largest eigenvalue of the
    loss's Hessian with respect to the scores of one row, `start_gradient` the largest possible |grad R(0)| over all
    labels, in units of the largest row norm; both hold for `weights` (N,) of the rows, too, whose mean is 1.
    """

    curvature: float
    start_gradient: float

    def __init__(self, rows: Floats, mu: Floats, regularisation: float, weights: Floats | None = None) -> None:
        self.rows, self.mu, self.regularisation = rows, mu.ravel(), regularisation
        self.unknowns, self.shape = mu.size, mu.shape
        self._weights = weights
        self._stretched = rows if weights is None else rows * np.sqrt(weights)[:, None]  # their squares are weighted

    def gradient(self, w: Floats) -> tuple[Floats, Floats]:
        """Gradient at flat weights, and the class probabilities there: (N,) of class 1, or (C, N)."""
        probabilities = self._probabilities(w)
        counted = probabilities if self._weights is None else probabilities * self._weights
        gradient = counted.dot(self.rows).ravel()
        gradient /= len(self.rows)
        gradient -= self.mu
        gradient += self.regularisation * w
        return gradient, probabilities

    @abstractmethod
    def _probabilities(self, w: Floats) -> Floats:
        """Class probabilities of the rows."""

    @abstractmethod
    def hessian(self, probabilities: Floats) -> Floats:
        """Hessian (unknowns, unknowns) where the class probabilities were evaluated."""

    @abstractmethod
    def product(self, probabilities: Floats, v: Floats) -> Floats:
        """Hessian times the flat vector v, without forming the Hessian."""


def _blocks(rows: int, width: int) -> list[slice]:
    """Slices of so many rows with so many numbers that one fits in cache."""
    step = max(64, _BLOCK_ENTRIES // width)
    return [slice(first, first + step) for first in range(0, rows, step)]


def weighted_gram(rows: Floats, weights: Floats, ridge: float) -> Floats:
    """X' diag(w) X + ridge I (d, d) for rows X (n, d) and weights w (n,) >= 0.

    Examples:
        >>> weighted_gram(np.array([[1.0, 0.0], [1.0, 2.0]]), np.array([1.0, 0.5]), ridge=0.1)
        array([[1.6, 1. ],
               [1. , 2.1]])
    """
    roots = np.sqrt(weights)[:, None]
    total = ridge * np.eye(rows.shape[1])
    for block in _blocks(*rows.shape):
        scaled = rows[block] * roots[block]
        total += scaled.T.dot(scaled)
    return total


class BinaryLoss(LabelLoss):
    """Logistic risk for `rows` (N, d) and `mu` (d,), where mu averages the shares of class 1."""

    curvature = 0.25
    start_gradient = 0.5  # |1/2 - alpha| <= 1/2

    def _probabilities(self, w: Floats) -> Floats:
        return Logistic().probabilities(self.rows.dot(w))

    def hessian(self, probabilities: Floats) -> Floats:
        """(1/N) X' diag(p (1-p)) X + lam I."""
        weights = probabilities * (1.0 - probabilities) / len(probabilities)
        return weighted_gram(self._stretched, weights, self.regularisation)

    def product(self, probabilities: Floats, v: Floats) -> Floats:
        """(1/N) X' diag(p (1-p)) X v + lam v."""
        weights = probabilities * (1.0 - probabilities) / len(probabilities)
        rows = self._stretched
        return np.asarray((weights * rows.dot(v)).dot(rows) + self.regularisation * v)


class MultinomialLoss(LabelLoss):
    """Softmax risk for `rows` (N, d) and `mu` (C, d), where row k of mu averages the shares of class k."""

    curvature = 0.5  # diag(p) - p p' has eigenvalues of at most 1/2

    def __init__(self, rows: Floats, mu: Floats, regularisation: float, weights: Floats | None = None) -> None:
        super().__init__(rows, mu, regularisation, weights)
        self.start_gradient = math.sqrt(1.0 - 1.0 / len(mu))  # |1/C - alpha| <= |1/C - e_k|

    def _probabilities(self, w: Floats) -> Floats:
        p: Floats = w.reshape(self.shape).dot(self.rows.T)
        p -= np.maximum.reduce(p, axis=0)  # the largest exponential is 1: no overflow
        np.exp(p, out=p)
        p /= np.add.reduce(p, axis=0)
        return p

    def hessian(self, probabilities: Floats) -> Floats:
        """(1/N) sum_i (diag(p_i) - p_i p_i') (x) x_i x_i' + lam I."""
        classes, dimension = self.shape
        shares = np.ascontiguousarray(probabilities.T)[:, :, None]
        moments = (self._moments(shares, block) for block in _blocks(len(self.rows), self.unknowns))
        outer, inner = next(moments)
        for more_outer, more_inner in moments:
            outer += more_outer
            inner += more_inner
        outer /= -len(shares)
        inner /= len(shares)
        diagonal_blocks = np.einsum("kakb->akb", outer.reshape(classes, dimension, classes, dimension))
        diagonal_blocks += inner.reshape(dimension, classes, dimension)
        outer.ravel()[:: self.unknowns + 1] += self.regularisation
        return outer

    def _moments(self, shares: Floats, block: slice) -> tuple[Floats, Floats]:
        """Sums over a block of rows: (p (x) x)(p (x) x)', and x (p (x) x)' with a row per feature."""
        rows = self._stretched[block]
        scaled = (shares[block] * rows[:, None, :]).reshape(-1, self.unknowns)
        return scaled.T.dot(scaled), rows.T.dot(scaled)

    def product(self, probabilities: Floats, v: Floats) -> Floats:
        """Hessian times v through the scores of v: p_ik (u_ik - sum_j p_ij u_ij)."""
        u = probabilities * v.reshape(self.shape).dot(self._stretched.T)
        u -= probabilities * np.add.reduce(u, axis=0)
        return np.asarray(u.dot(self._stretched).ravel() / u.shape[1] + self.regularisation * v)


def label_loss(rows: Floats, mu: Floats, regularisation: float, weights: Floats | None = None) -> LabelLoss:
    """The risk for rows (N, d) and a statistic (d,), binary, or (C, d), multinomial.

    With `weights` (N,), which are divided by their mean, every mean_i is weighted, and mu must be, too. Raises
    `InputError` for a regularisation that is not positive and finite, arrays that are empty or not finite, shapes that
    do not fit, and weights that are negative or all zero.

    Examples:
        >>> rows, shares = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0.9, 0.2])
        >>> risk = label_loss(rows, shares @ rows / 2, regularisation=0.1)
        >>> gradient, probabilities = risk.gradient(np.zeros(2))
        >>> gradient  # (1/2 - alpha_i) / 2
        array([-0.2 ,  0.15])
        >>> risk.hessian(probabilities)
        array([[0.225, 0.   ],
               [0.   , 0.225]])
    """
    check_regularisation(regularisation)
    rows, mu = checked_statistic(rows, mu, "mu", least=2)
    kind = BinaryLoss if mu.ndim == 1 else MultinomialLoss
    return kind(rows, mu, regularisation, None if weights is None else of_mean_one(weights, len(rows)))


def of_mean_one(weights: Floats, rows: int) -> Floats:
    """Weights (rows,) over their mean. Raises `InputError` unless they are finite, not negative and not all zero.

    Examples:
        >>> of_mean_one(np.array([1.0, 3.0]), rows=2)
        array([0.5, 1.5])
    """
    found = np.asarray(numbers(weights, "weights"), dtype=np.float64)
    if found.shape != (rows,) or not np.isfinite(found).all() or (found < 0).any() or not found.any():
        raise InputError(
            f"weights must be one finite number of at least 0 for each of {rows} rows, and not all 0; got shape "
            f"{found.shape}"
        )
    return np.asarray(found / found.max() / (found / found.max()).mean())  # whose sum cannot overflow


def checked_statistic(rows: Floats, statistic: Floats, name: str, least: int) -> tuple[Floats, Floats]:
    """Rows (n, d) and a statistic (d,) or m >= `least` of them (m, d), contiguous. Raises `InputError` for others."""
    rows, statistic = (np.ascontiguousarray(numbers(*one)) for one in ((rows, "rows"), (statistic, name)))
    if rows.ndim != 2 or rows.size == 0:
        raise InputError(f"rows must be a non-empty array of shape (n, d), got shape {rows.shape}")
    width = rows.shape[1]
    if statistic.ndim not in (1, 2) or statistic.shape[-1] != width or (statistic.ndim == 2 and len(statistic) < least):
        raise InputError(
            f"{name} must hold one number for each of the {width} columns of the rows, shape ({width},) or "
            f"(m, {width}) with m >= {least}; got {statistic.shape}"
        )
    check_finite(rows, "rows")
    check_finite(statistic, name)
    return rows, statistic


def check_regularisation(regularisation: float) -> None:
    """Raises `InputError` unless 0 < regularisation < inf: without it no minimiser need exist."""
    if not 0 < regularisation < math.inf:
        raise InputError(f"regularisation must be positive and finite, got {regularisation}")


def check_finite(values: Floats, name: str) -> None:
    """Raises `InputError` unless every entry, and the squared norm that every bound rests on, is finite."""
    flat = values.ravel()
    with np.errstate(over="ignore", invalid="ignore"):  # refused here, in one sentence
        squares = flat.dot(flat)
    if not math.isfinite(squares):
        raise InputError(
            f"{name} must be finite, and so must the sum of their squares; drop or impute missing values first, and "
            "rescale huge ones"
        )


def check_labels(rows: Floats, labels: Integers, classes: int) -> None:
    """Raises `InputError` unless there is one integer label per row (n, d) and two classes at least."""
    if classes < 2 or rows.ndim != 2 or labels.shape != rows.shape[:1] or labels.dtype.kind not in "iu":
        raise InputError(
            f"labels must be one integer per row and classes at least 2, got labels of shape {labels.shape} "
            f"({labels.dtype}), rows of shape {rows.shape}, classes {classes}"
        )


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
