"""Mean Map and Laplacian Mean Map: the mean operator of tumours from bags and their label proportions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from aggregator.learners.mean_operators.classifiers import MeanOperatorClassifier
from aggregator.learners.mean_operators.moments import laplacian_mean_map, mean_map
from aggregator.trial.feature_fitting import fit
from federation.contract.randomness import generator
from scenarios.data.catalogue import load
from scenarios.reproductions.paper import Observation, Role

EQUAL, UNEQUAL, DRIFTING = "equal bags", "one large bag", "one large bag, classes drift"
SETTINGS = (EQUAL, UNEQUAL, DRIFTING)
_BAGS, _LARGE = 8, 0.5  # the share of rows in the large one
_SPREAD = 0.9  # of the shares of a class, as far as there are rows for them
_REGULARISATION = 1e-3


@dataclass(frozen=True, eq=False)
class Bags:
    """Rows of bags, with the codes of their classes, and the proportions (M, 2) that a learner is told."""

    rows: Sequence[np.ndarray]
    codes: Sequence[np.ndarray]

    @property
    def proportions(self) -> np.ndarray:
        """Those of both classes in every bag."""
        positive = np.array([codes.mean() for codes in self.codes])
        return np.column_stack([1 - positive, positive])

    @property
    def moment(self) -> np.ndarray:
        """The mean operator of all rows."""
        signs = 2.0 * np.concatenate(self.codes) - 1
        return np.asarray(signs @ np.concatenate(self.rows) / len(signs))


def moments(quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """How far the estimates are from the mean operator, in units of its norm."""
    for setting, split, bags, _, _ in _worlds(quick, data_dir):
        for series, role, moment in estimates(bags):
            error = float(np.linalg.norm(moment - bags.moment) / np.linalg.norm(bags.moment))
            yield Observation(setting, series, role, "", split, error)


def accuracies(quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """Of what is learned from them on rows that are in no bag, and of what is learned from all labels."""
    for setting, split, bags, rows, codes in _worlds(quick, data_dir):
        known: list[tuple[str, Role, np.ndarray]] = [("labels", "published", bags.moment), *estimates(bags)]
        for series, role, moment in known:
            model = MeanOperatorClassifier(regularisation=_REGULARISATION)
            model.fit_moment(np.concatenate(bags.rows), moment)
            yield Observation(setting, series, role, "", split, float(np.mean(model.predict(rows) == codes)))


def estimates(bags: Bags) -> Iterator[tuple[str, Role, np.ndarray]]:
    """By both methods: as published, where every bag counts as one (D_w = I), and by default, where its rows count."""
    told = bags.proportions
    alike = [rows.mean(axis=0, keepdims=True) for rows in bags.rows]  # of one row each, and so of equal weight
    yield "Mean Map", "published", mean_map(alike, told).moment
    yield "Mean Map", "default", mean_map(bags.rows, told).moment
    yield "Laplacian Mean Map", "published", laplacian_mean_map(alike, told).moment
    yield "Laplacian Mean Map", "default", laplacian_mean_map(bags.rows, told).moment


def in_bags(rows: np.ndarray, codes: np.ndarray, setting: str, random: np.random.Generator) -> Bags:
    """Bags of rising shares of the second class; in one setting the rows of a class come sorted, and so drift."""
    sizes = np.full(_BAGS, len(rows) // _BAGS)
    if setting != EQUAL:
        sizes[:] = len(rows) * (1 - _LARGE) / (_BAGS - 1)
        sizes[-1] = len(rows) * _LARGE
    order = random.permutation(len(rows))
    if setting == DRIFTING:
        order = order[np.argsort(rows[order, 0], kind="stable")]
    left = [list(order[codes[order] == code]) for code in (0, 1)]
    places = np.linspace(-1, 1, _BAGS)
    places -= np.average(places, weights=sizes)
    overall, found = float(codes.mean()), []
    shares = overall + _SPREAD * min(overall, 1 - overall) * places / np.abs(places).max()
    for size, share in zip(sizes, shares, strict=True):
        wanted = min(round(size * share), len(left[1]))
        wanted = max(wanted, size - len(left[0]))
        found.append([left[0].pop() for _ in range(size - wanted)] + [left[1].pop() for _ in range(wanted)])
    return Bags([rows[bag] for bag in found], [codes[bag] for bag in found])


def _worlds(quick: bool, data_dir: Path | None) -> Iterator[tuple[str, int, Bags, np.ndarray, np.ndarray]]:
    """Setting, split, bags, and test rows with their classes."""
    table = load("breast_cancer", data_dir=data_dir)
    for setting in SETTINGS:
        for split in range(5 if quick else 20):
            random = generator(split, "bags of tumours")
            train, test = np.split(random.permutation(len(table)), [len(table) * 7 // 10])
            known = fit(["standardise", "constant", "unit_norm"], table.rows(train), table.text)
            rows, labels = known.transform(table.rows(train)), table.labels
            yield (
                setting,
                split,
                in_bags(rows, labels[train], setting, random),
                known.transform(table.rows(test)),
                labels[test],
            )
