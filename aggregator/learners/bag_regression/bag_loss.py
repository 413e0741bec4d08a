"""The squared bag loss of a network, and its gradient."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aggregator.learners.bag_regression.perceptron import Perceptron

_TILE = 1024  # rows whose activations stay in a core's own cache


@dataclass(frozen=True, eq=False)
class ReleasedBags:
    """What was released of m bags of k rows: `rows` (m, k, d), `weights` (m, k), and weighted label sums (m,)."""

    rows: np.ndarray
    weights: np.ndarray
    sums: np.ndarray


def bag_loss(
    network: Perceptron,
    parameters: np.ndarray,
    bags: ReleasedBags,
    chosen: np.ndarray,
    gradient: np.ndarray | None = None,
) -> float:
    """(1/(Bk)) sum_j (sum_i w_i f(x_i) - s_j)^2 over the B `chosen` bags; its gradient (P,) is put into `gradient`.

    With independent weights of mean 0 and variance 1 its expectation is the mean over rows of (f(x) - y)^2, plus what
    the noise of the sums adds: with E w_i w_l = 0 the cross terms vanish (Brahmbhatt et al. 2023, Section 3.2).
    """
    size = bags.weights.shape[1]
    step = max(1, _TILE // size)
    if gradient is not None:
        gradient[:] = 0
    total = 0.0
    for start in range(0, len(chosen), step):
        part = chosen[start : start + step]
        weights = bags.weights[part]
        activations = network.activations(parameters, bags.rows[part].reshape(len(part) * size, -1))
        misses = np.einsum("jk,jk->j", weights, activations[-1].reshape(len(part), size)) - bags.sums[part]
        total += float(np.dot(misses, misses))
        if gradient is not None:
            slopes = weights * (misses * (2 / (size * len(chosen))))[:, None]
            network.add_gradient(gradient, parameters, activations, slopes.ravel())
    return total / (size * len(chosen))
