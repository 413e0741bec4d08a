"""Local training of a cohort: once per world, shared by every question that needs the classifiers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from federation.contract.query import Submission
from federation.contract.randomness import digest, generator
from federation.queries.votes import ClassifierQuestion, Training
from parties.holdings.cohort import Cohort
from parties.holdings.groups import ConstantGroup, Group, asked, stacked
from parties.holdings.held import Held
from parties.holdings.isolation import alone
from parties.training import linear
from parties.training.classifiers import (
    DEFAULT_REGULARISATION,
    LOGISTIC,
    MIXTURE,
    check_classifier,
    drawn_member,
    require_form,
)
from parties.training.estimators import EstimatorGroup, fit_estimator
from parties.training.loading import load


@dataclass(frozen=True)
class Trained:
    """The classifiers of a cohort in groups of parties, and why the remaining parties have none."""

    groups: tuple[Group, ...]
    failures: dict[int, str]

    def of(self, parties: range) -> Trained:
        """The same of some parties only."""
        chosen = [(group, (group.parties >= parties.start) & (group.parties < parties.stop)) for group in self.groups]
        failures = {party: cause for party, cause in self.failures.items() if party in parties}
        return Trained(tuple(group.part(theirs) for group, theirs in chosen if theirs.any()), failures)


_SMALL = 1 << 16  # numbers of a node that is trained in company: the rows of all of it are held at once
# The latest cohort only: a grid puts all questions of a world to one cohort in a row.
_latest: dict[str, Trained] = {}


def world_key(cohort: Cohort, training: Training) -> str:
    """Equal for all cohorts and questions of one world in this process."""
    steps, arrays = training.feature_map.to_arrays()
    classifier = dict(training.classifier)
    settings = [cohort.reference, cohort.seed, training.trial, training.classes, classifier, training.over, steps]
    return digest(json.dumps(settings), arrays)


def trained(cohort: Cohort, training: Training) -> Trained:
    """Train every party of the cohort, or return what the last question of this world trained.

    What goes wrong at a party costs no other; a party's classifier is the same bits whoever is trained with it: where a
    simulation has few rows behind each of many nodes, one batch serves several of them. Raises `InputError` for a
    classifier of another form.
    """
    require_form(training.classifier)
    world = world_key(cohort, training)
    key = f"{cohort.parties}|{world}"
    if key in _latest:
        return _latest[key]
    own = None
    if cohort.company is not None and training.classifier["name"] == LOGISTIC:
        known = _company(cohort.reference, cohort.company)
        own = None if known else load(cohort, training)
        if own is None or own[0].rows.size <= _SMALL:
            if world not in known:
                together = replace(cohort, first=cohort.company.start, count=len(cohort.company), company=None)
                known[world] = _trained(together, training, load(together, training))
            return known[world].of(cohort.parties)
    found = _trained(cohort, training, own or load(cohort, training))
    _latest.clear()
    _latest[key] = found
    return found


@lru_cache(maxsize=1)
def _company(reference: str, parties: range) -> dict[str, Trained]:
    """Of nodes that are served in a row, the trainings so far: each of them is asked the same questions in turn."""
    return {}


def _trained(cohort: Cohort, training: Training, loaded: tuple[Held, dict[int, str]]) -> Trained:
    held, failures = loaded
    groups: list[Group] = []
    for classifier, part in _by_member(cohort, training, held):
        found, failed = _train(cohort, training, classifier, part)
        groups += found
        failures |= failed
    return Trained(tuple(groups), failures)


def _by_member(cohort: Cohort, training: Training, loaded: Held) -> list[tuple[Mapping[str, Any], Held]]:
    """The parties that train each classifier: all of them one, or each a member of a mixture."""
    classifier = training.classifier
    if classifier["name"] != MIXTURE:
        return [(classifier, loaded)]
    # Public keys, also where no seed is set: a party must not change its member between two questions.
    keyed = (generator(cohort.seed or 0, "mixture", party, training.trial) for party in loaded.parties.tolist())
    drawn = np.array([drawn_member(classifier, random) for random in keyed])
    members = classifier["parameters"]["members"]
    return [(member, loaded.part(drawn == index)) for index, member in enumerate(members) if (drawn == index).any()]


def _train(
    cohort: Cohort, training: Training, classifier: Mapping[str, Any], loaded: Held
) -> tuple[list[Group], dict[int, str]]:
    if classifier["name"] == LOGISTIC:
        regularisation = classifier["parameters"].get("regularisation", DEFAULT_REGULARISATION)
        return linear.train(cohort, loaded, training.classes, regularisation, training.over)
    held = dict(zip(loaded.parties.tolist(), loaded.each(), strict=True))

    def fit(party: int) -> Group:
        ids, (rows, labels) = np.array([party], dtype=np.int64), held[party]
        if (labels == labels[0]).all():
            return ConstantGroup(ids, labels[:1], training.classes)
        check_classifier(classifier)
        random = generator(cohort.seed, "training", party, training.trial)
        return EstimatorGroup(ids, fit_estimator(rows, labels, classifier, random), training.classes)

    groups, failures = alone(cohort, held, fit)
    return list(groups.values()), failures


def answered_by_groups(
    cohort: Cohort, question: ClassifierQuestion, act: Callable[[Group], Mapping[str, np.ndarray]]
) -> Submission:
    """What `act` makes of the trained classifiers, group by group: the question's fields; a trusted-only submission.

    A party whose data, training or prediction fails is named among the failures, and costs no other party.
    """
    outcome = trained(cohort, question.training)
    parts, failures = asked(cohort, outcome.groups, act)
    return stacked(question, parts, outcome.failures | failures)
