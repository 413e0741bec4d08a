"""Answers `individual`: what each party's own classifier scores on evaluation rows (simulation only)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from federation.errors import InputError
from federation.messages import IndividualQuestion, Submission, Training
from parties.classifiers import Predict
from parties.holdings import Cohort
from parties.isolation import Failure, isolated
from parties.training import trained, world_key


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Evaluation rows (n, d) behind the feature map, sorted by class; class c fills rows ends[c-1]:ends[c]."""

    rows: np.ndarray
    labels: np.ndarray
    ends: np.ndarray

    def scores(self, predict: Predict) -> tuple[float, float]:
        """Accuracy, and mean recall of the classes that occur."""
        hit = predict(self.rows) == self.labels
        starts = [0, *self.ends[:-1]]
        sizes = np.diff(self.ends, prepend=0)
        hits = np.array([np.count_nonzero(hit[a:b]) for a, b in zip(starts, self.ends, strict=True)])
        return hits.sum() / len(hit), (hits[sizes > 0] / sizes[sizes > 0]).mean()


_latest: dict[str, Evaluation] = {}  # of one world: its cohorts share the evaluation rows


def _evaluation(cohort: Cohort, training: Training) -> Evaluation:
    key = world_key(cohort, training)
    if key not in _latest:
        found = cohort.provider.evaluation()
        if found is None:
            raise InputError("individual accuracies are a simulation's baseline; this node has no evaluation rows")
        rows, labels = training.feature_map.transform(found[0]), found[1]
        order = np.argsort(labels, kind="stable")
        ends = np.cumsum(np.bincount(labels, minlength=training.classes))
        _latest.clear()
        _latest[key] = Evaluation(rows[order], labels[order], ends)
    return _latest[key]


def answer(cohort: Cohort, question: IndividualQuestion) -> Submission:
    """Accuracy and balanced accuracy of the parties with an id below `question.first`; NON-PRIVATE.

    Raises `InputError` where the node has no evaluation rows, as in every deployment.
    """
    names = list(question.fields())
    if cohort.first >= question.first:
        return Submission(question.kind, np.empty(0, np.int64), {name: np.empty(0) for name in names})
    evaluation = _evaluation(cohort, question.training)
    outcome = trained(cohort, question.training)
    failures = dict(outcome.failures)
    scores: dict[int, tuple[float, float]] = {}
    for party, predict in outcome.classifiers.items():
        if party < question.first:
            scored = isolated(cohort, party, lambda predict=predict: evaluation.scores(predict))  # type: ignore[misc]
            if isinstance(scored, Failure):
                failures[party] = scored.reason
            else:
                scores[party] = scored
    columns = np.array(list(scores.values())).reshape(len(scores), len(names)).T
    parties = np.array(list(scores), dtype=np.int64)
    return Submission(question.kind, parties, dict(zip(names, columns.copy(), strict=True)), None, failures)
