"""Calibrated additive noise for real vectors of known L2 or L1 sensitivity, on a public grid.

The value is rounded to integer multiples of a public power of two, integer noise is added, and the sum is
released. Rounding moves each coordinate by at most half a step, so the integers' sensitivity is charged
sqrt(D) steps more in the L2 norm, and D steps more in the L1 norm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Assumption, Check, Guarantee, Unit, require_epsilon
from federation.contract.randomness import NoiseBits
from federation.mechanisms.noise import discrete_gaussian, discrete_laplace, gaussian, l2_gamma
from federation.mechanisms.noise.mechanism import NOISE_KEY, promised

Noise = Literal["pure", "gaussian"]

_NOISE_STEPS = 2.0**16  # the noise scale spans so many steps or more: discrete laws are near their limits
_SENSITIVITY_STEPS = 2.0**12  # what rounding may move is at most this part of the sensitivity
_MAX_NOISE_STEPS = 2.0**38  # keeps every integer scale below the limit of the samplers
_MAX_INTEGER = 2.0**52  # value plus noise stay exact in double precision

_REAL_LAW = Assumption(
    "the rounded L2-Gamma noise is computed in double precision; its law is taken to be the real formula's",
    Check.DECLARED,
)


@dataclass(frozen=True)
class AdditiveMechanism:
    """Calibrated noise for vectors in R^D that move by at most `sensitivity` if one unit changes.

    The norm is L2, but L1 for "discrete_laplace", whose coordinates are independent. Each release is
    (epsilon, delta)-private; delta is 0 for pure noise. `step` is the grid's step, a power of two; `parameters`
    are public numbers. `gaussian_mu` is the charged sensitivity over sigma, or None.
    """

    name: Literal["l2_gamma", "discrete_laplace", "discrete_gaussian"]
    epsilon: float
    delta: float
    sensitivity: float
    dimension: int
    step: float
    parameters: dict[str, float | int | str]
    assumptions: tuple[Assumption, ...]
    gaussian_mu: float | None = None

    @property
    def grid_scale(self) -> int:
        """Of the integer noise, in steps; L2-Gamma, which is rounded, has none."""
        return int(self.parameters["grid_scale"])

    def release(self, value: np.ndarray, bits: NoiseBits, draws: int = 1) -> np.ndarray:
        """Noisy values on the grid, shape (draws, D) float64; each row is one release's value.

        `value`: shape (D,), finite. Raises `InputError` for another shape, non-finite entries, or entries
        beyond 2^52 steps.
        """
        return (self.rounded(value) + self._noise(bits, draws)) * self.step

    def rounded(self, value: np.ndarray) -> np.ndarray:
        """The value in whole steps, shape (D,) float64. Raises `InputError` as `release`."""
        value = np.asarray(value, dtype=np.float64)
        if value.shape != (self.dimension,):
            raise InputError(f"value must have shape ({self.dimension},), got {value.shape}; flatten it first")
        if not np.all(np.isfinite(value)):
            raise InputError("value must be finite, got NaN or infinity; clip or refuse it before the release")
        with np.errstate(over="ignore"):
            integers: np.ndarray = np.rint(value / self.step)
        if np.any(np.abs(integers) > _MAX_INTEGER):
            raise InputError(
                f"value must stay below {self.step * _MAX_INTEGER:g} = 2^52 grid steps, "
                f"got {np.abs(value).max():g}; clip it to the norm that the sensitivity assumes"
            )
        return integers

    def variance(self) -> float:
        """Of each coordinate's noise, in the value's units squared: exact for Laplace, else the continuous law's."""
        scale = float(self.parameters["scale"])
        if self.name == "l2_gamma":
            return l2_gamma.variance(self.dimension, scale)
        if self.name == "discrete_laplace":
            return discrete_laplace.variance(self.grid_scale) * self.step**2
        return scale**2

    def expected_noise_norm(self) -> float:
        """E|noise|_2, in the value's units (continuous limit, but for Laplace in one dimension)."""
        scale = float(self.parameters["scale"])
        if self.name == "l2_gamma":
            return l2_gamma.mean_norm(self.dimension, scale)
        if self.name == "discrete_laplace":
            if self.dimension == 1:
                return discrete_laplace.mean_magnitude(self.grid_scale) * self.step
            return discrete_laplace.mean_norm(self.dimension) * scale
        half = self.dimension / 2
        return scale * math.sqrt(2) * math.exp(math.lgamma(half + 0.5) - math.lgamma(half))

    def delta_at(self, epsilon: float) -> float:
        """Delta of one release at another epsilon >= 0: exact for pure noise, a proved bound for Gaussian.

        Laplace in D dimensions: of all moves of the same L1 norm, that of one coordinate is told most easily.
        Moving one coordinate after the other bounds the trade-off by the chain of theirs (Dong, Roth, Su 2022,
        group privacy); within one coordinate the chain is the whole move, as thresholds are best for each link.
        """
        charged, scale = float(self.parameters["charged_sensitivity"]), float(self.parameters["scale"])
        if self.name == "l2_gamma":
            return l2_gamma.delta(epsilon, charged, self.dimension, scale)
        if self.name == "discrete_laplace":
            return discrete_laplace.delta(epsilon, round(charged / self.step), self.grid_scale)
        return discrete_gaussian.delta_bound(epsilon, charged / scale, self.dimension, self.grid_scale)

    def guarantee(self, unit: Unit, adjacency: Adjacency, assumptions: tuple[Assumption, ...] = ()) -> Guarantee:
        """What one release promises; `assumptions` (why the sensitivity holds) come before its own."""
        return promised(self, unit, adjacency, (*assumptions, *self.assumptions), self.gaussian_mu)

    def _noise(self, bits: NoiseBits, draws: int) -> np.ndarray:
        """Integer noise in grid units, shape (draws, D)."""
        if self.name == "l2_gamma":
            scale = float(self.parameters["scale"]) / self.step
            return np.rint(l2_gamma.sample(bits, self.dimension, scale, draws))
        sampler = discrete_laplace.sample if self.name == "discrete_laplace" else discrete_gaussian.sample
        return sampler(bits, self.grid_scale, draws * self.dimension).reshape(draws, self.dimension)


