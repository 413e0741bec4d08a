"""Figure 1: how far released proportions of one bag lie from the true ones, under three sweeps of its settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from federation.contract.randomness import NoiseBits
from federation.mechanisms.counts.calibration import CountNoise, calibrate, published_release
from federation.numerics.rows import Floats, Integers
from federation.numerics.simplex import project
from scenarios.reproductions.paper import Observation, Role

REPETITIONS = 20
_RELEASES = {False: 1000, True: 100}  # of a repetition, by whether the run is quick
_SIZE = 1000  # records of a bag

Noise = CountNoise | Literal["published_dirichlet"]
# What stands for a series in both roles. Laplace noise keeps its epsilon with delta 0, so its default does, too.
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


def distortions(sweep: str, quick: bool, *, deviation: bool = False) -> Iterator[Observation]:
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
