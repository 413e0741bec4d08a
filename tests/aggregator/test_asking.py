"""Hostile, broken and silent nodes cost their own parties only."""

import numpy as np
import pytest
from flwr.app import Array, Error, Message

from aggregator.asking import ask, require_quorum
from aggregator.tally import VoteTally
from federation.errors import QuorumError
from federation.features import fit
from federation.grids.codec import encode_submission
from federation.grids.nodes import simulated_nodes
from federation.grids.queue import QueueGrid
from federation.messages import Submission, Training, VotesQuestion
from federation.reference import Reference


class ScriptedGrid(QueueGrid):
    """Each node's reply is made by a function of (question, cohort); None stays silent."""

    def __init__(self, question, replies):
        self._question, self._script = question, replies
        super().__init__()
        self.assign(simulated_nodes(2 * len(replies), 2, Reference("synthetic:Parties"), 1))

    def _advance(self):
        if self._queue:
            work = self._queue.pop(next(iter(self._queue)))
            make = self._script[work.node - 1]
            first = self.nodes[work.node].node_config["first-party"]
            if make is not None:
                self._accept(
                    [Message(make(self._question, [first, first + 1]), reply_to=message) for message in work.messages]
                )

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


def duplicating(question, parties):
    return honest(question, [0, 1])


def off_simplex(question, parties):
    records = honest(question, parties)
    records["arrays"]["votes"] = Array(np.tile([100.0, -99.0], (2, 60)))
    return records


def alien(question, parties):
    return honest(question, [10**9, parties[0]])


def gathered(question, replies, timeout=None):
    tally = VoteTally(question, 2 * len(replies))
    causes = ask(ScriptedGrid(question, replies), [(question, tally)], timeout)
    return tally, causes


def test_honest_answers_are_all_counted(question):
    tally, causes = gathered(question, [honest, honest])
    assert (tally.answered, causes) == (4, {})
    assert (tally.counts[:, 1] == 4).all()


@pytest.mark.parametrize(
    ("bad", "words", "counted"),
    [
        (failing, "disk full", 4),
        (shouting, "outside 0..2", 4),
        (duplicating, "twice", 4),
        (off_simplex, "packed field", 4),
        (alien, "declared parties", 5),
    ],
)
def test_a_bad_node_is_contained(question, bad, words, counted):
    tally, causes = gathered(question, [honest, bad, honest])
    assert tally.answered == counted
    assert any(words in cause for cause in causes)
    assert tally.counts.max() == counted


def test_a_silent_node_ends_with_the_time_limit(question):
    tally, causes = gathered(question, [honest, None], timeout=0.05)
    assert tally.answered == 2
    assert causes == {"node silent for 0.05 seconds": 1}


@pytest.mark.parametrize(("answered", "passes"), [(0, False), (4, False), (5, True), (10, True)])
def test_the_quorum_is_a_share_of_the_declared_parties(answered, passes):
    if passes:
        require_quorum(answered, 10, 0.5, {})
    else:
        with pytest.raises(QuorumError, match=r"3 x late; 1 x broken"):
            require_quorum(answered, 10, 0.5, {"broken": 1, "late": 3})


def test_nobody_is_never_a_quorum():
    with pytest.raises(QuorumError):
        require_quorum(0, 10, 1e-9, {})
