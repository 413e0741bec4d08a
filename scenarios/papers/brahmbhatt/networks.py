"""Tables 2 to 6: a network of 128, 64 and 1 neurons on noisy-wtd-LLP, and on every label."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
from scenarios.papers.brahmbhatt.substitutes import BATCH, CENSUS, CRITEO, World, world
from scenarios.reproductions.paper import Observation, Role

SPLITS = 10  # as in the paper
SIGMA = 1.0  # of the noise on a label, as published
RHO = {2: 0.1, 3: 0.2, 4: 0.3, 5: 0.4, 6: 0.5}  # of each table; the text at hand has lost them
MEASURED = {CRITEO: ((512, 32), (512, 64), (1024, 32)), CENSUS: ((1024, 64),)}  # m and k that our sets have rows for
_ROLES: tuple[Role, ...] = ("published", "default")


def table(number: int, quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """Errors of the cells that are measured; in a quick run of one split."""
    for setting, cells in MEASURED.items():
        for split in range(1 if quick else SPLITS):
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


def labelled(setting: str, of: World, split: int) -> Iterator[Observation]:
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
