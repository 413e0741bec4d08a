"""Every data set with a file has an original, and a file is made whole or not at all."""

import numpy as np
import pytest

from benchmarks.originals.__main__ import ORIGINALS, main, make, original, target
from federation.contract.errors import InputError
from scenarios.data.catalogue import entry, names


def test_every_data_set_with_a_file_is_made_from_an_original():
    assert {name for name in names() if entry(name).file is not None} == {*ORIGINALS}
    for name in ORIGINALS:
        known, how = original(name)
        assert known.url.startswith("http")
        assert how.files
        assert (how.make is None) != (how.copy is None)


@pytest.mark.parametrize(("name", "words"), [("digits", r"digits.*file"), ("hra", r"hra.*har")])
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
    with pytest.raises(InputError, match=r"own\.npz"):
        target(har, tmp_path / "own.npz", None)
    with pytest.raises(InputError, match=r"given.*name.*--data-dir.*FEDERATION_DATA"):
        target(har, None, None)


@pytest.fixture
def downloads(tmp_path):
    folder = tmp_path / "downloads"
    folder.mkdir()
    header = ",".join(["RMSD", *(f"F{i}" for i in range(1, 10))])
    (folder / "CASP.csv").write_text(header + "\n3.5" + ",1" * 9 + "\n0.5" + ",2" * 9 + "\n")
    return folder


def test_a_download_that_cannot_be_read_leaves_nothing_and_what_is_saved_can_be_loaded(downloads, tmp_path):
    (tmp_path / "CASP.csv").write_text("RMSD\nx\n")
    with pytest.raises(InputError):
        ORIGINALS["protein"].save(tmp_path, tmp_path / "protein.npz")
    assert {file.name for file in tmp_path.iterdir()} == {"CASP.csv", "downloads"}
    ORIGINALS["protein"].save(downloads, tmp_path / "protein.npz")
    assert np.load(tmp_path / "protein.npz")["y"].tolist() == [3.5, 0.5]


def test_a_set_says_which_downloads_it_needs():
    told = make("ctg", None, None, None)
    assert told[0] == "downloads: CTG.csv"
    assert 'sheet "Raw Data"' in told[1]
    assert len(make("protein", None, None, None)) == 1


def test_a_file_is_made_and_read(downloads, tmp_path, monkeypatch, capsys):
    told = make("protein", downloads, None, tmp_path / "data")
    assert told == [f"wrote {tmp_path}/data/protein.npz: 2 rows", "licence: CC BY 4.0"]
    own = tmp_path / "own.npz"
    monkeypatch.setattr("sys.argv", ["originals", "protein", "--from", str(downloads), "--to", str(own)])
    main()
    assert capsys.readouterr().out.startswith(f"wrote {own}: 2 rows")
    assert own.is_file()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["protein", "--to", "x.npz"], r"--to.*--from"),
        (["protein", "--from", "nowhere"], r"CASP\.csv"),
        (["digits"], "digits"),
        (["protein", "--from", "downloads", "--to", "downloads/CASP.csv"], r"CASP\.csv"),
        (["har", "--from", "downloads", "--to", "x.npz"], r"train/X_train\.txt"),
    ],
)
def test_mistakes_are_one_sentence(downloads, monkeypatch, arguments, words):
    monkeypatch.chdir(downloads.parent)
    monkeypatch.setattr("sys.argv", ["originals", *arguments])
    with pytest.raises(SystemExit, match=words):
        main()
