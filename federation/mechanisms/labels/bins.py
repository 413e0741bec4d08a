"""The bins of randomised response that lose least in squared error on average over a known prior."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from federation.numerics.arrays import Floats

MAX_POINTS = 512


@dataclass(frozen=True)
class Bins:
    """Bin j holds the prior's points starts[j] .. starts[j+1] - 1 and answers values[j]; `loss` is the mean loss."""

    starts: tuple[int, ...]
    values: tuple[float, ...]
    loss: float


def optimal_bins(points: Floats, prior: Floats, epsilon: float) -> list[Bins]:
    """The best bins for each number of them, 1..B (Ghazi et al. 2022, Algorithm 2), for the squared loss.

    `points` (B,) ascending, `prior` (B,) on the simplex. Randomised response among k bins gives label y the value of
    its own bin with e^epsilon times the probability of another's. So a bin I with value v adds to the mean loss
    (sum_y p_y w_y (v - y)²) / (e^epsilon + k - 1), w_y = e^epsilon in I and 1 elsewhere, which v = the weighted mean
    minimises; bins are intervals, and a dynamic programme over the last bin's start finds them.

    Examples:
        >>> found = optimal_bins(np.arange(4.0), np.array([0.4, 0.1, 0.1, 0.4]), epsilon=2.0)
        >>> min(found, key=lambda bins: bins.loss)
        Bins(starts=(0, 2), values=(0.5099, 2.49), loss=0.8698)
    """
    size, factor = len(points), math.expm1(epsilon)
    centred = points - prior @ points
    sums = np.concatenate([np.zeros((3, 1)), np.cumsum(prior * centred ** np.arange(3)[:, None], axis=1)], axis=1)
    inside = sums[:, None, :] - sums[:, :, None]  # of the points from .. to - 1: weight, first and second moment
    weight, first, second = (total + factor * part for total, part in zip((1.0, 0.0, sums[2, -1]), inside, strict=True))
    cost = np.where(np.tri(size + 1, dtype=bool), np.inf, second - first**2 / np.maximum(weight, 1.0))
    means = prior @ points + first / np.maximum(weight, 1.0)
    reached, ways, found = np.full(size + 1, np.inf), [], []
    reached[0] = 0.0
    for k in range(1, size + 1):
        candidates = reached[:, None] + cost
        ways.append(np.argmin(candidates, axis=0))
        reached = candidates[ways[-1], np.arange(size + 1)]
        starts, end = [], size
        for way in reversed(ways):
            starts.append(int(way[end]))
            end = starts[-1]
        starts.reverse()
        values = means[starts, [*starts[1:], size]]
        found.append(Bins(tuple(starts), tuple(map(float, values)), float(reached[-1]) / (factor + k)))
    return found
