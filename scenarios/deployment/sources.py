"""Where a site's rows come from: a file, or one SELECT of a data base; their columns under the names of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from federation.contract.errors import InputError, nearest_name
from parties.site.settings import Source
from parties.site.settings import Table as Where
from scenarios.data.archives import Archive
from scenarios.data.files import open_sheet, suffix
from scenarios.data.hashing import read_for
from scenarios.data.sheets import Sheet
from scenarios.deployment.database import require_reached, selected

_SHEETS_OF_OFFICES = (".xls", ".xlsx", ".ods")


def source(where: Where, wanted: Sequence[str] = ()) -> Sheet:
    """All columns of a site's rows, under the names that they have there; of svmlight those that are `wanted`.

    Raises `InputError` where none is read.
    """
    if where.file is None:
        return selected(str(where.url), str(where.query))
    if where.file.suffix.lower() in _SHEETS_OF_OFFICES:
        raise InputError(f"{where.file} is of a spreadsheet program; save it as CSV there, and name that file")
    return _from_npz(where.file) if suffix(where.file) == ".npz" else open_sheet(where.file, wanted)


def require_there(where: Where) -> None:
    """See that a site's rows could be read now, and read none. Raises `InputError` where a file or server is away."""
    if where.file is None:
        require_reached(str(where.url))
        return
    try:
        where.file.open("rb").close()
    except OSError as error:
        raise InputError(
            f"{where.file} cannot be read ({error.strerror}); put it back, or correct data.file"
        ) from error


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
