"""What goes wrong at one party costs no other, and its text stays at home."""

import logging
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from support.training_parties import by_party, cohort, make_training

from federation.contract.query import Field, TrustedQuestion
from federation.queries.votes import Training, VotesQuestion
from parties.party_data.cohort import Cohort, DroppedOut
from parties.party_data.isolation import ConstantGroup, alone, asked, jointly, stacked, vote_type
from parties.responses import votes


def test_a_party_whose_prediction_fails_costs_no_other(public):
    # Five neighbours are asked of every party; one holds three rows, trains, and fails when it predicts.
    feature_map = make_training(public).feature_map
    neighbours = Training(feature_map, 3, {"name": "KNeighborsClassifier", "parameters": {"n_neighbors": 5}}, 9)
    question = VotesQuestion(neighbours, feature_map.transform(public.rows))
    whole = votes.respond_votes(cohort(0, 4), question)
    spoilt = votes.respond_votes(cohort(0, 4, small=[2]), question)
    assert sorted(spoilt.parties) == [0, 1, 3]
    assert "n_samples" in spoilt.failures[2]
    for party, cast in by_party(spoilt).items():
        np.testing.assert_array_equal(cast, by_party(whole)[party])


def node(seed=1):
    return Cohort("{}", first=0, count=4, seed=seed)


def test_one_who_drops_out_is_told_apart_from_one_who_fails():
    def act(party):
        if party == 1:
            raise DroppedOut
        return 6 // party

    results, failures = alone(node(), range(3), act)
    assert results == {2: 3}
    assert failures == {1: "dropped out", 0: "ZeroDivisionError: integer division or modulo by zero"}


def test_a_reason_is_one_short_line_and_in_a_deployment_in_its_own_log_only(caplog):
    def act(party):
        raise ValueError("first\n\tsecond " + "x" * 1000)

    _, failures = alone(node(), [3], act)
    assert failures[3].startswith("ValueError: first second xxx")
    assert len(failures[3]) == 200
    caplog.clear()
    with caplog.at_level(logging.DEBUG):
        _, failures = alone(node(seed=None), [3], act)
    assert failures == {3: "the party could not answer"}
    assert "second xxx" in caplog.text


def test_nobody_catches_what_ends_the_process():
    def act(party):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        alone(node(), [0], act)


@pytest.mark.parametrize("parties", [[7, 3, 5], [7, 3]])
def test_parties_that_can_be_served_together_are_asked_once(parties):
    asked = []
    [(positions, found)], failures = jointly(
        node(), np.array(parties), lambda at: asked.append(at.tolist()) or at.sum()
    )
    assert asked == [[*range(len(parties))]]
    assert (positions.tolist(), found, failures) == (asked[0], sum(asked[0]), {})


def test_where_one_of_them_fails_the_others_are_served_alone(caplog):
    def act(positions):
        if 1 in positions:
            raise ValueError("too few rows")
        return positions * 10

    with caplog.at_level(logging.DEBUG):
        results, failures = jointly(node(), np.array([7, 3, 5]), act)
    told = [(record.getMessage(), str(record.exc_info[1])) for record in caplog.records]
    assert told == [
        ("3 parties could not be served at once", "too few rows"), ("party 3 could not answer", "too few rows"),
    ]  # fmt: skip
    assert [(positions.tolist(), found.tolist()) for positions, found in results] == [([0], [0]), ([2], [20])]
    assert failures == {3: "ValueError: too few rows"}


def test_a_party_by_itself_is_not_asked_again_when_it_fails():
    asked = []

    def act(positions):
        asked.append(positions.tolist())
        raise ValueError("no")

    assert jointly(node(), np.array([7]), act) == ([], {7: "ValueError: no"})
    assert asked == [[0]]


COHORT = Cohort("{}", 0, 0, seed=1)


@dataclass(frozen=True)
class Pairs(TrustedQuestion):
    """Of each party two numbers, and a code."""

    kind: ClassVar[str] = "pairs"

    def fields(self):
        return {"two": Field((2,)), "one": Field((), levels=300)}


def part(*parties):
    ids = np.array(parties)
    return ids, {"two": np.array([[party, -party] for party in parties], float), "one": (10 * ids).astype(np.uint16)}


@pytest.mark.parametrize("of", [((5, 2), (9,), (1, 3)), ((7, 4),), ()])
def test_parts_are_stacked_in_their_order(of):
    failures = {8: "ValueError: no"}
    found = stacked(Pairs(), [part(*parties) for parties in of], failures)
    expected = [party for parties in of for party in parties]
    assert (found.kind, found.guarantee, found.failures) == ("pairs", None, failures)
    assert (found.parties.tolist(), found.parties.dtype) == (expected, np.int64)
    two, one = found.arrays["two"], found.arrays["one"]
    assert (two.dtype, two.shape, one.dtype, one.shape) == (float, (len(expected), 2), np.uint16, (len(expected),))
    assert two.tolist() == [[party, -party] for party in expected]
    assert one.tolist() == [10 * party for party in expected]


def test_what_one_part_holds_is_not_copied():
    """It may be most of what a node has in memory."""
    whole = part(7, 4)
    assert np.shares_memory(stacked(Pairs(), [whole], {}).arrays["two"], whole[1]["two"])


def test_a_party_of_one_class_is_certain_and_votes_take_the_smallest_type():
    group = ConstantGroup(np.array([3, 9]), np.array([2, 0]), 4)
    rows = np.zeros((5, 2))
    np.testing.assert_array_equal(group.votes(rows), [[2] * 5, [0] * 5])
    assert group.gives_probabilities
    np.testing.assert_array_equal(group.probabilities(rows), [[[0, 0, 1, 0]] * 5, [[1, 0, 0, 0]] * 5])
    assert [vote_type(classes) for classes in (2, 256, 257)] == [np.uint8, np.uint8, np.uint16]


def test_a_failing_group_costs_its_own_parties_only():
    groups = [ConstantGroup(np.array(ids), np.zeros(len(ids), int), 2) for ids in ([1], [5, 2], [3])]

    def act(group):
        if len(group.parties) == 2:
            raise ValueError("no")
        return group.parties[0] * 10

    results, failures = asked(COHORT, groups, act)
    assert [(parties[0], result) for parties, result in results] == [(1, 10), (3, 30)]
    assert failures == {5: "ValueError: no", 2: "ValueError: no"}
