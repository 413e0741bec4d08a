"""The paper's training of a linear model on sums: Adam, with steps that count instances (Appendix K.1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aggregator.learners.bag_regression.training import Adam, cosine_decay
from scenarios.papers.brahmbhatt.substitutes import Sums

EPOCHS, RATE, LAST = 200, 1e-3, 1e-3


def trained(
    draws: Sequence[Sums], size: int, instances: int, random: np.random.Generator, epochs: int = EPOCHS
) -> np.ndarray:
    """Weights (draws, d) that Adam reaches from 0 on sums of as many bags of `size` rows, each draw by itself.

    The loss is the mean of (r'x - y)^2 / k over bags. A step takes the bags that have `instances` rows, at least one:
    for a fixed number of bags, the larger they are the more steps there are, which is why the paper's errors fall with
    k. All of them are far from the least squares solution until there are enough. Early stopping, of which the paper
    does not say what it watches, is left out.
    """
    rows, labels = np.stack([one.rows for one in draws]), np.stack([one.labels for one in draws])
    bags = rows.shape[1]
    batch = max(1, instances // size)
    steps, step = -(-bags // batch) * epochs, 0
    weights = np.zeros((len(draws), rows.shape[2]))
    adam = Adam(weights)
    for _ in range(epochs):
        order = random.permutation(bags)
        shuffled, wanted = rows[:, order], labels[:, order]
        for start in range(0, bags, batch):
            part = shuffled[:, start : start + batch]
            misses = np.matmul(part, weights[:, :, None])[:, :, 0] - wanted[:, start : start + batch]
            gradient = np.matmul(misses[:, None, :], part)[:, 0] * (2 / (size * part.shape[1]))
            adam.step(gradient, cosine_decay(step, steps, RATE, LAST))
            step += 1
    return weights
