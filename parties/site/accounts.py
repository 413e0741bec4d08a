"""The journal and the accounts of a site: what releases have cost each protected unit, and what may still be spent.

An account adds up all charges of its unit, whatever the sender and the number of the query: it counts what happened to
the table.

The journal records charges, releases and refusals line by line, and has one line for each charge. A line is on disk
before the release that it records leaves the site, so that no charge is ever forgotten. Each line contains the hash of
the line before, so it vouches for all lines before it. Each line also contains 16 random bytes. Without these, an
attacker could try the hash against the few possible events.

`said` prints a line of a journal for people, with all control characters of received texts removed.
"""

import errno
import fcntl
import hashlib
import json
import os
import secrets
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from federation.contract.errors import BudgetExceededError, InputError
from federation.contract.files import sync_folder
from federation.contract.guarantee import Adjacency, Guarantee, Unit, levels_apart
from federation.mechanisms.accounting.composition import compose, converted

CHARGED = "charged"  # the event of a journal's line that is one

_OF_LABELS = (Unit.LABEL, Unit.PERSON)  # what they protect of a row is its label
_ROUNDING = 1e-9  # relative slack for allowances written with few digits


@dataclass(frozen=True)
class Account:
    """What releases may cost one unit in all."""

    unit: Unit
    adjacency: Adjacency
    epsilon: float
    delta: float

    @property
    def name(self) -> str:
        """What people call it."""
        return f"{self.unit}/{self.adjacency}"


@dataclass(frozen=True)
class Allowances:
    """What a site lets its table spend.

    `proved` are accounts of releases that this site protects by its own noise, `trusted` one of those that an
    aggregator protects, if it is honest, and `trusted_answers` how many answers without noise may leave in all.
    `rows_per_person` bounds how many rows of the table are one person's, 0 without a bound. `features_are_public` says
    that rows have nothing to hide but their labels, so that what protects these costs no account of rows or parties.
    """

    proved: tuple[Account, ...]
    trusted: Account | None = None
    trusted_answers: int = 0
    rows_per_person: int = 0
    features_are_public: bool = False


@dataclass
class Accounts:
    """The accounts of a table, with their charges in a journal; `others` are names of the same table."""

    table: str
    allowances: Allowances
    journal: "Journal"
    others: Collection[str] = ()
    _known: dict[str, dict[str, Any]] = field(init=False)

    def __post_init__(self) -> None:
        self._known = {line["key"]: line for line in self.journal.lines if line["event"] == CHARGED}

    @property
    def _names(self) -> tuple[str, ...]:
        return (self.table, *self.others)

    def charge(self, key: str, guarantee: Guarantee, trusted: bool, told: Mapping[str, Any]) -> None:
        """Write down what an answer costs before it is given, however it ends; once for each key.

        `trusted` says that the guarantee holds only if the aggregator adds its noise; `told` is what else the line
        says. Raises as `require`, and writes nothing then.
        """
        if not self.require(key, guarantee, trusted):
            cost = {"trusted": trusted, "guarantee": guarantee.to_dict()}
            self._known[key] = self.journal.add(CHARGED, key=key, table=self.table, **cost, **told)

    def require(self, key: str, guarantee: Guarantee, trusted: bool) -> bool:
        """Whether this has been charged; if not, it may be.

        Raises `BudgetExceededError` where an account would be overdrawn, and `InputError` where nothing is proved for
        one of them, or there is none, and for a key charged with another.
        """
        cost = {"trusted": trusted, "guarantee": guarantee.to_dict()}
        if (begun := self._known.get(key)) is not None:
            same = json.dumps(cost) == json.dumps({name: begun[name] for name in cost})
            if not (same and begun["table"] in self._names):
                raise InputError("this release began with another guarantee or table; begin a new one, to be charged")
            return True
        charges = [*self._charges(trusted), guarantee]
        accounts = ([self.allowances.trusted] if self.allowances.trusted else []) if trusted else self.allowances.proved
        if not accounts:
            kind = "trusted" if trusted else str(guarantee.unit)
            raise InputError(f"this site has no allowance for such releases; write [allowance.{kind}] if it should")
        for account in accounts:
            _require_enough(account, self._total(account, charges), len(charges) - 1)
        given = len(self._charges(trusted=True))  # answers without noise that have left, or may have
        if trusted and given >= self.allowances.trusted_answers:
            raise BudgetExceededError(
                f"the table '{self.table}' has given {given} of {self.allowances.trusted_answers} answers without "
                "noise; more than one allow to tell what has changed between them"
            )
        return False

    def spent(self) -> dict[str, tuple[float, float]]:
        """What each account has spent, as (epsilon, delta)."""
        proved = {one.name: self._total(one, self._charges(trusted=False)) for one in self.allowances.proved}
        if self.allowances.trusted is None:
            return proved
        return {**proved, "trusted": self._total(self.allowances.trusted, self._charges(trusted=True))}

    def _charges(self, trusted: bool) -> list[Guarantee]:
        return [
            Guarantee.from_dict(line["guarantee"])
            for line in self._known.values()
            if line["table"] in self._names and line["trusted"] is trusted
        ]

    def _total(self, account: Account, charges: list[Guarantee]) -> tuple[float, float]:
        free = _OF_LABELS if self.allowances.features_are_public and account.unit not in _OF_LABELS else ()
        worth = [
            converted(one, account.unit, account.adjacency, self.allowances.rows_per_person)
            for one in charges
            if one.unit not in free
        ]
        return compose(worth, account.delta)


