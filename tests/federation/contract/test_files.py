"""What is named as a file and is none, told before anything is opened: a pipe would never end."""

import json
import os
import stat
import threading
from pathlib import Path

import pytest
from support.refusals import refused

from federation.contract import files
from federation.contract.errors import InputError
from federation.contract.files import alone, is_file, read_object, read_text, write_lasting


def test_files_and_links_to_them(tmp_path):
    (tmp_path / "one.csv").write_text("a")
    (tmp_path / "link.csv").symlink_to(tmp_path / "one.csv")
    (tmp_path / "broken.csv").symlink_to(tmp_path / "none.csv")
    found = [is_file(tmp_path / name) for name in ("one.csv", "link.csv", "broken.csv", "none.csv", "one.csv/x")]
    assert found == [True, True, False, False, False]


def test_what_is_no_file_is_told(tmp_path):
    pipe, loop = tmp_path / "pipe.csv", tmp_path / "loop.csv"
    os.mkfifo(pipe)
    loop.symlink_to(loop)
    for path, told in (
        (tmp_path, None),
        (pipe, f"{pipe}"),
        (Path("/dev/zero"), "/dev/zero"),
        (loop, r"loop\.csv"),
        (Path("x" * 5000), None),
        (Path("a\0b"), r"a\\x00b"),
    ):
        refused(told, is_file, path)


@pytest.mark.skipif(os.geteuid() == 0, reason="the administrator may read everything")
def test_a_folder_that_may_not_be_entered_is_told(tmp_path):
    (tmp_path / "shut").mkdir(mode=0)
    with pytest.raises(InputError, match=r"one\.csv"):
        is_file(tmp_path / "shut" / "one.csv")


def test_texts_and_objects_are_read_and_absent_ones_and_pipes_told(tmp_path):
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"a": "ü"}), encoding="utf-8")
    assert (read_text(path, "stop"), read_object(path, "stop")) == ('{"a": "\\u00fc"}', {"a": "ü"})
    os.mkfifo(tmp_path / "pipe.json")
    for name, told in (("none.json", r"none\.json"), ("pipe.json", None)):
        refused(told, read_text, tmp_path / name, "run it again")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xff", r"run\.json cannot be read: .*invalid start byte"),
        (b"{", r"run\.json is damaged: it is no JSON \(.*\)"),
        (b"[" * 100_000, r"run\.json is damaged: it is no JSON"),
        (b"9" * 5000, r"run\.json is damaged: it is no JSON"),
        (b"[1]", r"run\.json is damaged: it must hold an object, got list"),
    ],
)
def test_damaged_texts_and_objects_are_told(tmp_path, content, words):
    (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(InputError, match=f"{words}"):
        read_object(tmp_path / "run.json", "run it again")


def test_a_file_is_whole_on_the_disk_before_it_takes_the_place_of_another(tmp_path, monkeypatch):
    path, seen, fsync = tmp_path / "record", [], os.fsync
    path.write_bytes(b"old")
    free = os.open(tmp_path, os.O_RDONLY)  # the lowest number that is free
    os.close(free)

    def synced(file):
        state = os.fstat(file)
        seen.append("folder" if stat.S_ISDIR(state.st_mode) else state.st_size)
        seen.append(path.read_bytes())
        fsync(file)

    monkeypatch.setattr(os, "fsync", synced)
    write_lasting(path, b"a new one")
    assert seen == [9, b"old", "folder", b"a new one"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["record"]
    again = os.open(tmp_path, os.O_RDONLY)
    os.close(again)
    assert again == free  # no file is left open


def test_a_lock_is_waited_for_as_long_as_is_said_and_free_afterwards(tmp_path):
    lock, begun, over = tmp_path / "lock", threading.Event(), threading.Event()

    def hold():
        with alone(lock, "held"):
            begun.set()
            over.wait(60)

    holding = threading.Thread(target=hold)
    holding.start()
    assert begun.wait(60)
    with pytest.raises(InputError), alone(lock, "somebody works here", 0.2):
        pass
    threading.Timer(0.2, over.set).start()
    with alone(lock, "somebody works here", 60.0):
        assert over.is_set()
    holding.join()
    assert lock.stat().st_mode & 0o777 == 0o600


def test_a_file_system_without_locks_is_told_and_not_taken_for_somebody_at_work(tmp_path, monkeypatch):
    def none(file, how):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(files.fcntl, "flock", none)
    told = r"lock cannot be locked \(No locks available\), .*; use a folder on a disk of this machine"
    with pytest.raises(InputError, match=told), alone(tmp_path / "lock", "somebody works here"):
        pass
