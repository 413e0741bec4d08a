"""`federation data`: what is there, where the rest comes from, and files made from downloads."""

import json

import pytest


@pytest.fixture
def downloads(tmp_path):
    folder = tmp_path / "downloads"
    folder.mkdir()
    header = ",".join(["RMSD", *(f"F{i}" for i in range(1, 10))])
    (folder / "CASP.csv").write_text(header + "\n3.5" + ",1" * 9 + "\n0.5" + ",2" * 9 + "\n")
    return folder


def test_sets_are_listed_with_whether_they_are_there(done, tmp_path, monkeypatch):
    monkeypatch.delenv("FEDERATION_DATA", raising=False)
    (tmp_path / "har.npz").touch()
    (tmp_path / "malicious_url").mkdir()
    (tmp_path / "malicious_url" / "Day3.svm").touch()
    found = done("data", "--json", "--data-dir", str(tmp_path))
    states = {one["name"]: one["state"] for one in json.loads(found)["data"]}
    assert {name: states[name] for name in ("har", "malicious_url", "mnist", "digits")} == {
        "har": "there", "malicious_url": "there", "mnist": "missing", "digits": "comes along",
    }  # fmt: skip
    told = done("data")
    assert "no data directory: name one with --data-dir or FEDERATION_DATA" in told
    assert "what a missing one needs: federation data acoustic" in told


def test_a_set_says_where_its_original_is(done, tmp_path):
    told = done("data", "ctg", "--data-dir", str(tmp_path))
    for words in ("state: missing", "https://archive.ics.uci.edu/dataset/193", "licence: CC BY 4.0",
                  "downloads: CTG.csv", 'sheet "Raw Data"', "next: federation data ctg --from FOLDER"):  # fmt: skip
        assert words in told


def test_a_file_is_made_and_read(done, downloads, tmp_path):
    told = done("data", "protein", "--from", str(downloads), "--data-dir", str(tmp_path / "data"))
    assert f"wrote {tmp_path}/data/protein.npz: 2 rows" in told
    assert "licence: CC BY 4.0" in told
    other = done("data", "protein", "--from", str(downloads), "--to", str(tmp_path / "own.npz"), "--json")
    assert json.loads(other) == {
        "name": "protein", "file": str(tmp_path / "own.npz"), "rows": 2, "classes": [],
    }  # fmt: skip
    assert (tmp_path / "own.npz").is_file()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--from", "."], "--from needs the name of a data set"),
        (["protein", "--to", "x.npz"], "--to is for --from"),
        (["protein", "--from", "nowhere"], "there is no folder nowhere; name the one with CASP.csv"),
        (["digits"], "'digits' needs no file"),
        (["protein", "--from", "downloads", "--to", "downloads/CASP.csv"], "CASP.csv is there already"),
        (["har", "--from", "downloads", "--to", "x.npz"], "there is no file train/X_train.txt in downloads"),
    ],
)
def test_mistakes_are_one_sentence(refused, downloads, monkeypatch, arguments, words):
    monkeypatch.chdir(downloads.parent)
    assert words in refused("data", *arguments)
