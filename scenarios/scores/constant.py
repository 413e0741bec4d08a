"""The baseline `constant`: the most frequent class of the private rows, whatever the row; NON-PRIVATE."""

from __future__ import annotations

import numpy as np

from scenarios.scores.scored import Metrics
from scenarios.simulated.simulation import Split


def constant_metrics(split: Split) -> Metrics:
    """Accuracy and balanced accuracy on the test rows and, with two classes, auc, which is 1/2.

    The class is the most frequent one of all private rows with their true labels, the first of equally frequent ones.
    Lacombe et al. 2021 call it h_0^*. Balanced accuracy is the mean recall of the classes that occur among the test
    rows.
    """
    labels, classes = split.table.labels, len(split.table.classes)
    guess = int(np.bincount(labels[split.cut.order], minlength=classes).argmax())
    sizes = np.bincount(labels[split.cut.test], minlength=classes)
    metrics = {
        "accuracy": float(sizes[guess] / sizes.sum()),
        "balanced_accuracy": float((sizes[guess] > 0) / np.count_nonzero(sizes)),
    }
    return metrics | ({"auc": 0.5} if classes == 2 else {})
