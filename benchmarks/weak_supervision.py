"""Test accuracy of linear classifiers learned from weak supervision through the mean operator, side by side.

Run from the repository root: python -m benchmarks.weak_supervision [--splits COUNT] [--loss NAME] [TABLE ...]

Tables: breast_cancer, and digits (odd or even). A third of the rows is for testing; the feature map (columns in one
scale, a constant, unit norm) is fitted on the training rows. Supervision of the same training rows:
- labels of all rows, and scikit-learn's logistic regression beside it;
- label proportions of bags, by Mean Map and Laplacian Mean Map: bags that differ by their shares of the classes alone
  (12 bags, shares of the positive class from .1 to .9), and bags of rows that follow each other along the first
  principal component, in which the classes themselves drift;
- labels flipped with probabilities .3 (positive) and .1 (negative), taken for the truth, and corrected;
- randomised response at epsilon 1, taken for the truth, and corrected;
- labels of 40 rows and the other rows without labels, beside those 40 rows alone.
Means over splits, with standard errors.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import LogisticRegression

from aggregator.learners.inputs.validation import require_number
from aggregator.learners.mean_operators.classifiers import (
    MeanOperatorClassifier,
    NoisyLabelClassifier,
    ProportionClassifier,
)
from aggregator.learners.mean_operators.moments import MomentEstimate, labelled
from aggregator.trial.feature_fitting import fit
from benchmarks.common import print_tables, standard_error
from federation.contract.errors import InputError
from federation.contract.randomness import generator
from federation.features.steps import finite_rows
from scenarios.data.catalogue import load

BAGS = 12
SHARES = np.linspace(0.1, 0.9, BAGS)
FLIPPED_POSITIVE, FLIPPED_NEGATIVE = 0.3, 0.1
EPSILON = 1.0
RIDGE = 0.01
LABELLED = 40
TABLES: dict[str, tuple[str, ...]] = {"breast_cancer": ("benign",), "digits": ("1", "3", "5", "7", "9")}


@dataclass(frozen=True, eq=False)
class Split:
    """Training and test rows behind the feature map, with labels 0 and 1."""

    rows: np.ndarray
    labels: np.ndarray
    test: np.ndarray
    test_labels: np.ndarray

    @classmethod
    def of(cls, source: str, number: int, data_dir: str | None) -> Split:
        """A random third of the rows is for testing."""
        table = load(source, data_dir=data_dir, positive=TABLES[source])
        test, train = np.split(generator(number, "benchmark split").permutation(len(table)), [len(table) // 3])
        features = fit(["scale", "constant", "unit_norm"], table.rows(train))
        parts = [(features.transform(table.rows(part)), table.labels[part]) for part in (train, test)]
        return cls(*parts[0], *parts[1])


def bags_by_share(split: Split, random: np.random.Generator) -> list[np.ndarray]:
    """Row numbers of bags with prescribed shares of the positive class and rows drawn at random within it."""
    order = random.permutation(len(split.rows))
    sides = [order[split.labels[order] == side] for side in (0, 1)]
    cuts = [np.cumsum(weights / weights.sum())[:-1] for weights in (1 - SHARES, SHARES)]
    parts = [np.split(side, (cut * len(side)).astype(int)) for side, cut in zip(sides, cuts, strict=True)]
    return [np.concatenate(pair) for pair in zip(*parts, strict=True)]


def bags_by_component(split: Split) -> list[np.ndarray]:
    """Row numbers of bags of equal size along the first principal component."""
    centred = split.rows - split.rows.mean(axis=0)
    component = np.linalg.svd(centred, full_matrices=False)[2][0]
    return np.array_split(np.argsort(centred @ component), BAGS)


def semi_supervised(
    rows: np.ndarray, labels: np.ndarray, unlabelled: np.ndarray, ridge: float = RIDGE
) -> MomentEstimate:
    """Estimate over all N rows from labels (n,) of some, `rows` (n, d), that were drawn at random among them.

    A ridge regression of y on x, penalised by `ridge` times mean |x|^2, predicts y everywhere; the mean of its
    predictions times x over all rows, plus the mean of its residuals times x over the labelled ones, is nearly unbiased
    whatever the labels are, and the better the more linear they are (the generalised regression estimator of survey
    sampling: Saerndal, Swensson and Wretman 1992). Exact when there are no `unlabelled` rows (N - n, d). The variance
    is that of sampling without replacement, estimated from leave-one-out residuals.

    A better mean operator need not make a better classifier: when only the labelled rows enter a loss, the errors of
    its two parts cancel to some extent, and on breast cancer and digits learning from these alone is as accurate.

    Raises `InputError` as `from_labels`, for fewer than two labelled rows, for rows that are all zero, for unlabelled
    ones of another width and unless the ridge is positive.

    Examples:
        >>> found = semi_supervised([[1.0], [2.0], [-1.0]], [1, 1, 0], [[1.5], [-2.0]])
        >>> found.moment.round(2), round(found.noise_variance, 3)
        (array([1.63]), 0.233)
    """
    rows, signs = labelled(rows, labels, "labelled rows")
    unlabelled = finite_rows(unlabelled, "unlabelled rows")
    few, many = len(rows), len(rows) + len(unlabelled)
    squares = float(np.einsum("nd,nd->n", rows, rows).mean())
    if few < 2 or squares == 0:
        raise InputError(f"labelled rows must be two or more, not all zero, got {few} of mean square {squares:g}")
    if unlabelled.shape[1] != rows.shape[1]:
        raise InputError(
            f"unlabelled rows must have {rows.shape[1]} columns, as the labelled have; got {unlabelled.shape[1]}"
        )
    require_number("ridge", ridge, RIDGE)
    products = rows.T @ rows
    system = products / few + ridge * squares * np.eye(rows.shape[1])
    of_labelled = signs @ rows / few
    slope = np.linalg.solve(system, of_labelled)
    elsewhere = (products + unlabelled.T @ unlabelled) / many - products / few
    leverages = np.einsum("nd,dn->n", rows, np.linalg.solve(system, rows.T)) / few
    residuals = (signs - rows @ slope) / (1 - leverages)
    spread = float((residuals[:, None] * rows).var(axis=0, ddof=1).sum())
    return MomentEstimate(of_labelled + elsewhere @ slope, (1 - few / many) * spread / few)


Predict = Callable[[np.ndarray], np.ndarray]


def learned(split: Split, loss: str, random: np.random.Generator) -> dict[str, Predict]:
    """What each kind of supervision teaches, by its name."""
    rows, labels = split.rows, split.labels
    flips = random.random(len(rows)) < np.where(labels == 1, FLIPPED_POSITIVE, FLIPPED_NEGATIVE)
    answers = labels ^ (random.random(len(rows)) < 1 / (1 + np.exp(EPSILON)))
    flipped = NoisyLabelClassifier(loss, flipped_positive=FLIPPED_POSITIVE, flipped_negative=FLIPPED_NEGATIVE)
    some = random.permutation(len(rows))[:LABELLED]
    known = semi_supervised(rows[some], labels[some], np.delete(rows, some, axis=0))
    together = MeanOperatorClassifier(loss).fit_moment(rows, known.moment, known.noise_variance)
    found: dict[str, Predict] = {
        "labels": NoisyLabelClassifier(loss).fit(rows, labels).predict,
        "labels, logistic regression": LogisticRegression(C=1e3, max_iter=5000).fit(rows, labels).predict,
        "flipped labels": NoisyLabelClassifier(loss).fit(rows, labels ^ flips).predict,
        "flipped labels, corrected": flipped.fit(rows, labels ^ flips).predict,
        "randomised response": NoisyLabelClassifier(loss).fit(rows, answers).predict,
        "randomised response, corrected": NoisyLabelClassifier(loss, epsilon=EPSILON).fit(rows, answers).predict,
        "40 labels alone": NoisyLabelClassifier(loss).fit(rows[some], labels[some]).predict,
        "40 labels and other rows": together.predict,
    }
    for title, bags in (("shares differ", bags_by_share(split, random)), ("classes drift", bags_by_component(split))):
        positive = np.array([labels[bag].mean() for bag in bags])
        for method in ("mean_map", "laplacian"):
            model = ProportionClassifier(loss, method=method)
            model.fit([rows[bag] for bag in bags], np.column_stack([1 - positive, positive]))
            found[f"bags whose {title}, {method}"] = model.predict
    return found


def show(source: str, arguments: argparse.Namespace) -> None:
    """Prints the table of a data set, in the order of the methods."""
    found: dict[str, list[float]] = {}
    for number in range(arguments.splits):
        split = Split.of(source, number, arguments.data_dir)
        for name, predict in learned(split, arguments.loss, generator(number, "benchmark supervision")).items():
            found.setdefault(name, []).append(float((predict(split.test) == split.test_labels).mean()))
    print(f"\n{source}, positive: {', '.join(TABLES[source])}; {arguments.splits} splits, {arguments.loss}")
    print(f"{'':44}accuracy   s.e.")
    for name, values in found.items():
        print(f"  {name:42}{100 * np.mean(values):8.1f} {100 * standard_error(values):6.2f}", flush=True)


if __name__ == "__main__":
    print_tables(__doc__, TABLES, show, splits=10, loss="logistic")