def _require_enough(account: Account, spent: tuple[float, float], before: int) -> None:
    most = 1 + _ROUNDING
    # Asked in this way, an allowance that is no number allows nothing.
    if not (spent[0] <= account.epsilon * most and spent[1] <= account.delta * most):
        would, allowed = levels_apart(spent, (account.epsilon, account.delta))
        raise BudgetExceededError(
            f"releases of this table would spend {would} for {account.name} in all, its allowance is {allowed} "
            f"({before} releases are in the journal)"
        )


def printable(text: str) -> str:
    """A text on one line, in which nothing moves a terminal's cursor or changes its colours.

    Examples:
        >>> printable("plan\\x1b[31m\\n'north'")
        "plan [31m 'north'"
    """
    return "".join(letter if letter.isprintable() else " " for letter in text)


def said(line: Mapping[str, Any]) -> str:
    """A line of a journal in words.

    Examples:
        >>> said({"event": "refused", "why": "nobody has agreed to the question 'x\\x1b[2J'"})
        "refused: nobody has agreed to the question 'x [2J'"
    """
    return printable(_said(line))


def _said(line: Mapping[str, Any]) -> str:
    match line["event"]:
        case "charged":
            cost = line["guarantee"]
            whose = "if the aggregator adds its noise" if line["trusted"] else "by noise of this site"
            if "sum of" in line:
                whose = f"by noise that {line['sum of']} sites add together"
            return (
                f"charged table '{line['table']}': epsilon {cost['epsilon']:g}, delta {cost['delta']:g} for one "
                f"{cost['unit']} ({cost['adjacency']}), {whose}"
            )
        case "answered":
            return f"answered '{line['kind']}': {line['bytes']} bytes"
        case "answered in a secure sum":
            return f"answered '{line['kind']}': {line['bytes']} bytes"
        case "told the sum of masks":
            return f"told the sum of the masks of {line['counted']} of {line['of']} sites: {line['bytes']} bytes"
        case "answered again":
            return f"sent again what was answered before{_times(line)}"
        case "refused":
            return f"refused: {line['why']}{_times(line)}"
        case "begun":
            return "a question is being answered"
        case "waits for approval":
            return f"'{line['kind']}' waits for approval, for a table as agreed, or for room on the disk{_times(line)}"
        case "approved" | "denied":
            return f"{line['id']} was {line['event']} by {line['by']}"
        case "start":
            # All of it: who writes plans can make two, with other keys of sites, whose first 16 digits are the same.
            table = f"the table '{line['table']}' and " if "table" in line else ""
            return f"started, with {table}the plan {line['plan']}"
        case "stop":
            return "stopped"
        case "table":
            return f"table '{line['table']}' was read: fewer than {line['rows']} rows, digest {line['content'][:16]}"
        case "same table":
            return f"{line['by']} said that table '{line['table']}' is the table '{line['as']}'"
        case "newest state":
            return f"{line['by']} said that this copy of the state is the newest there is"
        case "new table":
            return f"{line['by']} said that table '{line['table']}' is a new one"
        case event:
            return str(event)


