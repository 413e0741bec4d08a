import numpy as np
import pytest
from scipy.special import softmax
from support.synthetic import draw

from parties.party_data.cohort import Cohort, Held
from parties.party_data.isolation import ConstantGroup
from parties.training import linear
from parties.training.classifiers import fit

REGULARISATION = 0.01
COHORT = Cohort("{}", 0, 0, seed=1)


def holdings(parties, rows=6):
    """Parties of Gaussian classes; some have seen one class, some two, some three."""
    drawn = [draw(500 + party, 1 + (party * 5) % rows) for party in range(parties)]
    return Held(
        np.arange(parties),
        np.concatenate([points for points, _ in drawn]),
        np.concatenate([labels for _, labels in drawn]),
        np.array([len(labels) for _, labels in drawn]),
    )


def train(loaded, classes=3):
    groups, failures = linear.train(COHORT, loaded, classes, REGULARISATION)
    assert failures == {}
    return groups


def by_party(groups, answer):
    return {party: one for group in groups for party, one in zip(group.parties.tolist(), answer(group), strict=True)}


def chosen(loaded, parties):
    return loaded.part(np.isin(loaded.parties, parties))


def test_a_party_votes_as_if_it_were_trained_by_itself(rng):
    loaded, fresh = holdings(40), draw(7, 300)[0]
    groups = train(loaded)
    assert sorted(group.seen.shape[-1] if group.seen.ndim == 2 else 1 for group in groups) == [1, 2, 3]
    votes = by_party(groups, lambda group: group.votes(fresh))
    classifier = {"name": "logistic", "parameters": {"regularisation": REGULARISATION}}
    for party, (rows, labels) in enumerate(loaded.each()):
        np.testing.assert_array_equal(votes[party], fit(rows, labels, classifier, rng)(fresh))


@pytest.mark.parametrize("size", [1, 7, 64])
def test_answers_are_the_same_bits_in_every_cohort(size):
    loaded, fresh = holdings(70), np.concatenate([draw(7, 500)[0], np.zeros((3, 4))])
    votes = by_party(train(loaded), lambda group: group.votes(fresh))
    shares = by_party(train(loaded), lambda group: group.probabilities(fresh))
    for first in range(0, 70, size):
        groups = train(chosen(loaded, range(first, first + size)))
        for party, one in by_party(groups, lambda group: group.votes(fresh)).items():
            assert one.tobytes() == votes[party].tobytes()
        for party, one in by_party(groups, lambda group: group.probabilities(fresh)).items():
            assert one.tobytes() == shares[party].tobytes()


def test_answers_do_not_depend_on_blocks_of_rows():
    fresh = draw(7, 3000)[0]
    for group in train(holdings(40)):
        pieces = np.split(fresh, [1, 1000, 1001])
        np.testing.assert_array_equal(np.concatenate([group.votes(p) for p in pieces], axis=1), group.votes(fresh))
        blocks = [group.probabilities(piece) for piece in pieces]
        np.testing.assert_array_equal(np.concatenate(blocks, axis=1), group.probabilities(fresh))


def test_probabilities_are_the_softmax_over_the_seen_classes():
    fresh = draw(7, 200)[0]
    for group in train(holdings(40), classes=5):
        given = group.probabilities(fresh)
        assert given.shape == (len(group.parties), 200, 5)
        np.testing.assert_allclose(given.sum(axis=2), 1)
        np.testing.assert_array_equal(given.argmax(axis=2), group.votes(fresh))
        if isinstance(group, ConstantGroup):
            continue
        for party, seen in enumerate(group.seen):
            scores = fresh @ np.atleast_2d(group.weights[party]).T
            scores = np.hstack([np.zeros_like(scores), scores]) if scores.shape[1] == 1 else scores
            np.testing.assert_allclose(given[party][:, seen], softmax(scores, axis=1), atol=1e-12)
            assert not np.delete(given[party], seen, axis=1).any()


def test_when_training_together_fails_only_the_culprit_is_lost(monkeypatch):
    loaded, fresh = holdings(20), draw(7, 50)[0]
    whole = by_party(train(loaded), lambda group: group.votes(fresh))
    culprit = int(np.flatnonzero(loaded.counts > 4)[1])
    bad = list(loaded.each())[culprit][0][0]
    original = linear.fit_many

    def fit_many(rows, *arguments):
        if (rows == bad).all(axis=1).any():
            raise np.linalg.LinAlgError("cannot be minimised")
        return original(rows, *arguments)

    monkeypatch.setattr(linear, "fit_many", fit_many)
    groups, failures = linear.train(COHORT, loaded, 3, REGULARISATION)
    assert failures == {culprit: "LinAlgError: cannot be minimised"}
    votes = by_party(groups, lambda group: group.votes(fresh))
    assert sorted({*votes, culprit}) == list(range(20))
    for party, one in votes.items():
        np.testing.assert_array_equal(one, whole[party])


def test_large_features_of_one_party_leave_the_others_their_tolerance():
    loaded, fresh = holdings(12), draw(7, 50)[0]
    large = loaded.rows.copy()
    large[: loaded.counts[0]] *= 1e6
    spoilt = by_party(
        train(Held(loaded.parties, large, loaded.labels, loaded.counts)), lambda g: g.probabilities(fresh)
    )
    for party, shares in by_party(train(loaded), lambda group: group.probabilities(fresh)).items():
        if party > 0:
            assert spoilt[party].tobytes() == shares.tobytes()


def test_nobody_trains_nothing():
    assert linear.train(COHORT, chosen(holdings(3), []), 3, REGULARISATION) == ([], {})
