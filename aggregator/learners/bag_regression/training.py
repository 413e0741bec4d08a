"""Training of a network on released bags: the squared bag loss, Adam, and early stopping on released bags."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from aggregator.learners.bag_regression.perceptron import Perceptron

_FIRST, _SECOND, _LEAST = 0.9, 0.999, 1e-7  # decay of both moments, and what keeps their ratio finite
_DECAY = 8  # eta
_TILE = 1024  # rows whose activations stay in a core's own cache


def cosine_decay(step: int, steps: int, initial: float, alpha: float) -> float:
    """The learning rate of `step` 0..steps: from `initial` to alpha times it (Loshchilov and Hutter 2017, Eq. 5).

    Examples:
        >>> [round(cosine_decay(step, 4, initial=1.0, alpha=0.1), 3) for step in range(5)]
        [1.0, 0.868, 0.55, 0.232, 0.1]
    """
    return initial * (alpha + (1 - alpha) * 0.5 * (1 + math.cos(math.pi * min(step / steps, 1.0))))


class Adam:
    """Steps of Adam (Kingma and Ba 2015, Algorithm 1) on parameters (P,), which are changed in place.

    Examples:
        >>> parameters = np.array([1.0, -1.0])
        >>> Adam(parameters).step(np.array([10.0, -0.1]), rate=0.1)
        >>> parameters.round(3)  # both move by the rate
        array([ 0.9, -0.9])
    """

    def __init__(self, parameters: np.ndarray) -> None:
        self._parameters = parameters
        self._mean, self._square = np.zeros_like(parameters), np.zeros_like(parameters)
        self._steps = 0

    def step(self, gradient: np.ndarray, rate: float) -> None:
        """Moves the parameters by at most about `rate` each, against the `gradient` (P,)."""
        self._steps += 1
        self._mean += (1 - _FIRST) * (gradient - self._mean)
        self._square += (1 - _SECOND) * (gradient * gradient - self._square)
        size = rate / (1 - _FIRST**self._steps)
        spread = np.sqrt(self._square / (1 - _SECOND**self._steps))
        spread += _LEAST
        self._parameters -= size * self._mean / spread


@dataclass(frozen=True, eq=False)
class ReleasedBags:
    """What was released of m bags of k rows: `rows` (m, k, d), `weights` (m, k), and weighted label sums (m,)."""

    rows: np.ndarray
    weights: np.ndarray
    sums: np.ndarray


def bag_loss(
    network: Perceptron,
    parameters: np.ndarray,
    bags: ReleasedBags,
    chosen: np.ndarray,
    gradient: np.ndarray | None = None,
) -> float:
    """(1/(Bk)) sum_j (sum_i w_i f(x_i) - s_j)^2 over the B `chosen` bags; its gradient (P,) is put into `gradient`.

    With independent weights of mean 0 and variance 1 its expectation is the mean over rows of (f(x) - y)^2, plus what
    the noise of the sums adds: with E w_i w_l = 0 the cross terms vanish (Brahmbhatt et al. 2023, Section 3.2).

    Examples:
        >>> released = ReleasedBags(np.array([[[1.0], [2.0]]]), np.array([[1.0, -1.0]]), np.array([3.0]))
        >>> bag_loss(Perceptron((1, 1)), np.array([2.0, 0.0]), released, np.array([0]))  # (2 - 4 - 3)^2 / 2
        12.5
    """
    size = bags.weights.shape[1]
    step = max(1, _TILE // size)
    if gradient is not None:
        gradient[:] = 0
    total = 0.0
    for start in range(0, len(chosen), step):
        part = chosen[start : start + step]
        weights = bags.weights[part]
        activations = network.activations(parameters, bags.rows[part].reshape(len(part) * size, -1))
        misses = np.einsum("jk,jk->j", weights, activations[-1].reshape(len(part), size)) - bags.sums[part]
        total += float(np.dot(misses, misses))
        if gradient is not None:
            slopes = weights * (misses * (2 / (size * len(chosen))))[:, None]
            network.add_gradient(gradient, parameters, activations, slopes.ravel())
    return total / float(size * len(chosen))


class Trained(NamedTuple):
    """Parameters (P,), and the mean bag losses of every epoch (epochs, 2): training, and validation (NaN without)."""

    parameters: np.ndarray
    losses: np.ndarray


class Schedule(Protocol):
    """What `train` reads of a `BagNetwork`: how long, at which rates, and which parameters are kept."""

    epochs: int
    learning_rate: float
    alpha: float
    patience: int | None
    restore_best: bool
    average: bool


def train(
    network: Perceptron, bags: ReleasedBags, held_out: int, batch: int, options: Schedule, random: np.random.Generator
) -> Trained:
    """Adam on the bag loss of all bags but `held_out` of them, chosen at random, with `batch` bags a step.

    How long, at which rates, and which parameters are kept say the `options` of `BagNetwork`; averages over the steps
    (see `averaged`) stand for the parameters in validation too. Training losses are those of the steps, before each.
    Equal arguments and generators give equal bits on one machine and number of threads.
    """
    parameters = network.initial(random)
    order = random.permutation(len(bags.sums))
    out, used = order[:held_out], order[held_out:]
    steps = -(-len(used) // batch) * options.epochs
    adam, gradient = Adam(parameters), np.empty_like(parameters)
    kept = parameters.copy() if options.average else parameters
    best, least, waited, step = kept.copy(), np.inf, 0, 0
    losses: list[tuple[float, float]] = []
    for _ in range(options.epochs):
        random.shuffle(used)
        total = 0.0
        for start in range(0, len(used), batch):
            chosen = used[start : start + batch]
            total += len(chosen) * bag_loss(network, parameters, bags, chosen, gradient)
            adam.step(gradient, cosine_decay(step, steps, options.learning_rate, options.alpha))
            step += 1
            if options.average:
                averaged(kept, parameters, step)
        held = bag_loss(network, kept, bags, out) if held_out else np.nan
        losses.append((total / len(used), held))
        if not held_out:
            continue
        waited += 1
        if held < least:
            best, least, waited = kept.copy(), held, 0
        if options.patience is not None and waited >= options.patience:
            break
    return Trained(best if held_out and options.restore_best else kept, np.array(losses))


def averaged(average: np.ndarray, parameters: np.ndarray, step: int) -> None:
    """Moves the average (P,) to include the parameters after `step` 1, 2, ...; the last ones count most.

    Polynomial decay averaging (Shamir and Zhang 2013, Section 4): step s of t has a weight proportional to
    s (s + 1) ... (s + eta - 1), so that about the last t / eta steps count.

    Examples:
        >>> average = np.zeros(1)
        >>> for step, value in enumerate([1.0, 2.0, 3.0], 1):
        ...     averaged(average, np.array([value]), step)
        >>> average.round(2)
        array([2.8])
    """
    average += (_DECAY + 1) / (step + _DECAY) * (parameters - average)
