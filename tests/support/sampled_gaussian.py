"""An accountant of its own for Gaussian noise on sums over rows that are drawn at random: an oracle for dp-accounting.

In every round each of the units is drawn by itself with probability q (Poisson sampling), those that are drawn add a
vector of norm 1 at most each, and the sum gets noise of deviation sigma. A unit that is added or removed, of m rows of
which each is drawn by itself, gives the pair sum_j Binomial(m, q)(j) N(j, sigma^2) and N(0, sigma^2), in both orders,
and nothing is easier to tell apart (Mironov, Talwar, Zhang 2019, for m = 1; Ganesh 2024 for more).

The law of the privacy loss is put on a grid so that the hockey-stick divergence is exact on it and above the true one
between (connecting the dots: Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022), and composed by Fourier transform. So
what is found is an upper bound, but for rounding, and a tight one.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, logsumexp
from scipy.stats import binom

from federation.numerics.rows import Floats

_STEP = 1e-4  # of the grid of losses, or more where that is too fine for the numbers below
_MOST_POINTS = 2**20  # of all rounds together
_POINTS = 2**16  # of one round
_TAIL = 1e-16  # probability that is counted as a loss without bound, in one round and in all


@dataclass(frozen=True)
class SampledGaussian:
    """`rounds` rounds of noise of deviation `noise` (in units of a row's largest norm) on rows drawn with rate `rate`.

    The rate is below 1, and `rows` is how many rows the unit has that is added or removed.

    Examples:
        >>> round(SampledGaussian(noise=1.1, rate=0.01, rounds=1000).epsilon(1e-5), 3)
        1.515
    """

    noise: float
    rate: float
    rounds: int
    rows: int = 1

    def delta(self, epsilon: float) -> float:
        """The delta at an epsilon >= 0, of the worse order of the pair."""
        return max(_delta(losses, epsilon) for losses in self._composed)

    def epsilon(self, delta: float) -> float:
        """The least epsilon in [0, 1000] for a delta in (0, 1)."""
        return float(brentq(lambda epsilon: self.delta(epsilon) - delta, 0.0, 1000.0, rtol=1e-7))

    @cached_property
    def _composed(self) -> "tuple[_Losses, _Losses]":
        """The losses of all rounds, where the unit is removed and where it is added."""
        return _composed(_Pair(self, removed=True), self.rounds), _composed(_Pair(self, removed=False), self.rounds)


@dataclass(frozen=True, eq=False)
class _Losses:
    """A law of losses: the probability of each point of a grid, and of a loss without bound."""

    points: Floats
    masses: Floats
    unbounded: float


class _Pair:
    """The two laws of one round: outputs are one number, and the loss of the mixture over the other grows with it."""

    def __init__(self, of: SampledGaussian, removed: bool) -> None:
        self._noise, self.removed = of.noise, removed
        self._shifts = np.arange(of.rows + 1, dtype=np.float64)
        with np.errstate(divide="ignore"):
            self._weights = binom.logpmf(np.arange(of.rows + 1), of.rows, of.rate)

    def losses(self, outputs: Floats) -> Floats:
        """ln of the mixture's density over that of noise alone."""
        shifts, square = self._shifts[:, None], self._noise**2
        exponents = self._weights[:, None] + (2 * shifts * outputs - shifts**2) / (2 * square)
        return np.asarray(logsumexp(exponents, axis=0))

    def outputs(self, losses: Floats) -> Floats:
        """The inverse of `losses`, by bisection; minus infinity below all of them."""
        least = float(self._weights[0])
        reach = 2 * self._noise**2 * (np.max(np.abs(losses)) + 1) + 60 * self._noise + self._shifts[-1]
        low, high = np.full(len(losses), -reach), np.full(len(losses), reach)
        for _ in range(80):
            middle = (low + high) / 2
            above = self.losses(middle) >= losses
            high, low = np.where(above, middle, high), np.where(above, low, middle)
        return np.where(losses <= least, -np.inf, high)

    def masses(self, outputs: Floats) -> tuple[Floats, Floats]:
        """Probabilities (n + 1,) of both laws between consecutive outputs (n,), the ends included: mixture, noise."""
        edges = np.concatenate([[-np.inf], outputs, [np.inf]])
        parts = [
            np.exp(weight) * _between((edges - shift) / self._noise)
            for weight, shift in zip(self._weights, self._shifts, strict=True)
        ]
        return np.sum(parts, axis=0), _between(edges / self._noise)

    def range(self) -> tuple[float, float]:
        """Losses between which all but `_TAIL` of the outputs lie, whichever law they are of."""
        reach = 9 * self._noise
        low, high = self.losses(np.array([-reach, self._shifts[-1] + reach]))
        return float(low), float(high)


def _between(edges: Floats) -> Floats:
    """Standard normal probabilities between consecutive edges, by the nearer tail, so that small ones are exact."""
    upper = edges[:-1] > 0
    signed = np.where(upper, -edges[:-1], edges[1:])
    other = np.where(upper, -edges[1:], edges[:-1])
    larger, smaller = np.exp(log_ndtr(signed)), np.exp(log_ndtr(other))
    return np.asarray(np.maximum(larger - smaller, 0.0))


def _on_grid(pair: _Pair, step: float) -> _Losses:
    """One round on a grid of losses, so that both laws keep the probability of every piece between two points."""
    low, high = pair.range()
    points: Floats = step * np.arange(math.floor(low / step), math.ceil(high / step) + 1, dtype=np.float64)
    mixture, noise = pair.masses(pair.outputs(points))
    own, other = mixture, noise
    if not pair.removed:  # the loss is the other way round, and so is the grid
        points, own, other = -points[::-1], noise[::-1], mixture[::-1]
    masses = np.zeros(len(points))
    inner, beside = own[1:-1], other[1:-1]
    # A piece between l and l + step is split among its ends: p e^-l + p' e^-(l + step) is its mass under the other law.
    with np.errstate(over="ignore", invalid="ignore"):  # of pieces that the other law cannot give
        lower = np.nan_to_num((beside * np.exp(points[1:]) - inner) / math.expm1(step), nan=0.0)
    lower = np.clip(lower, 0.0, inner)
    masses[:-1] += lower
    masses[1:] += inner - lower
    masses[0] += own[0]  # a smaller loss counts as the smallest point: more than it is
    return _Losses(points, masses, float(own[-1]))


def _composed(pair: _Pair, rounds: int) -> _Losses:
    """All rounds on a grid that holds all but `_TAIL` of their losses."""
    low, high = pair.range()
    step = max(_STEP, (high - low) / _POINTS)
    one = _on_grid(pair, step)
    ends = _ends(one, rounds)
    if ends[1] - ends[0] > step * _MOST_POINTS:
        step = (ends[1] - ends[0]) / _MOST_POINTS * 1.01
        one = _on_grid(pair, step)
        ends = _ends(one, rounds)
    first, last = math.floor(ends[0] / step), math.ceil(ends[1] / step)
    size = max(last - first + 1, len(one.points))
    size = 1 << (size - 1).bit_length()
    spectrum = np.fft.rfft(one.masses, size)
    summed = np.fft.irfft(spectrum**rounds, size)
    shift = rounds * round(one.points[0] / step)
    summed = np.roll(summed, (shift - first) % size)
    points: Floats = step * (first + np.arange(size, dtype=np.float64))
    unbounded = -math.expm1(rounds * math.log1p(-one.unbounded)) + 2 * _TAIL
    return _Losses(points, np.maximum(summed, 0.0), unbounded)


def _ends(one: _Losses, rounds: int) -> tuple[float, float]:
    """Losses beyond which the sum of so many has less than `_TAIL`, by Chernoff's bound."""
    with np.errstate(divide="ignore"):
        logs = np.log(one.masses)
    found: list[float] = []
    for sign in (-1, 1):
        best = math.inf
        for power in np.geomspace(1e-3, 1e3, 61):
            moment = float(logsumexp(logs + sign * float(power) * one.points))
            best = min(best, (rounds * moment - math.log(_TAIL)) / float(power))
        most = rounds * float(np.max(sign * one.points))
        found.append(sign * min(best, most))
    return found[0], found[1]


def _delta(losses: _Losses, epsilon: float) -> float:
    """The hockey-stick divergence at an epsilon."""
    beyond = losses.points > epsilon
    gains = -np.expm1(epsilon - losses.points[beyond])
    return min(1.0, losses.unbounded + float(gains @ losses.masses[beyond]))
