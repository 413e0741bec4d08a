"""Bins of each feature at the quantiles of public rows, and which rows lie in which bin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from federation.contract.errors import InputError
from federation.numerics.rows import Floats, Integers, numbers

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, eq=False)
class Bins:
    """A partition of each of d features into intervals (-inf, e_1], (e_1, e_2], ..., (e_(s-1), inf).

    Every number lies in one bin of its feature, so the counts of any rows agree in their total across features.
    `edges` (E,) float64 are the inner edges e_1 < ... < e_(s-1) of the features, one feature after another; `sizes`
    (d,) int64 are the bins s >= 1 of each feature, so E = sum (s - 1). Bins are numbered 0..K-1 over all features.
    Raises `InputError` when these do not fit, and for edges that are not finite or do not ascend within a feature.

    Examples:
        >>> bins = Bins.fit(np.array([[1.0], [2.0], [3.0], [4.0]]), most=2)
        >>> bins.edges, bins.sizes
        (array([2.]), array([2]))
        >>> bins.codes(np.array([[2.0], [2.5], [99.0]])).ravel()
        array([0, 1, 1])
    """

    edges: Floats
    sizes: Integers

    def __post_init__(self) -> None:
        edges, sizes = self.edges, self.sizes
        if sizes.ndim != 1 or not len(sizes) or sizes.dtype != np.int64 or sizes.min() < 1:
            raise InputError(
                f"sizes of bins must be one int64 of at least 1 per feature, got {sizes.dtype} of shape {sizes.shape}"
            )
        needed = sum(sizes.tolist()) - len(sizes)
        if edges.shape != (needed,) or edges.dtype != np.float64:
            raise InputError(
                f"bins of these sizes have {needed} inner edges in float64, got {edges.dtype} of shape {edges.shape}"
            )
        if not np.isfinite(edges).all():
            raise InputError("edges of bins must be finite, got NaN or infinity; drop or impute such rows first")
        if any((np.diff(part) <= 0).any() for part in self._parts):
            raise InputError("edges of bins must ascend strictly within each feature; merge equal ones")

    def __repr__(self) -> str:
        return f"Bins({self.total} of {len(self.sizes)} features)"

    @classmethod
    def fit(cls, rows: Floats, most: int | Integers, weights: Floats | None = None) -> Bins:
        """At most q = `most` bins of about equal weight per feature, all of positive weight, of rows (n, d).

        The edges are the quantiles j/q, 0 < j < q, of the inverted distribution function: the smallest value whose
        weight together with that of all smaller ones reaches j/q. Equal edges are merged, and one at the largest value
        is dropped, so features of few values get fewer bins. Sums of weights that fall short of j/q by no more than
        rounding reach it. A row's position does not matter.

        Args:
            rows: finite, n >= 1 and d >= 1.
            most: one int or one per feature (d,), at least 1.
            weights: of the rows, (n,), at least 0 and not all 0; None for equal ones. Rows of weight 0 do not count.

        Raises `InputError` for anything else.
        """
        rows = _rows(rows)
        if not np.isfinite(rows).all() or not rows.size:
            raise InputError(
                f"rows must be finite, at least one of at least one feature, got shape {rows.shape} or a number that "
                "is not finite; drop or impute such rows first"
            )
        limits = np.asarray(most)
        if limits.shape not in ((), rows.shape[1:]) or limits.dtype.kind not in "iu" or limits.min() < 1:
            raise InputError(
                f"most must be a whole number of at least 1, or one per feature {rows.shape[1:]}, got {most}"
            )
        limits = np.broadcast_to(np.minimum(limits, _MOST_LEVELS).astype(np.int64), rows.shape[1:])
        if weights is not None:
            weights = _checked_weights(weights, len(rows))
            rows, weights = rows[weights > 0], weights[weights > 0]
        edges = [_inner_edges(column, int(limit), weights) for column, limit in zip(rows.T, limits, strict=True)]
        return cls(np.concatenate(edges), np.array([len(part) + 1 for part in edges], dtype=np.int64))

    @property
    def total(self) -> int:
        """K, the bins of all features together."""
        return int(self.sizes.sum())

    @property
    def starts(self) -> Integers:
        """Number of the first bin of each feature, (d,) int64."""
        return np.asarray(np.cumsum(self.sizes) - self.sizes)

    @property
    def _parts(self) -> list[Floats]:
        """The inner edges of each feature."""
        return np.split(self.edges, np.cumsum(self.sizes - 1)[:-1])

    def codes(self, rows: Floats) -> Integers:
        """The bin of each feature of rows (n, d), numbered 0..K-1 over all features: (n, d) int64.

        A value equal to an edge lies below it; values beyond those of the rows that made the bins lie in the first or
        last one, infinite ones too. Raises `InputError` for another number of features and for NaN.
        """
        rows = _rows(rows)
        if rows.shape[1] != len(self.sizes):
            raise InputError(f"the bins are of {len(self.sizes)} features, got rows of shape {rows.shape}")
        if np.isnan(rows).any():
            raise InputError("rows must not hold NaN, which lies in no bin; drop or impute such rows first")
        found = np.empty(rows.shape, dtype=np.int64)
        for feature, (part, start) in enumerate(zip(self._parts, self.starts, strict=True)):
            found[:, feature] = start + np.searchsorted(part, rows[:, feature], side="left")
        return found

    def indicators(self, rows: Floats) -> csr_array:
        """R (K, n) float64, 1 where a row (n, d) lies in a bin and 0 elsewhere; each column sums to d. Raises as
        `codes`."""
        from scipy.sparse import csc_array

        codes = self.codes(rows)
        count, features = codes.shape
        starts = np.arange(0, codes.size + 1, features)
        return csc_array((np.ones(codes.size), codes.ravel(), starts), shape=(self.total, count)).tocsr()


_MOST_LEVELS = 2**31  # more quantiles than that are all values of any rows


def _rows(rows: Floats) -> Floats:
    rows = numbers(rows, "rows")
    if rows.ndim != 2:
        raise InputError(f"rows must have shape (n, d), got {rows.shape}")
    return rows


def _checked_weights(weights: Floats, count: int) -> Floats:
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (count,) or not np.isfinite(weights).all() or weights.min() < 0 or not weights.any():
        raise InputError(
            f"weights must be one finite number of at least 0 for each of the {count} rows, and not all 0, "
            f"got shape {weights.shape}"
        )
    return np.asarray(weights / weights.max())


def _inner_edges(values: Floats, limit: int, weights: Floats | None) -> Floats:
    """Quantiles j/q of one feature's values (n,), of positive weight, below the largest; ascending without repeats."""
    if weights is None:
        values = np.sort(values)
        levels = np.arange(1, len(values) + 1) * limit // len(values)
    else:
        order = np.argsort(values, kind="stable")
        values, sums = values[order], np.cumsum(weights[order])
        rounding = 1 + len(values) * np.finfo(np.float64).eps
        levels = np.floor(sums / sums[-1] * limit * rounding).astype(np.int64)
    # A value is a quantile where the number of levels j/q that have been reached rises.
    reached = values[np.diff(levels, prepend=0) > 0]
    return np.unique(reached[reached < values[-1]]) + 0.0
