"""What noise in the mean operator costs in accuracy, by the directions that rows have: a law derived for linear scores.

Rows x, not centred, have the principal directions u_i with second moments lam_i, and z_i = u_i'x / sqrt(lam_i). Labels
y = 1 or -1 have the best linear fit sum m_i z_i, which explains R² = sum m_i² of them; the mean of y x tells the m_i,
and noise e_i of variance S_i is added to each. What is learned is sum k_i (m_i + e_i) z_i. A fraction

    V = (sum k_i m_i²)² / sum k_i² (m_i² + S_i)  <=  R²

of the labels is then still explained, in expectation of numerator and denominator, and what explains V tells classes
with `score_accuracy(V)` if both are Gaussian along it with one variance. Nothing else of the data matters, and two
things are not public: R², which the accuracy without noise tells, and how m_i² is spread over directions. It is taken
to be proportional to lam_i^g. The exponent g of single data sets, where the law errs least, was anything from below 0
(classes differ where rows hardly vary) to above 4 (along the first direction alone), so that the mean of the
accuracies over `ALIGNMENTS` is what to expect, and their range what may be.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from federation.contract.errors import InputError
from federation.numerics.rows import Floats

ALIGNMENTS = (0.0, 1.0, 2.0, 3.0, 4.0)  # exponents g
_FAINT = 1e-6  # of the largest second moment: what varies less tells nothing
_STEPS = 50  # halvings of an interval
_ALL = 1 - 1e-6  # of what can be explained: beyond it scores have no variance within a class


def score_accuracy(explained: float, majority: float = 0.5, offset_variance: float = 0.0) -> float:
    """The accuracy of the sign of a fitted linear score that explains V = `explained` of labels 1 and -1.

    The commoner class has a share p = `majority`, so that the mean label is m = 2p - 1, of the variance of labels
    1 - m² the score explains V, and least squares puts the classes' mean scores at m + V/(2p) and m - V/(2(1-p)), with
    variance V - V²/(4p(1-p)) within each. `offset_variance` is that of an error of m, by which the fit shrinks m. Both
    classes are Gaussian along the score.

    Examples:
        >>> round(score_accuracy(0.5), 3), round(score_accuracy(1e-9, majority=0.8), 3)
        (0.841, 0.8)
    """
    other, mean = 1 - majority, 2 * majority - 1
    # The offset is shrunk as the mean label is large beside its error.
    kept = mean**2 / (mean**2 + offset_variance) if offset_variance else 1.0
    spread = explained - explained**2 / (4 * majority * other) + kept**2 * offset_variance
    deviation = math.sqrt(max(spread, np.finfo(float).tiny))
    right = ndtr((kept * mean + explained / (2 * majority)) / deviation)
    return float(majority * right + other * ndtr((explained / (2 * other) - kept * mean) / deviation))


def explained_by(accuracy: float, majority: float = 0.5) -> float:
    """How much of labels a score explains that has this accuracy, the inverse of `score_accuracy`; nearly 0 for less.

    Examples:
        >>> round(explained_by(0.841), 2), round(explained_by(0.5), 2)
        (0.5, 0.0)
    """
    low, high = 0.0, _ALL * (1 - (2 * majority - 1) ** 2)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if score_accuracy(middle, majority) < accuracy else (low, middle)
    return high


def typical_spectrum(features: int) -> Floats:
    """Second moments (d,) where nobody knows them: the i-th direction has 1/i of the first one's. Their sum is 1.

    Examples:
        >>> typical_spectrum(3).round(2)
        array([0.55, 0.27, 0.18])
    """
    moments = 1 / np.arange(1.0, features + 1)
    return np.asarray(moments / moments.sum())


def noisy_accuracies(
    spectrum: Floats, noise_norm: float, without_noise: float, majority: float = 0.5, *, responses: bool, shrunk: bool
) -> Floats:
    """The accuracies to expect for each of `ALIGNMENTS` at noise of root mean square norm b on the mean of y x.

    `spectrum` (d,) are the second moments of rows along their directions, whose sum is taken to be 1, as of rows of
    norm 1. Noise that is added to the sum has b²/d in each direction, so that S_i = b²/(d lam_i); errors of randomised
    `responses` go where rows are, and have S_i = b². What is learned is `shrunk` by the known noise, with half of the
    prior spread evenly and half as the rows are (`aggregator.learners.shrinkage`); else a logistic model regularised by
    b²/2 has k_i = lam_i / (lam_i + 4 b²) to first order.

    `without_noise` is the accuracy that can be had, and `majority` the share of the commoner class, half where nobody
    knows it: noise then hides which it is, too. None is above `without_noise`. Raises `InputError` for a negative norm.

    Examples:
        >>> noisy_accuracies(typical_spectrum(20), 0.1, 0.9, responses=True, shrunk=True).round(2)
        array([0.83, 0.83, 0.84, 0.85, 0.85])
    """
    if not 0 <= noise_norm < math.inf:
        raise InputError(f"noise_norm must be a finite number of at least 0, got {noise_norm}")
    moments = spectrum[spectrum > _FAINT * spectrum.max()]
    moments = moments / moments.sum()
    majority = min(majority, _ALL)
    square, most = noise_norm**2, explained_by(without_noise, majority)
    noise = np.full(len(moments), square) if responses else square / (len(spectrum) * moments)
    if shrunk:
        prior = most * (1 / len(moments) + moments) / 2
        kept = prior / (prior + noise)
    else:
        kept = moments / (moments + 4 * square)
    offset = square if majority != 0.5 else 0.0
    found = []
    for alignment in ALIGNMENTS:
        signal = moments**alignment
        signal = most * signal / signal.sum()
        explained = (kept @ signal) ** 2 / (kept**2 @ (signal + noise))
        found.append(score_accuracy(float(explained), majority, offset))
    return np.minimum(found, without_noise)
