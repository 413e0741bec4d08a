"""Names of releases, kinds of noise, and how often a question may be asked.

The largest sizes that may be asked for.

What an aggregator may rely on of a collector: this protocol, and no base class of ours.

What a side declares of its data and roster stands against what a question takes for granted.

No question is so large that a party runs out of memory: counted in exact integers, before anything is allocated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from typing import ClassVar, Literal

import numpy as np
import pytest
from flwr.app import Message
from hypothesis import given
from hypothesis import strategies as st
from support.questions import QUESTIONS

from aggregator.server.releasing import Inquiry
from aggregator.trial.feature_fitting import fit
from federation.contract.errors import InputError
from federation.contract.guarantee import SEEDED, Adjacency, Guarantee, NoGuarantee, Unit
from federation.contract.plugins import Reference
from federation.contract.query import (
    CODE,
    MOST_CONFIGURED,
    MOST_FEATURES,
    MOST_WIDTH,
    NOTHING,
    OFF,
    SIMULATED,
    Collector,
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
from federation.engines.codec import encode_submission
from federation.engines.nodes import Placement, QueueGrid
from federation.engines.sending import Asking, Failures
from federation.features.feature_map import FeatureMap
from federation.queries.bags import Bags, CountsNoise
from federation.queries.labels import BagSums, LabelledRows, WeightedSumsNoise
from federation.queries.marginals import Hypothesis
from federation.queries.row_sums import MomentNoise
from federation.queries.votes import Training, VotesQuestion


def test_the_noise_of_a_release_is_keyed_by_its_name_and_that_of_a_query_by_its_number_too():
    assert ReleaseId("a world|counts").key == "a world|counts"
    assert ReleaseId("a", 1, 0).key == "a"
    assert [ReleaseId("a", 3, query).key for query in range(3)] == ["a|query 0", "a|query 1", "a|query 2"]


@given(st.integers(1, 50))
def test_no_two_queries_of_a_release_share_noise(queries):
    assert len({ReleaseId("a", queries, query).key for query in range(queries)}) == queries


@pytest.mark.parametrize("name", ["", "x" * 1001, 3, None, b"a"])
def test_a_release_has_a_name(name):
    """Without one two releases would be one: the second would go unpaid, or be refused."""
    with pytest.raises(InputError, match=r"1.*1000"):
        ReleaseId(name)
    assert ReleaseId("x" * 1000).key == "x" * 1000


@pytest.mark.parametrize(("queries", "query"), [(1, 1), (3, 3), (3, 4)])
def test_there_are_as_many_queries_as_were_agreed_on(queries, query):
    with pytest.raises(InputError):
        ReleaseId("a", queries, query)


@pytest.mark.parametrize(
    ("queries", "query", "name"),
    [(2.0, 0, "queries"), (True, 0, "queries"), (None, 0, "queries"), (0, 0, "queries"), (-1, -2, "queries"),
     (2, False, "query"), (2, "0", "query"), (3, -1, "query")],
)  # fmt: skip
def test_queries_are_whole_numbers(queries, query, name):
    with pytest.raises(InputError, match=f"{name}"):
        ReleaseId("a", queries, query)


@pytest.mark.parametrize("noise", [CountsNoise, MomentNoise, WeightedSumsNoise])
def test_noise_that_is_off_aims_at_nothing(noise):
    """Questions without noise ask the same, whatever somebody aimed at in vain."""
    off = noise(OFF, 3.0, 0.5)
    assert (off.epsilon, off.delta, off.aims) == (0.0, 0.0, False)
    assert off == noise(OFF)
    assert off.named == (OFF,)
    assert noise(OFF, -1.0, 7.0) == off


def test_noise_that_is_none_by_another_name_aims_at_nothing_either():
    published = WeightedSumsNoise("published", 1.0, 1e-6)
    assert (published.epsilon, published.delta, published.aims) == (0.0, 0.0, False)
    assert published.named == ("published",)


def test_all_other_noise_is_named_by_what_it_aims_at():
    noise = CountsNoise("gaussian", 1.0, 1e-6, pseudo_count=3)
    assert noise.aims
    assert noise.named == ("gaussian", 1.0, 1e-6)
    assert WeightedSumsNoise("gaussian", 1.0, 1e-6).named == ("gaussian", 1.0, 1e-6)
    assert replace(noise, kind=OFF).pseudo_count == 3


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("inf"), float("nan"), 1.01e100])
def test_noise_aims_at_an_epsilon_that_means_something(epsilon):
    with pytest.raises(InputError, match="epsilon"):
        CountsNoise("gaussian", epsilon, 1e-6)
    assert CountsNoise("gaussian", 1e100, 1e-6).aims


@pytest.mark.parametrize("delta", [-1e-9, 1.0, float("nan")])
def test_noise_aims_at_a_delta_below_one(delta):
    with pytest.raises(InputError, match="delta"):
        CountsNoise("gaussian", 1.0, delta)


def test_noise_without_an_epsilon_is_refused():
    with pytest.raises(InputError, match="epsilon"):
        CountsNoise("gaussian")


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


def test_one_answer_is_paid_for_as_promised():
    assert SHIFTED.payment() == SHIFTED.promise()


@pytest.mark.parametrize("promise", ["promise", "payment"])
def test_a_promise_says_whose_bits_the_noise_takes(promise):
    seeded, system = (getattr(replace(SHIFTED, seeded=seeded), promise)() for seeded in (True, False))
    assert seeded.parameters == {"most": 5, "entropy": "seed"}
    assert system.parameters == {"most": 5, "entropy": "system"}
    assert (seeded.assumptions, system.assumptions) == ((SEEDED,), ())
    missed = replace(SHIFTED, noise=ShiftNoise("missed", 1.0))
    assert getattr(missed, promise)() == NoGuarantee("too little noise", (1.0, 0.0))


@pytest.mark.parametrize("promise", ["promise", "payment"])
def test_without_noise_nothing_is_promised_whatever_the_question_says(promise):
    assert getattr(replace(SHIFTED, noise=ShiftNoise(OFF)), promise)() == NoGuarantee("noise is off")


@pytest.mark.parametrize("promise", ["promise", "payment"])
def test_nothing_is_promised_to_a_side_that_declares_otherwise(promise):
    assert getattr(SHIFTED, promise)(Declared(most_rows=5)).epsilon == 1.0
    with pytest.raises(InputError, match=r"most_rows.*5.*6"):
        getattr(SHIFTED, promise)(Declared(most_rows=6))


@pytest.mark.parametrize("promise", ["promise", "payment"])
def test_numbers_that_overflow_a_mechanism_are_refused_and_not_a_fault(promise):
    with pytest.raises(InputError, match="shifted"):
        getattr(replace(SHIFTED, most=0), promise)()


def test_by_itself_a_question_takes_nothing_for_granted():
    class Plain(Shifted):
        assumes = PrivateQuestion.assumes

    plain = Plain(SHIFTED.noise, release=SHIFTED.release)
    assert plain.assumes() == Declared()
    assert (plain.shared, plain.simulated_only(), plain.work()) == (False, None, 0)


@pytest.mark.parametrize(("queries", "query"), [(2, 2), (2, -1), (0, 0), (2, 1.0), (True, 0)])
def test_a_query_beyond_those_agreed_on_is_refused(queries, query):
    with pytest.raises(InputError, match=r"refused|whole number"):
        ReleaseId("an exchange", queries, query)


@pytest.mark.parametrize("dimensions", [2, 100, MOST_FEATURES])
def test_even_numbers_of_features_up_to_the_limit_are_allowed(dimensions):
    require_waves(dimensions)


@pytest.mark.parametrize("dimensions", [-2, 0, 7, MOST_FEATURES + 2, 10**22])
def test_other_numbers_are_refused(dimensions):
    with pytest.raises(InputError, match=rf"dimensions.*2.*100000.*{dimensions}"):
        require_waves(dimensions)


@pytest.mark.parametrize(("width", "fits"), [(MOST_WIDTH, True), (MOST_WIDTH + 1, False)])
def test_a_hypothesis_may_have_layers_of_the_limit_and_no_wider(width, fits):
    parameters = np.zeros(2 * width + width + 1)
    if fits:
        assert Hypothesis(np.array([1, width, 1]), parameters).sizes[1] == width
    else:
        with pytest.raises(InputError, match="wide"):
            Hypothesis(np.array([1, width, 1]), parameters)


class Kept(Collector):
    """Keeps the ids of parties, and refuses those that are told."""

    def __init__(self, *recipe):
        self.parties, self._refused = [], set(recipe)

    @property
    def recipe(self):
        return tuple(sorted(self._refused))

    @property
    def answered(self):
        return len(self.parties)

    def add(self, submission):
        refused = {int(party): "not wanted" for party in submission.parties if party in self._refused}
        self.parties += [int(party) for party in submission.parties if party not in refused]
        return refused


class VotingGrid(QueueGrid):
    """Every party votes for the class 1."""

    def __init__(self, question):
        super().__init__()
        self._question = question

    def _advance(self):
        if self._queue:
            node, messages = self._next()
            first, count = (self.nodes[node].node_config[name] for name in ("first-party", "parties"))
            votes = np.ones((count, len(self._question.rows)), dtype=np.uint8)
            answer = Submission("votes", np.arange(first, first + count), {"votes": votes})
            fields = self._question.fields()
            self._accept(Message(encode_submission(answer, fields), reply_to=message) for message in messages)

    def close(self):
        """Nothing to release."""


@pytest.fixture
def question(public):
    return VotesQuestion(Training(fit(["unit_norm"], public.rows), 3, {}, 0), public.rows)


def test_answers_reach_every_collector_and_refusals_are_failures(question):
    grid = VotingGrid(question)
    grid.assign(Placement(5, 2, Reference("support.synthetic:Parties"), 1))
    first, second, failures = Kept(), Kept(1, 4), Failures(verbose=True)
    Asking(5, 2, None).ask(grid, [(question, [first, second])], failures)
    assert sorted(first.parties) == [0, 1, 2, 3, 4]
    assert sorted(second.parties) == [0, 2, 3]
    assert failures.causes() == {"not wanted": 2}


def test_of_collectors_with_equal_recipes_one_is_kept(question):
    inquiry, collector = Inquiry(), Kept(1)
    assert inquiry.add(question, question.training, collector) is collector
    assert inquiry.add(question, question.training, Kept(1)) is collector
    other = Kept(2)
    assert inquiry.add(question, question.training, other) is other
    assert list(inquiry.collectors()) == [collector, other]


# Of each fact: what a side declares, what a question may then assume, and what it may not.
RULES = {
    "most_rows": (100, (100, 101, 10**9), (99, 1, 0)),  # noise for fewer rows than there may be is too little
    "label_range": ((0.0, 10.0), ((0.0, 10.0),), ((0.0, 9.0), (-1.0, 10.0), (1.0, 11.0))),
    "classes": (3, (3,), (2, 4)),
    "bags": (5, (5, 6), (4, 0)),  # more of them are empty
    "rows_per_person": (2, (2,), (0, 1, 3)),
    "honest": (7, (7, 6, 1), (8,)),  # fewer shares than were counted on add up to too little noise
}


def test_every_fact_has_its_rule():
    assert list(RULES) == [field.name for field in fields(Declared)]


@pytest.mark.parametrize(("name", "assumed"), [(name, one) for name, rule in RULES.items() for one in rule[1]])
def test_a_question_may_assume_what_agrees(name, assumed):
    Declared(**{name: RULES[name][0]}).require(Declared(**{name: assumed}))


@pytest.mark.parametrize(("name", "assumed"), [(name, one) for name, rule in RULES.items() for one in rule[2]])
def test_what_contradicts_is_refused_with_the_numbers_of_both_sides(name, assumed):
    own = RULES[name][0]
    with pytest.raises(InputError) as refused:
        Declared(**{name: own}).require(Declared(**{name: assumed}))
    assert re.search(rf"{name}.*{assumed}.*{own}", str(refused.value))


@pytest.mark.parametrize("name", RULES)
def test_where_either_side_says_nothing_there_is_no_contradiction(name):
    own, _, (wrong, *_) = RULES[name]
    NOTHING.require(Declared(**{name: wrong}))
    Declared(**{name: own}).require(NOTHING)
    others = {other: rule[0] for other, rule in RULES.items() if other != name}
    Declared(**others).require(Declared(**others, **{name: wrong}))


@pytest.mark.parametrize("name", RULES)
def test_one_contradiction_among_agreement_is_enough(name):
    everything = {other: rule[0] for other, rule in RULES.items()}
    Declared(**everything).require(Declared(**everything))
    with pytest.raises(InputError, match=f"{name}"):
        Declared(**everything).require(Declared(**{**everything, name: RULES[name][2][0]}))


def test_zero_is_something_that_is_said():
    """No number is taken for silence: rows_per_person 0 says that every row is another person's."""
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
    with pytest.raises(InputError, match="asked"):
        question.require_bounded(Limits(numbers - 1))


