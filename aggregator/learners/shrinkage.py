"""Linear regression from a noisy X'y whose noise has a known covariance: hierarchical Bayes in closed form.

In whitened coordinates z = W'b is the answer plus noise of covariance S = W'NW, and the excess risk of an estimate is
its squared distance to the answer over n. The prior knows the declared range of labels and nothing else. Its strength
is averaged over by the evidence, not chosen: few dimensions make a choice noisy.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.linalg import eigh
from scipy.special import softmax

from federation.contract.errors import InputError
from federation.numerics.rows import Floats, whitening

GRID = 25  # strengths of the prior, for each family

_WEAKEST = 1e-4  # of the largest strength
_MIDDLE_VARIANCE = 1 / 12  # of the answer to a constant, in squared widths of the range: uniform over the range
_MOST_VARIANCE = 1 / 4  # of labels in a range of width 1
_CONSTANT = 1e-7  # columns whose spread is below this share of their norm are constant but for rounding
_JITTER = 1e-12  # of each variance: covariances that are singular but for rounding


@dataclass(frozen=True, eq=False)
class Posterior:
    """What is known of the weights of x'w: their mean (d,), and their covariance (d, d)."""

    weights: Floats
    covariance: Floats


def shrink(gram: Floats, total: Floats, noise: Floats, **known: Any) -> Posterior:
    """The posterior of least-squares weights given a noisy `total` = X'y + e (d,), where Cov e = `noise` (d, d).

    X are n = `rows` rows, `gram` = X'X (d, d), `ones` = X'1 (d,): the answer that is constant need not be a column. y
    lies in `label_range`, of width D and middle m. A priori the fitted values have mean m, D^2/12 of variance along the
    constant, and t of variance around it, which is spread over directions in two ways: evenly over those that the rows
    span, or as independent weights of standardised columns spread it. Both ways are alike likely, t is uniform on
    (0, D^2/4], on a log grid of `grid` points from 1e-4 of it. So units of labels and columns do not matter, and with a
    constant column neither does where they begin. Without noise this is least squares; with noise
    alone it is the constant m. Directions that the rows lack get weight 0.

    Raises `InputError` for arrays of other shapes or that are not finite, a range without width, or no row.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> X = np.column_stack([rng.normal(size=(50, 2)), np.ones(50)])
        >>> total, noise = X.T @ (X @ [0.3, 0.0, 0.5]) + rng.normal(size=3), np.eye(3)
        >>> found = shrink(X.T @ X, total, noise, ones=X.sum(axis=0), rows=50, label_range=(0.0, 1.0))
        >>> found.weights.round(2), np.sqrt(np.diag(found.covariance)).round(2)
        (array([0.31, 0.02, 0.49]), array([0.02, 0.02, 0.02]))
    """
    return Shrinkage(gram, noise, **known).posterior(total)


class Shrinkage:
    """What `shrink` does, prepared once for all totals whose noise has this covariance; its errors are raised here.

    `constant_shares` are alike likely a priori: shares of the variance D^2/12 that the answer has along the constant.
    """

    def __init__(
        self,
        gram: Floats,
        noise: Floats,
        *,
        ones: Floats,
        rows: float,
        label_range: tuple[float, float],
        grid: int = GRID,
        constant_shares: Sequence[float] = (1.0,),
    ) -> None:
        _require(gram, noise, ones, rows, label_range, grid)
        self._width, self._middle = label_range[1] - label_range[0], (label_range[0] + label_range[1]) / 2
        self._ones, (self._whiten, unwhiten) = ones, whitening(gram)
        self._constant = self._whiten.T @ ones
        if not len(self._constant):
            return
        root = self._whiten.T @ _root(noise) / self._width
        spread = root @ root.T  # a square: rounding makes no variance negative
        along = _MIDDLE_VARIANCE * np.outer(self._constant, self._constant)
        strengths = _MOST_VARIANCE * np.geomspace(_WEAKEST, 1.0, grid)
        self._families = [
            _Family.of(spread, share * along, family, strengths)
            for share in constant_shares
            for family in _families(self._constant, unwhiten, ones, rows)
        ]

    def posterior(self, total: Floats) -> Posterior:
        """Of the weights given a noisy total (d,). Raises `InputError` for another shape or what is not finite."""
        _require_shape("total", total, self._ones.shape)
        if not len(self._constant):
            return Posterior(np.zeros_like(total), np.zeros((len(total), len(total))))
        z = self._whiten.T @ (total - self._middle * self._ones) / self._width
        likely = np.array([family.log_evidence(z) + np.log(family.strengths) for family in self._families])
        shares = softmax(likely.ravel()).reshape(likely.shape)
        means = np.concatenate([family.means(z) for family in self._families])
        mean = shares.ravel() @ means
        covariance = ((means - mean).T * shares.ravel()) @ (means - mean)
        for family, share in zip(self._families, shares, strict=True):
            covariance += family.covariance(share)
        weights = self._middle * (self._whiten @ self._constant) + self._width * (self._whiten @ mean)
        return Posterior(weights, self._width**2 * self._whiten @ covariance @ self._whiten.T)


