"""No question is so large that a party runs out of memory: counted in exact integers, before anything is allocated."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from support.questions import QUESTIONS

from federation.contract.errors import InputError
from federation.contract.query import CODE, MOST_CONFIGURED, SIMULATED, Field, Limits, Question, whole
from federation.features.feature_map import FeatureMap
from federation.queries.bags import Bags
from federation.queries.labels import BagSums, LabelledRows
from federation.queries.votes import Training


@dataclass(frozen=True)
class Asked(Question):
    """A question with two arrays, and work for them."""

    kind: ClassVar[str] = "asked"
    shapes: tuple[tuple[int, ...], ...]
    held: int = 0

    def fields(self) -> dict[str, Field]:
        return {str(number): Field(shape) for number, shape in enumerate(self.shapes)}

    def work(self) -> int:
        return self.held


@pytest.mark.parametrize(
    ("question", "numbers"),
    [
        (Asked(((3, 4), (5,))), 17),  # all arrays of an answer together
        (Asked(((3, 0, 10**9), (2,))), 2),
        (Asked(((2,),), held=9), 9),
        (Asked(((9,),), held=2), 9),
    ],
)
def test_a_question_is_as_large_as_its_answer_or_the_work_for_it(question, numbers):
    question.require_bounded(Limits(numbers))
    with pytest.raises(InputError, match="the question 'asked' is too large"):
        question.require_bounded(Limits(numbers - 1))


@pytest.mark.parametrize("shape", [(2**32, 2**32), (10**9,) * 8, (2**21, 2**21, 2**22)])
def test_a_size_that_overflows_is_no_small_one(shape):
    """As a product of 64-bit numbers each of these is 0."""
    with pytest.raises(InputError, match="too large"):
        Asked((shape,)).require_bounded(Limits(MOST_CONFIGURED))


def test_what_is_too_large_is_told_apart():
    with pytest.raises(InputError, match=r"its answer has 12 numbers, and this node allows 11"):
        Asked(((3, 4),)).require_bounded(Limits(11))
    with pytest.raises(InputError, match=r"to answer it takes 1e\+18 numbers, and this node allows 3.35544e\+07"):
        Asked(((3, 4),), held=10**18).require_bounded(CODE)


MOST = Bags(2**10, 2**10)
WIDE = LabelledRows(FeatureMap(100, ()), 0.0, 1.0, 10**9)
COLUMNS = FeatureMap(1, ())
MANY = BagSums(10**9, 10**9, 2**20, "signs", 1, 0)


def changed(kind, **parts):
    return replace(QUESTIONS[kind], **parts)


@pytest.mark.parametrize(
    "question",
    [
        changed("counts", bags=MOST, draws=10**6),
        changed("counts", bags=Bags(1, 2**16)),  # the covariance of a bag's counts
        changed("noisy_embeddings", bags=MOST, feature_map=COLUMNS, draws=10**6),
        changed("private_labels", rows=WIDE),
        changed("label_sums", rows=WIDE),  # its answer is small
        changed("bag_sums", rows=WIDE, design=MANY),
        # Which of the rows that take part get noise.
        changed("bag_sums", rows=LabelledRows(COLUMNS, 0.0, 1.0, 1), design=BagSums(10**9, 1, 1, "signs", 0, 1)),
        changed("weighted_sums", rows=WIDE, design=MANY),
        changed("votes", training=Training(COLUMNS, 2**16, {}, 0), rows=np.zeros((1, 1))),  # contrasts of the classes
        changed("parameters", training=Training(COLUMNS, 2**16, {}, 0)),
    ],
    ids=lambda question: question.kind,
)
def test_questions_of_enormous_sizes_are_refused_at_once(question):
    with pytest.raises(InputError, match=f"the question '{question.kind}' is too large"):
        question.require_bounded(CODE)


def test_a_site_may_allow_less_or_more_than_the_code_and_simulations_more():
    assert Limits() == CODE
    assert 1 < CODE.numbers < SIMULATED.numbers < MOST_CONFIGURED
    question = Asked(((CODE.numbers + 1,),))
    with pytest.raises(InputError, match="too large"):
        question.require_bounded(CODE)
    question.require_bounded(SIMULATED)
    question.require_bounded(Limits(MOST_CONFIGURED))


@pytest.mark.parametrize("numbers", [0, -1, 1e3, True, "9", None, 2**31 + 1, 10**60, float("nan")])
def test_limits_are_whole_numbers(numbers):
    with pytest.raises(InputError, match="numbers of a node's limits must be a whole number from 1 to 2147483648"):
        Limits(numbers)


@pytest.mark.parametrize("axis", [-1, 2.0, True, None, "3"])
def test_an_axis_is_a_whole_number(axis):
    with pytest.raises(InputError, match="an axis of an answer must be a whole number from 0"):
        Field((2, axis))


def test_a_field_counts_its_entries_exactly():
    assert Field(()).numbers == 1
    assert Field((3, 0)).numbers == 0
    assert Field((2**40, 2**40)).numbers == 2**80


@pytest.mark.parametrize(
    ("value", "least", "most", "accepted"),
    [
        (0, 0, None, True),
        (10**30, 0, None, True),
        (5, 1, 5, True),
        (1, 1, 5, True),
        (0, 1, 5, False),
        (6, 1, 5, False),
        (True, 0, 5, False),
        (1.0, 0, 5, False),
        ("1", 0, 5, False),
        (None, 0, 5, False),
        (np.int64(1), 0, 5, False),  # it would overflow where it is multiplied
    ],
)
def test_whole_numbers_are_those_in_range_and_no_others(value, least, most, accepted):
    if accepted:
        whole("rows", value, least, most)
    else:
        with pytest.raises(InputError, match=f"rows must be a whole number from {least}"):
            whole("rows", value, least, most)


def test_a_number_too_long_to_tell_is_not_told():
    with pytest.raises(InputError, match="from 0 to 9, got one of more than 18 digits"):
        whole("rows", 10**5000, 0, 9)
