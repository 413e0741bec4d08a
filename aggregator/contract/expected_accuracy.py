"""What noise costs where classes are told, by the one law that was fitted to measured releases."""

from __future__ import annotations

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
    constant = None if public.majority is None else 1 - public.majority
    assuming = f"{without:g} can be had without noise{caveat and ' and '}{caveat}"
    return Expected(1 - predicted_accuracy(noise, without, chance), noise, basis, assuming, constant)
