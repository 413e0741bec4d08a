"""The generated data sets A to E of Lacombe, Jetley and Sebag 2021: an unlabelled public source, a private target."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from federation.contract.randomness import generator
from scenarios.data.data_sets import Generated
from scenarios.data.tables import Table

_SEED = 2021  # of the data sets, which are the same in every scenario
_FLIPPED = 1 / 3  # of the target rows of A and B
_MOST_STEPS = 100  # of k-means
_COMPONENTS, _SPREAD = 4, 0.5  # of the mixtures of C, D and E, and of their components' means
_INSTANCE_UNITS, _LABEL_UNITS = 32, 16  # hidden in the networks f and f'
_LEVELS = (0.4, 0.6)  # of the threshold on f'


@dataclass(frozen=True)
class _Cube:
    """Data set A or B: `dimension` d, `clusters` of k-means, n_t = `private` target rows for parties."""

    name: str
    dimension: int
    clusters: int
    private: int = 2500

    def __call__(self, instance: int) -> Table:
        """n_t source rows, n_t rows for parties and n_t test rows, all uniform on [0, 1]^d.

        k-means from rows drawn at random clusters the target, that is the rows of parties and tests. Half the clusters,
        rounded down, have label 1 at random; the labels of all rows in their clusters are then flipped where
        |sum of x - d/2| <= nu, with the nu that flips a third of the target. The paper gives neither the number of
        source nor that of test rows.
        """
        random = generator(_SEED, self.name, trial=instance)
        rows = random.random((3 * self.private, self.dimension))
        target = rows[self.private :]
        centres = _k_means(target, self.clusters, random)
        ones = random.permutation(self.clusters) < self.clusters // 2
        distances = np.abs(rows.sum(axis=1) - self.dimension / 2)
        flipped = distances <= np.quantile(distances[self.private :], _FLIPPED)
        return _table(self.name, rows, ones[_nearest(rows, centres)] ^ flipped, shifted=False)


@dataclass(frozen=True)
class _Mixtures:
    """Data set C, D or E: `latent` and instance `dimension`, the `gain` of f', n_t = `private` target rows for parties.

    The larger the gain, the less the labels are linear.
    """

    name: str
    latent: int
    dimension: int
    gain: float
    private: int = 5000

    def __call__(self, instance: int) -> Table:
        """n_t source rows, n_t rows for parties and n_t test rows, all seen through one random network f.

        Latent rows z come from a mixture of four equally probable Gaussians with unit covariance, whose means are
        standard normal times 1/2 and drawn for source and target apart. f has 32 hidden units and gain 1, the output f'
        of the labels 16 and the gain of the data set (`_network`). The label is 1 where f'(z) exceeds its quantile on
        the target at a level drawn uniformly from [.4, .6], so that the larger class has 55 % on average. The paper
        gives none of these numbers, so its figures can only be resembled: with the chosen ones a network of two layers
        of 32 units that learns from the private rows is 98.8, 95.5 and 87.8 % accurate on C, D and E (the mean of
        instances 0 to 3).
        """
        random = generator(_SEED, self.name, trial=instance)
        source = _mixture(self.private, self.latent, random)
        latent = np.concatenate([source, _mixture(2 * self.private, self.latent, random)])
        rows = _network(latent, _INSTANCE_UNITS, self.dimension, 1.0, random)
        outputs = _network(latent, _LABEL_UNITS, 1, self.gain, random)[:, 0]
        threshold = np.quantile(outputs[self.private :], random.uniform(*_LEVELS))
        return _table(self.name, rows, outputs > threshold, shifted=True)


def _table(name: str, rows: np.ndarray, labels: np.ndarray, *, shifted: bool) -> Table:
    """Of source rows, which are public, rows for parties, and test rows: a third each, in this order."""
    public, held, tested = np.split(np.arange(len(rows)), 3)
    columns = tuple(f"x{i}" for i in range(rows.shape[1]))
    return Table(
        name, columns, ("0", "1"), labels.astype(np.int64), (rows,),
        official=(held, tested), public=public, shifted=shifted,
    )  # fmt: skip


def _mixture(n: int, dimension: int, random: np.random.Generator) -> np.ndarray:
    """Rows (n, dimension) of a mixture with means of its own."""
    means = _SPREAD * random.standard_normal((_COMPONENTS, dimension))
    return means[random.integers(_COMPONENTS, size=n)] + random.standard_normal((n, dimension))


def _network(rows: np.ndarray, units: int, outputs: int, gain: float, random: np.random.Generator) -> np.ndarray:
    """V' tanh(W' x + b) for every row x, (n, outputs), with independent normal entries of mean 0.

    Their variances are gain^2 / (d (1 + _SPREAD^2)) in W (d, units), 1 in b (units,) and 1 / units in V.
    """
    dimension = rows.shape[1]
    inner = random.standard_normal((dimension, units)) * gain / np.sqrt(dimension * (1 + _SPREAD**2))
    hidden = np.tanh(rows @ inner + random.standard_normal(units))
    return hidden @ random.standard_normal((units, outputs)) / np.sqrt(units)


def _k_means(rows: np.ndarray, clusters: int, random: np.random.Generator) -> np.ndarray:
    """Centres (clusters, d) by Lloyd's algorithm from rows drawn at random; a cluster without rows keeps its centre."""
    centres = rows[random.choice(len(rows), clusters, replace=False)]
    for _ in range(_MOST_STEPS):
        nearest = _nearest(rows, centres)
        sizes = np.bincount(nearest, minlength=clusters)
        sums = np.stack([np.bincount(nearest, column, minlength=clusters) for column in rows.T], axis=1)
        moved = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], centres)
        if np.array_equal(moved, centres):
            break
        centres = moved
    return centres


def _nearest(rows: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """The position of the nearest centre of every row (n,)."""
    distances = (centres**2).sum(axis=1) - 2 * rows @ centres.T  # but for |x|^2
    return distances.argmin(axis=1)


EXPRIL_SETS: dict[str, Generated] = {
    "expril_a": Generated(
        "clusters in the unit square, generated anew for every split: 2500 public + 2500 + 2500 rows, 2 columns",
        _Cube("expril_a", 2, 15),
    ),
    "expril_b": Generated(
        "clusters in a cube of 4 dimensions, generated anew for every split: 2500 public + 2500 + 2500 rows, 4 columns",
        _Cube("expril_b", 4, 64),
    ),
    **{
        name: Generated(
            f"networks of {latent} latent columns, with shifted public rows, generated anew for every split: "
            f"5000 public + 5000 + 5000 rows, {dimension} columns",
            _Mixtures(name, latent, dimension, gain),
        )
        for name, latent, dimension, gain in (
            ("expril_c", 3, 10, 2.5),
            ("expril_d", 5, 15, 4.0),
            ("expril_e", 10, 25, 6.0),
        )
    },
}
