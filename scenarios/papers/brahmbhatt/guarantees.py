"""The theorems of Brahmbhatt et al. 2023 as numbers, beside exact values and simulated releases.

Public data sets stand in for the paper's: splits with labels, and bags of rows drawn from them.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from aggregator.trial.feature_fitting import fit
from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits, generator
from federation.mechanisms.bag_sums.calibration import delta
from federation.mechanisms.bag_sums.design import BagDesign
from federation.mechanisms.bag_sums.noisy_labels import theorem_delta
from federation.mechanisms.bag_sums.weighted_sums import leverages_and_residuals, per_instance_delta
from federation.mechanisms.noise import gaussian
from federation.numerics.bag_weights import disjoint_bags, noisy_count
from scenarios.data.catalogue import load
from scenarios.reproductions.paper import EXACT, Observation, Role

EPSILON, BAGS = 1.0, 100
SHARES = (0.1, 0.2, 1.0)
SIZES = (32, 128, 512, 2048, 8192)
SIMULATED = (32, 128)  # of larger ones nothing is seen in so many releases
_REPETITIONS, _RELEASES = 5, 40_000
HOUSES, HOUSE_SIZES = "California housing", (64, 256, 1024)
BAG_SIZES = (32, 64, 128, 256, 512, 1024)
PROMISED = 1e-6  # delta of our default
_BAGS_SEEN, _BAGS_OF_A_SIZE = 5, 16
_LEAST = 1e-300
_LOOKED_AT = 20_000  # rows, for their rank


def theorem_d1(quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """log10 of delta at epsilon 1 of noisy-wtd-LLP, sigma as large as the labels' range, every record in a bag."""
    of: dict[str, Any] = {"sigma": 1.0, "label_range": (0.0, 1.0)}
    for share in SHARES:
        setting = f"rho = {share:g}"
        for size in SIZES:
            published = BagDesign(BAGS * size, BAGS, size, noisy=noisy_count(share, BAGS * size))
            ours = BagDesign(BAGS * size, BAGS, size, per_bag=noisy_count(share, size), weights="signs")
            x = str(size)
            bound = math.log10(theorem_delta(EPSILON, published, **of))
            yield Observation(setting, "Theorem D.1", "published", x, EXACT, bound)
            designs: dict[Role, BagDesign] = {"published": published, "default": ours}
            for role, design in designs.items():
                if exact := delta(EPSILON, design, **of):  # not below the least number
                    yield Observation(setting, "exact", role, x, EXACT, math.log10(exact))
            if size in SIMULATED:
                for repetition in range(_REPETITIONS):
                    seen = math.log10(simulated_delta(published, repetition))
                    yield Observation(setting, "simulated", "published", x, repetition, seen)


def simulated_delta(design: BagDesign, repetition: int, releases: int = _RELEASES) -> float:
    """The mean of Gaussian deltas over simulated bags and weights, of the worse of a label with noise and without."""
    assert design.noisy is not None
    random = generator(repetition, "simulated releases of noisy-wtd-LLP")
    found = []
    for own in (0, 1):
        if design.noisy - own < 0 or (not own and design.noisy == design.records):
            continue
        others = random.hypergeometric(
            design.noisy - own, design.records - 1 - (design.noisy - own), design.size - 1, releases
        )
        weight, noise = random.normal(size=releases), random.chisquare(np.maximum(others, 1)) * (others > 0)
        spread = np.sqrt(noise + own * weight**2)
        hidden = spread > 0
        ratios = np.abs(weight[hidden]) / spread[hidden]
        found.append((np.exp(gaussian.log_delta(EPSILON, ratios)).sum() + np.sum(~hidden)) / releases)
    return float(max(found)) * design.inclusion


