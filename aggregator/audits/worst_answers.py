"""The worst pair of neighbouring answers for a variant, whatever it asks: what an end-to-end audit runs it on."""

from __future__ import annotations

from typing import Any

import numpy as np

from aggregator.audits import worst_case
from aggregator.audits.worst_case import PARTIES
from aggregator.parameter_average import ParameterAverage
from aggregator.soft_vote import SoftVote
from aggregator.world.public import PublicRows
from federation.features import fit
from federation.messages import (
    BALLOT_PARTS,
    ParametersQuestion,
    ProbabilitiesQuestion,
    StatisticQuestion,
    Submission,
    Training,
)
from federation.numerics.contrasts import contrasts

_REGULARISATION = 1e-2  # of the parties; the noise scales with what follows from it


def neighbours(chosen: Any) -> tuple[Any, Any]:
    """Two collectors of `chosen`, of 5 parties and 2 classes, that differ in one party's answer only.

    Parameters: the party turns a vector of the greatest norm that counts. Shares and probabilities: those of the
    votes of `worst_case.neighbours`, all of which the party flips.
    """
    if isinstance(chosen, ParameterAverage):
        public = PublicRows(fit(["unit_norm"], np.eye(2)), np.eye(2))
        return _collected(chosen, public, 0), _collected(chosen, public, 1)
    votes = worst_case.neighbours(chosen)
    if isinstance(chosen, SoftVote) and (chosen.submit, chosen.ballot) != (SoftVote.submit, SoftVote.ballot):
        public = votes[0].public
        return _collected(chosen, public, 0), _collected(chosen, public, 1)
    return votes


def _collected(chosen: Any, public: PublicRows, flipped: int) -> Any:
    classifier = {"name": "logistic", "parameters": {"regularisation": _REGULARISATION}}
    question = chosen.question(public, Training(public.feature_map, 2, classifier, 0))
    labels = np.arange(PARTIES) % 2  # of each party on every row; the others are split evenly
    labels[0] = flipped
    collector = chosen.collector(public, question, PARTIES)
    ((name, declared),) = question.fields().items()
    answers = _answers(question, labels).reshape(PARTIES, *declared.shape).astype(declared.dtype)
    collector.add(Submission(question.kind, np.arange(PARTIES), {name: answers}))
    return collector


def _answers(
    question: ParametersQuestion | ProbabilitiesQuestion | StatisticQuestion, labels: np.ndarray
) -> np.ndarray:
    """What the parties with these labels on every row send, one after another."""
    if isinstance(question, ParametersQuestion):
        return np.outer(2 * labels - 1, [question.largest, 0.0])
    rows = len(question.rows)
    if isinstance(question, ProbabilitiesQuestion):
        return np.repeat(BALLOT_PARTS * (1 - labels), rows)
    return np.outer(contrasts(2)[labels, 0], question.coordinates.mean(axis=0))
