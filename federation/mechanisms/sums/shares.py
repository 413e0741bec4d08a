"""Shares of additive noise, for secure aggregation that reveals only the sum of n parties' responses.

All shares are whole numbers of grid steps, one draw per party. The sum of n shares is at least as private as the whole
noise:

- Discrete Laplace: a share is the difference of two Pólya variables, and the sum is exact (`sample`).
- Discrete Gaussian: n shares of variance sigma²/n each (Kairouz, Liu, Steinke 2021).
- L2-Gamma of scale s in R^D has the characteristic function (1 + s²|t|²)^{-(D+1)/2}. It is Gaussian of a variance that
  is Gamma((D+1)/2, 2s²), and a share is Gaussian of a variance that is Gamma((D+1)/2n, 2s²).

Why sums of rounded or discrete Gaussians are as private as Gaussians. Let f_a be the normal density of variance a.

1. f_a(i - u) f_c(k - i - v) = f_{a+c}(k - u - v) f_e(i - m) with e = ac/(a + c) and some m. The sum of f_e(i - m) over
   the integers i is within 1 ± z, z = 3 e^{-2 pi² e} (Poisson summation). For a, c >= 16, z <= 3 e^{-16 pi²}.
2. A rounded Gaussian has P[k] = ∫ f_a(k - u) du over |u| <= 1/2, a discrete one f_a(k) but for a factor within 1 ± z.
   Let S be a sum of n of them. By 1. and induction, P[S = k] is a density at k but for a factor within (1 ± z)^{2n} in
   each coordinate. It is the density of a Gaussian of the sum of their variances, plus n uniform numbers where they are
   rounded.
3. L2-Gamma shares get 16 steps² of variance more each. So the density in 2., now over the random variances too, is that
   of L2-Gamma noise plus independent noise. Like the density of L2-Gamma noise, its logarithm changes by |v|/s at most
   over v.

For n <= 2^30 and D <= 2^60 all factors together are within 2^-100 of 1, less than the rounding of the scales covers.

`weakened` gives what remains of a guarantee when more of the parties that share a noise collude than it assumes.
`delta` and `epsilon` give the same for L2-Gamma noise at an epsilon or a delta.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy.interpolate import CubicHermiteSpline
from scipy.optimize import brentq
from scipy.special import betainc, kve

from federation.contract.errors import InputError
from federation.contract.guarantee import Assumption, Check, Keeper
from federation.contract.randomness import NoiseBits
from federation.mechanisms.noise import discrete as discrete_gaussian
from federation.mechanisms.noise import gaussian
from federation.mechanisms.noise.additive import AdditiveMechanism
from federation.mechanisms.noise.l2_gamma import uniform
from federation.mechanisms.noise.lazy_uniform import collect
from federation.mechanisms.noise.mechanism import require_draws
from federation.numerics.rows import Booleans, Floats, Integers

MOST = 2**30  # parties that share one noise
_LEAST_SIGMA = 4  # steps, of every Gaussian: the proof's 16 steps²
_SCALE_BITS = 21  # of a Gaussian share's scale

_HONEST = "at least {} parties add their shares of the noise as drawn, and tell nobody"
_ONLY_THE_SUM = Assumption(
    "the summation over the parties reveals the sum of their answers only", Check.DECLARED, Keeper.COORDINATOR
)
_CLOSE = Assumption(
    f"a share's Gaussians have a standard deviation of {_LEAST_SIGMA} steps or more, so that the sum's law is that of "
    "the whole noise, with some independent noise where that is L2-Gamma, but for a factor within 2^-100 of 1",
    Check.ENFORCED,
)


def draw(whole: AdditiveMechanism, contributors: int, bits: NoiseBits, draws: int) -> Floats | Integers:
    """One party's shares, in steps, (draws, D): independent draws for as many releases.

    `contributors` as `check` allows it.

    Examples:
        >>> from federation.mechanisms.noise.additive import calibrate
        >>> noise = calibrate("gaussian", sensitivity=1.0, dimension=2, epsilon=1.0, delta=1e-5)
        >>> shares = [draw(noise, 10, NoiseBits(1, "example", party), draws=1) for party in range(10)]
        >>> shares[0] * noise.step, sum(shares) * noise.step
        (array([[ 0.1567, -0.529 ]]), array([[2.375, 5.051]]))
    """
    if whole.name == "l2_gamma":
        return _gamma_share(bits, whole.dimension, whole.scale / whole.step, contributors, draws)
    size = draws * whole.dimension
    if whole.name == "discrete_laplace":
        flat = sample(bits, whole.grid_scale, contributors, size)
    else:
        flat = discrete_gaussian.sample_discrete_gaussian(
            bits, _gaussian_share_scale(whole.grid_scale, contributors), size
        )
    return flat.reshape(draws, whole.dimension)


def release(whole: AdditiveMechanism, contributors: int, value: Floats, bits: NoiseBits, draws: int) -> Floats:
    """One party's value (D,) with its shares of the noise, (draws, D), in whole multiples of the grid's step.

    Raises `InputError` as `AdditiveMechanism.release`.
    """
    require_draws(draws)
    noisy: Floats = whole.rounded(value) + draw(whole, contributors, bits, draws)
    return noisy * whole.step


def in_mean(whole: AdditiveMechanism, contributors: int, answered: int) -> AdditiveMechanism:
    """The noise in the mean of `answered` parties' values, as one mechanism of the same kind and variance.

    Each added a share of which `contributors` are the whole: more come than are needed, as a rule. That is the law of
    the noise where it is Gaussian or just so many came; further shares bring other kinds nearer to a Gaussian.

    Examples:
        >>> from federation.mechanisms.noise.additive import calibrate
        >>> noise = calibrate("gaussian", sensitivity=1.0, dimension=2, epsilon=1.0, delta=1e-5)
        >>> noise.variance() / in_mean(noise, contributors=8, answered=10).variance()
        80.0
    """
    parts = variance(whole, contributors) / whole.variance() * answered / contributors
    sensitivity, charged, step = (one / answered for one in (whole.sensitivity, whole.charged, whole.step))
    scale = whole.scale * math.sqrt(parts) / answered
    return replace(whole, sensitivity=sensitivity, charged=charged, step=step, scale=scale)


def variance(whole: AdditiveMechanism, contributors: int) -> float:
    """Of each coordinate of the sum of so many shares, in the value's units squared.

    Examples:
        >>> from federation.mechanisms.noise.additive import calibrate
        >>> noise = calibrate("gaussian", sensitivity=1.0, dimension=2, epsilon=1.0, delta=1e-5)
        >>> noise.variance(), variance(noise, contributors=10)
        (13.92, 13.92)
    """
    if whole.name == "discrete_laplace":
        return whole.variance()
    if whole.name == "discrete_gaussian":
        return float(contributors * _gaussian_share_scale(whole.grid_scale, contributors) ** 2) * whole.step**2
    return whole.variance() + contributors * (_LEAST_SIGMA**2 + 1 / 12) * whole.step**2


def check(whole: AdditiveMechanism, contributors: int) -> None:
    """Raises `InputError` when Gaussian shares are so small that the grid is coarse for them."""
    if whole.name == "discrete_gaussian" and whole.grid_scale**2 < _LEAST_SIGMA**2 * contributors:
        most = whole.grid_scale**2 // _LEAST_SIGMA**2
        raise InputError(
            f"contributors must be at most {most} for this Gaussian noise, as its grid "
            f"is too coarse for smaller shares, got {contributors}; choose pure or laplace, or sum in groups"
        )


def assumptions(whole: AdditiveMechanism, contributors: int) -> tuple[Assumption, ...]:
    """What the guarantee of a sum of shares rests on, with that of the whole noise."""
    honest = Assumption(_HONEST.format(contributors), Check.DECLARED, Keeper.COORDINATOR)
    close = () if whole.name == "discrete_laplace" else (_CLOSE,)
    return (*whole.assumptions, honest, _ONLY_THE_SUM, *close)


def _gaussian_share_scale(sigma: int, contributors: int) -> Fraction:
    """The smallest fraction of a fixed power of two whose square is sigma²/n or more."""
    shift = max(0, _SCALE_BITS - math.isqrt(sigma**2 // contributors).bit_length())
    wanted = sigma**2 * 4**shift
    root = math.isqrt(wanted // contributors)
    while root**2 * contributors < wanted:
        root += 1
    return Fraction(root, 2**shift)


def _gamma_share(bits: NoiseBits, dimension: int, scale: float, contributors: int, draws: int) -> Floats:
    """Rounded Gaussians of variance 2 scale² Gamma((D+1)/2n) + 16.

    Gamma(a) is Gamma(a + 1) times U^{1/a}, which keeps its digits where a is small.
    """
    from scipy.special import gammainccinv, ndtri

    shape = (dimension + 1) / (2 * contributors)
    first, second = uniform(bits, 2, draws)
    mixing = gammainccinv(shape + 1, first) * np.exp(np.log(second) / shape)
    deviation = np.sqrt(2 * scale**2 * mixing + _LEAST_SIGMA**2)
    steps: Floats = np.rint(deviation[:, None] * ndtri(uniform(bits, draws, dimension)))
    return steps


def weakened(whole: AdditiveMechanism, left: float, delta: float = 0.0) -> float:
    """The epsilon where honest shares are `left` times the whole noise, in (0, 1].

    It is at the delta that was promised; where that is 0, at this `delta`, or the pure one at 0, which is infinite
    where nothing pure is left. Of Laplace noise in several coordinates it is the pure one, whatever delta is: which
    move is the worst at a delta is not known. Raises `InputError` for a part out of range.

    Of m shares that are the whole noise, h = r m come from honest parties, r < 1. An attacker who sees the sum takes
    all others off. The laws are the continuous ones behind the grid. With Gaussian noise the sum is Gaussian of r times
    the variance. With other noise the sum has a density along one coordinate, or as a function of the norm. It is
    proportional to z^v K_v(z), z = |x|/s, with v = r - 1/2 for Laplace noise in a coordinate and v = ((D + 1) r - D)/2
    for L2-Gamma noise. As K_v = K_{-v},

        z^v K_v(z) = const * integral over t >= 1 of exp(-z t) (t^2 - 1)^(-v - 1/2) dt,    v <= 1/2,

    which is a mixture of exponentials. So its logarithm is convex in z >= 0 and falls the fastest at 0. The largest
    loss of a move is therefore that at 0. With Laplace noise, losses of coordinates add up, and each is concave in how
    far its coordinate moves. The worst of all moves of an L1 norm is therefore shared alike by all D coordinates. At
    v <= 0 the density is unbounded at 0, and there is no pure promise left; there is one at a delta (`epsilon`).

    Examples:
        >>> from federation.mechanisms.noise.additive import calibrate
        >>> normal = calibrate("gaussian", sensitivity=1.0, dimension=50, epsilon=1.0, delta=1e-6)
        >>> pure = calibrate("pure", sensitivity=1.0, dimension=5, epsilon=1.0)
        >>> [round(weakened(normal, left), 3) for left in (1.0, 0.9, 0.5)]
        [1.0, 1.058, 1.455]
        >>> [round(weakened(pure, left), 3) for left in (1.0, 0.95, 0.9, 0.8)]
        [1.0, 1.304, 1.82, inf]
        >>> [round(weakened(pure, left, delta=1e-6), 3) for left in (1.0, 0.95, 0.9, 0.8)]
        [0.986, 1.052, 1.196, 1.722]
    """
    if not 0 < left <= 1:
        raise InputError(f"left must be a part of the noise, above 0 and at most 1, got {left:g}")
    if whole.name == "discrete_gaussian":
        return gaussian.epsilon(whole.delta, whole.charged / whole.scale / math.sqrt(left))
    moved, dimension = whole.charged / whole.scale, whole.dimension
    if delta and (whole.name == "l2_gamma" or dimension == 1):  # in one dimension they are one
        return epsilon(delta, moved, dimension, left)
    if whole.name == "discrete_laplace":
        return dimension * _loss(left - 0.5, moved / dimension)
    return _loss(((dimension + 1) * left - dimension) / 2, moved)


def _loss(order: float, moved: float) -> float:
    """log of z^v K_v(z) at 0, over that at z = `moved`."""
    if order <= 0:
        return math.inf
    peak = math.lgamma(order) + (order - 1) * math.log(2)
    return peak - (order * math.log(moved) + math.log(float(kve(order, moved))) - moved)


_NODES = 8_000
_TAIL = 36.0  # e to the minus of which is left out at either end
_LEAST, _LARGEST = 1e-300, 500.0  # of delta, and of epsilon
_FLAT = 1e-12
_HARDLY = 0.1  # of a Gamma's shape, twice: below it nearly all noise is closer to 0 than doubles can say
_LARGE = 50.0  # orders of a Bessel function from which on an expansion is exact to 9 digits


def delta(epsilon: float, moved: float, dimension: int, left: float) -> float:
    """The delta at `epsilon` where the value moves by `moved` scales, and shares are `left` times the whole, in (0, 1].

    It is for L2-Gamma noise. The formula is exact for the law in the reals. Its computation has a relative error of
    about 1e-4, and of 1e-2 in one dimension and where delta is below 1e-12. Where hardly any noise is left it is 1.

    Shares that are r times the whole add up to a normal vector in R^D of a variance that is Gamma((D + 1) r/2, 2 s^2).
    Its density f is proportional to z^v K_v(z), z = |x|/s, v = ((D + 1) r - D)/2 <= 1/2. What follows is in units of s.

    The pair: f falls with z. Let the value move by l. The loss at x, ln f(|x|) - ln f(|x - l|), is above epsilon where
    the second distance exceeds R(|x|), f(R(z)) = e^-epsilon f(z). This is the event A. Under either law the distance
    from its own centre has the density z^(D-1) f(z), and its direction is uniform. With F the law of a coordinate of a
    uniform direction,

        P(A) = integral of z^(D-1) f(z) F((z^2 + l^2 - R(z)^2)/(2 l z)),
        Q(A) = the same of 1 - F((z^2 + l^2 - r(z)^2)/(2 l z)),    R(r(z)) = z,

    and delta = P(A) - e^epsilon Q(A). These are two integrals in one dimension, taken by the trapezoidal rule in ln z.
    There f has no singularity that matters: z^D f falls as z^((D+1) r) or z^D towards 0.

    A shorter move is no worse. For c < 1 the factor c X of the noise and independent noise have the law of X, as Gamma
    variances are self-decomposable. So a move by c l is what becomes of one by l after more noise.

    Examples:
        >>> [round(delta(e, moved=1.0, dimension=10, left=1.0), 4) for e in (0.0, 0.5)]  # as `l2_gamma.delta`
        [0.1287, 0.0078]
        >>> round(delta(0.5, moved=1.0, dimension=10, left=0.8), 4)
        0.0154
    """
    if (dimension + 1) * left < _HARDLY:
        return 1.0
    z, depths, masses, radius = _radii(moved, dimension, left)
    # Where f is e^-epsilon times as high, and e^epsilon times: beyond the ends there is nothing that counts.
    farther = np.nan_to_num(radius(depths + epsilon), nan=math.inf)
    nearer = np.nan_to_num(radius(depths - epsilon), nan=0.0)
    inside = masses @ _below((z**2 + moved**2 - farther**2) / (2 * moved * z), dimension)
    outside = masses @ _below((nearer**2 - z**2 - moved**2) / (2 * moved * z), dimension)
    return max(float(inside - math.exp(epsilon) * outside), 0.0)


@lru_cache(maxsize=256)
def epsilon(delta_: float, moved: float, dimension: int, left: float) -> float:
    """The least epsilon for a delta above 0, infinite beyond 500; the others as of `delta`.

    Examples:
        >>> [round(epsilon(1e-6, moved=1.0, dimension=5, left=left), 3) for left in (1.0, 0.95, 0.9, 0.8)]
        [0.986, 1.052, 1.196, 1.722]
    """

    def beyond(guess: float) -> float:
        return math.log(max(delta(guess, moved, dimension, left), _LEAST) / delta_)

    if beyond(0.0) <= 0:
        return 0.0
    high = 1.0
    while beyond(high) > 0:
        high *= 2
        if high > _LARGEST:
            return math.inf
    return float(brentq(beyond, 0.0, high, xtol=1e-9, rtol=1e-5))


@lru_cache(maxsize=16)
def _radii(moved: float, dimension: int, left: float) -> tuple[Floats, Floats, Floats, Callable[[Floats], Floats]]:
    """Radii z, -ln f there, and their probabilities, which are 0 where only others' distances reach.

    And what gives the radius back, by cubic interpolation of its logarithm; NaN beyond the ends.
    """
    order = ((dimension + 1) * left - dimension) / 2
    falls = dimension + min(order, -order) + order  # the power of z that z^D f is towards 0
    typical = math.sqrt(dimension * (dimension + 1) * left)
    # z^2 is a chi-squared number times twice a Gamma one: neither is farther out than this.
    most = math.sqrt(2 * _far((dimension + 1) * left / 2, 1) * _far(dimension, 2))
    least = math.log(typical) - _TAIL / falls - math.sqrt(2 * _TAIL / falls)
    logs = np.linspace(least, math.log(most + moved), _NODES)
    z = np.exp(logs)
    depths = -order * logs - _log_bessel(abs(order), z)
    weights = dimension * logs - depths
    masses = np.where(z <= most, np.exp(weights - weights.max()), 0.0)
    falling = np.append(np.diff(depths) > _FLAT, True)  # not so near 0, where f may be finite
    slopes = 1 / np.gradient(depths, logs)[falling]
    inverse = CubicHermiteSpline(depths[falling], logs[falling], slopes, extrapolate=False)
    return z, depths, masses / masses.sum(), lambda depth: np.asarray(np.exp(inverse(depth)))


def _far(mean: float, scale: float) -> float:
    """What a Gamma number of this mean and scale exceeds with a probability of e^-36 at most."""
    return mean + math.sqrt(2 * scale * mean * _TAIL) + scale * _TAIL


def _log_bessel(order: float, z: Floats) -> Floats:
    """ln K of this order at z > 0; of large orders by Debye's expansion (DLMF 10.41.4), as K itself is no double."""
    if order < _LARGE:
        known = kve(order, z)
        near = math.lgamma(order) - math.log(2) + order * np.log(2 / z) if order else 0.0  # where it is no double
        return np.asarray(np.where(np.isinf(known), near, np.log(known) - z))
    root = np.hypot(1, z / order)
    t = 1 / root
    first, second = (3 * t - 5 * t**3) / 24, (81 * t**2 - 462 * t**4 + 385 * t**6) / 1152
    series = np.log1p(-first / order + second / order**2) + np.log(math.pi / (2 * order)) / 2 - np.log(root) / 2
    return np.asarray(series - order * (root + np.log(z / order / (1 + root))))


