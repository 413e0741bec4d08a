"""A site's folder: nobody else reads it, one process writes in it, and nothing of it may be gone.

One table under two names spends one allowance, unless somebody says that it is two.
"""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from federation.contract.errors import InputError
from parties.party_data.cohort import Holdings
from parties.site.accounts import Journal
from parties.site.state import Identity, State, contents


def test_nobody_else_may_enter_it_or_read_a_file_in_it(tmp_path):
    state = State.made(tmp_path / "state")
    state.journal().add("start")
    assert State.found(state.folder).journal(reading=True).lines[0]["event"] == "start"
    (state.folder / "journal.jsonl").chmod(0o644)
    with pytest.raises(InputError, match=r"chmod.*600.*journal\.jsonl"):
        State.found(state.folder)
    (state.folder / "journal.jsonl").chmod(0o600)
    state.folder.chmod(0o750)
    with pytest.raises(InputError, match=r"chmod.*700"):
        State.found(state.folder)


def test_a_journal_that_is_gone_is_missed_and_a_folder_not_made_again(tmp_path):
    with pytest.raises(InputError):
        State.found(tmp_path / "state")
    state = State.made(tmp_path / "state")
    State.found(state.folder)
    (state.answers / "ab").write_bytes(b"")
    with pytest.raises(InputError, match=r"journal\.jsonl"):
        State.found(state.folder)


@pytest.mark.parametrize("files", ["all", "the journal"])
def test_a_copy_is_not_served_until_somebody_has_said_that_it_is_the_newest(tmp_path, files):
    state = State.made(tmp_path / "state")
    state.require_in_place(state.journal())
    state.journal().add("start", **state.place)
    state.require_in_place(state.journal())
    if files == "all":  # as on another machine
        shutil.copytree(state.folder, tmp_path / "copy")
        state.folder.rename(tmp_path / "before")
        (tmp_path / "copy").rename(state.folder)
    else:  # as from a backup, by programs that replace files
        kept = shutil.copy(state.folder / "journal.jsonl", tmp_path)
        state.journal().add("charged", key="k", table="t")
        os.replace(kept, state.folder / "journal.jsonl")
    state = State.found(state.folder)
    with pytest.raises(InputError, match="newest-state"):
        state.require_in_place(state.journal())
    state.settle_newest("ada")
    state.require_in_place(state.journal())
    assert state.journal().lines[-1]["by"] == "ada"


def test_a_folder_that_was_moved_is_no_copy(tmp_path):
    state = State.made(tmp_path / "state")
    state.journal().add("start", **state.place)
    moved = State.found(state.folder.rename(tmp_path / "elsewhere"))
    moved.require_in_place(moved.journal())


def test_one_process_at_a_time_is_its_owner(tmp_path):
    state = State.made(tmp_path / "state")
    other = (
        "import sys; from pathlib import Path; from parties.site.state import State\n"
        "with State(Path(sys.argv[1])).owned(): print('owner')"
    )

    def again():
        return subprocess.run([sys.executable, "-c", other, state.folder], capture_output=True, text=True, check=False)

    with state.owned():
        assert "another process is at work in" in again().stderr
    assert again().stdout == "owner\n"


def holdings(rows, labels=None):
    rows = np.asarray(rows, dtype=float)
    return Holdings(0, rows, np.zeros(len(rows)) if labels is None else labels)


@pytest.fixture
def identity(tmp_path):
    def opened(old=None):
        """What is known of tables; of one, 'old', where its rows are given."""
        found = Identity(tmp_path / "tables", Journal(tmp_path / "journal.jsonl"))
        if old is not None:
            found.remember("old", contents(old, found.key))
        return found

    return opened


OLD = holdings(np.arange(200).reshape(100, 2))


def shares(count):
    """A hundred rows of which so many are of the old table."""
    return holdings(np.concatenate([OLD.rows[:count], -1.0 - np.arange(2 * (100 - count)).reshape(-1, 2)]))


def test_the_same_table_is_settled_whatever_its_order_and_its_key_is_not_shown(identity):
    first = identity(OLD)
    again = identity()
    assert repr(again.key) not in repr(again)
    turned = holdings(OLD.rows[::-1])
    assert contents(turned, again.key).digest == contents(OLD, first.key).digest
    again.require_settled("old", contents(turned, again.key))
    again.remember("old", contents(turned, again.key))
    assert [line["event"] for line in again.journal.lines] == ["table"]


def test_more_than_a_tenth_of_the_rows_and_labels_under_another_name_is_refused(identity):
    known = identity(OLD)
    known.require_settled("new", contents(holdings(OLD.rows, np.ones(100)), known.key))
    known.require_settled("new", contents(shares(10), known.key))
    with pytest.raises(InputError, match=r"11%.*new.*old"):
        known.require_settled("new", contents(shares(11), known.key))


def test_rows_that_a_table_once_had_are_remembered(identity):
    known = identity()
    for count in (100, 50, 0):
        known.remember("old", contents(shares(count), known.key))
    with pytest.raises(InputError, match="100%"):
        known.require_settled("new", contents(OLD, known.key))


def test_the_same_table_by_another_name_is_one(identity):
    known = identity(OLD)
    known.settle_same("new", "old", "ada")
    later = identity()
    later.require_settled("new", contents(OLD, later.key))
    assert later.names("new") == later.names("old") == ["new", "old"]
    assert later.names("else") == ["else"]
    later.remember("new", contents(OLD, later.key))
    later.settle_same("newest", "new", "ada")
    assert later.names("old") == ["new", "newest", "old"]
    with pytest.raises(InputError, match=r"olb.*old.*known.*old"):
        later.settle_same("x", "olb", "ada")


def test_a_new_table_is_another_one_than_each_that_was_known_then(identity):
    known = identity()
    for name, count in (("old", 100), ("older", 0)):
        known.remember(name, contents(shares(count), known.key))
    assert known.settle_new("new", "ada") == ["old", "older"]
    known.require_settled("new", contents(OLD, known.key))
    known.remember("new", contents(OLD, known.key))
    known.require_settled("old", contents(OLD, known.key))
    with pytest.raises(InputError, match="old"):
        known.require_settled("older", contents(OLD, known.key))
    with pytest.raises(InputError, match="old"):
        known.require_settled("third", contents(OLD, known.key))


def test_what_knows_the_rows_must_not_be_gone(identity, tmp_path):
    known = identity(OLD)
    others = contents(shares(50), known.key)
    (path,) = (tmp_path / "tables").glob("*.rows")
    whole = path.read_bytes()
    path.write_bytes(whole[:-3])
    with pytest.raises(InputError, match="old"):
        identity().require_settled("new", others)
    path.rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="old"):
        identity().require_settled("new", others)
    (tmp_path / "tables" / "rows.key").unlink()
    with pytest.raises(InputError, match=r"rows\.key"):
        identity()


def test_what_is_kept_tells_of_rows_to_nobody_else(identity, tmp_path):
    first, other = identity(OLD), Identity(tmp_path / "others", Journal(tmp_path / "other.jsonl"))
    assert not np.isin(contents(OLD, first.key).rows, contents(OLD, other.key).rows).any()
    line = first.journal.lines[0]
    assert (line["rows"], line["content"]) == (128, contents(OLD, first.key).digest)
    (tmp_path / "tables" / "rows.key").chmod(0o644)
    with pytest.raises(InputError, match="chmod 600"):
        identity()
