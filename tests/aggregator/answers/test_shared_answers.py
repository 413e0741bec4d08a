"""A sum of which nobody sees a part: by a simulation's summation, in clear, or as real parties' masked sum gives it."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest
from support.two_class_questions import moment

from aggregator.collectors.collectors import UNSEEN, SharedAnswers
from federation.contract.errors import InputError, QuorumError
from federation.contract.query import Submission

QUESTION = moment("gaussian", contributors=2)
STEP = QUESTION.mechanism().additive.step
SEEN: list = []


@dataclass(frozen=True)
class Recorded:
    """A masked summation that keeps what it is given, and says a total of its own."""

    question: str
    parties: int
    numbers: int
    quorum: float
    colluding: float
    servers: str
    masked: bool = field(default=True)

    def require(self, answered):
        if answered.sum() < 2:
            raise QuorumError("too few")

    def total(self, parts, answered):
        SEEN.append((parts.copy(), answered.copy()))
        return parts[answered].sum(axis=0) + 1

    def told(self, answered):
        return f"{answered.sum()} answered"


def plan(summation: str = "") -> SimpleNamespace:
    return SimpleNamespace(summation=summation, parties=4, quorum=0.9, colluding=0.1, servers="one")


def sent(parties, steps, size=10.0) -> Submission:
    sums = np.repeat(np.asarray(steps, dtype=float)[:, None, :] * STEP, QUESTION.draws, axis=1)
    arrays = {"size": np.full(len(parties), size), "sums": sums}
    return Submission("mean_operator", np.array(parties), arrays, QUESTION.promise())


def test_the_total_is_that_of_the_masked_sum_over_who_answered() -> None:
    SEEN.clear()
    collector = SharedAnswers(QUESTION, plan(f"{__name__}:Recorded"))
    assert collector.add(sent([0, 3], [[1, -2, 3, 4], [10, 20, 30, 40]])) == {}
    np.testing.assert_array_equal(collector.total("sums")[0], np.array([12, 19, 34, 45]) * STEP)
    assert collector.total("sums").shape == (QUESTION.draws, 4)
    [(parts, answered)] = SEEN  # asked once
    assert answered.tolist() == [True, False, False, True]
    assert parts.dtype == np.int64
    assert collector.total("size") == 20
    assert collector.wholes == 1.0
    assert collector.told == (UNSEEN, "2 answered")


def test_a_sum_that_would_end_without_a_total_has_none() -> None:
    collector = SharedAnswers(QUESTION, plan(f"{__name__}:Recorded"))
    collector.add(sent([0], [[1, -2, 3, 4]]))
    with pytest.raises(QuorumError):
        collector.total("sums")


def test_in_clear_the_total_is_the_plain_one() -> None:
    collector = SharedAnswers(QUESTION, plan())
    collector.add(sent([0, 3], [[1, -2, 3, 4], [10, 20, 30, 40]]))
    np.testing.assert_array_equal(collector.total("sums")[0], np.array([11, 18, 33, 44]) * STEP)
    assert collector.told == (UNSEEN,)


def test_a_total_of_a_masked_sum_is_taken_as_it_is() -> None:
    collector = SharedAnswers(QUESTION, plan())
    opened = sent([1, 2], np.zeros((2, 4)))
    opened.arrays.pop("sums")
    whole = np.arange(QUESTION.draws * 4) - 3
    collector.take_total(opened, whole)
    np.testing.assert_array_equal(collector.total("sums"), (whole * STEP).reshape(QUESTION.draws, 4))
    assert (collector.answered, collector.total("size")) == (2, 20)


def test_a_total_with_a_party_in_it_that_says_nonsense_is_refused() -> None:
    opened = sent([1, 2], np.zeros((2, 4)), size=1e9)
    opened.arrays.pop("sums")
    with pytest.raises(InputError, match="open answers are refused"):
        SharedAnswers(QUESTION, plan()).take_total(opened, np.zeros(QUESTION.draws * 4, dtype=np.int64))


@pytest.mark.parametrize("name", ["", f"{__name__}:Recorded"])
def test_a_hostile_party_moves_the_sum_by_anything_that_a_masked_sum_takes(name: str) -> None:
    collector = SharedAnswers(QUESTION, plan(name))
    collector.add(sent([0, 1], [[2.0**50, -(2.0**80), 0, 0.4], [5, 0, 0, 0.2]]))
    extra = 1 if name else 0
    moved = np.array([2.0**50 + 5, -(2.0**62), 0, 0]) + extra
    np.testing.assert_array_equal(collector.total("sums")[0], moved * STEP)


def test_what_is_no_number_is_no_answer() -> None:
    collector = SharedAnswers(QUESTION, plan())
    assert list(collector.add(sent([0, 1], [[np.nan, 0, 0, 0], [1, 0, 0, 0]]))) == [0]
    assert collector.total("sums")[0, 0] == STEP


def test_who_says_nonsense_openly_is_known_before_the_sum() -> None:
    collector = SharedAnswers(QUESTION, plan())
    said = Submission("mean_operator", np.array([0, 2]), {"size": np.array([10.0, -3.0])})
    assert [*collector.refused(said)] == [2]
    assert collector.answered == 0
    with pytest.raises(InputError):
        collector.refused(Submission("mean_operator", np.array([0]), {"size": np.array([1])}))


def test_a_ledger_knows_what_the_total_of_real_parties_rests_on() -> None:
    collector = SharedAnswers(QUESTION, plan())
    assert collector.told == (UNSEEN,)
    opened = Submission("mean_operator", np.array([0, 2]), {"size": np.array([10.0, 3.0])})
    collector.take_total(opened, np.arange(collector.numbers))
    assert "letters between real parties" in collector.told[1]
