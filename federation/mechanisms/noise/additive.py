"""Calibrated additive noise for real vectors of known L2 or L1 sensitivity, on a public grid.

A mechanism rounds the value to integer multiples of a public power of two, adds integer noise, and releases the sum.
Rounding moves each coordinate by at most half a step. So the integers' sensitivity is charged sqrt(D) steps more in the
L2 norm, and D steps more in the L1 norm.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Assumption, Check, Guarantee, Keeper, Unit, require_epsilon
from federation.contract.randomness import NoiseBits
from federation.contract.validation import apart
from federation.mechanisms.noise import discrete, gaussian, l2_gamma
from federation.mechanisms.noise.mechanism import (
    NOISE_KEY,
    Parameters,
    Replacement,
    promised,
    require_delta_above_zero,
    require_draws,
    require_epsilon_from_zero,
    require_positive,
    require_whole,
)
from federation.numerics.rows import Floats, Integers

Noise = Literal["pure", "gaussian"]

NOISE_STEPS = 2.0**16  # the noise scale spans so many steps or more: discrete laws are near their limits
_SENSITIVITY_STEPS = 2.0**12  # what rounding may move is at most this part of the sensitivity
_MAX_NOISE_STEPS = 2.0**38  # keeps every integer scale below the limit of the samplers
_MAX_INTEGER = 2.0**52  # value plus noise stay exact in double precision

# Parties of one release calibrate the same.
_sigma = lru_cache(maxsize=256, typed=True)(discrete.calibrate_discrete_gaussian)

_REAL_LAW = Assumption(
    "the rounded L2-Gamma noise is computed in double precision; its law is taken to be the real formula's",
    Check.DECLARED,
    Keeper.SOFTWARE,
)


@dataclass(frozen=True)
class AdditiveMechanism:
    """Calibrated noise for vectors in R^D that move by at most `sensitivity` if one unit changes.

    The norm is L2, but L1 for "discrete_laplace", whose coordinates are independent. Each release is
    (epsilon, delta)-private; delta is 0 for pure noise. `step` is the grid's step, a power of two; `charged` the
    sensitivity with what rounding adds; `scale` that of the noise, in the value's units. With several `rounds`, so many
    releases are (epsilon, delta)-private together, even if each value depends on the releases before; all other numbers
    describe one of these releases.

    Examples:
        >>> mechanism = calibrate("gaussian", sensitivity=1.0, dimension=3, epsilon=1.0, delta=1e-5)
        >>> mechanism.release(np.zeros(3), NoiseBits(1, "example"))
        array([[5.01, 0.9732, 0.4182]])
        >>> mechanism.delta_at(2.0)
        4.011e-15
        >>> mechanism.expected_noise_norm()
        5.954
    """

    name: Literal["l2_gamma", "discrete_laplace", "discrete_gaussian"]
    epsilon: float
    delta: float
    sensitivity: float
    dimension: int
    step: float
    charged: float
    scale: float
    rounds: int = 1

    @property
    def grid_scale(self) -> int:
        """Of the integer noise, in steps; L2-Gamma, which is rounded, makes no use of it."""
        return round(self.scale / self.step)

    @property
    def parameters(self) -> Parameters:
        """Public numbers of the mechanism, as its guarantee lists them."""
        shared: Parameters = {"sensitivity": self.sensitivity, "charged_sensitivity": self.charged}
        grid: Parameters = {"dimension": self.dimension, "step": self.step, "scale": self.scale}
        whole: Parameters = {} if self.name == "l2_gamma" else {"grid_scale": self.grid_scale}
        several: Parameters = {} if self.rounds == 1 else {"rounds": self.rounds}
        return shared | grid | whole | several

    @property
    def gaussian_mu(self) -> float | None:
        """The charged sensitivity of all rounds together over sigma; None for pure noise."""
        return _together(self.charged, self.rounds) / self.scale if self.name == "discrete_gaussian" else None

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What the guarantee rests on, but for why the sensitivity holds."""
        rounding = Assumption(
            f"the value is rounded to multiples of {self.step:g} before the noise; the sensitivity is charged for it: "
            f"{self.charged:.9g} instead of {self.sensitivity:.9g}",
            Check.ENFORCED,
        )
        return (rounding, NOISE_KEY, _REAL_LAW) if self.name == "l2_gamma" else (rounding, NOISE_KEY)

    def release(self, value: Floats, bits: NoiseBits, draws: int = 1) -> Floats:
        """Noisy values on the grid, shape (draws, D) float64; each row is one release's value.

        `value`: shape (D,), finite, or (draws, D) where each draw has a value of its own. Raises `InputError` for
        another shape, non-finite entries, or entries beyond 2^52 steps.
        """
        require_draws(draws)
        value = np.asarray(value, dtype=np.float64)
        own = value.ndim > 1 and len(value) == draws
        rounded = np.array([self.rounded(one) for one in value]) if own else self.rounded(value)
        return (rounded.reshape(-1, self.dimension) + self._noise(bits, draws)) * self.step

    def rounded(self, value: Floats) -> Floats:
        """The value in whole steps, shape (D,) float64. Raises `InputError` as `release`."""
        value = np.asarray(value, dtype=np.float64)
        if value.shape != (self.dimension,):
            raise InputError(f"value must have shape ({self.dimension},), got {value.shape}; flatten it first")
        if not np.all(np.isfinite(value)):
            raise InputError("value must be finite, got NaN or infinity; clip or refuse it before the release")
        with np.errstate(over="ignore"):
            integers: Floats = np.rint(value / self.step)
        if np.any(np.abs(integers) > _MAX_INTEGER):
            most, given = apart(self.step * _MAX_INTEGER, float(np.abs(value).max()))
            raise InputError(
                f"value must stay below {most} = 2^52 grid steps, got {given}; clip it to the norm that the "
                "sensitivity assumes"
            )
        return integers

    def log_ratio(self, released: Floats, here: Floats, there: Floats) -> Floats:
        """How much likelier each of `released` (n, D) is from the value `there` than from `here`, as a logarithm, (n,).

        Values: (D,), or (n, D) of one for each release. By the continuous law, up to rounding to the grid.

        Examples:
            >>> mechanism = calibrate_laplace(l1_sensitivity=1.0, dimension=1, epsilon=2.0)
            >>> mechanism.log_ratio(np.array([[0.0], [0.5], [3.0]]), np.zeros(1), np.ones(1)).round(3)
            array([-2.,  0.,  2.])
        """
        if self.name == "discrete_gaussian":
            far, near = (np.square(released - value).sum(axis=1) / (2 * self.scale) for value in (here, there))
        else:
            order = 1 if self.name == "discrete_laplace" else 2
            far, near = (np.linalg.norm(released - value, ord=order, axis=1) for value in (here, there))
        return np.asarray((far - near) / self.scale)

    def variance(self) -> float:
        """Of each coordinate's noise, in the value's units squared: exact for Laplace, else the continuous law's."""
        if self.name == "l2_gamma":
            return l2_gamma.variance(self.dimension, self.scale)
        if self.name == "discrete_laplace":
            return discrete.variance(self.grid_scale) * self.step**2
        return self.scale**2

    def expected_noise_norm(self) -> float:
        """E|noise|_2, in the value's units (continuous limit, but for Laplace in one dimension)."""
        if self.name == "l2_gamma":
            return l2_gamma.mean_norm(self.dimension, self.scale)
        if self.name == "discrete_laplace":
            if self.dimension == 1:
                return discrete.mean_magnitude(self.grid_scale) * self.step
            return discrete.mean_norm(self.dimension) * self.scale
        half = self.dimension / 2
        return self.scale * math.sqrt(2) * math.exp(math.lgamma(half + 0.5) - math.lgamma(half))

    def delta_at(self, epsilon: float) -> float:
        """Delta of all rounds at another epsilon >= 0: exact for pure noise in one round, else a proved bound.

        Several rounds of pure noise get the bound of any epsilon-private release (Kairouz, Oh, Viswanath 2015).
        Laplace in D dimensions: of all moves of the same L1 norm, that of one coordinate is told most easily.
        Moving one coordinate after the other bounds the trade-off by the chain of theirs (Dong, Roth, Su 2022,
        group privacy); within one coordinate the chain is the whole move, as thresholds are best for each link.
        """
        epsilon = require_epsilon_from_zero(epsilon)
        if self.name == "discrete_gaussian":
            moved, coordinates = _together(self.charged, self.rounds), self.rounds * self.dimension
            return discrete.delta_bound(epsilon, moved / self.scale, coordinates, self.grid_scale)
        if self.rounds > 1:
            return max(0.0, -math.expm1(epsilon - self.epsilon)) / (1 + math.exp(-self.epsilon))
        if self.name == "l2_gamma":
            return l2_gamma.delta(epsilon, self.charged, self.dimension, self.scale)
        return discrete.delta(epsilon, round(self.charged / self.step), self.grid_scale)

    def guarantee(self, unit: Unit, adjacency: Adjacency, assumptions: tuple[Assumption, ...] = ()) -> Guarantee:
        """What all rounds promise together; `assumptions` (why the sensitivity holds) come before its own."""
        return promised(self, unit, adjacency, (*assumptions, *self.assumptions))

    def _noise(self, bits: NoiseBits, draws: int) -> Floats | Integers:
        """Integer noise in grid units, shape (draws, D)."""
        if self.name == "l2_gamma":
            return np.rint(l2_gamma.sample(bits, self.dimension, self.scale / self.step, draws))
        sampler = (
            discrete.sample_discrete_laplace if self.name == "discrete_laplace" else discrete.sample_discrete_gaussian
        )
        return sampler(bits, self.grid_scale, draws * self.dimension).reshape(draws, self.dimension)


