"""Originals of texts, and days that are read as they are."""

import pytest

from federation.contract.errors import InputError
from scenarios.data.catalogue import load
from scenarios.data.hashing import Hashing
from scenarios.data.original_formats import VIDEOS, Downloads
from scenarios.data.originals import ORIGINALS

HEADER = "COMMENT_ID,AUTHOR,DATE,CONTENT,CLASS\n"
TWEETS = "$T$ is great , love it\nbeer\n1\ni hate $T$ so much\nrain\n-1\n$T$ exists\nan ocean\n0\n"


def write_comments(folder):
    for i, name in enumerate(VIDEOS):
        lines = f'a,Me,2013-11-07T06:20:48,"check, this\nout {i}",1\nb,You,,nice song {i},0\n'
        (folder / name).write_text(HEADER + lines, encoding="utf-8-sig")


def test_comments_know_their_video_and_whether_they_are_spam(tmp_path):
    write_comments(tmp_path)
    ORIGINALS["youtube_spam"].save(tmp_path, tmp_path / "youtube_spam.parquet")
    found = load("youtube_spam", data_dir=tmp_path, hashes=[{"column": "content", "bits": 4}])
    assert (found.columns, found.classes) == (Hashing(4, "content").names, ("ham", "spam"))
    assert found.labels.tolist() == [1, 0] * 5
    assert found.groups["video"].tolist()[::2] == ["Psy", "KatyPerry", "LMFAO", "Eminem", "Shakira"]


def test_tweets_have_their_target_back_and_an_official_split(tmp_path):
    (tmp_path / "train.raw").write_text(TWEETS)
    (tmp_path / "test.raw").write_text("about $T$ , neutral\nit\n0\n")
    made = ORIGINALS["tweets"].make
    assert made is not None
    rows = made(Downloads(tmp_path)).to_pylist()
    assert rows[0] == {"text": "beer is great , love it", "sentiment": "positive", "part": "train"}
    assert rows[3]["text"] == "about it , neutral"
    ORIGINALS["tweets"].save(tmp_path, tmp_path / "tweets.parquet")
    found = load("tweets", data_dir=tmp_path, hashes=[{"column": "text", "bits": 4}])
    assert (found.classes, found.labels.tolist()) == (("negative", "neutral", "positive"), [2, 0, 1, 1])
    assert [part.tolist() for part in found.official] == [[0, 1, 2], [3]]


@pytest.mark.parametrize("content", ["", "one\n", "a\nb\n2\n"])
def test_other_tweets_are_refused(tmp_path, content):
    (tmp_path / "train.raw").write_text(content)
    with pytest.raises(InputError, match=r"train\.raw must have three lines a tweet, the last of them -1, 0 or 1"):
        ORIGINALS["tweets"].save(tmp_path, tmp_path / "tweets.parquet")
    assert not (tmp_path / "tweets.parquet").exists()


def test_other_comments_are_refused(tmp_path):
    write_comments(tmp_path)
    (tmp_path / VIDEOS[2]).write_text(HEADER + "a,b,c,d,maybe\n")
    with pytest.raises(InputError, match="CLASS must be 0 or 1"):
        ORIGINALS["youtube_spam"].save(tmp_path, tmp_path / "youtube_spam.parquet")


def test_twenty_days_are_copied(tmp_path):
    (tmp_path / "url_svmlight").mkdir()
    for day in range(22):
        (tmp_path / "url_svmlight" / f"Day{day}.svm").write_text(f"+1 4:0.5 {day + 1000}:1\n-1 2:4\n")
    ORIGINALS["malicious_url"].save(tmp_path, tmp_path / "malicious_url")
    found = load("malicious_url", data_dir=tmp_path, hashes=[5])
    assert (len(found), found.classes, found.name) == (40, ("benign", "malicious"), "malicious_url")
    assert [len(part) for part in found.official] == [20, 20]
    assert found.groups["day"].tolist() == [day for day in range(20) for _ in range(2)]


@pytest.mark.parametrize(("name", "file"), [("census_1940", "census_1940.csv"), ("criteo_sscl", "CriteoSearchData")])
def test_what_is_read_as_it_is_is_copied(tmp_path, name, file):
    (tmp_path / "from").mkdir()
    (tmp_path / "from" / file).write_text("anything")
    ORIGINALS[name].save(tmp_path / "from", tmp_path / file)
    assert (tmp_path / file).read_text() == "anything"
