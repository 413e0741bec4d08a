"""Shares of one noise, added by whatever the simulation names."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from support.two_class_questions import moment

from aggregator.answers.moment_answers import MomentAnswers
from aggregator.answers.shared_moments import SharedMomentAnswers
from federation.contract.submission import Submission

QUESTION = moment("gaussian", contributors=2)
STEP = QUESTION.mechanism().additive.step


@dataclass
class Recorded:
    """A summation that keeps what it is given, and says a total of its own."""

    masked: bool
    seen: list = field(default_factory=list)

    def total(self, parts, answered):
        self.seen.append((parts.copy(), answered.copy()))
        return parts[answered].sum(axis=0) + 1

    def told(self, answered):
        return f"{answered.sum()} answered"


def sent(collector, parties, steps) -> None:
    sums = np.repeat(np.asarray(steps)[:, None, :] * STEP, QUESTION.draws, axis=1)
    arrays = {"size": np.full(len(parties), 10.0), "sums": sums}
    assert collector.add(Submission("mean_operator", np.array(parties), arrays, QUESTION.promise())) == {}


def test_the_total_is_that_of_the_masked_sum_over_who_answered() -> None:
    summation = Recorded(masked=True)
    collector = SharedMomentAnswers(QUESTION, 4, summation)
    sent(collector, [0, 3], [[1, -2, 3, 4], [10, 20, 30, 40]])
    np.testing.assert_array_equal(collector.total("sums")[0], np.array([12, 19, 34, 45]) * STEP)
    assert collector.total("sums").shape == (QUESTION.draws, 4)
    [(parts, answered)] = summation.seen  # asked once
    assert answered.tolist() == [True, False, False, True]
    assert parts.dtype == np.int64
    assert collector.rows == 20
    assert collector.told == ("2 answered",)
    sent(collector, [1], [[0.4, -0.6, 0, 0]])  # of a hostile party, in parts of steps
    np.testing.assert_array_equal(collector.total("sums")[0], np.array([12, 18, 34, 45]) * STEP)


def test_in_clear_the_total_is_the_plain_one() -> None:
    summation = Recorded(masked=False)
    collector, plain = SharedMomentAnswers(QUESTION, 4, summation), MomentAnswers(QUESTION, 4, None)
    for one in (collector, plain):
        sent(one, [0, 3], [[1, -2, 3, 4], [10, 20, 30, 40]])
    np.testing.assert_array_equal(collector.total("sums"), plain.total("sums"))
    assert summation.seen == []
    assert plain.told == ()


@pytest.mark.parametrize("masked", [True, False])
def test_noise_is_that_of_shares(masked: bool) -> None:
    collector = SharedMomentAnswers(QUESTION, 4, Recorded(masked))
    sent(collector, [0, 1, 2], np.zeros((3, 4)))
    assert collector.summed_variance == pytest.approx(3 / 2 * QUESTION.mechanism().variance())
    assert collector.changes is None