@pytest.mark.parametrize("shape", [(2**32, 2**32), (10**9,) * 8, (2**21, 2**21, 2**22)])
def test_a_size_that_overflows_is_no_small_one(shape):
    """As a product of 64-bit numbers each of these is 0."""
    with pytest.raises(InputError):
        Asked((shape,)).require_bounded(Limits(MOST_CONFIGURED))


def test_what_is_too_large_is_told_apart():
    with pytest.raises(InputError, match=r"12.*11"):
        Asked(((3, 4),)).require_bounded(Limits(11))
    with pytest.raises(InputError, match=r"1e\+18.*3\.35544e\+07"):
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
    with pytest.raises(InputError, match=f"'{question.kind}'"):
        question.require_bounded(CODE)


def test_a_site_may_allow_less_or_more_than_the_code_and_simulations_more():
    assert Limits() == CODE
    assert 1 < CODE.numbers < SIMULATED.numbers < MOST_CONFIGURED
    question = Asked(((CODE.numbers + 1,),))
    with pytest.raises(InputError):
        question.require_bounded(CODE)
    question.require_bounded(SIMULATED)
    question.require_bounded(Limits(MOST_CONFIGURED))


@pytest.mark.parametrize("numbers", [0, -1, 1e3, True, "9", None, 2**31 + 1, 10**60, float("nan")])
def test_limits_are_whole_numbers(numbers):
    with pytest.raises(InputError, match=r"1.*2147483648"):
        Limits(numbers)


