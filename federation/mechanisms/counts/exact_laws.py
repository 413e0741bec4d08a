"""Three noises on label counts with exact privacy curves: discrete Gaussian, lattice Laplace and independent Laplace.

One replaced label moves the counts by e_i - e_j: +1 in one class i and -1 in another class j.

- `CountGaussian` is independent discrete Gaussian noise. The log likelihood ratio of the noisy counts is (1 - w)/s²,
  w = z_i - z_j, so w is sufficient. Nothing of the loss is in the other classes. Centring keeps w, and so it loses
  nothing either. Sampler: Canonne, Kamath, Steinke 2020.
- `LatticeLaplace` is discrete Laplace noise conditioned on sum zero: P[z] ∝ exp(-|z|_1/s) on the integer vectors of sum
  0. It is the K-norm mechanism of one replaced label (Hardt, Talwar 2010 for the K-norm). The L1 norm of e_i - e_j is
  2, so the loss is one of 2/s, 0, -2/s. `lattice_laplace_delta` works out the sums over the lattice.
- `IndependentLaplace` is independent discrete Laplace noise on every count.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from federation.contract.randomness import NoiseBits
from federation.mechanisms.counts.additive import AdditiveCounts, centred_l1, smallest_scale
from federation.mechanisms.noise import discrete, gaussian
from federation.mechanisms.noise.lazy_uniform import below_exp, collect
from federation.mechanisms.noise.mechanism import Parameters, require_epsilon_from_zero
from federation.numerics.rows import Floats, Integers

_MAX_SUM_SIGMA = 100.0  # beyond, the corrected integral is exact to double precision
_MOST_EPSILON = 1e6  # whose delta bounds that of larger ones, where no integer holds the threshold
_REACH = 26  # in sigma: what the sum leaves out is below e^-160 of its first terms
_SAFE = 2e-9  # relative distance to the safe side of delta: covers the rounding of its computation
# B_p(u)/p! for p = 2..7, coefficients of u^p, ..., u^0 (Euler-Maclaurin)
_BERNOULLI = tuple(
    np.poly1d(coefficients) / math.factorial(len(coefficients) - 1)
    for coefficients in (
        (1, -1, 1 / 6),
        (1, -3 / 2, 1 / 2, 0),
        (1, -2, 1, 0, -1 / 30),
        (1, -5 / 2, 5 / 3, 0, -1 / 6, 0),
        (1, -3, 5 / 2, 0, -1 / 2, 0, 1 / 42),
        (1, -7 / 2, 7 / 2, 0, -7 / 6, 0, 1 / 6, 0),
    )
)


@dataclass(frozen=True)
class CountGaussian(AdditiveCounts):
    """Independent noise with P[k] ∝ exp(-k²/(2 scale²)) on every count."""

    name: ClassVar[str] = "count_gaussian"
    law: ClassVar[str] = "the discrete Gaussian of standard deviation `scale`, independent for each class"

    @property
    def gaussian_mu(self) -> float | None:
        """sqrt 2 / sigma, for composition; None below sigma = 1, where the comparison has no proof."""
        return math.sqrt(2) / float(self.scale) if self.scale >= 1 else None

    @property
    def parameters(self) -> Parameters:
        """Public numbers; composition reads `dimension` (the two counts that differ) and `grid_scale` <= sigma."""
        record = super().parameters
        return record if self.gaussian_mu is None else record | {"dimension": 2, "grid_scale": math.floor(self.scale)}

    def delta_at(self, epsilon: float) -> float:
        """The exact delta of one release at another epsilon >= 0."""
        return discrete_gaussian_delta(require_epsilon_from_zero(epsilon), float(self.scale))

    def log_ratio(self, released: Floats, here: Floats, there: Floats) -> Floats:
        """As `CountMechanism.log_ratio`."""
        return np.asarray((released - (here + there) / 2) @ (there - here)[0]) / float(self.scale) ** 2

    def variance(self) -> float:
        """Of one released count: scale² (1 - 1/C), with the lattice's correction where it is not negligible."""
        sigma = float(self.scale)
        if sigma > _MAX_SUM_SIGMA:
            return sigma**2 * (1 - 1 / self.classes)
        k, mass = _terms(sigma, 0.0)
        return float(k**2 @ mass / mass.sum()) * (1 - 1 / self.classes)

    def expected_l1(self) -> float:
        """E sum_i |released count_i - count_i|, in records; relative error below 1e-4."""
        return centred_l1(_gaussian_characteristic, float(self.scale), self.classes, tail=9.0)

    def escape(self, count: float) -> float:
        """exp(-count²/(2 scale² (1 - 1/C))): the discrete Gaussian is subgaussian (Canonne et al. 2020)."""
        return math.exp(-0.5 * (count / float(self.scale)) ** 2 / (1 - 1 / self.classes))

    def _noise(self, bits: NoiseBits, draws: int) -> Integers:
        return discrete.sample_discrete_gaussian(bits, self.scale, draws * self.classes).reshape(draws, self.classes)


