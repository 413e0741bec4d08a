"""A simulation's node behind Flower's app: what it serves stands in its own configuration; it serves no real rows."""

from dataclasses import replace

import numpy as np
import pytest
from flwr.app import Context, Message, RecordDict
from support.synthetic import Parties
from support.training_parties import cohort, make_training

from federation.contract.errors import InputError
from federation.contract.plugins import Reference
from federation.engines.codec import decode_submission, encode_question
from federation.engines.nodes import PREPARE, ROLL_CALL
from federation.queries.votes import VotesQuestion
from parties.app import app
from parties.guard.answering import answered
from parties.responses import votes

pytestmark = pytest.mark.usefixtures("flower_process")


class Hostile(Parties):
    """Parties that all vote for the first class, whatever they have learned."""

    def sent(self, question, submission):
        return replace(submission, arrays={"votes": np.zeros_like(submission.arrays["votes"])})


class Secretive:
    """A provider that cannot be loaded, for a reason that nobody may read."""

    def __init__(self):
        raise OSError("/home/ann/diagnoses.csv is gone")


class Refusing:
    """A provider that says what is missing."""

    def __init__(self):
        raise InputError("the table has no column 'label'")


def asked(query, content=None, *, provider="support.synthetic:Parties", **config):
    """What a node that serves parties 0 to 2 replies."""
    known = {"holdings": Reference(provider).to_json(), "first-party": 0, "parties": 3, "partition-id": 0, "seed": 1}
    message = Message(content or RecordDict(), 1, f"query.{query}", group_id="")
    return app(message, Context(1, 1, {**known, **config}, RecordDict(), {}))


@pytest.fixture
def question(public):
    training = make_training(public)
    return VotesQuestion(training, training.feature_map.transform(public.rows))


def received(reply, question):
    assert not reply.has_error(), reply.error.reason
    return decode_submission(reply.content, question.fields())


def test_a_question_is_answered_for_the_parties_of_the_configuration_as_hostile_ones_make_it(question):
    submission = received(asked("votes", encode_question(question)), question)
    expected = votes.respond_votes(cohort(0, 3), question)
    assert sorted(submission.parties) == [0, 1, 2]
    np.testing.assert_array_equal(submission.parties, expected.parties)
    np.testing.assert_array_equal(submission.arrays["votes"], expected.arrays["votes"])
    submission = received(asked("votes", encode_question(question), provider=f"{__name__}:Hostile"), question)
    assert not submission.arrays["votes"].any()


@pytest.mark.parametrize("query", ["votes", PREPARE])
@pytest.mark.parametrize("further", [{}, {"allowance": "{}", "public-features": True}])
def test_a_node_without_a_seed_loads_nothing_and_answers_nothing(query, question, further, monkeypatch):
    """Flower's own node of a real party would run whatever app it is sent."""
    monkeypatch.setattr(Parties, "__init__", lambda self: pytest.fail("its rows were loaded"))
    for without in ({"seed": None}, {"seed": ""}):
        reply = asked(query, encode_question(question), **without, **further)
        assert reply.has_error()
    known = {"holdings": Reference("support.synthetic:Parties").to_json(), "first-party": 0, "parties": 3}
    message = Message(encode_question(question), 1, f"query.{query}", group_id="")
    reply = app(message, Context(1, 1, {**known, **further}, RecordDict(), {}))
    assert reply.error.reason == (
        "a Flower node without a seed answers nothing; serve real rows by 'federation party run'"
    )


@pytest.mark.parametrize("query", ["votes", PREPARE])
def test_a_node_that_does_not_know_whom_it_serves_says_what_is_missing(query):
    known = Context(1, 1, {"first-party": 0, "parties": 3}, RecordDict(), {})
    reply = app(Message(RecordDict(), 1, f"query.{query}", group_id=""), known)
    assert reply.error.reason == "the node's configuration lacks 'holdings'"


@pytest.mark.parametrize(
    ("provider", "why"),
    [("Secretive", "OSError: /home/ann/diagnoses.csv is gone"), ("Refusing", "the table has no column 'label'")],
)
def test_a_simulated_node_says_why_and_its_own_log_has_the_traceback(provider, why, caplog):
    with caplog.at_level("DEBUG"):
        assert asked(PREPARE, provider=f"{__name__}:{provider}").error.reason == why
    [told] = [record for record in caplog.records if record.name == "parties.app"]
    assert (told.levelname, told.getMessage()) == ("DEBUG", "a node could not answer")
    assert isinstance(told.exc_info[1], OSError if provider == "Secretive" else InputError)


def test_where_a_simulation_is_published_is_not_told_and_the_roll_call_needs_no_holdings(flower_process):
    (flower_process / "federation" / "1.json").mkdir(parents=True)
    context = Context(1, 1, {"partition-id": 0}, RecordDict(), {})
    reply = app(Message(RecordDict(), 1, f"query.{PREPARE}", group_id=""), context)
    assert reply.error.reason == "the node's configuration lacks 'holdings'"
    (flower_process / "federation" / "1.json").rmdir()
    reply = app(
        Message(RecordDict(), 1, f"query.{ROLL_CALL}", group_id=""),
        Context(1, 1, {"partition-id": 2, "num-partitions": 5}, RecordDict(), {}),
    )
    assert dict(reply.content["node"]) == {"partition-id": 2, "num-partitions": 5}


def test_an_answer_of_another_form_than_its_question_asks_for_does_not_leave(question, monkeypatch):
    def shorter(cohort, question):
        whole = answered(cohort, question)
        return replace(whole, arrays={"votes": whole.arrays["votes"][:, 1:]})

    content = encode_question(question)
    assert len(asked(PREPARE).content) == 0  # its provider is loaded
    assert asked("votes").has_error()  # what cannot be read is an error and no crash
    assert asked("counts", content).has_error()
    monkeypatch.setattr("parties.app.answered", shorter)
    assert "votes" in asked("votes", content).error.reason
