"""The worst pair of neighbouring vote sets for a variant: what an end-to-end audit runs the aggregator on."""

from __future__ import annotations

import numpy as np

from aggregator.ensemble import Ensemble
from aggregator.public import PublicRows
from aggregator.tally import VoteTally
from federation.features import fit
from federation.messages import Submission, Training, VotesQuestion

PARTIES = 5  # odd, so that one party can tip a majority


def neighbours(perturb: str) -> tuple[Ensemble, Ensemble]:
    """Two ensembles of 5 parties and 2 classes that differ in one party's votes only, all of them flipped.

    The other parties are split evenly, so the flipped votes decide every majority. `statistic`: two features
    whose span holds the constant, which the whitened statistic then moves by its whole sensitivity. `output`: one
    auxiliary row, on which a minimiser moves furthest.
    """
    rows = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2) if perturb == "statistic" else np.ones((1, 1))
    public = PublicRows(fit(["unit_norm"], rows), rows)
    return _ensemble(public, 0), _ensemble(public, 1)


def _ensemble(public: PublicRows, flipped: int) -> Ensemble:
    question = VotesQuestion(Training(public.feature_map, 2, {}, 0), public.rows)
    tally = VoteTally(question, PARTIES)
    votes = np.tile(np.arange(PARTIES, dtype=np.uint8)[:, None] % 2, (1, len(public.rows)))
    votes[0] = flipped
    tally.add(Submission(question.kind, np.arange(PARTIES), {"votes": votes}))
    return Ensemble(public, tally)
