"""Every data set with a file has an original, and a file is made whole or not at all."""

import numpy as np
import pytest

from federation.contract.errors import InputError
from scenarios.data.catalogue import entry, names
from scenarios.data.originals import ORIGINALS, original, target


def test_every_data_set_with_a_file_is_made_from_an_original():
    assert {name for name in names() if entry(name).file is not None} == {*ORIGINALS}
    for name in ORIGINALS:
        known, how = original(name)
        assert known.url.startswith("http")
        assert how.files
        assert (how.make is None) != (how.copy is None)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("digits", "'digits' needs no file: 'Optical Recognition"),
        ("hra", "there is no data set 'hra'; .* did you mean 'har'"),
    ],
)
def test_others_are_not(name, words):
    with pytest.raises(InputError, match=words):
        original(name)


def test_files_lie_in_the_data_directory_unless_they_are_named(tmp_path):
    har, urls = entry("har"), entry("malicious_url")
    assert target(har, None, tmp_path / "new") == tmp_path / "new" / "har.npz"
    assert (tmp_path / "new").is_dir()
    assert target(urls, None, tmp_path) == tmp_path / "malicious_url"
    assert target(har, tmp_path / "own.npz", tmp_path) == tmp_path / "own.npz"
    (tmp_path / "own.npz").touch()
    with pytest.raises(InputError, match=r"own\.npz is there already; remove it first"):
        target(har, tmp_path / "own.npz", None)
    with pytest.raises(InputError, match="no data directory is given: name it with --data-dir or FEDERATION_DATA"):
        target(har, None, None)


def test_a_download_that_cannot_be_read_leaves_nothing(tmp_path):
    (tmp_path / "CASP.csv").write_text("RMSD\nx\n")
    with pytest.raises(InputError):
        ORIGINALS["protein"].save(tmp_path, tmp_path / "protein.npz")
    assert [file.name for file in tmp_path.iterdir()] == ["CASP.csv"]


def test_what_is_saved_can_be_loaded(tmp_path):
    (tmp_path / "CASP.csv").write_text("RMSD," + ",".join(f"F{i}" for i in range(1, 10)) + "\n3.5" + ",1" * 9 + "\n")
    ORIGINALS["protein"].save(tmp_path, tmp_path / "protein.npz")
    assert np.load(tmp_path / "protein.npz")["y"].tolist() == [3.5]
