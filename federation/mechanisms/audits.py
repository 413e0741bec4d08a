"""Statistical audits: lower bounds on epsilon or delta from many runs of a mechanism on two neighbouring inputs.

An audit rejects a claim below the bound at the stated confidence. A correct mechanism stays above the bound except with
probability 1 - confidence. The bound cannot prove a claim: proofs do.

No feasible number of runs shows a delta of 1e-6. However, a mechanism claims a whole privacy curve. For Gaussian noise
and a quarter of the stated epsilon, delta is a few hundredths. At that point the audit sees even a little missing noise
(`curve_point`).

`audited_mechanisms` lists each mechanism with its worst pair of neighbours and its negative controls (class `Twin`). A
negative control makes the same claim with one classic error. An audit that cannot tell it from the real mechanism has
no power.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import require_delta
from federation.contract.query import Curve
from federation.contract.randomness import NoiseBits
from federation.mechanisms.counts import exact_laws
from federation.mechanisms.counts.additive import AdditiveCounts
from federation.mechanisms.noise import gaussian, l2_gamma
from federation.mechanisms.noise.additive import AdditiveMechanism, calibrate
from federation.mechanisms.noise.mechanism import (
    require_epsilon_from_zero,
    require_positive,
    require_share,
    require_whole,
)
from federation.numerics.rows import Floats, numbers

_LARGE = 700.0  # an epsilon whose exponential is a double
_THRESHOLDS = 200  # candidate thresholds per sample
_POINTS = 21  # of a curve, from epsilon 0 to the stated one
_ALMOST_NONE = 1e-12

_Score = Callable[[Floats, Floats], Floats]  # of bounds: P[E] is above the first and Q[E] below the second, or swapped


@dataclass(frozen=True)
class CurvePoint:
    """The point of a claimed privacy curve that was put to the test, and the delta that is shown there at least."""

    epsilon: float
    claimed: float
    lower_bound: float

    @property
    def exceeded(self) -> bool:
        """Whether more is shown than is claimed."""
        return self.lower_bound > self.claimed


@dataclass(frozen=True)
class AuditResult:
    """What `runs` runs a side show about a claim of (claimed, delta)-privacy.

    `lower_bound` <= the true epsilon at `delta` with probability `confidence`; `event` is the distinguishing event.
    Where a whole curve is claimed, one `point` of it was tested, and the bound says that as an epsilon at `delta`
    (`equivalent_epsilon`): it is above the claim where the point is exceeded, and nowhere else.
    """

    lower_bound: float
    claimed: float
    delta: float
    confidence: float
    runs: int
    event: str
    point: CurvePoint | None = None

    @property
    def passed(self) -> bool:
        """Whether the claim is not refuted."""
        return self.lower_bound <= self.claimed


def audit(
    sample_p: Callable[[int], Floats],
    sample_q: Callable[[int], Floats],
    statistic: Callable[[Floats], Floats],
    *,
    epsilon: float,
    delta: float = 0.0,
    runs: int,
    confidence: float = 0.99,
    curve: Curve | None = None,
) -> AuditResult:
    """Audits the claim (epsilon, delta) with `runs` outputs of each neighbour, and all of a claimed `curve`.

    `sample_p(n)` and `sample_q(n)` return n independent outputs along the first axis; `statistic` maps
    outputs to scalars of shape (n,): the likelihood ratio is the most powerful one (Neyman, Pearson). Of a curve, which
    needs a delta above 0, one point is tested (`curve_point`). Raises `InputError` as `epsilon_lower_bound` does.

    Examples:
        >>> rng = np.random.default_rng(1)
        >>> found = audit(
        ...     lambda n: rng.laplace(0, 1, n),
        ...     lambda n: rng.laplace(1, 1, n),
        ...     lambda x: np.abs(x) - np.abs(x - 1),
        ...     epsilon=0.5,
        ...     runs=20_000,
        ... )
        >>> found.passed, found.event
        (False, 'statistic <= -1, likelier under P')
        >>> round(found.lower_bound, 2)
        4.02
    """
    require_epsilon_from_zero(epsilon)
    require_whole("runs", runs, 4)
    p, q = statistic(sample_p(runs)), statistic(sample_q(runs))
    if curve is not None:
        point, event = curve_point(p, q, curve, epsilon=epsilon, delta=delta, confidence=confidence)
        bound = equivalent_epsilon(point, epsilon=epsilon, delta=delta)
        return AuditResult(bound, epsilon, delta, confidence, runs, event, point)
    bound, event = epsilon_lower_bound(p, q, delta=delta, confidence=confidence)
    return AuditResult(bound, epsilon, delta, confidence, runs, event)


def epsilon_lower_bound(p: Floats, q: Floats, *, delta: float = 0.0, confidence: float = 0.99) -> tuple[float, str]:
    """A lower confidence bound >= 0 on epsilon from samples of a scalar statistic, and the event behind it.

    (epsilon, delta)-privacy implies P[E] <= e^epsilon Q[E] + delta for every event E. The first half of each
    sample chooses E among threshold events in both directions; the second half gives Clopper-Pearson bounds
    for P[E] and Q[E], each at half of the error probability, so the confidence needs no correction for the
    choice.

    `p`, `q`: shape (n,) with n >= 4, no NaN. Raises `InputError` otherwise, or for confidence outside (0, 1)
    or delta outside [0, 1).

    Examples:
        >>> rng = np.random.default_rng(1)
        >>> epsilon_lower_bound(rng.normal(1, 1, 10_000), rng.normal(0, 1, 10_000), delta=0.1)
        (0.9582, 'statistic <= -0.5425, likelier under Q')
    """
    require_share("confidence", confidence)
    require_delta(delta)

    def score(likely: Floats, unlikely: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(likely - delta, 0.0)) - np.log(unlikely)

    halves = _Halves(p, q, confidence, np.linspace(0, 1, _THRESHOLDS))
    event = halves.best(score)[0]
    return max(0.0, halves.tested(event, score)), event.described


def delta_lower_bound(p: Floats, q: Floats, *, epsilon: float, confidence: float = 0.99) -> tuple[float, str]:
    """A lower confidence bound >= 0 on delta at `epsilon`, and the event behind it; the rest as `epsilon_lower_bound`.

    delta >= P[E] - e^epsilon Q[E] for every event E. Where delta is not small this tells more than a bound on epsilon.
    Raises `InputError` for epsilon < 0 too.

    Examples:
        >>> rng = np.random.default_rng(1)
        >>> delta_lower_bound(rng.normal(1, 1, 10_000), rng.normal(0, 1, 10_000), epsilon=0.5)
        (0.1886, 'statistic <= 0.07462, likelier under Q')
    """
    require_share("confidence", confidence)
    require_epsilon_from_zero(epsilon)
    halves, score = _Halves(p, q, confidence, _with_tails()), _excess(epsilon)
    event = halves.best(score)[0]
    return max(0.0, halves.tested(event, score)), event.described


def curve_point(
    p: Floats, q: Floats, curve: Curve, *, epsilon: float, delta: float, confidence: float
) -> tuple[CurvePoint, str]:
    """The point of a claimed curve that tells most, with a lower bound on its delta; and the event behind it.

    `delta` is claimed at `epsilon`, if the curve does not claim less, and below it what the curve does: at least
    P[E] - e^epsilon' Q[E] at epsilon', for every event E. The first halves choose epsilon' and E: where
    `equivalent_epsilon` is largest. The second halves bound delta there, as `delta_lower_bound` does, so that a claim
    that holds is exceeded with probability 1 - confidence at most. Raises `InputError` as that, and for a delta outside
    (0, 1).

    Examples:
        >>> rng, runs, mu = np.random.default_rng(1), 200_000, gaussian.mu(1.0, 1e-6)
        >>> half_the_noise = rng.normal(2 * mu, 1, runs), rng.normal(0, 1, runs)
        >>> claimed = lambda epsilon: float(gaussian.delta(epsilon, mu))
        >>> curve_point(*half_the_noise, claimed, epsilon=1.0, delta=1e-6, confidence=0.99)[0]
        CurvePoint(epsilon=0.65, claimed=0.0002967, lower_bound=0.01594)
    """
    require_share("confidence", confidence)
    require_share("delta", delta)
    require_positive("epsilon", epsilon)
    halves = _Halves(p, q, confidence, _with_tails())

    def found(at: float) -> tuple[CurvePoint, _Event]:
        event, shown = halves.best(_excess(at))
        return CurvePoint(at, min(curve(at), delta) if at == epsilon else curve(at), shown), event

    point, event = max(
        map(found, np.linspace(0.0, epsilon, _POINTS).tolist()),
        key=lambda one: equivalent_epsilon(one[0], epsilon=epsilon, delta=delta),
    )
    shown = max(0.0, halves.tested(event, _excess(point.epsilon)))
    return CurvePoint(point.epsilon, point.claimed, shown), event.described


def equivalent_epsilon(point: CurvePoint, *, epsilon: float, delta: float) -> float:
    """What is shown at a point as an epsilon at `delta`: of Gaussian noise that is fainter to the same degree.

    Gaussian noise with the claimed delta at the point's epsilon has a larger mu where it has the delta that is shown;
    as many times larger is that of the noise which claims (`epsilon`, `delta`). For Gaussian noise that is a lower
    bound on its own epsilon, of an auditor who bounds mu (Nasr et al. 2023, Section 4).

    Examples:
        >>> claimed, half = (float(gaussian.delta(0.25, k * gaussian.mu(1.0, 1e-6))) for k in (1, 2))
        >>> equivalent_epsilon(CurvePoint(0.25, claimed, claimed), epsilon=1.0, delta=1e-6)
        1.0
        >>> equivalent_epsilon(CurvePoint(0.25, claimed, half), epsilon=1.0, delta=1e-6)
        2.123
    """
    if point.lower_bound <= 0:
        return 0.0
    own = gaussian.mu(epsilon, delta)
    # A delta that is 1 in double precision says nothing about mu.
    claimed = _mu(point.epsilon, point.claimed) if point.claimed < 1 - _ALMOST_NONE else own
    bound = gaussian.epsilon(delta, own * _mu(point.epsilon, point.lower_bound) / claimed)
    # Which side of the claim it is on is for the point to say, not for rounding.
    return max(bound, math.nextafter(epsilon, math.inf)) if point.exceeded else min(bound, epsilon)


def _mu(epsilon: float, delta: float) -> float:
    """Of the Gaussian noise that has this delta, 0 and 1 included, at this epsilon."""
    return gaussian.mu(epsilon, min(max(delta, _ALMOST_NONE), 1 - _ALMOST_NONE))


def _excess(epsilon: float) -> _Score:
    """P[E] - e^epsilon Q[E], for any epsilon: bounds of Q[E] are above 0."""
    factor = math.exp(min(epsilon, _LARGE))
    return lambda likely, unlikely: likely - factor * unlikely


def _with_tails() -> Floats:
    """Quantiles of candidate thresholds: the events that show a small delta are rare."""
    tail = np.geomspace(1e-5, 1 / _THRESHOLDS, _THRESHOLDS)
    return np.concatenate([tail, np.linspace(0, 1, _THRESHOLDS), 1 - tail])


@dataclass(frozen=True)
class _Event:
    """What a statistic is at least, or at most where `below`; `swapped` if it is likelier under Q."""

    threshold: float
    below: bool
    swapped: bool

    @property
    def described(self) -> str:
        which = "Q" if self.swapped else "P"
        return f"statistic {'<=' if self.below else '>='} {self.threshold:.6g}, likelier under {which}"


class _Halves:
    """Samples of P and Q in two halves: what is chosen on the first is tested on the second."""

    def __init__(self, p: Floats, q: Floats, confidence: float, levels: Floats) -> None:
        p, q = numbers(p, "a sample"), numbers(q, "a sample")
        for sample in (p, q):
            if sample.ndim != 1 or len(sample) < 4 or np.isnan(sample).any():
                raise InputError(
                    f"a sample must hold 4 or more numbers and no NaN, got {sample.shape}; check the statistic"
                )
        self._confidence = confidence
        (p_choice, self._p), (q_choice, self._q) = np.array_split(p, 2), np.array_split(q, 2)
        self._thresholds = np.unique(
            np.concatenate([np.quantile(sample, levels, method="nearest") for sample in (p_choice, q_choice)])
        )
        self._bounds = self._both_ways(p_choice, q_choice, self._thresholds)

    def best(self, score: _Score) -> tuple[_Event, float]:
        """The event of the highest score on the first halves, and that score."""
        scores = score(*self._bounds)
        swapped, below, index = np.unravel_index(int(np.argmax(scores)), scores.shape)
        found = _Event(float(self._thresholds[index]), bool(below), bool(swapped))
        return found, float(scores[swapped, below, index])

    def tested(self, event: _Event, score: _Score) -> float:
        """Its score on the second halves."""
        bounds = self._both_ways(self._p, self._q, np.array([event.threshold]))
        return float(score(*bounds)[int(event.swapped), int(event.below), 0])

    def _both_ways(self, p: Floats, q: Floats, thresholds: Floats) -> tuple[Floats, Floats]:
        """Bounds for the events of P and Q, and swapped: (2, sides, thresholds) each."""
        p_hits, q_hits = _hits(p, thresholds), _hits(q, thresholds)
        ways = (
            _probabilities(p_hits, q_hits, len(p), len(q), self._confidence),
            _probabilities(q_hits, p_hits, len(q), len(p), self._confidence),
        )
        likely, unlikely = zip(*ways, strict=True)
        return np.stack(likely), np.stack(unlikely)


def _hits(sample: Floats, thresholds: Floats) -> Floats:
    """How many are >= (row 0) and <= (row 1) each threshold, shape (2, thresholds)."""
    ordered = np.sort(sample)
    return np.stack(
        [
            len(ordered) - np.searchsorted(ordered, thresholds, side="left"),
            np.searchsorted(ordered, thresholds, side="right"),
        ]
    )


def _probabilities(
    likely: Floats, unlikely: Floats, likely_runs: int, unlikely_runs: int, confidence: float
) -> tuple[Floats, Floats]:
    """From counts: P[E] is above the first and Q[E] below the second, both at `confidence` (Clopper, Pearson 1934)."""
    from scipy.special import betaincinv

    error = (1 - confidence) / 2
    low = np.where(likely > 0, betaincinv(np.maximum(likely, 1), likely_runs - likely + 1, error), 0.0)
    misses = unlikely_runs - unlikely
    high = np.where(misses > 0, betaincinv(unlikely + 1, np.maximum(misses, 1), 1 - error), 1.0)
    return low, high


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
    mechanism = exact_laws.calibrate_lattice_laplace(_COUNTS.shape[1], _EPSILON, _DELTA)

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
    mechanism = exact_laws.calibrate_discrete_gaussian(_COUNTS.shape[1], _EPSILON, _DELTA)

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
