"""Noisy sums over private rows of all parties: their total, its noise, and sums that no honest party can send."""

from __future__ import annotations

import numpy as np
import pytest
from support.two_class_questions import row_moments

from aggregator.answers.row_answers import RowAnswers
from federation.contract.submission import Submission


def answers(**options):
    question = row_moments(**options)
    return RowAnswers(question, 4, question.promise() if question.noise.aims and not question.shared else None)


def sent(collector, parties, last, sizes):
    """Submit sums that are zero but for the last number, that of y'y."""
    question = collector.question
    sums = np.zeros((len(parties), *question.fields()["sums"].shape))
    sums[..., -1] = np.asarray(last)[:, None]
    promise = question.promise() if question.noise.aims else None
    arrays = {"size": np.array(sizes, dtype=np.float64), "sums": sums}
    return collector.add(Submission("row_moments", np.array(parties), arrays, promise))


def test_sums_and_rows_are_those_of_the_parties_that_answered():
    collector = answers(noise="off")
    assert sent(collector, [0, 3], [4.0, 6.0], [10, 30]) == {}
    assert (collector.rows, collector.total("sums")[0, -1], collector.variance) == (40, 10.0, 0.0)


def test_noise_of_all_parties_adds_up_and_shares_are_parts_of_one():
    own, shared = answers(), answers(contributors=2)
    for collector, wholes in ((own, 3), (shared, 3 / 2)):
        sent(collector, [0, 1, 2], [0.0, 0.0, 0.0], [10, 20, 20])
        assert collector.variance == pytest.approx(wholes * collector.question.mechanism().variance())


@pytest.mark.parametrize(("largest", "taken"), [(26.45, True), (-26.45, True), (26.5, False)])
def test_without_noise_no_entry_exceeds_what_the_rows_can_add(largest, taken):
    """X'X, X'y and y'y of one row have norm sqrt(7) at most."""
    collector = answers(noise="off")
    assert (sent(collector, [1], [largest], [10]) == {}) == taken
    assert collector.answered == taken


def test_noise_may_take_an_entry_forty_deviations_further():
    deviation = answers().question.mechanism().variance() ** 0.5
    for reach, taken in ((39.9, True), (40.1, False)):
        assert (sent(answers(), [0], [10 * 7**0.5 + reach * deviation], [10]) == {}) == taken


@pytest.mark.parametrize("size", [2.5, 0.0, 68.0, np.nan])
def test_numbers_of_rows_are_whole_and_in_range(size):
    collector = answers(noise="off")
    assert list(sent(collector, [0, 1], [0.0, 0.0], [size, 3])) == [0]
    assert collector.rows == 3
