"""Names of releases, kinds of noise, and how often a question may be asked.

The largest sizes that may be asked for.

What a side declares of its data and roster stands against what a question takes for granted.

No question is so large that a party runs out of memory: counted in exact integers, before anything is allocated.
"""

import re
from dataclasses import dataclass, fields, replace
from typing import ClassVar, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.questions import QUESTIONS
from support.refusals import refused

from federation.contract.errors import InputError
from federation.contract.guarantee import SEEDED, Adjacency, Guarantee, NoGuarantee, Unit
from federation.contract.query import (
    CODE,
    MOST_CONFIGURED,
    MOST_FEATURES,
    NOTHING,
    OFF,
    SIMULATED,
    Declared,
    Field,
    Limits,
    Noise,
    PrivateQuestion,
    Question,
    ReleaseId,
    Submission,
    check_submission,
    require_waves,
    whole,
)
from federation.features.feature_map import FeatureMap
from federation.queries.bags import Bags, CountsNoise
from federation.queries.labels import BagSums, LabelledRows, WeightedSumsNoise
from federation.queries.row_sums import MomentNoise
from federation.queries.votes import Training


@given(st.integers(1, 50))
def test_the_noise_of_a_release_is_keyed_by_its_name_and_that_of_a_query_by_its_number_too(queries):
    assert ReleaseId("a world|counts").key == "a world|counts"
    assert ReleaseId("a", 1, 0).key == "a"
    assert [ReleaseId("a", 3, query).key for query in range(3)] == ["a|query 0", "a|query 1", "a|query 2"]
    assert len({ReleaseId("a", queries, query).key for query in range(queries)}) == queries


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        # Without a name two releases would be one: the second would go unpaid, or be refused.
        *(((name,), r"1.*1000") for name in ("", "x" * 1001, 3, None, b"a")),
        *((("a", *counts), None) for counts in ((1, 1), (3, 3), (3, 4))),  # as many queries as were agreed on
        *((("a", queries, 0), "queries") for queries in (2.0, True, None, 0, -1)),
        *((("a", 2, query), "query") for query in (False, 1.0, "0", -1)),
    ],
)
def test_a_release_has_a_name_and_as_many_queries_as_were_agreed_on(wrong, words):
    with pytest.raises(InputError, match=words):
        ReleaseId(*wrong)
    assert ReleaseId("x" * 1000).key == "x" * 1000


@pytest.mark.parametrize("noise", [CountsNoise, MomentNoise, WeightedSumsNoise])
def test_noise_that_is_off_aims_at_nothing(noise):
    """Questions without noise ask the same, whatever somebody aimed at in vain."""
    off = noise(OFF, 3.0, 0.5)
    assert (off.epsilon, off.delta, off.aims) == (0.0, 0.0, False)
    assert off == noise(OFF)
    assert off.named == (OFF,)
    assert noise(OFF, -1.0, 7.0) == off


def test_published_noise_aims_at_nothing_and_all_other_is_named_by_what_it_aims_at():
    published = WeightedSumsNoise("published", 1.0, 1e-6)
    assert (published.epsilon, published.delta, published.aims) == (0.0, 0.0, False)
    assert published.named == ("published",)
    noise = CountsNoise("gaussian", 1.0, 1e-6, pseudo_count=3)
    assert noise.aims
    assert noise.named == WeightedSumsNoise("gaussian", 1.0, 1e-6).named == ("gaussian", 1.0, 1e-6)
    assert replace(noise, kind=OFF).pseudo_count == 3
    assert CountsNoise("gaussian", 1e100, 1e-6).aims


@pytest.mark.parametrize(
    ("aims", "name"),
    [
        *(((epsilon, 1e-6), "epsilon") for epsilon in (0.0, -1.0, float("inf"), float("nan"), 1.01e100)),
        *(((1.0, delta), "delta") for delta in (-1e-9, 1.0, float("nan"))),
        ((), "epsilon"),
    ],
)
def test_noise_aims_at_numbers_that_mean_something(aims, name):
    with pytest.raises(InputError, match=name):
        CountsNoise("gaussian", *aims)


@dataclass(frozen=True)
class ShiftNoise(Noise):
    """Noise of one kind."""

    kind: Literal["shift", "missed", "off"]


@dataclass(frozen=True)
class Shifted(PrivateQuestion):
    """A question whose promise is as another package would write it."""

    kind: ClassVar[str] = "shifted"
    noise: ShiftNoise
    most: int = 5

    def fields(self) -> dict[str, Field]:
        return {"value": Field((self.draws,))}

    def assumes(self) -> Declared:
        return Declared(most_rows=self.most)

    def _promised(self) -> Guarantee | NoGuarantee:
        if self.noise.kind == "missed":
            return NoGuarantee("too little noise", (1.0, 0.0))
        if self.most == 0:
            raise ZeroDivisionError("division by zero rows")
        return Guarantee(self.noise.epsilon, 0.0, Unit.LABEL, Adjacency.REPLACE, "shift", {"most": self.most})


