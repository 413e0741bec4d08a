"""Class ratios of a set by maximum likelihood, from class probabilities that hold for other ratios."""

from __future__ import annotations

import numpy as np

_ROUNDS = 10_000
_ACCURACY = 1e-7  # of the mean log-likelihood, certified


def most_likely_ratios(posteriors: np.ndarray, priors: np.ndarray) -> np.ndarray:
    """Maximiser rho (C,) over the simplex of mean log sum_y rho_y f_y(x) / q_y (Saerens et al. 2002).

    By expectation maximisation from `priors` q (C,), all positive, for `posteriors` f (n, C) that hold under q. Every
    round raises the likelihood, which is concave: max_y mean(f_y / (q_y sum_z rho_z f_z / q_z)) - 1 bounds what is
    missing to the maximum, and the rounds stop when that is below 1e-7.
    """
    densities = posteriors / priors
    rho = priors / priors.sum()
    for _ in range(_ROUNDS):
        ratios = np.reciprocal(densities @ rho) @ densities / len(densities)
        if ratios.max() - 1 <= _ACCURACY:
            break
        rho = rho * ratios
        rho /= rho.sum()
    return rho