def theorem_1_2(quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """log10 of the exact delta at epsilon 1 of the most exposed label of a bag, where the bag is known.

    Of Californian districts; bags of a size are the splits. Default: what noise on the sums promises for all data.
    """
    for known in _features(HOUSES, data_dir):
        for size in HOUSE_SIZES[:2] if quick else HOUSE_SIZES:
            bags = disjoint_bags(len(known.labels), _BAGS_SEEN, size, NoiseBits(size, "bags of Theorem 1.2"))
            for number, bag in enumerate(bags):
                found = per_instance_delta(
                    EPSILON, known.rows, known.labels, bag[None], label_range=known.label_range
                ).largest
                yield Observation(HOUSES, "exact", "published", str(size), number, math.log10(max(found, _LEAST)))
            yield Observation(HOUSES, "exact", "default", str(size), EXACT, math.log10(PROMISED))


def lemma_3_4(quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """The least linear loss within a bag, as a share of that of all rows: of random bags, and what is expected."""
    for setting in (HOUSES, CENSUS):
        for known in _features(setting, data_dir):
            _, residuals = leverages_and_residuals(known.rows, known.labels)
            rank, least = np.linalg.matrix_rank(known.rows[:_LOOKED_AT]), float(np.mean(residuals**2))
            for size in BAG_SIZES:
                bits = NoiseBits(size, "bags of Lemma 3.4")
                kept = []
                for bag in disjoint_bags(len(known.labels), _BAGS_OF_A_SIZE, size, bits):
                    _, residuals = leverages_and_residuals(known.rows[bag], known.labels[bag])
                    kept.append(float(np.mean(residuals**2)) / least)
                for number, share in enumerate(kept):
                    yield Observation(setting, "in a bag", "published", str(size), number, share)
                yield Observation(setting, "least of these bags", "published", str(size), EXACT, min(kept))
                yield Observation(setting, "(k - r) / k", "published", str(size), EXACT, max(0.0, 1 - rank / size))


class _Features(NamedTuple):
    rows: np.ndarray
    labels: np.ndarray
    label_range: tuple[float, float]


def _features(setting: str, data_dir: Path | None) -> list[_Features]:
    """All rows of a set, with a constant; none where the data is not here."""
    source, scaling = ("housing", "standardise") if setting == HOUSES else ("census_weeks", "scale")
    try:
        table = load(source, data_dir=data_dir)
    except InputError:
        return []
    rows = table.rows(np.arange(len(table)))
    assert table.label_range is not None
    return [_Features(fit([scaling, "constant"], rows, table.text).transform(rows), table.labels, table.label_range)]


CRITEO, CENSUS = "Criteo", "US census"
SOURCES = {  # of each set of the paper: what stands for it, its features, and the bags of the paper's grid
    CRITEO: ("protein", "standardise", (512, 1024, 2048, 4096), (32, 64, 128, 256)),
    CENSUS: ("census_weeks", "scale", (1024, 2048, 4096, 8192), (64, 128, 256, 512)),
}
BATCH = {CRITEO: 1024, CENSUS: 8192}  # instances in a step of the paper's training


@dataclass(frozen=True, eq=False)
class World:
    """Features, the last one a constant, and labels of training and test rows; `label_range` is the declared one."""

    rows: np.ndarray
    labels: np.ndarray
    test_rows: np.ndarray
    test_labels: np.ndarray
    label_range: tuple[float, float]

    @cached_property
    def table(self) -> csr_array:
        """Rows with their labels as the last column; most features of people are 0."""
        return csr_array(np.column_stack([self.rows, self.labels]))

    def error(self, predicted: np.ndarray) -> float:
        """Mean squared error of predictions for the test rows."""
        return float(np.mean((predicted - self.test_labels) ** 2))


def world(setting: str, split: int, data_dir: Path | None) -> World | None:
    """A split, four fifths of the rows for training; None where the data is not here."""
    source, features, _, _ = SOURCES[setting]
    try:
        table = load(source, data_dir=data_dir)
    except InputError:
        return None
    order = generator(split, "rows of a paper's split").permutation(len(table))
    train, test = np.split(order, [len(table) * 4 // 5])
    rows = table.rows(train)
    known = fit([features, "constant"], rows, table.text)
    assert table.label_range is not None
    test_rows = known.transform(table.rows(test))
    return World(known.transform(rows), table.labels[train], test_rows, table.labels[test], table.label_range)


class Sums(NamedTuple):
    """Weighted sums of bags: of rows (m, d) and of labels (m,)."""

    rows: np.ndarray
    labels: np.ndarray


def gaussian_sums(of: World, count: int, size: int, random: np.random.Generator) -> Sums:
    """What wtd-LBA releases of m = `count` bags of k = `size` rows that are drawn with replacement from all.

    So bags hold no more of the others' rows than those of a set without end, which the paper's nearly is.
    """
    chosen = random.integers(len(of.labels), size=count * size)
    starts = np.arange(0, count * size + 1, size)
    weights = csr_array((random.normal(size=count * size), chosen, starts), shape=(count, len(of.labels)))
    summed = (weights @ of.table).toarray()
    return Sums(summed[:, :-1], summed[:, -1])
