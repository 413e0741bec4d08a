import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.tally import VoteTally
from federation.errors import InputError
from federation.features import fit
from federation.messages import Submission, Training, VotesQuestion

ROWS = np.ones((50, 2))


def question(rows=50, classes=3):
    points = np.ones((rows, 2))
    return VotesQuestion(Training(fit(["unit_norm"], points), classes, {}, 0), points)


def submission(votes, parties):
    return Submission("votes", np.asarray(parties), {"votes": np.asarray(votes, dtype=np.uint8)})


@settings(derandomize=True, deadline=None, max_examples=40)
@given(seed=st.integers(0, 999), parties=st.integers(1, 20), pieces=st.integers(1, 5), classes=st.integers(2, 5))
def test_counts_do_not_depend_on_how_votes_arrive(seed, parties, pieces, classes):
    random = np.random.default_rng(seed)
    votes = random.integers(0, classes, (parties, 50))
    tally = VoteTally(question(classes=classes), parties)
    for ids in np.array_split(random.permutation(parties), pieces):
        assert tally.add(submission(votes[ids].reshape(-1, 50), ids.astype(np.int64))) == {}
    expected = np.stack([(votes == label).sum(axis=0) for label in range(classes)], axis=1)
    np.testing.assert_array_equal(tally.counts, expected)
    np.testing.assert_allclose(tally.shares(), expected / parties)
    np.testing.assert_array_equal(tally.majority().argmax(axis=1), expected.argmax(axis=1))


def test_a_missing_party_is_a_uniform_vote():
    tally = VoteTally(question(), 4)
    tally.add(submission(np.zeros((3, 50)), [0, 1, 2]))
    np.testing.assert_allclose(tally.shares()[0], [3 / 4 + 1 / 12, 1 / 12, 1 / 12])
    np.testing.assert_allclose(tally.shares().sum(axis=1), 1)


def test_ties_go_to_the_smallest_class():
    tally = VoteTally(question(), 2)
    tally.add(submission([[2] * 50, [1] * 50], [0, 1]))
    assert (tally.majority().argmax(axis=1) == 1).all()


def test_a_duplicate_counts_once():
    tally = VoteTally(question(), 4)
    tally.add(submission(np.zeros((2, 50)), [0, 1]))
    refused = tally.add(submission(np.ones((2, 50)), [1, 2]))
    assert list(refused) == [1]
    assert "twice" in refused[1]
    assert tally.answered == 3
    assert tally.counts[0].tolist() == [2, 1, 0]


def test_a_malformed_vote_costs_its_own_party_only():
    tally = VoteTally(question(), 4)
    votes = np.zeros((2, 50))
    votes[1, 7] = 3
    refused = tally.add(submission(votes, [0, 1]))
    assert "outside 0..2" in refused[1]
    assert tally.counts.sum() == 50


def test_an_undeclared_party_is_refused():
    tally = VoteTally(question(), 4)
    assert "declared" in tally.add(submission(np.zeros((1, 50)), [4]))[4]
    assert tally.answered == 0


def test_a_majority_of_nobody_is_an_error():
    with pytest.raises(InputError, match="no party"):
        VoteTally(question(), 4).majority()


def peak_of_counting(parties):
    asked, cohort = question(rows=2000), 100
    votes = np.zeros((cohort, 2000), dtype=np.uint8)
    tracemalloc.start()
    tally = VoteTally(asked, parties)
    for first in range(0, min(parties, 2000), cohort):
        tally.add(submission(votes, np.arange(first, first + cohort)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def test_memory_grows_by_a_byte_per_party_not_by_its_votes():
    small, large = peak_of_counting(1000), peak_of_counting(100_000)
    assert large - small < 2 * 99_000  # votes of one party alone are 2,000 bytes
