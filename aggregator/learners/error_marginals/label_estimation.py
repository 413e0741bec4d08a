"""Labels of the source estimated from shares of errors per bin: Pb. 2 of Lacombe, Jetley and Sebag 2021."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from aggregator.learners.error_marginals.exchange_settings import LabelEstimate
from aggregator.learners.error_marginals.fits.marginal_fits import box_labels, entropy_labels


def estimate_labels(
    indicators: sparse.csr_array,
    weights: np.ndarray,
    predictions: np.ndarray,
    error_shares: np.ndarray,
    estimate: LabelEstimate,
    strength: float,
) -> np.ndarray:
    """Shares of class 1 (n,) in [0, 1] of n source rows that fit what was answered about t hypotheses, t >= 1.

    Args:
        indicators: which rows lie in which bins, R (K, n).
        weights: of the rows w (n,), summing to 1.
        predictions: of every hypothesis h, 0 or 1 (t, n).
        error_shares: of every hypothesis q, in [0, 1] (t, K).
        estimate: labels of largest entropy, or nearest to 1/2 in least squares.
        strength: rho of that regularisation.

    The errors of h among rows with labels y are R_w |h - y| = R_w h - R diag(s) diag(w) y, with R_w = R diag(w) and s
    +1 where h is 1, else -1, so that y solves R diag(s) diag(w) y = R_w h - (R_w 1) q (Eq. 3 to 6).

    Examples:
        >>> indicators = sparse.csr_array(np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]))  # bins of rows
        >>> always, shares = np.ones((1, 4)), np.array([[0.9, 0.2]])  # of errors of the constant 1
        >>> estimate_labels(indicators, np.full(4, 0.25), always, shares, "entropy", 1e-6).round(2)
        array([0.1, 0.1, 0.8, 0.8])
    """
    masses = indicators @ weights
    blocks = [indicators.multiply(2.0 * labels - 1.0) for labels in predictions]
    targets = [
        indicators @ (weights * labels) - masses * shares
        for labels, shares in zip(predictions, error_shares, strict=True)
    ]
    solve = entropy_labels if estimate == "entropy" else box_labels
    return solve(sparse.vstack(blocks, format="csr"), np.concatenate(targets), strength, weights)