def _root(covariance: Floats) -> Floats:
    """F (d, d) with F F' the covariance, whose entries may be in different units."""
    deviations = np.sqrt(np.diag(covariance).clip(0.0))
    scale = np.where(deviations > 0, deviations, 1.0)
    values, vectors = np.linalg.eigh(covariance / scale[:, None] / scale)
    return np.asarray(vectors * np.sqrt(values.clip(0.0)) * scale[:, None])


def _families(constant: Floats, unwhiten: Floats, ones: Floats, rows: float) -> tuple[Floats, Floats]:
    """Covariances (r, r) of fitted values around the constant, of mean variance 1 over the rows."""
    size = max(rows, float(constant @ constant))  # more than the rows only where moments are approximate
    around = np.eye(len(constant)) - np.outer(constant, constant) / size
    centred = unwhiten - np.outer(ones, constant) / size
    norms = np.linalg.norm(centred, axis=1)
    varying = norms > _CONSTANT * np.linalg.norm(unwhiten, axis=1)
    scaled = centred[varying] / norms[varying, None]
    even = size / max(float(np.trace(around)), _CONSTANT) * around  # rows of nothing but a constant have no directions
    return even, size / max(len(scaled), 1) * scaled.T @ scaled


@dataclass(frozen=True, eq=False)
class _Family:
    """A family of priors A_t = base + t P (r, r) of z = answer + noise, in coordinates where every A_t + S is diagonal.

    There V'(A_t + S)V = diag(values_t), values (T, r). `base` and `family` are the two parts of A V, `spread` is V'S,
    `vectors` is V, all (r, r); `log_determinants` (T,) are those of A_t + S.
    """

    strengths: Floats
    values: Floats
    log_determinants: Floats
    vectors: Floats
    base: Floats
    family: Floats
    spread: Floats

    @classmethod
    def of(cls, spread: Floats, base: Floats, family: Floats, strengths: Floats) -> Self:
        """Of the noise's covariance S and both parts of the prior's."""
        largest = spread + base + strengths[-1] * family
        largest = largest + _JITTER * np.diag(np.diag(largest))
        roots, vectors = eigh(family, largest)
        values = 1 - (strengths[-1] - strengths)[:, None] * roots
        determinants = np.log(values).sum(axis=1) - 2 * np.linalg.slogdet(vectors)[1]
        return cls(strengths, values, determinants, vectors, base @ vectors, family @ vectors, vectors.T @ spread)

    def log_evidence(self, z: Floats) -> Floats:
        """The log density of z for every t, (T,), up to a constant of all families."""
        scores: Floats = z @ self.vectors
        return np.asarray(-(self.log_determinants + (scores**2 / self.values).sum(axis=1)) / 2)

    def means(self, z: Floats) -> Floats:
        """A_t (A_t + S)^{-1} z for every t, (T, r)."""
        scaled = (z @ self.vectors) / self.values
        return scaled @ self.base.T + (self.strengths[:, None] * scaled) @ self.family.T

    def covariance(self, shares: Floats) -> Floats:
        """The sum over t of shares_t A_t (A_t + S)^{-1} S, (r, r)."""
        each = shares @ (1 / self.values), (shares * self.strengths) @ (1 / self.values)
        found = (self.base * each[0] + self.family * each[1]) @ self.spread
        return (found + found.T) / 2


def _require(gram: Floats, noise: Floats, ones: Floats, rows: float, ends: tuple[float, float], grid: int) -> None:
    width = len(gram)
    _require_shape("gram", gram, (width, width))
    _require_shape("noise", noise, (width, width))
    _require_shape("ones", ones, (width,))
    if not (np.isfinite(ends).all() and ends[0] < ends[1]):
        raise InputError(f"label_range must be two finite numbers lo < hi, got {ends}")
    if not 0 < rows < np.inf or grid < 2:
        raise InputError(f"rows must be a positive number and grid one from 2, got {rows} and {grid}")


def _require_shape(name: str, array: Floats, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise InputError(f"{name} must have shape {shape}, got {array.shape}")
    if not np.isfinite(array).all():
        raise InputError(f"{name} must be finite; got NaN or infinity")
