"""Exact accounting and calibration of noisy-wtd-LLP, for one release and for T releases of the same labels.

The exact delta of one release follows by conditioning on everything public. Bags, weights and the noisy set are
published and do not depend on labels. The hockey-stick divergence of the release is therefore the mean of the
conditional ones, not a bound. There is no union over bags, and no amplification of epsilon either.

T releases use fresh bags, fresh weights and fresh noise. Given all bags and weights they are one Gaussian mechanism at
R = sqrt(sum r_t²), with r as in `federation.mechanisms.bag_sums.design`. So the law of R² is the T-fold convolution of
the law of r². Renyi divergences are infinite here, whatever the order, because r has too heavy a tail. A release that
reuses the noise of an earlier release is another mechanism, to which nothing of this applies.
"""

import math
from collections.abc import Callable

import numpy as np

from federation.contract.errors import InputError
from federation.contract.validation import apart
from federation.mechanisms.bag_sums.design import MOST_EPSILON, BagDesign, Exposure, Weights, mean_delta, mean_delta_chi
from federation.mechanisms.labels.mechanism import LabelRange
from federation.mechanisms.noise import gaussian
from federation.mechanisms.noise.mechanism import (
    require_delta_above_zero,
    require_epsilon_from_zero,
    require_from_zero,
    require_positive,
    require_whole,
)
from federation.numerics.rows import Floats

_COARSE, _FINE = 2**11, 2**17  # grid points of R²
_SATURATED = 4.0  # at R/2 - epsilon/R = 4 a Gaussian mechanism's delta is above 0.9999: larger R count as infinite
_STRIDE = 2.0  # between the ends of the grids that are tried
_FRACTIONS = 2.0 ** np.arange(-40.0, 0.0)  # of a grid's step, at which tangents are tried too
_CELL = 2e-4  # relative width of what single values of r² are rounded up in
_UNLIKELY = 1e-16  # counts of noisy labels beyond these tails are replaced by worse ones
_ROUNDING = 1e-12  # added to delta for the rounding of a thousand releases, and in proportion for more


def composed_delta(
    epsilon: float,
    design: BagDesign,
    *,
    sigma: float,
    label_range: tuple[float, float],
    releases: int,
    charge: float = 0.0,
) -> float:
    """An upper bound on the delta of `releases` releases together, also when chosen adaptively.

    Within 1 % of the smallest, however many they are (at epsilon 0 within 10 %); nothing below 1e-12, or 1e-15 a
    release, is resolved. The noisy set is the same in all of them (or drawn anew in every bag, when stratified). Raises
    `InputError` as `delta`, and unless `releases` is an integer of at least 1.

    Examples:
        >>> design = BagDesign(records=12_800, bags=100, size=128, noisy=6400)
        >>> [f"{composed_delta(1.0, design, sigma=1.0, label_range=(0, 1), releases=t):.1e}" for t in (1, 5)]
        ['1.4e-05', '4.5e-04']
    """
    single = delta(epsilon, design, sigma=sigma, label_range=label_range, charge=charge)
    require_whole("releases", releases, 1)
    if releases == 1:
        return single
    ratio = width(label_range) / sigma
    if design.weights == "signs" and design.per_bag is not None and design.inclusion == 1:
        return float(gaussian.delta(epsilon, math.sqrt(releases) * (ratio / math.sqrt(design.per_bag) + charge)))
    return min(1.0, max(_best_grid(epsilon, ratio, design, releases, charge), single))


def _best_grid(epsilon: float, ratio: float, design: BagDesign, releases: int, charge: float) -> float:
    epsilon = min(epsilon, MOST_EPSILON)
    top = (_SATURATED + math.sqrt(_SATURATED**2 + 2 * epsilon)) ** 2
    kinds = [_one_release(ratio, parts, design.weights, charge, top) for parts in design.exposures()]

    def bound(end: float, points: int) -> float:
        sums = np.linspace(0.0, end, points)
        seen = np.append(0.0, gaussian.delta(epsilon, np.sqrt(sums[1:])))
        return max(_bound(epsilon, sums, seen, *kind, releases) for kind in kinds)

    coarse = {top: bound(top, _COARSE)}
    while gaussian.delta(epsilon, math.sqrt(top)) > _ROUNDING:
        top /= _STRIDE
        coarse[top] = bound(top, _COARSE)
    end = _STRIDE * min(coarse, key=coarse.__getitem__)  # a finer grid has less to gain from a low end
    return min(*coarse.values(), bound(end, _FINE)) + _ROUNDING * max(1.0, releases / 1000)


