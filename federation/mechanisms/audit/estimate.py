"""Statistical lower bounds on epsilon, or on delta, from many runs of a mechanism on two neighbouring inputs.

A claim that lies below the bound is refuted, at the stated confidence; a correct mechanism stays above it
except with probability 1 - confidence. The bound cannot prove a claim: proofs do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import require_delta
from federation.mechanisms.noise.checks import require_epsilon_from_zero, require_share, require_whole
from federation.numerics.arrays import Floats, numbers

_LARGE = 700.0  # an epsilon whose exponential is a double
_THRESHOLDS = 200  # candidate thresholds per sample

_Score = Callable[[Floats, Floats, int, int], Floats]  # (hits, hits, runs, runs) of P and Q, or swapped


@dataclass(frozen=True)
class AuditResult:
    """What `runs` runs a side show about a claim of (claimed, delta)-privacy.

    `lower_bound` <= the true epsilon at `delta` with probability `confidence`; `event` is the distinguishing
    event.
    """

    lower_bound: float
    claimed: float
    delta: float
    confidence: float
    runs: int
    event: str

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
) -> AuditResult:
    """Audits the claim (epsilon, delta) with `runs` outputs of each neighbour.

    `sample_p(n)` and `sample_q(n)` return n independent outputs along the first axis; `statistic` maps
    outputs to scalars of shape (n,): the likelihood ratio is the most powerful one (Neyman, Pearson). Raises
    `InputError` as `epsilon_lower_bound` does.

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
    bound, event = epsilon_lower_bound(
        statistic(sample_p(runs)), statistic(sample_q(runs)), delta=delta, confidence=confidence
    )
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

    def score(likely: Floats, unlikely: Floats, likely_runs: int, unlikely_runs: int) -> Floats:
        low, high = _probabilities(likely, unlikely, likely_runs, unlikely_runs, confidence)
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(low - delta, 0.0)) - np.log(high)

    return _best_event(p, q, score, np.linspace(0, 1, _THRESHOLDS))


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

    def score(likely: Floats, unlikely: Floats, likely_runs: int, unlikely_runs: int) -> Floats:
        low, high = _probabilities(likely, unlikely, likely_runs, unlikely_runs, confidence)
        return low - math.exp(min(epsilon, _LARGE)) * high

    # The events that show a small delta are rare.
    tail = np.geomspace(1e-5, 1 / _THRESHOLDS, _THRESHOLDS)
    return _best_event(p, q, score, np.concatenate([tail, np.linspace(0, 1, _THRESHOLDS), 1 - tail]))


def _best_event(p: Floats, q: Floats, score: _Score, levels: Floats) -> tuple[float, str]:
    """The score on the second halves, at least 0, of the event at these quantiles that looks best on the first."""
    p, q = numbers(p, "a sample"), numbers(q, "a sample")
    for sample in (p, q):
        if sample.ndim != 1 or len(sample) < 4 or np.isnan(sample).any():
            raise InputError(
                f"a sample must hold 4 or more numbers and no NaN, got {sample.shape}; check the statistic"
            )
    (p_choice, p_test), (q_choice, q_test) = np.array_split(p, 2), np.array_split(q, 2)
    thresholds = np.unique(
        np.concatenate([np.quantile(sample, levels, method="nearest") for sample in (p_choice, q_choice)])
    )
    p_hits, q_hits = _hits(p_choice, thresholds), _hits(q_choice, thresholds)
    sizes = len(p_choice), len(q_choice)
    bounds = np.stack([score(p_hits, q_hits, *sizes), score(q_hits, p_hits, *sizes[::-1])])
    swapped, side, index = np.unravel_index(int(np.argmax(bounds)), bounds.shape)
    threshold = thresholds[index]
    likely, unlikely = (q_test, p_test) if swapped else (p_test, q_test)
    bound = score(
        _hits(likely, threshold[None])[side], _hits(unlikely, threshold[None])[side], len(likely), len(unlikely)
    )
    event = f"statistic {'<=' if side else '>='} {threshold:.6g}, likelier under {'Q' if swapped else 'P'}"
    return max(0.0, float(bound[0])), event


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
