"""What public numbers let one expect of a release, and how much that is worth."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from aggregator.learners.mean_operators.bounds import loss_in_words
from federation.contract.errors import InputError

Basis = Literal["exact", "measured", "guess"]


@dataclass(frozen=True)
class Expected:
    """What a release may be expected to miss, in the measure of its protocol's task: the smaller, the better.

    error: the share of rows that are told wrongly (`classification`), the mean squared error beyond that of the best
        linear model (`regression`), or the summed error of a set's class ratios (`class_ratio`).
    noise: the size of the noise as a share of the largest signal that the rows can give; None where that is not known.
    basis: whether the formula is `exact`, rests on what was `measured` of other releases, or is a `guess`.
    assuming: what it takes for granted, in words that go behind "if".
    constant: the same error of the best answer that is the same for all rows; None where public numbers do not tell it.

    Raises `InputError` for an error or noise below 0, or not a number.

    Examples:
        >>> Expected(0.2, 0.1, "measured", "nine in ten rows can be told without noise").loss
        'visible'
    """

    error: float
    noise: float | None
    basis: Basis
    assuming: str
    constant: float | None = None

    def __post_init__(self) -> None:
        for name in ("error", "noise", "constant"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < math.inf:
                raise InputError(f"{name} of an Expected must be a finite number of at least 0, got {value}")

    @property
    def loss(self) -> str:
        """The loss by the noise in a word; empty where it is not known."""
        return "" if self.noise is None else loss_in_words(self.noise)

    @property
    def hopeless(self) -> bool:
        """Whether the answer that is the same for all rows is expected to be as good."""
        return self.constant is not None and self.error >= self.constant
