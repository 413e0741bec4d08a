"""What noise costs where classes are told: by its norm alone, or of means by the directions of rows as well."""

from __future__ import annotations

import numpy as np

from aggregator.contract.expected import Basis, Expected
from aggregator.learners.mean_operators.bounds import USUAL, predicted_accuracy
from aggregator.world.public_numbers import PublicNumbers


def expected_accuracy(noise: float, public: PublicNumbers, basis: Basis, caveat: str = "") -> Expected:
    """The share of rows that are told wrongly, by `predicted_accuracy`, beside that of the most frequent class.

    `noise` is relative to the largest signal, as b is. `caveat` says what else is taken for granted.

    Examples:
        >>> found = expected_accuracy(0.05, PublicNumbers(1e-6, classes=2, majority=0.6), "measured")
        >>> round(found.error, 2), found.constant, found.assuming
        (0.16, 0.4, '0.9 can be had without noise')
    """
    without = USUAL if public.attainable is None else public.attainable
    chance = min(1 / (public.classes or 2), without)
    assuming = f"{without:g} can be had without noise{caveat and ' and '}{caveat}"
    return Expected(1 - predicted_accuracy(noise, without, chance), noise, basis, assuming, _constant(public))


def expected_of_means(
    noise: float, public: PublicNumbers, basis: Basis, caveat: str = "", *, responses: bool, shrunk: bool
) -> Expected:
    """The same of two classes that are told by the mean of y x, whose noise has this norm, by `noisy_accuracies`.

    `public` tells how many features rows have, and perhaps their spectrum, which else is the typical one. Between which
    accuracies the unknown alignment of classes lets it be is said behind what is taken for granted.

    Examples:
        >>> known = PublicNumbers(1e-6, features=20, majority=0.6)
        >>> found = expected_of_means(0.05, known, "measured", responses=True, shrunk=True)
        >>> round(found.error, 2), found.assuming
        (0.12, '0.9 can be had without noise and classes differ as on usual tables')
    """
    from aggregator.learners.mean_operators.noisy_accuracy import noisy_accuracies, typical_spectrum

    without = USUAL if public.attainable is None else public.attainable
    spectrum = np.array(public.spectrum) if public.spectrum else typical_spectrum(public.features or 1)
    majority = 0.5 if public.majority is None else max(public.majority, 1 - public.majority)
    found = noisy_accuracies(spectrum, noise, without, majority, responses=responses, shrunk=shrunk)
    assuming = f"{without:g} can be had without noise{caveat and ', '}{caveat} and classes differ as on usual tables"
    least, most = (f"{one:.2f}" for one in (found.min(), found.max()))
    if least != most:
        assuming += f", else {least} to {most}"
    return Expected(float(1 - found.mean()), noise, basis, assuming, _constant(public))


def _constant(public: PublicNumbers) -> float | None:
    return None if public.majority is None else 1 - public.majority