def calibrate_discrete_gaussian(classes: int, epsilon: float, delta: float) -> CountGaussian:
    """The least noise on the grid whose exact delta at `epsilon` > 0 is at most `delta` in (0, 1).

    Examples:
        >>> noise = calibrate_discrete_gaussian(classes=3, epsilon=1.0, delta=1e-6)
        >>> float(noise.scale), noise.expected_l1()
        (5.977, 11.68)
    """
    limit = delta * (1 - _SAFE)
    near = math.sqrt(2) / gaussian.mu(epsilon, delta)
    scale = smallest_scale(lambda scale: discrete_gaussian_delta(epsilon, float(scale)) <= limit, near)
    return CountGaussian(classes, epsilon, delta, scale)


def discrete_gaussian_delta(epsilon: float, sigma: float) -> float:
    """The exact delta at `epsilon` >= 0 of noise of parameter sigma for the pair (+1, -1).

    P[w] ∝ exp(-w²/4s²) theta(w), with theta(w) the sum of exp(-(z + w/2)²/s²) over integers z, which depends
    on the parity of w only; delta is the sum of P[w] (1 - e^{epsilon - (1-w)/s²}) over w < 1 - epsilon s².
    Where theta is constant to double precision, that sum is the integral, `gaussian.delta(epsilon, sqrt 2/s)`,
    and Euler-Maclaurin terms at the threshold, relative remainder below 1e-13.

    Examples:
        >>> discrete_gaussian_delta(1.0, sigma=4.0), float(gaussian.delta(1.0, math.sqrt(2) / 4))
        (0.000387, 0.0003978)
    """
    epsilon = min(epsilon, _MOST_EPSILON)
    threshold = 1 - epsilon * sigma**2
    last = math.ceil(threshold) - 1
    if sigma > _MAX_SUM_SIGMA:
        return _corrected_integral(epsilon, sigma, threshold, threshold - last)
    w = np.arange(last - math.ceil(_REACH * sigma) - 2, last + 1)
    thetas = [_terms(sigma / math.sqrt(2), offset)[1].sum() for offset in (0.0, 0.5)]
    mass = np.exp(-np.square(w / (2 * sigma))) * np.where(w % 2 == 0, *thetas)
    loss = (1 - w) / sigma**2
    return float(mass @ -np.expm1(epsilon - loss)) / float(_terms(sigma, 0.0)[1].sum() ** 2)


def _corrected_integral(epsilon: float, sigma: float, threshold: float, u: float) -> float:
    """sum over n >= 0 of h(t - u - n) for h(w) = f(w) - e^epsilon f(w-2), f the normal density of variance 2 s².

    The p-th term is -B_p(u)/p! times the (p-1)-th derivative of h at t, mirrored: tau^{1-p} f(t) (He_{p-1}(x) -
    He_{p-1}(y)) with tau = sqrt 2 s, x = t/tau, y = x - 2/tau, because e^epsilon f(t - 2) = f(t).
    """
    tau = math.sqrt(2) * sigma
    x = threshold / tau
    y = x - 2 / tau
    correction, power = 0.0, 1.0
    hermite, gaps = [1.0, y], [0.0, 2 / tau]  # He_n(y) and He_n(x) - He_n(y)
    for n, polynomial in enumerate(_BERNOULLI, 1):
        power /= tau
        correction += float(polynomial(u)) * power * gaps[n]
        hermite.append(y * hermite[n] - n * hermite[n - 1])
        gaps.append(x * gaps[n] + 2 / tau * hermite[n] - n * gaps[n - 1])
    density = math.exp(-0.5 * x * x) / (tau * math.sqrt(2 * math.pi))
    return float(gaussian.delta(epsilon, 2 / tau)) - density * correction


def _terms(sigma: float, offset: float) -> tuple[Floats, Floats]:
    """k + offset for the integers k that matter, and exp(-(k + offset)²/(2 sigma²))."""
    reach = math.ceil(_REACH * sigma) + 1
    k = np.arange(-reach, reach + 1, dtype=np.float64) + offset
    return k, np.exp(-0.5 * np.square(k / sigma))


def _gaussian_characteristic(t: Floats, sigma: float) -> Floats:
    """E cos(t z): the sum itself for small sigma, else its Poisson sum over t + 2 pi n."""
    if sigma < 1:
        k, mass = _terms(sigma, 0.0)
        return np.cos(np.multiply.outer(t, k)) @ mass / float(mass.sum())
    copies = 2 * math.pi * (np.arange(-2, 3) if sigma < 3 else np.zeros(1))
    nearest = np.remainder(t + math.pi, 2 * math.pi) - math.pi
    terms: Floats = np.exp(-0.5 * np.square(sigma * np.add.outer(nearest, copies))).sum(axis=1)
    return terms / float(np.exp(-0.5 * np.square(sigma * copies)).sum())


