"""The questions beside `votes`: they survive the wire, and an answer of another form is refused."""

import numpy as np
import pytest

from federation.contract.errors import InputError
from federation.features import fit
from federation.grids.codec import bytes_per_party, decode_question, encode_question, question_digest
from federation.questions.votes import (
    BALLOT_PARTS,
    ParametersQuestion,
    ProbabilitiesQuestion,
    StatisticQuestion,
    Training,
)
from federation.contract.submission import Submission, check_submission


def asked(public):
    feature_map = fit([{"whiten": 3}, "unit_norm"], public.rows)
    training = Training(feature_map, 4, {"name": "logistic", "parameters": {"regularisation": 0.01}}, 7)
    rows = feature_map.transform(public.rows)
    return {
        "probabilities": ProbabilitiesQuestion(training, rows),
        "statistic": StatisticQuestion(training, rows, rows[:, :2].copy(), 0.75, "probabilities"),
        "parameters": ParametersQuestion(training, 1e-9, 12.5),
    }


KINDS = ("probabilities", "statistic", "parameters")


@pytest.mark.parametrize("kind", KINDS)
def test_a_question_survives_the_wire(public, kind):
    question = asked(public)[kind]
    restored = decode_question(encode_question(question), type(question))
    assert restored.kind == kind
    assert restored.fields() == question.fields()
    assert question_digest(restored) == question_digest(question)


def test_different_questions_have_different_digests(public):
    questions = [*asked(public).values()]
    other = StatisticQuestion(questions[1].training, questions[1].rows, questions[1].coordinates, 0.75, "labels")
    assert len({question_digest(question) for question in [*questions, other]}) == 4


def test_answers_have_the_size_that_is_told(public):
    sizes = {kind: bytes_per_party(question.fields()) - 8 for kind, question in asked(public).items()}
    assert sizes == {"probabilities": 120 * 3, "statistic": 3 * 2 * 8, "parameters": 3 * 3 * 8}


@pytest.mark.parametrize("kind", KINDS)
def test_a_smaller_answer_is_refused(public, kind):
    question = asked(public)[kind]
    ((name, declared),) = question.fields().items()
    whole = np.zeros((2, *declared.shape), declared.dtype)
    check_submission(question, Submission(kind, np.array([0, 1]), {name: whole}))
    with pytest.raises(InputError, match="shape"):
        check_submission(question, Submission(kind, np.array([0, 1]), {name: whole[:, :-1]}))


def test_a_part_fits_a_byte(public):
    declared = asked(public)["probabilities"].fields()["parts"]
    assert (declared.dtype, declared.levels) == (np.uint8, BALLOT_PARTS + 1)
