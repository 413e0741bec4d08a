"""Local training of a cohort: once per world, shared by every question that needs the classifiers."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass

from federation.errors import FederationError
from federation.messages import Training
from federation.randomness import generator
from parties.classifiers import Predict, fit
from parties.holdings import Cohort

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Trained:
    """The classifiers of a cohort by party id, and why the other parties have none."""

    classifiers: dict[int, Predict]
    failures: dict[int, str]


# The latest cohort only: a grid puts all questions of a world to one cohort in a row.
_latest: dict[str, Trained] = {}


def _train(cohort: Cohort, training: Training) -> Iterator[tuple[int, Predict | str]]:
    for party in cohort.parties:
        try:
            holdings = cohort.provider.holdings(party)
            rows = training.feature_map.transform(holdings.rows)
            random = generator(cohort.seed, "training", party, training.trial)
            yield party, fit(rows, holdings.labels, training.classifier, random)
        except FederationError as error:
            yield party, str(error)
        except Exception as error:  # any classifier may fail in any way; it costs its own party only
            _log.warning("party %d: local training failed", party, exc_info=True)
            # The text of a foreign exception may quote private values: it leaves a simulation only.
            yield party, f"{type(error).__name__}: {error}" if cohort.seed is not None else type(error).__name__


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
        outcomes = dict(_train(cohort, training))
        _latest.clear()
        _latest[key] = Trained(
            {party: outcome for party, outcome in outcomes.items() if not isinstance(outcome, str)},
            {party: outcome for party, outcome in outcomes.items() if isinstance(outcome, str)},
        )
    return _latest[key]
