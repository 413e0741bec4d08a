import json
from dataclasses import replace

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from federation.contract.errors import InputError
from federation.features import fit
from federation.grids.codec import (
    bytes_per_party,
    decode_question,
    decode_submission,
    encode_question,
    encode_submission,
)
from federation.contract.guarantee import Adjacency, Assumption, Check, Guarantee, Unit
from federation.questions.votes import IndividualQuestion, Training, VotesQuestion
from federation.contract.submission import Submission


@pytest.fixture
def question(public):
    feature_map = fit([{"whiten": 3}, "unit_norm"], public.rows)
    training = Training(feature_map, 3, {"name": "logistic", "parameters": {"regularisation": 0.01}}, 7)
    return VotesQuestion(training, feature_map.transform(public.rows))


def submission(question, parties=4):
    votes = np.random.default_rng(0).integers(0, 3, (parties, len(question.rows))).astype(np.uint8)
    return Submission("votes", np.arange(parties), {"votes": votes}, None, {9: "holds no rows"})


def test_a_question_survives_the_wire(question, public):
    restored = decode_question(encode_question(question), VotesQuestion)
    np.testing.assert_array_equal(restored.rows, question.rows)
    np.testing.assert_array_equal(restored.training.feature_map.transform(public.rows), question.rows)
    assert (restored.training.classes, restored.training.trial) == (3, 7)
    assert restored.training.classifier == question.training.classifier


def test_scalar_fields_of_a_question_survive(question):
    restored = decode_question(encode_question(IndividualQuestion(question.training, 11)), IndividualQuestion)
    assert restored.first == 11


def test_a_submission_survives_the_wire(question):
    sent = submission(question)
    received = decode_submission(encode_submission(sent, question.fields()), question.fields())
    np.testing.assert_array_equal(received.arrays["votes"], sent.arrays["votes"])
    np.testing.assert_array_equal(received.parties, sent.parties)
    assert received.failures == {9: "holds no rows"}
    assert received.guarantee is None


def test_a_private_submission_keeps_its_guarantee(question):
    guarantee = Guarantee(
        1.0, 0.0, Unit.PARTY, Adjacency.REPLACE, "l2_gamma", {"scale": 2.0}, (Assumption("a", Check.CHECKED),)
    )
    sent = replace(submission(question), guarantee=guarantee)
    assert decode_submission(encode_submission(sent, question.fields()), question.fields()).guarantee == guarantee


def test_a_submission_carries_its_declared_fields_and_nothing_else(question):
    hiding = submission(question)
    hiding.arrays["rows"] = question.rows  # a party's rows must not slip through
    records = encode_submission(hiding, question.fields())
    assert set(records["arrays"]) == {"votes", "parties"}
    assert set(json.loads(records["settings"]["json"])) == {"kind", "failures", "guarantee"}


def test_an_undeclared_field_is_refused_on_arrival(question):
    records = encode_submission(submission(question), question.fields())
    records["arrays"]["rows"] = Array(question.rows)
    with pytest.raises(InputError, match="rows"):
        decode_submission(records, question.fields())


@pytest.mark.parametrize("text", ["not json", "[]", "{}"])
def test_garbage_is_an_input_error(text):
    records = RecordDict({"settings": ConfigRecord({"json": text}), "arrays": ArrayRecord({})})
    with pytest.raises(InputError):
        decode_submission(records, {})
    with pytest.raises(InputError):
        decode_question(records, VotesQuestion)


def test_a_short_packed_field_is_refused(question):
    records = encode_submission(submission(question), question.fields())
    records["arrays"]["votes"] = Array(records["arrays"]["votes"].numpy()[:, :-1].copy())
    with pytest.raises(InputError, match="packed"):
        decode_submission(records, question.fields())


def test_bytes_per_party_is_what_the_arrays_occupy(question):
    records = encode_submission(submission(question, parties=5), question.fields())
    arrays = [array.numpy() for array in records["arrays"].values()]
    assert bytes_per_party(question.fields()) == sum(array.nbytes for array in arrays) / 5
