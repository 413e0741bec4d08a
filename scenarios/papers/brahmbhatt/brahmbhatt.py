"""Our values for the theorems and tables of Brahmbhatt et al. 2023: label DP by weighted sums over bags.

The authors are Brahmbhatt, Saket, Havaldar, Nasery and Raghuveer. The module measures

- Theorems D.1 and 1.2 and Lemma 3.4 as numbers, beside exact values and simulated releases;
- Table 1: wtd-LBA with linear regression, trained as in the paper and in closed form;
- Tables 2 to 6: a network of 128, 64 and 1 neurons on noisy-wtd-LLP;
- the first lines of Tables 1 to 6: learning from every label, without protection.

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

from aggregator.learners.bag_regression.linear import BagLeastSquares, trained
from aggregator.learners.bag_regression.network import BagNetwork
from aggregator.trial.feature_fitting import fit
from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits, generator
from federation.mechanisms.bag_sums.calibration import delta
from federation.mechanisms.bag_sums.design import BagDesign
from federation.mechanisms.bag_sums.noisy_labels import theorem_delta
from federation.mechanisms.bag_sums.weighted_sums import leverages_and_residuals, per_instance_delta
from federation.mechanisms.noise import gaussian
from federation.numerics.bag_weights import (
    disjoint_bags,
    gaussian_weights,
    noisy_count,
    noisy_rows,
    sign_weights,
    stratified_noise,
)
from scenarios.data.catalogue import load
from scenarios.reproductions.paper import EXACT, Observation, Role, both

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


def simulated_delta(design: BagDesign, repetition: int) -> float:
    """The mean of Gaussian deltas over simulated bags and weights, of the worse of a label with noise and without."""
    assert design.noisy is not None
    random = generator(repetition, "simulated releases of noisy-wtd-LLP")
    found = []
    for own in (0, 1):
        if design.noisy - own < 0 or (not own and design.noisy == design.records):
            continue
        others = random.hypergeometric(
            design.noisy - own, design.records - 1 - (design.noisy - own), design.size - 1, _RELEASES
        )
        weight, noise = random.normal(size=_RELEASES), random.chisquare(np.maximum(others, 1)) * (others > 0)
        spread = np.sqrt(noise + own * weight**2)
        hidden = spread > 0
        ratios = np.abs(weight[hidden]) / spread[hidden]
        found.append((np.exp(gaussian.log_delta(EPSILON, ratios)).sum() + np.sum(~hidden)) / _RELEASES)
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


def _worlds(setting: str, splits: int, data_dir: Path | None) -> Iterator[tuple[int, World]]:
    """The first splits with their numbers; none where the data is not here."""
    for split in range(splits):
        if (one := world(setting, split, data_dir)) is not None:
            yield split, one


class Sums(NamedTuple):
    """Weighted sums of bags: of rows (m, d) and of labels (m,)."""

    rows: np.ndarray
    labels: np.ndarray


def gaussian_sums(of: World, count: int, size: int, random: np.random.Generator) -> Sums:
    """Draw the release of wtd-LBA: m = `count` bags of k = `size` rows each, drawn with replacement from all rows.

    So bags hold no more of the others' rows than those of a set without end, which the paper's nearly is.
    """
    chosen = random.integers(len(of.labels), size=count * size)
    starts = np.arange(0, count * size + 1, size)
    weights = csr_array((random.normal(size=count * size), chosen, starts), shape=(count, len(of.labels)))
    summed = (weights @ of.table).toarray()
    return Sums(summed[:, :-1], summed[:, -1])


LINEAR = "Table 1, linear"
SPLITS, FEW = 5, 3  # and of a quick run; the paper's are 10


def table_1(quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """Errors of all cells; a quick run takes the fewest bags only."""
    for setting in SOURCES:
        yield from of_set(setting, quick, data_dir)


def of_set(setting: str, quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """Yield the errors of one set, all splits of a cell side by side."""
    _, _, counts, sizes = SOURCES[setting]
    worlds = [one for _, one in _worlds(setting, FEW if quick else SPLITS, data_dir)]
    for count in counts[:1] if quick else counts:
        for size in sizes:
            if worlds:
                yield from cell(setting, worlds, count, size)


def cell(setting: str, worlds: list[World], count: int, size: int) -> Iterator[Observation]:
    """Yield errors from m = `count` bags of k = `size` rows in every split.

    Both learn from equal sums: Adam as published, and our least squares.
    """
    random = generator(count * size, f"sums of {setting}, {count} bags")
    draws = [gaussian_sums(one, count, size, random) for one in worlds]
    rows, labels = np.stack([one.rows for one in draws]), np.stack([one.labels for one in draws])
    reached = trained(rows, labels, size, random, batch_rows=BATCH[setting])
    for split, (one, sums) in enumerate(zip(worlds, draws, strict=True)):
        exact = BagLeastSquares().fit(sums.rows, sums.labels)
        default = np.clip(exact.predict(one.test_rows), *one.label_range)
        errors = one.error(one.test_rows @ reached[split]), one.error(default)
        yield from both(setting, f"m = {count}", str(size), split, *errors)


def labelled(setting: str, of: World, split: int) -> Iterator[Observation]:
    """The error of least squares on every label, without any protection."""
    exact = BagLeastSquares().fit(of.rows, of.labels)
    yield Observation(setting, LINEAR, "published", "", split, of.error(exact.predict(of.test_rows)))


NETWORK_SPLITS = 10  # as in the paper
SIGMA = 1.0  # of the noise on a label, as published
RHO = {2: 0.1, 3: 0.2, 4: 0.3, 5: 0.4, 6: 0.5}  # of each table; the text at hand has lost them
MEASURED = {CRITEO: ((512, 32), (512, 64), (1024, 32)), CENSUS: ((1024, 64),)}  # m and k that our sets have rows for
_ROLES: tuple[Role, ...] = ("published", "default")


def table(quick: bool, data_dir: Path | None, number: int) -> Iterator[Observation]:
    """Errors of the cells that are measured; in a quick run of one split."""
    for setting, cells in MEASURED.items():
        for split, one in _worlds(setting, 1 if quick else NETWORK_SPLITS, data_dir):
            for count, size in cells:
                for role in _ROLES:
                    error = learned(one, BATCH[setting], count, size, RHO[number], role, split)
                    yield Observation(setting, f"m = {count}", role, str(size), split, error)


def learned(of: World, instances: int, count: int, size: int, rho: float, role: Role, seed: int) -> float:
    """Test error of a network from m = `count` disjoint bags of k = `size` rows.

    As published: Gaussian weights, noise on a fixed share of the labels. Default: signs, and noise on the same share of
    every bag.
    """
    published = role == "published"
    bits, secret = NoiseBits(seed, f"bags of a paper's table, {role}"), NoiseBits(seed, "noise of a paper's table")
    bags = disjoint_bags(len(of.labels), count, size, bits)
    weights = (gaussian_weights if published else sign_weights)(count, size, bits)
    if published:
        noisy = noisy_rows(len(of.labels), noisy_count(rho, len(of.labels)), bits)[bags]
    else:
        noisy = stratified_noise(count, size, noisy_count(rho, size))
    noise = SIGMA * gaussian_weights(count, size, secret) * noisy
    sums = (weights * (of.labels[bags] + noise)).sum(axis=1)
    network = _network(of, instances, role, seed)
    return of.error(network.fit(of.rows, bags, weights, sums).predict(of.test_rows))


def labelled_networks(setting: str, of: World, split: int) -> Iterator[Observation]:
    """Errors from every label, in both roles, under the name of every table: nothing in them depends on rho."""
    for role in _ROLES:
        network = _network(of, BATCH[setting], role, split).fit_labels(of.rows, of.labels)
        error = of.error(network.predict(of.test_rows))
        for number in RHO:
            yield Observation(setting, network_of(number), role, "", split, error)


def _network(of: World, instances: int, role: Role, seed: int) -> BagNetwork:
    """As published, with steps of so many instances and the parameters of the last epoch, or as it is by default."""
    if role == "default":
        return BagNetwork(of.label_range, seed=seed)
    options: dict[str, Any] = {"batch_size": instances, "batch_unit": "rows", "restore_best": False, "average": False}
    return BagNetwork(of.label_range, seed=seed, **options)


def network_of(number: int) -> str:
    """The series of a network's error in a table."""
    return f"Table {number}, network"


def instances(quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """Errors of least squares and of the network on the labels of every split; a quick run has one."""
    for setting in SOURCES:
        for split, one in _worlds(setting, 1 if quick else SPLITS, data_dir):
            yield from labelled(setting, one, split)
            yield from labelled_networks(setting, one, split)
