"""Several files as one source."""

import pytest

from federation.contract.errors import InputError
from scenarios.data.catalogue import digest, load
from scenarios.data.readers import files_of, is_pattern, is_there


@pytest.fixture
def folder(tmp_path):
    for name in ("Day10.svm", "Day2.svm", "Day2b.svm", "other.txt", "odd[1].svm"):
        (tmp_path / name).write_text("1 1:1\n0 2:1\n")
    return tmp_path


def test_files_come_by_their_numbers(folder):
    assert [file.name for file in files_of(folder / "Day*.svm")] == ["Day2.svm", "Day2b.svm", "Day10.svm"]
    assert [file.name for file in files_of(folder / "Day?.svm")] == ["Day2.svm"]
    assert [file.name for file in files_of(folder / "odd[1]*")] == ["odd[1].svm"]  # brackets mean themselves
    assert files_of(folder / "odd[1].svm") == [folder / "odd[1].svm"]


def test_a_file_may_have_such_a_name(folder):
    (folder / "really*.svm").write_text("1 1:1\n")
    assert not is_pattern(folder / "really*.svm")
    assert is_there(folder / "really*.svm")
    assert not is_there(folder / "Night*.svm")


def test_no_files_are_refused(folder):
    with pytest.raises(InputError, match=r"there is no file Night\*\.svm in .*; correct the pattern or folder"):
        files_of(folder / "Night*.svm")
    with pytest.raises(InputError, match=r"data.source: there is no such file: Night\*\.svm"):
        load("Night*.svm", data_dir=folder)


def test_a_file_that_comes_or_goes_changes_what_is_read(folder):
    before, rows = digest("Day*.svm", folder), len(load("Day*.svm", data_dir=folder))
    (folder / "Day3.svm").write_text("1 1:1\n")
    assert digest("Day*.svm", folder) != before
    assert len(load("Day*.svm", data_dir=folder)) == rows + 1


def test_not_all_files_are_taken_together(folder):
    (folder / "a1.csv").write_text("x,y\n1,a\n2,b\n")
    with pytest.raises(InputError, match=r"a\*\.csv stands for several files, which only Parquet and"):
        load("a*.csv", label="y", data_dir=folder)
