"""Hypotheses trained on weighted rows whose labels are shares of class 1."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression

from aggregator.learners.bag_regression.perceptron import Perceptron
from aggregator.learners.bag_regression.training import Adam, cosine_decay
from aggregator.learners.bag_regression.validation import column_scaling
from aggregator.learners.error_marginals.exchange_settings import ExchangeSettings
from federation.queries.marginals import Hypothesis

_BATCH, _LEAST_STEPS = 64, 600
_SOFT_EPOCHS, _HARD_EPOCHS = 40, 100
_RATE, _LAST_RATE = 1e-3, 1e-2  # the last learning rate is this share of the first
_PENALTY = 1e-3  # of the squared weights of the logistic regression, at mean weight 1


def train_hypothesis(
    rows: np.ndarray, shares: np.ndarray, weights: np.ndarray, settings: ExchangeSettings, random: np.random.Generator
) -> Hypothesis:
    """The classifier of least weighted cross-entropy that training finds; constant where there is one class only.

    Args:
        rows: features (n, d).
        shares: of class 1 (n,) in [0, 1]; a soft label counts as one row of each class, weighted by their shares.
        weights: of the rows (n,), not negative, with a positive sum.
        settings: learner, hidden layers and rounding; "hard" takes the nearest class, and 1 for a share of 1/2.
        random: of the initial parameters and the order of the rows. Equal arguments give equal bits on one machine.
    """
    if settings.rounding == "hard":
        shares = (shares >= 0.5).astype(np.float64)
    used = weights > 0
    rows, shares, weights = rows[used], shares[used], weights[used] / weights[used].mean()
    if shares.min() == shares.max() and shares[0] in (0.0, 1.0):
        return Hypothesis.constant(rows.shape[1], int(shares[0]))
    centre, scale = column_scaling(rows)
    scaled = (rows - centre) / scale
    if settings.learner == "linear":
        matrices, offsets = _logistic(scaled, shares, weights)
    else:
        matrices, offsets = _network(scaled, shares, weights, settings, random)
    first = matrices[0] / scale[:, None]
    return Hypothesis.of([first, *matrices[1:]], [offsets[0] - centre @ first, *offsets[1:]])


def _logistic(rows: np.ndarray, shares: np.ndarray, weights: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    model = LogisticRegression(C=1 / (_PENALTY * len(rows)), solver="newton-cholesky")
    labels = np.repeat([1, 0], len(rows))
    model.fit(np.vstack([rows, rows]), labels, np.concatenate([weights * shares, weights * (1 - shares)]))
    return [model.coef_.T], [model.intercept_]


def _network(
    rows: np.ndarray, shares: np.ndarray, weights: np.ndarray, settings: ExchangeSettings, random: np.random.Generator
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Adam on the weighted cross-entropy in single precision, with rates that decay as a cosine."""
    network = Perceptron((rows.shape[1], *settings.hidden, 1))
    parameters = network.initial(random)
    adam, gradient = Adam(parameters), np.empty_like(parameters)
    inputs, targets, sizes = (part.astype(np.float32) for part in (rows, shares, weights))
    order, step = np.arange(len(rows)), 0
    batches = -(-len(rows) // _BATCH)
    usual = _SOFT_EPOCHS if settings.rounding == "soft" else _HARD_EPOCHS
    epochs = settings.epochs or max(usual, -(-_LEAST_STEPS // batches))
    for _ in range(epochs):
        random.shuffle(order)
        for start in range(0, len(rows), _BATCH):
            chosen = order[start : start + _BATCH]
            activations = network.activations(parameters, inputs[chosen])
            misses = 0.5 * (1 + np.tanh(0.5 * activations[-1][:, 0])) - targets[chosen]
            gradient[:] = 0
            network.add_gradient(gradient, parameters, activations, sizes[chosen] * misses / len(chosen))
            adam.step(gradient, cosine_decay(step, epochs * batches, _RATE, _LAST_RATE))
            step += 1
    matrices, offsets = zip(*network.layers(parameters.astype(np.float64)), strict=True)
    return list(matrices), list(offsets)
