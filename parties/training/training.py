"""Local training of a cohort: once per world, shared by every question that needs the classifiers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from federation.contract.digest import digest
from federation.contract.randomness import generator
from federation.questions.votes import Training
from parties.holdings.cohort import Cohort
from parties.holdings.groups import ConstantGroup, Group
from parties.holdings.isolation import Failure, isolated
from parties.training import linear
from parties.training.classifiers import DEFAULT_REGULARISATION, LOGISTIC, MIXTURE, drawn_member
from parties.training.estimators import EstimatorGroup, fit_estimator
from parties.training.loading import Loaded, load


@dataclass(frozen=True)
class Trained:
    """The classifiers of a cohort in groups of parties, and why the remaining parties have none."""

    groups: tuple[Group, ...]
    failures: dict[int, str]


# The latest cohort only: a grid puts all questions of a world to one cohort in a row.
_latest: dict[str, Trained] = {}


def world_key(cohort: Cohort, training: Training) -> str:
    """Equal for all cohorts and questions of one world in this process."""
    steps, arrays = training.feature_map.to_arrays()
    settings = [cohort.reference, cohort.seed, training.trial, training.classes, dict(training.classifier), steps]
    return digest(json.dumps(settings), arrays)


def trained(cohort: Cohort, training: Training) -> Trained:
    """Train every party of the cohort, or return what the last question of this world trained.

    What goes wrong at a party costs no other; a party's classifier is the same bits whoever is trained with it.
    """
    key = f"{cohort.first}+{cohort.count}|{world_key(cohort, training)}"
    if key not in _latest:
        loaded, failures = load(cohort, training)
        groups: list[Group] = []
        for classifier, part in _by_member(cohort, training, loaded):
            found, failed = _train(cohort, training, classifier, part)
            groups += found
            failures |= failed
        _latest.clear()
        _latest[key] = Trained(tuple(groups), failures)
    return _latest[key]


def _by_member(cohort: Cohort, training: Training, loaded: Loaded) -> list[tuple[Mapping[str, Any], Loaded]]:
    """The parties that train each classifier: all of them one, or each a member of a mixture."""
    classifier = training.classifier
    if classifier["name"] != MIXTURE:
        return [(classifier, loaded)]
    # Public keys, also where no seed is set: a party must not change its member between two questions.
    seed = cohort.seed or 0
    drawn = np.array(
        [
            drawn_member(classifier, generator(seed, "mixture", party, training.trial))
            for party in loaded.parties.tolist()
        ]
    )
    members = classifier["parameters"]["members"]
    return [(member, loaded.part(drawn == index)) for index, member in enumerate(members) if (drawn == index).any()]


def _train(
    cohort: Cohort, training: Training, classifier: Mapping[str, Any], loaded: Loaded
) -> tuple[list[Group], dict[int, str]]:
    if classifier["name"] == LOGISTIC:
        regularisation = classifier["parameters"].get("regularisation", DEFAULT_REGULARISATION)
        return linear.train(cohort, loaded, training.classes, regularisation)
    groups: list[Group] = []
    failures: dict[int, str] = {}
    for party, (rows, labels) in zip(loaded.parties.tolist(), loaded.each(), strict=True):

        def fit(party: int = party, rows: np.ndarray = rows, labels: np.ndarray = labels) -> Group:
            ids = np.array([party], dtype=np.int64)
            if (labels == labels[0]).all():
                return ConstantGroup(ids, labels[:1], training.classes)
            random = generator(cohort.seed, "training", party, training.trial)
            return EstimatorGroup(ids, fit_estimator(rows, labels, classifier, random), training.classes)

        outcome = isolated(cohort, party, fit)
        if isinstance(outcome, Failure):
            failures[party] = outcome.reason
        else:
            groups.append(outcome)
    return groups, failures