@dataclass(frozen=True)
class ShiftedInRounds(Shifted):
    """The same in queries that are paid for together."""

    in_rounds: ClassVar[bool] = True

    def _paid(self) -> Guarantee | NoGuarantee:
        return replace(self._promised(), epsilon=self.noise.epsilon * self.release.queries)


SHIFTED = Shifted(ShiftNoise("shift", 1.0), release=ReleaseId("a"))


@pytest.mark.parametrize("draws", [0, -1, 1.0, True, 10**6 + 1])
def test_so_many_draws_are_asked_for_as_there_may_be(draws):
    with pytest.raises(InputError, match=r"draws.*1.*1000000"):
        replace(SHIFTED, draws=draws)
    assert replace(SHIFTED, draws=10**6).fields()["value"].numbers == 10**6


def test_a_release_of_many_queries_needs_noise_that_is_made_for_them():
    with pytest.raises(InputError, match=r"shifted.*3"):
        replace(SHIFTED, release=ReleaseId("a", 3, 1))
    asked = ShiftedInRounds(SHIFTED.noise, release=ReleaseId("a", 3, 1))
    assert (asked.promise().epsilon, asked.payment().epsilon) == (1.0, 3.0)


@pytest.mark.parametrize("promise", ["promise", "payment"])
def test_a_promise_says_whose_bits_the_noise_takes_and_without_noise_nothing_is_promised(promise):
    seeded, system = (getattr(replace(SHIFTED, seeded=seeded), promise)() for seeded in (True, False))
    assert seeded.parameters == {"most": 5, "entropy": "seed"}
    assert system.parameters == {"most": 5, "entropy": "system"}
    assert (seeded.assumptions, system.assumptions) == ((SEEDED,), ())
    missed, off = (replace(SHIFTED, noise=noise) for noise in (ShiftNoise("missed", 1.0), ShiftNoise(OFF)))
    assert getattr(missed, promise)() == NoGuarantee("too little noise", (1.0, 0.0))
    assert getattr(off, promise)() == NoGuarantee("noise is off")


@pytest.mark.parametrize("promise", ["promise", "payment"])
def test_nothing_is_promised_to_a_side_that_declares_otherwise_or_by_numbers_that_overflow(promise):
    assert getattr(SHIFTED, promise)(Declared(most_rows=5)).epsilon == 1.0
    refused(r"most_rows.*5.*6", getattr(SHIFTED, promise), Declared(most_rows=6))
    refused("shifted", getattr(replace(SHIFTED, most=0), promise))


def test_by_itself_a_question_takes_nothing_for_granted():
    class Plain(Shifted):
        assumes = PrivateQuestion.assumes

    plain = Plain(SHIFTED.noise, release=SHIFTED.release)
    assert plain.assumes() == Declared()
    assert (plain.shared, plain.simulated_only(), plain.work()) == (False, None, 0)
    assert plain.payment() == plain.promise()


@pytest.mark.parametrize("dimensions", [-2, 0, 7, MOST_FEATURES + 2, 10**22])
def test_only_even_numbers_of_features_up_to_the_limit_are_allowed(dimensions):
    for allowed in (2, 100, MOST_FEATURES):
        require_waves(allowed)
    with pytest.raises(InputError, match=rf"dimensions.*2.*100000.*{dimensions}"):
        require_waves(dimensions)


# Of each fact: what a side declares, what a question may then assume, and what it may not.
RULES = {
    "most_rows": (100, (100, 101, 10**9), (99, 1, 0)),  # noise for fewer rows than there may be is too little
    "label_range": ((0.0, 10.0), ((0.0, 10.0),), ((0.0, 9.0), (-1.0, 10.0), (1.0, 11.0))),
    "classes": (3, (3,), (2, 4)),
    "bags": (5, (5, 6), (4, 0)),  # more of them are empty
    "rows_per_person": (2, (2,), (0, 1, 3)),
    "honest": (7, (7, 6, 1), (8,)),  # fewer shares than were counted on add up to too little noise
}