def _below(cosine: Floats, dimension: int) -> Floats:
    """The probability that a coordinate of a uniform direction is below this."""
    if dimension == 1:
        return np.asarray(np.where(cosine > 1, 1.0, np.where(cosine > -1, 0.5, 0.0)))
    known = np.clip(cosine, -1, 1)
    tail = betainc((dimension - 1) / 2, 0.5, 1 - known**2) / 2
    return np.asarray(np.where(known < 0, tail, 1 - tail))


_WEIGHT_BITS = 40  # of the heaviest bucket's integer weight
_ABOVE = 1 + 1e-6  # a bucket's weight exceeds its largest value by so much, which hides the rounding of the weights
_RELATIVE_ERROR = 2.0**-26  # of w_k, whose beta function is accurate to 2^-29
_LIKELY = 0.7  # of proposals are kept, roughly


def sample(bits: NoiseBits, scale: int, contributors: int, size: int) -> Integers:
    """`size` independent shares; the sum of `contributors` >= 1 has P[k] ∝ exp(-|k|/scale). Shape (size,), int64.

    A geometric variable, P[k] = (1 - q) q^k, is the sum of n independent Pólya (negative binomial) ones of shape
    r = 1/n, P[k] = (1 - q)^r w_k q^k, w_k = Γ(k + r) / (Γ(r) k!). The discrete Laplace law is that of the difference of
    two geometric variables. So n differences of Pólya variables, drawn exactly, add up to discrete Laplace noise of
    parameter t, q = e^{-1/t}, exactly.

    Examples:
        >>> parts = [sample(NoiseBits(1, "example", party), 10, contributors=50, size=6) for party in range(50)]
        >>> parts[0].tolist()
        [0, 0, 0, 0, 0, 0]
        >>> sum(parts).tolist()
        [29, -38, -1, -5, 2, 17]
    """
    both = _one_sided(bits, scale, contributors, 2 * size)
    return both[:size] - both[size:]


