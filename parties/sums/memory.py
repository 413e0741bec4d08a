"""What a party, or a second server, remembers of sums: it answers nothing in two ways, whatever happens to it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from federation.contract.errors import InputError
from federation.contract.files import write_lasting

_LENGTH, _DIGEST = 8, 32  # bytes of a length and of a digest in a file


@dataclass(frozen=True)
class Record:
    """One sum at one party: 32 secret bytes, its own noisy integers, and all questions that it has answered, in order.

    All that the party sends follows from these. Where the sum is over for it (`ended`) the secrets are gone: there is
    only the last question and the answer to it, if there was one.
    """

    root: bytes
    vector: bytes
    asked: tuple[bytes, ...]
    ended: bool = False

    def packed(self) -> bytes:
        """As a file holds it, with its digest: with one other bit a sum would silently be another."""
        parts = (b"1" if self.ended else b"0", self.root, self.vector, *self.asked)
        packed = b"".join(len(part).to_bytes(_LENGTH, "little") + part for part in parts)
        return packed + hashlib.sha256(packed).digest()

    @classmethod
    def read(cls, data: bytes) -> Record:
        """From `packed`. Raises `InputError` for anything else."""
        parts, at, digest = [], 0, data[-_DIGEST:]
        data = data[:-_DIGEST]
        while at < len(data):
            length = int.from_bytes(data[at : at + _LENGTH], "little")
            parts.append(data[at + _LENGTH : at + _LENGTH + length])
            at += _LENGTH + length
        if hashlib.sha256(data).digest() != digest or len(parts) < 3 or parts[0] not in (b"0", b"1"):
            raise InputError("the record of a masked sum is damaged; this party stays away from the sum")
        return cls(parts[1], parts[2], tuple(parts[3:]), parts[0] == b"1")


class Memory(Protocol):
    """Keeps a record for each sum, by the digest of its plan."""

    def load(self, digest: bytes) -> Record | None:
        """What was saved last; None where the sum is unknown."""
        ...

    def save(self, digest: bytes, record: Record) -> None:
        """Returns once it is kept."""
        ...


class ProcessMemory:
    """Forgets when its process ends: for simulations only.

    Examples:
        >>> memory = ProcessMemory()
        >>> memory.save(b"a sum", Record(b"root", b"", ()))
        >>> memory.load(b"a sum").root
        b'root'
    """

    def __init__(self) -> None:
        self._records: dict[bytes, Record] = {}

    def load(self, digest: bytes) -> Record | None:
        """As `Memory`."""
        return self._records.get(digest)

    def save(self, digest: bytes, record: Record) -> None:
        """As `Memory`."""
        self._records[digest] = record


class FolderMemory:
    """A file for each sum, which only its owner may read, on the disk before what it tells of leaves the party."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def load(self, digest: bytes) -> Record | None:
        """As `Memory`. Raises `InputError` for a damaged file."""
        path = self._path(digest)
        return Record.read(path.read_bytes()) if path.exists() else None

    def save(self, digest: bytes, record: Record) -> None:
        """As `Memory`."""
        write_lasting(self._path(digest), record.packed())

    def _path(self, digest: bytes) -> Path:
        return self._folder / f"{digest.hex()}.sum"
