"""Local training of a batch of parties: once per trial, shared by every query that needs the classifiers.

`load` maps the private rows of a batch through the public feature map, one party after another. `trained` trains the
classifiers, and `auc` measures how well scores order the rows of two classes.
"""

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from federation.contract.query import Submission
from federation.contract.randomness import digest, generator
from federation.numerics.rows import all_finite
from federation.queries.votes import ClassifierQuestion, Training
from parties.party_data.cohort import Cohort, Held, Holdings, ManyHoldings
from parties.party_data.isolation import ConstantGroup, Group, alone, asked, jointly, stacked
from parties.training import linear
from parties.training.classifiers import (
    DEFAULT_REGULARISATION,
    LOGISTIC,
    MIXTURE,
    EstimatorGroup,
    check_classifier,
    drawn_member,
    fit_estimator,
    require_form,
)


@dataclass(frozen=True)
class Trained:
    """The classifiers of a cohort in groups of parties, and why the remaining parties have none."""

    groups: tuple[Group, ...]
    failures: dict[int, str]

    def of(self, parties: range) -> "Trained":
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
    """Return the trainings so far of nodes that are served in a row: each node gets the same queries in turn."""
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


Copies = NDArray[np.int64]


def auc(lower: NDArray[np.float64], upper: NDArray[np.float64], copies: tuple[Copies, Copies] | None = None) -> float:
    """Probability that a score of `upper` (n,) is above one of `lower` (m,), ties counting half (Mann, Whitney 1947).

    Neither may be empty, nor hold NaN. `copies` (m,) and (n,) say how often each score is there, by default once.

    Examples:
        >>> auc(np.array([0.1, 0.4]), np.array([0.4, 0.9]))
        0.875
        >>> auc(np.array([0.1, 0.4]), np.array([0.4, 0.9]), (np.array([1, 1]), np.array([1, 3])))
        0.9375
    """
    # Both sides sorted, and the smaller one looked up in the larger: that keeps the search in the cache.
    sides = [_sorted(*side) for side in zip((lower, upper), copies or (None, None), strict=True)]
    (few, often, counts), (many, _, before) = sorted(sides, key=lambda side: int(side[2][-1]))
    below = (often * (before[np.searchsorted(many, few, "left")] + before[np.searchsorted(many, few, "right")])).sum()
    share = float(below) / (2 * int(counts[-1]) * int(before[-1]))
    return 1 - share if few is sides[0][0] else share


def _sorted(
    scores: NDArray[np.float64], copies: Copies | None
) -> tuple[NDArray[np.float64], Copies | int, NDArray[np.int64]]:
    """Scores (n,) in order, how often each is there, and how many stand before each and at the end, (n + 1,)."""
    if copies is None:
        return np.sort(scores), 1, np.arange(len(scores) + 1)
    order = np.argsort(scores)
    return scores[order], copies[order], np.concatenate([[0], np.cumsum(copies[order])])


_log = logging.getLogger(__name__)
# The raw rows of the latest cohort of a simulation: a grid puts all questions of a world to one cohort in a row, and
# those of several feature maps read the same rows.
_latest_held: dict[tuple[str, int, int, int], tuple[Held, Mapping[int, str]]] = {}


class _Raw(NamedTuple):
    """Usable parties (P,), the raw rows of those at some positions, class codes (R,) and rows of each (P,)."""

    parties: np.ndarray
    rows_at: Callable[[np.ndarray], np.ndarray]
    labels: np.ndarray
    counts: np.ndarray


def load(cohort: Cohort, training: Training) -> tuple[Held, dict[int, str]]:
    """Features (R, d), float64, and class codes (R,), int64, of the parties of a cohort; why the others have none.

    A party's features are the same bits whoever is loaded with it.
    """
    raw, failures = _together(cohort, training.classes) or _one_by_one(cohort, training.classes)

    def transform(positions: np.ndarray) -> np.ndarray:
        return training.feature_map.transform(raw.rows_at(positions))

    features, refused = jointly(cohort, raw.parties, transform)
    kept = np.concatenate([np.empty(0, np.intp), *(positions for positions, _ in features)])
    rows = [rows for _, rows in features] or [np.empty((0, training.feature_map.dimension))]
    usable = Held(raw.parties, raw.labels, raw.labels, raw.counts).part(kept)
    behind = rows[0] if len(rows) == 1 else np.concatenate(rows)
    return Held(usable.parties, behind, usable.labels, usable.counts), {**failures, **refused}


def _together(cohort: Cohort, classes: int) -> tuple[_Raw, Mapping[int, str]] | None:
    """What a provider of many hands over, where `Holdings` and cohort would take all of it."""
    if cohort.seed is None:  # a site's provider serves one party, whose failures must not look different
        return None
    key = cohort.reference, cohort.first, cohort.count, classes
    if key not in _latest_held:
        try:
            provider = cohort.provider
            if not isinstance(provider, ManyHoldings):
                return None
            found = provider.held(cohort.parties)
        except Exception:
            _log.debug("%d parties could not be read at once", cohort.count, exc_info=True)
            return None
        if not _all_usable(found[0], classes):
            return None
        _latest_held.clear()
        _latest_held[key] = found
    held, absent = _latest_held[key]
    return _Raw(held.parties, lambda positions: held.part(positions).rows, held.labels, held.counts), absent


def _all_usable(held: Held, classes: int) -> bool:
    """Whether `Holdings` would take the rows of every party, and their labels as codes of so many classes."""
    labels, sizes = held.labels, held.counts
    codes = len(sizes) > 0 and sizes.min() > 0 and labels.dtype == np.int64
    usable = codes and 0 <= labels.min() <= labels.max() < classes
    return bool(usable and (all_finite(held.rows) or not np.isinf(held.rows).any()))


def _one_by_one(cohort: Cohort, classes: int) -> tuple[_Raw, Mapping[int, str]]:
    """The same by asking for each party alone: what is wrong with one costs no other."""
    found, failures = alone(cohort, cohort.parties, lambda party: _usable(cohort, party, classes))
    held = list(found.values())

    def rows_at(positions: np.ndarray) -> np.ndarray:
        return np.concatenate([np.asarray(held[position].rows, dtype=np.float64) for position in positions])

    # Cast, as labels of several integer types would otherwise all become floats.
    labels = np.concatenate([np.empty(0), *(one.labels for one in held)], dtype=np.int64, casting="unsafe")
    counts = np.array([len(one.labels) for one in held], dtype=np.int64)
    return _Raw(np.array(list(found), dtype=np.int64), rows_at, labels, counts), failures


def _usable(cohort: Cohort, party: int, classes: int) -> Holdings:
    holdings = cohort.holdings(party)
    holdings.class_codes(classes)
    return holdings
