"""What is kept of a sum outlives the process, and nobody else may read it."""

from __future__ import annotations

import hashlib
import stat

import pytest

from federation.contract.errors import InputError
from parties.secure_aggregation.party import FolderMemory, ProcessMemory, Record

RECORD = Record(b"r" * 32, b"vector", (b"plan", b"", b"question"))
ENDED = Record(b"", b"reply", (b"asked",), ended=True)


@pytest.mark.parametrize("record", [RECORD, ENDED, Record(b"", b"", ())])
def test_records_come_back_as_they_were(record: Record) -> None:
    assert Record.read(record.packed()) == record


def test_another_process_finds_what_was_saved_last(tmp_path) -> None:
    FolderMemory(tmp_path / "sums").save(b"one", RECORD)
    FolderMemory(tmp_path / "sums").save(b"one", ENDED)
    memory = FolderMemory(tmp_path / "sums")
    assert memory.load(b"one") == ENDED
    assert memory.load(b"two") is None
    assert stat.S_IMODE((tmp_path / "sums").stat().st_mode) == 0o700
    assert [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "sums").iterdir()] == [0o600]


def test_a_process_forgets() -> None:
    memory = ProcessMemory()
    memory.save(b"one", RECORD)
    assert memory.load(b"one") == RECORD
    assert ProcessMemory().load(b"one") is None


def _digested(data: bytes) -> bytes:
    return data + hashlib.sha256(data).digest()


WRITTEN = RECORD.packed()[:-32]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x",
        _digested(b""),
        _digested(b"\x01" + bytes(7) + b"2" + WRITTEN[9:]),
        *(
            RECORD.packed()[:at] + bytes([RECORD.packed()[at] ^ 1]) + RECORD.packed()[at + 1 :]
            for at in (0, 8, 60, -33)
        ),
    ],
)
def test_damaged_records_are_refused(data: bytes, tmp_path) -> None:
    memory = FolderMemory(tmp_path)
    memory.save(b"one", RECORD)
    next(tmp_path.iterdir()).write_bytes(data)
    with pytest.raises(InputError, match="damaged"):
        memory.load(b"one")
