"""The public rows behind the feature map, and the whitened basis of their second moment."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from federation.errors import InputError
from federation.features import FeatureMap

_RANK_TOLERANCE = 1e-8  # of the largest eigenvalue; directions below it carry no information
_NORM_SLACK = 1e-9
_UNIT_ROUNDOFF = 2.0**-53


@dataclass(frozen=True, eq=False)
class Whitening:
    """X'X/N = U diag(s^2) U' restricted to its numerical range, and the rows in that basis.

    `directions` U (d, r), `deviations` s (r,), `rows` Z = X U / s (N, r). `norm` is the operator norm of Z/sqrt(N),
    1 but for rounding: Z itself is the public matrix that votes are projected on, so the norm is charged.
    """

    directions: np.ndarray
    deviations: np.ndarray
    rows: np.ndarray
    norm: float

    def rounding(self, classes: int) -> float:
        """Bound on the error of B' A' Z / N in double precision, A label shares (N, C), in L2 norm.

        A sum of N products of shares and entries of Z errs by at most (N + 2) u mean|a z| per entry, and mean|z| is
        at most the norm; C r such entries, and as much again for the contrasts.
        """
        count, rank = self.rows.shape
        return 2 * (count + classes + 2) * _UNIT_ROUNDOFF * self.norm * float(np.sqrt(classes * rank))


@dataclass(frozen=True, eq=False)
class PublicRows:
    """Auxiliary rows (N, d) behind the public feature map."""

    feature_map: FeatureMap
    rows: np.ndarray

    @cached_property
    def whitening(self) -> Whitening:
        """The eigenbasis of the rows' second moment. Raises `InputError` when all rows are zero."""
        values, vectors = np.linalg.eigh(self.rows.T @ self.rows / len(self.rows))
        kept = values > _RANK_TOLERANCE * values[-1]
        if not kept.any():
            raise InputError("all auxiliary rows are zero behind the feature map; choose other features")
        directions, deviations = vectors[:, kept], np.sqrt(values[kept])
        rows = self.rows @ directions / deviations
        norm = float(np.sqrt(np.linalg.eigvalsh(rows.T @ rows / len(rows))[-1]))
        return Whitening(directions, deviations, rows, norm * (1 + 1e-12))

    @cached_property
    def largest_norm(self) -> float:
        """Norm of the longest row."""
        return float(np.sqrt(np.einsum("nd,nd->n", self.rows, self.rows).max()))

    def require_unit_norms(self) -> float:
        """The factor (1 but for rounding) by which rows may exceed norm 1; refuses longer ones.

        Sensitivities of a minimiser grow with the norm. Raises `InputError`.
        """
        if self.largest_norm > 1 + _NORM_SLACK:
            raise InputError(
                f"data.features: auxiliary rows have norm up to {self.largest_norm:.3g}, but perturbing a minimiser "
                "needs norm <= 1; end the list with unit_norm or max_norm"
            )
        return 1 + _NORM_SLACK
