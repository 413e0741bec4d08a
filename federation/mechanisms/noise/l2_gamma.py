"""The L2-Gamma mechanism: noise with density ∝ exp(-|b|/scale) in R^D (Chaudhuri, Monteleoni, Sarwate 2011).

The norm is Gamma(D, scale) and the direction uniform. A value of L2 sensitivity S is (S/scale)-private;
`delta` gives the exact trade-off at smaller epsilon. Double precision stands in for the reals: the law itself
has no exact sampler.
"""

import math

import numpy as np

from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.mechanisms.noise.mechanism import (
    MOST_DRAWN,
    require_draws,
    require_epsilon_from_zero,
    require_positive,
    require_whole,
)
from federation.numerics.rows import Floats

_MOST_EPSILON = 1e9  # whose delta at smaller ones is computed: the density narrows as it grows
_NODES = 16


def sample(bits: NoiseBits, dimension: int, scale: float, draws: int) -> Floats:
    """`draws` independent noise vectors, shape (draws, D): a Gamma(D, scale) radius times a point on the sphere.

    Raises `InputError` for a dimension below 1, a scale that is not positive and finite, or a negative number of draws.

    Examples:
        >>> noise = sample(NoiseBits(1, "example"), dimension=10, scale=0.5, draws=2000)
        >>> noise.shape
        (2000, 10)
        >>> abs(float(np.linalg.norm(noise, axis=1).mean()) - mean_norm(10, 0.5)) < 0.1
        True
    """
    require_whole("dimension", dimension, 1, MOST_DRAWN)
    require_positive("scale", scale)
    require_draws(draws)
    return sphere(bits, dimension, draws) * gamma_radius(bits, dimension, scale, draws)[:, None]


def gamma_radius(bits: NoiseBits, shape: int, scale: float, draws: int) -> Floats:
    """Gamma(shape, scale) as the sum of `shape` exponentials, shape (draws,).

    Examples:
        >>> gamma_radius(NoiseBits(1, "example"), shape=50, scale=2.0, draws=3)
        array([88.45, 84.24, 88.92])
    """
    exponentials = np.log(uniform(bits, draws, shape))
    total: Floats = exponentials.sum(axis=1)
    return -scale * total


def sphere(bits: NoiseBits, dimension: int, draws: int) -> Floats:
    """Points uniform on the unit sphere of R^D, shape (draws, D): normals by inversion, normalised.

    Examples:
        >>> points = sphere(NoiseBits(1, "example"), dimension=3, draws=2)
        >>> np.linalg.norm(points, axis=1)
        array([1., 1.])
    """
    from scipy.special import ndtri

    normal: Floats = ndtri(uniform(bits, draws, dimension))
    lengths: Floats = np.linalg.norm(normal, axis=1, keepdims=True)
    return normal / lengths


def delta(epsilon: float, sensitivity: float, dimension: int, scale: float) -> float:
    """The exact delta at `epsilon` >= 0 when the value moves by `sensitivity`; 0 from sensitivity/scale on.

    In units of the scale let the value move by l. In prolate spheroidal coordinates with the two values as
    foci, |x| + |x - s| = l xi and |x - s| - |x| = l cos(theta), the loss is l cos(theta), and integrating xi
    out gives
        p(theta) ∝ sin(theta)^(D-2) e^{z cos(theta)} (rho + sin(theta)²),  z = l/2, nu = D/2 - 1,
        rho = (2 nu + 1) K_{nu+1}(z) / (z K_nu(z))   (K: modified Bessel function),
    so delta = ∫ p(theta) (1 - e^{epsilon - l cos(theta)}) over l cos(theta) > epsilon, a smooth
    one-dimensional integral. One dimension: 1 - e^{(epsilon - l)/2}. Relative error about 1e-12 for D up to
    10^5.

    Examples:
        >>> [round(delta(e, sensitivity=1.0, dimension=10, scale=1.0), 4) for e in (0.0, 0.5, 1.0)]
        [0.1287, 0.0078, 0.0]
    """
    require_epsilon_from_zero(epsilon)
    require_positive("sensitivity", sensitivity)
    require_whole("dimension", dimension, 1)
    require_positive("scale", scale)
    l = sensitivity / scale
    if epsilon >= l:
        return 0.0
    if not l <= _MOST_EPSILON:
        raise InputError(f"sensitivity must be at most {_MOST_EPSILON:g} times the scale, got {l:g}; add more noise")
    if dimension == 1:
        return -math.expm1((epsilon - l) / 2)
    z = l / 2
    rho = (dimension - 1) / z * _bessel_ratio(dimension, z)

    def log_density(theta: Floats) -> Floats:
        sine = np.sin(theta)
        return (dimension - 2) * np.log(sine) + z * np.cos(theta) + np.log(rho + sine**2)

    panels = 32 + math.ceil(2 * math.sqrt(dimension + z))  # the density is about 1/sqrt(D + z) wide
    theta, weight = _quadrature(0.0, math.pi, panels)
    whole = log_density(theta)
    shift = whole.max()
    mass = weight @ np.exp(whole - shift)
    theta, weight = _quadrature(0.0, math.acos(epsilon / l), panels)
    return float(weight @ (np.exp(log_density(theta) - shift) * -np.expm1(epsilon - l * np.cos(theta))) / mass)


def mean_norm(dimension: int, scale: float) -> float:
    """E|b|_2 = D scale: the mean length of the noise.

    Examples:
        >>> mean_norm(dimension=10, scale=0.5)
        5.0
    """
    return dimension * scale


def variance(dimension: int, scale: float) -> float:
    """Variance of each coordinate: (D + 1) scale².

    Examples:
        >>> variance(dimension=10, scale=0.5)
        2.75
    """
    return (dimension + 1) * scale**2


def uniform(bits: NoiseBits, rows: int, columns: int) -> Floats:
    """Midpoints of the 2^52 equal cells of (0, 1), never 0 or 1; shape (rows, columns).

    Examples:
        >>> uniform(NoiseBits(1, "example"), rows=1, columns=3)
        array([[0.2611, 0.7704 , 0.894]])
    """
    words = bits.words(rows * columns).reshape(rows, columns)
    return ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def _bessel_ratio(dimension: int, z: float) -> float:
    """K_{D/2}(z) / K_{D/2-1}(z) by the upward recurrence r_{nu+1} = 1/r_nu + 2 (nu+1)/z, which is stable."""
    from scipy.special import kve

    order, ratio = (-0.5, 1.0) if dimension % 2 else (0.0, float(kve(1, z) / kve(0, z)))
    while order < dimension / 2 - 1:
        order += 1
        ratio = 1 / ratio + 2 * order / z
    return ratio


def _quadrature(low: float, high: float, panels: int) -> tuple[Floats, Floats]:
    """Composite Gauss-Legendre nodes and weights on [low, high]."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    width = (high - low) / panels
    starts = low + width * np.arange(panels)
    return (starts[:, None] + width * (nodes + 1) / 2).ravel(), np.tile(weights * width / 2, panels)
