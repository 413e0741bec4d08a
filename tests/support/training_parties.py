"""Cohorts of the synthetic parties, and what they are asked to train."""

from aggregator.trial.feature_fitting import fit
from federation.contract.plugins import Reference
from federation.queries.votes import Training
from parties.party_data.cohort import Cohort

LOGISTIC = {"name": "logistic", "parameters": {"regularisation": 1e-3}}


def cohort(first=0, count=5, seed=1, **arguments):
    return Cohort(Reference("support.synthetic:Parties", arguments).to_json(), first, count, seed)


def by_party(submission):
    return dict(zip(submission.parties.tolist(), submission.arrays["votes"], strict=True))


def make_training(public, trial=0):
    return Training(fit([{"whiten": 3}, "unit_norm"], public.rows), 3, LOGISTIC, trial)
