from dataclasses import replace

import numpy as np
import pytest

from aggregator.ensembles.votes import share_norm, share_question
from aggregator.trial.feature_fitting import fit
from aggregator.trial.public_rows import PublicRows
from federation.contract.errors import InputError
from federation.contract.plugins import Reference
from federation.contract.query import check_submission
from federation.numerics.rows import contrasts
from federation.queries.votes import StatisticQuestion, Training
from parties.party_data.cohort import Cohort, Holdings
from parties.party_data.isolation import ConstantGroup
from parties.responses import votes as shares
from parties.training.training import trained

LOGISTIC = {"name": "logistic", "parameters": {"regularisation": 1e-3}}


def cohort(first=0, count=5, **arguments):
    return Cohort(Reference("support.synthetic:Parties", arguments).to_json(), first, count, seed=1)


def question(public, ballot="labels", trial=0, share="raw", classifier=LOGISTIC):
    feature_map = fit([{"whiten": 3}, "unit_norm"], public.rows)
    rows = PublicRows(feature_map, feature_map.transform(public.rows))
    training = Training(feature_map, 3, classifier, trial)
    return share_question(training, rows, rows.whitening, ballot, share), rows.whitening


@pytest.mark.parametrize("ballot", ["labels", "probabilities"])
def test_a_share_is_what_the_statistic_takes_from_the_partys_votes(public, ballot):
    asked, coordinates = question(public, ballot)
    submission = shares.respond_statistic(cohort(), asked)
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
    sent = shares.respond_statistic(cohort(0, 40), asked).arrays["statistic"]
    assert np.linalg.norm(sent.reshape(40, -1), axis=1).max() <= share_norm(coordinates, 3)
    assert not asked.fields()["statistic"].invalid(sent).any()


@pytest.mark.parametrize("ballot", ["labels", "probabilities"])
def test_shares_are_the_same_bits_whoever_shares_the_cohort(public, ballot, monkeypatch):
    monkeypatch.setattr("parties.responses.votes._TILE_ENTRIES", 70)  # several tiles of rows
    asked, _ = question(public, ballot)
    whole = shares.respond_statistic(cohort(0, 6), asked)
    for party in range(6):
        alone = shares.respond_statistic(cohort(party, 1), asked)
        at = int(np.flatnonzero(whole.parties == party)[0])
        assert alone.arrays["statistic"][0].tobytes() == whole.arrays["statistic"][at].tobytes()


def test_a_broken_party_costs_no_other(public):
    asked, _ = question(public, trial=4)
    spoilt = shares.respond_statistic(cohort(0, 4, broken=[2]), asked)
    assert sorted(spoilt.parties.tolist()) == [0, 1, 3]
    assert list(spoilt.failures) == [2]
    assert spoilt.arrays["statistic"].shape == (3, 2, 3)


def unit(share):
    """A share of norm 1, written out."""
    norm = np.linalg.norm(share)
    return share / norm if norm > 1e-9 else np.zeros_like(share)


def expected_share(group, party, asked, coordinates, share):
    """From the definition: means over public rows of probabilities and scores, in contrasts."""
    basis, rows = contrasts(3), asked.rows
    given = group.probabilities(rows)[party]
    linear = hasattr(group, "weights")
    scores = rows @ group.weights[party].T if linear else np.log(given + 0.01)
    both = [unit(basis.T @ known.T @ coordinates.rows / len(rows)) for known in (given, scores)]
    return {"probabilities": both[0], "scores": both[1], "both": unit(both[0] + both[1])}[share]


CLASSIFIERS = {
    "logistic": LOGISTIC,
    "tree": {"name": "DecisionTreeClassifier", "parameters": {"max_depth": 2}},
    "bayes": {"name": "GaussianNB", "parameters": {}},
}


