"""Labels of the source estimated from shares of errors per bin: Pb. 2 of Lacombe, Jetley and Sebag 2021."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from aggregator.protocols.error_marginals.exchange_settings import LabelEstimate
from aggregator.protocols.error_marginals.fits.marginal_fits import box_labels, entropy_labels


def estimate_labels(
    indicators: sparse.csr_array,
    weights: np.ndarray,
    predictions: Sequence[np.ndarray],
    error_shares: Sequence[np.ndarray],
    estimate: LabelEstimate,
    strength: float,
) -> np.ndarray:
    """Shares of class 1 (n,) in [0, 1] of n source rows that fit what was answered about one or more hypotheses.

    Args:
        indicators: which rows lie in which bins, R (K, n).
        weights: of the rows w (n,), summing to 1.
        predictions: of every hypothesis h (n,), 0 or 1.
        error_shares: of every hypothesis q (K,), in [0, 1].
        estimate: labels of largest entropy, or nearest to 1/2 in least squares.
        strength: rho of that regularisation.

    The errors of h among rows with labels y are R_w |h - y| = R_w h - R diag(s) diag(w) y, with R_w = R diag(w) and s
    +1 where h is 1, else -1, so that y solves R diag(s) diag(w) y = R_w h - (R_w 1) q (Eq. 3 to 6).
    """
    masses = indicators @ weights
    blocks = [indicators.multiply(2.0 * labels - 1.0) for labels in predictions]
    targets = [
        indicators @ (weights * labels) - masses * shares
        for labels, shares in zip(predictions, error_shares, strict=True)
    ]
    solve = entropy_labels if estimate == "entropy" else box_labels
    return solve(sparse.vstack(blocks, format="csr"), np.concatenate(targets), strength, weights)
