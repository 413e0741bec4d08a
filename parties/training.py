"""Local training of a cohort: once per world, shared by every question that needs the classifiers."""

from __future__ import annotations

import json
from dataclasses import dataclass

from federation.messages import Training
from federation.randomness import generator
from parties.classifiers import Predict, fit
from parties.holdings import Cohort
from parties.isolation import Failure, isolated


@dataclass(frozen=True)
class Trained:
    """The classifiers of a cohort by party id, and why the other parties have none."""

    classifiers: dict[int, Predict]
    failures: dict[int, str]


# The latest cohort only: a grid puts all questions of a world to one cohort in a row.
_latest: dict[str, Trained] = {}


def _train(cohort: Cohort, training: Training, party: int) -> Predict:
    holdings = cohort.provider.holdings(party)
    rows = training.feature_map.transform(holdings.rows)
    random = generator(cohort.seed, "training", party, training.trial)
    return fit(rows, holdings.labels, training.classifier, random)


def world_key(cohort: Cohort, training: Training) -> str:
    """Equal for all cohorts and questions of one world in this process."""
    steps, arrays = training.feature_map.to_arrays()
    contents = {name: hash(array.tobytes()) for name, array in arrays.items()}
    settings = [cohort.reference, cohort.seed, training.trial, training.classes, dict(training.classifier)]
    return json.dumps([*settings, steps, contents])


def trained(cohort: Cohort, training: Training) -> Trained:
    """Train every party of the cohort, or return what the last question of this world trained."""
    key = f"{cohort.first}+{cohort.count}|{world_key(cohort, training)}"
    if key not in _latest:
        classifiers: dict[int, Predict] = {}
        failures: dict[int, str] = {}
        for party in cohort.parties:
            outcome = isolated(cohort, party, lambda party=party: _train(cohort, training, party))  # type: ignore[misc]
            if isinstance(outcome, Failure):
                failures[party] = outcome.reason
            else:
                classifiers[party] = outcome
        _latest.clear()
        _latest[key] = Trained(classifiers, failures)
    return _latest[key]
