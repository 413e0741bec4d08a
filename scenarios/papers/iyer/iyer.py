"""Iyer, Nath and Sarawagi 2016: errors of released proportions of one bag, and sizes of the data sets.

Figure 1 has three sweeps of the bag's settings; its two printed distortions reveal how they were computed.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Literal

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaln, xlogy

from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.mechanisms.counts.calibration import (
    CountNoise,
    calibrate,
    published_release,
    sigma_for_counts,
    true_delta,
)
from federation.mechanisms.counts.dirichlet_loss import delta_eq9, delta_exact
from federation.numerics.rows import Floats, Integers
from federation.numerics.simplex import project
from scenarios.data.catalogue import load
from scenarios.reproductions.measure import scenario_of
from scenarios.reproductions.paper import EXACT, Observation, Role, paper

REPETITIONS = 20
_RELEASES = {False: 1000, True: 100}  # of a repetition, by whether the run is quick
_SIZE = 1000  # records of a bag

Noise = CountNoise | Literal["published_dirichlet"]
# The mechanism of each series in both roles. Laplace noise has delta 0, and so has its default.
MECHANISMS: Mapping[str, Mapping[Role, Noise]] = {
    "Laplace": {"published": "published_laplace", "default": "pure"},
    "Gaussian": {"published": "published_gaussian", "default": "gaussian"},
    "Laplace Prior": {"published": "laplace_prior", "default": "pure"},
    "Scaled Dirichlet": {"published": "published_dirichlet", "default": "auto"},
    "private Dirichlet": {"default": "dirichlet_shifted"},
}


@dataclass(frozen=True)
class Bag:
    """A bag of 1000 records, `share` of them in each class but the last, released at a claimed epsilon and delta."""

    classes: int = 5
    share: float = 0.05
    epsilon: float = 0.05
    delta: float = 0.05

    def counts(self) -> Integers:
        """Records of each class, shape (classes,)."""
        each = round(_SIZE * self.share)
        return np.array([*[each] * (self.classes - 1), _SIZE - each * (self.classes - 1)])


SWEEPS: Mapping[str, Mapping[str, Bag]] = {
    "classes": {str(value): Bag(classes=value) for value in (2, 3, 5, 7, 10)},
    "share": {str(value): Bag(share=value) for value in (0.025, 0.05, 0.1, 0.15, 0.2)},
    "epsilon": {str(value): Bag(epsilon=value) for value in (0.01, 0.02, 0.05, 0.1, 0.2)},
}


def distortions(quick: bool, data_dir: Path | None, sweep: str, deviation: bool = False) -> Iterator[Observation]:
    """The mean L1 distortion of a release, or its standard `deviation`, in each repetition; `sweep` is one of SWEEPS.

    A bag that is in several sweeps has the same releases in all of them.
    """
    for x, bag in SWEEPS[sweep].items():
        for series, roles in MECHANISMS.items():
            for role, noise in roles.items():
                found = errors(bag, noise, _RELEASES[quick])
                values = found.std(axis=1, ddof=1) if deviation else found.mean(axis=1)
                for split, value in enumerate(values):
                    yield Observation(sweep, series, role, x, split, float(value))


def releases_as_published(series: str, quick: bool) -> Floats:
    """L1 distances of the releases of the bag that is in all sweeps, a repetition after another."""
    return errors(Bag(), MECHANISMS[series]["published"], _RELEASES[quick]).ravel()


@cache
def errors(bag: Bag, noise: Noise, releases: int) -> Floats:
    """L1 distances (REPETITIONS, releases) of released from true proportions, after projection onto the simplex."""
    counts, draws = bag.counts(), REPETITIONS * releases
    bits = NoiseBits(1, f"distortion of {noise} on {bag}")
    if noise == "published_dirichlet":
        released = published_release(counts, bag.epsilon, bag.delta, bits, draws)
    else:
        pseudo = _SIZE // 2 if noise == "dirichlet_shifted" else None
        mechanism = calibrate(noise, classes=bag.classes, epsilon=bag.epsilon, delta=bag.delta, pseudo_count=pseudo)
        released = mechanism.release(counts, bits, draws)
    found = np.abs(project(released / _SIZE) - counts / _SIZE).sum(axis=1)
    return np.asarray(found.reshape(REPETITIONS, releases))


POINT = 20  # releases of a point of the paper's Figure 1
PRINTED = 0.06  # distortion of the Scaled Dirichlet
BY_EQ_9, AS_PRINTED = "sigma of Eq. 9", "sigma of the printed .06"
_ENDS = {"from": 0.025, "to": 0.975}
_RUNS = 2**16


def points(quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """Between what lie 95 % of the means of twenty releases at five classes, of every published mechanism."""
    for series, roles in MECHANISMS.items():
        if "published" in roles:
            means = releases_as_published(series, quick).reshape(-1, POINT).mean(axis=1)
            for end, level in _ENDS.items():
                yield Observation(series, end, "published", "", EXACT, float(np.quantile(means, level)))


def sigmas(quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """The sigma that Eq. 9 allows at five classes, and the one whose distortion is printed; what follows from each."""
    bag = Bag()
    counts = bag.counts()
    allowed = sigma_for_counts(counts, bag.epsilon, bag.delta)
    assert allowed is not None
    drawn = float(brentq(lambda sigma: expected_distortion(counts, sigma) - PRINTED, allowed, 10.0))
    a, b = np.array([*permutations(counts.tolist(), 2)]).T
    for setting, sigma in {BY_EQ_9: allowed, AS_PRINTED: drawn}.items():
        found = {
            "sigma": sigma,
            "distortion": expected_distortion(counts, sigma),
            "delta of Eq. 9": float(delta_eq9(bag.epsilon, a, b, sigma).max()),
            "least delta at one sigma": float(delta_exact(bag.epsilon, a, b, sigma).max()),
        }
        for series, value in found.items():
            yield Observation(setting, series, "published", "", EXACT, value)
    yield Observation(BY_EQ_9, "delta with each its own sigma", "published", "", EXACT, _delta_kept(bag))


def expected_distortion(counts: Integers, sigma: float) -> float:
    """The mean L1 distance of a draw from Dir(sigma counts) to its mean, by the mean deviations of its Beta shares.

    Examples:
        >>> round(expected_distortion(np.array([50, 50, 50, 50, 800]), 0.00818), 3)
        0.308
    """
    a: Floats = sigma * counts.astype(np.float64)
    b: Floats = a.sum() - a
    logs = xlogy(a, a) + xlogy(b, b) - betaln(a, b) - xlogy(a + b + 1, a + b)
    return float(2 * np.exp(logs).sum())


def _delta_kept(bag: Bag) -> float:
    """The largest true delta from the bag to a neighbour with another sigma, or back."""
    counts = bag.counts()
    found = []
    for lost, gained in ((0, 1), (0, bag.classes - 1), (bag.classes - 1, 0)):  # of equal counts one says all
        neighbour = counts.copy()
        neighbour[[lost, gained]] += -1, 1
        for here, there in ((counts, neighbour), (neighbour, counts)):
            found.append(true_delta(here, there, bag.epsilon, bag.delta, runs=_RUNS).value)
    return max(found)


def sizes(quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """Yield features, instances and classes of every data set that is here, and the rows of bags and sets of all."""
    own = paper("iyer")
    for part in (part for item in own.items if item.name in ("fig2", "fig3") for part in item.parts):
        scenario = scenario_of(own, part)
        assert scenario.data.targets is not None
        found = {"rows of a bag": scenario.parties.rows, "rows of a set": scenario.data.targets.rows}
        with suppress(InputError):
            table = load(str(scenario.data.source), data_dir=data_dir)
            found |= {"features": len(table.columns), "instances": len(table), "classes": len(table.classes)}
        for series, value in found.items():
            assert value is not None
            yield Observation(part.setting, series, "published", "", EXACT, value)


def less(own: float, other: float) -> float:
    """By what share an error is lower than another."""
    return 1 - own / other
