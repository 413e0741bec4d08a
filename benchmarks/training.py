"""Batched local training beside a loop over scikit-learn, and beside the time of its arithmetic alone.

Run from the repository root: python -m benchmarks.training

One thread, 1000 parties with as many rows each, random labels. scikit-learn trains the first parties:
lbfgs and newton-cg with the loosest `tol` of a ladder at which most gradients reach the tolerance that the batched
solver certifies for all, and lbfgs as it comes. The floor is the time of the operations in the solver's formulas, for
the iterations that each party takes by itself, at the rates of large matrix products measured in the same run. `calls`
is the time of the same iterations' products, eliminations and links alone, as numpy makes them of a tile of parties:
what these iterations cannot do without in numpy, so that calls over floor is the best ratio to be had there.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import ExitStack
from itertools import product
from unittest.mock import patch

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks.common import fastest
from federation.numerics.label_losses import Link, Logistic, Softmax
from parties.training import batched, elimination

PARTIES, WIDTHS, REGULARISATION, TOLERANCE = 1000, (11, 50, 120), 1e-4, 1e-8
SAMPLE, TILE = 40, 300  # parties whose operations are counted, and whose calls are timed
LADDER = [10.0**-k for k in range(4, 13)]


def best_seconds(call: Callable[[], object], repetitions: int) -> float:
    """The fastest of a few repetitions."""
    return fastest(call, repetitions)[0]


def problem(kind: str, classes: int, count: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows (P, n, d), normal or of unit norm, and labels (P, n) in which every class occurs."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(PARTIES, count, width))
    if kind == "unit":
        rows /= np.linalg.norm(rows, axis=2, keepdims=True)
    labels = rng.integers(0, classes, (PARTIES, count))
    labels[:, :classes] = np.arange(classes)
    return rows, labels


def train(rows: np.ndarray, labels: np.ndarray, classes: int) -> np.ndarray:
    """Batched weights, (P, d) or (P, C, d)."""
    _, count, width = rows.shape
    counts = np.full(len(rows), count)
    return batched.fit_many(rows.reshape(-1, width), labels.ravel(), counts, classes, REGULARISATION, TOLERANCE)


def scikit_learn(rows: np.ndarray, labels: np.ndarray, **options: object) -> np.ndarray:
    """Coefficients (P, 1, d) or (P, C, d) of a loop over the parties."""
    strength = 1 / (rows.shape[1] * REGULARISATION)
    model = LogisticRegression(C=strength, fit_intercept=False, **{"max_iter": 10_000, **options})
    return np.stack([model.fit(x, y).coef_ for x, y in zip(rows, labels, strict=True)])


def gradient_norms(rows: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Norms (P,) of the gradients of the parties' risks."""
    channels = weights.shape[1]
    link, codes = (Logistic(), np.arange(1, 2)) if channels == 1 else (Softmax(), np.arange(channels))
    residuals = link.probabilities(weights @ rows.transpose(0, 2, 1)) - (labels[:, None] == codes[:, None])
    gradients = residuals @ rows / rows.shape[1] + REGULARISATION * weights
    return np.asarray(np.linalg.norm(gradients, axis=(1, 2)))


def matched(rows: np.ndarray, labels: np.ndarray, solver: str) -> tuple[float, float]:
    """The loosest `tol` at which most gradients reach the tolerance (or the tightest), and the share that does."""
    for tol in LADDER:
        reached = np.mean(gradient_norms(rows, labels, scikit_learn(rows, labels, solver=solver, tol=tol)) <= TOLERANCE)
        if reached > 0.5:
            break
    return tol, float(reached)


def operations(rows: np.ndarray, labels: np.ndarray, classes: int) -> tuple[float, float, float, float]:
    """Per party: conjugate gradient steps, evaluations of the link, and operations in single and double precision.

    The parties are trained one at a time and the evaluations of their links counted. An exponential counts as one
    operation.
    """
    calls = {"curve": 0, "probabilities": 0}

    def counting(link: type[Link]) -> type[Link]:
        class Counting(link):  # type: ignore[misc, valid-type]
            def curve(self, curvature: tuple[np.ndarray, ...], scores: np.ndarray, out: np.ndarray) -> None:
                calls["curve"] += 1
                super().curve(curvature, scores, out)

            def probabilities(self, scores: np.ndarray) -> np.ndarray:
                calls["probabilities"] += 1
                return np.asarray(super().probabilities(scores))

        return Counting

    with ExitStack() as stack:
        for link in (Logistic, Softmax):
            stack.enter_context(patch.object(batched, link.__name__, counting(link)))
        stack.enter_context(patch.object(elimination, "_LINK", counting(Logistic)()))
        for x, y in zip(rows, labels, strict=True):
            train(x[None], y[None], classes)
    _, count, width = rows.shape
    gram, unknowns = count <= width, min(count, width)
    channels = 1 if classes == 2 else classes
    product, scores, weights = 2 * channels * count * unknowns, channels * count, channels * unknowns
    conjugate, evaluations = calls["curve"] / len(rows), calls["probabilities"] / len(rows)
    single = conjugate * ((1 if gram else 2) * product + 7 * scores + 11 * weights)
    # Each evaluation belongs to a gradient and to the scores of a direction; the last one is the certificate.
    double = evaluations * (2 * product + 12 * scores + 8 * weights) + 4 * channels * count * width
    if eliminated(count, width, classes):
        assembled = count**2 if gram else count * width**2
        double += evaluations * (assembled + unknowns**3 / 3 + 2 * unknowns**2)
    if gram:  # inner products of the rows, and weights as sums of rows
        double += 2 * width * count**2 + 2 * channels * count * width
    return conjugate, evaluations, single, double