@pytest.mark.parametrize("share", ["both", "probabilities", "scores"])
@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_a_unit_share_is_the_direction_of_probabilities_and_scores(public, share, classifier):
    asked, coordinates = question(public, share=share, classifier=CLASSIFIERS[classifier])
    submission = shares.respond_statistic(cohort(), asked)
    check_submission(asked, submission)
    assert not asked.fields()["statistic"].invalid(submission.arrays["statistic"]).any()
    found = dict(zip(submission.parties.tolist(), submission.arrays["statistic"], strict=True))
    for group in trained(cohort(), asked.training).groups:
        for place, party in enumerate(group.parties.tolist()):
            expected = expected_share(group, place, asked, coordinates, share)
            np.testing.assert_allclose(found[party], expected, atol=1e-12)
            assert np.linalg.norm(found[party]) == pytest.approx(1, abs=1e-12)


def test_a_classifier_without_probabilities_sends_the_direction_of_its_votes(public):
    asked, coordinates = question(public, share="both", classifier={"name": "RidgeClassifier", "parameters": {}})
    submission = shares.respond_statistic(cohort(), asked)
    assert len(submission.parties) == 5
    for group in trained(cohort(), asked.training).groups:
        [party] = group.parties
        votes = np.eye(3)[group.votes(asked.rows)[0]]
        at = int(np.flatnonzero(submission.parties == party)[0])
        expected = unit(contrasts(3).T @ votes.T @ coordinates.rows)
        np.testing.assert_allclose(submission.arrays["statistic"][at], expected, atol=1e-12)


@pytest.mark.parametrize("share", ["both", "probabilities", "scores"])
def test_unit_shares_are_the_same_bits_whoever_shares_the_cohort(public, share, monkeypatch):
    monkeypatch.setattr("parties.responses.votes._TILE_ENTRIES", 70)
    monkeypatch.setattr("parties.responses.votes._TOGETHER", 4)
    asked, _ = question(public, share=share)
    whole = shares.respond_statistic(cohort(0, 6), asked)
    for party in range(6):
        alone = shares.respond_statistic(cohort(party, 1), asked)
        at = int(np.flatnonzero(whole.parties == party)[0])
        assert alone.arrays["statistic"][0].tobytes() == whole.arrays["statistic"][at].tobytes()


class OneClass:
    """Parties that hold one row each, of one class."""

    def holdings(self, party):
        return Holdings(party, np.array([[1.0, 0.0, float(party), 0.5]]), np.array([party % 3]))


def test_every_party_is_trained_over_all_classes_though_it_has_seen_one(public):
    asked, _ = question(public, share="both")
    one_class = Cohort(Reference(f"{__name__}:OneClass", {}).to_json(), 0, 5, seed=1)
    [group] = trained(one_class, asked.training).groups
    assert group.weights.shape[1] == 3
    sent = shares.respond_statistic(one_class, asked).arrays["statistic"]
    np.testing.assert_allclose(np.linalg.norm(sent.reshape(5, -1), axis=1), 1)
    raw, _ = question(public)
    assert all(isinstance(found, ConstantGroup) for found in trained(one_class, raw.training).groups)


def test_shares_without_a_direction_are_zero():
    found = shares._direction(np.array([[[1e-10, 0.0]], [[np.nan, 1.0]], [[np.inf, 1.0]], [[1e200, 1e200]]]))
    np.testing.assert_array_equal(found[:3], 0)
    np.testing.assert_allclose(found[3], np.full((1, 2), np.sqrt(0.5)))


def test_shares_of_norm_one_need_classifiers_over_all_classes(public):
    asked, coordinates = question(public)
    with pytest.raises(InputError, match="over: declared"):
        StatisticQuestion(asked.training, asked.rows, coordinates.rows, 1.0, "probabilities", "both")


def test_rows_that_come_again_count_as_often_as_they_are_there(public):
    asked, _ = question(public, share="probabilities")
    again = np.arange(300) % 7
    often = replace(asked, rows=asked.rows[again], coordinates=asked.coordinates[again])
    few, summed = often.summed
    assert len(few) == 7
    counts = np.bincount(again)[:, None]
    np.testing.assert_allclose(summed, counts * asked.coordinates[:7], rtol=1e-13)
    once = replace(asked, rows=few, coordinates=summed)
    found, expected = (shares.respond_statistic(cohort(), one).arrays["statistic"] for one in (often, once))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
