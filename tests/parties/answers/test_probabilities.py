import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.trial.feature_fitting import fit
from federation.contract.plugins import Reference
from federation.contract.query import check_submission
from federation.queries.votes import BALLOT_PARTS, ProbabilitiesQuestion, Training, VotesQuestion
from parties.party_data.cohort import Cohort
from parties.responses import votes
from parties.responses import votes as ballots
from parties.responses.votes import whole_parts
from parties.training.training import trained

LOGISTIC = {"name": "logistic", "parameters": {"regularisation": 1e-3}}


def cohort(first=0, count=5, **arguments):
    return Cohort(Reference("support.synthetic:Parties", arguments).to_json(), first, count, seed=1)


def question(public, classifier=LOGISTIC, trial=0):
    feature_map = fit([{"whiten": 3}, "unit_norm"], public.rows)
    return ProbabilitiesQuestion(Training(feature_map, 3, classifier, trial), feature_map.transform(public.rows))


def all_parts(submission, rows):
    """Parts (P, N, 3) of every class."""
    given = submission.arrays["parts"].reshape(-1, rows, 2).astype(int)
    return np.concatenate([given, BALLOT_PARTS - given.sum(axis=2, keepdims=True)], axis=2)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(seed=st.integers(0, 10**6), classes=st.integers(1, 30), total=st.integers(1, 300), sharpness=st.floats(0, 50))
def test_parts_add_up_exactly_and_lie_within_one_of_the_share(seed, classes, total, sharpness):
    shares = np.exp(sharpness * np.random.default_rng(seed).normal(size=(20, classes)))
    shares /= shares.sum(axis=1, keepdims=True)
    parts = whole_parts(shares, total)
    assert (parts >= 0).all()
    assert (parts.sum(axis=1) == total).all()
    assert (np.abs(parts - total * shares) < 1 + 1e-9).all()
    larger = shares[:, :, None] > shares[:, None, :] + 1e-9
    assert (parts[:, :, None] >= parts[:, None, :])[larger].all()  # a larger share never gets fewer parts


def test_leftover_parts_go_to_the_largest_remainders_and_to_the_first_among_equals():
    assert whole_parts(np.array([0.15, 0.35, 0.5]), 10).tolist() == [2, 3, 5]
    assert whole_parts(np.full(4, 0.25), 255).tolist() == [64, 64, 64, 63]
    assert whole_parts(np.array([[0.0, 1.0], [1.0, 0.0]]), 255).tolist() == [[0, 255], [255, 0]]


def test_a_ballot_is_the_rounded_distribution_of_the_partys_own_classifier(public):
    asked = question(public)
    submission = ballots.respond_probabilities(cohort(), asked)
    check_submission(asked, submission)
    parts = all_parts(submission, len(asked.rows))
    for group in trained(cohort(), asked.training).groups:
        for party, expected in zip(group.parties, group.probabilities(asked.rows), strict=True):
            at = int(np.flatnonzero(submission.parties == party)[0])
            np.testing.assert_allclose(parts[at], expected * BALLOT_PARTS, atol=1 + 1e-9)


def test_ballots_are_the_same_bits_whoever_shares_the_cohort_and_whatever_the_tiles(public, monkeypatch):
    asked = question(public)
    whole = ballots.respond_probabilities(cohort(0, 6), asked)
    monkeypatch.setattr(ballots, "_TILE_ENTRIES", 21)
    for party in range(6):
        alone = ballots.respond_probabilities(cohort(party, 1), asked)
        at = int(np.flatnonzero(whole.parties == party)[0])
        assert alone.arrays["parts"].tobytes() == whole.arrays["parts"][at].tobytes()


def test_the_most_probable_class_is_the_vote(public):
    asked = question(public)
    submission = ballots.respond_probabilities(cohort(), asked)
    labels = votes.respond_votes(cohort(), VotesQuestion(asked.training, asked.rows))
    parts = all_parts(submission, len(asked.rows))
    ordered = np.sort(parts, axis=2)
    clear = ordered[..., -1] > ordered[..., -2] + 2
    assert clear.mean() > 0.9
    np.testing.assert_array_equal(submission.parties, labels.parties)
    assert (parts.argmax(axis=2) == labels.arrays["votes"])[clear].all()


def test_a_classifier_without_probabilities_is_each_partys_own_failure(public):
    asked = question(public, {"name": "LinearSVC", "parameters": {}}, trial=3)
    submission = ballots.respond_probabilities(cohort(0, 2), asked)
    assert submission.arrays["parts"].shape == (0, 2 * len(asked.rows))
    assert all("no probabilities" in cause for cause in submission.failures.values())
    assert sorted(submission.failures) == [0, 1]


def test_a_broken_party_costs_no_other(public):
    asked = question(public, trial=4)
    spoilt = ballots.respond_probabilities(cohort(0, 4, broken=[2]), asked)
    assert sorted(spoilt.parties.tolist()) == [0, 1, 3]
    assert list(spoilt.failures) == [2]


@pytest.mark.parametrize("classes", [2, 3])
def test_a_ballot_has_one_byte_per_row_and_class_but_one(public, classes):
    feature_map = fit(["unit_norm"], public.rows)
    asked = ProbabilitiesQuestion(Training(feature_map, classes, LOGISTIC, 0), public.rows)
    assert asked.fields()["parts"].dtype == np.uint8
    assert asked.fields()["parts"].shape == (len(public.rows) * (classes - 1),)
