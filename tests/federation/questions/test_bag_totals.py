"""Questions about bags that are the same at all parties: what is hidden in a sum, what is promised, what is refused."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from support.questions import BAGS, QUESTIONS, WAVES

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Check, Keeper, NoGuarantee, Unit
from federation.contract.query import Declared, ReleaseId
from federation.engines.codec import decode_question, encode_question, question_digest
from federation.queries.bags import EmbeddingTotalsQuestion, TotalsNoise

COUNTS, ROWS = QUESTIONS["count_totals"], QUESTIONS["embedding_totals"]
LABELS = replace(ROWS, protect="label", label_weight=0.0)
each = pytest.mark.parametrize("question", [COUNTS, LABELS, ROWS], ids=["counts", "labels", "rows"])


@each
def test_it_crosses_any_transport(question):
    read = decode_question(encode_question(question), type(question))
    assert question_digest(read) == question_digest(question)
    assert read.noise == question.noise


@each
def test_nothing_of_an_answer_is_seen_but_in_a_sum(question):
    """Sizes neither: they would say which bags a party has."""
    assert question.shared
    assert question.steps.keys() == question.fields().keys()
    assert question.open_fields == {}
    assert question.hidden_numbers == sum(field.numbers for field in question.fields().values())
    assert question.steps["counts"] == question.mechanism().step
    assert "share of the noise hides nothing by itself" in question.simulated_only()


def test_what_has_no_noise_is_sent_on_a_grid_and_where_rows_are_protected_nothing_is():
    assert (LABELS.steps["sizes"], LABELS.steps["sums"]) == (1.0, 2.0**-26)
    assert "sizes" not in ROWS.fields()
    assert set(ROWS.steps.values()) == {ROWS.mechanism().step}
    draws = replace(ROWS, draws=4).fields()
    assert (draws["counts"].shape, draws["sums"].shape) == ((4, 2, 3), (4, 2, WAVES.dimension))


@each
def test_it_promises_what_the_sum_does(question):
    promise = question.promise()
    assert promise.unit is (Unit.ROW if question is ROWS else Unit.LABEL)
    assert (promise.adjacency, promise.epsilon) == (Adjacency.REPLACE, 1.0)
    assert promise.delta == (0.0 if question is COUNTS else 1e-6)
    assert promise.parameters["contributors"] == 80
    said = [one for one in promise.assumptions if "every bag" in one.text]
    assert [(one.check) for one in said] == [Check.ENFORCED]
    [public] = [one for one in promise.assumptions if one.text.startswith("which bags there are")]
    assert (public.check, public.keeper) == (Check.DECLARED, Keeper.HOLDER)
    assert ("in which bag a row lies is not" in public.text) is (question is ROWS)
    assert question.takes_features_as_public is (question is LABELS)


def test_a_persons_rows_are_protected_together():
    of_person = replace(COUNTS, bags=replace(BAGS, rows_per_person=3))
    assert of_person.promise().unit is Unit.PERSON
    assert of_person.promise().epsilon == 1.0
    assert of_person.mechanism().additive.dimension == 6


@each
def test_a_party_that_counts_on_fewer_honest_ones_refuses(question):
    question.promise(Declared(honest=80, classes=3, bags=2))
    for declared in (Declared(honest=79), Declared(classes=2), Declared(bags=3), Declared(rows_per_person=1)):
        with pytest.raises(InputError, match="this side declares"):
            question.promise(declared)


@each
def test_without_noise_it_promises_nothing_and_hides_nothing(question):
    off = replace(question, noise=TotalsNoise("off"))
    assert isinstance(off.promise(), NoGuarantee)
    assert off.steps == {}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"label_weight": 0.0}, "label_weight must be a positive finite number"),
        ({"label_weight": math.inf}, "label_weight must be a positive finite number"),
        ({"protect": "label"}, "label_weight is for protect: row"),
        ({"protect": "person"}, "protect must be label or row"),
        ({"noise": TotalsNoise("pure", 1.0)}, "protect: row takes gaussian noise"),
        ({"bags": replace(BAGS, rows_per_person=1)}, "knows no persons"),
        ({"contributors": 0}, "contributors"),
    ],
)
def test_what_does_not_go_together_is_refused(changes, told):
    with pytest.raises(InputError, match=told):
        replace(ROWS, **changes)


def test_a_row_adds_one_to_a_number_or_the_label_weight():
    assert COUNTS.longest == LABELS.longest == ROWS.longest == 1.0
    assert (replace(ROWS, label_weight=7.0).longest, replace(ROWS, label_weight=0.5).longest) == (7.0, 1.0)


@each
def test_it_is_a_release_by_itself(question):
    with pytest.raises(InputError, match="draws"):
        replace(question, draws=0)
    with pytest.raises(InputError, match="is a release by itself"):
        replace(question, release=ReleaseId("two", 2, 0))


def test_its_size_is_bounded_before_anything_is_made():
    assert EmbeddingTotalsQuestion.work(ROWS) == 2 * (3 + WAVES.dimension)
    assert COUNTS.work() == 6