def _bound(
    epsilon: float, sums: Floats, seen: Floats, values: Floats, chances: Floats, lost: float, releases: int
) -> float:
    """At least E g(S) for the sum S of `releases` independent values, g(s) the Gaussian delta at R² = s.

    `values` (n,) have probabilities `chances`, and with probability `lost` a value is infinite; so are those beyond the
    even grid `sums`, on which `seen` is g. A value is split between its two neighbours there so that its mean stays.
    That spreads S, to S', by a variance V:
    1. E f(S) <= E f(S') for convex f, also for one above g. dg/ds = phi(sqrt(s)/2 - epsilon/sqrt(s))/(2 sqrt(s)) grows
       up to t = 2 (sqrt(1 + epsilon²) - 1) and falls from there on; beyond t, f goes on as the line of its slope.
    2. E f(S) <= E f(S') + V/2 sup(-f''), for g, or for g from some u >= t on with its tangent at u below that, where it
       is above g: from u on -g'' <= g' (1/8 + 1/(2s)), which falls.
    The law of S' is circular. What went round once or more often is known from the mean, which is that of S.
    """
    step, points = sums[1], len(sums)
    finite = values <= sums[-1]
    place, p = values[finite] / step, chances[finite]
    below = np.minimum(place.astype(np.int64), points - 2)
    share = place - below
    mass = np.zeros(points)
    mass += np.bincount(below, p * (1 - share), points)
    mass += np.bincount(below + 1, p * share, points)
    spread = releases * step**2 * float(p @ (share * (1 - share)))
    lost = min(1.0, lost + float(chances[~finite].sum()))
    if lost == 1:
        return 1.0
    law = _power(mass, lost, releases)
    infinite = -math.expm1(releases * math.log1p(-lost))
    mean = releases * (1 - infinite) / (1 - lost) * float(mass @ sums)
    beyond = max(0.0, mean - float(law @ sums))  # at least the grid's length for every round

    turn = 2 * epsilon * (epsilon / (math.hypot(1, epsilon) + 1))
    bounds = [1.0]
    if turn > 0:
        steepest = float(_slope(epsilon, np.array([turn]))[0])
        bend = min(turn, float(sums[-1]))
        at_bend = float(gaussian.delta(epsilon, math.sqrt(bend)))
        convex = np.where(sums <= bend, seen, at_bend + steepest * (sums - bend))
        bounds.append(float(law @ convex) + steepest * beyond)
        bent = spread / 2 * steepest * (1 / 8 + 0.5 / turn)
        bounds.append(float(law @ seen) + bent + beyond / (points * step))
    at = np.append(step * _FRACTIONS, sums[1:])  # u
    below_it = np.maximum(np.arange(len(at)) - len(_FRACTIONS), 0)  # the last sum below each
    value = np.append(gaussian.delta(epsilon, np.sqrt(at[: len(_FRACTIONS)])), seen[1:])
    slope = _slope(epsilon, at)
    start = value - slope * at
    usable = (at >= turn) & (start >= 0)
    if usable.any():
        tangents = start * np.cumsum(law)[below_it] + slope * np.cumsum(law * sums)[below_it]
        kept = np.cumsum((law * seen)[:0:-1])[::-1][below_it]
        bent = spread / 2 * slope * (1 / 8 + 0.5 / at)
        bounds.append(float((tangents + kept + bent)[usable].min()) + beyond / (points * step))
    return infinite + min(bounds)


def _slope(epsilon: float, squares: Floats) -> Floats:
    """The derivative of a Gaussian mechanism's delta by R², at R² = `squares` > 0."""
    root = np.sqrt(squares)
    return np.exp(-0.5 * np.square(root / 2 - epsilon / root)) / (2 * math.sqrt(2 * math.pi) * root)