def eliminated(count: int, width: int, classes: int) -> bool:
    """Whether the equations of such parties are solved by elimination."""
    length = int(batched._shared_lengths(np.array([count]))[0])
    return classes == 2 and elimination.small(length, min(length, width))


def calls(count: int, width: int, classes: int, conjugate: float, evaluations: float) -> float:
    """Seconds per party of so many iterations' products, eliminations and links alone, in numpy."""
    random, channels = np.random.default_rng(0), 1 if classes == 2 else classes
    link = Logistic() if classes == 2 else Softmax()
    rows = random.normal(size=(TILE, count, width))
    gram, turned = count <= width, rows.transpose(0, 2, 1)
    known = rows @ turned if gram else rows
    scores, vectors = random.normal(size=(TILE, channels, count)), random.normal(size=(TILE, channels, known.shape[2]))

    def seconds(call: Callable[[], object]) -> float:
        return best_seconds(call, 5) / TILE

    def product(precision: type) -> float:
        factors: tuple[np.ndarray, np.ndarray] = vectors.astype(precision), known.astype(precision).transpose(0, 2, 1)
        return seconds(lambda: factors[0] @ factors[1])

    if eliminated(count, width, classes):  # as it goes there, with the parties along the last axis
        last, vector, score = (np.ascontiguousarray(np.moveaxis(one, 0, -1)) for one in (known, vectors[:, 0], scores))
        system = known if gram else turned @ rows
        equations = np.moveaxis(np.concatenate([system + np.eye(len(system[0])), vectors], axis=1), 0, -1)
        solving = seconds(lambda: elimination._solved(np.array(equations, order="C")))
        each = 2 * seconds(lambda: elimination._products(last, vector)) + seconds(lambda: link.probabilities(score))
        total = evaluations * (each + solving)
    else:
        total = evaluations * (2 * product(np.float64) + seconds(lambda: link.probabilities(scores)))
        total += conjugate * (1 if gram else 2) * product(np.float32)
    return total + (seconds(lambda: rows @ turned) if gram else 0)


def product_rate(precision: type) -> float:
    """Operations per second of a large matrix product."""
    size = 1024
    square: np.ndarray = np.random.default_rng(0).normal(size=(size, size)).astype(precision)
    return 2 * size**3 / best_seconds(lambda: square @ square, 5)


def line(kind: str, classes: int, count: int, width: int, rates: tuple[float, float]) -> str:
    """One of the table: times, ratios and errors."""
    rows, labels = problem(kind, classes, count, width)
    few_rows, few_labels = rows[:SAMPLE], labels[:SAMPLE]
    weights = train(rows, labels, classes)
    batch = best_seconds(lambda: train(rows, labels, classes), 3) / PARTIES
    cells = [f"{classes:7} {count:4} {width:7} {kind:6} {1e6 * batch:7.1f}"]
    for solver in ("lbfgs", "newton-cg"):
        tol, share = matched(few_rows, few_labels, solver)
        options = {"solver": solver, "tol": tol}
        seconds = best_seconds(lambda: scikit_learn(few_rows, few_labels, **options), 2) / SAMPLE  # noqa: B023
        cells.append(f"{1e6 * seconds:9.0f} {seconds / batch:6.1f} {tol:6.0e} {share:4.0%}")
    seconds = best_seconds(lambda: scikit_learn(few_rows, few_labels, max_iter=100), 2) / SAMPLE
    worst = gradient_norms(few_rows, few_labels, scikit_learn(few_rows, few_labels, max_iter=100)).max()
    cells.append(f"{1e6 * seconds:9.0f} {seconds / batch:6.1f} {worst:6.0e}")
    exact = scikit_learn(few_rows, few_labels, solver="newton-cholesky", tol=1e-10, max_iter=1000)
    found = weights[:SAMPLE].reshape(exact.shape)
    certified = gradient_norms(few_rows, few_labels, found).max()
    conjugate, evaluations, single, double = operations(few_rows, few_labels, classes)
    floor = single / rates[0] + double / rates[1]
    alone = calls(count, width, classes, conjugate, evaluations)
    cells.append(f"{np.abs(found - exact).max():8.0e} {certified:6.0e}")
    cells.append(f"{conjugate:6.0f} {1e6 * alone:6.1f} {1e6 * floor:6.1f} {batch / floor:5.1f}")
    return " |".join(cells)


def main() -> None:
    """Prints the rates of large products, then a line per number of classes, number of rows and kind of rows."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", RuntimeWarning)
    with threadpool_limits(1):
        rates = product_rate(np.float32), product_rate(np.float64)
        print(f"large products: {rates[0] / 1e9:.0f} (single) and {rates[1] / 1e9:.0f} (double) Gflop/s")
        print(
            f"{'microseconds per party':>36} |{'lbfgs, same gradient':>29} |{'newton-cg, same gradient':>29} |", end=""
        )
        print(f"{'lbfgs, defaults':>24} |{'largest':>16} |{'time / floor':>27}")
        print(f"{'classes':>7} {'rows':>4} {'columns':>7} {'kind':6} {'batched':>7} |", end="")
        print(f"{'time':>9} {'ratio':>6} {'tol':>6} {'met':>4} |" * 2, end="")
        print(f"{'time':>9} {'ratio':>6} {'grad':>6} |{'error':>8} {'grad':>6} |", end="")
        print(f"{'steps':>6} {'calls':>6} {'floor':>6} {'ratio':>5}")
        for classes in (2, 6):
            for count, width in product((5, 10, 22, 50, 100), WIDTHS):
                if count >= classes:
                    print(line("unit", classes, count, width, rates), flush=True)


if __name__ == "__main__":
    main()
