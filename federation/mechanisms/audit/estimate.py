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

_THRESHOLDS = 200  # candidate thresholds per sample

_Score = Callable[[np.ndarray, np.ndarray, int, int], np.ndarray]  # (hits, hits, runs, runs) of P and Q, or swapped


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
    sample_p: Callable[[int], np.ndarray],
    sample_q: Callable[[int], np.ndarray],
    statistic: Callable[[np.ndarray], np.ndarray],
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
    """
    bound, event = epsilon_lower_bound(
        statistic(sample_p(runs)), statistic(sample_q(runs)), delta=delta, confidence=confidence
    )
    return AuditResult(bound, epsilon, delta, confidence, runs, event)


def epsilon_lower_bound(
    p: np.ndarray, q: np.ndarray, *, delta: float = 0.0, confidence: float = 0.99
) -> tuple[float, str]:
    """A lower confidence bound >= 0 on epsilon from samples of a scalar statistic, and the event behind it.

    (epsilon, delta)-privacy implies P[E] <= e^epsilon Q[E] + delta for every event E. The first half of each
    sample chooses E among threshold events in both directions; the second half gives Clopper-Pearson bounds
    for P[E] and Q[E], each at half of the error probability, so the confidence needs no correction for the
    choice.

    `p`, `q`: shape (n,) with n >= 4, no NaN. Raises `InputError` otherwise, or for confidence outside (0, 1)
    or delta outside [0, 1).
    """
    if not (0 < confidence < 1 and 0 <= delta < 1):
        raise InputError(f"confidence must lie in (0, 1) and delta in [0, 1), got {confidence} and {delta}")

    def score(likely: np.ndarray, unlikely: np.ndarray, likely_runs: int, unlikely_runs: int) -> np.ndarray:
        return _log_ratio(likely, unlikely, likely_runs, unlikely_runs, delta, confidence)

    return _best_event(p, q, score, np.linspace(0, 1, _THRESHOLDS))


def delta_lower_bound(p: np.ndarray, q: np.ndarray, *, epsilon: float, confidence: float = 0.99) -> tuple[float, str]:
    """A lower confidence bound >= 0 on delta at `epsilon`, and the event behind it; the rest as `epsilon_lower_bound`.

    delta >= P[E] - e^epsilon Q[E] for every event E. Where delta is not small this tells more than a bound on epsilon.
    Raises `InputError` for epsilon < 0 too.
    """
    if not (0 < confidence < 1 and math.isfinite(epsilon) and epsilon >= 0):
        raise InputError(f"confidence must lie in (0, 1) and epsilon be >= 0, got {confidence} and {epsilon}")

    def score(likely: np.ndarray, unlikely: np.ndarray, likely_runs: int, unlikely_runs: int) -> np.ndarray:
        low, high = _probabilities(likely, unlikely, likely_runs, unlikely_runs, confidence)
        return low - math.exp(epsilon) * high

    # The events that show a small delta are rare.
    tail = np.geomspace(1e-5, 1 / _THRESHOLDS, _THRESHOLDS)
    return _best_event(p, q, score, np.concatenate([tail, np.linspace(0, 1, _THRESHOLDS), 1 - tail]))


def _best_event(p: np.ndarray, q: np.ndarray, score: _Score, levels: np.ndarray) -> tuple[float, str]:
    """The score on the second halves, at least 0, of the event at these quantiles that looks best on the first."""
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


def _hits(sample: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """How many are >= (row 0) and <= (row 1) each threshold, shape (2, thresholds)."""
    ordered = np.sort(sample)
    return np.stack(
        [
            len(ordered) - np.searchsorted(ordered, thresholds, side="left"),
            np.searchsorted(ordered, thresholds, side="right"),
        ]
    )


def _log_ratio(
    likely: np.ndarray,
    unlikely: np.ndarray,
    likely_runs: int,
    unlikely_runs: int,
    delta: float,
    confidence: float,
) -> np.ndarray:
    """ln((lower bound of P[E] - delta) / upper bound of Q[E]) from counts; -inf where nothing is left."""
    low, high = _probabilities(likely, unlikely, likely_runs, unlikely_runs, confidence)
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(low - delta, 0.0)) - np.log(high)


def _probabilities(
    likely: np.ndarray, unlikely: np.ndarray, likely_runs: int, unlikely_runs: int, confidence: float
) -> tuple[np.ndarray, np.ndarray]:
    """From counts: P[E] is above the first and Q[E] below the second, both at `confidence` (Clopper, Pearson 1934)."""
    from scipy.special import betaincinv

    error = (1 - confidence) / 2
    low = np.where(likely > 0, betaincinv(np.maximum(likely, 1), likely_runs - likely + 1, error), 0.0)
    misses = unlikely_runs - unlikely
    high = np.where(misses > 0, betaincinv(unlikely + 1, np.maximum(misses, 1), 1 - error), 1.0)
    return low, high
