"""Small ensembles of votes, and their neighbours, for tests."""

import numpy as np

from aggregator.ensembles.output import Ensemble, VoteTally
from aggregator.trial.feature_fitting import fit
from aggregator.trial.public_rows import PublicRows
from federation.contract.query import Submission
from federation.queries.votes import Training, VotesQuestion

STAGES = ("unit_norm",)


def ensemble(votes, rows, classes):
    """The aggregator's view of votes (P, N) on rows (N, d), which need not have norm 1."""
    public = PublicRows(fit(STAGES, rows), rows, STAGES)
    question = VotesQuestion(Training(public.feature_map, classes, {}, 0), rows)
    tally = VoteTally(question, len(votes))
    tally.add(Submission("votes", np.arange(len(votes)), {"votes": votes.astype(np.uint8)}))
    return Ensemble(public, tally)


def instance(seed, parties=9, rows=30, width=4, classes=3):
    """Random votes (P, N) on random rows (N, d) of norm 1."""
    random = np.random.default_rng(seed)
    points = random.normal(size=(rows, width))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return random.integers(0, classes, (parties, rows)), points


def replaced(votes, random):
    """The votes with those of the first party permuted among classes or rows."""
    other = votes.copy()
    other[0] = random.permutation(votes.max() + 1)[votes[0]] if random.integers(2) else random.permutation(votes[0])
    return other
