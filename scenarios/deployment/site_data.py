"""The rows of a site: from a file, or from one SELECT of a data base in a read-only transaction.

The columns get the names of the plan (`renamed`). Errors contain the data base's own message, without the password of
its address.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from federation.contract.errors import InputError, nearest_name
from parties.site.settings import Source
from parties.site.settings import Table as Where
from scenarios.data.files import open_sheet, suffix
from scenarios.data.hashing import read_for
from scenarios.data.readers import Archive
from scenarios.data.sheets import Sheet

if TYPE_CHECKING:
    import pyarrow
    from sqlalchemy import URL, Connection

_ANSWER = Path("the query's answer")  # what messages say where they name a file
_ONE_SELECT = re.compile(r"[\s(]*(select|with)\b[^;]*", re.IGNORECASE)
# How a connection is told that nothing may be written; to PostgreSQL its driver says so by itself.
_READ_ONLY = {"sqlite": "PRAGMA query_only = ON", "mysql": "SET TRANSACTION READ ONLY"}
# What drivers call the seconds after which a server that does not answer counts as away; else it may take minutes.
_WAITING = dict.fromkeys(("psycopg", "psycopg2", "pymysql", "mysqldb"), "connect_timeout") | {"pg8000": "timeout"}
_SECONDS = 5
_FORM = (
    "data.url must be DIALECT+DRIVER://USER:PASSWORD@HOST:PORT/NAME, as in postgresql+psycopg://..., where @ : / ? % "
    "of a name or password are written %40 %3A %2F %3F %25"
)
_CHARACTERS_SHOWN = 200


def require_reached(url: str) -> None:
    """See that a data base takes connections, and ask it nothing. Raises `InputError`."""
    with _connected(url):
        pass


def selected(url: str, query: str) -> Sheet:
    """What one SELECT gives. Raises `InputError` of anything else, and in the words of the data base."""
    statement = query.strip().removesuffix(";")
    if not _ONE_SELECT.fullmatch(statement):
        raise InputError(
            f"data.query must be one SELECT without a ';' in it, got {query!r:.80}; make a view of what is more than "
            "that"
        )
    with _connected(url) as connection:
        found = connection.exec_driver_sql(statement)
        names, rows = list(found.keys()), found.fetchall()
    if not rows:
        raise InputError("data.query gives no rows; ask for some")
    if len({*names}) < len(names):
        raise InputError(f"data.query gives two columns of one name: {', '.join(names)}; name them with AS")
    import pyarrow

    return Sheet(_ANSWER, pyarrow.table({name: _column([row[i] for row in rows]) for i, name in enumerate(names)}))


@contextmanager
def _connected(url: str) -> Iterator[Connection]:
    """A connection that only reads. Raises `InputError` for whatever the data base or its driver says meanwhile."""
    try:
        from sqlalchemy import create_engine
        from sqlalchemy.exc import SQLAlchemyError
    except ImportError as error:
        raise InputError(
            "data.query needs the package sqlalchemy; type: pip install 'multiparty-federation[sql]'"
        ) from error
    address = _address(url)
    try:
        option = _WAITING.get(address.get_driver_name())
        waiting = {} if option is None or option in address.query else {option: _SECONDS}
        engine = create_engine(address, connect_args=waiting)
        options = {"postgresql_readonly": True, "no_parameters": True}  # else % would stand for a parameter
        with engine.connect().execution_options(**options) as connection:
            if order := _READ_ONLY.get(engine.dialect.name):
                connection.exec_driver_sql(order)
            yield connection
        engine.dispose()
    except ImportError as error:
        raise InputError(
            f"data.url needs a driver that is not installed here ({error!s:.100}); install it, or name another, as in "
            "postgresql+psycopg://... (pip install 'psycopg[binary]')"
        ) from error
    except (SQLAlchemyError, ValueError, TypeError) as error:  # TypeError: an option that its driver does not know
        said = " ".join(str(getattr(error, "orig", None) or error).split())
        if address.password:
            said = re.sub(rf"(?<!\w){re.escape(str(address.password))}(?!\w)", "***", said)
        raise InputError(
            f"data.query: the data base says: {said[:_CHARACTERS_SHOWN]}; correct data.url or data.query"
        ) from error


def _address(url: str) -> URL:
    """The parts of an address. Raises `InputError` that quotes nothing, as a part may be one of the password."""
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        address = make_url(url)
    except (ArgumentError, ValueError):
        raise InputError(_FORM) from None
    if url.count("@") > 1:  # one in a password ends it, and what follows would be looked for as a host
        raise InputError(_FORM)
    return address


def _column(cells: list[object]) -> pyarrow.Array:
    """Numbers or texts as they are; values of several types, dates and names by UUID as texts."""
    import pyarrow

    try:
        found = pyarrow.array(cells)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):
        found = None
    if found is None or pyarrow.types.is_temporal(found.type) or isinstance(found.type, pyarrow.BaseExtensionType):
        return pyarrow.array([None if cell is None else str(cell) for cell in cells])
    return found


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
