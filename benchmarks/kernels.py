"""Kernel means of many rows: python -m benchmarks.kernels [--rows COUNT] [--pairs COUNT]

First a million rows of 28 columns in a file of numbers, mapped into memory: means of 512 random features of four bags
and of a set, and the estimate of its class ratios; then the same with the covariance that whitening needs; each in a
process of its own, whose peak memory includes the pages of the file that it read. Then exact kernels beside random
features and landmarks at 30,000 rows, measured side by side in one process, every pair of rows computed. One thread,
wall-clock time of the fastest of a few runs (of one run for the exact kernel).
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from aggregator.learners.kernels.exact import ExactSupport, Support, median_squared_distance
from aggregator.learners.kernels.features import FeatureKernel, FeatureSupport, kernel
from benchmarks.common import fastest
from federation.numerics.simplex import least_squares

COLUMNS = 28
SHARES = np.array([[0.1, 0.9], [0.4, 0.6], [0.6, 0.4], [0.9, 0.1]])  # of the classes in each bag
TRUTH = np.array([0.75, 0.25])  # in the set
_BLOCK = 50_000


def draw(random: np.random.Generator, shares: np.ndarray, count: int) -> np.ndarray:
    """Rows (count, 28) of two classes whose centres differ a little: as hard to tell apart as those of Higgs."""
    ones = np.arange(count) < round(shares[1] * count)
    return np.asarray(random.normal(size=(count, COLUMNS)) + 0.2 * ones[:, None])


def write(file: Path, rows: int) -> None:
    """Rows of the four bags and the set, a fifth each, one after another; no more than a block of them in memory."""
    random = np.random.default_rng(0)
    with file.open("wb") as out:
        for shares in (*SHARES, TRUTH):
            for start in range(0, rows // 5, _BLOCK):
                draw(random, shares, min(_BLOCK, rows // 5 - start)).tofile(out)


def estimate(support: Support, embedding: np.ndarray, covariance: np.ndarray | None = None) -> np.ndarray:
    """Class ratios by class means that combine the bags linearly, all on the simplex; whitened by a covariance."""
    weights = np.linalg.pinv(SHARES)  # mean of class y = sum_i weights[y, i] mean of bag i
    if covariance is None:
        crossed = support.means @ embedding if isinstance(support, FeatureSupport) else embedding
        return least_squares(weights @ support.gram() @ weights.T, weights @ crossed)
    assert isinstance(support, FeatureSupport)
    means = weights @ support.means
    ridge = np.trace(covariance) / len(covariance) * np.eye(len(covariance))
    whitened = np.linalg.solve(covariance + ridge, means.T)
    return least_squares(means @ whitened, embedding @ whitened)


def peak() -> float:
    """Largest resident memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def million(file: str, covariance: bool) -> None:
    """Prints seconds and peak memory of the means and the estimate; run in a process of its own."""
    before = peak()
    rows = np.memmap(file, np.float64, "r").reshape(-1, COLUMNS)
    *bags, target = np.split(rows, 5)
    started = time.perf_counter()
    gamma = 1 / median_squared_distance(rows)
    chosen = kernel("fourier", rows, gamma, 512, 0)
    assert isinstance(chosen, FeatureKernel)
    support = chosen.support(bags, covariance)
    found = estimate(support, support.kernel.mean(target), support.covariance() if covariance else None)
    seconds = time.perf_counter() - started
    form = "whitened" if covariance else "means only"
    print(f"{len(rows)} rows, 512 random features, {form}: {seconds:.1f} s, {1e6 * seconds / len(rows):.2f} us per row")
    print(
        f"  peak memory {peak():.0f} MiB, of which {rows.nbytes / 2**20:.0f} the file and {before:.0f} the libraries; "
        f"L1 error {np.abs(found - TRUTH).sum():.4f}"
    )


def against_exact(rows: int) -> None:
    """Prints the cost of exact kernels over that of features, for bags of so many rows in all and a set of as many."""
    random = np.random.default_rng(1)
    bags, target = [draw(random, shares, rows // 4) for shares in SHARES], draw(random, TRUTH, rows)
    gamma = 1 / median_squared_distance(target)
    print(f"{rows} rows in 4 bags and {rows} in the set, {COLUMNS} columns:")
    seconds, estimates = {}, {}
    for kind, features in (("fourier", 512), ("fourier", 1024), ("nystrom", 256), ("exact", 0)):
        chosen, runs = kernel(kind, target, gamma, features, 0), 1 if kind == "exact" else 5
        gram, (support, _) = fastest(lambda: (s := chosen.support(bags), s.gram()), runs)  # noqa: B023
        assert isinstance(support, ExactSupport | FeatureSupport)
        embed = support.embed if isinstance(support, ExactSupport) else support.kernel.mean
        cross, embedding = fastest(lambda: embed(target), runs)  # noqa: B023
        name = f"{kind} {features or ''}".strip()
        seconds[name], estimates[name] = np.array([gram, cross]), estimate(support, embedding)
    for name, (gram, cross) in seconds.items():
        ratios = seconds["exact"] / seconds[name]
        whole = seconds["exact"].sum() / (gram + cross)
        difference = np.abs(estimates[name] - estimates["exact"]).sum()
        print(f"  {name:13} Gram {gram:7.3f} s, set {cross:7.3f} s; estimate {estimates[name].round(4)}", end="")
        print(f", L1 difference {difference:.4f}" if name != "exact" else "")
        print(f"{'':16}exact takes {ratios[0]:.1f} and {ratios[1]:.1f} times as long, {whole:.1f} together")


def main() -> None:
    """Prints both parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--pairs", type=int, default=30_000, help="rows in bags, and in the set, of the exact kernel")
    parser.add_argument("--file", help=argparse.SUPPRESS)
    parser.add_argument("--covariance", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    with threadpool_limits(1):
        if chosen.file:
            return million(chosen.file, chosen.covariance)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "rows"
            write(file, chosen.rows)
            for option in ([], ["--covariance"]):
                subprocess.run([sys.executable, "-m", "benchmarks.kernels", "--file", str(file), *option], check=True)
        against_exact(chosen.pairs)


if __name__ == "__main__":
    main()
