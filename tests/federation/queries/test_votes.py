"""The questions beside `votes`: an answer of another form is refused.

Questions about one vector per party for a sum: their sizes, what they take for granted, and what they promise.
"""

from dataclasses import replace

import numpy as np
import pytest
from support.questions import QUESTIONS
from support.refusals import refused

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Check, Keeper, NoGuarantee, Unit
from federation.contract.query import Declared, Submission, TrustedQuestion, check_submission
from federation.engines.codec import bytes_per_party
from federation.features.feature_map import Ball
from federation.queries.votes import BALLOT_PARTS

KINDS = ("probabilities", "statistic", "parameters")


@pytest.mark.parametrize("kind", KINDS)
def test_a_question_is_for_a_trusted_aggregator(kind):
    question = QUESTIONS[kind]
    assert isinstance(question, TrustedQuestion)
    assert not hasattr(question, "noise")
    ((name, declared),) = question.fields().items()
    whole = np.zeros((2, *declared.shape), declared.dtype)
    check_submission(question, Submission(kind, np.array([0, 1]), {name: whole}))
    with pytest.raises(InputError, match="shape"):
        check_submission(question, Submission(kind, np.array([0, 1]), {name: whole[:, :-1]}))


def test_answers_have_the_size_that_is_told():
    sizes = {kind: bytes_per_party(QUESTIONS[kind].fields()) - 8 for kind in KINDS}
    assert sizes == {"probabilities": 60 * 2, "statistic": 2 * 3 * 8, "parameters": 2 * 3 * 8}
    declared = QUESTIONS["probabilities"].fields()["parts"]
    assert (declared.dtype, declared.levels) == (np.uint8, BALLOT_PARTS + 1)


@pytest.mark.parametrize(
    ("kind", "changes", "told"),
    [
        # Found out at the first product, it would be a failure of every party.
        *(
            (kind, {"rows": rows}, r"rows.*3")
            for kind in ("votes", "probabilities", "statistic")
            for rows in (np.zeros((5, 2)), np.zeros(3), np.zeros((5, 3, 1)))
        ),
        *(
            ("statistic", {"coordinates": coordinates}, r"coordinates.*60")
            for coordinates in (np.zeros(60), np.zeros((59, 2)), np.zeros((60, 2, 1)))
        ),
        *(
            ("training", {name: value}, rf"{name}.*0")
            for name in ("classes", "trial")
            for value in (2.0, -1, True, None, "3")
        ),
        ("training", {"classes": 2**16 + 1}, r"classes.*0.*65536"),  # as many as votes may tell apart
    ],
)
def test_rows_coordinates_and_numbers_of_other_forms_are_refused(kind, changes, told):
    with pytest.raises(InputError, match=told):
        replace(QUESTIONS["votes"].training if kind == "training" else QUESTIONS[kind], **changes)


ASKED = [QUESTIONS["statistic_sum"], QUESTIONS["parameter_sum"]]
each = pytest.mark.parametrize("question", ASKED, ids=lambda question: question.kind)


@each
def test_an_answer_is_the_vector_for_each_draw_in_steps_of_the_noise(question):
    [field] = question.asked.fields().values()
    [own] = replace(question, draws=4).fields().values()
    assert own.shape == (4, field.numbers)
    assert question.steps == {"vectors": question.mechanism().additive.step}
    assert question.shared
    assert "share of the noise hides nothing by itself" in question.simulated_only()
    assert question.work() == question.asked.work() + question.numbers
    off = replace(question, noise=replace(question.noise, kind="off"))
    assert isinstance(off.promise(), NoGuarantee)
    assert off.steps == {}


@each
def test_it_promises_for_one_party_and_says_who_keeps_the_norm(question):
    promise = question.promise()
    assert (promise.unit, promise.adjacency) == (Unit.PARTY, Adjacency.REPLACE)
    assert (promise.epsilon, promise.delta) == (question.noise.epsilon, question.noise.delta)
    [norm] = [one for one in promise.assumptions if "by the party itself" in one.text]
    assert (norm.check, norm.keeper) == (Check.DECLARED, Keeper.SITE)
    assert question.ball.told in norm.text
    # A party that counts on fewer honest ones refuses.
    question.promise(Declared(honest=80, classes=3))
    for declared in (Declared(honest=79), Declared(classes=2)):
        refused(None, question.promise, declared)


@each
def test_other_balls_and_contributors_make_other_noise(question):
    scale = question.mechanism().additive.scale
    assert replace(question, ball=Ball(2.0)).mechanism().additive.scale == pytest.approx(2 * scale, rel=0.01)
    assert replace(question, contributors=8).mechanism().additive.scale == scale
    with pytest.raises(InputError, match="contributors"):
        replace(question, contributors=0)
