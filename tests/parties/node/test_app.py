"""A node behind Flower's app: what it serves stands in its own configuration, and its errors quote nothing private."""

import json
from dataclasses import replace

import numpy as np
import pytest
from flwr.app import Context, Message, RecordDict
from support.synthetic import Parties
from support.training_parties import cohort, make_training
from support.two_class_parties import Parties as TwoClassParties
from support.two_class_questions import marginals, unseeded

from federation.contract.errors import InputError
from federation.contract.question import ReleaseId
from federation.contract.reference import Reference
from federation.grids.codec import decode_submission, encode_question
from federation.grids.replies import PREPARE
from federation.grids.stock import ROLL_CALL
from federation.questions.votes import VotesQuestion
from parties.answers import votes
from parties.guard.answering import answered
from parties.node.app import app

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


def asked(query, content=None, *, provider="support.synthetic:Parties", seed=1, **config):
    """What a node that serves parties 0 to 2 replies."""
    known = {"holdings": Reference(provider).to_json(), "first-party": 0, "parties": 3, "partition-id": 0}
    known |= {} if seed is None else {"seed": seed}
    message = Message(content or RecordDict(), 1, f"query.{query}", group_id="")
    return app(message, Context(1, 1, {**known, **config}, RecordDict(), {}))


@pytest.fixture
def question(public):
    training = make_training(public)
    return VotesQuestion(training, training.feature_map.transform(public.rows))


def received(reply, question):
    assert not reply.has_error(), reply.error.reason
    return decode_submission(reply.content, question.fields())


def test_a_question_is_answered_for_the_parties_of_the_configuration(question):
    submission = received(asked("votes", encode_question(question)), question)
    expected = votes.answer(cohort(0, 3), question)
    assert sorted(submission.parties) == [0, 1, 2]
    np.testing.assert_array_equal(submission.parties, expected.parties)
    np.testing.assert_array_equal(submission.arrays["votes"], expected.arrays["votes"])


def test_what_hostile_parties_make_of_an_answer_is_sent_in_its_place(question):
    submission = received(asked("votes", encode_question(question), provider=f"{__name__}:Hostile"), question)
    assert not submission.arrays["votes"].any()


def test_a_deployed_node_that_gets_an_allowance_goes_on_as_far_as_it_reaches(question, tmp_path, caplog):
    """It trusts whoever asks, until it has an allowance; then as often as that says, and its own log says why not."""
    allowance = {"ledger": str(tmp_path / "spent.json"), "epsilon": 5.0, "delta": 1e-6}

    def vote(**config):
        return asked("votes", encode_question(question), seed=None, **config)

    expected = received(vote(), question).arrays["votes"]
    assert vote(allowance=json.dumps(allowance)).error.reason == "InputError"
    assert 'as often as "trusted_answers" in it says' in caplog.text
    trusting = json.dumps({**allowance, "trusted_answers": 2})
    for _ in range(2):
        np.testing.assert_array_equal(received(vote(allowance=trusting), question).arrays["votes"], expected)
    assert vote(allowance=trusting).error.reason == "BudgetExceededError"
    assert "this node does not answer: this party has given 2 of 2 answers without noise" in caplog.text
    ledger = json.loads((tmp_path / "spent.json").read_text())
    assert ledger == {party: [{"trusted": "votes"}] * 2 for party in "012"}


@pytest.mark.parametrize("query", ["votes", PREPARE])
def test_a_node_that_does_not_know_whom_it_serves_says_what_is_missing(query):
    known = Context(1, 1, {"first-party": 0, "parties": 3}, RecordDict(), {})
    reply = app(Message(RecordDict(), 1, f"query.{query}", group_id=""), known)
    assert reply.error.reason == "the node's configuration lacks 'holdings'"


def test_nodes_prepare_by_loading_their_provider():
    assert len(asked(PREPARE).content) == 0


@pytest.mark.parametrize(
    ("seed", "told"),
    [(1, "OSError: /home/ann/diagnoses.csv is gone"), (None, "OSError")],
    ids=["simulated", "deployed"],
)
def test_only_a_simulated_node_tells_more_than_the_type_of_its_error(seed, told):
    reply = asked(PREPARE, provider=f"{__name__}:Secretive", seed=seed)
    assert reply.error.reason == told


