"""One private message from a clinic that holds labels to a learner who holds the rows.

No simulation and no framework: the mechanism and the learner as plain Python.
Run it: python docs/examples/private_message.py
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from aggregator.learners import MeanOperatorClassifier
from federation.mechanisms import calibrate_moments, release_moment

EPSILON, DELTA = 1.0, 1e-6


def main() -> None:
    """Release the mean of y x once, learn from it, and compare the noises that would have done."""
    rows, outcome = load_breast_cancer(return_X_y=True)
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)  # in earnest with public means and scales
    rows = np.column_stack([rows, np.ones(len(rows))])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)  # the guarantee rests on norms of at most 1
    known, new, labels, truth = train_test_split(rows, outcome, test_size=0.3, random_state=0)

    message = release_moment(known, labels, epsilon=EPSILON, delta=DELTA)  # at the clinic: this leaves it, nothing else
    promise = message.guarantee
    print(f"the message keeps ({promise.epsilon:g}, {promise.delta:g}) for one {promise.unit}, by {promise.mechanism}")
    learner = MeanOperatorClassifier("logistic").fit_moment(known, message.moment, message.noise_variance)
    print("accuracy on new rows:", np.mean(learner.predict(new) == truth))

    for noise in ("pure", "laplace", "gaussian"):
        mechanism = calibrate_moments(noise, rows=len(known), dimension=known.shape[1], epsilon=EPSILON, delta=DELTA)
        print(f"{noise:8} has standard deviation {mechanism.variance() ** 0.5 / len(known):.4f} on each mean")


if __name__ == "__main__":
    main()
