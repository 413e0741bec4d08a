"""Logistic classifiers of many parties, trained and asked all at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from parties.holdings.cohort import Cohort
from parties.holdings.groups import ConstantGroup, Group, vote_type
from parties.holdings.held import Held
from parties.holdings.isolation import jointly
from parties.training import scores
from parties.training.batched import attainable_tolerances, fit_many
from parties.training.classifiers import GRADIENT_TOLERANCE

_TILE_SCORES = 1 << 16  # float64 scores that stay in cache


@dataclass(frozen=True, eq=False)
class LinearGroup:
    """P parties that have each seen the s >= 2 classes `seen` (P, s), ascending, of `classes`.

    `weights` is (P, d) for s = 2 (binary logistic: a score above 0 means the second class), (P, s, d) for more.
    """

    parties: np.ndarray
    seen: np.ndarray
    weights: np.ndarray
    classes: int

    gives_probabilities: ClassVar[bool] = True

    @property
    def _stacked(self) -> np.ndarray:
        return self.weights if self.weights.ndim == 3 else self.weights[:, None, :]

    def part(self, chosen: np.ndarray) -> LinearGroup:
        """Some of the parties (`Group.part`)."""
        return replace(self, parties=self.parties[chosen], seen=self.seen[chosen], weights=self.weights[chosen])

    @property
    def class_weights(self) -> np.ndarray:
        """Weights (P, s, d), a row per class seen: those of two classes are halves of one vector, either way."""
        return self.weights if self.weights.ndim == 3 else np.stack([-self.weights / 2, self.weights / 2], axis=1)

    def votes(self, rows: np.ndarray) -> np.ndarray:
        """The class of the largest score (`Group.votes`)."""
        out = np.empty((len(self.parties), len(rows)), dtype=vote_type(self.classes))
        scores.votes(self._stacked, self.seen, rows, out)
        return out

    def probabilities(self, rows: np.ndarray) -> np.ndarray:
        """Softmax of the scores over the seen classes, the logistic function for two (`Group.probabilities`)."""
        weights, exponents = scores.normalised(self._stacked)
        everyone = np.arange(len(self.parties))[:, None]
        out = np.zeros((len(everyone), len(rows), self.classes))
        step = max(1, _TILE_SCORES // len(everyone))
        for start in range(0, len(rows), step):
            some = np.arange(start, min(start + step, len(rows)))
            found = np.ldexp(scores.scores_in_order(weights, rows, everyone, some), exponents[:, None])
            if len(found) == 1:
                found = np.concatenate([np.zeros_like(found), found])
            found -= found.max(axis=0)
            np.exp(found, out=found)
            total = found[0].copy()
            for share in found[1:]:
                total += share
            for share, label in zip(found, self.seen.T, strict=True):
                out[everyone, some, label[:, None]] = share / total
        return out


def train(
    cohort: Cohort, loaded: Held, classes: int, regularisation: float, over: str = "seen"
) -> tuple[list[Group], dict[int, str]]:
    """Regularised logistic regressions of the loaded parties, grouped by how many classes they are trained over.

    `over` is "seen" or "declared", which is all classes for every party. Returns the groups, and why the remaining
    parties have no classifier.
    """
    groups: list[Group] = []
    failures: dict[int, str] = {}
    everyone = np.tile(np.arange(classes), (len(loaded.parties), 1))
    parts = [(everyone, loaded)] if over == "declared" and len(everyone) else _by_seen_classes(loaded, classes)
    for seen, part in parts:
        size = seen.shape[1]
        if size == 1:
            groups.append(ConstantGroup(part.parties, seen[:, 0], classes))
            continue

        def fit_some(positions: np.ndarray, part: Held = part, size: int = size) -> np.ndarray:
            return fit(part.part(positions), size, regularisation, GRADIENT_TOLERANCE)

        fitted, failed = jointly(cohort, part.parties, fit_some)
        groups += [LinearGroup(part.parties[at], seen[at], weights, classes) for at, weights in fitted]
        failures |= failed
    return groups, failures


def _by_seen_classes(loaded: Held, classes: int) -> Iterator[tuple[np.ndarray, Held]]:
    """The seen classes (P, s) and the holdings, relabelled to 0..s-1, of the parties that have seen s classes."""
    owners = loaded.owners
    present = np.zeros((len(loaded.parties), classes), dtype=bool)
    present[owners, loaded.labels] = True
    codes = (np.cumsum(present, axis=1) - 1)[owners, loaded.labels]
    relabelled = Held(loaded.parties, loaded.rows, codes, loaded.counts)
    sizes = present.sum(axis=1)
    for size in np.unique(sizes):
        chosen = sizes == size
        yield np.nonzero(present[chosen])[1].reshape(-1, size), relabelled.part(chosen)


def fit(part: Held, classes: int, regularisation: float, tolerance: float) -> np.ndarray:
    """Minimisers (P, d) of two classes, weights (P, C, d) of more; each party's bits are its own.

    Gradients are within the tolerance, or what double precision can certify where a party's rows are long.
    """
    # Each party's tolerance comes from its own rows: it must not depend on who shares the batch.
    tolerances = attainable_tolerances(tolerance, part.rows, part.counts, regularisation)
    return fit_many(part.rows, part.labels, part.counts, classes, regularisation, tolerances)
