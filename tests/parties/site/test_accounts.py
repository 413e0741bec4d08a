"""What a table has spent, whoever asked, and the journal that shows what was done to it, line by line in words."""

import fcntl
import json
import os
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from federation.contract.errors import BudgetExceededError, InputError
from federation.contract.guarantee import Adjacency, Guarantee, Unit
from parties.site.accounts import BEGINNING, Account, Accounts, Allowances, Journal, printable, said

REPLACE, ADD_REMOVE = Adjacency.REPLACE, Adjacency.ADD_REMOVE
LABEL = Account(Unit.LABEL, REPLACE, 2.0, 1e-5)
ROW = Account(Unit.ROW, REPLACE, 4.0, 1e-5)


def promise(epsilon, unit=Unit.LABEL, adjacency=REPLACE, delta=0.0, mu=None):
    return Guarantee(epsilon, delta, unit, adjacency, "some", gaussian_mu=mu)


@pytest.fixture
def opened(tmp_path):
    def accounts(*proved, table="patients", **more):
        return Accounts(table, Allowances(proved, **more), Journal(tmp_path / "journal.jsonl"))

    return accounts


def test_charges_add_up_across_restarts_until_nothing_is_left_and_each_counts_once(opened):
    for _ in range(3):
        opened(LABEL).charge("a", promise(1.5), False, {"aggregator": "ab12"})
    accounts = opened(LABEL)
    with pytest.raises(BudgetExceededError, match=r"epsilon.*2\.6.*label/replace.*1"):
        accounts.charge("b", promise(1.1), False, {})
    accounts.charge("c", promise(0.5), False, {})
    assert accounts.spent() == {"label/replace": (2.0, 0.0)}
    assert [(line["key"], line.get("aggregator")) for line in accounts.journal.lines] == [("a", "ab12"), ("c", None)]
    assert opened(LABEL, table="others").spent() == {"label/replace": (0.0, 0.0)}


def test_what_protects_more_is_counted_for_less_and_both_accounts_hold(opened):
    accounts = opened(LABEL, ROW)
    accounts.charge("a", promise(0.5, Unit.ROW, ADD_REMOVE), False, {})
    assert accounts.spent() == {"label/replace": (1.0, 0.0), "row/replace": (1.0, 0.0)}
    with pytest.raises(BudgetExceededError, match="label/replace"):
        accounts.charge("b", promise(0.6, Unit.ROW, ADD_REMOVE), False, {})


def test_what_protects_labels_only_is_refused_where_rows_have_an_account(opened):
    with pytest.raises(InputError, match="row/replace"):
        opened(LABEL, ROW).charge("a", promise(1.0), False, {})
    assert opened(LABEL, ROW).journal.lines == []
    accounts = opened(LABEL, ROW, features_are_public=True)
    accounts.charge("a", promise(1.0), False, {})
    assert accounts.spent() == {"label/replace": (1.0, 0.0), "row/replace": (0.0, 0.0)}


def test_gaussian_releases_compose_on_their_curve(opened):
    accounts = opened(Account(Unit.ROW, REPLACE, 4.0, 1e-5))
    for key in "abcd":
        accounts.charge(key, promise(1.0, Unit.ROW, delta=1e-6, mu=0.2), False, {})
    epsilon, delta = accounts.spent()["row/replace"]
    assert epsilon < 2.0
    assert delta == 1e-5


def test_trusted_answers_have_an_account_and_a_number_of_their_own(opened):
    trusted = Account(Unit.PARTY, REPLACE, 10.0, 0.0)
    accounts = opened(LABEL, trusted=trusted, trusted_answers=1)
    accounts.charge("a", promise(1.0), False, {})
    accounts.charge("b", promise(3.0, Unit.PARTY), True, {})
    assert accounts.spent() == {"label/replace": (1.0, 0.0), "trusted": (3.0, 0.0)}
    with pytest.raises(BudgetExceededError, match=r"1.*1"):
        accounts.charge("c", promise(3.0, Unit.PARTY), True, {})
    accounts.charge("b", promise(3.0, Unit.PARTY), True, {})  # the same one again
    with pytest.raises(BudgetExceededError, match=r"0.*0"):  # without a number of trusted answers none leaves
        opened(trusted=trusted, table="others").charge("d", promise(1.0, Unit.PARTY), True, {})


