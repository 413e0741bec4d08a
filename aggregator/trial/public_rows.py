"""The public rows behind the feature map, and the eigenbasis of their second moment."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from federation.contract.errors import InputError
from federation.contract.validation import apart
from federation.features.feature_map import FeatureMap
from federation.features.steps import OneHot
from federation.mechanisms.accounting import sensitivity
from federation.numerics.rows import equal_rows

Shape = Literal["whitened", "isotropic"]

_RANK_TOLERANCE = 1e-8  # of the largest eigenvalue; directions below it carry no information
_NORM_SLACK = 1e-9
_UNIT_ROUNDOFF = 2.0**-53
_FITS_NOTHING = ("signed_log", "constant", "unit_norm", "polynomial", "project")


@dataclass(frozen=True, eq=False)
class Coordinates:
    """The public rows in scaled eigendirections of X'X/N = U diag(v) U', restricted to its numerical range.

    `directions` U (d, r), `variances` v (r,), `scale` t (r,), `rows` Y = X U / t (N, r). Whitened: t = sqrt(v);
    isotropic: t = 1, the features themselves, turned. Y is the public matrix that votes are averaged with, so
    `reach`, which sensitivities need, is computed from Y as it is, rounding included.
    """

    directions: np.ndarray
    variances: np.ndarray
    scale: np.ndarray
    rows: np.ndarray
    reach: float

    def rounding(self, classes: int) -> float:
        """Bound on the error of B' A' Y / N in double precision, A label shares (N, C), in L2 norm.

        A sum of N products of shares and entries of Y errs by at most (N + 2) u mean|a y| per entry, and mean|y| is
        at most the reach; C r such entries, and as much again for the contrasts.
        """
        count, rank = self.rows.shape
        return float(2 * (count + classes + 2) * _UNIT_ROUNDOFF * self.reach * np.sqrt(classes * rank))


@dataclass(frozen=True, eq=False)
class PublicRows:
    """Auxiliary rows (N, d) behind the public feature map, and the stages that the map was fitted from.

    `stages` are those of `aggregator.trial.feature_fitting.fit`; None when nobody said, which is as good as fitted.
    """

    feature_map: FeatureMap
    rows: np.ndarray
    stages: Sequence[str | Mapping[str, Any]] | None = None

    @property
    def whitened(self) -> bool:
        """Whether a stage has whitened them, so that no direction is much fainter than others."""
        return any(stage_name(stage) == "whiten" for stage in self.stages or ())

    def coordinates(self, shape: Shape) -> Coordinates:
        """The coordinates in which noise of that shape is isotropic."""
        return self.whitening if shape == "whitened" else self.eigenbasis

    @cached_property
    def whitening(self) -> Coordinates:
        """Coordinates of unit second moment. Raises `InputError` when all rows are zero."""
        return self._scaled(np.sqrt)

    @cached_property
    def eigenbasis(self) -> Coordinates:
        """The features in an orthonormal basis of their range. Raises `InputError` when all rows are zero."""
        return self._scaled(np.ones_like)

    @cached_property
    def _eigen(self) -> tuple[np.ndarray, np.ndarray]:
        """Directions (d, r) and variances (r,) of the rows' second moment, in ascending order."""
        values, vectors = np.linalg.eigh(self.rows.T @ self.rows / len(self.rows))
        kept = values > _RANK_TOLERANCE * values[-1]
        if not kept.any():
            raise InputError("all auxiliary rows are zero behind the feature map; choose other features")
        return vectors[:, kept], values[kept]

    def _scaled(self, of: Callable[[np.ndarray], np.ndarray]) -> Coordinates:
        directions, variances = self._eigen
        scale = of(variances)
        rows = self.rows @ directions / scale
        return Coordinates(directions, variances, scale, rows, sensitivity.reach(rows))

    @cached_property
    def different(self) -> tuple[np.ndarray, np.ndarray]:
        """The different rows (k, d), and which of them each row is (N,): equal rows have equal votes."""
        first, twins = equal_rows(self.rows)
        return (self.rows if len(first) == len(twins) else self.rows[first]), twins

    @cached_property
    def reach(self) -> float:
        """How far votes can move the mean of the rows: `federation.mechanisms.accounting.sensitivity.reach`."""
        return sensitivity.reach(self.rows)

    @cached_property
    def largest_norm(self) -> float:
        """Norm of the longest row."""
        return float(np.sqrt(np.einsum("nd,nd->n", self.rows, self.rows).max()))

    def require_unit_norms(self) -> float:
        """The factor (1 but for rounding) by which rows may exceed norm 1; refuses longer ones.

        Sensitivities of a minimiser grow with the norm. Raises `InputError`.
        """
        if self.largest_norm > 1 + _NORM_SLACK:
            longest, most = apart(self.largest_norm, 1)
            raise InputError(
                f"data.features: auxiliary rows have norm up to {longest}, but perturbing a minimiser "
                f"needs norm <= {most}; end the list with unit_norm or max_norm"
            )
        return 1 + _NORM_SLACK

    def require_unfitted(self) -> None:
        """Refuses a feature map that was fitted on the rows, or leaves their norms to them.

        A guarantee that covers an auxiliary row must not release what was fitted on it, and every row must have norm
        at most 1 by construction. Raises `InputError` naming the stages.
        """
        if self.stages is None:
            raise InputError(
                "protecting an auxiliary row needs the stages of the feature map, to see that none is fitted"
            )
        refuse_fitted(self.stages)
        if any(isinstance(step, OneHot) for step in self.feature_map.steps):
            raise InputError(_would_be_fitted("the indicators of text columns"))


def refuse_fitted(stages: Sequence[str | Mapping[str, Any]]) -> None:
    """Raise `InputError` for stages of a feature map behind which no auxiliary row can be protected."""
    fitted = [stage_name(stage) for stage in stages if stage_name(stage) not in _FITS_NOTHING]
    if fitted:
        raise InputError(_would_be_fitted(", ".join(fitted)))
    if not stages or stages[-1] != "unit_norm":
        raise InputError("data.features: protecting an auxiliary row needs unit_norm as the last stage")


def _would_be_fitted(what: str) -> str:
    return (
        f"data.features: {what} would be fitted on the auxiliary rows, one of which is to be protected; keep "
        f"{' and '.join(_FITS_NOTHING)} only, or protect: party"
    )


def stage_name(stage: str | Mapping[str, Any]) -> str:
    """The name of a stage: itself, or the key of {name: value}."""
    return stage if isinstance(stage, str) else str(next(iter(stage)))