@pytest.mark.parametrize("name", [field.name for field in fields(Declared)])
def test_a_question_may_assume_what_agrees_and_one_contradiction_is_enough(name):
    own, agreeing, contradicting = RULES[name]
    everything = {other: rule[0] for other, rule in RULES.items()}
    for assumed in agreeing:
        Declared(**{name: own}).require(Declared(**{name: assumed}))
        Declared(**everything).require(Declared(**{**everything, name: assumed}))
    for assumed in contradicting:
        for side in ({}, everything):
            with pytest.raises(InputError) as refused:
                Declared(**{**side, name: own}).require(Declared(**{**side, name: assumed}))
            assert re.search(rf"{name}.*{re.escape(str(assumed))}.*{re.escape(str(own))}", str(refused.value))
    # Where either side says nothing there is no contradiction.
    others = {other: value for other, value in everything.items() if other != name}
    NOTHING.require(Declared(**{name: contradicting[0]}))
    Declared(**{name: own}).require(NOTHING)
    Declared(**others).require(Declared(**others, **{name: contradicting[0]}))
    # No number is taken for silence: rows_per_person 0 says that every row is another person's.
    with pytest.raises(InputError, match=r"rows_per_person.*2.*0"):
        Declared(rows_per_person=0).require(Declared(rows_per_person=2))


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
    with pytest.raises(InputError, match=rf"asked.*{numbers}.*{numbers - 1}"):
        question.require_bounded(Limits(numbers - 1))


@pytest.mark.parametrize("shape", [(2**32, 2**32), (10**9,) * 8, (2**21, 2**21, 2**22)])
def test_a_size_that_overflows_is_no_small_one(shape):
    """As a product of 64-bit numbers each of these is 0."""
    refused(None, Asked((shape,)).require_bounded, Limits(MOST_CONFIGURED))
    refused(r"1e\+18.*3\.35544e\+07", Asked(((3, 4),), held=10**18).require_bounded, CODE)


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
    with pytest.raises(InputError, match=f"'{question.kind}'"):
        question.require_bounded(CODE)


@pytest.mark.parametrize("wrong", [0, -1, 1e3, True, "9", None, 2**31 + 1, 10**60, float("nan")])
def test_a_site_may_allow_less_or_more_than_the_code_and_limits_are_whole_numbers(wrong):
    assert Limits() == CODE
    assert 1 < CODE.numbers < SIMULATED.numbers < MOST_CONFIGURED
    question = Asked(((CODE.numbers + 1,),))
    refused(None, question.require_bounded, CODE)
    question.require_bounded(SIMULATED)
    question.require_bounded(Limits(MOST_CONFIGURED))
    refused(r"1.*2147483648", Limits, wrong)


@pytest.mark.parametrize("axis", [-1, 2.0, True, None, "3"])
def test_an_axis_is_a_whole_number_and_entries_are_counted_exactly(axis):
    assert [Field(shape).numbers for shape in ((), (3, 0), (2**40, 2**40))] == [1, 0, 2**80]
    with pytest.raises(InputError, match="0"):
        Field((2, axis))


@pytest.mark.parametrize("value", [0, 6, True, 1.0, "1", None, np.int64(1)])  # the last would overflow in a product
def test_whole_numbers_are_those_in_range_and_no_others(value):
    for allowed, least, most in ((0, 0, None), (10**30, 0, None), (5, 1, 5), (1, 1, 5)):
        whole("rows", allowed, least, most)
    refused(r"rows.*1", whole, "rows", value, 1, 5)
    refused(r"0.*9.*18", whole, "rows", 10**5000, 0, 9)  # a number too long to tell is not told


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict(kind="other"), "votes"),
        (dict(arrays={}), None),
        (dict(parties=np.array([3, 3])), "twice"),
        (dict(parties=np.array([-1, 3])), "0"),
        (dict(parties=np.array([0.0, 3.0])), "0"),
        (dict(arrays={"votes": np.full((2, 60), 0.5)}), "uint8"),  # probabilities where classes are asked
        (dict(arrays={"votes": np.zeros((2, 59), dtype=np.uint8)}), "shape"),
    ],
)
def test_malformed_submissions_are_refused(change, words):
    proper = Submission("votes", np.array([0, 5]), {"votes": np.zeros((2, 60), dtype=np.uint8)})
    check_submission(QUESTIONS["votes"], proper)
    with pytest.raises(InputError, match=words):
        check_submission(QUESTIONS["votes"], replace(proper, **change))
    shown = repr(proper)  # tells shapes only
    assert "(2, 60)" in shown
    assert "array" not in shown


def test_invalid_entries_are_found_by_party():
    classes = Field((3,), levels=3)
    assert classes.invalid(np.array([[0, 1, 2], [0, 3, 0]], dtype=np.uint8)).tolist() == [False, True]
    share = Field((2,), minimum=0.0, maximum=1.0)
    assert share.invalid(np.array([[0, 1], [0.5, np.nan], [-0.1, 0], [2, 0]])).tolist() == [False, True, True, True]
