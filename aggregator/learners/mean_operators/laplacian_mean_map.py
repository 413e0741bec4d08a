"""The mean operator from the label proportions of bags, by class means that vary smoothly from bag to bag."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import solve
from scipy.spatial.distance import pdist, squareform

from aggregator.learners.mean_operators.mean_map import BagMeans
from aggregator.learners.mean_operators.moments import MomentEstimate
from aggregator.learners.parameters import require_number
from federation.contract.errors import InputError

MOST_BAGS = 3000  # two unknowns for each, in a dense system
GAMMA = 0.1
RIDGE = 1e-9


def laplacian_mean_map(
    bags: Sequence[np.ndarray],
    proportions: np.ndarray,
    gamma: float = GAMMA,
    bandwidth: float | None = None,
    ridge: float = RIDGE,
) -> MomentEstimate:
    """Laplacian Mean Map (Patrini et al. 2014): class means c+_j, c-_j of each bag, alike in bags whose means are near.

    bags: arrays (n_i, d). proportions: (M, 2), those of y = -1 and of y = 1. With b_j the mean of bag j, pi_j its share
    of y = 1 and p_j its share of all rows, minimises

        sum_j p_j |b_j - pi_j c+_j - (1 - pi_j) c-_j|^2
        + gamma sum_{i<j} p_i p_j V_ij (|c+_i - c+_j|^2 + |c-_i - c-_j|^2)
        + gamma ridge sum_j p_j (|c+_j|^2 + |c-_j|^2),   V_ij = exp(-|b_i - b_j| / bandwidth),

    and estimates sum_j p_j (pi_j c+_j - (1 - pi_j) c-_j). Every sum weights bags by their sizes, so a bag that is cut
    in two alike ones changes nothing; for M bags of equal size the published gamma is gamma / M, and the published
    ridge is M ridge. As gamma grows, and gamma times the ridge vanishes, all bags get the same class means, those of
    `mean_map`; as gamma vanishes, every bag's class means fit its own mean, and only smoothness tells the two apart.
    Exact where the bags' means are homogeneous, whatever gamma, but for the ridge.

    `bandwidth` None takes the median distance between the bags' means. Without gradual changes from bag to bag
    `mean_map` is better; see `BagMeans.combined` for the variance, which says nothing of the bias.

    Raises `InputError` as `BagMeans.of`, for parameters that are not positive and for more than 3,000 bags.
    """
    require_number("gamma", gamma, GAMMA)
    require_number("ridge", ridge, RIDGE)
    known = BagMeans.of(bags, proportions)
    if len(known.shares) > MOST_BAGS:
        raise InputError(
            f"laplacian_mean_map takes at most {MOST_BAGS} bags, got {len(known.shares)}; merge bags or use mean_map"
        )
    distances = pdist(known.means)
    if bandwidth is None:
        apart = distances[distances > 0]
        bandwidth = float(np.median(apart)) if len(apart) else 1.0
    require_number("bandwidth", bandwidth, 1.0)
    similar = np.outer(known.shares, known.shares) * squareform(np.exp(-distances / bandwidth))
    smoothness = np.diag(similar.sum(axis=1) + ridge * known.shares) - similar
    return known.combined(_coefficients(known, gamma * smoothness))


def _coefficients(known: BagMeans, penalty: np.ndarray) -> np.ndarray:
    """The weights (M,) of the bags' means in the estimate, by the adjoint of the system for the class means.

    The class means are A^-1 Pi D b, with Pi (2M, M) the proportions on two diagonals and D the shares; the estimate is
    q' of them, and so the weights are D Pi' A^-1 q.
    """
    bags, shares, positive = len(known.shares), known.shares, known.positive
    system = np.zeros((2 * bags, 2 * bags))
    system[:bags, :bags] = system[bags:, bags:] = penalty
    first = np.arange(bags)
    second = first + bags
    system[first, first] += shares * positive**2
    system[second, second] += shares * (1 - positive) ** 2
    system[first, second] = system[second, first] = shares * positive * (1 - positive)
    target = np.concatenate([shares * positive, -shares * (1 - positive)])
    adjoint = solve(system, target, assume_a="pos", overwrite_a=True)
    return shares * (positive * adjoint[:bags] + (1 - positive) * adjoint[bags:])
