"""The audited mechanisms, each on its worst pair of neighbours and next to twins with a known mistake.

A twin makes the same claim with one classic error; an audit that cannot tell it from the real mechanism is
worthless.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np

from federation.contract.question import Curve
from federation.contract.randomness import NoiseBits
from federation.mechanisms.audit.estimate import AuditResult, audit
from federation.mechanisms.counts import discrete_gaussian as count_gaussian
from federation.mechanisms.counts import lattice_laplace
from federation.mechanisms.counts.additive import AdditiveCounts
from federation.mechanisms.noise import l2_gamma
from federation.mechanisms.noise.additive import AdditiveMechanism, calibrate
from federation.numerics.arrays import Floats

RUNS = 500_000
CONFIDENCE = 0.999
_EPSILON, _DELTA = 1.0, 1e-6
_COUNTS = np.array([[0, 30, 30], [1, 29, 30]])  # the worst pair for what redraws negative counts
_COARSE = 5.0  # in sensitivities: a rounding that multiplies the distance of a pair by five

Sampler = Callable[[int, NoiseBits, int], Floats]  # (which neighbour: 0 or 1, bits, runs) -> (runs, D)
Statistic = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Twin:
    """A broken copy of a mechanism: what is wrong, how it samples, and the statistic that shows it best."""

    mistake: str
    sample: Sampler
    statistic: Statistic


@dataclass(frozen=True)
class Audited:
    """A mechanism, its claim, and the log likelihood ratio of its worst pair, up to scale.

    Additive mechanisms have sensitivity 1; those for label counts take what one replaced label changes.

    The bound of a correct mechanism should pass `tight` times the claim, or the audit has no power. `curve` is what is
    claimed at other epsilons, where the claim has a delta.
    """

    name: str
    epsilon: float
    delta: float
    sample: Sampler
    statistic: Statistic
    twins: tuple[Twin, ...]
    tight: float = 0.5
    curve: Curve | None = None


@dataclass(frozen=True)
class Verdict:
    """The audit of a mechanism and of its twins."""

    audited: Audited
    result: AuditResult
    twins: tuple[tuple[str, AuditResult], ...]

    @property
    def as_expected(self) -> bool:
        """The claim stands, the bound comes close to it, and every twin is refuted."""
        powerful = self.result.lower_bound >= self.audited.tight * self.audited.epsilon
        return self.result.passed and powerful and not any(result.passed for _, result in self.twins)


def audited_mechanisms() -> dict[str, Audited]:
    """All audited mechanisms by name, at epsilon 1; those with a delta at 1e-6.

    Examples:
        >>> list(audited_mechanisms())
        ['discrete_laplace', 'l2_gamma_2d', 'l2_gamma_3d', 'discrete_gaussian_1d', 'discrete_gaussian_3d',
        'lattice_laplace', 'count_gaussian']
    """
    cases = [_pure(1), _pure(2), _pure(3), _gaussian(1), _gaussian(3), _lattice_laplace(), _count_gaussian()]
    return {case.name: case for case in cases}


def judge(audited: Audited, *, runs: int = RUNS, seed: int | None = 1) -> Verdict:
    """Audits a mechanism and its twins with `runs` runs a side; the fixed seed makes it reproducible.

    Examples:
        >>> verdict = judge(audited_mechanisms()["discrete_laplace"], runs=20_000)
        >>> verdict.as_expected
        True
        >>> [(mistake, result.passed) for mistake, result in verdict.twins]
        [('half the noise', False), ('coarse rounding not charged', False)]
    """

    def run(sample: Sampler, statistic: Statistic, purpose: str) -> AuditResult:
        first, second = (NoiseBits(seed, f"audit|{audited.name}|{purpose}", side) for side in (0, 1))
        return audit(
            lambda n: sample(0, first, n),
            lambda n: sample(1, second, n),
            statistic,
            epsilon=audited.epsilon,
            delta=audited.delta,
            runs=runs,
            confidence=CONFIDENCE,
            curve=audited.curve,
        )

    twins = tuple((twin.mistake, run(twin.sample, twin.statistic, twin.mistake)) for twin in audited.twins)
    return Verdict(audited, run(audited.sample, audited.statistic, "mechanism"), twins)


def _pure(dimension: int) -> Audited:
    mechanism = calibrate("pure", sensitivity=1.0, dimension=dimension, epsilon=_EPSILON)
    ratio = _distance_gap(dimension, 0.0)

    def wrong_radius(shape: int) -> Twin:
        def sample(side: int, bits: NoiseBits, runs: int) -> Floats:
            radius = l2_gamma.gamma_radius(bits, shape, 1 / _EPSILON, runs)
            value: Floats = _neighbours(dimension, 1.0)[side]
            return value + l2_gamma.sphere(bits, dimension, runs) * radius[:, None]

        # The density is then proportional to e^{-r} r^{shape - D}: infinite at the value itself.
        return Twin(f"radius Gamma({shape})", sample, _distance_gap(dimension, (dimension - shape) / _EPSILON))

    shapes = sorted({1, dimension - 1}) if dimension > 1 else []
    twins = (_half_noise("pure", dimension, ratio), *map(wrong_radius, shapes), _uncharged_rounding(mechanism))
    name = f"l2_gamma_{dimension}d" if dimension > 1 else mechanism.name
    return Audited(name, _EPSILON, 0.0, _release(mechanism, 1.0), ratio, twins)


def _gaussian(dimension: int) -> Audited:
    mechanism = calibrate("gaussian", sensitivity=1.0, dimension=dimension, epsilon=_EPSILON, delta=_DELTA)
    twins = [_half_noise("gaussian", dimension, _projection), _uncharged_rounding(mechanism)]
    if dimension > 1:
        # When every coordinate moves by 1, the change has norm sqrt(D), not the 1 that was calibrated for.
        moved = _release(mechanism, dimension**0.5)
        twins.append(Twin("sensitivity of one coordinate only", moved, _projection))
    name, sample = f"discrete_gaussian_{dimension}d", _release(mechanism, 1.0)
    return Audited(name, _EPSILON, _DELTA, sample, _projection, tuple(twins), curve=mechanism.delta_at)


def _lattice_laplace() -> Audited:
    mechanism = lattice_laplace.calibrate(_COUNTS.shape[1], _EPSILON, _DELTA)

    def ratio(outputs: Floats) -> Floats:
        from_first, from_second = (np.abs(outputs - counts).sum(axis=1) for counts in _COUNTS)
        gap: Floats = from_second - from_first
        return gap

    def redrawn(side: int, bits: NoiseBits, runs: int) -> Floats:
        kept = np.empty((0, mechanism.classes))
        while len(kept) < runs:
            released = mechanism.release(_COUNTS[side], bits, runs)
            kept = np.concatenate([kept, released[released.min(axis=1) >= 0]])
        return kept[:runs]

    def one_exact(side: int, bits: NoiseBits, runs: int) -> Floats:
        released = mechanism.release(_COUNTS[side], bits, runs)
        # As if noise in all classes but one were enough because the sum is public anyway.
        released[:, 1] = _COUNTS[side, 1]
        return released

    one_class = replace(mechanism, scale=1 / Fraction(_EPSILON))
    twins = (
        Twin("sensitivity of one class only", _release_counts(one_class), ratio),
        Twin("redrawn until no count is negative", redrawn, ratio),
        Twin("one class without noise", one_exact, lambda outputs: outputs[:, 1]),
    )
    return Audited(mechanism.name, _EPSILON, _DELTA, _release_counts(mechanism), ratio, twins)


def _count_gaussian() -> Audited:
    mechanism = count_gaussian.calibrate(_COUNTS.shape[1], _EPSILON, _DELTA)

    def ratio(outputs: Floats) -> Floats:
        return outputs[:, 0] - outputs[:, 1]

    one_class = Fraction(round(mechanism.scale * 2**20 / 2**0.5), 2**20)
    twins = (
        Twin("half the noise", _release_counts(replace(mechanism, scale=mechanism.scale / 2)), ratio),
        Twin("sensitivity of one class only", _release_counts(replace(mechanism, scale=one_class)), ratio),
    )
    sample, curve = _release_counts(mechanism), mechanism.delta_at
    return Audited(mechanism.name, _EPSILON, _DELTA, sample, ratio, twins, curve=curve)


def _release_counts(mechanism: AdditiveCounts) -> Sampler:
    return lambda side, bits, runs: mechanism.release(_COUNTS[side], bits, runs)


def _half_noise(noise: Literal["pure", "gaussian"], dimension: int, statistic: Statistic) -> Twin:
    halved = calibrate(noise, sensitivity=0.5, dimension=dimension, epsilon=_EPSILON, delta=_DELTA)
    return Twin("half the noise", _release(halved, 1.0), statistic)


def _uncharged_rounding(mechanism: AdditiveMechanism) -> Twin:
    def sample(side: int, bits: NoiseBits, runs: int) -> Floats:
        value = 0.45 * _COARSE + _neighbours(mechanism.dimension, 1.0)[side]
        return mechanism.release(np.rint(value / _COARSE) * _COARSE, bits, runs)

    return Twin("coarse rounding not charged", sample, _projection)


def _release(mechanism: AdditiveMechanism, distance: float) -> Sampler:
    pair = _neighbours(mechanism.dimension, distance)
    return lambda side, bits, runs: mechanism.release(pair[side], bits, runs)


def _neighbours(dimension: int, distance: float) -> Floats:
    """Two values at the given L2 distance: zero and a multiple of the first unit vector; shape (2, D)."""
    pair = np.zeros((2, dimension))
    pair[1, 0] = distance
    return pair


def _projection(outputs: Floats) -> Floats:
    """The coordinate in which the neighbours differ: increasing in the likelihood ratio of Gaussian noise."""
    return outputs[:, 0]


def _distance_gap(dimension: int, log_weight: float) -> Statistic:
    """|x - v1| - |x - v0| + log_weight ln(|x - v1| / |x - v0|): the loss of e^{-r} r^{-log_weight} noise."""
    pair = _neighbours(dimension, 1.0)

    def statistic(outputs: Floats) -> Floats:
        from_zero, from_one = (np.linalg.norm(outputs - value, axis=1) for value in pair)
        gap: Floats = from_one - from_zero
        return gap + log_weight * np.log(from_one / from_zero) if log_weight else gap

    return statistic