@pytest.mark.parametrize(("trusted", "named"), [(True, r"allowance\.trusted"), (False, r"allowance\.label")])
def test_without_an_account_nothing_is_answered(opened, trusted, named):
    with pytest.raises(InputError, match=named):
        opened().charge("a", promise(1.0), trusted, {})
    assert opened().journal.lines == []


@pytest.mark.parametrize(
    "other",
    [
        promise(1.0, delta=1e-6),
        promise(2.0),
        promise(1.0, adjacency=ADD_REMOVE),
        replace(promise(1.0), parameters={"queries": 3}),
    ],
)
def test_what_was_charged_for_less_is_not_free(opened, other):
    """A release goes on for nothing only with the noise that it began with."""
    begun = replace(promise(1.0), parameters={"queries": 2, "grid": (1, 2)})
    for _ in range(2):
        accounts = opened(LABEL)
        for _ in range(2):
            accounts.charge("a", begun, False, {})
        for guarantee, trusted in ((other, False), (begun, True)):
            with pytest.raises(InputError):
                accounts.charge("a", guarantee, trusted, {})
    assert len(opened(LABEL).journal.lines) == 1


@pytest.mark.parametrize("deltas", [(1.01e-6,), (2e-6,), (1e-5,), (0.6e-6, 0.6e-6), (1e-6, 1e-8), (0.4e-6,) * 3])
def test_delta_is_part_of_an_allowance(opened, deltas):
    """Whatever epsilon would be left, and however little delta is above."""
    accounts = opened(Account(Unit.LABEL, REPLACE, 9.0, 1e-6))
    *before, last = (promise(0.1, delta=delta) for delta in deltas)
    for number, release in enumerate(before):
        accounts.charge(str(number), release, False, {})
    with pytest.raises(BudgetExceededError, match=r"epsilon.*9.*delta.*1e-06"):
        accounts.charge("last", last, False, {})


def test_all_of_an_allowance_may_be_spent(opened):
    accounts = opened(Account(Unit.LABEL, REPLACE, 0.3, 3e-6))
    for key in "abc":  # whose sums are above, by rounding
        accounts.charge(key, promise(0.1, delta=1e-6), False, {})
    with pytest.raises(BudgetExceededError):
        accounts.charge("d", promise(1e-6), False, {})


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (float("nan"), 0.5), (9.0, float("nan"))])
def test_an_allowance_of_nothing_or_of_no_number_pays_for_nothing(opened, epsilon, delta):
    with pytest.raises((BudgetExceededError, InputError)):
        opened(Account(Unit.LABEL, REPLACE, epsilon, delta)).charge("a", promise(1e-9, delta=1e-9), False, {})
    assert opened(LABEL).journal.lines == []


@pytest.fixture
def path(tmp_path):
    journal = Journal(tmp_path / "journal.jsonl")
    for number in range(4):
        journal.add("answer", number=number)
    return journal.path


def test_it_begins_with_nothing_goes_on_where_it_was_and_is_its_owners(path, tmp_path):
    assert Journal(tmp_path / "none.jsonl").head == BEGINNING
    again = Journal(path)
    assert all(map(again.holds, [BEGINNING, *(line["hash"] for line in again.lines)]))
    assert not again.holds("f" * 64)
    assert [line["number"] for line in again.lines] == [0, 1, 2, 3]
    again.add("stop")
    assert path.stat().st_mode & 0o777 == 0o600
    assert [line["before"] for line in Journal(path).lines][1:] == [line["hash"] for line in again.lines][:-1]


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
    with pytest.raises(InputError, match=f"{line}"):
        Journal(path)


def test_a_line_is_on_the_disk_before_it_counts_and_so_is_a_new_file(tmp_path, monkeypatch):
    synced, fsync = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda one: synced.append(stat.S_ISDIR(os.fstat(one).st_mode)) or fsync(one))
    journal = Journal(tmp_path / "journal.jsonl")
    journal.add("first")
    assert synced == [False, True]
    journal.add("second")
    assert synced == [False, True, False]