@pytest.mark.parametrize(("provider", "seed"), [("Secretive", None), ("Secretive", 1), ("Refusing", 1)])
def test_what_nobody_foresaw_stands_in_the_nodes_own_log_with_its_traceback(provider, seed, caplog):
    """What a deployed node refuses with a reason of ours is a warning there; nothing else is."""
    with caplog.at_level("DEBUG"):
        asked(PREPARE, provider=f"{__name__}:{provider}", seed=seed)
    [told] = [record for record in caplog.records if record.name == "parties.node.app"]
    assert (told.levelname, told.getMessage()) == ("DEBUG", "a node could not answer")
    assert isinstance(told.exc_info[1], OSError if provider == "Secretive" else InputError)


def test_a_refusal_of_a_deployed_node_is_a_warning_in_its_own_log(caplog):
    assert asked(PREPARE, provider=f"{__name__}:Refusing", seed=None).error.reason == "InputError"
    assert "this node does not answer: the table has no column 'label'" in caplog.messages


class Shelved(TwoClassParties):
    """A provider whose rows cannot be read for party 1, by an error that names the file."""

    def holdings(self, party):
        if party == 1:
            raise OSError(FILE)
        return super().holdings(party)


FILE = "/home/ann/diagnoses.csv"
SPENDING = unseeded(marginals())


def test_no_file_of_a_deployed_site_is_named_in_what_it_sends(tmp_path, caplog):
    """Its ledger neither, whether a party cannot pay, the file is damaged or its folder is gone; it logs that."""
    ledger = tmp_path / "spent.json"
    allowance = json.dumps({"ledger": str(ledger), "epsilon": 1.5, "delta": 0.0})

    def exchange(name, allowed=allowance):
        content = encode_question(replace(SPENDING, release=ReleaseId(name)))
        provider = f"{__name__}:Shelved"
        return asked(SPENDING.kind, content, provider=provider, seed=None, allowance=allowed)

    paid, refused = (received(exchange(name), SPENDING) for name in ("first", "second"))
    assert paid.failures == {1: "the party could not answer"}
    assert refused.failures == dict.fromkeys(range(3), "the party could not answer")
    with caplog.at_level("DEBUG"):
        assert received(exchange("third"), SPENDING).failures == refused.failures
    assert f"(1 releases are in {ledger})" in caplog.text
    ledger.write_text("[")
    assert exchange("fourth").error.reason == "InputError"
    assert f"{ledger} does not say what this node has spent" in caplog.text
    gone = allowance.replace(str(ledger), str(tmp_path / "gone" / "spent.json"))
    assert exchange("fifth", gone).error.reason == "FileNotFoundError"


@pytest.mark.parametrize("changes", [{"first-party": FILE}, {"parties": FILE}, {"limits": FILE}, {"declared": FILE}])
def test_a_configuration_that_cannot_be_read_is_quoted_in_the_nodes_own_log_alone(changes, caplog):
    assert asked(PREPARE, seed=None, **changes).error.reason == "InputError"
    assert "this node does not answer: " in caplog.text
    assert FILE in asked(PREPARE, **{"first-party": FILE}).error.reason  # of a simulation, in which nobody has files


def test_where_a_simulation_is_published_is_not_told(flower_process):
    (flower_process / "federation" / "1.json").mkdir(parents=True)
    context = Context(1, 1, {"partition-id": 0}, RecordDict(), {})
    assert app(Message(RecordDict(), 1, f"query.{PREPARE}", group_id=""), context).error.reason == "IsADirectoryError"
    (flower_process / "federation" / "1.json").rmdir()


def test_an_answer_of_another_form_than_its_question_asks_for_does_not_leave(question, monkeypatch):
    def shorter(cohort, question):
        whole = answered(cohort, question)
        return replace(whole, arrays={"votes": whole.arrays["votes"][:, 1:]})

    monkeypatch.setattr("parties.node.app.answered", shorter)
    assert "votes" in asked("votes", encode_question(question)).error.reason


def test_a_question_that_cannot_be_read_is_an_error_and_no_crash(question):
    content = encode_question(question)
    assert asked("votes").has_error()
    assert asked("counts", content).has_error()


def test_the_roll_call_needs_no_holdings():
    reply = app(
        Message(RecordDict(), 1, f"query.{ROLL_CALL}", group_id=""),
        Context(1, 1, {"partition-id": 2, "num-partitions": 5}, RecordDict(), {}),
    )
    assert dict(reply.content["node"]) == {"partition-id": 2, "num-partitions": 5}
