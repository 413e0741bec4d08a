"""What happened at a site, line by line: each line vouches for all before it.

A line has the hash of the one before, and 16 random bytes, without which a hash could be tried against the few things
that may have happened. It is on the disk before what it tells of leaves the site.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from federation.contract.errors import InputError

BEGINNING = "0" * 64  # what the first line has in place of a hash before it


class Journal:
    """The file of one site; `head` is the hash of its last line.

    Raises `InputError` for a file in which a line is missing, changed or cut off, but at its end: that a tail is gone
    shows only to whoever knows a later head.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.head = BEGINNING
        for line in lines(path):
            self.head = line["hash"]

    def add(self, event: str, told: Mapping[str, Any]) -> str:
        """Write a line; returns the new head once it is on the disk."""
        known = {"time": round(time.time(), 3), "event": event, **told, "nonce": secrets.token_hex(16)}
        record = {**known, "before": self.head}
        line = {**record, "hash": _hash(record)}
        with os.fdopen(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "w") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.head = str(line["hash"])
        return self.head


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """All lines of a journal, each verified. Raises `InputError` that names the first that is not as it was written."""
    if not path.exists():
        return
    before = BEGINNING
    with path.open(encoding="utf-8") as file:
        for number, text in enumerate(file, 1):
            try:
                line = json.loads(text)
                written = line.pop("hash")
                sound = line["before"] == before and written == _hash(line)
            except (ValueError, TypeError, KeyError, AttributeError):
                sound = False
            if not sound:
                raise InputError(
                    f"{path}: line {number} is not as it was written, or one before it is missing; nothing from there on "
                    "can be believed"
                )
            before = written
            yield {**line, "hash": written}


def _hash(record: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()
