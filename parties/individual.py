"""Answers `individual`: what each party's own classifier scores on evaluation rows (simulation only)."""

from __future__ import annotations

import numpy as np

from federation.errors import InputError
from federation.messages import IndividualQuestion, Submission
from parties.holdings import Cohort
from parties.training import trained


def answer(cohort: Cohort, question: IndividualQuestion) -> Submission:
    """Accuracy and balanced accuracy of the parties with an id below `question.first`; NON-PRIVATE.

    Raises `InputError` where the node has no evaluation rows, as in every deployment.
    """
    names = list(question.fields())
    if cohort.first >= question.first:
        return Submission(question.kind, np.empty(0, np.int64), {name: np.empty(0) for name in names})
    evaluation = cohort.provider.evaluation()
    if evaluation is None:
        raise InputError("individual accuracies are a simulation's baseline; this node has no evaluation rows")
    rows, labels = question.training.feature_map.transform(evaluation[0]), evaluation[1]
    outcome = trained(cohort, question.training)
    sampled = {party: predict for party, predict in outcome.classifiers.items() if party < question.first}
    sizes = np.bincount(labels, minlength=question.training.classes)
    scores = np.empty((len(sampled), 2))
    for score, predict in zip(scores, sampled.values(), strict=True):
        hits = np.bincount(labels, weights=predict(rows) == labels, minlength=len(sizes))
        score[:] = hits.sum() / sizes.sum(), (hits[sizes > 0] / sizes[sizes > 0]).mean()
    parties = np.fromiter(sampled, dtype=np.int64, count=len(sampled))
    return Submission(question.kind, parties, dict(zip(names, scores.T.copy(), strict=True)), None, outcome.failures)
