"""Scores many releases of linear models at once on labelled test rows, which neither app ever sees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_BLOCK = 1 << 21  # scores held at a time


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


def predictions(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """argmax_c <weights[m, c], x> for rows (n, d) and weights (m, C, d); the smallest class on ties. (n, m) uint16."""
    models, classes, width = weights.shape
    by_class = np.ascontiguousarray(weights.transpose(1, 0, 2))
    labels = np.zeros((len(rows), models), dtype=np.uint16)
    step = max(1, _BLOCK // models)
    for start in range(0, len(rows), step):
        block = rows[start : start + step]
        best = block @ by_class[0].T
        for label in range(1, classes):
            scores = block @ by_class[label].T
            better = scores > best
            labels[start : start + step][better] = label
            np.maximum(best, scores, out=best)
    return labels


def score(test: TestRows, weights: np.ndarray) -> dict[str, np.ndarray]:
    """Metrics (m,) of m models, weights (m, C, d): accuracy, balanced_accuracy and, with two classes, auc.

    Balanced accuracy is the mean recall of the classes that occur among the test rows.
    """
    metrics = label_metrics(test, predictions(test.rows, weights))
    if len(test.sizes) == 2 and test.sizes.all():
        metrics["auc"] = _auc(test, weights[:, 1] - weights[:, 0])
    return metrics


def label_metrics(test: TestRows, labels: np.ndarray) -> dict[str, np.ndarray]:
    """Accuracy and balanced accuracy (m,) of predicted labels (n, m) for the sorted test rows."""
    hits = labels == test.labels[:, None]
    occurring = test.sizes > 0
    starts = np.concatenate([[0], np.cumsum(test.sizes)[:-1]])[occurring]
    recalled = np.add.reduceat(hits, starts, axis=0, dtype=np.int64)
    return {
        "accuracy": recalled.sum(axis=0) / len(test.labels),
        "balanced_accuracy": (recalled / test.sizes[occurring, None]).mean(axis=0),
    }


def _auc(test: TestRows, directions: np.ndarray) -> np.ndarray:
    """Probability that a row of class 1 outscores one of class 0, ties counting half (Mann-Whitney)."""
    negatives, positives = test.sizes
    values = np.empty(len(directions))
    for model, direction in enumerate(directions):
        scores = test.rows @ direction
        ranked = np.sort(scores[:negatives])
        below = np.searchsorted(ranked, scores[negatives:], "left")
        upto = np.searchsorted(ranked, scores[negatives:], "right")
        values[model] = (below.sum() + upto.sum()) / (2 * negatives * positives)
    return values
