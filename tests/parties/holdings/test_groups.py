import numpy as np

from parties.holdings.cohort import Cohort
from parties.holdings.groups import ConstantGroup, asked, vote_type

COHORT = Cohort("{}", 0, 0, seed=1)


def test_a_party_of_one_class_is_certain():
    group = ConstantGroup(np.array([3, 9]), np.array([2, 0]), 4)
    rows = np.zeros((5, 2))
    np.testing.assert_array_equal(group.votes(rows), [[2] * 5, [0] * 5])
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
