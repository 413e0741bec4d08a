"""Lemma 2 and Theorem 4 of Hamm et al. 2016: how risks come near their limits as parties get more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from aggregator.contract.expectations import excess_risk_bound
from federation.contract.randomness import NoiseBits
from federation.mechanisms.accounting.sensitivity import majority_vote, soft_vote
from federation.mechanisms.noise.additive import calibrate
from federation.numerics.rows import Floats
from scenarios.papers.hamm.digit_votes import PUBLIC, digit_votes, minimiser
from scenarios.reproductions.paper import Observation

SIZES = (101, 301, 901)  # odd, so that no vote is tied
OTHERS = 2002  # parties whose shares of votes stand for those of infinitely many
REGULARISATION, EPSILON = 0.01, 1.0
SPLITS, DRAWS = 6, 20
_SEED = 2016


def settings() -> list[str]:
    """A row of the table for each number of parties."""
    return [f"{parties} parties" for parties in SIZES]


def risk(weights: Floats, rows: Floats, shares: Floats) -> Floats:
    """Mean logistic loss of weights (..., d) on rows (N, d) with shares (N,) of the class 1; useless ones have ln 2."""
    scores = weights @ rows.T
    return np.asarray((np.logaddexp(0.0, scores) - shares * scores).mean(axis=-1))


def risks(quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """Of even and odd digits, at epsilon 1 and lam .01: means over noise, beyond the least risk there is.

    A risk is that of the shares of other parties' votes on rows that nobody learned from. A quick run has one split.
    """
    for split in range(1 if quick else SPLITS):
        known = digit_votes(SIZES[-1] + OTHERS, REGULARISATION, split)
        public, tested = known.votes(known.public), known.votes(known.tested)
        limit = tested[:, SIZES[-1] :].mean(axis=1)
        best = minimiser(known.tested, limit, REGULARISATION)
        least = risk(best, known.tested, limit)
        for setting, parties in zip(settings(), SIZES, strict=True):
            shares = public[:, :parties].mean(axis=1)
            bits = NoiseBits(_SEED, setting, trial=split)
            labels = {"soft": (soft_vote, shares), "vote": (majority_vote, (shares > 0.5).astype(np.float64))}
            for series, (sensitivity, chosen) in labels.items():
                reach = sensitivity("published", regularisation=REGULARISATION, parties=parties, classes=2)
                noise = calibrate("pure", sensitivity=reach, dimension=len(best), epsilon=EPSILON)
                noisy = noise.release(minimiser(known.public, chosen, REGULARISATION), bits, DRAWS)
                beyond = float(risk(noisy, known.tested, limit).mean() - least)
                yield Observation(setting, series, "published", "", split, beyond)
            from_limit = abs(float(risk(best, known.tested, tested[:, :parties].mean(axis=1)) - least))
            yield Observation(setting, "gap of Lemma 2", "published", "", split, from_limit)
            bound = excess_risk_bound(
                features=len(best),
                regularisation=REGULARISATION,
                parties=parties,
                epsilon=EPSILON,
                rows=PUBLIC,
                best_norm=float(np.linalg.norm(best)),
            )
            yield Observation(setting, "bound for soft", "published", "", split, bound)
