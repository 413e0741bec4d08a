"""Statistical lower bounds on epsilon, or on delta, from many runs of a mechanism on two neighbouring inputs.

A claim that lies below the bound is refuted, at the stated confidence; a correct mechanism stays above it
except with probability 1 - confidence. The bound cannot prove a claim: proofs do.

No feasible number of runs shows a delta of 1e-6. But a mechanism claims a whole privacy curve: where noise is Gaussian
and epsilon a quarter of the stated one, delta is some hundredths, and there even a little missing noise is seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import require_delta
from federation.contract.question import Curve
from federation.mechanisms.noise import gaussian
from federation.mechanisms.noise.checks import require_epsilon_from_zero, require_positive, require_share, require_whole
from federation.numerics.arrays import Floats, numbers

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
