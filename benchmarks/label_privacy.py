"""Test errors of linear regression under label privacy by every mechanism, beside what public numbers predict.

Run from the repository root: python -m benchmarks.label_privacy [--data-dir DIR] [--splits COUNT] [TABLE ...]

Tables: housing, protein and census (weeks worked) with one party, and many (census dealt out to 100 parties that trust
nobody) at (epsilon, delta) = (1, 1e-6); variances (mean variance of single private labels over that of one bit, by
epsilon, on the labels of all data sets); and large (2 million rows of 64 columns: how long a shape takes). Rows are
public: columns are standardised on the training rows, and the counts and incomes of housing are log(1 + x) first, so
that a few districts do not need most of the noise. Labels lie in the range that the data set's documentation gives. A
fifth of the rows is for testing. Errors are means over splits and releases, with standard errors over the splits.
Tables whose data is missing are skipped with a message.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import get_args

import numpy as np

from aggregator.contract.registry import configured, protocol
from aggregator.trial.plan import PublicNumbers
from benchmarks.common import print_tables
from federation.contract.randomness import NoiseBits, generator
from federation.contract.trust import TrustTerms
from federation.mechanisms.labels import shaped_gaussian
from federation.mechanisms.labels.calibration import LabelNoise, calibrate
from federation.mechanisms.labels.mechanism import LabelMechanism, LabelRange
from federation.mechanisms.labels.shaped_gaussian import Shape, ShapeKind, fit_shape
from federation.mechanisms.noise.additive import Noise
from scenarios.data.catalogue import load

EPSILON, DELTA = 1.0, 1e-6
EPSILONS = 0.5, 1.0, 2.0, 4.0, 8.0, 12.0
RELEASES = 50
PARTIES = 100
SKEWED = {"housing": [3, 4, 5, 6, 7]}  # rooms, bedrooms, population, households, income
BARS = {"X'y, optimal, gaussian": 0.500}  # of housing
PUBLISHED = {  # on housing, in their order
    "non-private": 0.490,
    "X'y, optimal, gaussian": 0.492,
    "X'y, whitened, gaussian": 0.504,
    "labels, laplace": 0.522,
    "labels, gaussian": 0.799,
}
CENSUS = {"non-private": 124.1, "X'y, optimal, gaussian": 124.8, "labels, one_bit": 127.8}
MANY = {"labels, one_bit": 127.8, "X'y, optimal, gaussian": 190.8}


@dataclass
class Split:
    """Training rows (N, d) and labels (N,), the inverse of X'X on its span, and test rows and labels."""

    rows: np.ndarray
    labels: np.ndarray
    test: np.ndarray
    test_labels: np.ndarray
    inverse: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        norms = np.linalg.norm(self.rows, axis=0)
        scaled = self.rows / np.where(norms > 0, norms, 1.0)
        self.inverse = np.linalg.pinv(scaled.T @ scaled, rcond=1e-12, hermitian=True) / np.outer(norms, norms)

    def error(self, sums: np.ndarray) -> float:
        """Mean squared test error of the models with these X'y (draws, d)."""
        predicted = self.test @ (self.inverse @ sums.T)
        return float(np.square(predicted - self.test_labels[:, None]).mean())


def split(source: str, seed: int, data_dir: str | None, most: int | None = None) -> tuple[Split, LabelRange]:
    """One split of `most` rows of a data set, with a constant column; columns constant in training are left out."""
    table = load(source, data_dir=data_dir)
    assert table.label_range is not None, "its documentation gives one"
    order = generator(seed, "benchmark labels").permutation(len(table))
    order = order[:most]
    train, test = np.split(order, [int(0.8 * len(order))])
    rows, others = table.rows(train), table.rows(test)
    for column in SKEWED.get(source, []):
        rows[:, column], others[:, column] = np.log1p(rows[:, column]), np.log1p(others[:, column])
    mean, spread = rows.mean(axis=0), rows.std(axis=0)
    kept = spread > 0
    rows, others = ((part[:, kept] - mean[kept]) / spread[kept] for part in (rows, others))
    parts = [np.column_stack([part, np.ones(len(part))]) for part in (rows, others)]
    return Split(parts[0], table.labels[train], parts[1], table.labels[test]), LabelRange(*table.label_range)


