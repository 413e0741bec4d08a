"""Who is in which bag and whose labels carry noise, as public numbers: what the accounting of noisy-wtd-LLP reads."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from federation.contract.errors import InputError
from federation.mechanisms.noise.checks import require_known, require_whole
from federation.numerics.arrays import Floats, Integers

_MOST_RECORDS = 2**40

Weights = Literal["gaussian", "signs"]


@dataclass(frozen=True)
class Exposure:
    """A part of the ways in which a record's label can enter a release.

    With probability `probability[j]` it lies in a bag with `others[j]` other noisy labels; `own` says whether its own
    label is noisy too. Both arrays have one entry per possible count.
    """

    own: bool
    others: Integers
    probability: Floats


@dataclass(frozen=True)
class BagDesign:
    """m disjoint bags of k records, uniform among n, with published weights (Brahmbhatt et al. 2023, Figure 2).

    `records` n, `bags` m, `size` k with m k <= n. Either `noisy` = |N|, the size of a set N of records fixed without
    labels, whose labels get noise; or `per_bag` = q, noise on q labels of every bag that are drawn uniformly anew
    (stratified), so that no bag is without. `weights` are N(0, 1), as published, or -1 and 1 with equal chances.

    Raises `InputError` for numbers out of range.

    Examples:
        >>> design = BagDesign(records=6400, bags=50, size=64, noisy=640)
        >>> design.inclusion, design.noise_free
        (0.5, 0.0006323)
        >>> BagDesign(records=6400, bags=50, size=64, per_bag=8).noise_free
        0.0
    """

    records: int
    bags: int
    size: int
    noisy: int | None = None
    per_bag: int | None = None
    weights: Weights = "gaussian"

    def __post_init__(self) -> None:
        require_bags(self.records, self.bags, self.size)
        require_known("weights", self.weights, get_args(Weights))
        if (self.noisy is None) == (self.per_bag is None):
            raise InputError(
                f"give noisy, how many records get noise, or per_bag, how many labels of every bag do, and not both; "
                f"got {self.noisy} and {self.per_bag}"
            )
        if self.noisy is not None:
            require_whole("noisy", self.noisy, 1, self.records, "all ")
        if self.per_bag is not None:
            require_whole("per_bag", self.per_bag, 1, self.size, "all ")

    @property
    def inclusion(self) -> float:
        """m k / n: how likely a record is in a bag."""
        return self.bags * self.size / self.records

    @property
    def noise_free(self) -> float:
        """How likely a record without noise of its own lies in a bag without any: there its label is revealed.

        No epsilon and no noise scale brings delta below it.
        """
        return max(
            sum(float(part.probability[part.others == 0].sum()) for part in parts if not part.own)
            for parts in self.exposures()
        )

    def exposures(self) -> list[tuple[Exposure, ...]]:
        """Disjoint parts for each kind of record that there can be: with |N| fixed, those in N and those outside."""
        if self.per_bag is not None:
            share = self.per_bag / self.size
            kinds = ((True, self.per_bag - 1, share), (False, self.per_bag, 1 - share))
            made = ((own, np.array([others]), np.array([self.inclusion * likely])) for own, others, likely in kinds)
            return [tuple(Exposure(*kind) for kind in made if kind[2] > 0)]
        assert self.noisy is not None
        found: list[tuple[Exposure, ...]] = []
        for own in (False, True):
            if own or self.noisy < self.records:
                others, probability = hypergeometric(self.records - 1, self.noisy - own, self.size - 1)
                found.append((Exposure(own, others, self.inclusion * probability),))
        return found


def binomial(trials: int, chance: float) -> tuple[Integers, Floats]:
    """The possible numbers of successes, and their probabilities.

    Examples:
        >>> binomial(2, 0.25)
        (array([0, 1, 2]), array([0.5625, 0.375 , 0.0625]))
    """
    if chance == 1:
        return np.array([trials]), np.ones(1)
    counts = np.arange(trials + 1)
    log = np.concatenate([[0.0], np.cumsum(np.log((trials - counts[:-1]) / counts[1:]))])
    mass = np.exp(log + counts * math.log(chance) + (trials - counts) * math.log1p(-chance))
    return counts, mass / mass.sum()


def hypergeometric(population: int, marked: int, drawn: int) -> tuple[Integers, Floats]:
    """How many marked ones are among `drawn` of the population: possible counts, and their probabilities.

    From the ratios of neighbouring probabilities, so that a population of billions costs no digits.

    Examples:
        >>> hypergeometric(population=10, marked=3, drawn=2)
        (array([0, 1, 2]), array([0.4667, 0.4667, 0.06667]))
    """
    counts = np.arange(max(0, drawn - (population - marked)), min(marked, drawn) + 1)
    q = counts[:-1].astype(float)
    up = (marked - q) * (drawn - q)
    down = (q + 1) * (population - marked - drawn + q + 1)
    log = np.concatenate([[0.0], np.cumsum(np.log(up) - np.log(down))])
    mass = np.exp(log - log.max())
    return counts, mass / mass.sum()


def require_bags(records: int, bags: int, size: int) -> None:
    """Raises `InputError` unless all are integers >= 1 and m k <= n."""
    for name, value in (("records", records), ("bags", bags), ("size", size)):
        require_whole(name, value, 1, _MOST_RECORDS)
    if bags * size > records:
        raise InputError(
            f"bags are disjoint, so {bags} bags of {size} need {bags * size} records, got {records}; "
            "use fewer or smaller bags"
        )