def calibrate(
    noise: Noise,
    *,
    sensitivity: float,
    dimension: int,
    epsilon: float,
    delta: float = 0.0,
) -> AdditiveMechanism:
    """The least noise on a suitable grid that makes one release (epsilon, delta)-private.

    `sensitivity`: L2, of the value before rounding, > 0. `delta`: in (0, 1) for "gaussian", ignored for
    "pure", whose mechanism is the exact discrete Laplace for D = 1 and L2-Gamma otherwise. Raises
    `InputError` for parameters out of range or whose noise would not fit the grid.
    """
    _check(sensitivity, dimension, epsilon)
    if noise not in ("pure", "gaussian"):
        raise InputError(f"noise must be 'pure' or 'gaussian', got {noise!r}")
    if noise == "gaussian":
        if not 0 < delta < 1:
            raise InputError(f"delta must lie strictly between 0 and 1 for gaussian noise, got {delta}")
        return _calibrate_gaussian(sensitivity, dimension, epsilon, delta)
    if dimension == 1:
        return calibrate_laplace(l1_sensitivity=sensitivity, dimension=1, epsilon=epsilon)
    step = _grid_step(sensitivity, math.sqrt(dimension), sensitivity / epsilon)
    charged = _charge(sensitivity, dimension, step)
    scale = math.nextafter(charged / epsilon, math.inf)
    return _mechanism("l2_gamma", epsilon, 0.0, sensitivity, dimension, step, charged, scale)


