"""Data sets of texts and of sparse rows, and two large text files.

Comments, tweets and URLs of many days are hashed. The large files are the census of 1940 and the Criteo conversion log
(Brahmbhatt et al. 2023, Appendix K).
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from federation.contract.errors import InputError
from scenarios.data.files import read_table
from scenarios.data.hashing import Hashing
from scenarios.data.sheets import read_large
from scenarios.data.tables import DataSet, Table

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


_WEEKS, _AGE = "WKSWORK1", "AGE"
_CENSUS_TEXTS = ("SEX", "MARST", "CHBORN", "SCHOOL", "EMPSTAT", "OCC", "IND")
_WEEKS_RANGE = (0.0, 52.0)
CRITEO_COLUMNS = (
    "Sale", "SalesAmountInEuro", "time_delay_for_conversion", "click_timestamp", "nb_clicks_1week", "product_price",
    "product_age_group", "device_type", "audience_id", "product_gender", "product_brand", "product_category1",
    "product_category2", "product_category3", "product_category4", "product_category5", "product_category6",
    "product_category7", "product_country", "product_id", "product_title", "partner_id", "user_id",
)  # fmt: skip
_AMOUNT = "SalesAmountInEuro"
_NUMBERS = ("time_delay_for_conversion", "nb_clicks_1week", "product_price")
_TEXTS = ("product_age_group", "product_category1", "product_category7", "product_country", "product_gender")


def _census_1940(known: DataSet, path: Path) -> Table:
    """The persons with 1 to 52 weeks: 0 stands for not applicable and missing, too, and larger codes for unknown."""
    from pyarrow.dataset import field

    worked = (field(_WEEKS) >= 1) & (field(_WEEKS) <= _WEEKS_RANGE[1])
    numbers, texts = read_large(path, (_WEEKS, _AGE), _CENSUS_TEXTS, worked)
    if not np.isfinite(numbers[_AGE]).all():
        raise InputError(f"{path}: the {_AGE} of a person is missing; correct it or remove the row")
    blocks, text = (numbers[_AGE][:, None], texts), tuple(range(1, 1 + len(_CENSUS_TEXTS)))
    return Table(known.name, (_AGE, *_CENSUS_TEXTS), (), numbers[_WEEKS], blocks, text, label_range=known.label_range)


def _criteo(known: DataSet, path: Path) -> Table:
    """The clicks that led to a sale: -1 (no sale) is no label, and nothing else below 0 is one either."""
    from pyarrow.dataset import field

    sold = field(_AMOUNT) >= 0
    numbers, texts = read_large(path, (_AMOUNT, *_NUMBERS), _TEXTS, sold, separator="\t", names=CRITEO_COLUMNS)
    blocks, columns = [], []
    for name in _NUMBERS:
        # Imputed by a constant and an indicator of its own: a mean would be taken from everybody's rows.
        missing = ~(numbers[name] >= 0)
        blocks.append(np.column_stack([np.where(missing, 0.0, numbers[name]), missing]))
        columns += [name, f"{name} is missing"]
    text = tuple(range(len(columns), len(columns) + len(_TEXTS)))
    return Table(known.name, (*columns, *_TEXTS), (), numbers[_AMOUNT], (*blocks, texts), text)


CENSUS_1940 = DataSet(
    "census_1940",
    "weeks worked in 1939, 1 to 52 of a range from 0: 50582693 rows of the full count, 8 columns, 7 of them texts",
    _census_1940,
    "census_1940.csv",
    f"an extract in csv format, with a header, of the persons' {_WEEKS}, {_AGE}, {', '.join(_CENSUS_TEXTS)} as codes",
    "IPUMS USA (Ruggles et al.), the full count or a sample of 1940",
    url="https://usa.ipums.org",
    licence="the terms of use of IPUMS: for research and teaching, cited, not handed on",
    regression=True,
    label_range=_WEEKS_RANGE,
)
CRITEO = DataSet(
    "criteo_sscl",
    "what clicks on advertisements sold for, in euro: 1732721 rows, 11 columns, 5 of them texts; missing numbers are 0 "
    "with an indicator; declare data.range",
    _criteo,
    "CriteoSearchData",
    "23 columns separated by tabs, without a header, as in the original: Sale, SalesAmountInEuro, ..., user_id",
    "'Criteo Sponsored Search Conversion Log Dataset' of Criteo AI Lab (Tallis and Yadav 2018)",
    url="https://ailab.criteo.com/criteo-sponsored-search-conversion-log-dataset",
    licence="the terms of Criteo, to be accepted there",
    regression=True,
)
