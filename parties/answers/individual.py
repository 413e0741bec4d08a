"""Answers `individual`: what each party's own classifier scores on evaluation rows (simulation only)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from federation.contract.errors import InputError
from federation.contract.query import Submission
from federation.queries.votes import IndividualQuestion, Training
from parties.holdings.cohort import Cohort
from parties.holdings.groups import Group, asked, stacked
from parties.training.ordering import auc
from parties.training.training import trained, world_key

_EVALUATED = 20_000  # evaluation rows at most, in the proportions of the classes: an error of .003 in a split
_ORDERED = 500  # evaluation rows of a class at most whose order is scored: an error of .01 in a split, and much faster
_BLOCK = 1 << 22  # votes at a time; a group of one party, whose classifier may be slow to start, gets all rows at once


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Evaluation rows (n, d) behind the feature map, sorted by class; class c fills rows ends[c-1]:ends[c]."""

    rows: np.ndarray
    labels: np.ndarray
    ends: np.ndarray

    def scores(self, group: Group) -> dict[str, np.ndarray]:
        """Accuracy, mean recall of the classes that occur, and of two classes AUC, of each party: (P,) of each."""
        hits = self._hits(group)
        sizes = np.diff(self.ends, prepend=0)
        occurring = np.flatnonzero(sizes)
        # One class after another: a fixed order of addition, whatever the number of parties.
        recall = sum((hits[:, c] / sizes[c] for c in occurring), start=np.zeros(len(hits))) / len(occurring)
        found = {"accuracy": hits.sum(axis=1) / len(self.labels), "balanced_accuracy": recall}
        if len(self.ends) == 2:
            found["auc"] = self._auc(group) if len(occurring) == 2 and group.gives_probabilities else recall
        return found

    def _auc(self, group: Group) -> np.ndarray:
        """Of each party's probabilities (P,), by evenly spaced rows; without these votes order rows, by the recall."""
        sides = []
        for start, end in ((0, self.ends[0]), tuple(self.ends)):
            rows = self.rows[start : end : max(1, -(-(end - start) // _ORDERED))]
            step = max(1, _BLOCK // (2 * len(group.parties)))
            blocks = [group.probabilities(rows[i : i + step])[:, :, 1] for i in range(0, len(rows), step)]
            sides.append(np.concatenate(blocks, axis=1))
        return np.array([auc(*pair) for pair in zip(*sides, strict=True)])

    def _hits(self, group: Group) -> np.ndarray:
        """Right votes of each party by class, (P, C)."""
        hits = np.zeros((len(group.parties), len(self.ends)), dtype=np.int64)
        step = len(self.rows) if len(group.parties) == 1 else max(1, _BLOCK // len(group.parties))
        for start in range(0, len(self.rows), step):
            hit = group.votes(self.rows[start : start + step]) == self.labels[start : start + step]
            starts = np.clip([0, *self.ends[:-1]], start, start + hit.shape[1]) - start
            ends = np.clip(self.ends, start, start + hit.shape[1]) - start
            for label in np.flatnonzero(ends > starts):
                hits[:, label] += [np.count_nonzero(one) for one in hit[:, starts[label] : ends[label]]]
        return hits


# By provider, and by world and feature map: the cohorts of a world are asked behind all its maps in turn.
_chosen: dict[str, tuple[np.ndarray, np.ndarray]] = {}
_known: dict[str, Evaluation] = {}
_MOST_KNOWN = 16


def _evaluation(cohort: Cohort, training: Training) -> Evaluation:
    key = world_key(cohort, training)
    if key not in _known:
        rows, labels = _evaluated(cohort)
        ends = np.cumsum(np.bincount(labels, minlength=training.classes))
        smallest = np.min_scalar_type(training.classes - 1)
        while len(_known) >= _MOST_KNOWN:
            _known.pop(next(iter(_known)))
        _known[key] = Evaluation(training.feature_map.transform(rows), labels.astype(smallest), ends)
    return _known[key]


def _evaluated(cohort: Cohort) -> tuple[np.ndarray, np.ndarray]:
    """Raw evaluation rows and labels sorted by class, at most 20,000, evenly spaced. Raises `InputError` for none."""
    if cohort.reference not in _chosen:
        found = cohort.provider.evaluation()
        if found is None:
            raise InputError("individual accuracies are a simulation's baseline; this node has no evaluation rows")
        rows, labels = found
        order = np.argsort(labels, kind="stable")
        order = order[:: -(-len(order) // _EVALUATED)]
        _chosen.clear()
        _chosen[cohort.reference] = rows[order], labels[order]
    return _chosen[cohort.reference]


def answer(cohort: Cohort, question: IndividualQuestion) -> Submission:
    """Accuracy and balanced accuracy of the parties with an id below `question.first`; NON-PRIVATE.

    Raises `InputError` where the node has no evaluation rows, as in every deployment.
    """
    if cohort.first >= question.first:
        return stacked(question, [], {})
    evaluation = _evaluation(cohort, question.training)
    outcome = trained(cohort, question.training)
    groups = [group for group in outcome.groups if (group.parties < question.first).any()]
    scored, failures = asked(cohort, groups, evaluation.scores)
    found = stacked(question, scored, outcome.failures | failures)
    first = found.parties < question.first
    arrays = {name: array[first] for name, array in found.arrays.items()}
    return replace(found, parties=found.parties[first], arrays=arrays)