def _times(line: Mapping[str, Any]) -> str:
    return f" ({line['times']} times by now)" if line.get("times", 1) > 1 else ""


BEGINNING = "0" * 64  # what the first line has in place of a hash before it


class Journal:
    """The file of one site, which one process at a time may open; a line that a crash cut short is taken off its end.

    Any number of others may look at it, `reading` only: they leave the file as it is, and lines that they add are known
    to nobody else.

    Raises `InputError` for a file in which a line is missing or changed. That whole lines are gone from its end shows
    only to whoever knows a later `head`, which the journal then no longer `holds`.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     journal = Journal(Path(folder) / "journal.jsonl")
        ...     _ = journal.add("start", site="north")
        ...     _ = journal.add("refused", why="not signed")
        ...     again = Journal(Path(folder) / "journal.jsonl")
        ...     [line["event"] for line in again.lines], again.head == journal.head
        (['start', 'refused'], True)
    """

    def __init__(self, path: Path, reading: bool = False) -> None:
        self.path, self._reading = path, reading
        self.lines, self._size = _read(path)
        if not reading and path.exists() and path.stat().st_size > self._size:
            os.truncate(path, self._size)

    @property
    def head(self) -> str:
        """The hash of the last line."""
        return str(self.lines[-1]["hash"]) if self.lines else BEGINNING

    def holds(self, head: str) -> bool:
        """Whether it was so far at some time, or is at its beginning: what a later one must say of what is known."""
        return head == BEGINNING or any(line["hash"] == head for line in self.lines)

    def add(self, event: str, **told: Any) -> dict[str, Any]:
        """Write a line of JSON values; returns it once it is on the disk.

        Raises `OSError` of a full or broken one, and `InputError` where another process has written to the file: what
        it was charged is not known here. Nothing has been written then.
        """
        record = {"time": round(time.time(), 3), "event": event, **told}
        record |= {"nonce": secrets.token_hex(16), "before": self.head}
        line = {**record, "hash": _hash(record)}
        if not self._reading:
            self._append((json.dumps(line) + "\n").encode())
        self.lines.append(line)
        return line

    def _append(self, text: bytes) -> None:
        """Bring text to the disk, or leave the file as it was."""
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            if os.fstat(file).st_size != self._size:
                raise InputError(f"{self.path}: another process writes to it; let one process serve this site")
            try:
                if os.write(file, text) < len(text):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
                os.fsync(file)
                if not self._size:
                    sync_folder(self.path.parent)  # else a power failure may take the new file away
            except OSError:
                os.ftruncate(file, self._size)
                raise
            self._size += len(text)
        finally:
            os.close(file)


def _read(path: Path) -> tuple[list[dict[str, Any]], int]:
    """The lines of a journal, each verified, and how many bytes they take."""
    found: list[dict[str, Any]] = []
    content = path.read_bytes() if path.exists() else b""
    whole = content.rfind(b"\n") + 1
    for number, text in enumerate(content[:whole].splitlines(), 1):
        try:
            line = json.loads(text)
            record = {name: value for name, value in line.items() if name != "hash"}
            sound = record["before"] == (found[-1]["hash"] if found else BEGINNING) and line["hash"] == _hash(record)
        except (ValueError, TypeError, KeyError, AttributeError):
            sound = False
        if not sound:
            raise InputError(
                f"{path}: line {number} is not as it was written, or one before it is missing; restore the file: "
                "nothing from there on can be believed"
            )
        found.append(line)
    return found, whole


def _hash(record: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()
