"""Data sets of texts and of sparse rows, whose features are hashed: comments, tweets, and URLs of many days."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from federation.contract.errors import InputError
from scenarios.data.data_sets import DataSet
from scenarios.data.files import read_table
from scenarios.data.hashing import Hashing
from scenarios.data.tables import Table

URL_DAYS, _TRAINING_DAYS = 20, 10  # of 121, as Hamm et al. 2016 use them
_DAY = "Day"


def _texts(
    known: DataSet, path: Path, hashes: Sequence[Hashing], *, label: str, group: str, classes: tuple[str, ...]
) -> Table:
    """A Parquet file with a column of texts, one of labels and one that rows may be dealt by, or split."""
    table = read_table(path, label, [group], classes, hashes=hashes)
    parts = table.groups[group]
    if {*parts.tolist()} == {"train", "test"}:
        split = np.flatnonzero(parts == "train"), np.flatnonzero(parts == "test")
        table = replace(table, groups={}, official=split)
    return replace(table, name=known.name)


def _urls(known: DataSet, path: Path, hashes: Sequence[Hashing]) -> Table:
    """The days of a folder; the first ten of them are for training."""
    table = read_table(path, None, ["file"], hashes=hashes)
    days = np.array([name.removeprefix(_DAY) for name in table.groups["file"].tolist()])
    if table.classes != ("-1", "1") or not np.char.isdecimal(days).all():
        raise known.refusal(path)
    days = days.astype(np.int64)
    early = days < _TRAINING_DAYS
    if not 0 < early.sum() < len(early):
        raise InputError(f"{path} must hold some of the days 0 to {_TRAINING_DAYS - 1}, and some later ones")
    split = np.flatnonzero(early), np.flatnonzero(~early)
    return replace(table, name=known.name, classes=("benign", "malicious"), groups={"day": days}, official=split)


TEXT_SETS = (
    DataSet(
        "malicious_url",
        "URLs, benign or malicious, of days 0 to 9 and 10 to 19: about 20000 rows a day, 3231961 sparse columns, to be "
        "hashed, groups: day",
        _urls,
        "malicious_url/Day*.svm",
        "the original files Day0.svm to Day19.svm in svmlight format, with the labels 1 (malicious) and -1",
        "'URL Reputation' of the UCI Machine Learning Repository (Ma, Saul, Savage and Voelker 2009)",
        url="https://archive.ics.uci.edu/dataset/187",
        licence="CC BY 4.0",
        hashed=Hashing(12),
    ),
    DataSet(
        "youtube_spam",
        "comments below five videos, ham or spam: 1956 texts, to be hashed, groups: video",
        partial(_texts, label="class", group="video", classes=("ham", "spam")),
        "youtube_spam.parquet",
        "the columns content (a text), video and class (ham or spam)",
        "'YouTube Spam Collection' of the UCI Machine Learning Repository (Alberto and Lochter 2015)",
        url="https://archive.ics.uci.edu/dataset/380",
        licence="CC BY 4.0",
        hashed=Hashing(12, "content"),
    ),
    DataSet(
        "tweets",
        "tweets about something, negative, neutral or positive of it: 6248 + 692 texts, to be hashed",
        partial(_texts, label="sentiment", group="part", classes=("negative", "neutral", "positive")),
        "tweets.parquet",
        "the columns text, sentiment (negative, neutral or positive) and part (train or test)",
        "the tweets of Dong et al. 2014, 'Adaptive Recursive Neural Network for Target-dependent Twitter Sentiment "
        "Classification', as Vo and Zhang 2015 hand them on",
        url="https://github.com/duytinvo/ijcai2015",
        licence="none is stated; tweets are their authors'",
        hashed=Hashing(12, "text"),
    ),
)
