"""What estimators of class ratios say of bags that they have not seen, and how to weight them by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from aggregator.learners.class_ratios.candidates import Candidate, Indices
from federation.contract.errors import FederationError
from federation.contract.randomness import generator
from federation.numerics import simplex

_FEW, _FOLDS = 8, 6  # up to so many groups each is left out by itself; of more, about a sixth at a time
_LEAST_WEIGHT = 1e-3  # of a mixture: less is not worth the time to fit it


def folds(groups: np.ndarray, seed: int) -> list[Indices]:
    """Numbers of the bags in each fold, for bags that belong to `groups` (M,), which are never divided.

    As many folds as groups up to 8, and 6 of about equally many groups beyond.

    Examples:
        >>> sorted(part.tolist() for part in folds(np.array([0, 1, 0, 2]), seed=0))
        [[0, 2], [1], [3]]
    """
    names, numbers = np.unique(groups, return_inverse=True)
    count = len(names) if len(names) <= _FEW else _FOLDS
    dealt = np.empty(len(names), dtype=np.int64)
    dealt[generator(seed, "folds of bags").permutation(len(names))] = np.arange(len(names)) % count
    return [np.flatnonzero(dealt[numbers] == fold) for fold in range(count)]


def left_out(candidate: Candidate, part: Indices, bags: int) -> np.ndarray | None:
    """What a candidate that was fitted to the rest of the bags says (m, C) of the m bags of a part.

    None where it cannot, as where the rest do not tell the classes apart.
    """
    try:
        fitted = candidate.fit(np.setdiff1d(np.arange(bags), part))
        return candidate.estimate(fitted, part)
    except FederationError:
        return None


def left_out_of_all(candidate: Candidate, parts: Sequence[Indices], bags: int) -> np.ndarray | None:
    """What it says of the bags of all parts, one after another; None where it cannot without one of them."""
    found = [left_out(candidate, part, bags) for part in parts]
    known = [estimates for estimates in found if estimates is not None]
    return np.concatenate(known) if len(known) == len(found) else None


def mean_error(estimates: np.ndarray, proportions: np.ndarray) -> float:
    """Mean L1 distance of estimates (m, C) to released proportions (m, C), the noise of these included.

    Examples:
        >>> mean_error(np.array([[0.5, 0.5]]), np.array([[0.7, 0.3]])).__round__(3)
        0.4
    """
    return float(np.abs(estimates - proportions).sum(axis=1).mean())


def stacked(
    estimates: Mapping[str, np.ndarray], proportions: np.ndarray, leading: str, pull: float
) -> dict[str, float]:
    """Weights from 0 to 1, of sum 1, whose mixture of estimates (m, C) is nearest to the proportions (m, C).

    argmin_w |P - sum_k w_k p_k|^2 + pull |w - e|^2 |P - p_leading|^2 over the simplex, e being all weight on `leading`
    (stacking: Wolpert 1992, Breiman 1996). Weights below a thousandth become 0.

    Examples:
        >>> truth = np.array([[0.2, 0.8], [0.6, 0.4]])
        >>> stacked({"good": truth, "bad": truth[::-1]}, truth, leading="bad", pull=0.25)
        {'good': 0.667, 'bad': 0.333}
    """
    names = list(estimates)
    columns = np.stack([estimates[name].ravel() for name in names], axis=1)
    strength = pull * float(np.sum((proportions - estimates[leading]) ** 2))
    linear = columns.T @ proportions.ravel()
    linear[names.index(leading)] += strength
    found = simplex.least_squares(columns.T @ columns + strength * np.eye(len(names)), linear)
    found = np.where(found < _LEAST_WEIGHT, 0.0, found)
    return dict(zip(names, (found / found.sum()).tolist(), strict=True))
