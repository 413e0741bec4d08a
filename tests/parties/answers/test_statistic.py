import numpy as np
import pytest

from aggregator.ensembles.share_answers import share_norm, share_question
from aggregator.world.fitting import fit
from aggregator.world.public_rows import PublicRows
from federation.contract.reference import Reference
from federation.contract.submission import check_submission
from federation.numerics.contrasts import contrasts
from federation.questions.votes import Training
from parties.answers import statistic as shares
from parties.holdings.cohort import Cohort
from parties.training.training import trained

LOGISTIC = {"name": "logistic", "parameters": {"regularisation": 1e-3}}


def cohort(first=0, count=5, **arguments):
    return Cohort(Reference("support.synthetic:Parties", arguments).to_json(), first, count, seed=1)


def question(public, ballot="labels", trial=0):
    feature_map = fit([{"whiten": 3}, "unit_norm"], public.rows)
    rows = PublicRows(feature_map, feature_map.transform(public.rows))
    return share_question(Training(feature_map, 3, LOGISTIC, trial), rows, rows.whitening, ballot), rows.whitening


@pytest.mark.parametrize("ballot", ["labels", "probabilities"])
def test_a_share_is_what_the_statistic_takes_from_the_partys_votes(public, ballot):
    asked, coordinates = question(public, ballot)
    submission = shares.answer(cohort(), asked)
    check_submission(asked, submission)
    basis = contrasts(3)
    for group in trained(cohort(), asked.training).groups:
        given = np.eye(3)[group.votes(asked.rows)] if ballot == "labels" else group.probabilities(asked.rows)
        for party, vote in zip(group.parties, given, strict=True):
            expected = basis.T @ vote.T @ coordinates.rows / len(asked.rows)
            at = int(np.flatnonzero(submission.parties == party)[0])
            np.testing.assert_allclose(submission.arrays["statistic"][at], expected, atol=1e-14)


@pytest.mark.parametrize("ballot", ["labels", "probabilities"])
def test_no_share_is_longer_than_the_public_norm(public, ballot):
    asked, coordinates = question(public, ballot)
    sent = shares.answer(cohort(0, 40), asked).arrays["statistic"]
    assert np.linalg.norm(sent.reshape(40, -1), axis=1).max() <= share_norm(coordinates, 3)
    assert not asked.fields()["statistic"].invalid(sent).any()


@pytest.mark.parametrize("ballot", ["labels", "probabilities"])
def test_shares_are_the_same_bits_whoever_shares_the_cohort(public, ballot, monkeypatch):
    monkeypatch.setattr("parties.answers.probabilities._TILE_ENTRIES", 70)  # several tiles of rows
    asked, _ = question(public, ballot)
    whole = shares.answer(cohort(0, 6), asked)
    for party in range(6):
        alone = shares.answer(cohort(party, 1), asked)
        at = int(np.flatnonzero(whole.parties == party)[0])
        assert alone.arrays["statistic"][0].tobytes() == whole.arrays["statistic"][at].tobytes()


def test_a_broken_party_costs_no_other(public):
    asked, _ = question(public, trial=4)
    spoilt = shares.answer(cohort(0, 4, broken=[2]), asked)
    assert sorted(spoilt.parties.tolist()) == [0, 1, 3]
    assert list(spoilt.failures) == [2]
    assert spoilt.arrays["statistic"].shape == (3, 2, 3)
