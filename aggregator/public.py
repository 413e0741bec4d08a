"""The public rows behind the feature map, and the whitened basis of their second moment."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from federation.errors import InputError
from federation.features import FeatureMap

_RANK_TOLERANCE = 1e-10  # of the largest eigenvalue; directions below it carry no information
_NORM_SLACK = 1e-9


@dataclass(frozen=True)
class Whitening:
    """X'X/N = U diag(s^2) U' restricted to its numerical range: `directions` U (d, r) and `deviations` s (r,)."""

    directions: np.ndarray
    deviations: np.ndarray


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
        return Whitening(vectors[:, kept], np.sqrt(values[kept]))

    def require_unit_norms(self) -> None:
        """Refuse rows longer than 1, for which the sensitivities of a minimiser do not hold."""
        largest = float(np.sqrt(np.einsum("nd,nd->n", self.rows, self.rows).max()))
        if largest > 1 + _NORM_SLACK:
            raise InputError(
                f"data.features: auxiliary rows have norm up to {largest:.3g}, but perturbing a minimiser needs "
                "norm <= 1; end the list with unit_norm or max_norm"
            )
