"""Kernels that are inner products of explicit features: means of features stand for sets of any size."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from aggregator.learners.kernels.interface import Kernel, Support
from federation.contract.errors import InputError
from federation.numerics.tiles import tiles


class Moments(NamedTuple):
    """Of the features of one set of rows."""

    mean: np.ndarray  # (D,)
    square: float  # mean |phi(x)|^2
    scatter: np.ndarray | None  # sum (phi - mean)(phi - mean)' (D, D), where it was asked for


class FeatureKernel(Kernel):
    """k(x, y) = phi(x)'phi(y), phi(x) in R^D."""

    @abstractmethod
    def _tile_features(self, tile: np.ndarray) -> np.ndarray:
        """Features (t, D) of one tile (t, d)."""

    def _tile_sums(self, tile: np.ndarray) -> tuple[np.ndarray, float]:
        """Sum of the features (D,) of one tile (t, d), and of their squared norms."""
        return _sums(self._tile_features(tile))

    def features(self, rows: np.ndarray) -> np.ndarray:
        """Features (n, D) of rows (n, d), all in memory; the same bits as those that `mean` adds up."""
        return np.concatenate([self._tile_features(tile) for tile in tiles(rows, "rows", self._columns())])

    def mean(self, rows: np.ndarray) -> np.ndarray:
        """Mean features (D,) of rows (n, d), in O(D) memory."""
        return self.moments(rows).mean

    def moments(self, rows: np.ndarray, scatter: bool = False, what: str = "rows") -> Moments:
        """Mean, mean square and, if asked for, the scatter of the features of rows (n, d), in one pass.

        O(D) memory beyond the rows, O(D^2) with the scatter. The sums run over tiles of 256 rows in order.
        """
        total, outer = np.zeros(1), np.zeros((1, 1))
        square, centre, count = 0.0, None, 0
        with np.errstate(over="ignore", invalid="ignore"):
            for tile in tiles(rows, what, self._columns()):
                count += len(tile)
                if not scatter:
                    sums = self._tile_sums(tile)
                else:  # about the mean of the first tile: squares about zero would cancel for rows far from it
                    features = self._tile_features(tile)
                    sums = _sums(features)
                    centre = sums[0] / count if centre is None else centre
                    features = features - centre
                    outer = outer + features.T @ features
                total, square = total + sums[0], square + sums[1]
        mean = np.asarray(total / count)
        if not np.isfinite(mean).all() or not np.isfinite(square):
            raise InputError(f"{what} must be small enough for finite features; rescale them")
        if centre is None:
            return Moments(mean, square / count, None)
        off = mean - centre
        return Moments(mean, square / count, outer - count * np.outer(off, off))

    def support(self, bags: Sequence[np.ndarray], covariance: bool = False) -> FeatureSupport:
        """Means of M bags, and their pooled covariance if asked for; the rows are not kept."""
        sizes: list[int] = []
        means: list[np.ndarray] = []
        squares: list[float] = []
        scatter = None
        for i, bag in enumerate(bags):
            mean, square, outer = self.moments(bag, covariance, f"bag {i}")
            if means and len(mean) != len(means[0]):
                raise InputError(f"bags must have equal numbers of columns; bag {i} has others than bag 0")
            sizes.append(len(bag))
            means.append(mean)
            squares.append(square)
            if outer is not None:
                scatter = outer if scatter is None else scatter + outer
        if not means:
            raise InputError("bags must not be empty: at least one bag of rows is needed")
        return FeatureSupport(self, np.array(sizes), np.stack(means), np.array(squares), scatter)

    def _columns(self) -> int | None:
        """Columns of the rows that the kernel is for; None for any."""
        return None


def _sums(features: np.ndarray) -> tuple[np.ndarray, float]:
    return np.ones(len(features)) @ features, float(np.einsum("nd,nd->", features, features))


@dataclass(frozen=True, eq=False)
class FeatureSupport(Support):
    """Sizes (M,), mean features (M, D), mean squares (M,), and the scatter within bags (D, D) if asked for."""

    kind: ClassVar[str] = "features"
    kernel: FeatureKernel
    sizes: np.ndarray
    means: np.ndarray
    squares: np.ndarray
    scatter: np.ndarray | None = None

    def gram(self) -> np.ndarray:
        """Products of the means."""
        return self.means @ self.means.T

    def self_terms(self) -> np.ndarray:
        """Mean squared norms of the features: 1 for normalised ones."""
        return self.squares

    def covariance(self) -> np.ndarray:
        """Pooled covariance of the features within bags (D, D): the scatter over N - M, for N rows in M bags.

        Raises `InputError` where no bag has two rows, or the support was built without it.
        """
        freedom = int(self.sizes.sum()) - len(self.sizes)
        if self.scatter is None or freedom < 1:
            raise InputError(
                "a covariance within bags needs a support built with covariance=True and a bag of at least two rows, "
                f"got {int(self.sizes.sum())} rows in {len(self.sizes)} bags"
            )
        return self.scatter / freedom

    def embed(self, rows: np.ndarray) -> np.ndarray:
        """Mean features (D,)."""
        return self.kernel.mean(rows)

    def products(self, embedding: np.ndarray) -> np.ndarray:
        """Products of the means with an embedding (D,) or several (..., D)."""
        return np.asarray(embedding) @ self.means.T