class AdditiveClaim:
    """What is claimed by the noise of an `additive`."""

    additive: AdditiveMechanism

    @property
    def epsilon(self) -> float:
        """What one release gives, or the sum of its shares; for a published mechanism not what it claims."""
        return self.additive.epsilon

    @property
    def delta(self) -> float:
        """What one release gives, or the sum of its shares; 0 for pure noise."""
        return self.additive.delta

    @property
    def gaussian_mu(self) -> float | None:
        """Sensitivity over standard deviation of Gaussian noise, else None."""
        return self.additive.gaussian_mu


class OnAdditive(AdditiveClaim, Replacement):
    """A mechanism that claims what the noise of its `additive` does."""

    def delta_at(self, epsilon: float) -> float:
        """Delta of one release, or of the sum of its shares, at another epsilon >= 0 (`AdditiveMechanism.delta_at`)."""
        return self.additive.delta_at(epsilon)


def calibrate(
    noise: Noise, *, sensitivity: float, dimension: int, epsilon: float, delta: float = 0.0, rounds: int = 1
) -> AdditiveMechanism:
    """The least noise on a suitable grid that makes all rounds together (epsilon, delta)-private.

    `sensitivity`: L2, of the value of one round before rounding, > 0. `delta`: in (0, 1) for "gaussian", ignored for
    "pure", whose mechanism is the exact discrete Laplace for D = 1 and L2-Gamma otherwise. Raises
    `InputError` for parameters out of range or whose noise would not fit the grid.

    The values of several `rounds` may depend on the releases before. Gaussian rounds compose exactly: T rounds of mu
    are one of sqrt(T) mu (Dong, Roth, Su 2022, Corollary 3.3). Of pure noise each round gets epsilon/T.

    Examples:
        >>> pure = calibrate("pure", sensitivity=1.0, dimension=10, epsilon=1.0)
        >>> normal = calibrate("gaussian", sensitivity=1.0, dimension=10, epsilon=1.0, delta=1e-5)
        >>> pure.name, normal.name
        ('l2_gamma', 'discrete_gaussian')
        >>> round(pure.scale, 3), round(normal.scale, 3)
        (1.0, 3.731)
        >>> round(calibrate("gaussian", sensitivity=1.0, dimension=10, epsilon=1.0, delta=1e-5, rounds=4).scale, 3)
        7.463
    """
    _check(sensitivity, dimension, epsilon)
    require_whole("rounds", rounds, 1)
    if noise not in ("pure", "gaussian"):
        raise InputError(f"noise must be 'pure' or 'gaussian', got {noise!r}")
    each = epsilon if rounds == 1 else math.nextafter(epsilon / rounds, 0.0)  # of pure noise
    if noise == "pure" and dimension == 1:
        one = calibrate_laplace(l1_sensitivity=sensitivity, dimension=1, epsilon=each)
        return replace(one, epsilon=epsilon, rounds=rounds)
    if noise == "gaussian":
        require_delta_above_zero(delta)
    moved, wanted = math.sqrt(dimension), each if noise == "pure" else gaussian.mu(epsilon, delta) / math.sqrt(rounds)
    step = _grid_step(sensitivity, moved, sensitivity / wanted)
    charged = math.nextafter(sensitivity + moved * step, math.inf)
    known = (sensitivity, dimension, step, charged)
    if noise == "pure":
        return AdditiveMechanism("l2_gamma", epsilon, 0.0, *known, math.nextafter(charged / each, math.inf), rounds)
    sigma = _sigma(_together(charged, rounds) / step, rounds * dimension, epsilon, delta) * step
    return AdditiveMechanism("discrete_gaussian", epsilon, delta, *known, sigma, rounds)


