"""What the protocols that learn from votes ask, and where they collect the answers."""

from __future__ import annotations

from aggregator.ensemble import Ensemble
from aggregator.public import PublicRows
from aggregator.tally import VoteTally
from federation.messages import Training, VotesQuestion


class VoteProtocol:
    """Base of the vote protocols: one question per world, counted in one tally."""

    def question(self, public: PublicRows, training: Training) -> VotesQuestion:
        """Ask each party to label the auxiliary rows."""
        return VotesQuestion(training, public.rows)

    def collector(self, public: PublicRows, question: VotesQuestion, parties: int) -> Ensemble:
        """Where the answers go; what `prepare` is called with."""
        return Ensemble(public, VoteTally(question, parties))
