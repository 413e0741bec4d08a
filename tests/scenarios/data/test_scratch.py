"""Rows on the disk: made once for all processes that ask, private, gone with them, refused where there is no room."""

import multiprocessing
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from federation.contract.errors import InputError
from scenarios.data import row_storage as scratch
from scenarios.data.row_storage import mapped_rows


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


def test_other_rows_have_a_file_of_their_own(folder):
    mapped_rows("own", (5, 3), counting)
    assert not mapped_rows("other", (5, 3), lambda rows: None).any()


def _asked(folder, told, together):
    tempfile.tempdir = folder
    found = mapped_rows("own", (1000, 10), lambda rows: (told.put("filled"), counting(rows)))
    told.put(float(found.sum()))
    together.wait(60)  # who ends removes the file


def test_processes_that_ask_together_share_what_one_makes(folder):
    context = multiprocessing.get_context("spawn")
    told, together = context.Queue(), context.Barrier(3)
    asking = [context.Process(target=_asked, args=(str(folder.parent), told, together)) for _ in range(3)]
    for process in asking:
        process.start()
    said = [told.get(timeout=60) for _ in range(4)]
    for process in asking:
        process.join()
    assert sorted(map(str, said)) == ["49995000.0"] * 3 + ["filled"]


def test_nothing_is_left_behind(folder):
    program = "from scenarios.data.row_storage import mapped_rows; mapped_rows('own', (2, 2), lambda rows: None)"
    environment = os.environ | {"TMPDIR": str(folder.parent), "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    assert [file.name for file in folder.iterdir()] == ["lock"]


def test_what_fails_leaves_no_half_file(folder):
    def fail(rows):
        raise InputError("the file is damaged")

    with pytest.raises(InputError, match="damaged"):
        mapped_rows("own", (5, 3), fail)
    assert [file.name for file in folder.iterdir()] == ["lock"]
    assert mapped_rows("own", (5, 3), counting)[4, 2] == 14


def test_a_full_disk_is_told_before_anything_is_read(folder, monkeypatch):
    monkeypatch.setattr(scratch.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 100}))
    with pytest.raises(InputError, match=r"has no room for the 0\.0 GiB .* TMPDIR"):
        mapped_rows("own", (50, 3), lambda _: pytest.fail("read"))


def test_a_disk_that_fills_up_is_told(folder, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(scratch.os, "posix_fallocate", full, raising=False)
    with pytest.raises(InputError, match="cannot be written: No space left on device; name another folder"):
        mapped_rows("own", (50, 3), counting)


@pytest.mark.parametrize("what", ["open to others", "a link"])
def test_a_folder_that_others_may_open_is_refused(folder, what):
    if what == "a link":
        (folder.parent / "elsewhere").mkdir(mode=0o700)
        Path(folder).symlink_to(folder.parent / "elsewhere")
    else:
        folder.mkdir()
        folder.chmod(0o755)
    with pytest.raises(InputError, match="not a folder that only you may open; remove it"):
        mapped_rows("own", (2, 2), counting)


def test_a_temporary_folder_that_is_none_is_told(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "file"))
    with pytest.raises(InputError, match=r"cannot be written: Not a directory; name another folder .* TMPDIR"):
        mapped_rows("own", (2, 2), counting)
