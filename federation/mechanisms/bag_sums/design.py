"""Who is in which bag and whose labels carry noise, as public numbers: what the accounting of noisy-wtd-LLP reads."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from federation.contract.errors import InputError, nearest_name

Weights = Literal["gaussian", "signs"]


@dataclass(frozen=True)
class Exposure:
    """A part of the ways in which a record's label can enter a release.

    With probability `probability[j]` it lies in a bag with `others[j]` other noisy labels; `own` says whether its own
    label is noisy too. Both arrays have one entry per possible count.
    """

    own: bool
    others: np.ndarray
    probability: np.ndarray


@dataclass(frozen=True)
class BagDesign:
    """m disjoint bags of k records, uniform among n, with published weights (Brahmbhatt et al. 2023, Figure 2).

    `records` n, `bags` m, `size` k with m k <= n. Either `noisy` = |N|, the size of a set N of records fixed without
    labels, whose labels get noise; or `per_bag` = q, noise on q labels of every bag that are drawn uniformly anew
    (stratified), so that no bag is without. `weights` are N(0, 1), as published, or -1 and 1 with equal chances.

    Raises `InputError` for numbers out of range.
    """

    records: int
    bags: int
    size: int
    noisy: int | None = None
    per_bag: int | None = None
    weights: Weights = "gaussian"

    def __post_init__(self) -> None:
        require_bags(self.records, self.bags, self.size)
        if self.weights not in get_args(Weights):
            known = get_args(Weights)
            raise InputError(
                f"weights must be one of {', '.join(known)}, got {self.weights!r}{nearest_name(self.weights, known)}"
            )
        if (self.noisy is None) == (self.per_bag is None):
            raise InputError(
                f"give noisy, how many records get noise, or per_bag, how many labels of every bag do, and not both; "
                f"got {self.noisy} and {self.per_bag}"
            )
        if self.noisy is not None and not _whole(self.noisy, 1, self.records):
            raise InputError(f"noisy must be an integer from 1 to all {self.records} records, got {self.noisy!r}")
        if self.per_bag is not None and not _whole(self.per_bag, 1, self.size):
            raise InputError(f"per_bag must be an integer from 1 to all {self.size} of a bag, got {self.per_bag!r}")

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
            return [
                tuple(
                    Exposure(own, np.array([others]), np.array([self.inclusion * likely]))
                    for own, others, likely in kinds
                    if likely > 0
                )
            ]
        assert self.noisy is not None
        found: list[tuple[Exposure, ...]] = []
        for own in (False, True):
            if own or self.noisy < self.records:
                others, probability = hypergeometric(self.records - 1, self.noisy - own, self.size - 1)
                found.append((Exposure(own, others, self.inclusion * probability),))
        return found


def binomial(trials: int, chance: float) -> tuple[np.ndarray, np.ndarray]:
    """The possible numbers of successes, and their probabilities."""
    if chance == 1:
        return np.array([trials]), np.ones(1)
    counts = np.arange(trials + 1)
    log = np.concatenate([[0.0], np.cumsum(np.log((trials - counts[:-1]) / counts[1:]))])
    mass = np.exp(log + counts * math.log(chance) + (trials - counts) * math.log1p(-chance))
    return counts, mass / mass.sum()


def hypergeometric(population: int, marked: int, drawn: int) -> tuple[np.ndarray, np.ndarray]:
    """How many marked ones are among `drawn` of the population: possible counts, and their probabilities.

    From the ratios of neighbouring probabilities, so that a population of billions costs no digits.
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
        if not _whole(value, 1, 2**53):
            raise InputError(f"{name} must be an integer of at least 1, got {value!r}")
    if bags * size > records:
        raise InputError(
            f"bags are disjoint, so {bags} bags of {size} need {bags * size} records, got {records}; "
            "use fewer or smaller bags"
        )


def _whole(value: object, low: int, high: int) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(low <= value <= high)
