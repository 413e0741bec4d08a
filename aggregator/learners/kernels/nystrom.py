"""The Nystrom approximation of the Gaussian kernel: exact on the span of its landmarks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from aggregator.learners.kernels.distances import NegativeSquares
from aggregator.learners.kernels.features import FeatureKernel
from federation.contract.errors import InputError
from federation.contract.randomness import generator
from federation.numerics.tiles import tiles

_NEGLIGIBLE = 1e-10  # share of the largest eigenvalue below which a direction holds rounding errors only


@dataclass(frozen=True, eq=False)
class NystromKernel(FeatureKernel):
    """phi(x) = k(x, L) factor for landmarks L (l, d) and factor (l, D), factor factor' = K(L, L)^+; |phi(x)| <= 1.

    phi(x)'phi(y) = k(x, L) K(L, L)^+ k(L, y), which is exp(-gamma |x - y|^2) where x or y is a landmark (Williams and
    Seeger 2001). Built by `fit`.
    """

    kind: ClassVar[str] = "nystrom"
    landmarks: np.ndarray
    factor: np.ndarray
    gamma: float

    @classmethod
    def fit(cls, rows: np.ndarray, gamma: float, features: int, seed: int) -> NystromKernel:
        """Landmarks drawn with a public seed among public rows (N, d): `features` of them, or all if there are fewer.

        D is the numerical rank of their kernel matrix, at most their number. Raises `InputError` unless gamma is
        positive and finite, `features` at least 1, the seed given, and the rows are finite numbers.
        """
        if not 0 < gamma < np.inf or features < 1 or seed is None:
            raise InputError(
                f"landmarks need gamma positive and finite, features from 1 and a public seed, got gamma {gamma}, "
                f"features {features}, seed {seed}"
            )
        rows = np.asanyarray(rows)
        if rows.ndim == 2 and len(rows) > features:
            rows = rows[np.sort(generator(seed, "landmarks").choice(len(rows), features, replace=False))]
        landmarks = np.concatenate(list(tiles(rows, "public rows")))
        squares = NegativeSquares(landmarks, gamma)
        kernel = squares.between(squares.left(landmarks))
        np.fill_diagonal(kernel, 0.0)
        values, vectors = np.linalg.eigh(np.exp((kernel + kernel.T) / 2))
        kept = values > _NEGLIGIBLE * values[-1]
        return cls(landmarks, vectors[:, kept] / np.sqrt(values[kept]), float(gamma))

    def _tile_features(self, tile: np.ndarray) -> np.ndarray:
        squares = self._squares.between(self._squares.left(tile))
        return np.exp(squares, out=squares) @ self.factor

    def _columns(self) -> int:
        return self.landmarks.shape[1]

    @cached_property
    def _squares(self) -> NegativeSquares:
        return NegativeSquares(self.landmarks, self.gamma)
