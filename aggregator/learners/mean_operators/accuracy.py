"""The expected cost of noise in the mean operator, for planning and for diagnostics of releases.

All functions start from the root mean square norm of the noise on the mean of y x:

- `noisy_accuracies` follows a law that is derived for linear scores, from the directions of the rows.
- `predicted_accuracy` is a fit to measured accuracies, from the norm alone.
- `loss_in_words` names the size of the loss in a word.

`federation.mechanisms.sums.row_sums.noise_quantile` bounds the norm of a release's noise on the sum of y x. On the mean
the bound is that over the number of rows.
"""

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

    The law: rows x, not centred, have the principal directions u_i with second moments lam_i, and
    z_i = u_i'x / sqrt(lam_i). Labels y = 1 or -1 have the best linear fit sum m_i z_i, which explains R² = sum m_i² of
    them. The mean of y x tells the m_i, and noise e_i of variance S_i is added to each. What is learned is
    sum k_i (m_i + e_i) z_i. It still explains a fraction

        V = (sum k_i m_i²)² / sum k_i² (m_i² + S_i)  <=  R²

    of the labels, in expectation of numerator and denominator. A score that explains V tells classes with
    `score_accuracy(V)`, if both classes are Gaussian along it with one variance.

    Nothing else of the data matters, and two things are not public: R² and how m_i² is spread over directions. The
    accuracy without noise tells R². The spread is taken to be proportional to lam_i^g. For single data sets the law
    errs least at exponents g from below 0 (classes differ where rows hardly vary) to above 4 (along the first direction
    alone). The mean of the accuracies over `ALIGNMENTS` is therefore what to expect, and their range what may be.

    Examples:
        >>> noisy_accuracies(typical_spectrum(20), 0.1, 0.9, responses=True, shrunk=True).round(2)
        array([0.83, 0.83, 0.84, 0.85, 0.85])
    """
    square = _at_least_zero("noise_norm", noise_norm) ** 2
    moments = spectrum[spectrum > _FAINT * spectrum.max()]
    moments = moments / moments.sum()
    majority = min(majority, _ALL)
    most = explained_by(without_noise, majority)
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


USUAL = 0.9  # accuracy without noise, where nobody knows it
_WORDS = ((0.8, "very large"), (0.2, "large"), (0.05, "visible"))  # by what a norm is above
_HALVING, _POWER = 0.42, 0.8  # the norm of noise at which half is lost, and how fast


def predicted_accuracy(noise_norm: float, without_noise: float = USUAL, chance: float = 0.5) -> float:
    """The accuracy to expect of two classes where noise in the mean operator has this root mean square norm b.

    1/2 + (A - 1/2) / (1 + (b/.42)^.8), A being the accuracy `without_noise`: a fit to measured accuracies of rows of
    norm 1 on six data sets, of the lost share of A - 1/2 with a root mean square error of about .1, and of .2 when
    eight sets were measured again. It is no bound, and too low where classes are far apart (.62 for .90 on tumours at
    b = 1.3). `noisy_accuracies` are nearer where the kind of noise is known. `chance` takes the place of 1/2 where
    there are more classes, for which nothing was measured. Raises `InputError` for a negative norm.

    Examples:
        >>> [round(predicted_accuracy(norm), 2) for norm in (0.0, 0.05, 0.2, 0.8)]
        [0.9, 0.84, 0.76, 0.65]
    """
    ratio = _at_least_zero("noise_norm", noise_norm) / _HALVING
    return chance + (without_noise - chance) / (1 + math.pow(ratio, _POWER))


def loss_in_words(noise_norm: float) -> str:
    """The loss of accuracy by noise of this root mean square norm in the mean operator, in a word.

    Raises `InputError` for a negative norm.

    Examples:
        >>> [loss_in_words(norm) for norm in (0.01, 0.1, 0.5, 3.0)]
        ['little', 'visible', 'large', 'very large']
    """
    norm = _at_least_zero("noise_norm", noise_norm)
    return next((word for least, word in _WORDS if norm > least), "little")


def _at_least_zero(name: str, value: float) -> float:
    if not 0 <= value < math.inf:
        raise InputError(f"{name} must be a finite number of at least 0, got {value}")
    return float(value)
