from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from federation.contract.query import Field, TrustedQuestion
from parties.party_data.cohort import Cohort
from parties.party_data.isolation import ConstantGroup, asked, stacked, vote_type

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


def test_a_party_of_one_class_is_certain():
    group = ConstantGroup(np.array([3, 9]), np.array([2, 0]), 4)
    rows = np.zeros((5, 2))
    np.testing.assert_array_equal(group.votes(rows), [[2] * 5, [0] * 5])
    assert group.gives_probabilities
    np.testing.assert_array_equal(group.probabilities(rows), [[[0, 0, 1, 0]] * 5, [[1, 0, 0, 0]] * 5])


def test_a_failing_group_costs_its_own_parties_only():
    groups = [ConstantGroup(np.array(ids), np.zeros(len(ids), int), 2) for ids in ([1], [5, 2], [3])]

    def act(group):
        if len(group.parties) == 2:
            raise ValueError("no")
        return group.parties[0] * 10

    results, failures = asked(COHORT, groups, act)
    assert [(parties[0], result) for parties, result in results] == [(1, 10), (3, 30)]
    assert failures == {5: "ValueError: no", 2: "ValueError: no"}


def test_votes_take_the_smallest_type_that_holds_the_classes():
    assert [vote_type(classes) for classes in (2, 256, 257)] == [np.uint8, np.uint8, np.uint16]