def _one_sided(bits: NoiseBits, scale: int, contributors: int, size: int) -> Integers:
    buckets = _buckets(scale, contributors)
    return collect(lambda count: buckets.propose(bits, count), size, _LIKELY)


@dataclass(frozen=True, eq=False)
class _Buckets:
    """A staircase above w_k q^k: one step for k = 0, for each [2^i, 2^{i+1}) below 2^J >= t, and for all the rest.

    The rest is cut into blocks of length 2^J, each half as likely as the one before: w_k q^k falls by e or more.
    `starts` and `weights` (buckets,) are integers; a weight of 1 stands for a mass of `unit`.
    """

    scale: int
    shape: float
    contributors: int
    starts: Integers
    weights: Integers
    unit: float

    def propose(self, bits: NoiseBits, count: int) -> Integers:
        """Between 0 and `count` independent draws: a point under the staircase is kept if it is under w_k q^k."""
        ends = np.cumsum(self.weights)
        ticket = bits.words(count) >> np.uint64(64 - int(ends[-1]).bit_length())
        bucket = np.searchsorted(ends, ticket[ticket < ends[-1]].astype(np.int64), side="right")
        start = self.starts[bucket]
        width = np.maximum(start, 1)
        offset: Integers = (bits.words(len(bucket)) & (width - 1).astype(np.uint64)).astype(np.int64)
        rest = bucket == len(self.starts) - 1
        block = np.where(rest, _coins_until_heads(bits, len(bucket)), 0)
        values: Integers = start + block * width + offset
        halved = np.where(rest, block + 1, 0)
        return values[self._under(values, width, halved, self.weights[bucket], bits)]

    def _under(
        self, values: Integers, width: Integers, halved: Integers, weights: Integers, bits: NoiseBits
    ) -> Booleans:
        """Whether a fresh uniform U < w_k q^k over the staircase's height, weight unit 2^-halved / width."""
        words = bits.words(len(values))
        height = weights * self.unit / width * np.exp2(-halved.astype(np.float64))
        share = np.exp(_log_weight(values, self.shape) - values / self.scale) / height
        gap = words * 2.0**-64 - share
        kept: Booleans = gap < 0
        for i in np.flatnonzero(np.abs(gap) <= share * _RELATIVE_ERROR + 2.0**-52):
            exact = Fraction(self.unit) * int(weights[i]) / (int(width[i]) * 2 ** int(halved[i]))
            kept[i] = self._settled(int(words[i]), int(values[i]), exact, bits)
        return kept

    def _settled(self, prefix: int, value: int, height: Fraction, bits: NoiseBits) -> bool:
        """The same in many digits, with as many further bits of U as that needs."""
        import mpmath

        length = 64
        while True:
            with mpmath.workprec(2 * length + 256):
                shape = mpmath.mpf(1) / self.contributors
                log = mpmath.loggamma(value + shape) - mpmath.loggamma(shape) - mpmath.loggamma(value + 1)
                share = mpmath.exp(log - mpmath.mpf(value) / self.scale) * height.denominator / height.numerator
                scaled = mpmath.ldexp(share, length) - prefix
                margin = mpmath.mpf(2) ** -64
                if scaled <= -margin or scaled >= 1 + margin:
                    return bool(scaled > 0)
            prefix, length = prefix << 64 | int(bits.words(1)[0]), length + 64


