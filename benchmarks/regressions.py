"""Test errors of regressions on private labels: of what is released, of least squares, and of that clipped.

Run from the repository root: python -m benchmarks.regressions [--data-dir DIR] [--splits COUNT] [--draws COUNT]
[--rows COUNT] [SET ...]

Sets: diabetes, housing, protein and weeks (of the census); friedman1 to friedman3 (Friedman 1991); and sparse (60
columns, of which 3 matter). Of each COUNT rows are used at most, a fifth of them for testing. Mechanisms: `label_sums`
with pure and Gaussian noise of 1, 10 and 100 parties that add noise each, `private_labels` with every noise that
`LABELS` lists, and the bags of `BAGS`; epsilon .1, .3, 1 and 3, delta 1e-6. A cell is the mean over splits and noise
draws; what is released is compared with least squares, which the same answers give. `constant` is the mean of the
training labels, which no private method knows.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import make_friedman1, make_friedman2, make_friedman3

from aggregator.protocols.bag_regression import NoisyWeightedLLP, WeightedLBA
from aggregator.protocols.private_labels import PrivateLabels
from aggregator.regressions.models import from_labels, from_moments, from_sums, shrunk
from aggregator.releases.models import Described
from benchmarks.common import bar, print_tables
from benchmarks.label_privacy import DELTA, PARTIES, Split, split
from federation.contract.query import ReleaseId
from federation.contract.randomness import NoiseBits, generator
from federation.features.feature_map import FeatureMap
from federation.features.steps import Append
from federation.mechanisms.bag_sums.noisy_labels import NoisyBagSums
from federation.mechanisms.labels import shaped_gaussian
from federation.mechanisms.labels.calibration import LabelNoise, calibrate
from federation.mechanisms.labels.mechanism import LabelRange
from federation.mechanisms.labels.shaped_gaussian import fit_shape
from federation.mechanisms.noise.additive import Noise
from federation.numerics.bag_weights import disjoint_bags, gaussian_weights, sign_weights
from federation.queries.labels import LabelledRows, WeightedSumsQuestion

BagProtocol = NoisyWeightedLLP | WeightedLBA
SETS = ("diabetes", "housing", "protein", "weeks", "friedman1", "friedman2", "friedman3", "sparse")
EPSILONS = (0.1, 0.3, 1.0, 3.0)
SUMS: tuple[Noise, ...] = ("pure", "gaussian")
LABELS: tuple[LabelNoise, ...] = ("one_bit", "laplace", "bins")
BAGS: dict[str, BagProtocol] = {
    "noisy_weighted_llp 4": NoisyWeightedLLP(size=4),
    "noisy_weighted_llp 64": NoisyWeightedLLP(size=64),
    "weighted_lba 16": WeightedLBA(size=16),
}
SEVERAL = (1, 10, PARTIES)
ROWS = 3750  # of a set at most, a fifth of them for testing: with many more, noise hardly matters
WORSE = 1.02  # a cell this much above least squares is listed

_Made = tuple[np.ndarray, np.ndarray]  # rows and labels
_SOURCES = {"weeks": "census_weeks"}


@dataclass(frozen=True)
class Cell:
    """One way to protect labels of a set: a mechanism with its noise, the parties that add it, and epsilon."""

    source: str
    mechanism: str
    parties: int
    epsilon: float


@dataclass(frozen=True)
class Errors:
    """Mean squared test errors: of least squares, also clipped, of what is released, without noise, and constant."""

    before: float
    clipped: float
    after: float
    exact: float
    constant: float

    @property
    def change(self) -> float:
        """What is released over least squares."""
        return self.after / self.before


def world(source: str, seed: int, data_dir: str | None = None, rows: int = ROWS) -> tuple[Split, LabelRange]:
    """One split of a set, with a constant column, and the range of its labels. Raises `InputError` without data."""
    if source in _GENERATORS:
        return _generated(source, seed, rows)
    return split(_SOURCES.get(source, source), seed, data_dir, rows)


def measure(
    source: str,
    *,
    splits: int = 3,
    draws: int = 3,
    epsilons: Sequence[float] = EPSILONS,
    sums: Sequence[Noise] = SUMS,
    labels: Sequence[LabelNoise] = LABELS,
    bags: Mapping[str, BagProtocol] = BAGS,
    parties: Sequence[int] = SEVERAL,
    rows: int = ROWS,
    data_dir: str | None = None,
) -> dict[Cell, Errors]:
    """The errors of every cell of a set, means over `splits` and `draws` of noise. Raises `InputError` without data."""
    found: dict[Cell, list[Errors]] = {}
    for seed in range(splits):
        known, ends = world(source, seed, data_dir, rows)
        for cell, errors in _measured(source, seed, known, ends, draws, epsilons, sums, labels, bags, parties):
            found.setdefault(cell, []).append(errors)
    return {cell: _mean(several) for cell, several in found.items()}


def summary(changes: Iterable[float]) -> tuple[float, float, int]:
    """(geometric mean, largest, how many above `WORSE`) of errors over those of least squares.

    Examples:
        >>> summary([0.25, 1.0])
        (0.5, 1.0, 0)
    """
    values = np.array([*changes])
    return float(np.exp(np.log(values).mean())), float(values.max()), int((values > WORSE).sum())


def _measured(
    source: str,
    seed: int,
    known: Split,
    ends: LabelRange,
    draws: int,
    epsilons: Sequence[float],
    sums: Sequence[Noise],
    labels: Sequence[LabelNoise],
    bags: Mapping[str, BagProtocol],
    parties: Sequence[int],
) -> Iterator[tuple[Cell, Errors]]:
    label_range = ends.low, ends.high
    exact = from_moments(known.rows.T @ known.rows, known.rows.T @ known.labels, label_range)
    others = _error(known, exact), float(np.mean((known.test_labels - known.labels.mean()) ** 2))

    def errors(pairs: Iterable[tuple[Described, Described]]) -> Errors:
        every = [(_error(known, one, clip=False), _error(known, one), _error(known, other)) for one, other in pairs]
        before, clipped, after = np.mean(every, axis=0).tolist()
        return Errors(before, clipped, after, *others)

    for number in parties:
        held = np.array_split(np.arange(len(known.rows)), number)
        shapes = [fit_shape(known.rows[own]) for own in held]
        for noise in sums:
            for epsilon in epsilons:
                cell = Cell(source, f"label_sums {noise}", number, epsilon)
                yield cell, errors(_from_sums(known, ends, cell, noise, held, shapes, draws, seed))
    for kind in labels:
        for epsilon in epsilons:
            cell = Cell(source, f"private_labels {kind}", 1, epsilon)
            yield cell, errors(_from_labels(known, ends, cell, kind, draws, seed))
    for name, protocol in bags.items():
        for epsilon in epsilons:
            cell = Cell(source, name, 1, epsilon)
            yield cell, errors(_from_bags(known, ends, cell, protocol, draws, seed))


def _from_sums(
    known: Split,
    ends: LabelRange,
    cell: Cell,
    noise: Noise,
    held: Sequence[np.ndarray],
    shapes: Sequence[shaped_gaussian.Shape],
    draws: int,
    seed: int,
) -> Iterator[tuple[Described, Described]]:
    moments, covariance = np.zeros((draws, known.rows.shape[1])), np.zeros((known.rows.shape[1],) * 2)
    target = {"epsilon": cell.epsilon, "delta": DELTA if noise == "gaussian" else 0.0}
    for party, (own, shape) in enumerate(zip(held, shapes, strict=True)):
        mechanism = shaped_gaussian.calibrate(shape, noise, rows=len(own), labels=ends, **target)
        bits = NoiseBits(seed, f"benchmark regressions {cell}", party)
        moments += mechanism.release(known.rows[own], known.labels[own], bits, draws)
        covariance += mechanism.covariance()
    gram, row_sum, label_range = known.rows.T @ known.rows, known.rows.sum(axis=0), (ends.low, ends.high)
    for moment in moments:
        released = shrunk(gram, moment, covariance, row_sum, len(known.rows), label_range)
        yield from_moments(gram, moment, label_range), released


def _from_labels(
    known: Split, ends: LabelRange, cell: Cell, kind: LabelNoise, draws: int, seed: int
) -> Iterator[tuple[Described, Described]]:
    label_range = ends.low, ends.high
    mechanism = calibrate(kind, epsilon=cell.epsilon, delta=DELTA, label_range=label_range)
    bits = NoiseBits(seed, f"benchmark regressions {cell}")
    known_noise = mechanism if PrivateLabels(noise=kind).shrinks else None
    for _ in range(draws):
        private = mechanism.release(known.labels, bits)
        plain, noisy = (
            from_labels("linear", known.rows, private, label_range, seed, noise) for noise in (None, known_noise)
        )
        yield plain, noisy


def _from_bags(
    known: Split, ends: LabelRange, cell: Cell, protocol: BagProtocol, draws: int, seed: int
) -> Iterator[tuple[Described, Described]]:
    count, label_range = len(known.rows), (ends.low, ends.high)
    held = LabelledRows(FeatureMap(known.rows.shape[1] - 1, (Append(1.0),)), *label_range, count)
    noise: Any = protocol.noise_of(cell.epsilon, DELTA)
    release = ReleaseId("benchmark regressions")
    question = protocol.question(held, count, noise, release=release, draws=1, seeded=True)
    for draw in range(draws):
        bits = NoiseBits(seed, f"benchmark regressions {cell}", draw)
        chosen = disjoint_bags(count, question.design.bags, protocol.size, bits)
        draw_weights = gaussian_weights if isinstance(question, WeightedSumsQuestion) else sign_weights
        weights = draw_weights(len(chosen), protocol.size, bits)
        mechanism = question.mechanism()
        if isinstance(mechanism, NoisyBagSums):
            sums = mechanism.release(known.labels[chosen], weights, np.ones(chosen.shape, dtype=bool), bits)
        else:
            sums = mechanism.release(known.labels[chosen], weights, bits)
        row_sums = np.einsum("mk,mkd->md", weights, known.rows[chosen])
        yield from_sums(row_sums, sums, label_range), from_sums(row_sums, sums, label_range, question)


def _error(known: Split, model: Described, clip: bool = True) -> float:
    description, arrays = model
    found = known.test @ arrays["weights"]
    if clip:
        found = np.clip(found, *description["range"])
    return float(np.mean((found - known.test_labels) ** 2))


def _mean(several: Sequence[Errors]) -> Errors:
    return Errors(*np.mean([list(vars(one).values()) for one in several], axis=0).tolist())


def _friedman(make: Callable[..., _Made], noise: float) -> Callable[[int, int], _Made]:
    return lambda seed, rows: make(n_samples=rows, noise=noise, random_state=seed)


def _sparse(seed: int, rows: int) -> _Made:
    random = generator(seed, "benchmark sparse")
    columns = random.normal(size=(rows, 60))
    return columns, columns[:, :3] @ [1.0, 2.0, -1.5] + random.normal(size=rows)


_GENERATORS: dict[str, tuple[Callable[[int, int], _Made], tuple[float, float]]] = {
    "friedman1": (_friedman(make_friedman1, 1.0), (-5.0, 35.0)),
    "friedman2": (_friedman(make_friedman2, 125.0), (0.0, 1800.0)),
    "friedman3": (_friedman(make_friedman3, 0.1), (-1.6, 1.6)),
    "sparse": (_sparse, (-12.0, 12.0)),
}


def _generated(source: str, seed: int, count: int) -> tuple[Split, LabelRange]:
    make, ends = _GENERATORS[source]
    rows, labels = make(seed, count)
    train = count * 4 // 5
    rows = np.column_stack([(rows - rows[:train].mean(axis=0)) / rows[:train].std(axis=0), np.ones(count)])
    labels = np.clip(labels, *ends)
    return Split(rows[:train], labels[:train], rows[train:], labels[train:]), LabelRange(*ends)


def show(name: str, arguments: argparse.Namespace, every: dict[Cell, Errors]) -> None:
    """Prints the cells of one set, and adds them to `every`."""
    found = measure(
        name, splits=arguments.splits, draws=arguments.draws, rows=arguments.rows, data_dir=arguments.data_dir
    )
    every.update(found)
    first = next(iter(found.values()))
    print(f"\n{name}: without noise {first.exact:.4g}, constant {first.constant:.4g}")
    print(f"{'mechanism':24}{'parties':>8}{'epsilon':>8}{'before':>11}{'clipped':>11}{'after':>11}{'change':>8}")
    for cell, errors in found.items():
        shown = f"{errors.before:11.4g}{errors.clipped:11.4g}{errors.after:11.4g}{errors.change:8.3f}"
        print(f"{cell.mechanism:24}{cell.parties:8}{cell.epsilon:8g}{shown}", flush=True)
    told(found)


def told(found: dict[Cell, Errors]) -> None:
    """Prints what the cells come to together."""
    print(f"  {'error over least squares':28}{'cells':>6}{'mean':>8}{'clipped':>9}{'worst':>8}{f'> {WORSE}':>8}")
    for epsilon in (None, *EPSILONS):
        chosen = [errors for cell, errors in found.items() if epsilon in (None, cell.epsilon)]
        mean, worst, above = summary(errors.change for errors in chosen)
        clipped, *_ = summary(errors.clipped / errors.before for errors in chosen)
        title = "all" if epsilon is None else f"epsilon {epsilon:g}"
        print(f"  {title:28}{len(chosen):6}{mean:8.3f}{clipped:9.3f}{worst:8.3f}{above:8}")
    against = [errors.after / errors.clipped for errors in found.values()]
    print("  over clipped least squares: mean {:.3f}, worst {:.3f}, above in {}".format(*summary(against)))
    better = [sum(getattr(errors, name) < errors.constant for errors in found.values()) for name in ("before", "after")]
    print(f"  better than the constant: {better[0]} before, {better[1]} after, of {len(found)}", flush=True)


def main() -> None:
    """Prints every set that is asked for, and all of them together."""
    every: dict[Cell, Errors] = {}
    print_tables(__doc__, SETS, lambda name, chosen: show(name, chosen, every), splits=3, draws=3, rows=ROWS)
    if len({cell.source for cell in every}) > 1:
        print("\nall sets")
        told(every)
    if every:
        bar("largest error over that of least squares", summary(errors.change for errors in every.values())[1], 1.03)
    if real := [errors.change for cell, errors in every.items() if cell.source not in _GENERATORS]:
        bar("geometric mean of real sets", summary(real)[0], 0.25)


if __name__ == "__main__":
    main()
