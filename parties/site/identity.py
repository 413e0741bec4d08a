"""Whether a table is one that has been answered for under another name: what it has spent is spent by its rows.

Rows are remembered as digests under a key that never leaves the site, so that what is kept tells of no row.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from federation.contract.errors import InputError, nearest_name
from federation.contract.files import write_lasting
from federation.signed_messages.keys import require_private
from parties.holdings.cohort import Holdings
from parties.site.journal import Journal

TABLE, SAME, NEW = "table", "same table", "new table"  # events of a journal

_SHARE = 0.1  # of rows that another table may have, too, before somebody must say which it is
_BYTES = 8  # of a row's digest


@dataclass(frozen=True, eq=False, repr=False)
class Contents:
    """What a table holds: the digest of all its rows in any order, and a number for each row, uint64 (n,)."""

    digest: str
    rows: NDArray[np.uint64]


def contents(holdings: Holdings, key: bytes) -> Contents:
    """The digests of rows with their labels, under the key of an `Identity`."""
    rows = np.column_stack([np.asarray(holdings.rows, np.float64), np.asarray(holdings.labels, np.float64)])
    digests = [hmac.digest(key, row.tobytes(), "sha256") for row in np.ascontiguousarray(rows)]
    whole = hashlib.sha256(b"".join(sorted(digests))).hexdigest()
    return Contents(whole, np.frombuffer(b"".join(one[:_BYTES] for one in digests), np.uint64))


@dataclass
class Identity:
    """The tables of a site, by what their owner calls them.

    `folder` keeps the digests of rows, and the key to them; `journal` what was said about tables.
    """

    folder: Path
    journal: Journal
    key: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.folder.mkdir(mode=0o700, exist_ok=True)
        path = self.folder / "rows.key"
        if self.tables and not path.exists():
            raise InputError(f"{path} is gone, without which known tables are not known again; restore it")
        if not path.exists():
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(secrets.token_bytes(32))
        require_private(path)
        self.key = path.read_bytes()

    def names(self, table: str) -> list[str]:
        """All names of one table: what is charged to one of them is spent by all."""
        found, pairs = {table}, [{line["table"], line["as"]} for line in self._lines(SAME)]
        for _ in pairs:
            for pair in pairs:
                found |= pair if pair & found else set()
        return sorted(found)

    @property
    def tables(self) -> list[str]:
        """All that are known."""
        return list(dict.fromkeys(line["table"] for line in self._lines(TABLE)))

    def require_settled(self, table: str, contents: Contents) -> None:
        """Refuse a table whose rows are known under another name. Raises `InputError` that says how to settle it."""
        told_apart = {frozenset((line["table"], other)) for line in self._lines(NEW) for other in line["beside"]}
        for other in self.tables:
            if other in self.names(table) or {table, other} in told_apart:
                continue
            share = self._shared(other, contents)
            if share > _SHARE:
                raise InputError(
                    f"{share:.0%} of the rows of the table '{table}' are known here as the table '{other}', so that "
                    "one table may be about to spend two allowances; type: federation party same-table SITE.toml "
                    f"'{other}' if both are about the same people, or federation party new-table SITE.toml if not"
                )

    def remember(self, table: str, contents: Contents) -> None:
        """Write down what a table holds, unless that is known."""
        lines = [line for line in self._lines(TABLE) if line["table"] == table]
        if lines and lines[-1]["content"] == contents.digest:
            return
        rows = np.union1d(self._rows(table), contents.rows)
        write_lasting(self._path(table), rows.tobytes())
        self.journal.add(TABLE, table=table, content=contents.digest, rows=1 << len(contents.rows).bit_length())

    def settle_same(self, table: str, other: str, by: str) -> None:
        """Say that a table is one that is known by another name. Raises `InputError` for one that is not known."""
        if other not in self.tables:
            known = ", ".join(self.tables) or "none"
            raise InputError(f"no table '{other}' is known here{nearest_name(other, self.tables)}; known: {known}")
        self.journal.add(SAME, table=table, **{"as": other}, by=by)

    def settle_new(self, table: str, by: str) -> list[str]:
        """Say that a table is none of those that are known; returns these."""
        others = [other for other in self.tables if other not in self.names(table)]
        self.journal.add(NEW, table=table, beside=others, by=by)
        return others

    def _shared(self, table: str, contents: Contents) -> float:
        """The share of rows that are known of a table; all where its contents once were the same."""
        if any(line["content"] == contents.digest for line in self._lines(TABLE) if line["table"] == table):
            return 1.0
        return float(np.isin(contents.rows, self._rows(table)).mean()) if len(contents.rows) else 0.0

    def _rows(self, table: str) -> NDArray[np.uint64]:
        path = self._path(table)
        if table not in self.tables:
            return np.empty(0, np.uint64)
        if not path.exists():
            raise InputError(f"{path} is gone, which knows the rows of the table '{table}'; restore it")
        known = path.read_bytes()
        if len(known) % _BYTES:
            raise InputError(f"{path}, which knows the rows of the table '{table}', is damaged; restore it")
        return np.frombuffer(known, np.uint64)

    def _path(self, table: str) -> Path:
        return self.folder / f"{hashlib.sha256(table.encode()).hexdigest()[:32]}.rows"

    def _lines(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.journal.lines if line["event"] == event]
