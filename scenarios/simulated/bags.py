"""How the rows of each party lie in bags, as offsets into the parties' rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from federation.contract.errors import InputError
from federation.numerics.rows import Integers


def even_bags(offsets: Integers, bags: int) -> Integers:
    """Bag offsets (K B + 1,) that cut each party's rows, offsets (K + 1,), in `bags` parts of nearly equal size.

    Raises `InputError` when a party has fewer rows than bags.

    Examples:
        >>> even_bags(np.array([0, 5, 9]), 2)  # parties of 5 and 4 rows
        array([0, 2, 5, 7, 9])
    """
    sizes = np.diff(offsets)
    if sizes.min() < bags:
        poorest = int(np.argmin(sizes))
        raise InputError(
            f"parties.bags is {bags}, but party {poorest} has {sizes[poorest]} rows, and every bag needs one; lower "
            "parties.bags, data.auxiliary or data.test"
        )
    starts = offsets[:-1, None] + sizes[:, None] * np.arange(bags) // bags
    return np.append(starts.ravel(), offsets[-1])


def bags_by_value(order: Integers, offsets: Integers, values: NDArray[Any]) -> tuple[Integers, Integers]:
    """Rows and bag offsets with one bag per value within each party, values in sorted order.

    Party k holds the rows order[offsets[k]:offsets[k + 1]] of a table with `values` (n,); it keeps them.

    Examples:
        >>> wards = np.array(["w", "v", "w", "v"])
        >>> bags_by_value(np.array([0, 1, 2, 3]), np.array([0, 3, 4]), wards)
        (array([1, 0, 2, 3]), array([0, 1, 3, 4]))
    """
    party = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    _, codes = np.unique(values[order], return_inverse=True)
    sorted_rows = np.lexsort((codes, party))
    party, codes = party[sorted_rows], codes[sorted_rows]
    starts = np.flatnonzero((np.diff(party) != 0) | (np.diff(codes) != 0)) + 1
    return order[sorted_rows], np.concatenate([[0], starts, [len(order)]]).astype(np.int64)


def require_one_holder(order: Integers, offsets: Integers, persons: NDArray[Any], column: str) -> None:
    """Refuse when two parties hold rows of one person; `persons` (n,) says whose row of the table each is.

    Raises `InputError`.
    """
    party = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    names, codes = np.unique(persons[order], return_inverse=True)
    first = np.full(len(names), len(offsets))
    np.minimum.at(first, codes, party)
    elsewhere = np.flatnonzero(party != first[codes])
    if len(elsewhere):
        number, row = len(np.unique(codes[elsewhere])), elsewhere[0]
        person = codes[row]
        raise InputError(
            f"data.person: {number} of the {len(names)} persons hold rows at several parties, such as "
            f"{column}={names[person]} at parties {first[person]} and {party[row]}; deal whole persons, with "
            "parties.partition: {by: COLUMN} or a single party"
        )
