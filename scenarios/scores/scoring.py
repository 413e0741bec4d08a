"""Scores many released classifiers at once on labelled test rows, which neither app ever sees."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

_BLOCK = 1 << 16  # scores held at a time: small enough to stay in the processor's cache


@dataclass(frozen=True, eq=False)
class TestRows:
    """Test rows (n, d) behind the feature map, sorted by label; `sizes` (C,) rows per class."""

    __test__ = False  # not a test case for pytest

    rows: np.ndarray
    labels: np.ndarray
    sizes: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, labels: np.ndarray, classes: int) -> TestRows:
        """Sort by label, once for all scoring."""
        order = np.argsort(labels, kind="stable")
        return cls(np.ascontiguousarray(rows[order]), labels[order], np.bincount(labels, minlength=classes))


def hits(test: TestRows, weights: np.ndarray) -> np.ndarray:
    """Whether argmax_c <weights[m, c], x>, the smallest class on ties, is the row's label: bool (n, m).

    A row of class y is hit when its score beats every class before y and no class after y beats it, so each
    class needs one comparison and no argmax.
    """
    models, classes, _ = weights.shape
    by_class = np.ascontiguousarray(weights.transpose(1, 2, 0))
    out = np.ones((len(test.rows), models), dtype=bool)
    ends = np.cumsum(test.sizes)
    step = max(1, _BLOCK // models)
    for label, (end, size) in enumerate(zip(ends, test.sizes, strict=True)):
        for start in range(end - size, end, step):
            block = slice(start, min(start + step, end))
            own = test.rows[block] @ by_class[label]
            for other in range(classes):
                if other != label:
                    beats = np.greater if other < label else np.greater_equal
                    out[block] &= beats(own, test.rows[block] @ by_class[other])
    return out


def score(test: TestRows, weights: np.ndarray) -> dict[str, np.ndarray]:
    """Metrics (m,) of m models, weights (m, C, d): accuracy, balanced_accuracy and, with two classes, auc.

    Balanced accuracy is the mean recall of the classes that occur among the test rows.
    """
    metrics = hit_metrics(test, hits(test, weights))
    if len(test.sizes) == 2 and test.sizes.all():
        metrics["auc"] = _auc(test, (test.rows @ (model[1] - model[0]) for model in weights))
    return metrics


def score_outputs(test: TestRows, outputs: np.ndarray) -> dict[str, np.ndarray]:
    """The same metrics (m,) of m classifiers of two classes that say class 1 where their output (n, m) is 0 or more.

    An output that is no number is below all others.
    """
    ordered = np.where(np.isnan(outputs), -np.inf, outputs)
    metrics = hit_metrics(test, (ordered >= 0) == test.labels[:, None])
    if test.sizes.all():
        metrics["auc"] = _auc(test, ordered.T)
    return metrics


def hit_metrics(test: TestRows, hit: np.ndarray) -> dict[str, np.ndarray]:
    """Accuracy and balanced accuracy (m,) of m models from which rows they hit, bool (n, m)."""
    occurring = test.sizes > 0
    starts = (np.cumsum(test.sizes) - test.sizes)[occurring]
    recalled = np.add.reduceat(hit, starts, axis=0, dtype=np.int64)
    return {
        "accuracy": recalled.sum(axis=0) / len(test.labels),
        "balanced_accuracy": (recalled / test.sizes[occurring, None]).mean(axis=0),
    }


def _auc(test: TestRows, outputs: Iterable[np.ndarray]) -> np.ndarray:
    """Probability that a row of class 1 outscores one of class 0, ties counting half (Mann-Whitney).

    From each model's scores (n,).
    """
    values = []
    for scores in outputs:
        # Both sides sorted, and the smaller one looked up in the larger: that keeps the search in the cache.
        sides = np.sort(scores[: test.sizes[0]]), np.sort(scores[test.sizes[0] :])
        few, many = sorted(sides, key=len)
        below = np.searchsorted(many, few, "left").sum() + np.searchsorted(many, few, "right").sum()
        share = below / (2 * len(few) * len(many))
        values.append(1 - share if few is sides[0] else share)
    return np.array(values)
