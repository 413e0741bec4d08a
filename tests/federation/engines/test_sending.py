"""Hostile, broken and silent nodes cost their own parties only.

Causes of failure with their numbers.
"""

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, RecordDict
from hypothesis import given
from hypothesis import strategies as st

from aggregator.ensembles.output import VoteTally
from aggregator.trial.feature_fitting import fit
from federation.contract.errors import QuorumError
from federation.contract.plugins import Reference
from federation.contract.query import Submission
from federation.engines.codec import encode_submission
from federation.engines.nodes import Placement, QueueGrid
from federation.engines.sending import Asking, Failures, describe, require_quorum
from federation.queries.votes import Training, VotesQuestion


class ScriptedGrid(QueueGrid):
    """Each node's reply is made by a function of (question, cohort); None stays silent."""

    def __init__(self, question, replies):
        self._question, self._script = question, replies
        super().__init__()
        self.assign(Placement(2 * len(replies), 2, Reference("support.synthetic:Parties"), 1))

    def _advance(self):
        if self._queue:
            node, messages = self._next()
            make = self._script[node - 1]
            first = self.nodes[node].node_config["first-party"]
            if make is not None:
                self._accept(Message(make(self._question, [first, first + 1]), reply_to=m) for m in messages)

    def close(self):
        pass


@pytest.fixture
def question(public):
    return VotesQuestion(Training(fit(["unit_norm"], public.rows), 3, {}, 0), public.rows)


def honest(question, parties):
    votes = np.ones((len(parties), len(question.rows)), dtype=np.uint8)
    return encode_submission(Submission("votes", np.array(parties), {"votes": votes}), question.fields())


def failing(question, parties):
    return Error(2, "disk full")


def shouting(question, parties):
    records = honest(question, parties)
    records["arrays"]["votes"] = Array(np.full((2, 30), 255, dtype=np.uint8))
    return records


def impersonating(question, parties):
    return honest(question, [0, 1])


def off_simplex(question, parties):
    records = honest(question, parties)
    records["arrays"]["votes"] = Array(np.tile([100.0, -99.0], (2, 60)))
    return records


def alien(question, parties):
    return honest(question, [10**9, parties[0]])


def gossiping(question, parties):
    records = honest(question, parties)
    records["arrays"]["votes"] = Array("uint8", (2, 30), "numpy.ndarray", b"")
    return records


def rambling(question, parties):
    return RecordDict({"settings": ConfigRecord({"json": "[" * 100_000}), "arrays": ArrayRecord({})})


def gathered(question, replies, timeout=None, verbose=True):
    tally = VoteTally(question, 2 * len(replies))
    failures = Failures(verbose)
    Asking(2 * len(replies), 2, timeout).ask(ScriptedGrid(question, replies), [(question, [tally])], failures)
    return tally, failures.causes()


def test_honest_answers_are_all_counted(question):
    tally, causes = gathered(question, [honest, honest])
    assert (tally.answered, causes) == (4, {})
    assert (tally.counts[:, 1] == 4).all()


@pytest.mark.parametrize(
    ("bad", "words", "counted"),
    [
        (failing, "disk full", 4),
        (shouting, "outside 0..2", 4),
        (impersonating, "does not serve", 4),
        (alien, "does not serve", 4),
        (off_simplex, "packed field", 4),
        (gossiping, "a message cannot be read", 4),
        (rambling, "answer refused", 4),
    ],
)
def test_a_bad_node_is_contained(question, bad, words, counted):
    tally, causes = gathered(question, [honest, bad, honest])
    assert tally.answered == counted
    assert any(words in cause for cause in causes)
    assert tally.counts.max() == counted


def test_a_silent_node_ends_the_run_and_is_not_left_out(question):
    with pytest.raises(QuorumError, match=r"timeout.*0\.05"):
        gathered(question, [honest, None], timeout=0.05)


def test_in_a_deployment_causes_are_counted_but_not_told(question):
    _, causes = gathered(question, [honest, failing, shouting], verbose=False)
    assert causes == {"no usable answer": 4}


def test_long_texts_are_cut(question):
    _, causes = gathered(question, [honest, lambda *_: Error(2, "x" * 10**6)])
    assert max(map(len, causes)) <= 200


@pytest.mark.parametrize(("answered", "passes"), [(0, False), (4, False), (5, True), (10, True)])
def test_the_quorum_is_a_share_of_the_declared_parties(answered, passes):
    if passes:
        require_quorum(answered, 10, 0.5, {})
    else:
        with pytest.raises(QuorumError, match=r"3.*1"):
            require_quorum(answered, 10, 0.5, {"broken": 1, "late": 3})


def test_nobody_is_never_a_quorum():
    with pytest.raises(QuorumError):
        require_quorum(0, 10, 1e-9, {})


def test_the_first_cause_of_a_party_counts():
    failures = Failures(verbose=True)
    failures.add([1, 2], "dropped out")
    failures.add([2, 3], "no rows")
    assert failures.causes() == {"dropped out": 2, "no rows": 1}


def test_causes_that_name_parties_are_one_cause():
    failures = Failures(verbose=True)
    failures.add([3], "party 3 holds NaN")
    assert failures.causes() == {"party 3 holds NaN": 1}
    failures.add([17], "party 17 holds NaN")
    assert failures.causes() == {"a party holds NaN": 2}


def test_texts_are_one_short_line():
    failures = Failures(verbose=True)
    failures.add([1], "two\n lines " + "x" * 10**6)
    [cause] = failures.causes()
    assert cause.startswith("two lines x")
    assert len(cause) <= 200


@pytest.mark.slow
@given(st.dictionaries(st.integers(0, 99), st.text(max_size=30)))
def test_a_deployment_tells_numbers_only(causes):
    failures = Failures(verbose=False)
    for party, text in causes.items():
        failures.add([party], text)
    assert failures.causes() == ({"no usable answer": len(causes)} if causes else {})


@given(st.dictionaries(st.integers(0, 99), st.text(max_size=30)))
def test_every_failed_party_is_counted_once(causes):
    failures = Failures(verbose=True)
    for party, text in causes.items():
        failures.add([party], text)
    counts = list(failures.causes().values())
    assert sum(counts) == len(causes)
    assert counts == sorted(counts, reverse=True)


def test_the_most_frequent_causes_are_told():
    causes = {"a": 1, "b": 30, "c": 7, "d": 4, "e": 1}
    assert describe(causes) == "30 x b; 7 x c; 4 x d; 2 for other reasons"
    assert describe({"a": 1}) == "1 x a"
    assert describe({}) == ""
