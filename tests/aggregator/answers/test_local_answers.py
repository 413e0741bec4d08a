"""Answers that parties made private themselves: what each must carry, and what is kept of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from aggregator.collectors.collectors import LocalAnswers, SummedAnswers
from federation.contract.guarantee import Adjacency, Assumption, Check, Guarantee, Unit
from federation.contract.query import Field, Question, Submission

PROMISE = Guarantee(1.0, 1e-6, Unit.LABEL, Adjacency.REPLACE, "some noise", {"scale": 2.0})
OUT_OF_RANGE = "answer refused: values outside the declared range"
UNPROMISED = "answer refused: it lacks the guarantee asked for"


@dataclass(frozen=True)
class Pairs(Question):
    """Two numbers of each party, and how many rows it has."""

    kind: ClassVar[str] = "pairs"

    def fields(self):
        return {"numbers": Field((2,), minimum=-1.0, maximum=1.0), "size": Field((), minimum=1.0, maximum=9.0)}


def sent(parties, numbers, sizes=None, guarantee=PROMISE):
    arrays = {
        "numbers": np.array(numbers, dtype=np.float64),
        "size": np.array(sizes or [1.0] * len(parties), dtype=np.float64),
    }
    return Submission("pairs", np.array(parties), arrays, guarantee)


class Even(LocalAnswers):
    """Honest parties have an even number of rows; only what is in range is looked at."""

    def _well_formed(self, arrays):
        assert (arrays["size"] <= 9).all()
        assert np.isfinite(arrays["numbers"]).all()
        return arrays["size"] % 2 == 0


@pytest.mark.parametrize("kind", [LocalAnswers, SummedAnswers])
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -1.001])
def test_an_answer_out_of_range_costs_its_own_party_only(kind, wrong):
    answers = kind(Pairs(), 3, PROMISE)
    refused = answers.add(sent([0, 1, 2], [[0.5, 0.5], [0.0, wrong], [1.0, -1.0]]))
    assert refused == {1: OUT_OF_RANGE}
    assert answers.present.tolist() == [0, 2]


@pytest.mark.parametrize(
    "change",
    [{"epsilon": 2.0}, {"delta": 0.0}, {"unit": Unit.ROW}, {"adjacency": Adjacency.ADD_REMOVE}, {"mechanism": "none"}],
    ids=lambda change: next(iter(change)),
)
def test_another_guarantee_than_the_one_asked_for_is_refused(change):
    answers = LocalAnswers(Pairs(), 2, PROMISE)
    assert answers.add(sent([0], [[0.0, 0.0]], guarantee=replace(PROMISE, **change))) == {0: UNPROMISED}
    assert answers.add(sent([0], [[0.0, 0.0]], guarantee=None)) == {0: UNPROMISED}
    assert answers.answered == 0


def test_numbers_and_premises_of_a_partys_own_are_no_other_guarantee():
    own = replace(PROMISE, parameters={"scale": 3.0}, assumptions=(Assumption("mine", Check.DECLARED),))
    assert LocalAnswers(Pairs(), 2, PROMISE).add(sent([0], [[0.0, 0.0]], guarantee=own)) == {}


def test_where_none_was_asked_for_any_will_do():
    for guarantee in (None, PROMISE):
        assert LocalAnswers(Pairs(), 2, None).add(sent([0], [[0.0, 0.0]], guarantee=guarantee)) == {}


def test_what_no_honest_party_can_say_is_judged_of_answers_in_range_only():
    answers = Even(Pairs(), 4, PROMISE)
    refused = answers.add(sent([0, 1, 2, 3], [[0, 0], [0, np.nan], [0, 0], [0, 0]], [2, 4, 3, 99]))
    assert refused == dict.fromkeys((1, 2, 3), OUT_OF_RANGE)
    assert answers.present.tolist() == [0]


def test_every_answer_is_kept_by_itself_with_zeros_for_the_missing():
    answers = LocalAnswers(Pairs(), 4, PROMISE)
    answers.add(sent([3, 1], [[0.25, 0.5], [-1.0, 1.0]], [7, 2]))
    np.testing.assert_array_equal(answers.array("numbers"), [[0, 0], [-1, 1], [0, 0], [0.25, 0.5]])
    np.testing.assert_array_equal(answers.array("size"), [0, 2, 0, 7])


def test_sums_are_the_same_in_any_order_and_count_each_party_once(rng):
    numbers = rng.integers(-64, 65, size=(20, 2)) / 64
    whole = SummedAnswers(Pairs(), 20, PROMISE)
    whole.add(sent(range(20), numbers))
    parts = SummedAnswers(Pairs(), 20, PROMISE)
    for chosen in np.array_split(rng.permutation(20), 6):
        parts.add(sent(chosen, numbers[chosen]))
        parts.add(sent(chosen[:1], numbers[chosen[:1]]))  # refused: it answered
    np.testing.assert_array_equal(parts.total("numbers"), whole.total("numbers"))
    np.testing.assert_array_equal(whole.total("numbers"), numbers.sum(axis=0))
    assert whole.total("size") == 20
