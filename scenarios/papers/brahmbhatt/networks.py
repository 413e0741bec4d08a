"""Tables 2 to 6: noisy-wtd-LLP with a network of 128, 64 and 1 neurons, trained as in the paper and as by default."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aggregator.learners.bag_regression.least_squares import BagLeastSquares
from aggregator.learners.bag_regression.network import BagNetwork
from federation.contract.randomness import NoiseBits
from federation.numerics.bag_weights import (
    disjoint_bags,
    gaussian_weights,
    noisy_count,
    noisy_rows,
    sign_weights,
    stratified_noise,
)
from scenarios.papers.brahmbhatt.substitutes import BATCH, CENSUS, CRITEO, SOURCES, World, world
from scenarios.reproductions.paper import Observation, Role

SPLITS = {CRITEO: 10, CENSUS: 5}  # the paper's are 10
LABELLED = 3  # splits with every label
SIGMA = 1.0  # of the noise on a label, as published
RHO = {2: 0.1, 3: 0.2, 4: 0.3, 5: 0.4, 6: 0.5}  # of each table; the text at hand has lost them
MEASURED = {CRITEO: ((512, 32), (1024, 32)), CENSUS: ((1024, 64),)}  # m and k


LINEAR = "Table 1, linear"
_ROLES: tuple[Role, ...] = ("published", "default")


def table(number: int, quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """Errors of the cells that are measured; in a quick run of one split."""
    for setting, cells in MEASURED.items():
        # between the least and the largest rho it makes no difference there
        once = quick or (setting == CENSUS and number not in (min(RHO), max(RHO)))
        for split in range(1 if once else SPLITS[setting]):
            one = world(setting, split, data_dir)
            if one is None:
                continue
            for count, size in cells:
                for role in _ROLES:
                    error = learned(one, BATCH[setting], count, size, RHO[number], role, split)
                    yield Observation(setting, f"m = {count}", role, str(size), split, error)


def learned(of: World, instances: int, count: int, size: int, rho: float, role: Role, seed: int) -> float:
    """Test error of a network from m = `count` disjoint bags of k = `size` rows.

    As published: Gaussian weights, noise on a fixed share of the labels, steps of so many instances, the parameters of
    the last epoch. Default: signs, noise on the same share of every bag, and how `BagNetwork` learns by default.
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
    options: dict[str, Any] = {"batch_size": instances, "batch_unit": "rows", "restore_best": False, "average": False}
    network = BagNetwork(of.label_range, seed=seed, **(options if published else {}))
    return of.error(network.fit(of.rows, bags, weights, sums).predict(of.test_rows))


def instances(quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """Errors of least squares on every label, without any protection (Table 1)."""
    for setting in SOURCES:
        for split in range(LABELLED):
            one = world(setting, split, data_dir)
            if one is not None:
                linear = BagLeastSquares().fit(one.rows, one.labels)
                yield Observation(setting, LINEAR, "published", "", split, one.error(linear.predict(one.test_rows)))


def network_of(number: int) -> str:
    """The series of a network's error in a table."""
    return f"Table {number}, network"