@pytest.mark.parametrize("axis", [-1, 2.0, True, None, "3"])
def test_an_axis_is_a_whole_number(axis):
    with pytest.raises(InputError, match="0"):
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
        with pytest.raises(InputError, match=rf"rows.*{least}"):
            whole("rows", value, least, most)


def test_a_number_too_long_to_tell_is_not_told():
    with pytest.raises(InputError, match=r"0.*9.*18"):
        whole("rows", 10**5000, 0, 9)


def votes(question, parties=2, dtype=np.uint8, width=None):
    return np.zeros((parties, width or len(question.rows)), dtype=dtype)


def test_a_proper_submission_passes(question):
    check_submission(question, Submission("votes", np.array([0, 5]), {"votes": votes(question)}))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict(kind="other"), "votes"),
        (dict(arrays={}), None),
        (dict(parties=np.array([3, 3])), "twice"),
        (dict(parties=np.array([-1, 3])), "0"),
        (dict(parties=np.array([0.0, 3.0])), "0"),
    ],
)
def test_malformed_submissions_are_refused(question, change, words):
    fields = {"kind": "votes", "parties": np.array([0, 1]), "arrays": {"votes": votes(question)}, **change}
    with pytest.raises(InputError, match=words):
        check_submission(question, Submission(**fields))


def test_probability_votes_are_refused_where_classes_are_asked(question):
    shares = np.full((2, len(question.rows)), 0.5)
    with pytest.raises(InputError, match="uint8"):
        check_submission(question, Submission("votes", np.array([0, 1]), {"votes": shares}))


def test_votes_for_other_rows_are_refused(question):
    short = votes(question, width=len(question.rows) - 1)
    with pytest.raises(InputError, match="shape"):
        check_submission(question, Submission("votes", np.array([0, 1]), {"votes": short}))


def test_invalid_entries_are_found_by_party():
    classes = Field((3,), levels=3)
    assert classes.invalid(np.array([[0, 1, 2], [0, 3, 0]], dtype=np.uint8)).tolist() == [False, True]
    share = Field((2,), minimum=0.0, maximum=1.0)
    assert share.invalid(np.array([[0, 1], [0.5, np.nan], [-0.1, 0], [2, 0]])).tolist() == [False, True, True, True]


def test_a_submission_shows_shapes_only(question):
    shown = repr(Submission("votes", np.array([0]), {"votes": votes(question, 1)}))
    assert "(1, 120)" in shown
    assert "array" not in shown