@dataclass
class Errors:
    """Mean squared test errors by mechanism, one number per split, and predicted excess risks."""

    found: dict[str, list[float]] = field(default_factory=dict)
    predicted: dict[str, float] = field(default_factory=dict)
    traces: dict[str, float] = field(default_factory=dict)  # over the least that any rows of the rank could have
    advised: str = ""

    def add(self, name: str, error: float, predicted: float | None = None) -> None:
        """The error of one split."""
        self.found.setdefault(name, []).append(error)
        if predicted is not None:
            self.predicted[name] = predicted

    def show(self, title: str, published: dict[str, float]) -> None:
        """Prints the table, smallest error first, and whether the order is that of the published figures."""
        print(f"\n{title}\n{'mechanism':34} {'error':>9} {'s.e.':>7} {'excess':>9} {'predicted':>10} {'reference':>10}")
        base = float(np.mean(self.found["non-private"]))
        for name in sorted(self.found, key=lambda name: float(np.mean(self.found[name]))):
            values = np.array(self.found[name])
            error = values.std(ddof=1) / len(values) ** 0.5 if len(values) > 1 else 0.0
            predicted = f"{self.predicted[name]:10.4f}" if name in self.predicted else " " * 10
            reference = f"{published[name]:10.3f}" if name in published else ""
            print(f"{name:34} {values.mean():9.4f} {error:7.4f} {values.mean() - base:9.4f} {predicted} {reference}")
        order = [float(np.mean(self.found[name])) for name in published]
        if order:
            print(f"order of the references: {'kept' if order == sorted(order) else 'NOT KEPT'}")
        best = min(float(np.mean(values)) for name, values in self.found.items() if name != "non-private")
        ratio = float(np.mean(self.found[self.advised])) / best
        print(f"advised: {self.advised}, {ratio:.4f} of the best; traces over the least:", end="")
        print("".join(f" {kind} {trace:.0f}" for kind, trace in self.traces.items()))


def sums_of_labels(world: Split, mechanism: LabelMechanism, bits: NoiseBits, releases: int) -> np.ndarray:
    """X'y~ (releases, d) of labels that are made private one by one."""
    return np.stack([mechanism.release(world.labels, bits) @ world.rows for _ in range(releases)])


def noisy_sums(
    world: Split, shape: Shape, noise: Noise, labels: LabelRange, parties: int, seed: int, releases: int
) -> tuple[np.ndarray, float]:
    """X'y (releases, d) added up over parties with noise of their own, and the predicted excess."""
    total, excess = np.zeros((releases, world.rows.shape[1])), 0.0
    for party, own in enumerate(np.array_split(np.arange(len(world.rows)), parties)):
        mechanism = shaped_gaussian.calibrate(shape, noise, rows=len(own), epsilon=EPSILON, delta=DELTA, labels=labels)
        bits = NoiseBits(seed, f"benchmark sums {noise}", party)
        total += mechanism.release(world.rows[own], world.labels[own], bits, releases)
        excess += mechanism.excess(len(world.rows))
    return total, excess


