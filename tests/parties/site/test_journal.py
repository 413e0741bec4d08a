"""A journal that shows what was done to it."""

import fcntl
import json
import os
import stat
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from federation.contract.errors import InputError
from parties.site.accounts import BEGINNING, Journal


@pytest.fixture
def path(tmp_path):
    journal = Journal(tmp_path / "journal.jsonl")
    for number in range(4):
        journal.add("answer", number=number)
    return journal.path


def test_it_begins_with_nothing_and_goes_on_where_it_was(path, tmp_path):
    assert Journal(tmp_path / "none.jsonl").head == BEGINNING
    again = Journal(path)
    assert all(map(again.holds, [BEGINNING, *(line["hash"] for line in again.lines)]))
    assert not again.holds("f" * 64)
    assert [line["number"] for line in again.lines] == [0, 1, 2, 3]
    again.add("stop")
    assert [line["before"] for line in Journal(path).lines][1:] == [line["hash"] for line in again.lines][:-1]


def test_only_its_owner_reads_it(path):
    assert path.stat().st_mode & 0o777 == 0o600


def test_equal_lines_have_different_hashes(tmp_path):
    """Else whoever is told a head could try the few things that may have happened."""
    heads = set()
    for name in "ab":
        journal = Journal(tmp_path / name)
        journal.add("refused")
        heads.add(journal.lines[0]["hash"])
    assert len(heads) == 2


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda lines: [lines[0].replace('"number": 0', '"number": 7'), *lines[1:]], 1),
        (lambda lines: lines[1:], 1),
        (lambda lines: [lines[0], *lines[2:]], 2),
        (lambda lines: [lines[1], lines[0], *lines[2:]], 1),
        (lambda lines: [*lines[:2], "{}", *lines[3:]], 3),
        (lambda lines: [*lines[:2], "no line", *lines[3:]], 3),
        (lambda lines: [*lines[:2], "[1]", *lines[3:]], 3),
        (lambda lines: [*lines, lines[-1]], 5),
    ],
    ids=["changed", "first gone", "second gone", "swapped", "empty", "torn", "a list", "twice"],
)
def test_a_changed_journal_is_refused(path, change, line):
    lines = path.read_text().splitlines()
    path.write_text("\n".join(change(lines)) + "\n")
    with pytest.raises(InputError, match=f"line {line} is not as it was written"):
        Journal(path)


def test_a_line_is_on_the_disk_before_it_counts_and_so_is_a_new_file(tmp_path, monkeypatch):
    synced, fsync = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda one: synced.append(stat.S_ISDIR(os.fstat(one).st_mode)) or fsync(one))
    journal = Journal(tmp_path / "journal.jsonl")
    journal.add("first")
    assert synced == [False, True]
    journal.add("second")
    assert synced == [False, True, False]


@pytest.mark.parametrize("step", ["fsync", "write"])
def test_a_line_that_cannot_be_written_leaves_nothing(path, monkeypatch, step):
    journal, whole = Journal(path), path.read_bytes()

    def full(file, *_):
        write(file, b"half a li")
        raise OSError(28, "no space left on device")

    write = os.write
    with monkeypatch.context() as broken:
        broken.setattr(os, step, full)
        with pytest.raises(OSError, match="no space"):
            journal.add("answer")
    assert path.read_bytes() == whole
    assert len(journal.lines) == 4
    journal.add("answer")
    assert len(Journal(path).lines) == 5


def test_a_line_that_is_written_in_part_only_leaves_nothing(path, monkeypatch):
    journal, whole, write = Journal(path), path.read_bytes(), os.write
    monkeypatch.setattr(os, "write", lambda file, text: write(file, text[:9]))
    with pytest.raises(OSError, match="No space left"):
        journal.add("answer")
    assert path.read_bytes() == whole


def test_who_does_not_know_all_lines_adds_none(path):
    """Two processes that serve one site would each charge what the other has spent."""
    first, second = Journal(path), Journal(path)
    first.add("answer")
    with pytest.raises(InputError, match="another process writes to it; let one process serve this site"):
        second.add("answer")
    assert len(Journal(path).lines) == 5


def test_a_line_waits_for_whoever_writes(path):
    """Or two processes could both find the file as they left it, and each add a line."""
    journal, sizes = Journal(path), []
    with path.open() as other, ThreadPoolExecutor(1) as pool:
        fcntl.flock(other, fcntl.LOCK_EX)
        whole = path.stat().st_size
        added = pool.submit(journal.add, "answer")
        while not added.done() and len(sizes) < 20:
            time.sleep(0.01)
            sizes.append(path.stat().st_size)
        assert not added.done()
        fcntl.flock(other, fcntl.LOCK_UN)
        added.result()
    assert set(sizes) == {whole}
    assert len(Journal(path).lines) == 5


def test_of_many_that_write_at_once_one_goes_on(path):
    journals = [Journal(path) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        written = [pool.submit(journal.add, "answer") for journal in journals]
    assert sum(one.exception() is None for one in written) == 1
    assert len(Journal(path).lines) == 5


def test_a_link_to_a_journal_stands_for_it(path, tmp_path):
    (tmp_path / "link").symlink_to(path)
    Journal(tmp_path / "link").add("answer")
    assert len(Journal(path).lines) == 5


def test_a_line_that_a_crash_cut_short_is_taken_off(path):
    whole = path.read_bytes()
    path.write_bytes(whole + json.dumps({"event": "answer"}).encode()[:9])
    assert len(Journal(path).lines) == 4
    assert path.read_bytes() == whole