@lru_cache
def _buckets(scale: int, contributors: int) -> _Buckets:
    shape = 1 / contributors
    last = (scale - 1).bit_length()
    starts = np.array([0, *(2**i for i in range(last + 1))], dtype=np.int64)
    mass = np.exp(_log_weight(starts, shape) - starts / scale) * np.maximum(starts, 1) * _ABOVE
    mass[-1] *= 2  # half as likely as the one before: the first block gets half
    unit = math.ldexp(float(mass.max()), -_WEIGHT_BITS)
    return _Buckets(scale, shape, contributors, starts, np.ceil(mass / unit).astype(np.int64), unit)


def _log_weight(values: Integers, shape: float) -> Floats:
    """ln w_k = -ln(k B(r, k)), and 0 for k = 0."""
    from scipy.special import betaln

    positive = np.maximum(values, 1).astype(np.float64)
    return np.where(values == 0, 0.0, -betaln(shape, positive) - np.log(positive))


def _coins_until_heads(bits: NoiseBits, count: int) -> Integers:
    """How many tails come before the first heads, (count,) int64."""
    tails = np.zeros(count, dtype=np.int64)
    going = np.arange(count)
    while len(going):
        words = bits.words(len(going))
        lowest = words & (~words + np.uint64(1))
        tails[going] += np.where(words == 0, 64, np.log2(np.maximum(lowest, 1))).astype(np.int64)
        going = going[words == 0]
    return tails