@dataclass(frozen=True)
class IndependentLaplace(AdditiveCounts):
    """Independent noise with P[k] ∝ exp(-|k|/scale) on every count; delta is that of the counts before centring."""

    name: ClassVar[str] = "count_laplace"
    law: ClassVar[str] = "the discrete Laplace of parameter `scale`, independent for each class"

    def delta_at(self, epsilon: float) -> float:
        """The exact delta of one release at another epsilon >= 0, before centring, which can only lower it."""
        return independent_laplace_delta(require_epsilon_from_zero(epsilon), float(self.scale))

    def variance(self) -> float:
        """Of one released count: 2 q/(1 - q)² (1 - 1/C)."""
        return discrete.variance(self.scale) * (1 - 1 / self.classes)

    def expected_l1(self) -> float:
        """E sum_i |released count_i - count_i|, in records."""
        return centred_l1(_laplace_characteristic, float(self.scale), self.classes, tail=40.0)

    def escape(self, count: float) -> float:
        """2 C q^reach/(1 + q), q = e^{-1/scale}: some class's noise must reach count C/(2 (C-1)) for it."""
        reach = 0.5 * count * self.classes / (self.classes - 1)
        s = float(self.scale)
        return min(1.0, 2 * self.classes * math.exp(-reach / s) / (1 + math.exp(-1 / s)))

    def _noise(self, bits: NoiseBits, draws: int) -> Integers:
        return discrete.sample_discrete_laplace(bits, self.scale, draws * self.classes).reshape(draws, self.classes)


def independent_laplace_delta(epsilon: float, scale: float) -> float:
    """P[z_i <= 0] P[z_j >= 0] (1 - e^{epsilon - 2/s}), each probability 1/(1 + e^{-1/s}); 0 from epsilon = 2/s on.

    Examples:
        >>> independent_laplace_delta(0.5, scale=2.0), independent_laplace_delta(1.0, scale=2.0)
        (0.1525, 0.0)
    """
    return loss_beyond(epsilon, scale) / (1 + math.exp(-1 / scale)) ** 2


def calibrate_independent_laplace(classes: int, epsilon: float, delta: float) -> IndependentLaplace:
    """The least noise on the grid whose exact delta at `epsilon` > 0 is at most `delta` in [0, 1); 2/epsilon for 0.

    Examples:
        >>> float(calibrate_independent_laplace(classes=3, epsilon=1.0, delta=1e-3).scale)
        1.995
    """
    scale = least_scale(lambda scale: independent_laplace_delta(epsilon, scale), epsilon, delta)
    return IndependentLaplace(classes, epsilon, delta, scale)


def _laplace_characteristic(t: Floats, scale: float) -> Floats:
    """E cos(t z) = (1 - q)²/(1 - 2 q cos t + q²)."""
    q = math.exp(-1 / scale)
    return math.expm1(-1 / scale) ** 2 / (math.expm1(-1 / scale) ** 2 + 4 * q * np.square(np.sin(t / 2)))


_LATTICE_MARGIN = 1e-12  # relative distance to the safe side of delta: covers the rounding of its computation


@dataclass(frozen=True)
class LatticeLaplace(AdditiveCounts):
    """Noise with P[z] ∝ exp(-|z|_1/scale) over the integer vectors of sum 0."""

    name: ClassVar[str] = "lattice_laplace"
    law: ClassVar[str] = "the discrete Laplace of parameter `scale` for each class, conditioned on a sum of zero"

    def delta_at(self, epsilon: float) -> float:
        """The exact delta of one release at another epsilon >= 0."""
        return lattice_laplace_delta(require_epsilon_from_zero(epsilon), self.classes, float(self.scale))

    def variance(self) -> float:
        """E z_1² = (C-1)/(C+1) ((1+x) r_C/(1-x)² - 1), with x and r as in `ratio`."""
        c, x = self.classes, math.exp(-2 / float(self.scale))
        gap = math.expm1(-2 / float(self.scale))
        return (c - 1) / (c + 1) * ((1 + x) * ratio(c, float(self.scale)) / gap**2 - 1)

    def expected_l1(self) -> float:
        """E |z|_1 = (C-1) ((1+x)/(1-x) - (1-x)/r_{C-1}), with x and r as in `ratio`."""
        s = float(self.scale)
        gap = -math.expm1(-2 / s)
        return (self.classes - 1) * ((2 - gap) / gap - gap / ratio(self.classes - 1, s))

    def escape(self, count: float) -> float:
        """q^count/(1 - q), q = e^{-1/scale}: P[z_1 = k] is P[z_1 = 0] q^|k| times a ratio of at most 1."""
        s = float(self.scale)
        return min(1.0, math.exp(-count / s) / -math.expm1(-1 / s))

    def _noise(self, bits: NoiseBits, draws: int) -> Integers:
        return sample(bits, self.scale, self.classes, draws)


