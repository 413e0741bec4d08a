"""Weights and labels that fit marginals: python -m benchmarks.marginal_fits [--rows COUNT ...] [--limit SECONDS]

The same problems of 300 bins (15 of each of 20 features) with noisy marginals, solved by the dual Newton method and by
scipy: non-negative least squares (Lawson and Hanson) and `lsq_linear`, by active sets (bvls) on dense matrices and by
trust regions (trf) on sparse ones, at tolerances of 1e-14. One thread, wall-clock time, each of scipy's solvers in a
process of its own that is ended at the limit. A difference is the largest, in multiples of 1/n for weights.

Where scipy's exact solvers do not end, `held` stands in: ordinary least squares by dense factors with the entries at a
bound held there. It is the only minimiser if its free entries are within the bounds and the gradient points outwards at
held ones; by how much either fails at most is printed beside it.
"""

from __future__ import annotations

import argparse
import multiprocessing
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import lsq_linear, nnls
from scipy.sparse import csr_array, diags_array, eye_array, vstack
from threadpoolctl import threadpool_limits

from aggregator.learners.error_marginals.fits import box_labels, entropy_labels, importance_weights
from benchmarks.common import fastest
from federation.numerics.binning import Bins

FEATURES, BINS = 20, 15
NOISE = 0.01  # standard deviation of a marginal: 25 of 2500 private rows
_RUNS = 5

Solver = Callable[[], np.ndarray]
Solvers = dict[str, Solver]
Stacked = tuple[csr_array, np.ndarray]  # matrix and target of ordinary least squares


@dataclass(frozen=True)
class Problem:
    """Indicators (K, n), noisy marginals; a system, weights (n,) and a target of noisy errors of one hypothesis."""

    indicators: csr_array
    marginals: np.ndarray
    prior_strength: float
    system: csr_array
    target: np.ndarray
    strength: float
    weights: np.ndarray

    @property
    def rows(self) -> int:
        """n."""
        return len(self.weights)

    def weights_stacked(self) -> Stacked:
        """Matrix and target of ordinary least squares with the same solution w >= 0."""
        root = np.sqrt(2 * self.prior_strength)
        return vstack([self.indicators, root * eye_array(self.rows)]).tocsr(), np.append(
            self.marginals, np.full(self.rows, root / self.rows)
        )

    def labels_stacked(self) -> Stacked:
        """Matrix and target of ordinary least squares with the same solution y in [0, 1]."""
        roots = np.sqrt(self.strength * self.weights)
        matrix = vstack([self.system @ diags_array(self.weights), diags_array(roots)]).tocsr()
        return matrix, np.append(self.target, roots / 2)


def draw(rows: int) -> Problem:
    """Normal rows whose weights vary tenfold, and labels that a linear hypothesis gets wrong for a third of them."""
    random = np.random.default_rng(0)
    values = random.normal(size=(rows, FEATURES))
    indicators = Bins.fit(values, BINS).indicators(values)
    weights = random.exponential(size=rows)
    weights /= weights.sum()
    labels = values[:, 0] + values[:, 1] ** 2 > 0.5
    system = (indicators @ diags_array(np.where(values[:, 0] > 0, 1.0, -1.0))).tocsr()
    noise = NOISE * random.normal(size=(2, indicators.shape[0]))
    return Problem(
        indicators,
        indicators @ weights + noise[0],
        0.05 * NOISE**2 * rows**2,
        system,
        system @ (weights * labels) + noise[1],
        0.02,
        weights,
    )


def by_nnls(problem: Problem) -> np.ndarray:
    """Weights by Lawson and Hanson's method."""
    matrix, target = problem.weights_stacked()
    return np.asarray(nnls(matrix.toarray(), target, maxiter=100 * problem.rows)[0])


def by_trust_region(stacked: Stacked, bounds: tuple[float, float]) -> np.ndarray:
    """Either by reflective trust regions with sparse least squares."""
    return np.asarray(lsq_linear(*stacked, bounds, method="trf", tol=1e-14, lsmr_tol=1e-14, max_iter=1000).x)


