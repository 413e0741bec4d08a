"""A site's rows by one SELECT of a data base, in a transaction that only reads.

Whatever goes wrong is told in the words of the data base, and without the password of its address.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from federation.contract.errors import InputError
from scenarios.data.sheets import Sheet

if TYPE_CHECKING:  # imported where it is used, because it takes a while
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
