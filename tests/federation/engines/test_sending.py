"""Hostile, broken and silent nodes cost their own parties only.

Causes of failure with their numbers.
"""

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, RecordDict
from hypothesis import given
from hypothesis import strategies as st
from support.questions import QUESTIONS

from aggregator.ensembles.output import VoteTally
from federation.contract.errors import QuorumError
from federation.contract.plugins import Reference
from federation.contract.query import Submission
from federation.engines.codec import encode_submission
from federation.engines.nodes import Placement, QueueGrid
from federation.engines.sending import Asking, Failures, describe, require_quorum

VOTES = QUESTIONS["votes"]


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


def honest(question, parties):
    votes = np.ones((len(parties), len(question.rows)), dtype=np.uint8)
    return encode_submission(Submission("votes", np.array(parties), {"votes": votes}), question.fields())


def failing(question, parties):
    return Error(2, "disk full")


def saying(array):
    """A node whose votes are this array."""

    def answer(question, parties):
        records = honest(question, parties)
        records["arrays"]["votes"] = array
        return records

    return answer


def impersonating(question, parties):
    return honest(question, [0, 1])


def alien(question, parties):
    return honest(question, [10**9, parties[0]])


shouting = saying(Array(np.full((2, 15), 255, dtype=np.uint8)))
off_simplex = saying(Array(np.tile([100.0, -99.0], (2, 30))))
gossiping = saying(Array("uint8", (2, 15), "numpy.ndarray", b""))


def rambling(question, parties):
    return RecordDict({"settings": ConfigRecord({"json": "[" * 100_000}), "arrays": ArrayRecord({})})


def gathered(replies, timeout=None, verbose=True):
    tally = VoteTally(VOTES, 2 * len(replies))
    failures = Failures(verbose)
    Asking(2 * len(replies), 2, timeout).ask(ScriptedGrid(VOTES, replies), [(VOTES, [tally])], failures)
    return tally, failures.causes()


def test_honest_answers_are_all_counted():
    tally, causes = gathered([honest, honest])
    assert (tally.answered, causes) == (4, {})
    assert (tally.counts[:, 1] == 4).all()


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (failing, "disk full"),
        (shouting, "outside 0..2"),
        (impersonating, "does not serve"),
        (alien, "does not serve"),
        (off_simplex, "packed field"),
        (gossiping, "a message cannot be read"),
        (rambling, "answer refused"),
    ],
)
def test_a_bad_node_is_contained(bad, words):
    tally, causes = gathered([honest, bad, honest])
    assert tally.answered == tally.counts.max() == 4
    assert any(words in cause for cause in causes)


class Kept:
    """Keeps the ids of parties, and refuses those that are told."""

    def __init__(self, *refused):
        self.parties, self._refused = [], refused

    def add(self, submission):
        self.parties += [party for party in submission.parties.tolist() if party not in self._refused]
        return dict.fromkeys(self._refused, "not wanted")


def test_answers_reach_every_collector_and_refusals_are_failures():
    first, second, failures = Kept(), Kept(1, 4), Failures(verbose=True)
    grid = ScriptedGrid(VOTES, [honest] * 3)
    Asking(6, 2, None).ask(grid, [(VOTES, [first, second])], failures)
    assert sorted(first.parties) == [0, 1, 2, 3, 4, 5]
    assert sorted(second.parties) == [0, 2, 3, 5]
    assert failures.causes() == {"not wanted": 2}


def test_a_silent_node_ends_the_run_and_is_not_left_out():
    with pytest.raises(QuorumError, match=r"timeout.*0\.05"):
        gathered([honest, None], timeout=0.05)


def test_in_a_deployment_causes_are_counted_but_not_told():
    _, causes = gathered([honest, failing, shouting], verbose=False)
    assert causes == {"no usable answer": 4}


def test_the_quorum_is_a_share_of_the_declared_parties_and_nobody_is_never_one():
    for answered in (5, 10):
        require_quorum(answered, 10, 0.5, {})
    for answered, quorum, causes, told in (
        *((answered, 0.5, {"broken": 1, "late": 3}, r"3.*1") for answered in (0, 4)),
        (0, 1e-9, {}, None),
    ):
        with pytest.raises(QuorumError, match=told):
            require_quorum(answered, 10, quorum, causes)


def test_the_first_cause_of_a_party_counts_and_causes_that_name_parties_are_one_short_line():
    failures = Failures(verbose=True)
    failures.add([1, 2], "dropped out")
    failures.add([2, 3], "no rows")
    assert failures.causes() == {"dropped out": 2, "no rows": 1}
    failures = Failures(verbose=True)
    failures.add([3], "party 3 holds NaN")
    assert failures.causes() == {"party 3 holds NaN": 1}
    failures.add([17], "party 17 holds NaN")
    assert failures.causes() == {"a party holds NaN": 2}
    failures = Failures(verbose=True)
    failures.add([1], "two\n lines " + "x" * 10**6)
    [cause] = failures.causes()
    assert cause.startswith("two lines x")
    assert len(cause) <= 200


@pytest.mark.slow
@given(st.dictionaries(st.integers(0, 99), st.text(max_size=30)))
def test_every_failed_party_is_counted_once_and_a_deployment_tells_numbers_only(causes):
    simulated, deployed = Failures(verbose=True), Failures(verbose=False)
    for party, text in causes.items():
        simulated.add([party], text)
        deployed.add([party], text)
    counts = list(simulated.causes().values())
    assert sum(counts) == len(causes)
    assert counts == sorted(counts, reverse=True)
    assert deployed.causes() == ({"no usable answer": len(causes)} if causes else {})


def test_the_most_frequent_causes_are_told():
    causes = {"a": 1, "b": 30, "c": 7, "d": 4, "e": 1}
    assert describe(causes) == "30 x b; 7 x c; 4 x d; 2 for other reasons"
    assert describe({"a": 1}) == "1 x a"
    assert describe({}) == ""
