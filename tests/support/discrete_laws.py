"""Discrete noise by definition: probabilities of integers, exact deltas as sums over them, and how well draws fit."""

import math
from functools import reduce

import numpy as np
from scipy import stats


def gaussian_law(scale: float, reach: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Integers and their probabilities, up to `reach` or 40 scales."""
    last = math.ceil(40 * scale) if reach is None else reach
    k = np.arange(-last, last + 1)
    mass = np.exp(-0.5 * np.square(k / scale))
    return k, mass / mass.sum()


def laplace_law(scale: float, reach: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Integers and their probabilities, up to `reach` or 60 scales."""
    last = math.ceil(60 * scale) if reach is None else reach
    k = np.arange(-last, last + 1)
    mass = np.exp(-np.abs(k) / scale)
    return k, mass / mass.sum()


def exact_delta(epsilon: float, *moved: tuple[np.ndarray, int]) -> float:
    """The sum of (P - e^epsilon Q)+ over all integers of independent laws, each of which moves by so much."""
    padded = [np.pad(mass, abs(move)) for mass, move in moved]
    here = reduce(np.multiply.outer, padded)
    there = reduce(np.multiply.outer, (np.roll(mass, move) for mass, (_, move) in zip(padded, moved, strict=True)))
    return float(np.maximum(here - math.exp(epsilon) * there, 0.0).sum())


def goodness_of_fit(draws: np.ndarray, k: np.ndarray, mass: np.ndarray) -> float:
    """Chi-square p-value against the law, tails pooled below 20 expected counts."""
    reach = np.abs(k[mass * len(draws) >= 20]).max()
    inside = np.abs(k) <= reach
    expected = np.append(mass[inside], mass[~inside].sum()) * len(draws)
    observed = np.bincount(draws[np.abs(draws) <= reach] + reach, minlength=2 * reach + 1)
    return float(stats.chisquare(np.append(observed, len(draws) - observed.sum()), expected).pvalue)
