"""A site's folder: nobody else reads it, one process writes in it, and nothing of it may be gone."""

import os
import shutil
import subprocess
import sys

import pytest

from federation.contract.errors import InputError
from parties.site.state import State


def test_nobody_else_may_enter_it_or_read_a_file_in_it(tmp_path):
    state = State.made(tmp_path / "state")
    state.journal().add("start")
    assert State.found(state.folder).journal(reading=True).lines[0]["event"] == "start"
    (state.folder / "journal.jsonl").chmod(0o644)
    with pytest.raises(InputError, match=r"type: chmod 600 .*journal.jsonl"):
        State.found(state.folder)
    (state.folder / "journal.jsonl").chmod(0o600)
    state.folder.chmod(0o750)
    with pytest.raises(InputError, match=r"type: chmod 700 .*state"):
        State.found(state.folder)


def test_a_folder_that_is_gone_is_not_made_again(tmp_path):
    with pytest.raises(InputError, match="knows what this site has spent; restore it"):
        State.found(tmp_path / "state")


def test_a_journal_that_is_gone_is_missed(tmp_path):
    state = State.made(tmp_path / "state")
    State.found(state.folder)
    (state.answers / "ab").write_bytes(b"")
    with pytest.raises(InputError, match=r"journal.jsonl is gone, and with it what this site has spent"):
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
    with pytest.raises(InputError, match=r"is a copy, .* type: federation party newest-state"):
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