def _power(mass: Floats, lost: float, exponent: int) -> Floats:
    """The law of a sum of independent copies on the same grid, circular; `mass` sums to 1 - `lost`.

    By the logarithm of the Fourier transform's distance from 1, which rounding spoils least where most mass is at 0.
    """
    jumps = mass.copy()
    jumps[0] = 0.0
    distance = lost + jumps.sum() - np.fft.rfft(jumps)
    real, imaginary = distance.real, distance.imag
    with np.errstate(divide="ignore"):
        size = 0.5 * np.log1p(np.maximum(real * (real - 2) + imaginary**2, -1.0))
    turned = np.arctan2(-imaginary, 1 - real)
    powered = np.exp(exponent * size) * np.exp(1j * (exponent * turned))
    return np.maximum(np.fft.irfft(powered, len(mass)), 0.0)


def _one_release(
    ratio: float, parts: tuple[Exposure, ...], weights: Weights, charge: float, top: float
) -> tuple[Floats, Floats, float]:
    """Values of r² up to `top` or more, their probabilities, and that of larger ones, for one kind of record."""
    found = [_reached(part, weights, math.sqrt(top) / ratio) for part in parts]
    reached, chances = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    in_a_bag = math.fsum(float(part.probability.sum()) for part in parts)
    with np.errstate(over="ignore"):
        values = np.append(np.square(ratio * reached + charge), 0.0)
    lost = max(0.0, in_a_bag - math.fsum(chances))
    return values, np.append(chances, max(0.0, 1 - in_a_bag)), lost


def _reached(part: Exposure, weights: Weights, furthest: float) -> tuple[Floats, Floats]:
    """Return the values of |w|/sqrt(Q) up to `furthest`, and their probabilities; w and Q as in the module `design`.

    Those of continuous weights are rounded up: their squares by 2 parts in 10^4 at most, of the usual one where they
    are smaller. What is left of the part's probability is that of larger values.
    """
    alone = part.others == 0
    q, p = part.others[~alone].astype(float), part.probability[~alone]
    reached, chances = (np.ones(1), part.probability[alone].sum(keepdims=True)) if part.own else (np.empty(0),) * 2
    if not len(q):
        return reached, chances
    if weights == "signs":
        return np.append(reached, 1 / np.sqrt(q + part.own)), np.append(chances, p)
    unit = 1 / (float(q @ p) / float(p.sum()) + 1)  # below it cells of squares are equally wide
    most = min(furthest**2, 1.0) if part.own else furthest**2
    ends = math.asinh(most / unit)
    square = unit * np.sinh(np.linspace(0.0, ends, 2 + int(ends / _CELL))[1:])
    square[-1] = most  # rounded to 1 - 1e-16, it would leave 1e-8 of the probability beyond it
    below = _mixed_beta(np.minimum(square, 1.0) if part.own else square / (1 + square), q, p)
    mass = np.diff(np.maximum.accumulate(below), prepend=0.0)
    return np.append(reached, np.sqrt(square)), np.append(chances, mass)


def _mixed_beta(s: Floats, q: Floats, p: Floats) -> Floats:
    """sum_q p_q P[Beta(1/2, q/2) <= s] or slightly less, for s = sin² t in [0, 1].

    With F_q(s) the distribution function, F_{q+2} - F_q = sqrt(s) (1 - s)^{q/2} Γ((q+1)/2)/(sqrt(pi) Γ(q/2 + 1)): one
    polynomial in sqrt(1 - s) sums them all.
    """
    from scipy.special import betainc, gammaln

    first = int(np.searchsorted(np.cumsum(p), _UNLIKELY))  # smaller counts are left out, as if infinitely bad
    last = len(p) - 1 - int(np.searchsorted(np.cumsum(p[::-1]), _UNLIKELY))  # larger ones are taken for this one
    p = np.append(p[first:last], p[last:].sum())
    q = q[first : last + 1]
    result: Floats = p[0::2].sum() * betainc(0.5, q[0] / 2, s)
    if len(q) > 1:
        result += p[1::2].sum() * betainc(0.5, q[1] / 2, s)
    above = np.zeros(len(p))  # of the same parity
    for parity in (0, 1):
        above[parity::2] = np.cumsum(p[parity::2][::-1])[::-1] - p[parity::2]
    terms = above * np.exp(gammaln((q + 1) / 2) - gammaln(q / 2 + 1)) / math.sqrt(math.pi)
    cosine = np.sqrt(1 - s)
    summed = np.zeros(len(s))
    for term in terms[::-1]:
        summed *= cosine
        summed += term
    lowest: Floats = cosine ** q[0]
    return result + np.sqrt(s) * lowest * summed