def calibrate_laplace(*, l1_sensitivity: float, dimension: int, epsilon: float) -> AdditiveMechanism:
    """The least exact discrete Laplace noise, independent in each coordinate, that makes one release epsilon-private.

    `l1_sensitivity`: L1, of the value before rounding, > 0. Raises `InputError` as `calibrate`.
    """
    _check(l1_sensitivity, dimension, epsilon)
    step = _grid_step(l1_sensitivity, dimension, l1_sensitivity / epsilon)
    charged_steps = math.floor(l1_sensitivity / step) + dimension
    scale = discrete_laplace.calibrate(charged_steps, epsilon) * step
    return _mechanism("discrete_laplace", epsilon, 0.0, l1_sensitivity, dimension, step, charged_steps * step, scale)


def summation_error(rows: int) -> float:
    """Relative to the sensitivity, how far double precision may move sums over `rows` rows for two neighbours apart.

    (n + 2) 2^-53 times the sum of magnitudes for each (Higham 2002, Section 3.1), of which at most n count.
    """
    return 1.01 * (rows + 2.0) * rows * 2.0**-53


def _calibrate_gaussian(sensitivity: float, dimension: int, epsilon: float, delta: float) -> AdditiveMechanism:
    step = _grid_step(sensitivity, math.sqrt(dimension), sensitivity / gaussian.mu(epsilon, delta))
    charged = _charge(sensitivity, dimension, step)
    sigma = discrete_gaussian.calibrate(charged / step, dimension, epsilon, delta) * step
    return _mechanism("discrete_gaussian", epsilon, delta, sensitivity, dimension, step, charged, sigma)


def _mechanism(
    name: Literal["l2_gamma", "discrete_laplace", "discrete_gaussian"],
    epsilon: float,
    delta: float,
    sensitivity: float,
    dimension: int,
    step: float,
    charged: float,
    scale: float,
) -> AdditiveMechanism:
    parameters: dict[str, float | int | str] = {
        "sensitivity": sensitivity,
        "charged_sensitivity": charged,
        "dimension": dimension,
        "step": step,
        "scale": scale,
    }
    if name != "l2_gamma":
        parameters["grid_scale"] = round(scale / step)
    rounding = Assumption(
        f"the value is rounded to multiples of {step:g} before the noise; the sensitivity is charged for it: "
        f"{charged:.9g} instead of {sensitivity:.9g}",
        Check.ENFORCED,
    )
    return AdditiveMechanism(
        name=name,
        epsilon=epsilon,
        delta=delta,
        sensitivity=sensitivity,
        dimension=dimension,
        step=step,
        parameters=parameters,
        assumptions=(rounding, NOISE_KEY, _REAL_LAW) if name == "l2_gamma" else (rounding, NOISE_KEY),
        gaussian_mu=charged / scale if name == "discrete_gaussian" else None,
    )


def _charge(sensitivity: float, dimension: int, step: float) -> float:
    return math.nextafter(sensitivity + math.sqrt(dimension) * step, math.inf)


def _grid_step(sensitivity: float, moved: float, noise_scale: float) -> float:
    """The largest power of two that is small against the noise, and `moved` times it against the sensitivity."""
    limit = min(noise_scale / _NOISE_STEPS, sensitivity / (moved * _SENSITIVITY_STEPS))
    if not (1e-250 < limit < 1e250 and noise_scale / limit < _MAX_NOISE_STEPS):
        raise InputError(
            f"sensitivity {sensitivity:g} with noise of scale {noise_scale:g} does not fit the grid of doubles; "
            "choose a larger epsilon, fewer dimensions, or rescale the value"
        )
    return math.ldexp(0.5, math.frexp(limit)[1])


def _check(sensitivity: float, dimension: int, epsilon: float) -> None:
    if not (math.isfinite(sensitivity) and sensitivity > 0):
        raise InputError(f"sensitivity must be a positive finite number, got {sensitivity}")
    require_epsilon(epsilon)
    if dimension < 1 or dimension != int(dimension):
        raise InputError(f"dimension must be an integer >= 1, got {dimension}")
