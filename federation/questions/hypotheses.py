"""Hypotheses in plain arrays: classifiers that may cross between an aggregator and its parties.

Nothing is ever unpickled: a hypothesis is a ReLU network, of which linear and constant ones are special cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from federation.contract.errors import InputError

_MOST_PARAMETERS = 2**24
_WIDEST = 2**12  # what a tile of rows needs in memory


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """A classifier of features (n, d): class 1 where the output of a ReLU network is 0 or more, else class 0.

    `sizes` (L + 1,) int64 are d, the widths of the hidden layers, and 1. `parameters` (P,) float64 hold for each of the
    L layers its matrix (in, out) row by row, then its offsets (out,). A row's class is the same whatever rows come with
    it. Raises `InputError` when these do not fit, a hidden layer is wider than 4096 or a parameter is not finite.

    Examples:
        >>> linear = Hypothesis.of([np.array([[1.0], [-1.0]])], [np.array([0.5])])
        >>> linear
        Hypothesis(2 -> 1)
        >>> linear.predict(np.array([[0.0, 0.0], [0.0, 1.0]]))
        array([1, 0])
    """

    sizes: np.ndarray
    parameters: np.ndarray

    def __post_init__(self) -> None:
        sizes, parameters = self.sizes, self.parameters
        if sizes.ndim != 1 or len(sizes) < 2 or sizes.dtype.kind not in "iu" or sizes.min() < 1 or sizes[-1] != 1:
            raise InputError(
                f"sizes of a hypothesis must be whole numbers from 1 that end with 1, got {sizes.tolist()}"
            )
        if sizes[1:].max() > _WIDEST:
            raise InputError(f"a hidden layer may be {_WIDEST} wide, got {sizes[1:].max()}; use smaller layers")
        needed = sum((inputs + 1) * outputs for inputs, outputs in pairwise(sizes.tolist()))
        if needed > _MOST_PARAMETERS:
            raise InputError(f"a hypothesis may have {_MOST_PARAMETERS} parameters, got {needed}; use smaller layers")
        if parameters.shape != (needed,) or parameters.dtype != np.float64:
            raise InputError(f"a hypothesis of sizes {sizes.tolist()} has {needed} parameters, got {parameters.shape}")
        if not np.isfinite(parameters).all():
            raise InputError(
                "parameters of a hypothesis must be finite, got NaN or infinity: its training has diverged"
            )

    def __repr__(self) -> str:
        return f"Hypothesis({' -> '.join(map(str, self.sizes.tolist()))})"

    @classmethod
    def of(cls, matrices: Sequence[np.ndarray], offsets: Sequence[np.ndarray]) -> Hypothesis:
        """From the matrices (in, out) and offsets (out,) of its layers. Raises `InputError` when they do not fit."""
        if not matrices or len(matrices) != len(offsets):
            raise InputError(f"a hypothesis needs one offset per matrix, got {len(matrices)} and {len(offsets)}")
        sizes = [matrices[0].shape[0], *(matrix.shape[1] for matrix in matrices)]
        parts = [np.ravel(part) for pair in zip(matrices, offsets, strict=True) for part in pair]
        return cls(np.array(sizes, dtype=np.int64), np.concatenate(parts).astype(np.float64))

    @classmethod
    def constant(cls, dimension: int, label: int) -> Hypothesis:
        """The hypothesis that says `label`, 0 or 1, of every row of `dimension` features."""
        return cls.of([np.zeros((dimension, 1))], [np.array([1.0 if label else -1.0])])

    def scores(self, rows: np.ndarray) -> np.ndarray:
        """The network's output (n,) for features (n, d). Raises `InputError` for another number of features."""
        if rows.ndim != 2 or rows.shape[1] != self.sizes[0]:
            raise InputError(f"the hypothesis takes {self.sizes[0]} features, got rows of shape {rows.shape}")
        values, start = np.asarray(rows, dtype=np.float64), 0
        for layer, (inputs, outputs) in enumerate(pairwise(self.sizes.tolist())):
            matrix = self.parameters[start : start + inputs * outputs].reshape(inputs, outputs)
            start += (inputs + 1) * outputs
            with np.errstate(over="ignore", invalid="ignore"):
                # One product per row: in one of all rows their number decides how sums are rounded, and a bit more or
                # less could turn the class of every row, so that a count of errors would tell how many rows there are.
                values = np.matmul(values[:, None, :], matrix)[:, 0, :] + self.parameters[start - outputs : start]
            if layer < len(self.sizes) - 2:
                values = np.maximum(values, 0.0)
        return values[:, 0]

    def predict(self, rows: np.ndarray) -> np.ndarray:
        """Classes 0 or 1 (n,) int64 of features (n, d); 0 where the output is no number. Raises as `scores`."""
        return (self.scores(rows) >= 0).astype(np.int64)

    def with_share(self, rows: np.ndarray, weights: np.ndarray, share: float) -> Hypothesis:
        """With the last offset moved so that rows (n, d) of about that share of the weights (n,) are of class 1.

        Those of the largest outputs; rows of equal outputs stay together. `share` in (0, 1). The hypothesis itself
        where that is no row or all, and where outputs are not finite.
        """
        scores = self.scores(rows)
        falling = np.argsort(-scores, kind="stable")
        above = int(np.searchsorted(np.cumsum(weights[falling]), share))
        if not (0 < above < len(falling) and np.isfinite(scores).all()):
            return self
        parameters = self.parameters.copy()
        parameters[-1] -= scores[falling[above - 1]] / 2 + scores[falling[above]] / 2
        return Hypothesis(self.sizes, parameters)
