"""A journal that shows what was done to it."""

import json

import pytest

from federation.contract.errors import InputError
from parties.site.journal import BEGINNING, Journal


@pytest.fixture
def path(tmp_path):
    journal = Journal(tmp_path / "journal.jsonl")
    for number in range(4):
        journal.add("answer", number=number)
    return journal.path


def test_it_begins_with_nothing_and_goes_on_where_it_was(path, tmp_path):
    assert Journal(tmp_path / "none.jsonl").head == BEGINNING
    again = Journal(path)
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
    "change",
    [
        lambda lines: [lines[0].replace('"number": 0', '"number": 7'), *lines[1:]],
        lambda lines: lines[1:],
        lambda lines: [lines[0], *lines[2:]],
        lambda lines: [lines[1], lines[0], *lines[2:]],
        lambda lines: [*lines[:2], "{}", *lines[3:]],
        lambda lines: [*lines[:2], "no line", *lines[3:]],
        lambda lines: [*lines[:2], "[1]", *lines[3:]],
        lambda lines: [*lines, lines[-1]],
    ],
    ids=["changed", "first gone", "second gone", "swapped", "empty", "torn", "a list", "twice"],
)
def test_a_changed_journal_is_refused(path, change):
    lines = path.read_text().splitlines()
    path.write_text("\n".join(change(lines)) + "\n")
    with pytest.raises(InputError, match="not as it was written"):
        Journal(path)


def test_a_line_that_a_crash_cut_short_is_taken_off(path):
    whole = path.read_bytes()
    path.write_bytes(whole + json.dumps({"event": "answer"}).encode()[:9])
    assert len(Journal(path).lines) == 4
    assert path.read_bytes() == whole
