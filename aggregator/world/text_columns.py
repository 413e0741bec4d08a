"""Which texts of a text column become indicators, and which columns say nothing, by public rows alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from aggregator.world.plan import PublicTable
from federation.contract.errors import InputError
from federation.features.steps import OneHot

# A text column with more values is a key or free text, not a category.
LARGEST_VOCABULARY = 1000
# Texts with more values than this and than half of the public rows tell these rows apart, and nothing else.
_FEW, _SHARE = 20, 1 / 2


def indicators(rows: np.ndarray, text_columns: Sequence[int], left_out: Sequence[int] = ()) -> OneHot:
    """The step that turns text columns of public rows (N, d) into indicators of the texts seen in them.

    A column whose public texts are all the same, or nearly all different (more than 20 and than half of the rows), gets
    no indicators, and neither do the columns `left_out`, whatever they hold. Raises `InputError` for columns that there
    are not, for more than 1,000 different texts in a column that stays, and where no column would be left.

    Examples:
        >>> colours, places = [1.0, 2.0, 1.0], [5.0, 5.0, 5.0]
        >>> indicators(np.array([colours, places]).T, [0, 1]).codes
        array([1., 2.])
    """
    columns = np.array([*text_columns, *left_out], dtype=np.int64)
    if columns.min() < 0 or columns.max() >= rows.shape[1]:
        raise InputError(f"text columns must lie in 0..{rows.shape[1] - 1}, got {columns.tolist()}")
    vocabularies = [np.unique(rows[:, column]) for column in columns]
    kept = [np.empty(0) if _why_useless(len(found), len(rows)) else found for found in vocabularies]
    kept[len(text_columns) :] = [np.empty(0) for _ in left_out]
    for column, vocabulary in zip(columns, kept, strict=True):
        if len(vocabulary) > LARGEST_VOCABULARY:
            raise InputError(
                f"text column {column} (counted from 0) has {len(vocabulary)} different texts in the public "
                f"rows, at most {LARGEST_VOCABULARY} are allowed; leave it out with data.drop or make it a number"
            )
    if len(columns) == rows.shape[1] and not any(map(len, kept)):
        raise InputError(
            f"the {len(rows)} public rows have no column that tells anything: in every one the texts are all the same "
            "or nearly all different, or it is an identifier; raise data.auxiliary or add a column"
        )
    starts = np.cumsum([0, *map(len, kept)]).astype(np.int64)
    return OneHot(columns, np.concatenate(kept), starts)


def remarks(table: PublicTable) -> Iterator[str]:
    """A sentence for every text column that gets no indicators, and how it would."""
    for column in table.text_columns:
        different = len(np.unique(table.rows[:, column]))
        if why := _why_useless(different, len(table.rows)):
            yield (
                f"the text column '{table.columns[column]}' is left out: {why}; to keep it, use more public rows "
                "(data.auxiliary), or write fewer different texts or a number in it"
            )


def _why_useless(different: int, rows: int) -> str | None:
    """Why a column with so many different texts in the public rows says nothing; None for one that does."""
    if different == 1:
        return f"its texts are the same in all {rows} public rows"
    if different > max(_FEW, rows * _SHARE):
        return f"it has {different} different texts in {rows} public rows"
    return None