def calibrate_laplace(*, l1_sensitivity: float, dimension: int, epsilon: float) -> AdditiveMechanism:
    """The least exact discrete Laplace noise, independent in each coordinate, that makes one release epsilon-private.

    `l1_sensitivity`: L1, of the value before rounding, > 0. Raises `InputError` as `calibrate`.

    Examples:
        >>> calibrate_laplace(l1_sensitivity=2.0, dimension=3, epsilon=0.5).scale
        4.0
    """
    _check(l1_sensitivity, dimension, epsilon)
    step = _grid_step(l1_sensitivity, dimension, l1_sensitivity / epsilon)
    steps = math.floor(l1_sensitivity / step) + dimension
    scale = discrete.calibrate_discrete_laplace(steps, epsilon) * step
    return AdditiveMechanism("discrete_laplace", epsilon, 0.0, l1_sensitivity, dimension, step, steps * step, scale)


def summation_error(rows: int) -> float:
    """Relative to the sensitivity, how far double precision may move sums over `rows` rows for two neighbours apart.

    (n + 2) 2^-53 times the sum of magnitudes for each (Higham 2002, Section 3.1), of which at most n count.

    Examples:
        >>> summation_error(1000)
        1.124e-10
    """
    return 1.01 * (rows + 2.0) * rows * 2.0**-53


def _together(charged: float, rounds: int) -> float:
    """The L2 sensitivity of the values of all rounds together, rounded up."""
    return charged if rounds == 1 else charged * math.sqrt(rounds) * (1 + 2.0**-50)


def _grid_step(sensitivity: float, moved: float, noise_scale: float) -> float:
    """The largest power of two that is small against the noise, and `moved` times it against the sensitivity."""
    limit = min(noise_scale / NOISE_STEPS, sensitivity / (moved * _SENSITIVITY_STEPS))
    if not (1e-250 < limit < 1e250 and noise_scale / limit < _MAX_NOISE_STEPS):
        raise InputError(
            f"sensitivity {sensitivity:g} with noise of scale {noise_scale:g} does not fit the grid of doubles; "
            "choose a larger epsilon, fewer dimensions, or rescale the value"
        )
    return math.ldexp(0.5, math.frexp(limit)[1])


def _check(sensitivity: float, dimension: int, epsilon: float) -> None:
    require_positive("sensitivity", sensitivity)
    require_epsilon(epsilon)
    require_whole("dimension", dimension, 1)
