import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.ensembles import output as tally_module
from aggregator.ensembles.output import ProbabilityTally, VoteTally
from aggregator.trial.feature_fitting import fit
from federation.contract.errors import InputError
from federation.contract.query import Submission
from federation.queries.votes import BALLOT_PARTS, ProbabilitiesQuestion, Training, VotesQuestion

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


@pytest.mark.parametrize(("classes", "parties"), [(2, 600), (6, 600), (23, 256), (300, 511)])
def test_many_votes_for_one_class_do_not_overflow(monkeypatch, classes, parties):
    monkeypatch.setattr(tally_module, "_ROWS", 20)
    monkeypatch.setattr(tally_module, "_TILE", 700)
    votes = np.random.default_rng(0).integers(0, classes, (parties, 50)).astype(np.min_scalar_type(classes - 1))
    votes[:, :3] = classes - 1
    tally = VoteTally(question(classes=classes), parties)
    assert tally.add(Submission("votes", np.arange(parties), {"votes": votes})) == {}
    expected = np.stack([(votes == label).sum(axis=0) for label in range(classes)], axis=1)
    np.testing.assert_array_equal(tally.counts, expected)


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


def probability_tally(parties, classes=3, rows=50):
    points = np.ones((rows, 2))
    asked = ProbabilitiesQuestion(Training(fit(["unit_norm"], points), classes, {}, 0), points)
    return ProbabilityTally(asked, parties)


def ballot(parts, parties):
    """Parts (P, N, C) as a submission."""
    wire = parts[..., :-1].reshape(len(parts), parts.shape[1] * (parts.shape[2] - 1))
    return Submission("probabilities", np.asarray(parties), {"parts": wire.astype(np.uint8)})


@settings(derandomize=True, deadline=None, max_examples=40)
@given(seed=st.integers(0, 999), parties=st.integers(1, 20), pieces=st.integers(1, 5), classes=st.integers(2, 5))
def test_sums_of_distributions_do_not_depend_on_how_they_arrive(seed, parties, pieces, classes):
    random = np.random.default_rng(seed)
    parts = random.multinomial(BALLOT_PARTS, random.dirichlet(np.ones(classes)), size=(parties, 50))
    tally = probability_tally(parties + 3, classes)
    for ids in np.array_split(random.permutation(parties), pieces):
        assert tally.add(ballot(parts[ids].reshape(-1, 50, classes), ids.astype(np.int64))) == {}
    np.testing.assert_array_equal(tally.counts, parts.sum(axis=0))
    shares = (parts.sum(axis=0) / BALLOT_PARTS + 3 / classes) / (parties + 3)
    np.testing.assert_allclose(tally.shares(), shares, rtol=1e-13)


def test_certain_distributions_count_like_votes():
    votes = np.random.default_rng(1).integers(0, 3, (4, 50))
    by_labels, by_parts = VoteTally(question(), 6), probability_tally(6)
    by_labels.add(submission(votes, range(4)))
    by_parts.add(ballot(BALLOT_PARTS * np.eye(3, dtype=int)[votes], range(4)))
    np.testing.assert_allclose(by_parts.shares(), by_labels.shares(), atol=1e-15)
    np.testing.assert_array_equal(by_parts.majority(), by_labels.majority())


def test_a_ballot_of_more_than_everything_costs_its_own_party_only():
    tally = probability_tally(3)
    parts = np.zeros((2, 50, 3), dtype=int)
    parts[1, 7] = [200, 56, 0]
    refused = tally.add(ballot(parts, [0, 2]))
    assert list(refused) == [2]
    assert "more than 255 parts" in refused[2]
    assert tally.counts.tolist() == [[0, 0, BALLOT_PARTS]] * 50


def test_any_ballot_moves_a_row_of_shares_by_at_most_the_diameter_of_the_simplex():
    random = np.random.default_rng(4)
    everything = [random.integers(0, 256, (1, 50, 3)) for _ in range(20)] + [
        BALLOT_PARTS * np.eye(3, dtype=int)[np.full((1, 50), label)] for label in range(3)
    ]
    rows = []
    for parts in everything:
        tally = probability_tally(5)
        tally.add(ballot(parts, [2]))
        rows.append(tally.shares())
    furthest = max(np.linalg.norm(a - b, axis=1).max() for a in rows for b in rows)
    assert furthest == pytest.approx(np.sqrt(2) / 5)


def test_more_parties_than_small_integers_can_count():
    tally = probability_tally(2**24, rows=2)
    tally.add(ballot(np.tile([BALLOT_PARTS, 0, 0], (2**13, 2, 1)), range(2**13)))
    assert tally.counts.dtype == np.int64
    assert VoteTally(question(rows=2), 2**24).counts.dtype == np.int32
