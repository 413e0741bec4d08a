"""How far private proportions are from the true ones, all bags together: Lemma 4 of Iyer et al. 2016, and better.

With P the proportions (C, M) of M bags of m_i records and each released column from Dir(sigma_i m_i p_i), an entry has
mean p and variance p (1 - p) / (sigma_i m_i + 1). All bounds hold for the Frobenius norm of the error with probability
1 - zeta or more, by Markov's and Chebyshev's inequalities.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from federation.contract.errors import InputError
from federation.mechanisms.counts.count_mechanism import CountMechanism
from federation.numerics.arrays import Floats, Integers


def published_bound(proportions: Floats, sigmas: ArrayLike, sizes: ArrayLike, zeta: float) -> float:
    """Lemma 4: M C / sqrt(zeta) times the largest standard deviation of an entry. It depends on the true proportions.

    `proportions`: (C, M), columns on the simplex; `sigmas` > 0 and `sizes` >= 1: (M,) or numbers. Raises `InputError`
    otherwise or for zeta outside (0, 1).

    Examples:
        >>> shares = np.array([[0.5, 0.2], [0.5, 0.8]])
        >>> published_bound(shares, sigmas=0.1, sizes=[100, 200], zeta=0.1)
        1.907
    """
    variance = _variances(proportions, sigmas, sizes, zeta)
    return math.sqrt(variance.max() / zeta) * variance.size


def frobenius_bound(proportions: Floats, sigmas: ArrayLike, sizes: ArrayLike, zeta: float) -> float:
    """sqrt(sum of all entries' variances / zeta), by Markov's inequality on the squared norm at once.

    At most Lemma 4 over sqrt(M C), and like it a function of the true proportions: a diagnostic for who holds the
    labels, not to be published. Arguments and errors as in `published_bound`.

    Examples:
        >>> shares = np.array([[0.5, 0.2], [0.5, 0.8]])
        >>> frobenius_bound(shares, sigmas=0.1, sizes=[100, 200], zeta=0.1)
        0.7791
    """
    return math.sqrt(_variances(proportions, sigmas, sizes, zeta).sum() / zeta)


def public_bound(mechanism: CountMechanism, sizes: Floats | Integers, zeta: float) -> float:
    """The same bound from public numbers, for any private counts: what may be published.

    `sizes`: (M,) of bags that `mechanism` serves. A Dirichlet's variances are largest at equal counts, since
    sum p (1 - p) <= 1 - 1/C (sharper than p (1 - p) <= 1/4 each); additive noise has the same at all counts. Raises
    `InputError` for sizes below 1 or zeta outside (0, 1).

    Examples:
        >>> from federation.mechanisms.counts.dirichlet import calibrate_shifted
        >>> noise = calibrate_shifted(2, epsilon=1.0, delta=1e-3, pseudo_count=50)
        >>> public_bound(noise, np.array([100, 200]), zeta=0.1)
        0.1904
    """
    _check(sizes, zeta)
    total = sum(float(np.trace(mechanism.covariance(int(size)))) / float(size) ** 2 for size in sizes)
    return math.sqrt(total / zeta)


def _variances(proportions: Floats, sigmas: ArrayLike, sizes: ArrayLike, zeta: float) -> Floats:
    """p (1 - p) / (sigma_i m_i + 1), shape (C, M)."""
    _check(np.asarray(sizes), zeta)
    on_simplex = np.all(proportions >= 0) and np.allclose(proportions.sum(axis=0), 1, rtol=0, atol=1e-9)
    if proportions.ndim != 2 or not on_simplex:
        raise InputError("proportions must have shape (classes, bags), every column >= 0 with sum 1")
    if not np.all(np.asarray(sigmas) > 0):
        raise InputError(f"sigmas must be positive, got {np.min(sigmas)}; take them from the mechanisms")
    parameters: Floats = np.multiply(sigmas, sizes)
    return proportions * (1 - proportions) / (parameters + 1)


def _check(sizes: Floats | Integers, zeta: float) -> None:
    if not np.all(sizes >= 1):
        raise InputError(f"sizes of bags must be at least 1, got {np.min(sizes)}; leave empty bags out")
    if not 0 < zeta < 1:
        raise InputError(f"zeta must lie in (0, 1), got {zeta}; it is the probability that the bound fails")