def compare(source: str, parties: int, splits: Sequence[int], data_dir: str | None) -> Errors:
    """All mechanisms on the same splits."""
    errors = Errors()
    for seed in splits:
        world, labels = split(source, seed, data_dir)
        exact = world.error((world.labels @ world.rows)[None])  # least squares on the true labels
        errors.add("non-private", exact)
        kinds: tuple[ShapeKind, ...] = get_args(ShapeKind)
        noises: tuple[Noise, ...] = get_args(Noise)
        for kind in kinds:
            shape = fit_shape(world.rows, kind)
            for noise in noises:
                sums, excess = noisy_sums(world, shape, noise, labels, parties, seed, RELEASES)
                errors.add(f"X'y, {kind}, {noise}", world.error(sums), excess)
            rank = shape.transform.shape[1]
            errors.traces[kind] = shape.trace * len(world.rows) / rank**2
        for name, mechanism in single_labels(labels):
            bits = NoiseBits(seed, f"benchmark labels {name}")
            errors.add(f"labels, {name}", world.error(sums_of_labels(world, mechanism, bits, RELEASES // 10)))
        known = PublicNumbers(
            DELTA,
            terms=TrustTerms(parties),
            features=rank,
            rows=len(world.rows),
            label_range=(labels.low, labels.high),
            residual=exact,
        )
        excesses = {name: excess for name, kind, options in _PREDICTED if (excess := _excess(kind, options, known))}
        errors.advised = min(excesses, key=excesses.__getitem__)
        for name, excess in excesses.items():
            if name not in errors.predicted:  # the excess of sums is that of their own rows
                errors.predicted[name] = excess - rank * exact / len(world.rows)
    return errors


_PREDICTED: list[tuple[str, str, dict[str, str]]] = [  # by name in the tables, as protocols have it
    *(
        (f"X'y, {shape}, {noise}", "label_sums", {"shape": shape, "noise": noise})
        for shape in ("optimal", "whitened")
        for noise in get_args(Noise)
    ),
    *(
        (f"labels, {noise}", "private_labels", {"noise": noise})
        for noise in ("laplace", "gaussian", "one_bit", "unbiased")
    ),
]


def _excess(kind: str, options: dict[str, str], known: PublicNumbers) -> float:
    """The excess risk of least squares that a protocol expects."""
    found = configured(protocol(kind), {**options, "shrink": False}).expected_error(known, EPSILON)
    assert found is not None, "it has a formula"
    return found.error


def single_labels(labels: LabelRange) -> list[tuple[str, LabelMechanism]]:
    """Mechanisms for labels one by one."""
    kinds: tuple[LabelNoise, ...] = get_args(LabelNoise)
    binned: tuple[LabelNoise, ...] = ("bins", "estimated_bins")
    ends = (labels.low, labels.high)
    found = [(str(kind), calibrate(kind, epsilon=EPSILON, delta=DELTA, label_range=ends)) for kind in kinds]
    for kind in binned:
        debiased = calibrate(kind, epsilon=EPSILON, delta=DELTA, label_range=ends, debiased=True)
        found.append((f"{kind}, debiased", debiased))
    return found


def variances(data_dir: str | None) -> None:
    """Mean variance of private labels over that of one bit, and where all labels are at one end of their range."""
    print("\nmean variance of unbiased private labels / of Laplace noise, over that of one bit")
    print(f"{'labels of':14}" + "".join(f"{f'epsilon {epsilon:g}':>18}" for epsilon in EPSILONS))
    ranged = {source: load(source, data_dir=data_dir) for source in ("housing", "protein", "census_weeks", "diabetes")}
    for source, table in ranged.items():
        assert table.label_range is not None, "its documentation gives one"
        _show_variances(source, np.clip(table.labels, *table.label_range), table.label_range)
    _show_variances("one end only", np.zeros(1), (0.0, 1.0))


def _show_variances(name: str, labels: np.ndarray, label_range: tuple[float, float]) -> None:
    """One row of `variances`, and the largest bias of the unbiased ones in parts of the range."""
    line, bias = f"{name:14}", 0.0
    for epsilon in EPSILONS:
        bit, best, other = (
            calibrate(kind, epsilon=epsilon, delta=0.0, label_range=label_range)
            for kind in ("one_bit", "unbiased", "laplace")
        )
        ratios = [np.mean(noise.variance(labels)) / np.mean(bit.variance(labels)) for noise in (best, other)]
        bias = max(bias, float(best.bias()) / (label_range[1] - label_range[0]))
        line += f"{ratios[0]:9.3f} /{ratios[1]:7.3f}"
    print(f"{line}   bias {bias:.1e}")


def large() -> None:
    """Seconds for the shape of 2 million heavy-tailed rows."""
    rows = np.random.default_rng(0).standard_t(4, (2_000_000, 64)).astype(np.float32)
    start = time.perf_counter()
    shape = fit_shape(rows)
    seconds = time.perf_counter() - start
    print(f"\n2 million rows of 64 columns: {seconds:.1f} s, trace {shape.trace / shape.lower_bound:.4f} of its bound")


# Data set, number of parties, most splits, title and reference errors.
COMPARED: dict[str, tuple[str, int, int | None, str, dict[str, float]]] = {
    "housing": ("housing", 1, None, "housing, one party", PUBLISHED),
    "protein": ("protein", 1, None, "protein, one party", {}),
    "census": ("census_weeks", 1, 3, "census weeks, one party", CENSUS),
    "many": ("census_weeks", PARTIES, 3, f"census weeks, {PARTIES} parties", MANY),
}


def show(name: str, arguments: argparse.Namespace) -> None:
    """Prints one table, and beside housing the bars."""
    if name == "large":
        return large()
    if name == "variances":
        return variances(arguments.data_dir)
    source, parties, most, title, references = COMPARED[name]
    errors = compare(source, parties, range(arguments.splits)[:most], arguments.data_dir)
    errors.show(title, references)
    for method, limit in BARS.items() if name == "housing" else ():
        measured = float(np.mean(errors.found[method]))
        print(f"{method}: {measured:.4f}, bar {limit}: {'met' if measured <= limit else 'MISSED'}")


if __name__ == "__main__":
    print_tables(__doc__, [*COMPARED, "variances", "large"], show, splits=10)
