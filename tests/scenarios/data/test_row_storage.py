"""Rows on the disk: made once for all processes that ask, private, gone with them, refused where there is no room.

Rows of raw features: columns by name, what may be missing, and what is said where something is.
"""

import multiprocessing
import os
import stat
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from support.refusals import refused

from federation.contract.errors import InputError
from federation.features.feature_map import text_code
from scenarios.data import row_storage
from scenarios.data.row_storage import complete, features_of, mapped_rows, require_there
from scenarios.data.sheets import NO_TEXT, Sheet


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"federation-{os.getuid()}"


def counting(rows):
    rows[:] = np.arange(rows.size).reshape(rows.shape)


def test_rows_are_filled_once_and_cannot_be_changed(folder):
    first = mapped_rows("own", (5, 3), counting)
    again = mapped_rows("own", (5, 3), lambda _: pytest.fail("filled again"))
    for found in (first, again):
        np.testing.assert_array_equal(found, np.arange(15.0).reshape(5, 3))
    with pytest.raises(ValueError, match="read-only"):
        first[0, 0] = 1.0
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not mapped_rows("other", (5, 3), lambda rows: None).any()  # has a file of its own


def _asked(folder, told, together):
    tempfile.tempdir = folder
    found = mapped_rows("own", (1000, 10), lambda rows: (told.put("filled"), counting(rows)))
    told.put(float(found.sum()))
    together.wait(60)  # who ends removes the file


@pytest.mark.slow
def test_processes_that_ask_together_share_what_one_makes_and_leave_nothing_behind(folder):
    context = multiprocessing.get_context("spawn")
    told, together = context.Queue(), context.Barrier(2)
    asking = [context.Process(target=_asked, args=(str(folder.parent), told, together)) for _ in range(2)]
    for process in asking:
        process.start()
    said = [told.get(timeout=60) for _ in range(3)]
    for process in asking:
        process.join()
    assert sorted(map(str, said)) == ["49995000.0"] * 2 + ["filled"]
    assert [file.name for file in folder.iterdir()] == ["lock"]


def test_what_fails_leaves_no_half_file(folder):
    def fail(rows):
        raise InputError("the file is damaged")

    refused(None, mapped_rows, "own", (5, 3), fail)
    assert [file.name for file in folder.iterdir()] == ["lock"]
    assert mapped_rows("own", (5, 3), counting)[4, 2] == 14


def test_a_disk_that_is_full_or_fills_up_and_a_folder_that_is_none_are_told(folder, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(row_storage.os, "posix_fallocate", full, raising=False)
    refused(None, mapped_rows, "own", (50, 3), counting)
    monkeypatch.setattr(row_storage.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 100}))
    refused(r"0\.0.*GiB.*TMPDIR", mapped_rows, "own", (50, 3), lambda _: pytest.fail("read"))
    (folder.parent / "file").touch()
    monkeypatch.setattr(tempfile, "tempdir", str(folder.parent / "file"))
    refused("TMPDIR", mapped_rows, "own", (2, 2), counting)


def test_a_folder_that_others_may_open_is_refused(folder):
    folder.mkdir()
    folder.chmod(0o755)
    refused(None, mapped_rows, "own", (2, 2), counting)
    folder.rmdir()
    (folder.parent / "elsewhere").mkdir(mode=0o700)
    Path(folder).symlink_to(folder.parent / "elsewhere")
    refused(None, mapped_rows, "own", (2, 2), counting)


@pytest.fixture
def sheet(tmp_path):
    return Sheet(tmp_path / "own.parquet", pa.table({"a": [1, 2, None], "t": ["u", None, "v"], "b": [0.5, 1.5, 2.5]}))


def test_columns_are_found_by_name_unused_ones_need_not_be_there_and_missing_cells_must_be_allowed(sheet):
    rows = features_of(sheet, ("b", "gone", "t"), (2,), True, unused=(1,))
    np.testing.assert_array_equal(rows, [[0.5, 0, text_code("u")], [1.5, 0, NO_TEXT], [2.5, 0, text_code("v")]])
    assert require_there(sheet, ("b", "gone", "t"), (1,)) == ["b", "t"]
    refused(r"2.*3", require_there, sheet, ("x", "b", "y"))
    assert np.isnan(features_of(sheet, ("a", "b"), (), True)).tolist() == [[False] * 2, [False] * 2, [True, False]]
    refused(r"own\.parquet.*1.*'t'.*1.*1", features_of, sheet, ("t", "a"), (0,), False)
    rows = np.ones((3, 2))
    assert complete(rows, sheet, ("a", "b")) is rows
