"""Noisy votes: all vote shares are released, and whatever learns from the labels is post-processing.

The Gaussian noisy maximum of PATE (Papernot et al. 2018) on every auxiliary row at once, charged as one release of
N (C-1) numbers, which for many rows is far less than N releases of one.
"""

from __future__ import annotations

import numpy as np

from aggregator.contract.perturbable import Decode, LinearScores, Perturbable
from aggregator.ensembles.decoding import PUBLIC_ROWS, VOTE_ASSUMPTIONS, VOTE_CHECKS, two_rows
from aggregator.ensembles.ensemble import Ensemble
from federation.mechanisms.accounting import sensitivity
from federation.mechanisms.noise.additive import AdditiveMechanism
from federation.numerics.erm import attainable_tolerance, risk_minimiser
from federation.numerics.rows import contrast_rounding, contrasts

_RELATIVE_TOLERANCE = 1e-3  # of the gradient, in units of the regularisation
_DECIMALS = 12
_ENTRIES = 1 << 20  # noisy shares turned to labels at a time


def perturb_votes(ensemble: Ensemble, regularisation: float) -> Perturbable:
    """Noise on the vote shares themselves, in contrast coordinates: A B, shape (N, C-1) flattened.

    One party moves each row by at most sqrt(2)/M, hence all of them by sqrt(2 N)/M. The label of a row is the class
    of the largest noisy share, the model the minimiser of the risk of those labels (Hamm et al. 2016, Alg. 1 from
    line 3 on).
    """
    rows, classes = ensemble.public.rows, ensemble.classes
    value = ensemble.shares() @ contrasts(classes)
    rounding = 2 * contrast_rounding(classes) * float(np.sqrt(len(rows)))  # a row of shares has norm at most 1
    return Perturbable(
        value.ravel(),
        sensitivity.vote_shares(ensemble.parties, len(rows)) + rounding,
        _decoder(rows, classes, regularisation),
        (*VOTE_ASSUMPTIONS, PUBLIC_ROWS),
        VOTE_CHECKS,
        largest_norm=float(np.sqrt(len(rows) * (1 - 1 / classes))),
        scores=LinearScores(
            lambda noisy: _shares(noisy, classes),
            lambda variances: np.full(len(rows), np.sqrt(variances[0])),
            np.ones(1),
        ),
    )


def _shares(noisy: np.ndarray, classes: int) -> np.ndarray:
    """Noisy shares (..., N, C), less 1/C, of noisy values (..., N (C-1))."""
    return np.asarray(noisy.reshape(*noisy.shape[:-1], -1, classes - 1) @ contrasts(classes).T)


def _decoder(rows: np.ndarray, classes: int, regularisation: float) -> Decode:
    tolerance = attainable_tolerance(_RELATIVE_TOLERANCE * regularisation, rows, regularisation)
    at_once = max(1, _ENTRIES // (len(rows) * classes))

    def decode(noisy: np.ndarray, _: AdditiveMechanism | None) -> np.ndarray:
        # Each draw is solved from the same start: a draw that told about another would cost that one's privacy.
        weights = []
        for first in range(0, len(noisy), at_once):
            shares = _shares(noisy[first : first + at_once], classes)
            # Ties, which only votes without noise have, are not for rounding to decide.
            labels = shares.round(_DECIMALS).argmax(axis=2)
            # Of few rows, many draws have the same labels.
            distinct, which = np.unique(labels, axis=0, return_inverse=True)
            shares = np.eye(classes)[distinct]
            weights.append(np.stack([risk_minimiser(rows, one, regularisation, tolerance) for one in shares])[which])
        fitted = np.concatenate(weights)
        return two_rows(fitted) if classes == 2 else fitted

    return decode
