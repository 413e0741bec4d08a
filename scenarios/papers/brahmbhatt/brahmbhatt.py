"""Reproduction of Brahmbhatt, Saket, Havaldar, Nasery and Raghuveer 2023: label DP by weighted sums over bags.

- Table 1: wtd-LBA with linear regression, trained as in the paper and in closed form.
- Tables 2 to 6: a network of 128, 64 and 1 neurons on noisy-wtd-LLP.
- The first lines of Tables 1 to 6: learning from every label, without protection.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from aggregator.learners.bag_regression.linear import BagLeastSquares, trained
from aggregator.learners.bag_regression.network import BagNetwork
from federation.contract.randomness import NoiseBits, generator
from federation.numerics.bag_weights import (
    disjoint_bags,
    gaussian_weights,
    noisy_count,
    noisy_rows,
    sign_weights,
    stratified_noise,
)
from scenarios.papers.brahmbhatt.guarantees import (
    BATCH,
    CENSUS,
    CRITEO,
    SOURCES,
    World,
    gaussian_sums,
    world,
)
from scenarios.reproductions.paper import Observation, Role

LINEAR = "Table 1, linear"
SPLITS, FEW = 5, 3  # and of a quick run; the paper's are 10


def table_1(quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """Errors of all cells; a quick run takes the fewest bags only."""
    for setting in SOURCES:
        yield from of_set(setting, quick, data_dir)


def of_set(setting: str, quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """Those of one set, all splits of a cell side by side."""
    _, _, counts, sizes = SOURCES[setting]
    worlds = [one for split in range(FEW if quick else SPLITS) if (one := world(setting, split, data_dir)) is not None]
    for count in counts[:1] if quick else counts:
        for size in sizes:
            if worlds:
                yield from cell(setting, worlds, count, size)


def cell(setting: str, worlds: list[World], count: int, size: int) -> Iterator[Observation]:
    """Of m = `count` bags of k = `size` rows in every split: Adam as published, and our least squares on equal sums."""
    random = generator(count * size, f"sums of {setting}, {count} bags")
    draws = [gaussian_sums(one, count, size, random) for one in worlds]
    rows, labels = np.stack([one.rows for one in draws]), np.stack([one.labels for one in draws])
    reached = trained(rows, labels, size, random, batch_rows=BATCH[setting])
    for split, (one, sums) in enumerate(zip(worlds, draws, strict=True)):
        exact = BagLeastSquares().fit(sums.rows, sums.labels)
        default = np.clip(exact.predict(one.test_rows), *one.label_range)
        yield Observation(
            setting, f"m = {count}", "published", str(size), split, one.error(one.test_rows @ reached[split])
        )
        yield Observation(setting, f"m = {count}", "default", str(size), split, one.error(default))


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
        for split in range(1 if quick else NETWORK_SPLITS):
            one = world(setting, split, data_dir)
            if one is None:
                continue
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
        for split in range(1 if quick else SPLITS):
            one = world(setting, split, data_dir)
            if one is not None:
                yield from labelled(setting, one, split)
                yield from labelled_networks(setting, one, split)
