"""What a worst case says unless its protocol says otherwise."""

import numpy as np
import pytest
from support.two_class_questions import moment

from aggregator.contract.worst_case import PARTIES, ROWS, TWO_CLASSES, PrivateWorstCase, Rows, TrustedWorstCase
from federation.contract.query import Submission

PUBLIC = np.eye(2)
HELD = (Rows(PUBLIC, np.zeros(2)), Rows(PUBLIC, np.ones(2)))


class Private(PrivateWorstCase):
    def side(self, there, question, runs):
        return HELD[:1] if there else HELD


class Trusted(TrustedWorstCase):
    def side(self, there, question, runs):
        return HELD


def test_one_party_answers_for_all_runs_and_sides_are_told_apart_by_their_likelihood_ratio():
    worst, question = Private("one party", PUBLIC, 100), moment()
    assert worst.parties(question, 50) == 1
    [asked] = worst.asked(question, 50)
    assert (asked.draws, question.draws) == (50, 1)
    assert asked.release == question.release
    worst, sums = Private("one party", PUBLIC, 100), np.arange(24.0).reshape(2, 4, 3)
    seen = worst.seen([Submission("mean_operator", np.array([0, 1]), {"sums": sums})])
    np.testing.assert_array_equal(seen["sums"], sums[0])
    worst, sides = Private("one party", PUBLIC, 100), np.array([[[-1.0, 0.0]], [[1.0, 0.0]]])
    question = moment(noise="laplace")
    ratio = worst.statistic(question, lambda there: {"sums": sides[int(there)]})
    found = ratio({"sums": np.array([[-3.0, 0.0], [0.0, 5.0], [0.5, 0.0]])})
    np.testing.assert_allclose(found * question.mechanism().additive.scale, [-2.0, 0.0, 1.0])


def test_where_noise_is_the_aggregators_parties_answer_by_themselves_in_a_plain_world():
    worst = Trusted("two parties", PUBLIC, 100)
    assert worst.sent(True, moment()) is None
    assert (worst.world, worst.options, worst.public_there) == ({}, {}, None)
    assert worst.world is not Trusted("two parties", PUBLIC, 100).world
    # Two classes are a world in which a quorum is a whole number of parties.
    assert TWO_CLASSES["quorum"] * PARTIES == pytest.approx(4)
    assert TWO_CLASSES["rows"] == PARTIES * ROWS == PARTIES * TWO_CLASSES["largest_bag"]


def test_a_worst_case_must_say_what_parties_hold():
    with pytest.raises(TypeError, match=r"abstract methods? .?side"):
        TrustedWorstCase("nobody", PUBLIC, 100)
