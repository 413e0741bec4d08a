"""Training of a linear model on sums of bags by Adam, whose steps count rows (Brahmbhatt et al. 2023, Appendix K.1)."""

from __future__ import annotations

import numpy as np

from aggregator.learners.bag_regression.training import Adam, cosine_decay
from federation.contract.errors import FederationError

EPOCHS, RATE, BATCH_ROWS = 200, 1e-3, 1024  # as published; batches are of 8192 rows for the census
LAST = 1e-3  # share of the rate that is left in the end


def trained(
    row_sums: np.ndarray,
    label_sums: np.ndarray,
    size: int,
    random: np.random.Generator,
    *,
    epochs: int = EPOCHS,
    learning_rate: float = RATE,
    batch_rows: int = BATCH_ROWS,
) -> np.ndarray:
    """Weights (D, d) that Adam reaches from 0 on D draws of sums of rows (D, m, d) and labels (D, m), each by itself.

    The loss is the mean of (r'x - y)^2 / k over m bags of k = `size` rows. A step takes the bags that have `batch_rows`
    rows, rounded down to whole bags but at least one, so that there are more steps the larger the bags are; each moves
    a weight by about the rate at most, in units of the label over those of the feature. Until there are enough of them
    the weights are far from least squares. Rates decay as a cosine, from `learning_rate` to a thousandth of it, over
    `epochs` passes in an order drawn from `random`. Early stopping, of which the paper does not say what it watches,
    is left out. Raises `FederationError` where sums are too large for their squares.
    """
    bags = row_sums.shape[1]
    batch = max(1, batch_rows // size)
    steps, step = -(-bags // batch) * epochs, 0
    weights = np.zeros((len(row_sums), row_sums.shape[2]))
    adam = Adam(weights)
    with np.errstate(over="ignore", invalid="ignore"):  # refused below
        for _ in range(epochs):
            order = random.permutation(bags)
            shuffled, wanted = row_sums[:, order], label_sums[:, order]
            for start in range(0, bags, batch):
                part = shuffled[:, start : start + batch]
                misses = np.matmul(part, weights[:, :, None])[:, :, 0] - wanted[:, start : start + batch]
                gradient = np.matmul(misses[:, None, :], part)[:, 0] * (2 / (size * part.shape[1]))
                adam.step(gradient, cosine_decay(step, steps, learning_rate, LAST))
                step += 1
    if not np.isfinite(weights).all():
        raise FederationError("sums of rows are too large to train on; scale the features, or use solver: exact")
    return weights
