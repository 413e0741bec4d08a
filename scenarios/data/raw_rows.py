"""Rows of raw features out of the columns of a sheet: in memory, or on the disk where they are too many."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from federation.contract.errors import InputError
from federation.numerics.rows import Floats
from scenarios.data.hashing import read_for
from scenarios.data.scratch import mapped_rows
from scenarios.data.sheets import NO_TEXT, Sheet
from scenarios.data.stored import Stored
from scenarios.data.tables import cut, listed, pieces

_COLUMNS_SHOWN = 20


def features_of(
    sheet: Sheet, columns: Sequence[str], text: Sequence[int], missing: bool, unused: Collection[int] = ()
) -> Floats:
    """The columns of a sheet as raw features (n, d), found by name; those numbered in `text` as codes of texts.

    Those numbered in `unused` are 0, whether they are there or not. Raises `InputError` for missing columns and
    unreadable values.
    """
    needed = require_there(sheet, columns, unused)

    def fill(rows: Floats) -> None:
        for part in sheet.parts(needed):
            some = rows[part.first : part.first + part.table.num_rows]
            for i in (i for i in range(len(columns)) if i not in unused):
                some[:, i] = part.codes(columns[i]) if i in text else part.numbers(columns[i], missing=True)

    shape = (sheet.table.num_rows, len(columns))
    if isinstance(sheet.table, Stored):
        rows = mapped_rows([sheet.table.stamp, [*columns], sorted(text), sorted(unused)], shape, fill)
    else:
        fill(rows := np.zeros(shape))
    return rows if missing else complete(rows, sheet, columns, text)


def require_there(sheet: Sheet, columns: Sequence[str], unused: Collection[int] = ()) -> list[str]:
    """The columns of a sheet that these are made of, but for those numbered in `unused`.

    Raises `InputError` where several are not there.
    """
    there = {*sheet.header}
    needed = [*dict.fromkeys(read_for(name) for i, name in enumerate(columns) if i not in unused)]
    if len(lacking := [name for name in needed if name not in there]) > 1:
        raise InputError(
            f"{sheet.path} lacks {len(lacking)} of the {len(needed)} columns that are needed, "
            f"{listed([*map(cut, lacking)], _COLUMNS_SHOWN)}; it has {sheet.names}"
        )
    return needed


def complete(rows: Floats, file: Sheet | Path, columns: Sequence[str], text: Sequence[int] = ()) -> Floats:
    """The rows (n, d). Raises `InputError`, which names all columns with missing cells, where there are some."""

    def lacking(some: Floats) -> NDArray[np.bool_]:
        found = np.isnan(some)
        found[:, list(text)] = some[:, list(text)] == NO_TEXT
        return found

    if not any(lacking(part).any() for _, part in pieces(rows)):
        return rows
    absent = lacking(rows)
    row, column = np.argwhere(absent)[0]
    place = f"{file}, row {row} (counted from 0)" if isinstance(file, Path) else file.place(row)
    counts = [f"{cut(name)} {count}" for name, count in zip(columns, absent.sum(axis=0), strict=True) if count]
    raise InputError(
        f"{place}: column '{columns[column]}' is missing; missing cells, by column: {listed(counts, _COLUMNS_SHOWN)}; "
        "correct them or remove the rows, leave columns out with data.drop, or let the features (data.features) begin "
        "with impute, which fills in missing cells"
    )
