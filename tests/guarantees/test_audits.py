"""Audit what parties send, with one row for every claim: protocol, options, delta, and how likely the best event is.

Each row is audited twice on the protocol's worst pair of neighbours, by the party's own code. The claim must stand, and
the bound must come close to it. Its negative control must be refuted: the same claim where two units change, or where
half of the parties add their share of the noise.
"""

import math

import numpy as np
import pytest
from scipy import stats
from support.claims import CLAIMS, Claim
from support.worst_pairs import audited

RISK = 0.0005  # the audit's error for each of two probabilities, and ours: the confidence and the power are 0.999


def runs_for(claim: Claim) -> int:
    """Return how many runs show half of a claim with power 0.999.

    Half of the runs, n, test the event. The audit's bounds of its probabilities p and q are z standard deviations from
    what is counted, and this is z standard deviations from p and q at most, each but for the risk. So n is the least
    number with log((p - 2 z sqrt(p (1 - p) / n) - delta) / (q + 2 z sqrt(q (1 - q) / n))) > epsilon / 2.
    """
    (p, q), spread, n = claim.event, 2 * stats.norm.isf(RISK), 500.0
    while True:
        low = p - spread * math.sqrt(p * (1 - p) / n) - claim.delta
        high = q + spread * math.sqrt(q * (1 - q) / n)
        if low > 0 and math.log(low / high) > claim.least:
            return 2 * math.ceil(n)
        n *= 1.05


# Rows that take four CPU seconds and more, beside another row with the same protocol.
LONG = {
    "marginals, pure, replaced", "marginals, pure shares", "labels, gaussian", "counts, dirichlet_shifted",
    "bag sums", "bag sums, few noisy", "bag sums, gaussian weights",
    "secret weights",  # `test_bag_sum_audits` has them by themselves, and `test_label_party_audits` half of their noise
}  # fmt: skip
each = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in LONG else ()) for name in CLAIMS]
)


@each
def test_a_claim_stands_and_is_nearly_reached(name: str) -> None:
    claim = CLAIMS[name]
    result = audited(claim.pair(), runs_for(claim))
    assert (result.claimed, result.delta) == (pytest.approx(claim.epsilon, rel=1e-6), claim.delta)
    assert claim.least < result.lower_bound <= result.claimed


@each
def test_a_claim_about_two_changes_is_refuted(name: str) -> None:
    """Two labels, or four with random weights or Gaussian noise, move sums as one does with half the noise it needs."""
    claim = CLAIMS[name]
    worst = claim.pair(units=2)
    changed = 1 if claim.options.get("trust") == "secure" else claim.changed  # of shares, half are missing
    assert getattr(worst.worst, "changed", changed) == changed
    assert not audited(worst, runs_for(claim)).passed


@pytest.mark.parametrize("name", ["counts, auto", "label sums, gaussian", "marginals, pure, replaced"])
def test_the_formula_gives_the_stated_power(name: str) -> None:
    """Of 5,000 audits that count the event of a claim, one in a thousand at most misses the bound."""
    claim = CLAIMS[name]
    n, rng = runs_for(claim) // 2, np.random.default_rng(1)
    p, q = (rng.binomial(n, probability, 5000) for probability in claim.event)
    low, high = stats.beta.isf(1 - RISK, p, n - p + 1), stats.beta.isf(RISK, q + 1, n - q)
    assert (np.log(np.maximum(low - claim.delta, 1e-9) / high) <= claim.least).sum() <= 5
