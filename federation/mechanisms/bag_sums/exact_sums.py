"""Weighted sums of labels, computed exactly up to one rounding and released with integer noise.

A label is first rounded, alone, to one of 2^20 + 1 equally spaced values of its public range, so a changed label moves
an exact sum by at most |w| times the range, nothing added. Products of such labels with both halves of a weight are
exact in double precision and `math.fsum` rounds their sum once. Gaussian noise is a discrete Gaussian of standard
deviation 2^26 steps, where the step of a bag follows from its public weights.
"""

import math
from collections.abc import Callable

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import Assumption, Check, Keeper
from federation.contract.randomness import NoiseBits
from federation.contract.validation import apart
from federation.mechanisms.bag_sums.calibration import width
from federation.mechanisms.noise import discrete
from federation.mechanisms.noise.mechanism import require_epsilon_from_zero
from federation.numerics.rows import Floats

LABEL_STEPS = 2**20  # of the label range
NOISE_STEPS = 2**26  # standard deviation of Gaussian noise
CHARGE = 2 / NOISE_STEPS  # added to every ratio of sensitivity to noise: two sums are rounded, by under a step each
_LAW_SLACK = 1e-12
_LARGEST_WEIGHT = 2.0**20  # far beyond what a normal law gives
_MOST_STEPS = 2.0**50  # keeps all roundings of a sum together below one step

PUBLIC_RANGE = Assumption(
    "the label range is public and declared, not taken from the data; labels outside are refused, so clip them first",
    Check.CHECKED,
)
EXACT_SUMS = Assumption(
    "each label is rounded to a 2^-20 part of the range before the sum; the sum is exact but for roundings of less "
    "than a step of the noise's grid, which are charged",
    Check.ENFORCED,
)
NOISE_KEY = Assumption(
    "the ChaCha20 key of the noise is secret and serves nothing else, weights and bags least of all; the stream is as "
    "good as random",
    Check.DECLARED,
    Keeper.NOISE_MAKER,
)
DISJOINT_BAGS = Assumption(
    "a record is in at most one bag of the release; bags and noisy records are drawn uniformly and never by labels",
    Check.DECLARED,
    Keeper.SITE,
)
NORMAL_WEIGHTS = Assumption(
    "weights are drawn in double precision; their law is taken to be the real normal one",
    Check.DECLARED,
    Keeper.SOFTWARE,
)
SIGN_WEIGHTS = Assumption("weights are -1 or 1", Check.CHECKED)
COMMON = (PUBLIC_RANGE, EXACT_SUMS, NOISE_KEY)


def charged(delta_at: Callable[[float], float], epsilon: float) -> float:
    """The delta of a release by `gaussian_sums`, at most 1, from that of exact sums with continuous noise.

    `delta_at` must count `CHARGE` for the roundings. The discrete Gaussian of 2^26 steps is within a factor e^{1e-12}
    of the rounded continuous one wherever that matters above 1e-300 (`discrete.delta_bound`).

    Examples:
        >>> charged(lambda e: 1e-6 * math.exp(-e), epsilon=1.0)
        3.679e-07
    """
    epsilon = require_epsilon_from_zero(epsilon)
    if epsilon < _LAW_SLACK:
        return min(1.0, delta_at(0.0) + 2 * _LAW_SLACK)
    return min(1.0, delta_at(epsilon - _LAW_SLACK) * (1 + 1e-9))


