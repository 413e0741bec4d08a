"""Shares of one noise on error marginals, for secure aggregation that reveals only the sum of all parties' counts.

A row moves one cell of each feature by one in each query. So all queries together are one release of sensitivity N in
the L1 norm and sqrt(N) in the L2 norm, for the N cells that move. The cells of a later query may follow from the
responses to earlier ones: the noise on the cells that move is independent and alike whichever they are. Shares of
Gaussian noise must not be small against the grid. Counts, which are whole rows, are therefore summed on a finer grid.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Assumption, Guarantee, Unit
from federation.contract.query import MOST_ROWS
from federation.contract.randomness import NoiseBits
from federation.mechanisms.marginals.noise import FREE, MAX_CELLS, MarginalKind, moved_cells, premises
from federation.mechanisms.noise import discrete as discrete_gaussian
from federation.mechanisms.noise.additive import AdditiveClaim, AdditiveMechanism, calibrate_laplace
from federation.mechanisms.noise.additive import calibrate as calibrate_additive
from federation.mechanisms.noise.mechanism import Parameters, promised, require_wanted, require_whole
from federation.mechanisms.sums import shares
from federation.numerics.rows import Floats, Integers

_MOST_STEPS = 2.0**52  # of the noise's grid, in a count


@dataclass(frozen=True)
class SharedMarginalNoise(AdditiveClaim):
    """Shares of the noise on each cell of the answers to Q = `queries` queries about d = `features` features.

    The sum over `contributors` parties or more claims epsilon and delta for one `unit` under `adjacency`; a party's own
    answer hides nothing. `additive` is the whole noise on the N cells that one unit moves in all queries. Made by
    `calibrate`.
    """

    features: int
    queries: int
    unit: Unit
    adjacency: Adjacency
    contributors: int
    additive: AdditiveMechanism

    @property
    def name(self) -> str:
        """The mechanism's name in its guarantee."""
        return f"marginal_shares_{self.additive.name}"

    @property
    def cells(self) -> int:
        """N, how many cells one unit moves by one each, over all queries."""
        return self.additive.dimension

    @property
    def parameters(self) -> Parameters:
        """Public numbers."""
        own: Parameters = {"features": self.features, "queries": self.queries, "contributors": self.contributors}
        return {**self.additive.parameters, **own}

    @property
    def step(self) -> float:
        """Of the grid, in rows: a power of two, and what is sent is whole multiples of it."""
        return self.additive.step

    @property
    def deviation(self) -> float:
        """Standard deviation of the whole noise on one cell, in rows: of the shares of `contributors` parties."""
        return math.sqrt(shares.variance(self.additive, self.contributors))

    def release(self, cells: Integers, bits: NoiseBits) -> Floats:
        """Counts with one party's shares in the shape of `cells`, float64, in whole multiples of `step`.

        `cells`: whole numbers from 0 to 10^9, of any shape; every cell must be given, empty ones too. Raises
        `InputError` for others.
        """
        given = np.asarray(cells)
        if given.dtype.kind not in "iu" or np.any((given < 0) | (given > MOST_ROWS)):
            raise InputError(
                f"cells must be whole numbers of rows from 0 to {MOST_ROWS}, got others among {given.dtype} of shape "
                f"{given.shape}; count each row once, without weights"
            )
        each = replace(self.additive, dimension=given.size)
        drawn = shares.draw(each, self.contributors, bits, 1).reshape(given.shape)
        return (given / self.step + drawn) * self.step

    def guarantee(self, further: tuple[Assumption, ...] = ()) -> Guarantee:
        """What the sums of all Q answers promise together; `further` assumptions come before its own."""
        own = (
            *premises(self.unit, self.adjacency, self.queries),
            *shares.assumptions(self.additive, self.contributors),
        )
        return promised(self, self.unit, self.adjacency, (*further, *own))

    def per_query(self, further: tuple[Assumption, ...] = ()) -> Guarantee:
        """What the sum of the answers to one query promises by itself; those of all Q compose to that of all."""
        cells, whole = self.cells // self.queries, self.additive
        norm = self.queries if whole.name == "discrete_laplace" else math.sqrt(self.queries)
        epsilon, charged = whole.epsilon / self.queries, whole.charged / norm
        if whole.delta:
            mu = charged / whole.scale
            epsilon = min(whole.epsilon, discrete_gaussian.epsilon_bound(whole.delta, mu, cells, whole.grid_scale))
        one = replace(whole, epsilon=epsilon, sensitivity=whole.sensitivity / norm, charged=charged, dimension=cells)
        return replace(self, queries=1, additive=one).guarantee(further)


@lru_cache
def calibrate(
    noise: MarginalKind,
    *,
    features: int,
    queries: int,
    epsilon: float,
    delta: float,
    unit: Unit,
    adjacency: Adjacency,
    contributors: int,
) -> SharedMarginalNoise:
    """The least noise of a kind, to be shared, that makes sums of all answers to Q queries (epsilon, delta)-private.

    `contributors`: how many honest parties share it, 1 or more. All else, and the choice of "auto", is as for
    `federation.mechanisms.marginals.noise.calibrate`. Raises `InputError` for arguments out of range, and where counts
    of up to 10^9 rows would not fit the grid.

    Examples:
        >>> size = {"features": 4, "queries": 10, "unit": Unit.ROW, "adjacency": Adjacency.ADD_REMOVE}
        >>> noise = calibrate("auto", **size, epsilon=1.0, delta=1e-6, contributors=40)
        >>> noise.name, noise.deviation
        ('marginal_shares_discrete_gaussian', 26.72)
        >>> parts = [noise.release(np.array([3, 0]), NoiseBits(1, "example", party)) for party in range(40)]
        >>> (sum(parts) - np.array([120, 0])).round(2)
        array([20.57, 20.4 ])
    """
    require_wanted(noise, epsilon, delta, known=("auto", "pure", "gaussian"), with_delta=("gaussian",), pure="pure")
    require_whole("features", features, 1)
    require_whole("queries", queries, 1)
    require_whole("contributors", contributors, 1, shares.MOST)
    cells = moved_cells(unit, adjacency) * features * queries
    if cells > MAX_CELLS:
        raise InputError(f"features times queries must move at most 2^20 cells, got {cells}; choose fewer")
    known = (features, queries, Unit(unit), Adjacency(adjacency), contributors)
    laplace = calibrate_laplace(l1_sensitivity=float(cells), dimension=cells, epsilon=epsilon)
    chosen = pure = SharedMarginalNoise(*known, laplace)
    if noise != "pure" and delta > 0:
        moved = math.sqrt(cells)
        normal = calibrate_additive("gaussian", sensitivity=moved, dimension=cells, epsilon=epsilon, delta=delta)
        chosen = SharedMarginalNoise(*known, normal)
        if noise == "auto" and pure.deviation <= FREE * chosen.deviation:
            chosen = pure
    if chosen.step * _MOST_STEPS < MOST_ROWS:
        raise InputError(
            f"counts of up to {MOST_ROWS} rows do not fit the grid of noise as little as epsilon={epsilon:g} needs; "
            "lower epsilon"
        )
    shares.check(chosen.additive, contributors)
    return chosen
