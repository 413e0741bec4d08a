"""The state folder of a site, which one process at a time owns, and the identity of its table.

`Identity` recognises a table that has been used under another name: what the table has spent belongs to its rows. Rows
are stored as digests under a key that never leaves the site, so the stored values reveal no row.
"""

import hashlib
import hmac
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from federation.contract.errors import InputError, nearest_name
from federation.contract.files import alone, write_lasting
from federation.signed_messages.keys import require_private
from parties.party_data.cohort import Holdings
from parties.site.accounts import Journal

JOURNAL = "journal.jsonl"
NEWEST = "newest state"  # event of a line: somebody said that no later copy of the state was ever served

_FILE = "file"  # of a line: the number that the file system gave to the journal's file


@dataclass(frozen=True)
class State:
    """A folder that only its owner may enter, with the journal, the answers, and what is known of tables and plans."""

    folder: Path

    @classmethod
    def made(cls, folder: Path) -> "State":
        """The folder, new or as it is."""
        for each in (folder, folder / "answers"):
            each.mkdir(mode=0o700, parents=each is folder, exist_ok=True)
        return cls(folder)

    @classmethod
    def found(cls, folder: Path) -> "State":
        """The folder as it is. Raises `InputError` where it is not whole, or others may read it."""
        if not folder.is_dir():
            raise InputError(
                f"there is no folder {folder}, which knows what this site has spent; restore it, or correct 'state'"
            )
        require_private(folder)
        for path in folder.iterdir():
            require_private(path)
        answers = folder / "answers"
        if answers.is_dir() and any(answers.iterdir()) and not (folder / JOURNAL).exists():
            raise InputError(f"{folder / JOURNAL} is gone, and with it what this site has spent; restore it")
        return cls.made(folder)

    @property
    def answers(self) -> Path:
        """What has been answered, letter by letter."""
        return self.folder / "answers"

    def journal(self, reading: bool = False) -> Journal:
        """What has happened. To write in it takes being the `owned` one."""
        return Journal(self.folder / JOURNAL, reading)

    @property
    def place(self) -> dict[str, int]:
        """What a line says of the file that it is in: a copy of the file is another one."""
        path = self.folder / JOURNAL
        path.touch(mode=0o600)
        return {_FILE: path.stat().st_ino}

    def require_in_place(self, journal: Journal) -> None:
        """Refuse a copy of the folder: others may have been served since. Raises `InputError` that says what to type.

        A copy that was written into the same file, by `cp`, is not found out.
        """
        known = [line[_FILE] for line in journal.lines if _FILE in line]
        if known and known[-1] != self.place[_FILE]:
            raise InputError(
                f"{self.folder} is a copy, from a backup or another machine, and nobody knows what was spent since it "
                "was made; if it is the newest there is, and no other one is ever served, type: federation party "
                "newest-state SITE.toml"
            )

    def settle_newest(self, by: str) -> None:
        """Say that this copy of the folder is the newest one."""
        self.journal().add(NEWEST, by=by, **self.place)

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Be the one process that may write here. Raises `InputError` while another one is."""
        busy = f"another process is at work in {self.folder}; stop the site that runs there, or wait for it"
        with alone(self.folder / "instance.lock", busy):
            yield


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
