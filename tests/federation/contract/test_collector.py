"""What an aggregator may rely on of a collector: this protocol, and no base class of ours."""

import numpy as np
import pytest
from flwr.app import Message

from aggregator.server.releasing import Inquiry
from aggregator.trial.feature_fitting import fit
from federation.contract.plugins import Reference
from federation.contract.query import Collector, Submission
from federation.engines.codec import encode_submission
from federation.engines.nodes import Placement, QueueGrid
from federation.engines.sending import Asking, Failures
from federation.queries.votes import Training, VotesQuestion


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