def sample(bits: NoiseBits, scale: int | Fraction, classes: int, size: int) -> Integers:
    """`size` independent exact draws, shape (size, classes) int64.

    All coordinates but the last are independent discrete Laplace; the last is what the sum leaves, kept with
    probability exp(-|z_C|/scale). Raises `InputError` for a scale that `discrete.sample_discrete_laplace` refuses.

    Examples:
        >>> sample(NoiseBits(1, "example"), 2, classes=3, size=4)
        array([[ 2,  0, -2],
               [-3,  6, -3],
               [-1, -1,  2],
               [ 0,  1, -1]])
    """

    def draw(count: int) -> Integers:
        first = discrete.sample_discrete_laplace(bits, scale, count * (classes - 1)).reshape(count, classes - 1)
        last: Integers = -first.sum(axis=1)
        kept = below_exp(np.abs(last), scale, bits)
        return np.column_stack([first, last])[kept]

    return collect(draw, size, 1 / math.sqrt(math.pi * classes), (classes,))


def lattice_laplace_delta(epsilon: float, classes: int, scale: float) -> float:
    """The exact delta at `epsilon` >= 0: P[z_i <= 0 <= z_j | sum 0] (1 - e^{epsilon - 2/s}), 0 from 2/s on.

    With q = e^{-1/s}, x = q², the one-sided geometric series and the two-sided one, (1 - x)/((1 - q y)(1 - q/y)),
    multiply to that series' (C-1)-th power up to a factor, and the coefficient of y^0 of its k-th power is
    (1 - x)^{1-k} P_{k-1}(x), P_k(x) = sum_j binom(k, j)² x^j. So the probability is P_{C-2}(x)/P_{C-1}(x).

    Examples:
        >>> lattice_laplace_delta(0.5, classes=3, scale=2.0), lattice_laplace_delta(1.0, classes=3, scale=2.0)
        (0.2065, 0.0)
    """
    return loss_beyond(epsilon, scale) / ratio(classes - 1, scale)


def loss_beyond(epsilon: float, scale: float) -> float:
    """1 - e^{epsilon - 2/s} where the loss 2/s exceeds epsilon, else 0; without rounding in the difference."""
    return abs(math.expm1(min(Fraction(0), Fraction(epsilon) - 2 / Fraction(scale))))


def ratio(degree: int, scale: float) -> float:
    """r_k = P_k(x)/P_{k-1}(x) at x = e^{-2/scale}, for k = `degree` >= 1; it grows from 1 to 4 with x and k.

    P_k(x) = (1-x)^k Legendre_k((1+x)/(1-x)), whose three-term recurrence gives r_1 = 1 + x and
    (k+1) r_{k+1} = (2k+1) (1+x) - k (1-x)²/r_k.

    Examples:
        >>> [round(ratio(k, scale=2.0), 4) for k in (1, 2, 100)]
        [1.368, 1.906, 2.568]
    """
    x, gap = math.exp(-2 / scale), math.expm1(-2 / scale)
    value = 1 + x
    for k in range(1, degree):
        value = ((2 * k + 1) * (1 + x) - k * gap**2 / value) / (k + 1)
    return value


def calibrate_lattice_laplace(classes: int, epsilon: float, delta: float) -> LatticeLaplace:
    """The least noise on the grid whose exact delta at `epsilon` > 0 is at most `delta` in [0, 1); 2/epsilon for 0.

    Examples:
        >>> noise = calibrate_lattice_laplace(classes=3, epsilon=1.0, delta=1e-3)
        >>> float(noise.scale), noise.expected_l1()
        (1.996, 3.656)
    """
    scale = least_scale(lambda scale: lattice_laplace_delta(epsilon, classes, scale), epsilon, delta)
    return LatticeLaplace(classes, epsilon, delta, scale)


def least_scale(delta_at: Callable[[float], float], epsilon: float, delta: float) -> Fraction:
    """The smallest scale of the grid at which noise with losses 2/s, 0 and -2/s has delta `delta` in [0, 1) or less."""
    limit = delta * (1 - _LATTICE_MARGIN)
    near = 2 / (epsilon - math.log1p(-delta))  # what a probability of 1 would need; it is at least 1/4
    return smallest_scale(lambda scale: delta_at(float(scale)) <= limit, near)
