"""Where a site's rows come from: a file, or one SELECT of a data base; their columns under the names of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from federation.contract.errors import InputError, nearest_name
from parties.site.settings import Source
from parties.site.settings import Table as Where
from scenarios.data.archives import Archive
from scenarios.data.files import open_sheet, suffix
from scenarios.data.hashing import read_for
from scenarios.data.sheets import Sheet

if TYPE_CHECKING:  # imported where it is used, because it takes a while
    import pyarrow

_QUERY = Path("the query's answer")  # what messages say where they name a file
_SHEETS_OF_OFFICES = (".xls", ".xlsx", ".ods")
# How a connection is told that nothing may be written; to PostgreSQL its driver says so by itself.
_READ_ONLY = {"sqlite": "PRAGMA query_only = ON", "mysql": "SET TRANSACTION READ ONLY"}


def source(where: Where, wanted: Sequence[str] = ()) -> Sheet:
    """All columns of a site's rows, under the names that they have there; of svmlight those that are `wanted`.

    Raises `InputError` where none is read.
    """
    if where.file is None:
        return _from_database(str(where.url), str(where.query))
    if where.file.suffix.lower() in _SHEETS_OF_OFFICES:
        raise InputError(f"{where.file} is of a spreadsheet program; save it as CSV there, and name that file")
    return _from_npz(where.file) if suffix(where.file) == ".npz" else open_sheet(where.file, wanted)


def renamed(sheet: Sheet, columns: Mapping[str, str | Source], wanted: Sequence[str]) -> tuple[Sheet, list[str]]:
    """The wanted columns of a sheet under the names of a plan, values that are mapped as texts; and what is wrong.

    `columns` says for names of the plan what they are called here; those made of the words of a text are here as that
    text. Nothing is wrong with the columns that are given.
    """
    import pyarrow

    found, wrong = {}, []
    wanted = [*dict.fromkeys(map(read_for, wanted))]  # words are hashed where they are read, by the plan's own name
    for name in columns:
        if name not in wanted:
            wrong.append(
                f"data.columns: the plan has no column '{name}'; it has {', '.join(wanted)}{nearest_name(name, wanted)}"
            )
    for name in wanted:
        here = columns.get(name, name)
        known = Source.model_validate({"from": here}) if isinstance(here, str) else here
        if known.column not in sheet.header:
            wrong.append(
                f"{sheet.path} has no column '{known.column}'; it has {sheet.names}"
                f"{nearest_name(known.column, sheet.header)}; where '{name}' of the plan has another name, write it "
                f'in [data.columns]: {name} = "NAME HERE"'
            )
        elif known.values:
            texts = sheet.texts(known.column)
            found[name] = pyarrow.chunked_array([[known.values.get(text, text) for text in texts]], pyarrow.string())
        else:
            found[name] = sheet.table.column(known.column)
    return Sheet(sheet.path, pyarrow.table(found), sheet.separator), wrong


def _from_npz(path: Path) -> Sheet:
    """X (n, d) with the columns of `feature_names`, or x0, x1, ...; and every other array (n,) by its name."""
    import pyarrow

    archive = Archive(path)
    rows = archive.tables("X", missing=True)[0]
    names = archive.column_names("feature_names", rows, needed=False)
    others = [name for name in archive if name not in ("X", "feature_names") and archive[name].shape == (len(rows),)]
    if len({*names, *others}) < len(names) + len(others):
        raise InputError(f"{path}: two of its columns have one name; give 'feature_names' names that differ")
    columns = dict(zip(names, rows.T, strict=True)) | {name: archive[name] for name in others}
    return Sheet(path, pyarrow.table({name: pyarrow.array(np.ascontiguousarray(of)) for name, of in columns.items()}))


def _from_database(url: str, query: str) -> Sheet:
    """What one SELECT gives. Raises `InputError` of anything else, and in the words of the data base."""
    import pyarrow

    try:
        from sqlalchemy import create_engine
        from sqlalchemy.exc import SQLAlchemyError
    except ImportError as error:
        raise InputError(
            "data.query needs the package sqlalchemy; type: pip install 'multiparty-federation[sql]'"
        ) from error
    statement = query.strip().removesuffix(";")
    if statement.partition(" ")[0].partition("\n")[0].lower() not in ("select", "with") or ";" in statement:
        raise InputError(f"data.query must be one SELECT, got {query!r:.80}; make a view of what is more than that")
    try:
        engine = create_engine(url)
        with engine.connect().execution_options(postgresql_readonly=True) as connection:
            if order := _READ_ONLY.get(engine.dialect.name):
                connection.exec_driver_sql(order)
            found = connection.exec_driver_sql(statement)
            names, rows = list(found.keys()), found.fetchall()
        engine.dispose()
    except (SQLAlchemyError, ImportError, ValueError) as error:  # ImportError: the driver of the data base
        said = " ".join(str(error).split())[:200]
        raise InputError(f"data.query: the data base says: {said}; correct data.url or data.query") from error
    if not rows:
        raise InputError("data.query gives no rows; ask for some")
    if len({*names}) < len(names):
        raise InputError(f"data.query gives two columns of one name: {', '.join(names)}; name them with AS")
    return Sheet(_QUERY, pyarrow.table({name: _column([row[i] for row in rows]) for i, name in enumerate(names)}))


def _column(cells: list[object]) -> pyarrow.Array:
    """Numbers or texts as they are; values of several types, or dates, as texts."""
    import pyarrow

    try:
        found = pyarrow.array(cells)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):
        found = None
    if found is None or pyarrow.types.is_temporal(found.type):
        return pyarrow.array([None if cell is None else str(cell) for cell in cells])
    return found
