"""How far noise in the mean operator moves weights, risks (Patrini et al. 2015, Theorems 6 and 10, repaired), accuracy.

`federation.mechanisms.sums.row_sums.noise_quantile` bounds the norm of a release's noise on the sum of y x; on the
mean it is that over the number of rows.
"""

from __future__ import annotations

import math

from federation.contract.errors import InputError

USUAL = 0.9  # accuracy without noise, where nobody knows it
_WORDS = ((0.8, "very large"), (0.2, "large"), (0.05, "visible"))  # by what a norm is above
_HALVING, _POWER = 0.42, 0.8  # the norm of noise at which half is lost, and how fast


def weight_shift(slope: float, regularisation: float, moment_distance: float) -> float:
    """Largest Euclidean distance of the minimisers for two mean operators at that distance: |a| / (4 lam) of it.

    For every convex loss with slope a (Theorem 6; its 1/lam holds only for |a| <= 4) and the regulariser lam |w|². The
    linear loss attains it. With the distance from 0 it bounds the norm of the weights. Raises `InputError` unless
    lam > 0 and the distance is at least 0.

    Examples:
        >>> weight_shift(slope=1.0, regularisation=0.1, moment_distance=0.04)
        0.1
    """
    if not 0 < regularisation < math.inf:
        raise InputError(f"regularisation must be > 0 and finite, got {regularisation}: there is no bound without it")
    return abs(slope) / (4 * regularisation) * _at_least_zero("moment_distance", moment_distance)


def risk_shift(slope: float, radius: float, moment_distance: float) -> float:
    """Largest change of the risk of any weights with |w| <= radius between two such mean operators.

    |a|/2 radius |mu - mu~|, for weights that may depend on the noise (Theorem 10). Raises `InputError` for a negative
    radius or distance.

    Examples:
        >>> risk_shift(slope=1.0, radius=2.0, moment_distance=0.04)
        0.04
    """
    distance = _at_least_zero("moment_distance", moment_distance)
    return abs(slope) / 2 * _at_least_zero("radius", radius) * distance


def predicted_accuracy(noise_norm: float, without_noise: float = USUAL, chance: float = 0.5) -> float:
    """The accuracy to expect of two classes where noise in the mean operator has this root mean square norm b.

    1/2 + (A - 1/2) / (1 + (b/.42)^.8), A being the accuracy `without_noise`: a fit to measured accuracies of rows of
    norm 1 on six data sets, of the lost share of A - 1/2 with a root mean square error of about .1, and of .2 when
    eight sets were measured again. It is no bound, and too low where classes are far apart (.62 for .90 on tumours at
    b = 1.3); `noisy_accuracy` is nearer where the kind of noise is known. `chance` takes the place of 1/2 where there
    are more classes, for which nothing was measured. Raises `InputError` for a negative norm.

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