@pytest.mark.parametrize("step", ["fsync", "write", "a part"])
def test_a_line_that_cannot_be_written_leaves_nothing(path, monkeypatch, step):
    journal, whole, write = Journal(path), path.read_bytes(), os.write

    def full(file, *_):
        written = write(file, b"half a li")
        if step != "a part":
            raise OSError(28, "No space left on device")
        return written

    with monkeypatch.context() as broken:
        broken.setattr(os, "write" if step == "a part" else step, full)
        with pytest.raises(OSError, match="No space"):
            journal.add("answer")
    assert path.read_bytes() == whole
    assert len(journal.lines) == 4
    journal.add("answer")
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


def test_a_link_to_a_journal_stands_for_it_and_a_line_that_a_crash_cut_short_is_taken_off(path, tmp_path):
    whole = path.read_bytes()
    path.write_bytes(whole + json.dumps({"event": "answer"}).encode()[:9])
    assert len(Journal(path).lines) == 4
    assert path.read_bytes() == whole
    (tmp_path / "link").symlink_to(path)
    Journal(tmp_path / "link").add("answer")
    assert len(Journal(path).lines) == 5


COST = {"epsilon": 1.0, "delta": 1e-6, "unit": "label", "adjacency": "replace"}
CHARGED = {"event": "charged", "table": "t", "trusted": False, "guarantee": COST}
CHARGED_WORDS = "charged table 't': epsilon 1, delta 1e-06 for one label (replace)"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (CHARGED, f"{CHARGED_WORDS}, by noise of this site"),
        (CHARGED | {"trusted": True}, f"{CHARGED_WORDS}, if the aggregator adds its noise"),
        (CHARGED | {"sum of": 3}, f"{CHARGED_WORDS}, by noise that 3 sites add together"),
        (
            {"event": "newest state", "by": "ada", "file": 7},
            "ada said that this copy of the state is the newest there is",
        ),
        (
            {"event": "answered in a secure sum", "kind": "sums, masked part of a secure sum", "bytes": 10},
            "answered 'sums, masked part of a secure sum': 10 bytes",
        ),
        (
            {"event": "told the sum of masks", "counted": 4, "of": 5, "bytes": 10},
            "told the sum of the masks of 4 of 5 sites: 10 bytes",
        ),
        ({"event": "begun"}, "a question is being answered"),
        ({"event": "answered", "kind": "votes", "bytes": 10}, "answered 'votes': 10 bytes"),
        ({"event": "answered again"}, "sent again what was answered before"),
        ({"event": "refused", "why": "not signed", "times": 4}, "refused: not signed (4 times by now)"),
        ({"event": "refused", "why": "not signed", "times": 1}, "refused: not signed"),
        (
            {"event": "waits for approval", "kind": "votes"},
            "'votes' waits for approval, for a table as agreed, or for room on the disk",
        ),
        ({"event": "approved", "id": "ab", "by": "ada"}, "ab was approved by ada"),
        ({"event": "denied", "id": "ab", "by": "eve"}, "ab was denied by eve"),
        ({"event": "start", "plan": "0" * 64, "table": "t"}, f"started, with the table 't' and the plan {'0' * 64}"),
        ({"event": "stop"}, "stopped"),
        (
            {"event": "table", "table": "t", "rows": 64, "content": "1" * 64},
            f"table 't' was read: fewer than 64 rows, digest {'1' * 16}",
        ),
        ({"event": "same table", "table": "t", "as": "s", "by": "ada"}, "ada said that table 't' is the table 's'"),
        ({"event": "new table", "table": "t", "by": "ada"}, "ada said that table 't' is a new one"),
        ({"event": "of a later version"}, "of a later version"),
    ],
)
def test_a_line_has_words_that_move_no_terminals_cursor(line, words):
    assert said(line) == words
    assert printable("a\x1b[2Jb\rc\u202ed\n") == "a [2Jb c d "