_SAFE = 1e-9  # relative step to the safe side of a root
_WIDEST = 1e9  # largest ratio of the label range and a noise scale, either way


def smallest_sigma(
    epsilon: float, target: float, design: BagDesign, *, label_range: tuple[float, float], charge: float = 0.0
) -> float:
    """The smallest standard deviation of the noise on a label with delta(epsilon) <= target, within 1e-9.

    Raises `InputError` for arguments out of range, and when no noise is enough because too many bags have none.

    Examples:
        >>> design = BagDesign(records=12_800, bags=100, size=128, noisy=6400)
        >>> smallest_sigma(1.0, 1e-5, design, label_range=(0.0, 1.0))
        1.042
    """
    require_target(epsilon, target)
    if design.noise_free >= target:
        wanted, revealed = apart(target, design.noise_free)
        raise InputError(
            f"delta {wanted} is out of reach of any noise: with probability {revealed} a label lies in "
            "a bag without noise; use larger bags, more noisy labels, or a number of them in every bag"
        )
    span = width(label_range)
    return span * _smallest_scale(
        lambda scale: delta(epsilon, design, sigma=scale, label_range=(0.0, 1.0), charge=charge), target
    )


def smallest_tau(epsilon: float, target: float, *, label_range: tuple[float, float], charge: float = 0.0) -> float:
    """The smallest standard deviation of noise on a weighted label sum with N(0, 1) weights, within 1e-9.

    With it, E_u delta_G(epsilon, |u| Delta/tau) <= target. Raises `InputError` for arguments out of range.

    Examples:
        >>> smallest_tau(1.0, 1e-6, label_range=(0.0, 1.0))
        9.854
    """
    require_target(epsilon, target)
    require_from_zero("charge", charge)
    return width(label_range) * _smallest_scale(lambda scale: mean_delta_chi(epsilon, 1 / scale, charge=charge), target)


def _smallest_scale(delta_at: Callable[[float], float], target: float) -> float:
    """The smallest scale with delta_at(scale) <= target, for a range of 1; delta falls as the scale grows."""
    from scipy.optimize import brentq

    goal = math.log(target)

    def excess(log_scale: float) -> float:
        return math.log(max(delta_at(math.exp(log_scale)), 1e-300)) - goal

    low = high = 0.0
    while excess(high) > 0:
        high += 1.0
        if high > math.log(_WIDEST):
            raise InputError("the noise would exceed the label range a billion times; choose a larger epsilon or delta")
    while excess(low) < 0:
        low -= 1.0
        if low < -math.log(_WIDEST):
            return 1 / _WIDEST
    root = brentq(excess, low, high, xtol=1e-10, rtol=1e-14)
    return math.exp(root + _SAFE)


def require_target(epsilon: float, target: float) -> None:
    """Raises `InputError` unless epsilon is finite and at least 0, and the delta strictly between 0 and 1."""
    require_epsilon_from_zero(epsilon)
    require_delta_above_zero(target)


def delta(
    epsilon: float, design: BagDesign, *, sigma: float, label_range: tuple[float, float], charge: float = 0.0
) -> float:
    """The smallest delta for which one release is (epsilon, delta)-private for one replaced label.

    `sigma` > 0: standard deviation of the noise on a label; `label_range`: the public (lowest, highest) label; `charge`
    is added to every sensitivity-to-noise ratio. It is the worse of a record with noise of its own and one without.
    Raises `InputError` for arguments out of range.

    Examples:
        >>> design = BagDesign(records=12_800, bags=100, size=128, noisy=6400)
        >>> delta(1.0, design, sigma=1.0, label_range=(0.0, 1.0))
        1.432e-05
    """
    require_epsilon_from_zero(epsilon)
    require_from_zero("charge", charge)
    ratio = width(label_range) / require_positive("sigma", sigma)
    if not 1e-9 <= ratio <= 1e9:
        raise InputError(f"sigma must be within a factor 1e9 of the label range, got their ratio {ratio:g}")
    worst = max(
        math.fsum(mean_delta(epsilon, ratio, part, design.weights, charge) for part in parts)
        for parts in design.exposures()
    )
    return min(worst, 1.0)


def width(label_range: tuple[float, float]) -> float:
    """Delta = highest - lowest label. Raises `InputError` as `LabelRange`."""
    return LabelRange.of(label_range).width
