"""Which columns of numbers say nothing, by their names and public rows alone: identifiers, and those with one value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from aggregator.world.plan import PublicTable
from federation.numerics.rows import Floats

_IDENTIFIER = re.compile(r"(^|[^a-z])(id|ids|key|index|uuid|nr|number|row)([^a-z]|$)|^unnamed|^rownum")
ROWS_OF_IDENTIFIERS = 20  # in fewer, different whole numbers may be anything
_FIRST = 1 << 16  # rows that most columns need not be read beyond


def names_somebody(column: str) -> bool:
    """Whether a column bears the name of an identifier.

    Examples:
        >>> [names_somebody(name) for name in ("patient_id", "ID", "Unnamed: 0", "width", "idle")]
        [True, True, True, False, False]
    """
    return _IDENTIFIER.search(column.lower()) is not None


def are_identifiers(name: str, cells: Floats) -> bool:
    """Whether the numbers (n,) of a column are all different and whole, and numbered through or so named.

    Examples:
        >>> are_identifiers("x", np.arange(20.0)), are_identifiers("x", 1e6 * np.arange(20))
        (True, False)
        >>> are_identifiers("Patient ID", 1e6 * np.arange(20)), are_identifiers("x", np.arange(19.0))
        (True, False)
    """

    def differ(some: Floats) -> bool:
        return bool((some == np.floor(some)).all()) and len(np.unique(some)) == len(some)  # no missing ones, either

    first = cells[:_FIRST]
    if len(cells) < ROWS_OF_IDENTIFIERS or not differ(first) or (len(first) < len(cells) and not differ(cells)):
        return False
    return bool(np.ptp(cells) < 2 * len(cells)) or names_somebody(name)


def identifiers(table: PublicTable) -> tuple[int, ...]:
    """The columns that are so named, and hold whole numbers of which no two public rows share one."""
    return tuple(
        i
        for i in _numbers(table)
        if names_somebody(table.columns[i]) and are_identifiers(table.columns[i], table.rows[:, i])
    )


def remarks(table: PublicTable, features: Sequence[str | Mapping[str, Any]], mixed: bool) -> Iterator[str]:
    """A sentence for each column of numbers that is left out, or is the same to a map of these stages whatever it says.

    `mixed`: the columns do not share a unit. Where they do, as pixels, many may have one value, and none is scaled.
    """
    left_out = identifiers(table)
    for i in left_out:
        yield (
            f"the column '{table.columns[i]}' is left out: it is named as an identifier, and no two of the "
            f"{len(table.rows)} public rows share a number in it; if it says whose row it is, name it in data.person, "
            "and rename it to keep it"
        )
    if "standardise" in features or (mixed and "scale" in features):
        for i in (i for i in _numbers(table) if i not in left_out):
            cells = table.rows[:, i]
            if (cells == cells[0]).all():
                yield (
                    f"the column '{table.columns[i]}' says nothing: it is {cells[0]:g} in all {len(cells)} public "
                    "rows, so that nobody knows its scale; to use it, use more public rows (data.auxiliary)"
                )


def _numbers(table: PublicTable) -> list[int]:
    return [i for i in range(table.rows.shape[1]) if i not in table.text_columns]
