"""Training of a network on released bags, with early stopping on released bags."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aggregator.learners.bag_regression.adam import Adam, cosine_decay
from aggregator.learners.bag_regression.bag_loss import ReleasedBags, bag_loss
from aggregator.learners.bag_regression.perceptron import Perceptron

_DECAY = 8  # eta


@dataclass(frozen=True)
class Schedule:
    """At most `epochs` passes with `batch` bags a step, and learning rates from `learning_rate` to `alpha` times it.

    Training stops after `patience` epochs in a row without a smaller loss of the validation bags, None never; with
    `restore_best` the parameters of the smallest are kept, otherwise the last ones. With `average` parameters stand for
    their average over the steps so far (see `averaged`), for validation too.
    """

    epochs: int
    batch: int
    learning_rate: float
    alpha: float
    patience: int | None
    restore_best: bool
    average: bool


@dataclass(frozen=True, eq=False)
class Trained:
    """Parameters (P,), and the mean bag losses of every epoch (epochs, 2): training, and validation (NaN without)."""

    parameters: np.ndarray
    losses: np.ndarray


def train(
    network: Perceptron, bags: ReleasedBags, validation: int, schedule: Schedule, random: np.random.Generator
) -> Trained:
    """Adam on the bag loss of all bags but `validation` of them, chosen at random.

    Training losses are those of the steps, before each. Equal arguments and generators give equal bits on one machine
    and number of threads.
    """
    parameters = network.initial(random)
    order = random.permutation(len(bags.sums))
    held_out, used = order[:validation], order[validation:]
    steps = -(-len(used) // schedule.batch) * schedule.epochs
    adam, gradient = Adam(parameters), np.empty_like(parameters)
    kept = parameters.copy() if schedule.average else parameters
    best, least, waited, step = kept.copy(), np.inf, 0, 0
    losses: list[tuple[float, float]] = []
    for _ in range(schedule.epochs):
        random.shuffle(used)
        total = 0.0
        for start in range(0, len(used), schedule.batch):
            chosen = used[start : start + schedule.batch]
            total += len(chosen) * bag_loss(network, parameters, bags, chosen, gradient)
            adam.step(gradient, cosine_decay(step, steps, schedule.learning_rate, schedule.alpha))
            step += 1
            if schedule.average:
                averaged(kept, parameters, step)
        held = bag_loss(network, kept, bags, held_out) if validation else np.nan
        losses.append((total / len(used), held))
        if not validation:
            continue
        waited += 1
        if held < least:
            best, least, waited = kept.copy(), held, 0
        if schedule.patience is not None and waited >= schedule.patience:
            break
    return Trained(best if validation and schedule.restore_best else kept, np.array(losses))


def averaged(average: np.ndarray, parameters: np.ndarray, step: int) -> None:
    """Moves the average (P,) to include the parameters after `step` 1, 2, ...; the last ones count most.

    Polynomial decay averaging (Shamir and Zhang 2013, Section 4): step s of t has a weight proportional to
    s (s + 1) ... (s + eta - 1), so that about the last t / eta steps count.
    """
    average += (_DECAY + 1) / (step + _DECAY) * (parameters - average)
