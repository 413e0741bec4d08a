"""What happened at a site, line by line: what it was charged, what left it, what was refused. Each line vouches for all
before it.

A line has the hash of the one before, and 16 random bytes, without which a hash could be tried against the few things
that may have happened. It is on the disk before what it tells of leaves the site, so that a charge is never forgotten.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from federation.contract.errors import InputError
from federation.contract.files import sync_folder

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