def gaussian_sums(
    labels: Floats, weights: Floats, label_range: tuple[float, float], scales: Floats, bits: NoiseBits
) -> Floats:
    """sum_i w_i y_i of every bag plus Gaussian noise of the given standard deviations, (m,) float64.

    `labels`, `weights`: (m, k); `scales`: (m,) public numbers >= 0, in units of labels; 0 stands for no noise. Several
    releases stand on axes before these, (..., m), and are the bits of one after another. Raises `InputError` for labels
    outside the range and for weights or scales that are no finite numbers.

    Examples:
        >>> labels, weights = np.array([[0.0, 1.0, 1.0]]), np.array([[0.5, -1.0, 2.0]])
        >>> gaussian_sums(labels, weights, (0.0, 1.0), np.array([2.0]), NoiseBits(1, "example"))
        array([3.686])
        >>> gaussian_sums(labels, weights, (0.0, 1.0), np.array([0.0]), NoiseBits(1, "example"))
        array([1.])
    """
    unit = width(label_range) / LABEL_STEPS
    places, weights = _checked(labels, weights, label_range)
    scales = np.asarray(scales, dtype=np.float64)
    if scales.shape != places.shape[:-1] or not np.all((scales >= 0) & np.isfinite(scales)):
        raise InputError(f"scales must be one finite number >= 0 for each of {places.shape[-2]} bags, got {scales}")
    # A trifle more noise covers the rounding of the scale itself.
    steps = scales / unit * ((1 + 2.0**-40) / NOISE_STEPS)
    noisy = steps > 0
    # Where that is too fine a step for doubles, a wider one: more noise than asked for, by public weights.
    steps[noisy] = np.maximum(steps, np.abs(weights).sum(axis=-1) * (LABEL_STEPS / _MOST_STEPS))[noisy]
    sums = _exact_sums(places, weights)
    each = np.atleast_1d(noisy.sum(axis=-1)).ravel()  # of the bags of one release
    noise = np.concatenate([discrete.sample_discrete_gaussian(bits, NOISE_STEPS, int(count)) for count in each])
    sums[noisy] = (np.rint(sums[noisy] / steps[noisy]) + noise) * steps[noisy]
    return _in_labels(sums, weights, label_range[0], unit)


def laplace_sums(
    labels: Floats, weights: Floats, label_range: tuple[float, float], grid_scale: int, bits: NoiseBits
) -> Floats:
    """sum_i w_i y_i plus discrete Laplace noise of `grid_scale` label steps, (m,) float64, for weights -1 and 1 only.

    Several releases stand on axes before these, as for `gaussian_sums`. Raises `InputError` for labels outside the
    range or other weights.

    Examples:
        >>> labels, signs = np.array([[0.0, 1.0, 1.0]]), np.array([[1.0, -1.0, 1.0]])
        >>> laplace_sums(labels, signs, (0.0, 1.0), LABEL_STEPS, NoiseBits(1, "example"))
        array([1.343])
    """
    unit = width(label_range) / LABEL_STEPS
    places, weights = _checked(labels, weights, label_range)
    require_signs(weights)
    sums = np.einsum("...k,...k->...", places, weights)  # whole numbers far below 2^53: exact in any order
    one_by_one = sums.reshape(-1, sums.shape[-1])
    noise = [discrete.sample_discrete_laplace(bits, grid_scale, len(one)) for one in one_by_one]
    return _in_labels(sums + np.reshape(noise, sums.shape), weights, label_range[0], unit)


def require_signs(weights: Floats) -> None:
    """Raises `InputError` unless all weights are -1 or 1."""
    if not np.all(np.abs(weights) == 1):
        raise InputError("weights must be -1 or 1 for this mechanism; draw them as signs")


def _checked(labels: Floats, weights: Floats, label_range: tuple[float, float]) -> tuple[Floats, Floats]:
    """Whole numbers of label steps above the lowest label, and the weights, both (..., m, k) float64."""
    low, high = label_range
    labels, weights = np.asarray(labels, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    if labels.ndim < 2 or labels.shape != weights.shape:
        raise InputError(f"labels and weights must be (bags, size) alike, got {labels.shape} and {weights.shape}")
    if not np.all(np.abs(weights) <= _LARGEST_WEIGHT):
        raise InputError(f"weights must be numbers between -{_LARGEST_WEIGHT:g} and {_LARGEST_WEIGHT:g}")
    if not np.all((labels >= low) & (labels <= high)):  # NaN is refused too
        least, most = apart(low, high)
        raise InputError(f"labels must be numbers from {least} to {most}, the declared range; clip or refuse others")
    return np.clip(np.rint((labels - low) / (float(high) - float(low)) * LABEL_STEPS), 0, LABEL_STEPS), weights


def _exact_sums(places: Floats, weights: Floats) -> Floats:
    """The sums (..., m), each the exact one rounded once."""
    # 24 and 29 bits of a weight times the 21 bits of a label fit the 53 of a double.
    coarse = weights.astype(np.float32).astype(np.float64)
    products = np.concatenate([coarse * places, (weights - coarse) * places], axis=-1)
    rows = products.reshape(-1, products.shape[-1]).tolist()
    return np.array([math.fsum(row) for row in rows]).reshape(places.shape[:-1])


def _in_labels(sums: Floats, weights: Floats, lowest: float, unit: float) -> Floats:
    """From label steps of so many units above the lowest label to labels, by public numbers."""
    whole: Floats = weights.sum(axis=-1)
    return lowest * whole + sums * unit
