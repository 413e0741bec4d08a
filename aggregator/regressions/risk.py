"""Predicted excess risks of linear models learned from private labels, from public numbers only.

Rows are public, labels are y = x'w + e with E e² = s² (`residual`), and the excess is E (x'w_hat - x'w)² over rows like
those that were learned from, r their rank (`rank`), N their number (`rows`). All formulas are first-order in r/N, which
they take to be small, and ignore that real residuals depend on x.
"""

from __future__ import annotations

import math
from typing import Literal

from aggregator.contract.expected import Expected
from aggregator.world.public_numbers import PublicNumbers

Shape = Literal["optimal", "whitened"]

# Times sqrt(N/r): a trace over the least one. Four real tables, N/r from 30 to 3700, have 0.4 to 0.8 and 0.9 to 27.
_TYPICAL = {"optimal": 0.5, "whitened": 2.0}

_SIGNAL = 0.02  # of the squared width of the range: what rows explain of labels, where nobody knows it
_MIDDLE = 1 / 12  # the same of the mean label around the middle of the range, uniform over it


def least_squares(rank: int, rows: int, residual: float) -> float:
    """r s²/N: of least squares on the true labels, the part of every excess that is not for privacy.

    Examples:
        >>> least_squares(rank=10, rows=1000, residual=0.25)
        0.0025
    """
    return rank * residual / rows


def private_labels(rank: int, rows: int, residual: float, noise: float, bias: float = 0.0) -> float:
    """r (s² + v)/N + b for labels that are made private one by one.

    `noise` is the mean variance v of a private label, and `bias` the mean squared difference b between its expectation
    and the label: a model can learn all of that, so b is what it costs at most.

    Examples:
        >>> private_labels(rank=10, rows=1000, residual=0.25, noise=2.0)
        0.0225
    """
    return rank * (residual + noise) / rows + bias


def bag_sums(rank: int, rows: int, residual: float, size: int, noise: float) -> float:
    """r (k s² + v)/N for published bags of k = `size` rows each, whose label sums have noise of variance v.

    Weights have mean 0 and variance 1 and are published. Sums over k rows see each row's residual beside those of k - 1
    others; at the same guarantee v does not fall with k, so k = 1 is the best (Brahmbhatt et al. 2023, Figure 2, gives
    no such comparison; the formula is the variance of least squares on m = N/k rows of covariance k X'X/N).

    Examples:
        >>> bag_sums(rank=10, rows=1000, residual=0.25, size=8, noise=2.0)
        0.04
    """
    return rank * (size * residual + noise) / rows


def weighted_bags(rank: int, bags: int, residual: float, size: int, noise: float) -> float:
    """(s² + v/k) r/(m - r - 1) for m = `bags` secret Gaussian combinations of k = `size` rows and labels.

    The mean of the inverse Wishart law of m Gaussian rows (Muirhead 1982, Section 3.2.3); `noise` is the variance v of
    a label sum. Without noise it does not depend on k. Infinite for m <= r + 1.

    Examples:
        >>> round(weighted_bags(rank=10, bags=50, residual=0.25, size=8, noise=2.0), 4)
        0.1282
    """
    return (residual + noise / size) * rank / (bags - rank - 1) if bags > rank + 1 else math.inf


def label_sums(rank: int, rows: int, residual: float, noise: float, trace: float, parties: int = 1) -> float:
    """r s²/N + K v tr(C)/N for the sum X'y with noise of covariance v C in whitened coordinates (X'X)^{-1/2} x.

    `noise` is v, `trace` tr(C), with z'C^{-1}z <= 1 for all whitened rows z; each of K = `parties` parties that do not
    trust anybody adds noise of its own.

    Examples:
        >>> label_sums(rank=10, rows=1000, residual=0.25, noise=2.0, trace=0.5)
        0.0035
    """
    return least_squares(rank, rows, residual) + parties * noise * trace / rows


def least_trace(rank: int, rows: int) -> float:
    """r²/N: no shape of noise that hides every row has less (whitened rows z have sum z z' = 1, so tr C^{-1} <= N).

    Examples:
        >>> least_trace(rank=10, rows=1000)
        0.1
    """
    return rank**2 / rows


def typical_trace(rank: int, rows: int, shape: Shape) -> float:
    """A shape's trace on real tables: a multiple of the least one that grows as sqrt(N/r), as tails are heavy.

    Between the least trace and r, which rows of leverage 1 need.
    For rows at hand `federation.mechanisms.labels.shaped_gaussian.fit_shape` gives the trace itself.

    Examples:
        >>> typical_trace(rank=10, rows=1000, shape="optimal"), typical_trace(rank=10, rows=1000, shape="whitened")
        (0.5, 2.0)
    """
    factor = max(1.0, _TYPICAL[shape] * math.sqrt(rows / rank))
    return min(float(rank), factor * least_trace(rank, rows))


def shrunk(rank: int, rows: int, noise: float, width: float) -> float:
    """E |A (A + S)^{-1} z - w|²/N of a model that knows the covariance S = s I of the noise in whitened coordinates.

    `noise` is s, `width` D that of the labels' range. A is what `aggregator.learners.shrinkage` takes labels for before
    it has seen any, with the rows explaining .02 D^2 of them: N D^2/12 along the constant, and in every other of the r
    directions N .02 D^2/(r - 1). The answers w are as large as A says but along the constant, where their variance is
    half of it: a mean label is nearer to the middle of its range than any place of it, and with less than half more
    noise would be expected to err less. Where noise is faint this is the r s/N of least squares, and never more than
    (1/24 + .02) D^2.

    Examples:
        >>> shrunk(rank=10, rows=1000, noise=2.0, width=1.0), shrunk(rank=10, rows=1000, noise=2000.0, width=1.0)
        (0.01, 0.06)
    """
    around = rows * _SIGNAL * width**2 / max(1, rank - 1)
    constant = rows * _MIDDLE * width**2
    along = (constant / 2 * noise**2 + constant**2 * noise) / (constant + noise) ** 2
    kept = along + (rank - 1) * around * noise / (around + noise)
    return kept / rows


def residual(public: PublicNumbers, width: float) -> float:
    """The variance of labels around the best linear model, as far as it is known: else that of labels of any value."""
    return (_MIDDLE - _SIGNAL) * width**2 if public.residual is None else public.residual


def expected(error: float, noise: float, width: float, exact: bool, assuming: str) -> Expected:
    """An excess risk as an expectation beside the answer that is the same for all rows.

    `noise` is its standard deviation over predictions. That answer knows the mean label and leaves what rows explain.

    Examples:
        >>> found = expected(0.03, 0.1, 1.0, True, "rows are as usual")
        >>> found.constant, found.noise, found.hopeless
        (0.02, 0.7071, True)
    """
    constant = _SIGNAL * width**2
    usual = f"{assuming}, and the rows explain {_SIGNAL:g} of the squared width of the labels' range"
    return Expected(error, noise / math.sqrt(constant), "exact" if exact else "guess", usual, constant)