def by_active_sets(stacked: Stacked, bounds: tuple[float, float]) -> np.ndarray:
    """Either by active sets with dense least squares."""
    matrix, target = stacked
    return np.asarray(lsq_linear(matrix.toarray(), target, bounds, method="bvls", tol=1e-14).x)


def held_at_bounds(stacked: Stacked, bounds: tuple[float, float], found: np.ndarray) -> tuple[np.ndarray, float]:
    """Least squares with entries held where `found` is at a bound, and the largest violation of optimality.

    Of a bound by a free entry, or of the sign of the gradient at a held one, in units of the largest sum of terms that
    an entry of the gradient has.
    """
    matrix, target = stacked[0].toarray(), stacked[1]
    low, high = bounds
    free = (found > low) & (found < high)
    solution = found.copy()
    inner = matrix[:, free]
    factor = cho_factor(inner.T @ inner)
    solution[free] = 0.0
    for _ in range(2):  # the second step takes back what rounding cost the first
        solution[free] += cho_solve(factor, inner.T @ (target - matrix @ solution))
    gradient = matrix.T @ (matrix @ solution - target)
    scale = np.abs(matrix).T @ (np.abs(matrix) @ np.abs(solution) + np.abs(target))
    inwards = np.where(found <= low, -gradient, np.where(found >= high, gradient, 0.0)) / scale
    outside = np.maximum(low - solution[free], solution[free] - high)
    return solution, max(0.0, inwards.max(), outside.max(initial=0.0))


def within(limit: float, call: Solver) -> tuple[float, np.ndarray] | None:
    """The same in a process of its own; None when it takes longer than the limit."""
    context: Any = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    worker = context.Process(target=lambda: sender.send(fastest(call, 1)))
    worker.start()
    result = receiver.recv() if receiver.poll(limit) else None
    worker.kill()
    worker.join()
    return result


def compare(problem: Problem, limit: float) -> None:
    """Prints seconds of every solver, its ratio to the dual's, and how far it is from the dual's solution."""
    count = problem.indicators.shape[0]
    print(f"{problem.rows} rows, {count} bins; scipy ended after {limit:.0f} s")
    labels = (problem.system, problem.target, problem.strength, problem.weights)
    weights = partial(importance_weights, problem.indicators, problem.marginals, problem.prior_strength)
    by_lawson_hanson: Solvers = {"nnls": lambda: by_nnls(problem)}
    show("weights", weights, problem.weights_stacked(), (0.0, np.inf), problem.rows, by_lawson_hanson, limit)
    show("box labels", lambda: box_labels(*labels), problem.labels_stacked(), (0.0, 1.0), 1, {}, limit)
    seconds, _ = fastest(lambda: entropy_labels(*labels), _RUNS)
    print(f"  {'entropy labels':15} dual {seconds:8.3f} s")


def show(
    name: str, dual: Solver, stacked: Stacked, bounds: tuple[float, float], unit: int, others: Solvers, limit: float
) -> None:
    """Prints what solving `stacked` within `bounds` takes by the dual, by `others` and by scipy's general solvers.

    Differences are told in multiples of 1/`unit`.
    """
    seconds, found = fastest(dual, _RUNS)
    print(f"  {name:15} dual {seconds:8.3f} s; {np.isin(found, bounds).mean():.1%} at a bound")
    solution, violation = held_at_bounds(stacked, bounds, found)
    print(f"{'':18}held  difference {unit * np.abs(solution - found).max():.0e}, violation {violation:.0e}")
    general = {"trf": partial(by_trust_region, stacked, bounds), "bvls": partial(by_active_sets, stacked, bounds)}
    for solver, call in (others | general).items():
        result = within(limit, call)
        if result is None:
            print(f"{'':18}{solver:5} more than {limit:.0f} s, {limit / seconds:.0f} times as long or more")
            continue
        difference = unit * np.abs(result[1] - found).max()
        print(f"{'':18}{solver:5}{result[0]:8.2f} s, {result[0] / seconds:.0f} times as long", end="")
        print(f"; difference {difference:.0e}")


def main() -> None:
    """Prints the comparison for each number of rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 5000])
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for each of scipy's solvers")
    chosen = parser.parse_args()
    with threadpool_limits(1):
        for rows in chosen.rows:
            compare(draw(rows), chosen.limit)


if __name__ == "__main__":
    main()
