"""What one row, or one label, moves in the counts of errors and of correct rows of every bin, and what that assumes.

A row lies in one bin of each feature, and there it is an error of the hypothesis or not: it is in one cell for each
feature, (bin, error or correct). So no unit moves a count by more than one, and what matters is how many move.
"""

from __future__ import annotations

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Assumption, Check, Keeper, Unit

MAX_CELLS = 2**20  # that move in all queries together

_MOVED = {
    (Unit.ROW, Adjacency.ADD_REMOVE): 1,
    (Unit.ROW, Adjacency.REPLACE): 2,  # one cell loses a row, another gains one
    (Unit.LABEL, Adjacency.REPLACE): 1,  # counts of errors only
}

_ONE_BIN = Assumption(
    "every row is in exactly one bin of every feature, values outside all edges in the end bins: one cell a feature",
    Check.ENFORCED,
)
_PUBLIC_BINS = Assumption(
    "bins and hypotheses come from public rows and from answers of this exchange, never from private rows",
    Check.DECLARED,
    Keeper.COORDINATOR,
)
_ALL_CELLS = Assumption("every cell is answered with noise, whether it holds rows or not", Check.ENFORCED)
_PREMISES = {
    (Unit.ROW, Adjacency.ADD_REMOVE): (
        _ALL_CELLS,
        Assumption("how many rows there are is not published", Check.DECLARED, Keeper.HOLDER),
    ),
    (Unit.ROW, Adjacency.REPLACE): (
        _ALL_CELLS,
        Assumption("how many rows there are is public", Check.DECLARED, Keeper.HOLDER),
    ),
    (Unit.LABEL, Adjacency.REPLACE): (
        Assumption(
            "features, and so how many rows are in each bin, are public: only labels are protected",
            Check.DECLARED,
            Keeper.HOLDER,
        ),
        Assumption(
            "of what depends on labels, only the counts of errors are answered, each with noise", Check.ENFORCED
        ),
    ),
}


def moved_cells(unit: Unit, adjacency: Adjacency) -> int:
    """Counts per feature that one unit moves, each by one: the L1 sensitivity of an answer over its d features.

    1 for an added or removed row and for a changed label (whose rows are counted exactly, and errors with noise), 2 for
    a replaced row. Raises `InputError` for any other unit or adjacency.

    Examples:
        >>> moved_cells(Unit.ROW, Adjacency.REPLACE), moved_cells(Unit.LABEL, Adjacency.REPLACE)
        (2, 1)
    """
    if (unit, adjacency) not in _MOVED:
        known = ", ".join(f"{one} by {change}" for one, change in _MOVED)
        raise InputError(f"unit and adjacency must be one of {known} for error marginals, got {unit} by {adjacency}")
    return _MOVED[unit, adjacency]


def premises(unit: Unit, adjacency: Adjacency, queries: int) -> tuple[Assumption, ...]:
    """What a guarantee for `queries` answers rests on, but for the noise. Raises `InputError` as `moved_cells`."""
    moved_cells(unit, adjacency)
    what = "one query is answered" if queries == 1 else f"{queries} queries, agreed on before the first, are answered"
    limit = Assumption(f"{what} and no further one; each may depend on the answers before", Check.ENFORCED)
    return (_ONE_BIN, *_PREMISES[unit, adjacency], _PUBLIC_BINS, limit)
