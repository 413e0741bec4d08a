"""A public map that gives private rows norm 1 at most, for sums over them that get noise."""

from __future__ import annotations

import numpy as np

from aggregator.world.fitting import fit
from federation.contract.errors import InputError
from federation.features.feature_map import FeatureMap, bounds_norms
from federation.features.steps import ClipNorm

LEAST_PUBLIC_ROWS = 10

_WEAKEST = 1e-3  # of the largest variance: weaker directions hardly vary
_ROWS_PER_DIRECTION = 5  # public rows that a direction's variance is estimated from
_SHORT = 0.95  # of the public rows are not cut


def unit_rows(feature_map: FeatureMap, rows: np.ndarray) -> FeatureMap:
    """The map followed by whitening, a constant column, and norms cut at the 95 % quantile, all fitted on public rows.

    `rows` (N, columns) are raw. Whitened are directions of more than .001 of the largest variance, at most N/5 of them.
    A map whose rows have norm 1 at most already stays as it is. Raises `InputError` for fewer than 10 public rows, and
    for rows that are all equal.

    Examples:
        >>> rows = np.random.default_rng(0).normal(size=(50, 3)) @ np.diag([1.0, 10.0, 1e-4])
        >>> unit_rows(FeatureMap(3, ()), rows)
        FeatureMap(3 -> 3: affine, append, clip_norm)
    """
    if len(rows) < LEAST_PUBLIC_ROWS:
        raise InputError(
            f"protect: row needs {LEAST_PUBLIC_ROWS} public rows or more, to scale private ones by and to learn from, "
            f"got {len(rows)}; raise data.auxiliary"
        )
    if bounds_norms(feature_map):
        return feature_map
    features = feature_map.transform(rows)
    variances = np.linalg.eigvalsh(np.atleast_2d(np.cov(features, rowvar=False)))
    kept = int((variances > _WEAKEST * variances[-1]).sum())
    further = fit([{"whiten": max(1, min(kept, len(rows) // _ROWS_PER_DIRECTION))}, "constant"], features)
    norms = np.linalg.norm(further.transform(features), axis=1)
    clip = ClipNorm(float(np.quantile(norms, _SHORT)))
    return FeatureMap(feature_map.columns, (*feature_map.steps, *further.steps, clip))
